"""Calls: facts first, then models of libraries, then the callee's own source, inlined."""

from __future__ import annotations

import ast
import builtins as py

from selc.frontend import (
    access,
    bodies,
    builtins_,
    caching,
    classes,
    enums,
    expr,
    folding,
    iteration,
    launches,
    library,
    methods,
    names,
    places,
    reading,
    stated,
    tensors,
)
from selc.frontend.context import MAX_DEPTH, Frame, Lowering, snippet
from selc.frontend.sites import Instance, Plan
from selc.frontend.state import State
from selc.frontend.values import (
    Bound,
    Choice,
    Cls,
    DictObj,
    Entry,
    External,
    Func,
    InstObj,
    ListObj,
    Method,
    Opaque,
    Partial,
    Raised,
    Ref,
    Tup,
    Unbound,
    V,
)
from selc.ir.op import Op


def call(cx: Lowering, st: State, e: ast.Call) -> V:  # noqa: C901  # one case per kind
    """The value of a call expression."""
    fact = names.fact_for(cx, st, e) or names.fact_for(cx, st, e.func)
    if fact is not None and fact.is_value:
        stated.evaluate(cx, st, e)
        return stated.result(cx, st, e, fact, ())
    if isinstance(e.func, ast.Name) and e.func.id in ("any", "all") and len(e.args) == 1:
        tests, builtin = e.args[0], External(f"builtins.{e.func.id}")
        if isinstance(tests, ast.GeneratorExp) and names.load(cx, st, e.func) == builtin:
            return iteration.quantifier(cx, st, e, tests, e.func.id == "any")
    filtered = e.func if isinstance(e.func, ast.Name) and folding.filtered(e) else None
    if filtered and names.load(cx, st, filtered) == External(f"builtins.{filtered.id}"):
        return folding.fold(cx, st, e)
    if isinstance(e.func, ast.Name) and e.func.id == "next" and e.args:
        found = e.args[0]
        plain = isinstance(found, ast.GeneratorExp) and len(found.generators) == 1
        if plain and names.load(cx, st, e.func) == External("builtins.next"):
            assert isinstance(found, ast.GeneratorExp)
            return iteration.first(cx, st, e, found)
    kernel = fact is not None and fact.opaque
    callee: V | None = None
    if fact is not None:
        stated.owner(cx, st, e.func)
    if kernel:
        callee = launches.stated(cx, st, e.func)
    elif fact is None:
        callee, kernel = _callee(cx, st, e.func)
    if isinstance(callee, External) and _no_effect(callee.name):
        return cx.none
    args = expr.elements(cx, st, e.args)
    kwargs: dict[str, V] = {}
    for keyword in e.keywords:
        value = expr.lower(cx, st, keyword.value)
        if keyword.arg is not None:
            kwargs[keyword.arg] = value
            continue
        if _keeps_order(callee) and isinstance(value, Ref):
            iteration.known_order(cx, st, value, keyword.value)
        kwargs.update(
            _expanded(
                cx, st, keyword.value, value, kernel or isinstance(callee, (Opaque, External))
            )
        )
    if callee is None:
        assert fact is not None
        return stated.result(cx, st, e, fact, args)
    if not kernel and not isinstance(callee, Choice):
        return invoke(cx, st, e, callee, args, kwargs)

    def each(s: State, v: V) -> V:
        if kernel and isinstance(v, Opaque):
            return opaque(cx, s, e, v, args, kwargs, kernel=True)
        return invoke(cx, s, e, v, args, kwargs)

    chosen = isinstance(callee, Choice)
    cx.chosen_calls += [e] * chosen
    try:
        return expr.each(cx, st, callee, each)
    finally:
        del cx.chosen_calls[len(cx.chosen_calls) - chosen :]


def _callee(cx: Lowering, st: State, func: ast.expr) -> tuple[V, bool]:
    """What a call calls, and whether it is `kernel[grid]`."""
    if not isinstance(func, ast.Subscript) or names.fact_for(cx, st, func) is not None:
        return expr.lower(cx, st, func), False
    container = expr.lower(cx, st, func.value)
    if not launches.is_kernel(container):
        return expr.each(cx, st, container, lambda s, v: access.subscript(cx, s, func, v)), False
    expr.lower(cx, st, func.slice)  # the grid
    return launches.kernels(container), True


