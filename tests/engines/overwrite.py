"""Overwriting sites: the source with a statement or condition added at each pinned place.

A site is named as the product names it (`function.variable`, `function.variable#2`,
`function.L3C9-17`, `function.record.field`, `function.return`, `function.parameter`), a function
that is called several times by the line of the call. Pins with an iteration are not placed here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

SCOPES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
ASSIGNMENTS = (ast.Assign, ast.AugAssign, ast.AnnAssign)
BRANCHES = (ast.If, ast.Try, ast.With)
CALLS = re.compile(r"(?:@L\d+)*")


@dataclass(slots=True)
class Pin:
    """One site of one function with the value it is to have."""

    name: str
    function: str
    base: str
    kind: str
    lines: tuple[int, ...]
    value: object
    placed: bool = False


def parse_pin(name: str, kind: str, value: object) -> Pin | None:
    """The pin of a site name; None for those that are not placed here."""
    at = name.find("@")
    head, tail = (name, "") if at < 0 else (name[:at], name[at:])
    if "[" in name or not CALLS.fullmatch(tail):
        return None
    parts = head.split(".")
    cut = 2 if kind == "field" else 1
    function, base = ".".join(parts[:-cut]), ".".join(parts[-cut:])
    return Pin(
        name, function, base, kind, tuple(int(n) for n in re.findall(r"@L(\d+)", tail)), value
    )


def stored(statement: ast.AST) -> list[str]:
    """The names that a statement binds in its own function."""
    out: list[str] = []
    todo = [statement]
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in out:
            out.append(node.id)
        if not isinstance(node, SCOPES):
            todo += ast.iter_child_nodes(node)
    return out


def inner_bodies(statement: ast.stmt) -> Iterable[list[ast.stmt]]:
    """The statement lists of a compound statement."""
    for name in ("body", "orelse", "finalbody"):
        body = getattr(statement, name, None)
        if body:
            yield body
    for handler in getattr(statement, "handlers", ()):
        yield handler.body


def when(pin: Pin, statement: str) -> ast.stmt:
    """A statement that runs where the pin applies."""
    return ast.parse(f"if __pinned__({pin.name!r}):\n    {statement}").body[0]


def value_text(pin: Pin) -> str:
    """The expression that gives a pin's value."""
    return f"__value__({pin.name!r})"


@dataclass(slots=True)
class Overwriter:
    """Puts the pins of functions into their syntax trees."""

    pins: dict[str, list[Pin]] = field(default_factory=dict)

    def add(self, pin: Pin) -> None:
        """Pin a site."""
        self.pins.setdefault(pin.function, []).append(pin)

    def function(self, node: ast.FunctionDef, qualname: str) -> None:
        """Put the pins of one function into it."""
        mine = self.pins.get(qualname, ())
        for pin in mine:
            if pin.kind == "expression":
                _Expression(pin).run(node)
        numbered: dict[str, int] = {}
        definitions = [p for p in mine if "#" in p.base]
        _definitions(node.body, numbered, definitions)
        for pin in mine:
            if pin.kind == "variable" and "#" not in pin.base:
                place(node.body, pin)
            elif pin.kind == "field":
                _fields(node.body, pin)
            elif pin.kind == "return":
                _returns(node.body, pin)
        for pin in mine:
            if pin.kind == "parameter" and "." not in pin.base:
                node.body[0:0] = [when(pin, f"{pin.base} = {value_text(pin)}")]
                pin.placed = True


def place(body: list[ast.stmt], pin: Pin) -> None:
    """The join of a variable's definitions that reaches its last read."""
    having = [i for i, s in enumerate(body) if pin.base in stored(s)]
    for i in reversed(having):
        statement, last = body[i], i == having[-1]
        leaves = any(isinstance(n, ast.Return) for n in ast.walk(statement))
        if (last or leaves) and isinstance(statement, BRANCHES):
            for inner in inner_bodies(statement):
                place(inner, pin)
        if last:
            body.insert(i + 1, when(pin, f"{pin.base} = {value_text(pin)}"))
            pin.placed = True


def _own(body: list[ast.stmt]) -> Iterable[tuple[list[ast.stmt], ast.stmt]]:
    for statement in list(body):
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            continue
        yield body, statement
        for inner in inner_bodies(statement):
            yield from _own(inner)


def _definitions(body: list[ast.stmt], count: dict[str, int], pins: list[Pin]) -> None:
    for where, statement in _own(body):
        if not isinstance(statement, ASSIGNMENTS):
            continue
        for name in stored(statement):
            count[name] = count.get(name, 0) + 1
            for pin in pins:
                if pin.base == f"{name}#{count[name]}":
                    where.insert(
                        where.index(statement) + 1, when(pin, f"{name} = {value_text(pin)}")
                    )
                    pin.placed = True


def _fields(body: list[ast.stmt], pin: Pin) -> None:
    record, key = pin.base.split(".")
    for where, statement in _own(body):
        if (
            isinstance(statement, ast.Return)
            and isinstance(statement.value, ast.Name)
            and statement.value.id == record
        ):
            where.insert(
                where.index(statement),
                when(pin, f"{record} = __with_field__({record}, {key!r}, {value_text(pin)})"),
            )
            pin.placed = True


def _returns(body: list[ast.stmt], pin: Pin) -> None:
    for _, statement in _own(body):
        if isinstance(statement, ast.Return):
            old = statement.value or ast.Constant(None)
            chosen = ast.parse(
                f"{value_text(pin)} if __pinned__({pin.name!r}) else __old__", mode="eval"
            ).body
            assert isinstance(chosen, ast.IfExp)
            # The returned expression still runs: it may raise, and it may change things.
            statement.value = ast.parse("__second__(0, 0)", mode="eval").body
            assert isinstance(statement.value, ast.Call)
            chosen.orelse = ast.Name("__last__", ast.Load())
            statement.value.args = [ast.NamedExpr(ast.Name("__last__", ast.Store()), old), chosen]
            pin.placed = True


class _Expression(ast.NodeTransformer):
    def __init__(self, pin: Pin) -> None:
        self.pin = pin

    def run(self, node: ast.FunctionDef) -> None:
        for i, statement in enumerate(node.body):
            seen = self.visit(statement)
            assert isinstance(seen, ast.stmt)
            node.body[i] = seen

    def visit(self, node: ast.AST) -> ast.AST:
        if (
            isinstance(node, ast.expr)
            and not self.pin.placed
            and not isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
            and getattr(node, "lineno", None) is not None
            and position(node) == self.pin.base
        ):
            self.pin.placed = True
            text = f"{value_text(self.pin)} if __pinned__({self.pin.name!r}) else 0"
            chosen = ast.parse(text, mode="eval").body
            assert isinstance(chosen, ast.IfExp)
            chosen.orelse = node
            return chosen
        return self.generic_visit(node)


def position(node: ast.expr) -> str:
    """`L3C9-17`, or `L3C9-L4C5` over several lines."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    end = (
        f"{node.end_col_offset + 1}"
        if node.end_lineno == node.lineno
        else f"L{node.end_lineno}C{node.end_col_offset + 1}"
    )
    return f"L{node.lineno}C{node.col_offset + 1}-{end}"
