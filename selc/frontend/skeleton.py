"""A facts-file skeleton: what a function's facts have to say, found by reading it and its helpers.

Nothing is lowered: the walk visits every statement, taken or not, so the skeleton names everything
that some path may need. It follows helpers through the package's source as lowering does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from selc.diag.diagnostic import Refused, Sink
from selc.frontend import dsl, launches, library, lower, names, tensors
from selc.frontend.context import Lowering
from selc.frontend.facts import Facts
from selc.frontend.modules import ModuleFinder
from selc.frontend.state import State
from selc.frontend.values import Cls, External, Func, ModuleV, Opaque, V

if TYPE_CHECKING:
    from pathlib import Path

    from selc.frontend.source import ModuleSource

BATCH: Final = re.compile(
    r"^(m|bs|b|n_tokens|num_tokens|tokens|batch|batch_size|num_(seqs|reqs|requests|rows|valid_tokens|decodes|prefills)"
    r"|n_rows|rows|max_(seq_?len|query_len|kv_len|num_tokens)\w*|max_seqlen_\w+|total_(q|k|bytes|tokens)|nbytes|seq_?lens?\w*"
    r"|query_lens?\w*|common_prefix_len|num_\w*tokens\w*|grid_size)$",
    re.IGNORECASE,
)
"""Parameter names that usually carry the batch."""

_TENSOR_ATTRIBUTES: Final = frozenset({"shape", "dtype", "device", "numel", "element_size", "nbytes", "stride", "is_contiguous", "dim", "ndim", "size"})
_MAX_HELPERS: Final = 200


@dataclass(slots=True)
class Found:
    """What was found, by section; each entry keeps the first line that reads it."""

    inputs: dict[str, str] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    optional: dict[str, str] = field(default_factory=dict)
    tensors: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    globals: dict[str, str] = field(default_factory=dict)


def skeleton(target: str, roots: Sequence[Path]) -> str:
    """A facts file for a target, as YAML text with comments.

    Raises:
        Refused: the target or its source cannot be found or read.
    """
    cx = Lowering(Facts(), ModuleFinder(tuple(roots)), {}, Sink())
    func, module = lower.entry(cx, target)
    assert isinstance(func.node, ast.FunctionDef)
    walk = _Walk(cx, module, func)
    walk.parameters()
    walk.run()
    return _yaml(walk, module, func)


class _Walk:
    """Visits the entry function and, through calls, its helpers."""

    def __init__(self, cx: Lowering, module: ModuleSource, func: Func) -> None:
        self.cx = cx
        self.entry = func
        self.found = Found()
        self.todo: list[tuple[Func, bool]] = [(func, True)]
        self.seen: set[int] = set()
        self.names: set[tuple[str, str]] = set()
        self.module = module

    def run(self) -> None:
        """Visit until nothing new is called."""
        while self.todo and len(self.seen) < _MAX_HELPERS:
            func, entry = self.todo.pop(0)
            if id(func.node) in self.seen:
                continue
            self.seen.add(id(func.node))
            self.cx.frames.append(names.module_frame(self.cx, func.module))
            try:
                _Visitor(self, func, entry).visit_body()
            finally:
                self.cx.frames.pop()

    def parameters(self) -> None:
        """Guess what each parameter is from its name, annotation and use."""
        node = self.entry.node
        assert isinstance(node, ast.FunctionDef)
        spec = node.args
        every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
        positional = [*spec.posonlyargs, *spec.args]
        defaults = {a.arg for a in positional[len(positional) - len(spec.defaults) :]}
        defaults |= {a.arg for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
        for a in every:
            if a.arg in ("self", "cls"):
                continue
            kind, _, inner = dsl.annotation(a.annotation)
            text = "" if inner is None else ast.unparse(inner)
            where = f"line {a.lineno}" + (f", {text}" if text else "")
            if _is_tensor(node, a.arg, text):
                self.found.tensors[a.arg] = f"{{shape: {_shape(node, a.arg)}, dtype: torch.bfloat16}}   # {where}"
            elif kind in ("runtime", "request", "unpinnable") or (BATCH.match(a.arg) and text in ("", "int", "int | None")):
                declared = f"kind: {kind or 'runtime'}, type: int, range: [1, {131072 if 'len' in a.arg else 16384}]"
                self.found.inputs[a.arg] = f"{{{declared}}}   # {where}"
            elif a.arg in defaults:
                self.found.optional[a.arg] = f"{_guess(a.arg, text)}   # {where}; has a default"
            else:
                self.found.facts[a.arg] = f"{_guess(a.arg, text)}   # {where}"


class _Visitor(ast.NodeVisitor):
    """Collects the outside names that one function reads."""

    def __init__(self, walk: _Walk, func: Func, entry: bool) -> None:
        self.walk = walk
        self.cx = walk.cx
        self.func = func
        self.entry = entry
        self.found = walk.found
        node = func.node
        spec = node.args
        every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *[a for a in (spec.vararg, spec.kwarg) if a]]
        self.local = {a.arg for a in every}
        body = node.body if isinstance(node, ast.FunctionDef) else [ast.Expr(node.body)]
        for statement in body:
            for n in ast.walk(statement):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                    self.local.add(n.id)
                elif isinstance(n, (ast.FunctionDef, ast.ClassDef)):
                    self.local.add(n.name)
                elif isinstance(n, ast.arg):
                    self.local.add(n.arg)
        self.imports: dict[str, str] = {}
        self.body = body

    def visit_body(self) -> None:
        """Visit every statement."""
        for statement in self.body:
            self.visit(statement)

    def visit_Import(self, node: ast.Import) -> None:  # noqa: N802  # ast's naming
        self.imports.update(names.bindings(self.cx, self.func.module, node))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:  # noqa: N802  # ast's naming
        self.imports.update(names.bindings(self.cx, self.func.module, node))

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802  # ast's naming
        value = self.value(node.func)
        spelling = ast.unparse(node.func)
        where = f"   # line {node.lineno} of {self.func.module.path.rpartition('/')[2]}"
        if isinstance(value, Func):
            self.walk.todo.append((value, False))
            if not (node.args or node.keywords) and launches.is_query(value.qualname):
                self.found.functions.setdefault(spelling, f"null{where}; else its source is followed")
        elif isinstance(value, Cls):
            with suppress(Refused):
                init = lower.access.class_member(self.cx, State(self.cx.true), value, "__init__")
                if isinstance(init, Func):
                    self.walk.todo.append((init, False))
        elif isinstance(value, External):
            self.external(node, value.name, spelling, where)
        elif isinstance(value, Opaque) and self.outside(node.func) and "logger" not in spelling:
            if not launches.is_launch(value, node.func):
                self.found.functions.setdefault(spelling, "null" + where)
        for child in (*node.args, *[k.value for k in node.keywords]):
            self.visit(child)
        if isinstance(node.func, ast.Attribute):
            self.visit(node.func.value)

    def external(self, node: ast.Call, name: str, spelling: str, where: str) -> None:
        """A call of something that source does not define."""
        if name in ("os.getenv", "os.environ.get") and node.args and isinstance(node.args[0], ast.Constant):
            self.found.env.setdefault(str(node.args[0].value), "null" + where)
        elif name.startswith("builtins.") or name in library.MODELS or name in tensors.ALLOCATORS or name in tensors.LIKE:
            return
        elif any(name == n or name.startswith(n + ".") for n in library.NO_EFFECT) or name.startswith("selc.lang"):
            return
        elif not launches.records(name):
            self.found.functions.setdefault(spelling, "null" + where)

    def visit_Subscript(self, node: ast.Subscript) -> None:  # noqa: N802  # ast's naming
        if ast.unparse(node.value) == "os.environ" and isinstance(node.slice, ast.Constant):
            self.found.env.setdefault(str(node.slice.value), f"null   # line {node.lineno}")
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:  # noqa: N802  # ast's naming
        root = node.value
        if isinstance(root, ast.Name) and root.id == "self" and self.func.cls is not None:
            member: V | None = None
            with suppress(Refused):
                member = lower.access.class_member(self.cx, State(self.cx.true), self.func.cls, node.attr)
            if isinstance(member, Func):
                self.walk.todo.append((member, False))
            elif member is None and self.entry:
                self.found.facts.setdefault(f"self.{node.attr}", f"null   # line {node.lineno}")
            return
        value = self.value(root)
        if isinstance(value, External) and node.attr in ("__version__", "hip", "version"):
            self.found.functions.setdefault(ast.unparse(node), f"null   # line {node.lineno}")
        if isinstance(value, ModuleV) and value.name.rpartition(".")[2] in ("envs", "environ"):
            self.found.env.setdefault(node.attr, f"null   # line {node.lineno} of {self.func.module.path.rpartition('/')[2]}")
            return
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:  # noqa: N802  # ast's naming
        if not isinstance(node.ctx, ast.Load) or node.id in self.local or node.id in self.imports:
            return
        self.module_level(node.id)
        try:
            value = names.module_value(self.cx, State(self.cx.true), self.func.module, node.id, node)
        except Refused as refused:
            self.missing(node, refused)
            return
        if isinstance(value, Func) and value.module is self.func.module:
            return

    def module_level(self, name: str) -> None:
        """Visit the statements that bind a module-level variable."""
        module = self.func.module
        key = (str(module.path), name)
        if key in self.walk.names:
            return
        self.walk.names.add(key)
        for segment in module.segments_binding(name):
            if segment.kind in ("def", "class", "import"):
                continue
            with suppress(Refused):
                for statement in module.parse(segment):
                    local, self.local = self.local, set()
                    self.visit(statement)
                    self.local = local

    def missing(self, node: ast.Name, refused: Refused) -> None:
        """A module-level name that cannot be followed."""
        for diagnostic in refused.diagnostics:
            text = diagnostic.help
            functions = re.findall(r'"([^"]+)": \.\.\.', text) if "functions:" in text else []
            for spelling in functions:
                self.found.functions.setdefault(spelling, f"null   # read by {node.id}, line {node.lineno}")
            variables = re.findall(r"^env:\n  (\w+):", text, re.MULTILINE)
            for variable in variables:
                self.found.env.setdefault(variable, f"null   # read by {node.id}, line {node.lineno}")
            if not functions and not variables:
                name = f"{self.func.module.module_name}.{node.id}"
                self.found.globals.setdefault(name, f"null   # line {node.lineno}")

    def value(self, e: ast.expr) -> V | None:
        """What a name or attribute chain denotes outside the function, None if it is local."""
        if isinstance(e, ast.Name):
            if e.id in self.imports:
                return names.dotted(self.cx, self.imports[e.id], e)
            if e.id in self.local:
                return None
            try:
                value = names.module_value(self.cx, State(self.cx.true), self.func.module, e.id, e)
            except Refused:
                return Opaque(e.id)
            return External("builtins." + e.id) if value is None else value
        if isinstance(e, ast.Attribute):
            base = self.value(e.value)
            if isinstance(base, External):
                return names.external(self.cx, f"{base.name}.{e.attr}")
            if isinstance(base, Opaque):
                return Opaque(f"{base.text}.{e.attr}")
            if isinstance(base, (ModuleV, Cls)):
                with suppress(Refused):
                    return lower.access.attribute(self.cx, State(self.cx.true), e, base, e.attr)
                return Opaque(ast.unparse(e))
        return None

    def outside(self, e: ast.expr) -> bool:
        """Whether an attribute chain starts at module level or an import."""
        while isinstance(e, ast.Attribute):
            e = e.value
        return isinstance(e, ast.Name) and e.id not in self.local


def _is_tensor(node: ast.FunctionDef, name: str, annotation: str) -> bool:
    if "Tensor" in annotation:
        return True
    return not annotation and any(
        isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == name and n.attr in _TENSOR_ATTRIBUTES
        for n in ast.walk(node)
    )


def _shape(node: ast.FunctionDef, name: str) -> str:
    """A shape of the rank that the function's own reads show; two dimensions if they show none."""
    rank = 0
    for n in ast.walk(node):
        if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Tuple) and _reads_shape(n.value, name):
            rank = max(rank, len(n.targets[0].elts))
        if isinstance(n, ast.Subscript) and _reads_shape(n.value, name) and isinstance(n.slice, ast.Constant):
            rank = max(rank, int(n.slice.value) + 1 if isinstance(n.slice.value, int) else 0)
    sizes = ["num_tokens", "4096", *["128"] * 8]
    return "[" + ", ".join(sizes[: rank or 2]) + "]"