def _keeps_order(callee: V | None) -> bool:
    """Whether what is called can see in which order its keywords are given."""
    if isinstance(callee, Choice):
        return _keeps_order(callee.then) or _keeps_order(callee.other)
    if isinstance(callee, (Bound, Partial)):
        return _keeps_order(callee.func)
    if isinstance(callee, Cls):
        made = [n for n in callee.node.body if isinstance(n, ast.FunctionDef)]
        return any(n.args.kwarg for n in made if n.name in ("__init__", "__new__"))
    if isinstance(callee, Func):
        return callee.node.args.kwarg is not None
    return callee == External("builtins.dict")


def _expanded(cx: Lowering, st: State, e: ast.expr, value: V, opaque_callee: bool) -> dict[str, V]:
    """`**value`: what it passes; a key that may be absent can only go to a launch."""
    if not opaque_callee:
        out: dict[str, V] = {}
        for key, entry in iteration.entries_of(cx, st, value, e).items():
            out[str(key)] = entry.value
        return out
    if isinstance(value, Choice):
        a, b = _expanded(cx, st, e, value.then, True), _expanded(cx, st, e, value.other, True)
        return {
            k: Choice(value.cond, a.get(k, Unbound(k)), b.get(k, Unbound(k))) for k in {**a, **b}
        }
    obj = cx.obj(st, value, e) if isinstance(value, Ref) else None
    if not isinstance(obj, DictObj) or obj.unknown:
        cx.refuse(e, "SEL901", f"{expr.describe(cx, st, value)} is expanded with `**`")
    return {
        str(k): x.value
        if cx.known_bool(x.present) is True
        else Choice(x.present, x.value, Unbound(str(k)))
        for k, x in obj.entries.items()
    }


def _no_effect(name: str) -> bool:
    return (
        any(name == n or name.startswith(n + ".") for n in library.NO_EFFECT)
        and name != "logging.getLogger"
    )


