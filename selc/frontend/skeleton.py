"""A facts-file skeleton: what a function's facts have to say, found by reading it and its helpers.

Nothing is lowered: the walk visits every statement, taken or not, so the skeleton names everything
that some path may need. It follows helpers through the package's source as lowering does.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from selc.diag.diagnostic import Diagnostic, Refused, Sink
from selc.diag.span import Span
from selc.diag.suggest import did_you_mean
from selc.frontend import enums, launches, library, lower, names, reading, tensors
from selc.frontend.context import Lowering
from selc.frontend.facts import Facts
from selc.frontend.modules import ModuleFinder
from selc.frontend.skeleton_held import Held
from selc.frontend.skeleton_syntax import (
    arguments,
    bound_in,
    call_aliases,
    callee,
    decorated,
    definitions,
    inner_tensors,
    may_be_imported,
    questions,
)
from selc.frontend.skeleton_text import Found, parameters, written
from selc.frontend.state import State
from selc.frontend.values import Bound, Cls, External, Func, ModuleV, Opaque, Partial, V

if TYPE_CHECKING:
    from pathlib import Path

    from selc.frontend.source import ModuleSource

_MAX_HELPERS: Final = 200
_MODULES: Final = frozenset({"envs", "environ"})
_PLAIN: Final = re.compile(r".*\.(__version__|version\.\w+)")
"""Attributes of libraries that a facts file has to state."""
_CONTAINERS: Final = frozenset(dir(dict)) | frozenset(dir(list)) | frozenset(dir(set))
_QUIET: Final = ("logger", "init_logger", "warn", "print")
_MODELLED: Final = (
    "builtins.",
    "selc.lang",
    "functools.",
    "typing.",
    "itertools.",
    "math.",
    "dataclasses.",
    "enum.",
    "collections.",
    "abc.",
    "contextlib.",
    "copy.",
    "bisect.",
    "operator.",
    "torch.version",
)


def skeleton(target: str, roots: Sequence[Path]) -> str:
    """A facts file for a target, as YAML text with comments.

    Raises:
        Refused: the target or its source cannot be found or read.
    """
    cx = Lowering(Facts(), ModuleFinder(tuple(roots)), {}, Sink())
    func, module = _entry(cx, target)
    walk = Walk(cx, func)
    node = func.node
    assert isinstance(node, ast.FunctionDef)

    def resolve(e: ast.expr) -> Cls | None:
        value = walk.module_level(func.module, e)
        return value if isinstance(value, Cls) else None

    def members(cls: Cls) -> list[str] | None:
        with suppress(Refused):
            if enums.base_of(cx, cls) is not None:
                return list(enums.members(cx, cls).symbols)
        return None

    walk.run()
    walk.environment()
    parameters(func, walk.found, resolve, members)
    walk.overrides()
    return written(walk.found, module, func)


# -- the entry -----------------------------------------------------------------------------------


def _entry(cx: Lowering, target: str) -> tuple[Func, ModuleSource]:
    """The function that a target names, whatever decorates it or stands around it."""
    module, name = cx.finder.split_target(target)
    cx.entry_module = module
    if name is None:
        return lower.entry(cx, target)
    first, *rest = name.split(".")
    found: list[ast.stmt] = []
    for segment in module.segments_binding(first):
        found += definitions(list(module.parse(segment)), first)
    cls: Cls | None = None
    for part in rest:
        inner = found[-1] if found else None
        if not isinstance(inner, ast.ClassDef):
            found = []
            break
        cls = Cls(inner, module, inner.name if cls is None else f"{cls.qualname}.{inner.name}")
        found = definitions(inner.body, part)
    node = found[-1] if found else None
    if isinstance(node, ast.AsyncFunctionDef):
        node = ast.FunctionDef(
            node.name, node.args, node.body, node.decorator_list, node.returns, lineno=node.lineno
        )
    if not isinstance(node, ast.FunctionDef):
        where = Span(str(module.path), 1, 1, 1, 1)
        known = sorted({n for s in module.segments if s.kind in ("def", "class") for n in s.names})
        what = f"there is no function `{name}` in {module.path}"
        raise Refused(Diagnostic("SEL907", what, where, help=did_you_mean(name, known)))
    cx.keep.append(node)
    flavour = "static" if decorated(node, "staticmethod") else ""
    return Func(node, module, name, None, (), {}, cls, flavour, False), module


# -- the walk ------------------------------------------------------------------------------------


class Walk:
    """Visits the entry function and, through calls, its helpers."""

    def __init__(self, cx: Lowering, func: Func) -> None:
        self.cx = cx
        self.found = Found()
        self.todo: list[tuple[Func, str]] = [(func, "self")]
        self.seen: set[tuple[int, str]] = set()
        self.names: set[tuple[str, str]] = set()
        self.asking: set[int] = set()  # functions that read something outside
        self.calls: dict[int, set[int]] = {}
        self.texts: dict[int, list[tuple[ast.Call, str]]] = {}  # calls by the function called
        self.variables: dict[int, tuple[Func, str]] = {}  # functions that read a named variable
        self.parameters = set(arguments(func.node)) - {"self", "cls"}
        self.helpers: dict[str, tuple[int, str]] = {}

    def run(self) -> None:
        """Visit until nothing new is called."""
        while self.todo and len(self.seen) < _MAX_HELPERS:
            func, owner = self.todo.pop(0)
            if (id(func.node), owner) in self.seen:
                continue
            self.seen.add((id(func.node), owner))
            self.cx.frames.append(names.module_frame(self.cx, func.module))
            try:
                _Visitor(self, func, owner, len(self.seen) == 1).visit_body()
            finally:
                self.cx.frames.pop()

    def follow(self, caller: Func, func: Func, owner: str, node: ast.expr, file: str) -> None:
        """A call of a function (or a read of a property) whose source is there."""
        spelling, where = "", f"line {node.lineno} of {file}"
        if isinstance(node, ast.Call):
            self.texts.setdefault(id(func.node), []).append((node, file))
            spelling = ast.unparse(node.func)
        elif isinstance(node, ast.Attribute):
            spelling = ast.unparse(node)
        self.todo.append((func, owner))
        self.calls.setdefault(id(caller.node), set()).add(id(func.node))
        if spelling and not spelling.startswith(_QUIET):
            self.helpers.setdefault(spelling, (id(func.node), where))

    def environment(self) -> None:
        """Variables whose names are handed to a helper that reads the environment."""
        for key, (func, parameter) in self.variables.items():
            at = arguments(func.node).index(parameter)
            for call, file in self.texts.get(key, ()):
                given = [k.value for k in call.keywords if k.arg == parameter]
                given += call.args[at : at + 1]
                for e in given:
                    if isinstance(e, ast.Constant) and isinstance(e.value, str):
                        self.found.env.setdefault(e.value, f"null   # line {call.lineno} of {file}")

    def overrides(self) -> None:
        """Helpers that read something outside may be stated instead of what they read."""
        asking = set(self.asking)
        grown = True
        while grown:
            more = {f for f, called in self.calls.items() if called & asking} - asking
            grown = bool(more)
            asking |= more
        for spelling, (key, where) in self.helpers.items():
            if key in asking and spelling not in self.found.functions:
                self.found.overrides[spelling] = f"null   # {where}; else its source is followed"

    def module_level(self, module: ModuleSource, e: ast.expr) -> V | None:
        """What an annotation of a module stands for."""
        with suppress(Refused):
            if isinstance(e, ast.Name):
                return names.module_value(self.cx, State(self.cx.true), module, e.id, e)
            if isinstance(e, ast.Constant) and isinstance(e.value, str) and e.value.isidentifier():
                return names.module_value(self.cx, State(self.cx.true), module, e.value, e)
        return None


class _Visitor(ast.NodeVisitor):
    """Collects the outside names that one function reads.

    `owner` is what `self` is in the target's words: `self`, `self.comm`; empty if that is unknown.
    """

    def __init__(self, walk: Walk, func: Func, owner: str, entry: bool) -> None:
        self.walk = walk
        self.cx = walk.cx
        self.func = func
        self.module = func.module
        self.owner = owner
        self.found = walk.found
        node = func.node
        self.body = node.body if isinstance(node, ast.FunctionDef) else [ast.Expr(node.body)]
        self.local = bound_in(node)
        self.aliases = call_aliases(self.body)
        self.questions = questions(self.body, entry)
        self.imports: dict[str, str] = {}
        self.file = func.module.path.rpartition("/")[2]
        self.held = Held(self.body, walk.found)
        self.given = self.held.returned | inner_tensors(node)

    def visit_body(self) -> None:
        """Visit every statement, and the conditions under which the function is defined."""
        for segment in self.module.segments_binding(self.func.qualname.partition(".")[0]):
            if segment.kind == "if":
                for statement in self.module.parse(segment):
                    self.conditions(statement)
        self.decorators()
        for statement in self.body:
            self.visit(statement)

    def decorators(self) -> None:
        """What decorates a helper runs too."""
        node = self.func.node
        for decorator in node.decorator_list if isinstance(node, ast.FunctionDef) else ():
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            value = _function(self.value(called))
            self.root_of(called)
            if isinstance(value, Func):
                self.walk.follow(self.func, value, "", called, self.file)

    def conditions(self, statement: ast.stmt) -> None:
        """The tests of nested ifs."""
        if isinstance(statement, ast.If):
            self.visit(statement.test)
            for inner in (*statement.body, *statement.orelse):
                self.conditions(inner)

    def ask(self, section: dict[str, str], key: str, node: ast.AST, value: str = "null") -> None:
        """Something that the facts have to state."""
        self.walk.asking.add(id(self.func.node))
        line = getattr(node, "lineno", 0)
        section.setdefault(key, f"{value}   # line {line} of {self.file}")

    # -- statements and expressions ---------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        self.imports.update(names.bindings(self.cx, self.module, node))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.imports.update(names.bindings(self.cx, self.module, node))

    def visit_Call(self, node: ast.Call) -> None:
        value = _function(self.value(node.func))
        spelling = ast.unparse(node.func)
        self.alternative(value, spelling, node)
        self.root_of(node.func)
        self.hidden(node, spelling)
        if isinstance(value, Func):
            self.walk.follow(self.func, value, "", node, self.file)
        elif isinstance(value, Cls):
            with suppress(Refused):
                init = reading.class_member(self.cx, State(self.cx.true), value, "__init__")
                if isinstance(init, Func):
                    self.walk.follow(self.func, init, "", ast.Name("", lineno=0), self.file)
        elif isinstance(value, External):
            self.external(node, value.name, spelling)
        elif isinstance(value, Opaque) and self.outside(node.func):
            asked = id(node) in self.questions or launches.is_query(spelling)
            if asked or not launches.is_launch(value, node.func):
                self.ask_call(spelling, node)
        elif isinstance(node.func, ast.Attribute) and self.own(node.func):
            self.method(node.func, spelling, node)
        elif isinstance(node.func, ast.Attribute) and self.parameter(node.func):
            self.answer(node.func, spelling, node)
        for child in (*node.args, *[k.value for k in node.keywords]):
            self.visit(child)
        if isinstance(node.func, ast.Attribute) and not self.own(node.func):
            self.visit(node.func.value)

    def hidden(self, node: ast.Call, spelling: str) -> None:
        """What a call runs that its own text does not say: of a base, an object, a variable."""
        func = node.func
        if isinstance(func, ast.Subscript) and spelling.startswith("self."):
            self.found.overrides.setdefault(spelling, self.kernel(node))
        elif isinstance(func, ast.Name) and func.id not in self.local:
            self.decorated(func)
            if may_be_imported(self.module, func.id, self.value(func)):
                self.found.overrides.setdefault(spelling, self.kernel(node))
        elif isinstance(func, ast.Name) and func.id in self.held.assigned:
            self.found.overrides.setdefault(spelling, self.kernel(node))
            for function in self.held.functions(self, func.id):
                self.walk.follow(self.func, function, "", node, self.file)
        elif isinstance(func, ast.Attribute):
            self.guarded(func)
            if ast.unparse(func.value) == "cls" and self.func.cls is not None:
                member = self.member(func)
                if isinstance(member, Func):
                    self.walk.follow(self.func, member, "", node, self.file)
            for cls, owner in self.held.receivers(self, func.value):
                self.run_method(cls, owner, func.attr, node)
            for cls, owner in self.held.receivers(self, func):
                for name in ("__call__", "forward"):
                    self.run_method(cls, owner, name, node)

    def run_method(self, cls: Cls, owner: str, name: str, node: ast.Call) -> None:
        """A method of an object is called, if its class has one of that name."""
        with suppress(Refused):
            member = reading.class_member(self.cx, State(self.cx.true), cls, name)
            if isinstance(member, Func):
                self.walk.follow(self.func, member, owner, node, self.file)

    def decorated(self, func: ast.Name) -> None:
        """An imported function of which only its decorators tell whether it is followed."""
        target = self.imports.get(func.id) or names.import_target(self.cx, self.module, func.id)
        if target is None or not isinstance(self.value(func), Opaque):
            return
        base, _, last = names.origin(self.cx, target).rpartition(".")
        module = self.cx.finder.find(base) if base else None
        for segment in module.segments_binding(last) if module is not None else ():
            if segment.kind == "def" and module is not None:
                for node in module.parse(segment):
                    if isinstance(node, ast.FunctionDef) and "jit" not in ast.unparse(node)[:200]:
                        helper = Func(node, module, last, None, (), {}, None, "", False)
                        self.cx.keep.append(node)
                        self.walk.follow(self.func, helper, "", func, self.file)

    def guarded(self, e: ast.Attribute) -> None:
        """The conditions under which another module defines what is called of it."""
        base = self.value(e.value)
        module = self.cx.finder.find(base.name) if isinstance(base, ModuleV) else None
        if module is not None:
            inside = self.elsewhere(module)
            for segment in module.segments_binding(e.attr):
                for statement in module.parse(segment) if segment.kind == "if" else ():
                    inside.conditions(statement)

    def elsewhere(self, module: ModuleSource) -> _Visitor:
        """The same visitor at the top of another module."""
        inside = copy.copy(self)
        inside.module, inside.local, inside.imports = module, set(), {}
        inside.file = module.path.rpartition("/")[2]
        return inside

    def kernel(self, node: ast.Call) -> str:
        """How a call that may be the kernel is shown."""
        return f"null   # line {node.lineno} of {self.file}; `opaque` if it is the kernel"

    def root_of(self, e: ast.expr) -> None:
        """The module-level name that an attribute chain starts from is read too."""
        while isinstance(e, ast.Attribute):
            e = e.value
        if isinstance(e, ast.Name) and e.id not in self.local and e.id not in self.imports:
            self.variable(e.id)

    def alternative(self, value: V | None, spelling: str, node: ast.Call) -> None:
        """A call whose result may be stated instead: shown in a comment."""
        last = spelling.rpartition(".")[2]
        if isinstance(value, (Cls, External)) and spelling not in ("hasattr", "getattr"):
            return
        if value is None and not isinstance(node.func, ast.Attribute):
            return
        state = isinstance(node.func, ast.Attribute) and self.outside(node.func)
        if (
            value is None
            and not state
            and (last in launches.TENSOR_METHODS or last in _CONTAINERS or hasattr("", last))
        ):
            return
        if spelling.startswith(_QUIET) or spelling == "getattr":
            return
        shown = ast.unparse(node) if spelling == "hasattr" else spelling
        self.found.overrides.setdefault(shown, self.kernel(node))

    def method(self, func: ast.Attribute, spelling: str, node: ast.Call) -> None:
        """A call through `self`."""
        member = self.member(func) if isinstance(func.value, ast.Name) else None
        if isinstance(member, Func):
            self.walk.follow(self.func, member, self.owner, node, self.file)
        elif func.attr.lstrip("_").startswith((*launches.QUERIES, "num", "max", "min")):
            self.ask(self.found.functions, spelling, node)

    def answer(self, func: ast.Attribute, spelling: str, node: ast.Call) -> None:
        """A method of a parameter, called for its answer."""
        if id(node) in self.questions and not hasattr("", func.attr):
            self.ask(self.found.answers, spelling, node)

    def external(self, node: ast.Call, name: str, spelling: str) -> None:
        """A call of something that source does not define."""
        first = node.args[0] if node.args else None
        if name in ("os.getenv", "os.environ.get"):
            self.variable_read(first, node)
        elif name in ("builtins.hasattr", "builtins.getattr") and isinstance(first, ast.Name):
            if first.id in self.walk.parameters and name == "builtins.hasattr":
                self.ask(self.found.answers, ast.unparse(node), node)
            elif first.id in arguments(self.func.node):
                self.walk.asking.add(id(self.func.node))
        elif name.startswith("builtins.") and not hasattr(builtins, spelling):
            self.found.overrides.setdefault(spelling, self.kernel(node))  # of a closure
        elif _modelled(name):
            return
        elif name.split(".")[0] in sys.stdlib_module_names or not launches.records(name):
            self.ask_call(spelling, node)

    def variable_read(self, name: ast.expr | None, node: ast.Call) -> None:
        """An environment variable by a constant name or by one that callers give."""
        if isinstance(name, ast.Constant):
            self.ask(self.found.env, str(name.value), node)
        elif isinstance(name, ast.Name) and name.id in arguments(self.func.node):
            self.walk.variables[id(self.func.node)] = (self.func, name.id)
            self.walk.asking.add(id(self.func.node))

    def ask_call(self, spelling: str, node: ast.Call) -> None:
        """A call that the facts have to answer, unless it only reports."""
        if not spelling.startswith(_QUIET):
            self.ask(self.found.functions, spelling, node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if ast.unparse(node.value) == "os.environ" and isinstance(node.slice, ast.Constant):
            self.ask(self.found.env, str(node.slice.value), node)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self.own(node):
            self.attribute_of_self(node)
            return
        if self.parameter(node):
            self.walk.asking.add(id(self.func.node))
            chain = ast.unparse(node)
            if isinstance(node.ctx, ast.Load) and chain.replace(".", "_").isidentifier():
                self.found.read.setdefault(chain)
        called = callee(node.value, self.aliases)
        if called is not None and isinstance(node.ctx, ast.Load):
            self.found.results.setdefault(called, {}).setdefault(node.attr)
        if isinstance(node.value, ast.Name) and node.value.id in self.given:
            chain = ast.unparse(node)
            self.found.overrides.setdefault(chain, f"null   # line {node.lineno} of {self.file}")
        value = self.value(node.value)
        if isinstance(value, External) and _PLAIN.fullmatch(f"{value.name}.{node.attr}"):
            self.ask(self.found.functions, ast.unparse(node), node)
        reader = value.name if isinstance(value, ModuleV) else ast.unparse(node.value)
        if reader.rpartition(".")[2] in _MODULES and (
            node.attr.isupper() or reader != "os.environ"
        ):
            self.ask(self.found.env, node.attr, node)
            return
        self.generic_visit(node)

    def own(self, node: ast.Attribute) -> bool:
        """Whether a chain starts at the `self` of a method."""
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        return isinstance(root, ast.Name) and root.id == "self" and self.func.cls is not None

    def parameter(self, node: ast.Attribute) -> bool:
        """Whether a chain starts at a parameter that bears the name of one of the target's."""
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            root = root.value
        if not isinstance(root, ast.Name) or root.id not in self.walk.parameters:
            return False
        return root.id in arguments(self.func.node)

    def attribute_of_self(self, node: ast.Attribute) -> None:
        """A read of `self.a` or `self.a.b`."""
        first = node
        while isinstance(first.value, ast.Attribute):
            first = first.value
        member = self.member(first)
        if isinstance(member, Func):
            self.walk.follow(self.func, member, self.owner, first, self.file)
        elif member is None and self.owner and isinstance(node.ctx, ast.Load):
            self.ask(self.found.facts, self.owner + ast.unparse(node).removeprefix("self"), node)

    def member(self, node: ast.Attribute) -> V | None:
        """What the class of `self` binds an attribute to."""
        assert self.func.cls is not None
        with suppress(Refused):
            return reading.class_member(self.cx, State(self.cx.true), self.func.cls, node.attr)
        return None

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load) or node.id in self.local or node.id in self.imports:
            return
        self.variable(node.id)
        try:
            names.module_value(self.cx, State(self.cx.true), self.module, node.id, node)
        except Refused as refused:
            self.missing(node, refused)

    # -- module level -----------------------------------------------------------------------------

    def variable(self, name: str) -> None:
        """Visit the statements that bind a module-level variable, here or where it comes from."""
        origin = names.origin(self.cx, f"{self.module.module_name}.{name}").rpartition(".")
        found = self.cx.finder.find(origin[0]) if origin[0] != self.module.module_name else None
        module, name = (self.module, name) if found is None else (found, origin[2])
        key = (str(module.path), name)
        if key in self.walk.names:
            self.walk.asking.add(id(self.func.node))
            return
        self.walk.names.add(key)
        inside = self.elsewhere(module)
        for segment in module.segments_binding(name):
            if segment.kind in ("def", "class", "import"):
                continue
            with suppress(Refused):
                for statement in module.parse(segment):
                    inside.visit(statement)

    def missing(self, node: ast.Name, refused: Refused) -> None:
        """A module-level name that cannot be followed."""
        for diagnostic in refused.diagnostics:
            text = diagnostic.help
            asked = re.findall(r'"([^"]+)": \.\.\.', text) if "functions:" in text else []
            variables = re.findall(r"^env:\n  (\w+):", text, re.MULTILINE)
            for spelling in asked:
                self.ask(self.found.functions, spelling, node)
            for variable in variables:
                self.ask(self.found.env, variable, node)
            if not asked and not variables:
                name = f"{self.module.module_name}.{node.id}".lstrip(".")
                self.ask(self.found.globals, name, node)

    def value(self, e: ast.expr) -> V | None:
        """What a name or attribute chain denotes outside the function, None if it is local."""
        if isinstance(e, ast.Name):
            return self.name_value(e)
        if isinstance(e, ast.Attribute):
            base = self.value(e.value)
            if isinstance(base, External):
                return names.external(self.cx, f"{base.name}.{e.attr}")
            if isinstance(base, Opaque):
                return Opaque(f"{base.text}.{e.attr}")
            if isinstance(base, (ModuleV, Cls)):
                with suppress(Refused):
                    return reading.attribute(self.cx, State(self.cx.true), e, base, e.attr)
                return Opaque(ast.unparse(e))
        return None

    def name_value(self, e: ast.Name) -> V | None:
        """What a name denotes outside the function."""
        if e.id in self.imports:
            return names.dotted(self.cx, self.imports[e.id], e)
        if e.id in self.local:
            return None
        try:
            value = names.module_value(self.cx, State(self.cx.true), self.module, e.id, e)
        except Refused:
            target = names.import_target(self.cx, self.module, e.id)
            return Opaque(e.id) if target is None else names.dotted(self.cx, target, e)
        return External("builtins." + e.id) if value is None else value

    def outside(self, e: ast.expr) -> bool:
        """Whether an attribute chain starts at module level or an import."""
        while isinstance(e, ast.Attribute):
            e = e.value
        return isinstance(e, ast.Name) and (e.id not in self.local or e.id in self.imports)


def _function(value: V | None) -> V | None:
    """The function under partial applications and bound arguments."""
    while isinstance(value, (Partial, Bound)):
        value = value.func
    return value


def _modelled(name: str) -> bool:
    """Whether lowering knows what a name of a library does."""
    if name.startswith(_MODELLED) or name in library.MODELS:
        return True
    if name in tensors.ALLOCATORS or name in tensors.LIKE:
        return True
    return any(name == n or name.startswith(n + ".") for n in library.NO_EFFECT)
