"""Names: locals, closures, module level, imports, and what the facts say of them."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

from selc.diag.diagnostic import Refused
from selc.frontend import bodies, literals
from selc.frontend.context import Frame, Lowering, snippet
from selc.frontend.sites import Instance, Plan
from selc.frontend.state import State
from selc.frontend.values import (
    Choice,
    Cls,
    DictObj,
    External,
    Func,
    ListObj,
    ModuleV,
    Opaque,
    Ref,
    Tup,
    Unbound,
    V,
)

if TYPE_CHECKING:
    from selc.frontend.facts import FunctionFact
    from selc.frontend.source import ModuleSource

LIBRARIES: Final = (
    frozenset(
        {
            "selc",
            "torch",
            "numpy",
            "triton",
            "flashinfer",
            "flash_attn",
            "deep_gemm",
            "transformers",
        }
    )
    | sys.stdlib_module_names
)
"""Top-level packages that are modelled, never followed."""

GUARDED: Final = {"triton": "triton", "tl": "triton.language"}
"""Libraries by the name under which an engine re-exports them."""

TRANSPARENT: Final = frozenset(
    {
        "lru_cache",
        "cache",
        "wraps",
        "override",
        "final",
        "no_type_check",
        "abstractmethod",
        "compile",
        "inference_mode",
        "no_grad",
        "custom_op",
    }
)
"""Decorators that do not change what a function returns."""


def refuse_state(cx: Lowering, e: ast.AST, name: str) -> NoReturn:
    """Reading something that earlier calls may have changed, or why it may have changed."""
    if name.startswith("`"):
        cx.refuse(
            e,
            "SEL906",
            f"what this holds is not known: {name}",
            help="read it before that call, or follow the call: give the folder of its source "
            "with --root, or state what it gives under `functions:`",
        )
    cx.refuse(
        e,
        "SEL906",
        f"`{name}` is changed while the program runs: what it holds here depends on earlier calls",
        help="state its content under `globals:` in the facts, if serving never changes it: "
        f'globals: {{"{name}": ...}}',
    )


# -- local names ---------------------------------------------------------------------------------


def load(cx: Lowering, st: State, e: ast.Name) -> V:
    """The value of a name; `Unbound` where no assignment reaches."""
    name = e.id
    if name not in cx.frame.globals:
        scope: int | None = cx.frame.scope
        while scope is not None:
            known = st.scopes.get(scope, cx.closures.get(scope))
            if known is not None and name in known:
                return known[name]
            if name in cx.local_names.get(scope, ()):
                return Unbound(name)
            scope = cx.parents.get(scope)
    value = module_value(cx, st, cx.frame.module, name, e)
    if value is not None:
        return value
    if hasattr(builtins, name):
        return External("builtins." + name)
    cx.refuse(
        e,
        "SEL904",
        f"`{name}` is not defined in this function or its module",
        help="check the spelling, or state it under `globals:` or `functions:`",
    )


def local_value(cx: Lowering, st: State, name: str) -> V | None:
    """What a local variable holds, None if the name is not one."""
    scope: int | None = cx.frame.scope
    while scope is not None:
        if name in st.scopes.get(scope, {}):
            return st.scopes[scope][name]
        scope = cx.parents.get(scope)
    return None


def store(cx: Lowering, st: State, name: str, value: V) -> None:
    """Bind a name in the innermost function, or where `global`/`nonlocal` says."""
    _no_view(cx, value)
    frame = cx.frame
    if name in frame.globals:
        st.scopes.setdefault(cx.module_scope(frame.module), {})[name] = value
        return
    scope: int | None = frame.scope
    if name in frame.nonlocals:
        scope = cx.parents.get(frame.scope)
        while scope is not None and name not in st.scopes.get(scope, {}):
            scope = cx.parents.get(scope)
        if scope is None:
            refuse_state(cx, cx.frame.module.parse(cx.frame.module.segments[0])[0], name)
    elif scope in cx.comprehensions and name not in cx.local_names.get(scope, ()):
        while scope in cx.comprehensions:
            scope = cx.parents[scope]
    assert scope is not None
    st.scopes.setdefault(scope, {})[name] = value


def _no_view(cx: Lowering, value: V) -> None:
    """A view of a dict follows the dict: one that is kept could show what comes later."""
    made = cx.iterators.views.get(value) if isinstance(value, Tup) else None
    if made is not None:
        _kept_view(cx, made.e)
    for item in value.items if isinstance(value, Tup) and not value.size else ():
        if isinstance(item, Tup):
            _no_view(cx, item)


def current(cx: Lowering, st: State, value: V) -> V:
    """A value that is used; refused is a view of a dict that has changed since it was made."""
    made = cx.iterators.views.get(value) if isinstance(value, Tup) else None
    if made is not None:
        known = {r.oid for oid in made.held for r in cx.heap.related(Ref(oid))}
        if not known <= made.held.keys() or any(
            st.heap.get(oid) is not obj for oid, obj in made.held.items()
        ):
            _kept_view(cx, made.e)
    return value


def _kept_view(cx: Lowering, made: ast.AST) -> NoReturn:
    cx.refuse(
        made,
        "SEL901",
        f"`{snippet(made)}` is kept, and shows what the dict holds later",
        help="keep what it holds now: `tuple(...)`",
    )


# -- module level --------------------------------------------------------------------------------


def module_value(cx: Lowering, st: State, module: ModuleSource, name: str, e: ast.AST) -> V | None:
    """What a module binds a name to; None if it does not."""
    written = st.scopes.get(cx.module_scope(module), {}).get(name)
    if isinstance(written, Choice):
        first = _initial(cx, module, name, e)
        return written if first is None else filled(written, first)
    return _initial(cx, module, name, e) if written is None else written


def filled(value: V, first: V) -> V:
    """A value that some paths have written, with what it was on the others."""
    if isinstance(value, Choice):
        return Choice(value.cond, filled(value.then, first), filled(value.other, first))
    return first if isinstance(value, Unbound) else value


def _initial(cx: Lowering, module: ModuleSource, name: str, e: ast.AST) -> V | None:
    key = (str(module.path), name)
    if cx.running and cx.running[-1][0] == key[0]:
        lines = [s.first_line for s in module.segments_binding(name)]
        if lines and lines[0] < cx.running[-1][1] < lines[-1]:
            refuse_state(cx, e, f"{module.module_name}.{name}")  # read between its definitions
    if key in cx.module_values:
        value = cx.module_values[key]
    else:
        found = _module_value(cx, module, name, e)
        if found is None:
            return None
        value = cx.module_values[key] = found
    return value


_REBINDS: Final = re.compile(
    r"\b(?:globals|vars)\(\)\s*(?:\[[^\n]*\]\s*=(?!=)|\.(?:update|setdefault|pop)\()"
)
"""Module-level names bound through the module's dictionary: any of them may be."""


