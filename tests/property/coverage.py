"""What random programs reach: operations of the graph, statements, expressions, built-ins."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from selc.ir.program import Program

KINDS: Final[dict[str, frozenset[str]]] = {
    "statements": frozenset(
        {
            "Assign", "AugAssign", "AnnAssign", "Expr", "If", "For", "While", "Break", "Continue",
            "Return", "Assert", "Raise", "Try", "With", "FunctionDef", "ClassDef", "Import",
            "ImportFrom", "Global", "Nonlocal", "Delete", "Pass",
        }
    ),
    "expressions": frozenset(
        {
            "Constant", "Name", "BinOp", "UnaryOp", "BoolOp", "IfExp", "Compare", "Tuple", "List",
            "Set", "Dict", "Lambda", "JoinedStr", "NamedExpr", "Attribute", "Subscript", "Call",
            "ListComp", "SetComp", "GeneratorExp", "DictComp",
        }
    ),
    "parts of expressions": frozenset(
        {
            "Starred", "Slice", "FormattedValue", "And", "Or", "Not", "USub", "UAdd", "Invert",
            "Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow", "LShift", "RShift", "BitOr",
            "BitXor", "BitAnd", "Eq", "NotEq", "Lt", "LtE", "Gt", "GtE", "Is", "IsNot", "In",
            "NotIn",
        }
    ),
    "built-ins": frozenset(
        {
            "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "frozenset",
            "getattr", "hasattr", "int", "isinstance", "iter", "len", "list", "map", "max", "min",
            "next", "pow", "range", "reversed", "round", "set", "sorted", "str", "sum",
            "tuple", "type", "zip",
        }
    ),
}  # fmt: skip
"""What the front end has a rule for; a test compares this with its tables."""

NOT_REACHED: Final[dict[str, str]] = {}
"""What no program can have, with the reason."""


@dataclass(slots=True)
class Reached:
    """Counts of programs in which each kind occurs."""

    operations: Counter[str] = field(default_factory=Counter)
    syntax: Counter[str] = field(default_factory=Counter)

    def program(self, text: str, lowered: Program) -> None:
        """Count one program that was lowered: its graph and its text, which it all uses."""
        nodes = lowered.graph.cone(
            [p.node for p in lowered.points] + [n for g in lowered.guards for n in (g.path, g.cond)]
        )
        self.operations.update({n.op.value for n in nodes})
        tree = list(ast.walk(ast.parse(text)))
        self.syntax.update({type(n).__name__ for n in tree})
        called = [n.func for n in tree if isinstance(n, ast.Call)]
        self.syntax.update({f.id for f in called if isinstance(f, ast.Name)} & KINDS["built-ins"])

    def missing(self, operations: set[str]) -> dict[str, list[str]]:
        """What no program had, except what cannot be had."""
        found = {"operations": operations - set(self.operations)}
        found |= {what: set(kinds) - set(self.syntax) for what, kinds in KINDS.items()}
        return {what: sorted(names - set(NOT_REACHED)) for what, names in found.items()}

    def text(self, operations: set[str]) -> str:
        """A table of counts, then what is missing."""
        lines = [f"{n:9,} {op}" for op, n in sorted(self.operations.items())]
        kinds = set().union(*KINDS.values())
        lines += [f"{n:9,} {k}" for k, n in sorted(self.syntax.items()) if k in kinds]
        lines += [
            f"missing {k}: {', '.join(v) or 'none'}" for k, v in self.missing(operations).items()
        ]
        return "\n".join(lines)
