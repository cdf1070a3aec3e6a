"""The oracle of functions that end in launches: every opaque call is recorded as CPython makes it.

Calls in the text of the engine go through `__launch__`, which knows the source form of the callee.
What cannot be followed is a `Stub`; calling one records a launch, unless it asks a question, or
builds, reshapes or converts a tensor.
"""

from __future__ import annotations

import ast
import inspect
import math
import sys
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from selc.ir.program import Program
from tests.engines.engine import Engine, Facts, Module, Names
from tests.engines.oracle import (
    FAULTS,
    Bare,
    Case,
    Execution,
    Inputs,
    Unplaced,
    plain,
    put,
    thawed,
)
from tests.engines.overwrite import Overwriter, parse_pin
from tests.engines.stubs import (
    Device,
    Dtype,
    Library,
    Record,
    Stub,
    Tensor,
    Unstated,
)


class Anything(str):
    """What stands for an argument that is no choice: equal to any name that a graph has for one."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and other.startswith("<tensor")

    __ne__ = object.__ne__
    __hash__ = str.__hash__


Anything.__name__ = "str"
TENSOR = Anything("<tensor>")

PYTHON = frozenset(
    {"staticmethod", "classmethod", "property", "cached_property", "lru_cache", "cache"}
)
"""Decorators of Python itself."""

QUESTIONS = ("is_", "has_", "get_", "supports_", "can_", "should_", "current_", "use_")
BUILDERS = frozenset(
    [
        "arange",
        "tensor",
        "as_tensor",
        "cat",
        "stack",
        "device",
        "finfo",
        "iinfo",
        "promote_types",
        "result_type",
        "Generator",
        "Size",
        "numel",
        "is_tensor",
        "compile",
        "no_grad",
        "broadcast_shapes",
        "set_default_dtype",
        "empty",
        "zeros",
        "ones",
        "full",
        "rand",
        "randn",
        "empty_like",
        "zeros_like",
        "ones_like",
        "full_like",
        "rand_like",
    ]
)
MOVES = frozenset(
    [
        "add",
        "add_",
        "as_strided",
        "bfloat16",
        "bool",
        "byte",
        "chunk",
        "clamp",
        "clamp_",
        "clone",
        "contiguous",
        "copy_",
        "cpu",
        "cuda",
        "data_ptr",
        "detach",
        "diff",
        "dim",
        "div",
        "div_",
        "element_size",
        "eq",
        "exp",
        "exp_",
        "expand",
        "expand_as",
        "fill_",
        "flatten",
        "float",
        "gather",
        "ge",
        "gt",
        "half",
        "index_copy_",
        "index_fill_",
        "index_select",
        "int",
        "item",
        "le",
        "long",
        "lt",
        "masked_fill",
        "masked_fill_",
        "masked_scatter_",
        "mul",
        "mul_",
        "narrow",
        "ndimension",
        "ne",
        "neg",
        "nelement",
        "new_empty",
        "new_full",
        "new_ones",
        "new_tensor",
        "new_zeros",
        "nonzero",
        "numel",
        "numpy",
        "permute",
        "pin_memory",
        "pow",
        "reciprocal",
        "record_stream",
        "repeat",
        "repeat_interleave",
        "requires_grad_",
        "reshape",
        "resize_",
        "roll",
        "rsqrt",
        "scatter",
        "scatter_",
        "select",
        "set_",
        "sigmoid",
        "sign",
        "size",
        "split",
        "split_with_sizes",
        "sqrt",
        "square",
        "squeeze",
        "squeeze_",
        "storage_offset",
        "stride",
        "sub",
        "sub_",
        "swapaxes",
        "t",
        "t_",
        "tanh",
        "tile",
        "to",
        "tolist",
        "transpose",
        "transpose_",
        "tril",
        "triu",
        "type",
        "type_as",
        "unbind",
        "unflatten",
        "unfold",
        "unsqueeze",
        "unsqueeze_",
        "untyped_storage",
        "view",
        "view_as",
        "where",
        "zero_",
    ]
)

PLAIN = frozenset(
    [
        "staticmethod",
        "classmethod",
        "property",
        "cached_property",
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
    ]
)
"""Decorators that leave a function what it is."""


# -- values --------------------------------------------------------------------------------------


class Value(Stub):
    """What an opaque call gives: any operation on it gives another such value."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Value(f"{self._name}.{name}")

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return Value(f"{self._name}(...)")

    def __getitem__(self, key: object) -> Any:
        return Value(f"{self._name}[...]")

    def _operation(self, *args: object) -> Any:
        return Value(f"({self._name} op)")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = (
        _operation
    )
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __neg__ = __pow__ = __and__ = __or__ = (
        _operation
    )
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _operation
    __hash__ = Stub.__hash__