def invoke(  # noqa: C901  # one case per kind
    cx: Lowering, st: State, e: ast.expr, callee: V, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    """Call any value."""
    match callee:
        case Choice():
            return expr.each(cx, st, callee, lambda s, v: invoke(cx, s, e, v, args, kwargs))
        case Func():
            model = library.ENGINE_MODELS.get(callee.qualname)
            if model is not None and isinstance(e, ast.Call):
                return model(cx, st, e, args, kwargs)
            return inline(cx, st, e, callee, args, kwargs)
        case Bound():
            return inline(cx, st, e, callee.func, (callee.self, *args), kwargs)
        case Partial():
            return invoke(
                cx, st, e, callee.func, (*callee.args, *args), {**callee.kwargs, **kwargs}
            )
        case Cls():
            return instantiate(cx, st, e, callee, args, kwargs)
        case Method():
            return methods.method(cx, st, e, callee.self, callee.name, args, kwargs)
        case External():
            return _external(cx, st, e, callee.name, args, kwargs)
        case Ref():
            obj = cx.obj(st, callee, e)
            if isinstance(obj, InstObj) and obj.cls is not None:
                method = classes.called(cx, st, obj.cls, e)
                if isinstance(method, Func):
                    return inline(cx, st, e, method, (callee, *args), kwargs)
        case Opaque() if isinstance(e, ast.Call):
            model = library.ENGINE_MODELS.get(callee.text.rpartition(".")[2])
            if model is not None:
                return model(cx, st, e, args, kwargs)
            return opaque(cx, st, e, callee, args, kwargs)
        case _:
            pass
    cx.refuse(e, "SEL901", f"calling {expr.describe(cx, st, callee)} is not supported")


def operator(cx: Lowering, st: State, e: ast.expr, op: Op, left: V, right: V) -> V:
    """An operator on values that are not data."""
    if tensors.is_opaque(cx, st, left) or tensors.is_opaque(cx, st, right):
        return launches.derived(cx, e, left, right)
    cx.refuse(
        e,
        "SEL901",
        f"this operator on {expr.describe(cx, st, left)} and {expr.describe(cx, st, right)} is "
        "not supported",
    )


def matmul(cx: Lowering, st: State, e: ast.expr, left: V, right: V) -> V:
    """`left @ right`: a launch whose callee is the operator."""
    for side in (left, right):
        if not (tensors.is_tensor(cx, st, side) or (isinstance(side, Opaque) and side.made)):
            cx.refuse(
                e,
                "SEL901",
                f"`@` of {expr.describe(cx, st, side)} is not supported",
                help="only tensors are multiplied",
            )
    launches.note(cx, st, "@")
    return Opaque(snippet(e), query="@", made=True)


def _external(
    cx: Lowering, st: State, e: ast.expr, name: str, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    if _no_effect(name):
        return cx.none
    assert isinstance(e, ast.Call)
    if name in library.MODELS:
        return library.call(cx, st, e, name, args, kwargs)
    if name.startswith("builtins."):
        return builtins_.call(cx, st, e, name.removeprefix("builtins."), args, kwargs)
    if name.startswith("selc.lang."):
        from selc.frontend import dsl

        return dsl.call(cx, st, e, name.removeprefix("selc.lang."), args, kwargs)
    if name in ("functools.partial", "partial"):
        return Partial(args[0], args[1:], kwargs)
    if name in tensors.ALLOCATORS or name in tensors.LIKE:
        return tensors.allocate(cx, st, e, name, args, kwargs)
    return opaque(cx, st, e, Opaque(name), args, kwargs)


def opaque(
    cx: Lowering,
    st: State,
    e: ast.Call,
    callee: Opaque,
    args: tuple[V, ...],
    kwargs: dict[str, V],
    kernel: bool = False,
) -> V:
    """A call that cannot be followed: a launch, unless it only asks a question."""
    spelling = snippet(e.func.value if kernel and isinstance(e.func, ast.Subscript) else e.func)
    launched = kernel or launches.is_launch(callee, e.func)
    if launched:
        launches.launch(cx, st, e, spelling, callee, args, kwargs)
    for value in (*args, *kwargs.values()):
        _seen(cx, st, value, e)
    return Opaque(
        snippet(e),
        query=spelling,
        made=True,
        data=callee.data or launches.is_data(callee, e.func, launched),
    )


def _seen(cx: Lowering, st: State, value: V, e: ast.AST) -> None:
    """Opaque code has seen a value, and everything in it."""
    if isinstance(value, Choice):
        _seen(cx, st, value.then, e)
        _seen(cx, st, value.other, e)
    elif isinstance(value, Tup):
        for item in value.items:
            _seen(cx, st, item, e)
    elif isinstance(value, Ref) and not tensors.is_tensor(cx, st, value):
        obj = cx.heap.get(st, value)
        inner = (
            obj.items
            if isinstance(obj, ListObj)
            else [x.value for x in obj.entries.values()]
            if isinstance(obj, DictObj)
            else [x.value for x in obj.fields.values()]
        )
        if isinstance(obj, InstObj) and (obj.frozen or _forgotten(obj)):
            return
        freeze(cx, st, value, e)
        for item in inner:
            _seen(cx, st, item, e)


def _forgotten(obj: InstObj) -> bool:
    """Whether no attribute of an object is known any more."""
    return all(isinstance(x.value, Opaque) for x in obj.fields.values())


def freeze(cx: Lowering, st: State, ref: Ref, e: ast.AST) -> None:
    """An object that opaque code has seen may have been changed: its content is not known then."""
    obj = cx.heap.get(st, ref)
    why = f"`{snippet(e)}` may have changed it"
    if isinstance(obj, DictObj) and not obj.frozen:
        st.heap[ref.oid] = DictObj({}, unknown=why)
    elif isinstance(obj, ListObj) and not obj.frozen:
        st.heap[ref.oid] = ListObj((), unknown=why, kind=obj.kind)
    elif isinstance(obj, InstObj) and not obj.frozen and obj.name != tensors.DEVICE:
        by = snippet(e.func) if isinstance(e, ast.Call) else snippet(e)
        fields = {
            k: Entry(x.present, Opaque(f"{k} after {snippet(e)}", (), frozenset(), by, True, True))
            for k, x in obj.fields.items()
        }
        st.heap[ref.oid] = InstObj(obj.cls, fields, obj.frozen, obj.name)


# -- inlining ------------------------------------------------------------------------------------


def inline(
    cx: Lowering, st: State, e: ast.expr, func: Func, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    """Run a function's own body on these arguments."""
    if (
        len(cx.frames) > MAX_DEPTH
        or sum(f.instance.function == func.qualname for f in cx.frames) > 40
    ):
        cx.refuse(
            e,
            "SEL903",
            f"`{func.qualname}` calls itself without a bound that is known before serving",
            help="state the result of the call under `functions:`",
        )
    cx.keep.append(func.node)
    parent = cx.frame
    if isinstance(func.node, ast.Lambda):
        cx.lambda_count += 1
        key = f"{parent.instance.key}/<lambda>{cx.lambda_count}"
        instance = Instance(
            "<lambda>", parent.instance, e.lineno, e.col_offset + 1, f"[{cx.lambda_count}]", key
        )
        scope = cx.new_scope(func.scope, frozenset(_parameter_names(func.node.args)))
        frame = Frame(instance, func.module, Plan(), scope, func.scope, len(cx.conds), silent=True)
        _bind(cx, st, e, func, frame, args, kwargs)
        cx.frames.append(frame)
        try:
            return expr.lower(cx, st, func.node.body)
        finally:
            cx.frames.pop()
    where = cx.span(e)
    iteration = parent.iterations
    key = f"{parent.instance.key}/{func.qualname}@{where.line}:{where.column}{iteration}"
    if key not in cx.instances:
        cx.instances[key] = Instance(
            func.qualname, parent.instance, where.line, where.column, iteration, key
        )
    instance = cx.instances[key]
    layout = cx.plan_of(func.node)
    local = frozenset(_parameter_names(func.node.args)) | layout.assigned
    frame = Frame(
        instance, func.module, layout, cx.new_scope(func.scope, local), func.scope, 0, cls=func.cls
    )
    _bind(cx, st, e, func, frame, args, kwargs)
    caching.called(cx, func, instance)
    known = caching.before(st, frame.scope) if func.cached else None
    value = bodies.run_function(cx, st, frame, func.node)
    caching.settle(cx, st, e, func, value, known)
    return value


def _parameter_names(args: ast.arguments) -> list[str]:
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return [a.arg for a in every] + [a.arg for a in (args.vararg, args.kwarg) if a is not None]


def _bind(  # noqa: C901  # one case per kind
    cx: Lowering,
    st: State,
    e: ast.expr,
    func: Func,
    frame: Frame,
    args: tuple[V, ...],
    kwargs: dict[str, V],
) -> None:
    spec = func.node.args
    positional = [a.arg for a in (*spec.posonlyargs, *spec.args)]
    bound: dict[str, V] = dict(zip(positional, args, strict=False))
    extra = args[len(positional) :]
    if spec.vararg is not None:
        bound[spec.vararg.arg] = Tup(extra)
    elif extra:
        cx.refuse(
            e,
            "SEL901",
            f"`{func.qualname}` takes {len(positional)} positional arguments, {len(args)} are "
            "given",
        )
    rest: dict[object, Entry] = {}
    for name, value in kwargs.items():
        if name in bound and name not in [a.arg for a in spec.posonlyargs]:
            cx.refuse(e, "SEL901", f"`{func.qualname}` gets `{name}` twice")
        if name in positional or name in [a.arg for a in spec.kwonlyargs]:
            bound[name] = value
        else:
            rest[name] = Entry(cx.true, value)
    if spec.kwarg is not None:
        bound[spec.kwarg.arg] = cx.heap.new(st, DictObj(rest))
    elif rest:
        cx.refuse(e, "SEL901", f"`{func.qualname}` has no parameter `{next(iter(rest))}`")
    offset = len(positional) - len(func.defaults)
    for i, name in enumerate(positional):
        if name not in bound and i >= offset:
            bound[name] = func.defaults[i - offset]
    for a in spec.kwonlyargs:
        if a.arg not in bound and a.arg in func.kw_defaults:
            bound[a.arg] = func.kw_defaults[a.arg]
    missing = [n for n in (*positional, *[a.arg for a in spec.kwonlyargs]) if n not in bound]
    if missing:
        cx.refuse(e, "SEL901", f"the call to `{func.qualname}` gives no value for `{missing[0]}`")
    st.scopes[frame.scope] = bound


# -- objects -------------------------------------------------------------------------------------


def instantiate(
    cx: Lowering, st: State, e: ast.expr, cls: Cls, args: tuple[V, ...], kwargs: dict[str, V]
) -> V:
    """`Class(...)`: exceptions, NamedTuples, dataclasses, records and plain classes."""
    exception = exception_name(cx, cls)
    if exception is not None:
        return Raised(exception, "")
    kind = _class_kind(cx, cls)
    if kind in ("namedtuple", "dataclass"):
        fields = _declared_fields(cx, st, e, cls, args, kwargs)
        if kind == "namedtuple":
            return Tup(tuple(fields.values()), tuple(fields), cls=cls)
        post = reading.class_member(cx, st, cls, "__post_init__")
        if isinstance(post, Func):
            fields = places.made(cx, st, e, fields)
        entries = {k: Entry(cx.true, v) for k, v in fields.items()}
        ref = cx.heap.new(st, InstObj(cls, entries))
        if isinstance(post, Func):
            inline(cx, st, e, post, (ref,), {})
        return ref
    if enums.base_of(cx, cls) is not None:
        return enums.by_value(cx, st, e, cls, args)
    ref = cx.heap.new(st, InstObj(cls, {}))
    init = reading.class_member(cx, st, cls, "__init__")
    if isinstance(init, Func):
        inline(cx, st, e, init, (ref, *args), kwargs)
    elif args or kwargs:
        cx.refuse(e, "SEL901", f"`{cls.qualname}` has no `__init__` that selc can follow")
    return ref


def exception_name(cx: Lowering, cls: Cls) -> str | None:
    """How handlers see a class of exceptions: its name, `:`, and those of its ancestors.

    None if it derives from no built-in exception.
    """
    above = _exceptions_above(cx, cls)
    own = f"{cls.qualname}:{','.join(above)}"
    return own if any(hasattr(py, name) for name in above) else None


def _exceptions_above(cx: Lowering, cls: Cls) -> list[str]:

    out: list[str] = []
    for base in cls.node.bases:
        value = bodies.run_class_value(cx, cls, base)
        if isinstance(value, External):
            found = getattr(py, value.name.removeprefix("builtins."), None)
            if isinstance(found, type) and issubclass(found, BaseException):
                out.append(found.__name__)
        if isinstance(value, Cls):
            out += [value.qualname, *_exceptions_above(cx, value)]
    return out


def is_record_class(cx: Lowering, cls: Cls) -> bool:
    """Whether a class is a dataclass or NamedTuple."""
    return _class_kind(cx, cls) != ""


def _class_kind(cx: Lowering, cls: Cls) -> str:
    for base in cls.node.bases:
        if ast.unparse(base).rpartition(".")[2] == "NamedTuple":
            return "namedtuple"
    for decorator in cls.node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(target).rpartition(".")[2] in ("dataclass", "record", "struct"):
            return "dataclass"
    return ""


def is_dataclass(cls: Cls) -> bool:
    """Whether a class gets its `__eq__` from `dataclass`."""
    for decorator in cls.node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(target).rpartition(".")[2] == "dataclass":
            options = decorator.keywords if isinstance(decorator, ast.Call) else []
            own = any(isinstance(i, ast.FunctionDef) and i.name == "__eq__" for i in cls.node.body)
            return not own and not any(k.arg == "eq" for k in options)
    return False


def class_fields(cls: Cls) -> list[tuple[str, ast.expr | None]]:
    """Annotated fields of a class body, in order, with their defaults."""
    return [
        (item.target.id, item.value)
        for item in cls.node.body
        if isinstance(item, ast.AnnAssign)
        and isinstance(item.target, ast.Name)
        and "ClassVar" not in ast.unparse(item.annotation)
    ]


def all_fields(cx: Lowering, cls: Cls) -> list[tuple[str, ast.expr | None, Cls]]:
    """Fields of a class and its followed bases, bases first."""
    out: dict[str, tuple[str, ast.expr | None, Cls]] = {}
    for base in reversed(cls.node.bases):
        if ast.unparse(base).rpartition(".")[2] in ("NamedTuple", "object", "Protocol"):
            continue
        value = bodies.run_class_value(cx, cls, base)
        if isinstance(value, Cls):
            out.update({f[0]: f for f in all_fields(cx, value)})
    out.update({name: (name, default, cls) for name, default in class_fields(cls)})
    return list(out.values())


def _declared_fields(
    cx: Lowering, st: State, e: ast.expr, cls: Cls, args: tuple[V, ...], kwargs: dict[str, V]
) -> dict[str, V]:

    fields = all_fields(cx, cls)
    if len(args) > len(fields):
        cx.refuse(
            e, "SEL901", f"`{cls.qualname}` takes {len(fields)} arguments, {len(args)} are given"
        )
    given = dict(zip([f[0] for f in fields], args, strict=False))
    for name, value in kwargs.items():
        if name not in [f[0] for f in fields]:
            cx.refuse(e, "SEL901", f"`{cls.qualname}` has no field `{name}`")
        given[name] = value
    out: dict[str, V] = {}
    for name, default, owner in fields:
        if name in given:
            out[name] = given[name]
        elif default is None:
            cx.refuse(e, "SEL901", f"`{cls.qualname}(...)` gives no value for `{name}`")
        elif (
            isinstance(default, ast.Call)
            and ast.unparse(default.func).rpartition(".")[2] == "field"
        ):
            out[name] = _field_default(cx, st, e, owner, default)
        else:
            out[name] = bodies.run_class_value(cx, owner, default)
    return out


def _field_default(cx: Lowering, st: State, e: ast.expr, owner: Cls, default: ast.Call) -> V:

    for keyword in default.keywords:
        if keyword.arg == "default":
            return bodies.run_class_value(cx, owner, keyword.value)
        if keyword.arg == "default_factory":
            return invoke(cx, st, e, bodies.run_class_value(cx, owner, keyword.value), (), {})
    cx.refuse(e, "SEL901", f"a field of `{owner.qualname}` has no default that selc can follow")