def _module_value(cx: Lowering, module: ModuleSource, name: str, e: ast.AST) -> V | None:
    qualified = f"{module.module_name}.{name}"
    for key in (qualified, name) if module is cx.entry_module else (qualified,):
        if key in cx.facts.globals:
            cx.read.add(f"globals.{key}")
            return literals.from_python(cx, None, cx.facts.globals[key])
    if module is cx.entry_module and name in cx.facts.tables:
        cx.read.add(f"tables.{name}")
        return literals.from_python(cx, None, cx.facts.tables[name])
    if name == "__file__":
        return cx.graph.const(str(module.path))
    if name == "__name__":
        return cx.graph.const(module.module_name)
    segments = module.segments_binding(name)
    if not segments:
        return _starred(cx, module, name, e)
    if re.search(rf"^\s+global\b[^\n#]*\b{re.escape(name)}\b", module.text, re.MULTILINE):
        refuse_state(cx, e, qualified)
    if segments[-1].kind not in ("def", "class", "import") and _REBINDS.search(module.text):
        refuse_state(cx, e, qualified)
    last = segments[-1]
    if last.kind == "import":
        return imported(cx, module, name, e)
    if any(
        s.kind == "try" and (str(module.path), s.first_line) not in cx.passed_tries
        for s in segments
    ):
        cx.need(
            e,
            f'globals:\n  "{qualified}": ...',
            f"`{name}` is bound inside a `try` at module level",
        )

    if qualified in cx.evaluating:
        cx.refuse(e, "SEL903", f"`{qualified}` is defined through itself")
    cx.evaluating.add(qualified)
    try:
        value = bodies.run_module(cx, module, list(segments), name)
    finally:
        cx.evaluating.discard(qualified)
    _mark_state(cx, module, name, value)
    from selc.frontend import attributes

    attributes.settle(cx, value, module.text, name)
    return value


