"""What random programs reach: operations of the graph, statements and expressions of Python."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from selc.ir.program import Program

STATEMENTS: Final = frozenset(
    {
        "Assign", "AugAssign", "AnnAssign", "Expr", "If", "For", "While", "Break", "Continue",
        "Return", "Assert", "Raise", "Try", "With", "FunctionDef", "ClassDef", "Import",
        "ImportFrom", "Global", "Nonlocal", "Delete", "Pass",
    }
)  # fmt: skip
"""The kinds of statements that selections may have."""

EXPRESSIONS: Final = frozenset(
    {
        "Constant", "Name", "BinOp", "UnaryOp", "BoolOp", "IfExp", "Compare", "Tuple", "List",
        "Dict", "Lambda", "JoinedStr", "NamedExpr", "Attribute", "Subscript", "Call", "ListComp",
        "GeneratorExp", "DictComp", "Starred", "Slice",
    }
)  # fmt: skip
"""The kinds of expressions that selections may have, sets aside: their order is not defined."""


@dataclass(slots=True)
class Reached:
    """Counts of programs in which each kind occurs."""

    operations: Counter[str] = field(default_factory=Counter)
    syntax: Counter[str] = field(default_factory=Counter)

    def program(self, text: str, lowered: Program) -> None:
        """Count one program that was lowered: its graph, and the syntax of its own function."""
        nodes = lowered.graph.cone(
            [p.node for p in lowered.points] + [n for g in lowered.guards for n in (g.path, g.cond)]
        )
        self.operations.update({n.op.value for n in nodes})
        function = next(n for n in ast.parse(text).body if getattr(n, "name", "") == "choose")
        self.syntax.update({type(n).__name__ for n in ast.walk(function)})
        self.syntax.update({type(n).__name__ for n in ast.parse(text).body})

    def missing(self, operations: set[str]) -> dict[str, list[str]]:
        """What no program had."""
        return {
            "operations": sorted(operations - set(self.operations)),
            "statements": sorted(STATEMENTS - set(self.syntax)),
            "expressions": sorted(EXPRESSIONS - set(self.syntax)),
        }

    def text(self, operations: set[str]) -> str:
        """A table of counts, then what is missing."""
        lines = [f"{n:9,} {op}" for op, n in sorted(self.operations.items())]
        kinds = STATEMENTS | EXPRESSIONS
        lines += [f"{n:9,} {k}" for k, n in sorted(self.syntax.items()) if k in kinds]
        lines += [
            f"missing {k}: {', '.join(v) or 'none'}" for k, v in self.missing(operations).items()
        ]
        return "\n".join(lines)