class Kernel(Stub):
    """A function that a decorator turned into something that is not followed."""

    def __init__(self, name: str, parameters: tuple[str, ...]) -> None:
        super().__init__(name)
        self.__dict__.update(parameters=parameters)

    def __getitem__(self, key: object) -> Any:
        return Launcher(self)


class Launcher(Value):
    """`kernel[grid]`."""

    def __init__(self, kernel: Stub) -> None:
        super().__init__(f"{kernel._name}[grid]")
        self.__dict__.update(
            parameters=getattr(kernel, "parameters", ()) if isinstance(kernel, Kernel) else ()
        )


class Sheet(Tensor):
    """A tensor whose layout follows it through views, slices and copies."""

    def _made(
        self, shape: Any, strides: Any = None, dtype: Dtype | None = None, device: Any = None
    ) -> Sheet:
        where = self.device if device is None or isinstance(device, Stub) else device
        return Sheet(
            tuple(shape),
            dtype or self.dtype,
            str(where),
            None if strides is None else tuple(strides),
        )

    def _rebuilt(self, shape: tuple[int, ...]) -> Sheet:
        return self._made(shape)

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim: int | None = None) -> Any:
        return self._strides if dim is None else self._strides[dim]

    def view(self, *shape: Any) -> Any:
        if any(isinstance(s, (Dtype, Stub)) for s in shape):
            return Value("tensor.view")
        wanted = (
            tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        )
        known = math.prod(s for s in wanted if s != -1)
        if (
            wanted.count(-1) > 1
            or (known == 0 and -1 in wanted)
            or (self.numel() % known if -1 in wanted else self.numel() != known)
        ):
            raise RuntimeError(f"shape {wanted} is invalid for {self.shape}")
        if not self.is_contiguous():
            return Value("tensor.view")
        return self._made(self.numel() // known if s == -1 else s for s in wanted)

    reshape = view

    def _swapped(self, i: int, j: int) -> Sheet:
        shape, strides = list(self.shape), list(self._strides)
        shape[i], shape[j] = shape[j], shape[i]
        strides[i], strides[j] = strides[j], strides[i]
        return self._made(shape, strides)

    def t(self) -> Sheet:
        return self._swapped(0, 1)

    def transpose(self, i: int, j: int) -> Sheet:
        return self._swapped(i, j)

    T = property(t)
    mT = property(lambda self: self._swapped(-2, -1))  # noqa: N815  # torch's name

    def to(self, *args: Any, **kwargs: Any) -> Sheet:
        given = [*args, *kwargs.values()]
        dtype = next((a for a in given if isinstance(a, Dtype)), None)
        device = next((a for a in given if isinstance(a, Device)), None)
        return self._made(self.shape, self._strides, dtype, device)

    def unsqueeze(self, dim: int) -> Sheet:
        shape = list(self.shape)
        shape.insert(dim % (len(shape) + 1), 1)
        return self._made(shape)

    def flatten(self) -> Sheet:
        return self._made((self.numel(),))

    def clone(self) -> Sheet:
        return self._made(self.shape)

    def detach(self) -> Sheet:
        return self._made(self.shape, self._strides)

    def zero_(self) -> Sheet:
        return self

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def _new(self, *size: Any, dtype: Dtype | None = None, device: Any = None, **_: Any) -> Sheet:
        sizes = size[0] if isinstance(size[0], (tuple, list)) else size
        return self._made(sizes, None, dtype, device)

    new_empty = new_zeros = new_ones = _new

    def __matmul__(self, other: object) -> Any:
        raise AssertionError("`@` is recorded before it is computed")

    def _operation(self, *args: object) -> Any:
        return Value("tensor op")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = (
        _operation
    )
    __lt__ = __le__ = __gt__ = __ge__ = _operation

    def __getitem__(self, key: Any) -> Any:
        keys = list(key) if isinstance(key, tuple) else [key]
        if any(
            not (k is None or k is Ellipsis or isinstance(k, slice) or type(k) is int) for k in keys
        ):
            return Value("tensor[...]")
        taken = sum(k is not None and k is not Ellipsis for k in keys)
        if Ellipsis not in keys:
            keys.append(Ellipsis)
        shape: list[int] = []
        strides: list[int] = []
        axis = 0
        for k in keys:
            if k is Ellipsis:
                rest = len(self.shape) - taken
                shape += self.shape[axis : axis + rest]
                strides += self._strides[axis : axis + rest]
                axis += rest
            elif k is None:
                shape.append(1)
                strides.append(1)
            elif isinstance(k, slice):
                shape.append(len(range(self.shape[axis])[k]))
                strides.append(self._strides[axis])
                axis += 1
            else:
                range(self.shape[axis])[k]
                axis += 1
        return self._made(shape, strides)


# -- libraries -----------------------------------------------------------------------------------


def allocate(*size: Any, dtype: Dtype | None = None, device: Any = None, **kwargs: Any) -> Any:
    """torch.empty and its kin."""
    shape = kwargs.get("size", size[0] if len(size) == 1 else size)
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if dtype is None or isinstance(dtype, Stub):
        return Value("tensor")
    return Sheet(sizes, dtype, "cuda" if isinstance(device, Stub) else str(device or "cpu"), None)


def fill(size: Any, value: object, **kwargs: Any) -> Any:
    """torch.full."""
    return allocate(size, **kwargs)


def alike(other: Any, dtype: Dtype | None = None, device: Any = None, **kwargs: Any) -> Any:
    """torch.empty_like and its kin."""
    return (
        other._made(other.shape, None, dtype, device)
        if isinstance(other, Sheet)
        else Value("tensor")
    )


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()
) -> Any:
    """torch.cond on a bool."""
    return (true_fn if pred else false_fn)(*operands)