def _starred(cx: Lowering, module: ModuleSource, name: str, e: ast.AST) -> V | None:
    """A name that `from m import *` may bind: the last star that does wins."""
    for target in reversed(_stars(cx, module)):
        source = cx.finder.find(target)
        if source is None:
            return Opaque(name)
        key = f"{module.path}*{name}"
        if key in cx.evaluating or not exported(cx, source, name):
            continue
        cx.evaluating.add(key)
        try:
            value = module_value(cx, State(cx.true), source, name, e)
        finally:
            cx.evaluating.discard(key)
        if value is not None:
            return value
    return None


def bound_by(statement: ast.stmt) -> set[str]:
    """Every name that a module-level statement may bind."""
    out: set[str] = set()
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            out.add(node.name)
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            out.update(a.asname or a.name.split(".")[0] for a in node.names)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            out.add(node.id)
        if not isinstance(node, ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))
    return out


def _stars(cx: Lowering, module: ModuleSource) -> list[str]:
    """The modules that a module star-imports, in order."""
    return [
        cx.finder.resolve_import(module, node.level, node.module)
        for segment in module.segments_binding("*")
        for node in ast.walk(ast.Module(list(module.parse(segment)), []))
        if isinstance(node, ast.ImportFrom) and any(a.name == "*" for a in node.names)
    ]


def exported(cx: Lowering, module: ModuleSource, name: str) -> bool:
    """Whether `from module import *` binds `name`, if the module has it."""
    segments = module.segments_binding("__all__")
    if not segments:
        return not name.startswith("_")
    listed: set[object] = set()
    for statement in [n for s in segments for n in module.parse(s)]:
        value = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign)) else None
        if not isinstance(value, (ast.List, ast.Tuple)) or not all(
            isinstance(x, ast.Constant) for x in value.elts
        ):
            cx.refuse(
                statement,
                "SEL901",
                f"which names `{module.module_name}` exports is computed: "
                "`__all__` is no list of strings",
            )
        listed |= {x.value for x in value.elts if isinstance(x, ast.Constant)}
    return name in listed


def origin(cx: Lowering, name: str) -> str:
    """The dotted name under which something is defined, through imports and re-exports."""
    for _ in range(16):
        base, _, last = name.rpartition(".")
        source = cx.finder.find(base) if base and base.split(".")[0] not in LIBRARIES else None
        if source is None:
            return name
        segments = source.segments_binding(last)
        if segments:
            target = import_target(cx, source, last) if segments[-1].kind == "import" else None
            if target is None or target == name:
                return name
            name = target
            continue
        for target in reversed(_stars(cx, source)):
            found = cx.finder.find(target)
            if (
                found is not None
                and exported(cx, found, last)
                and (found.segments_binding(last) or found.segments_binding("*"))
            ):
                name = f"{target}.{last}"
                break
        else:
            return name
    return name


_METHODS = (
    "append|add|update|pop|setdefault|clear|extend|insert|remove|popitem|discard|sort|reverse|"
    "appendleft|__setitem__|__delitem__"
)
_CHANGES = (
    r"\s*(?:\[[^\n]*?\]\s*(?:=(?!=)|[-+*/|&]=|//=)"
    rf"|(?:\[[^\n]*?\]\s*)*\.(?:{_METHODS})\b)"
)
_COPIES = r"(?:dict|list|set|tuple|sorted|frozenset|len|min|max|sum|any|all|copy\.deepcopy)\("
_HARMLESS = r"(?:print|len|log\w*\.\w+|_?logger\.\w+)\("


