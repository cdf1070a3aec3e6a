"""What random programs reach: operations of the graph, statements, expressions, built-ins.

    python -m tests.property.coverage

picks a few seeds whose programs reach everything together, for the test that looks at them.
"""

from __future__ import annotations

import ast
import itertools
import os
import random
import tempfile
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from selc.diag.diagnostic import Refused
from selc.ir.op import Op
from selc.ir.program import Program
from tests import adapters
from tests.property.programs import ENVIRONMENT, program

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

NOT_REACHED: Final[dict[str, str]] = {
    "print": "its value is None and it has no effect in a graph: programs would only be noisy",
}
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


def reach(seed: int, folder: Path) -> set[str]:
    """The kinds that one seed's program has; none if it is refused."""
    os.environ.update(ENVIRONMENT)
    made = program(random.Random(seed))
    case, facts = folder / "case.py", folder / "facts.yaml"
    case.write_text(made.text, encoding="utf-8")
    facts.write_text(made.facts_text, encoding="utf-8")
    reached = Reached()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            ast.parse(made.text)
            reached.program(made.text, adapters.lower(case, [facts]))
        except (SyntaxError, Refused):
            return set()
    return set(reached.operations) | set(reached.syntax)


def wanted() -> set[str]:
    """Every kind that some program has to have."""
    return {o.value for o in Op}.union(*KINDS.values()) - set(NOT_REACHED)


def main() -> None:
    """Run programs until they reach everything, and print few of them that do."""
    found: dict[int, set[str]] = {}
    with tempfile.TemporaryDirectory(prefix="reach-") as name:
        for seed in itertools.count():
            found[seed] = reach(seed, Path(name))
            if wanted() <= set().union(*found.values()):
                break
    left, picked = wanted(), []
    while left:
        best = max(found, key=lambda s: len(found[s] & left))
        picked.append(best)
        left -= found[best]
    print(f"{len(found)} programs reach everything, and so do {tuple(sorted(picked))}")


if __name__ == "__main__":
    main()
