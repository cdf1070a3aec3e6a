"""Records what functions of an engine launch, as CPython makes the calls.

Every call in the text of an engine goes through `__launch__`, which knows the source of its callee.
What CPython can run is run. What it cannot, anything of a library that no stub here computes, is a
launch: nothing is told apart by its name.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.engines.engine import Engine, Facts, Module, Names
from tests.engines.stubs import Kernel, Library, Stub, Unstated, decorated
from tests.engines.tensors import TORCH, Value

if TYPE_CHECKING:
    from tests.engines.oracle import Case
    from tests.engines.overwrite import Overwriter

PYTHON = frozenset(
    {"staticmethod", "classmethod", "property", "cached_property", "lru_cache", "cache"}
)
"""Decorators of Python itself."""

LEFT = ("super", "locals", "isinstance")
"""Builtins that look at the frame they are called in."""


class Recording(Facts):
    """Puts calls, unpackings and asserts of opaque values into a form that can be recorded."""

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802  # ast's naming
        key = self.key(node) or self.key(node.func)
        opaque = key is not None and self.engine.functions[key] == "opaque"
        if key is not None and not opaque:
            return super().visit_Call(node)
        if isinstance(node.func, ast.Name) and (
            node.func.id in LEFT or node.func.id.startswith("__")
        ):
            return self.generic_visit(node)
        source = node.func.value if isinstance(node.func, ast.Subscript) else node.func
        text = " ".join(ast.unparse(source).split())
        short = brief(source)
        shown = [ast.Constant(p) for p in self.parameters(node.func)]
        stated: ast.expr = ast.Constant(None)
        callee: ast.expr = ast.Constant(None)
        if opaque:
            parts = [ast.Constant(key), *self.asking(node), ast.Tuple(list(shown), ast.Load())]
            stated = ast.Tuple(parts, ast.Load())
        else:
            callee = self.visit(node.func)
        args = [self.visit(a) for a in node.args]
        keywords = [
            ast.copy_location(ast.keyword(k.arg, self.visit(k.value)), k) for k in node.keywords
        ]
        first = [ast.Constant(text), ast.Constant(short), stated, callee]
        call = ast.Call(ast.Name("__launch__", ast.Load()), [*first, *args], keywords)
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
        out = super().visit_FunctionDef(node)
        assert isinstance(out, ast.FunctionDef)
        if out.decorator_list:
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            names = tuple(a.arg for a in every)
            made = ast.parse(f"lambda f: __made__(f, {node.name!r}, {names!r})", mode="eval").body
            out.decorator_list.insert(0, ast.copy_location(made, node))
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

    def __init__(self, case: Case, overwriter: Overwriter, quiet: frozenset[str]) -> None:
        super().__init__(
            case.corpus, case.doc, case.module, case.function, overwriter, case.prepared
        )
        self.quiet = quiet
        self.silent: set[str] = set()  # the quiet ones that were called
        self.libraries["ctypes"] = Value("ctypes")
        self.libraries["tl"] = Library("triton.language", {})
        self.libraries["torch"].__dict__.update(TORCH)

    def names(self) -> dict[str, Any]:
        return {
            "__launch__": self.launch, "__parts__": parts, "__matmul__": self.matmul,
            "__Unstated__": Unstated, "__made__": made,
        }  # fmt: skip

    def globals_of(self, module: str, name: str) -> Any:
        return (
            (lambda *_, **__: None)
            if name == "direct_register_custom_op"
            else super().globals_of(module, name)
        )

    def matmul(self, left: Any, right: Any) -> Any:
        """`left @ right`."""
        self.launches.append(("@", {}))
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
        short: str,
        stated: tuple[Any, ...] | None,
        callee: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """A call as written; `stated`: one that the facts call the kernel."""
        if stated is not None:
            key, site, find, dotted, shown = stated
            if not self.active:
                self.asked.note(key, site, (args, kwargs), find, dotted)
            self.record(text, shown or signature(find), args, kwargs)
            return Value(f"{text}(...)")
        if not isinstance(callee, Stub):
            return callee(*args, **kwargs)
        if short in self.quiet:
            self.silent.add(short)
        else:
            self.record(text, getattr(callee, "parameters", ()), args, kwargs)
        kernel = decorated(args, kwargs) if self.importing else None
        return Value(f"{text}(...)") if kernel is None else kernel

    def record(
        self, text: str, parameters: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        """Note one launch with its arguments by name; what modules do on import is none."""
        if self.importing:
            return
        names = parameters if isinstance(parameters, tuple) else ()
        named = {names[i] if i < len(names) else f"[{i}]": a for i, a in enumerate(args)}
        self.launches.append((text, {**named, **kwargs}))


def brief(callee: ast.expr) -> str:
    """The source text of a callee without what it is called or subscripted with."""
    if isinstance(callee, ast.Attribute):
        return f"{brief(callee.value)}.{callee.attr}"
    if isinstance(callee, ast.Call):
        return f"{brief(callee.func)}(...)"
    if isinstance(callee, ast.Subscript):
        return f"{brief(callee.value)}[...]"
    return ast.unparse(callee)


def made(function: Any, name: str, parameters: tuple[str, ...]) -> Any:
    """What decorators made of a function; one that a library took over is a kernel."""
    return Kernel(name, parameters) if isinstance(function, Stub) else function


def signature(find: Any) -> tuple[str, ...]:
    """The names of a callee's parameters, if its definition is there."""
    try:
        callee = find()
    except (AttributeError, KeyError, NameError, RuntimeError, Unstated):
        return ()
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