def _mark_state(cx: Lowering, module: ModuleSource, name: str, value: V) -> None:
    """A module-level container that anything changes is state: its content is not known."""
    if isinstance(value, Tup):
        for item in value.items:
            _mark_state(cx, module, name, item)
    if not isinstance(value, Ref):
        return
    changes = _changes(module.text, name, set())
    if not changes:
        return
    cx.change_counts[f"{module.module_name}.{name}"] = changes
    obj = cx.heap.base[value.oid]
    qualified = f"{module.module_name}.{name}"
    if isinstance(obj, DictObj):
        cx.heap.base[value.oid] = DictObj({}, unknown=qualified)
    elif isinstance(obj, ListObj):
        cx.heap.base[value.oid] = ListObj((), unknown=qualified, kind=obj.kind)


def _changes(text: str, name: str, seen: set[str]) -> int:
    """The places that may change a module-level container, under any of its names there."""
    seen.add(name)
    word = rf"(?<![\w.]){re.escape(name)}(?!\w)"
    pattern = rf"(?:(?<![\w.])|\bdel\s+){re.escape(name)}{_CHANGES}|\bdel\s+{re.escape(name)}\["
    count = len(re.findall(pattern, text))
    if len(seen) > 1:
        count += len(re.findall(rf"^{re.escape(name)}\s*[-+*/|&]=", text, re.MULTILINE))
    handed = rf"^(?!{_HARMLESS})[\w.]+\((?:[^\n]*[\s(,=*])?{re.escape(name)}\s*[,)]"
    count += len(re.findall(handed, text, re.MULTILINE))
    bound = rf"^(\w+)\s*(?::[^=\n]*)?=(?!=|\s*{_COPIES})\s*([^\n]*?{word}[^\n]*)$"
    others = [a for a, held in re.findall(bound, text, re.MULTILINE) if " for " not in held]
    for heads in re.findall(rf"^for\s+([^\n]+?)\s+in\s[^\n]*?{word}", text, re.MULTILINE):
        others += re.findall(r"\w+", heads)
    return count + sum(_changes(text, a, seen) for a in others if a not in seen)


# -- imports -------------------------------------------------------------------------------------


def import_target(cx: Lowering, module: ModuleSource, name: str) -> str | None:
    """The dotted name that a module-level import binds to `name`."""
    target = None
    for segment in module.segments_binding(name):
        for node in ast.walk(ast.Module(list(module.parse(segment)), [])):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                target = bindings(cx, module, node).get(name, target)
    return target


def bindings(
    cx: Lowering, module: ModuleSource, node: ast.Import | ast.ImportFrom
) -> dict[str, str]:
    """What an import statement binds: name -> dotted target."""
    if isinstance(node, ast.Import):
        return {
            a.asname or a.name.split(".")[0]: a.name if a.asname else a.name.split(".")[0]
            for a in node.names
        }
    base = cx.finder.resolve_import(module, node.level, node.module)
    return {a.asname or a.name: f"{base}.{a.name}" for a in node.names}


def absent(cx: Lowering, node: ast.Import | ast.ImportFrom, target: str) -> bool:
    """Whether `globals: {module: null}`, for `target` or around it, says that it cannot be had."""
    parts = (target if isinstance(node, ast.Import) else target.rpartition(".")[0]).split(".")
    for end in range(1, len(parts) + 1):
        module = ".".join(parts[:end])
        if module in cx.facts.globals and cx.facts.globals[module] is None:
            cx.read.add(f"globals.{module}")
            return True
    return False


def imported(cx: Lowering, module: ModuleSource, name: str, e: ast.AST) -> V:
    """The value of a name that a module-level import binds."""
    target = import_target(cx, module, name)
    if target is None:
        return Opaque(name)
    key = f"{module.path}|{name}"
    if key in cx.evaluating:
        cx.refuse(e, "SEL903", f"the import of `{name}` leads back to itself")
    cx.evaluating.add(key)
    try:
        return dotted(cx, target, e)
    finally:
        cx.evaluating.discard(key)