def keep(*args: Any, **kwargs: Any) -> Any:
    """A decorator that leaves functions as they are, with or without options."""
    return (
        args[0]
        if len(args) == 1 and callable(args[0]) and not kwargs
        else lambda function: function
    )


TORCH = {
    "Tensor": Tensor, "cond": cond, "compile": keep, "inference_mode": keep, "no_grad": keep,
    "full": fill,
    **dict.fromkeys(("empty_like", "zeros_like", "ones_like", "full_like", "rand_like"), alike),
    **dict.fromkeys(("empty", "zeros", "ones", "rand", "randn"), allocate),
}  # fmt: skip


# -- recording -----------------------------------------------------------------------------------


class Recording(Facts):
    """Puts calls, unpackings and asserts of opaque values into a form that can be recorded."""

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802  # ast's naming
        key = self.key(node) or self.key(node.func)
        opaque = key is not None and self.engine.functions[key] == "opaque"
        if key is not None and not opaque:
            return super().visit_Call(node)
        if isinstance(node.func, ast.Name) and (
            node.func.id in ("super", "locals", "isinstance") or node.func.id.startswith("__")
        ):
            return self.generic_visit(node)
        grid = isinstance(node.func, ast.Subscript)
        text = " ".join(
            ast.unparse(
                node.func.value if isinstance(node.func, ast.Subscript) else node.func
            ).split()
        )
        callee = self.visit(node.func)
        if opaque:
            nothing = ast.arguments([], [], None, [], [], None, [])
            callee = ast.copy_location(ast.Lambda(nothing, callee), node)
        args = [self.visit(a) for a in node.args]
        keywords = [
            ast.copy_location(ast.keyword(k.arg, self.visit(k.value)), k) for k in node.keywords
        ]
        shown = [ast.Constant(p) for p in self.parameters(node.func)]
        flags: list[ast.expr] = [
            ast.Constant(text),
            ast.Tuple(list[ast.expr](shown), ast.Load()) if opaque else ast.Constant(None),
            ast.Constant(grid),
        ]
        call = ast.Call(ast.Name("__launch__", ast.Load()), [*flags, callee, *args], keywords)
        return ast.copy_location(call, node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:  # noqa: N802  # ast's naming
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        return ast.copy_location(
            ast.Call(ast.Name("__matmul__", ast.Load()), [node.left, node.right], []), node
        )

    def visit_Assign(self, node: ast.Assign) -> ast.AST:  # noqa: N802  # ast's naming
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, (ast.Tuple, ast.List)):
                parts = [ast.Constant(len(target.elts)), node.value]
                node.value = ast.copy_location(
                    ast.Call(ast.Name("__parts__", ast.Load()), parts, []), node.value
                )
                break
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:  # noqa: N802  # ast's naming
        self.generic_visit(node)
        node.msg = None
        handler = ast.ExceptHandler(ast.Name("__Unstated__", ast.Load()), None, [ast.Pass()])
        return ast.copy_location(ast.Try([node], [handler], [], []), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:  # noqa: N802  # ast's naming
        if self.name == self.engine.entry and node.name == self.engine.function.rpartition(".")[2]:
            # the function's own text, whatever it is registered as
            node.decorator_list = [
                d
                for d in node.decorator_list
                if ast.unparse(d).partition("(")[0].rpartition(".")[2] in PYTHON
            ]
        plainly = all(
            ast.unparse(d).partition("(")[0].rpartition(".")[2] in PLAIN
            for d in node.decorator_list
        )
        out = super().visit_FunctionDef(node)
        assert isinstance(out, ast.FunctionDef)
        if not plainly:
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            names = tuple(a.arg for a in every)
            made = ast.parse(f"lambda _: __kernel__({node.name!r}, {names!r})", mode="eval").body
            out.decorator_list = [ast.copy_location(made, node)]
        return out

    def parameters(self, func: ast.expr) -> tuple[str, ...]:
        """The parameters of a function of this module, also of one that a condition hides."""
        for statement in self.bound.get(ast.unparse(func), ()):
            for node in ast.walk(statement):
                if isinstance(node, ast.FunctionDef) and node.name == ast.unparse(func):
                    return tuple(
                        a.arg
                        for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
                    )
        return ()


class Recorder(Engine):
    """An engine that notes launches."""

    transformer = Recording

    def __init__(self, case: Case, overwriter: Overwriter) -> None:
        super().__init__(case.corpus, case.doc, case.module, case.function, overwriter)
        self.importing = 0
        self.libraries["tl"] = Library("triton.language", {})
        torch = self.libraries["torch"]
        torch.__dict__.update(TORCH)
        torch.__dict__["library"] = Library("torch.library", {"custom_op": keep})

    def names(self) -> dict[str, Any]:
        return {
            "__launch__": self.launch, "__parts__": parts, "__matmul__": self.matmul,
            "__Unstated__": Unstated, "__kernel__": Kernel,
        }  # fmt: skip

    def globals_of(self, module: str, name: str) -> Any:
        return (
            (lambda *_, **__: None)
            if name == "direct_register_custom_op"
            else super().globals_of(module, name)
        )

    def matmul(self, left: Any, right: Any) -> Any:
        """`left @ right`."""
        self.launches.append(("@", (), {}))
        return Value("@")

    def execute(self, module: Module, statement: ast.stmt, names: Names) -> None:
        self.importing += 1
        try:
            super().execute(module, statement, names)
        finally:
            self.importing -= 1

    def launch(
        self,
        text: str,
        opaque: tuple[str, ...] | None,
        grid: bool,
        callee: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """A call as written; `opaque`: parameters of one that the facts call the kernel."""
        if opaque is not None:
            try:
                callee = callee()
            except (AttributeError, KeyError, NameError, RuntimeError, Unstated):
                callee = None
            self.record(text, opaque or signature(callee), args, kwargs)
            return Value(f"{text}(...)")
        if isinstance(callee, Launcher) or (
            isinstance(callee, Stub) and (grid or launches(callee))
        ):
            self.record(
                text,
                getattr(callee, "parameters", ()) if isinstance(callee, (Launcher, Kernel)) else (),
                args,
                kwargs,
            )
        if isinstance(callee, Stub) and callee._name.split(".")[0] not in ("logger", "warnings"):
            return Value(f"{text}(...)")
        return callee(*args, **kwargs)

    def record(
        self,
        text: str,
        parameters: tuple[str, ...],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        """Note one launch with its arguments by name; what modules do on import is none."""
        if self.importing:
            return
        named = {parameters[i] if i < len(parameters) else f"[{i}]": a for i, a in enumerate(args)}
        self.launches.append((text, (), {**named, **kwargs}))


def launches(callee: Stub) -> bool:
    """Whether calling a stub is a launch."""
    name = callee._name
    last = name.rpartition(".")[2]
    if isinstance(callee, Value) or name.startswith("tensor."):
        return last.endswith((")", "]")) or (last not in MOVES and not last.startswith(QUESTIONS))
    if last.startswith(QUESTIONS) or name.split(".")[0] in (
        "logger",
        "numpy",
        *sys.stdlib_module_names,
    ):
        return False
    if name.startswith(("torch.cuda.", "torch.distributed.get", "torch.testing.")):
        return False
    return not (name.startswith("torch.") and last in BUILDERS)


def signature(callee: Any) -> tuple[str, ...]:
    """The names of a callee's parameters, if its definition is known."""
    if isinstance(callee, Kernel):
        return tuple(callee.parameters)
    if callee is None or isinstance(callee, (Stub, type)):
        return ()
    try:
        return tuple(
            p.name
            for p in inspect.signature(callee).parameters.values()
            if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        )
    except (TypeError, ValueError):
        return ()


def parts(count: int, value: Any) -> Any:
    """What is unpacked; of something opaque as many as are asked for."""
    return (
        tuple(Value(f"{value._name}[{i}]") for i in range(count))
        if isinstance(value, Stub)
        else value
    )


# -- cases ---------------------------------------------------------------------------------------


class LaunchCase(Case):
    """A facts file whose function ends in launches."""

    def build(
        self, program: Program | None = None, pins: Mapping[str, Any] | None = None
    ) -> Execution:
        overwriter = Overwriter()
        placed = []
        for name, value in (pins or {}).items():
            assert program is not None
            pin = parse_pin(name, program.sites[name].kind, thawed(value))
            if pin is None:
                raise Unplaced(name)
            overwriter.add(pin)
            placed.append(pin)
        return LaunchExecution(self, Recorder(self, overwriter), placed)


def case_of(path: Path, corpus: Path, program: Program) -> Case:
    """The case of a facts file; what is launched is recorded where the program has such points."""
    recorded = any(p.name == "call" or p.name.startswith("self.") for p in program.points)
    return LaunchCase(path, corpus) if recorded else Case(path, corpus)


class LaunchExecution(Execution):
    """The function of a case, its launches recorded."""

    def points(self, inputs: Inputs, names: list[str]) -> dict[str, Any] | None:
        self.engine.inputs = inputs
        self.engine.launches.clear()
        arguments = self.arguments(inputs)
        before = {
            k: dict(vars(v))
            for k, v in arguments.items()
            if hasattr(v, "__dict__") and not isinstance(v, (Stub, Tensor))
        }
        try:
            result = self.call(**arguments)
        except FAULTS:
            return None
        found = dict(passed(self.engine.launches))
        for owner, attributes in before.items():
            for name, value in vars(arguments[owner]).items():
                if name not in attributes or attributes[name] is not value:
                    found.update(choices(f"{owner}.{name}", value))
        found.update(results("", result))
        extra = {k: v for k, v in found.items() if k not in names and v != TENSOR}
        if extra:
            raise AssertionError(f"CPython passes {extra}, which are no points ({names})")
        out = {n: found.get(n) for n in names}
        scope = {**self.case.names(inputs), "result": out}
        return (
            out if all(eval(t, {}, scope) for t in self.case.selection.get("require", [])) else None
        )

    def arguments(self, inputs: Inputs) -> dict[str, Any]:
        return super().arguments(inputs)

    def argument(self, name: str, inputs: Inputs) -> Any:
        declared = [
            k
            for section in ("tensors", "inputs", "objects")
            for k in self.case.doc.get(section) or {}
        ]
        stated = self.case.facts.get(name)
        if (
            name != "self"
            and any(k.startswith(name + ".") for k in declared)
            and name not in (self.case.doc.get("objects") or {})
        ):
            return self.implied(name, stated if isinstance(stated, Mapping) else {}, inputs)
        return super().argument(name, inputs)

    def implied(self, path: str, attrs: Mapping[str, Any], inputs: Inputs) -> Any:
        """An object that is declared only by its parts."""
        return self.instance(Bare, attrs, path, inputs)

    def instance(self, cls: type, attrs: Mapping[str, Any], path: str, inputs: Inputs) -> Any:
        if cls is Device:
            return Device(attrs["type"], attrs.get("index"))
        out = super().instance(cls, attrs, path, inputs)
        for section in ("tensors", "inputs", "objects"):
            for name in self.case.doc.get(section) or {}:
                if name.startswith(path + ".") and "." in name[len(path) + 1 :]:
                    inner = name[len(path) + 1 :].split(".")[0]
                    if not hasattr(out, inner):
                        put(out, inner, self.implied(f"{path}.{inner}", {}, inputs))
        return out

    def class_of(self, name: str | None) -> type:
        return Device if name == "torch:device" else super().class_of(name)

    def tensor(self, stated: Mapping[str, Any], inputs: Inputs) -> Tensor:
        made = super().tensor(stated, inputs)
        return Sheet(
            tuple(made.shape),
            made.dtype,
            str(made.device),
            made._strides if stated.get("strides") else None,
        )


def passed(recorded: list[tuple[str, tuple[Any, ...], dict[str, Any]]]) -> dict[str, Any]:
    """The points of a run: the callees in order, and what each launch got."""
    out: dict[str, Any] = {}
    if recorded:
        out["call"] = " + ".join(text for text, _, _ in recorded)
    counts: dict[str, int] = {}
    for text, _, kwargs in recorded:
        counts[text] = n = counts.get(text, 0) + 1
        name = text if n == 1 else f"{text}#{n}"
        for key, value in kwargs.items():
            out.update(choices(f"{name}{key}" if key.startswith("[") else f"{name}.{key}", value))
    return out


def results(name: str, value: Any) -> dict[str, Any]:
    """The choices among what the function returns."""
    if value is None or isinstance(value, (Value, Tensor, Device)):
        return {}
    if isinstance(value, dict):
        return {
            k: v
            for key, inner in value.items()
            for k, v in results(f"{name}.{key}" if name else str(key), inner).items()
        }
    if isinstance(value, (tuple, list)):
        fields = getattr(value, "_fields", None)
        names = (
            [f"{name}.{f}" if name else f for f in fields]
            if fields
            else [f"{name}[{i}]" for i in range(len(value))]
        )
        return {
            k: v
            for part, inner in zip(names, value, strict=True)
            for k, v in results(part, inner).items()
        }
    return {name or "result": scalar(value)}


def choices(name: str, value: Any) -> dict[str, Any]:
    """An argument as points: dicts made by the function have one for each entry."""
    if isinstance(value, dict) and not isinstance(value, Record):
        return {
            k: v for key, inner in value.items() for k, v in choices(f"{name}.{key}", inner).items()
        }
    return {name: scalar(value)}


def scalar(value: Any) -> Any:
    """An argument as a graph holds it."""
    if isinstance(value, (tuple, list)):
        inner = tuple(scalar(v) for v in value)
        return inner if not inner or any(v != TENSOR for v in inner) else TENSOR
    if isinstance(value, (Value, Tensor, Device, Bare, Record)):
        return TENSOR
    if isinstance(value, Stub):
        return value._name
    if inspect.isroutine(value) or isinstance(value, type):
        return value.__qualname__
    return (
        plain(value)
        if value is None or isinstance(value, (bool, int, float, str, Dtype, Enum))
        else TENSOR
    )
