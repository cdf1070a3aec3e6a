"""The state of walking one function: variables, causes of the current arm, what was found."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from selc.lint.index import Class, Function, Module, imported
from selc.lint.model import Step
from selc.lint.names import Names
from selc.lint.session import Session, Summary
from selc.lint.values import CLEAN, Flow, Taint, Val, dotted


class Exhausted(Exception):
    """The budget of a function is spent."""


@dataclass(frozen=True, slots=True)
class Returned:
    """One way out of a function."""

    node: ast.stmt | None
    value: Val
    control: Taint
    env: dict[str, Val]

    @staticmethod
    def empty_flow() -> Flow:
        """A label at its start."""
        return Flow(())


@dataclass(slots=True)
class State:
    """Everything that changes while a function is walked."""

    session: Session
    module: Module
    function: Function
    level: int
    env: dict[str, Val] = field(default_factory=dict)
    control: Taint = field(default_factory=lambda: CLEAN)
    """Batch-dependent conditions under which the current statement runs."""
    returned: list[Returned] = field(default_factory=list)
    summary: Summary = field(default_factory=Summary)
    local_imports: dict[str, str] = field(default_factory=dict)
    pending: dict[str, tuple[ast.stmt | ast.Call, Taint]] = field(default_factory=dict)
    """Variables named like harmful fields, until a real sink is met."""
    broken: Taint = field(default_factory=lambda: CLEAN)
    """Conditions under which the current loop was left early."""
    receiver: str = ""
    loops: int = 0
    silent: bool = False
    chained: bool = False
    """Whether an earlier arm of this chain of `elif` was already reported."""
    offline: bool = False
    ticks: int = 0

    def __post_init__(self) -> None:
        self.offline = self.names.matches("offline", self.function.node.name)

    @property
    def names(self) -> Names:
        """What names say."""
        return self.session.names

    def tick(self) -> None:
        """Count one step."""
        self.ticks += 1
        if self.ticks > self.session.budget:
            raise Exhausted

    def at(self, node: ast.AST, text: str = "") -> Step:
        """A step at a node, with its line of source unless there are better words."""
        line = getattr(node, "lineno", 0)
        return Step(self.module.shown, line, text or self.module.line(line)[:160])

    def source(self, name: str, where: Step) -> Taint:
        """A new taint: the batch quantity of this name."""
        return {("src", name): Flow((where,))}

    def leave(self, node: ast.stmt | None, value: Val) -> None:
        """Record one way out."""
        env = dict(self.env) if self.silent else self.env
        self.returned.append(Returned(node, value, self.control, env))

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        """Names that an import inside the function brings."""
        self.local_imports.update(imported(node, self.module.package))

    def drop(self, name: str) -> None:
        """Forget what was known of a variable's attributes."""
        prefix = f"{name}."
        for key in [key for key in self.env if key.startswith(prefix)]:
            del self.env[key]

    def resolve(self, name: str) -> Function | Class | Module | None:
        """What a dotted name of the source stands for, in the package."""
        head, _, rest = name.partition(".")
        if head in self.local_imports:
            whole = self.local_imports[head]
            return self.session.index.by_name(self.module, f"{whole}.{rest}" if rest else whole)
        return self.session.index.resolve(self.module, name)

    def annotated(self, note: ast.expr | None) -> Class | None:
        """The class that an annotation names."""
        match note:
            case ast.Constant(value=str(text)):
                try:
                    return self.annotated(ast.parse(text, mode="eval").body)
                except SyntaxError:
                    return None
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self.annotated(left) or self.annotated(right)
            case ast.Subscript(value=base, slice=inner) if dotted(base).endswith("Optional"):
                return self.annotated(inner)
            case ast.Name() | ast.Attribute():
                name = dotted(note)
                if name.rsplit(".", 1)[-1][:1].isupper():
                    found = self.resolve(name)
                    return found if isinstance(found, Class) else None
            case _:
                pass
        return None

    @staticmethod
    def is_kernel_source(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Whether a function is compiled for the device: its body is no host code."""
        for mark in node.decorator_list:
            name = dotted(mark.func if isinstance(mark, ast.Call) else mark)
            if name.rsplit(".", 1)[-1] in ("jit", "kernel", "prim_func", "autotune", "heuristics"):
                return True
        return False