def _reads_shape(e: ast.expr, name: str) -> bool:
    return isinstance(e, ast.Attribute) and e.attr == "shape" and isinstance(e.value, ast.Name) and e.value.id == name


def _guess(name: str, annotation: str) -> str:
    if "bool" in annotation or name.startswith(("use_", "is_", "has_", "enable")):
        return "false"
    if "str" in annotation.split(" | "):
        return '""'
    if annotation.startswith(("list", "tuple", "Sequence")):
        return "[128, 128]"
    if annotation == "int":
        return "1"
    if annotation == "float":
        return "1.0"
    if "dtype" in name or "dtype" in annotation:
        return "torch.bfloat16"
    return "null"


def _yaml(walk: _Walk, module: ModuleSource, func: Func) -> str:
    found = walk.found
    if any("num_tokens" in text for text in found.tensors.values()) and "num_tokens" not in found.inputs:
        found.inputs["num_tokens"] = "{kind: runtime, type: int, range: [1, 16384]}   # sizes of the tensors below"
    name = f"{module.module_name}:{func.qualname}" if module.module_name else func.qualname
    lines = [
        f"# Facts for {func.qualname} in {module.path.rpartition('/')[2]}. Every value here is a guess: replace it by your deployment's.",
        "selection:", f"  function: {_text(name)}", "  scope: launch", "  returns: {'*': bits}    # field -> bits, neutral or aux",
    ]  # fmt: skip
    lines += _section("inputs", found.inputs, "what the batch determines: kind runtime, unpinnable or request")
    lines += _section("facts", found.facts, "known before serving")
    lines += [f"# {line}" for line in _section("facts", found.optional, "have defaults; uncomment to set")[1:]]
    lines += _section("tensors", found.tensors, "sizes may be inputs, facts and arithmetic of them")
    lines += _section("functions", found.functions, "what these calls return in your deployment")
    lines += _section("env", found.env, "environment variables; null is unset")
    lines += _section("globals", found.globals, "module-level names that selc cannot follow")
    return "\n".join(lines) + "\n"


def _section(title: str, entries: dict[str, str], comment: str) -> list[str]:
    if not entries:
        return []
    return [f"{title}:    # {comment}", *[f"  {_text(k)}: {v}" for k, v in entries.items()]]


def _text(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_][\w.]*", key) and key.lower() not in ("null", "true", "false", "yes", "no", "on", "off", "y", "n") else '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'