def dotted(cx: Lowering, target: str, e: ast.AST) -> V:
    """The value of a dotted name: a module, or something a module binds."""
    if target == "typing.TYPE_CHECKING":
        return cx.false
    if target.split(".")[0] in LIBRARIES:
        return external(cx, target)
    base, _, last = target.rpartition(".")
    source = cx.finder.find(base) if base else None
    if cx.finder.find(target) is not None and (
        source is None or not _rebound(cx, source, last, target)
    ):
        return ModuleV(target)
    if source is None:
        return Opaque(target)
    value: V | None = None
    with suppress(Refused), cx.tentative():
        value = module_value(cx, State(cx.true), source, last, e)
    if value is not None:
        return value
    if last in GUARDED:
        return External(GUARDED[last])  # engines import compilers behind a guard and hand them on
    if source.segments_binding(last):
        cx.unseen[target] = (source, last)
    return Opaque(target)


def _rebound(cx: Lowering, package: ModuleSource, name: str, target: str) -> bool:
    """Whether a package binds the name of one of its modules to something else."""
    segments = package.segments_binding(name)
    if not segments:
        return False
    return segments[-1].kind != "import" or import_target(cx, package, name) != target


def tell_why(cx: Lowering, value: V, e: ast.AST) -> None:
    """Refuse an imported value that could not be followed, for the reason that it could not."""
    if isinstance(value, Opaque) and value.text in cx.unseen:
        source, last = cx.unseen[value.text]
        module_value(cx, State(cx.true), source, last, e)


def external(cx: Lowering, target: str) -> V:
    """Something of a library: dtypes and a few constants have values, the rest only a name."""
    if target.startswith("torch."):
        dtype = literals.dtype(target.removeprefix("torch."))
        if dtype is not None:
            return cx.graph.const(dtype)
    constants = {
        "math.pi": 3.141592653589793,
        "math.e": 2.718281828459045,
        "math.inf": float("inf"),
        "os.sep": "/",
    }
    if target in constants:
        return cx.graph.const(constants[target])
    return External(target)


# -- facts about outside names -------------------------------------------------------------------


def qualified(cx: Lowering, st: State, e: ast.expr) -> str | None:
    """The dotted name of a name or attribute chain, through imports."""
    if isinstance(e, ast.Name):
        scope: int | None = cx.frame.scope
        while scope is not None:
            if (scope, e.id) in cx.import_names:
                return cx.import_names[scope, e.id]
            if e.id in st.scopes.get(scope, {}):
                value = st.scopes[scope][e.id]
                return (
                    f"{value.module.module_name}.{value.qualname}"
                    if isinstance(value, (Func, Cls))
                    else None
                )
            scope = cx.parents.get(scope)
        module = cx.frame.module
        segments = module.segments_binding(e.id)
        if segments and segments[-1].kind == "import":
            return import_target(cx, module, e.id)
        return f"{module.module_name}.{e.id}" if segments else None
    if isinstance(e, ast.Attribute):
        base = qualified(cx, st, e.value)
        return None if base is None else f"{base}.{e.attr}"
    return None


def fact_for(cx: Lowering, st: State, e: ast.expr) -> FunctionFact | None:
    """The `functions:` fact for a callee or attribute, by its spelling or its qualified name."""
    if not cx.facts.functions or not isinstance(
        e, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
    ):
        return None
    name = _spelled(cx).get(ast.unparse(e)) or qualified(cx, st, e)
    if name is not None and name not in cx.facts.functions:
        name = origin(cx, name)
    if name is None or name not in cx.facts.functions:
        return None
    cx.read.add(f"functions.{name}")
    return cx.facts.functions[name]


def _spelled(cx: Lowering) -> dict[str, str]:
    """The keys of `functions:` by their spelling in normal form."""
    if not cx.spellings:
        for key in cx.facts.functions:
            try:
                cx.spellings[ast.unparse(ast.parse(key.strip(), mode="eval").body)] = key
            except (SyntaxError, ValueError):
                cx.spellings[key] = key
    return cx.spellings


def module_frame(cx: Lowering, module: ModuleSource) -> Frame:
    """A frame for module-level code: no sites, names resolve to the module."""
    instance = Instance("<module>", None, 0, 0, "", f"<{module.module_name}>")
    scope = cx.new_scope(None, frozenset())
    return Frame(instance, module, Plan(), scope, None, len(cx.conds), silent=True)
