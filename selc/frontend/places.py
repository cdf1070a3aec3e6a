"""Where reading (b) overwrites what has no site: fields of records that the result is made of.

A variable's site overwrites a scalar. A variable that holds a record is none; but what a `return`
takes out of it has a place of its own: the field, behind the definitions of the variable that reach
the end, exactly as the site of a scalar would stand. The fields of a record that a `return` makes,
or that a variable it names is made of, have theirs where the record is made.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from selc.diag.diagnostic import Refused
from selc.frontend import points, returned
from selc.frontend.changes import ANY, Change, Changes, first, seen
from selc.frontend.context import PLACE
from selc.frontend.sites import Plan, _own_statements, gathered, joins, leaving, stored
from selc.frontend.state import State
from selc.frontend.values import Choice, DictObj, Entry, InstObj, ListObj, Obj, Ref, Tup, V
from selc.ir.graph import Node
from selc.ir.op import Op
from selc.ir.program import Place

if TYPE_CHECKING:
    from selc.frontend.context import Lowering


@dataclass(frozen=True, slots=True)
class Defined:
    """Fields of a variable's record that are last defined by the same statements.

    `part` is the one part that something writes into, or else all but those `without`.
    """

    name: str
    plan: Plan
    part: str | None = None
    without: frozenset[str] = frozenset()

    def has(self, field: str) -> bool:
        """Whether it is so of a field, by its whole name."""
        head = first(field.removeprefix(self.name))
        return head not in self.without if self.part is None else head == self.part


@dataclass(slots=True)
class Places:
    """What the returns of the selection name, where that is marked, and the marks."""

    named: dict[int, returned.Named]  # id of a `return`
    defined: list[Defined]
    made: frozenset[str]  # positions of the calls that make records
    marks: dict[str, list[Node]] = field(default_factory=dict)
    results: list[tuple[returned.Named, Mapping[str, Node]]] = field(default_factory=list)
    names: tuple[str, ...] = ()  # variables that hold what is returned
    bound: Mapping[int, frozenset[str]] = field(default_factory=dict)  # id(statement) -> names
    seen: set[Change] = field(default_factory=set)

    @property
    def all(self) -> returned.Named:
        """What any `return` names."""
        out = returned.Named()
        for each in self.named.values():
            out.add(each)
        return out


def plan(cx: Lowering, st: State, function: ast.FunctionDef) -> Places:
    """Find what the returns name, and where it is defined."""
    changes = Changes(cx.changes)
    known = returned.definitions(function, changes)
    named = {
        id(s): returned.name(cx, st, s.value, known)
        for s in _own_statements(function.body)
        if isinstance(s, ast.Return) and s.value is not None
    }
    out = Places(named, [], frozenset())
    every = out.all
    out.names = tuple(dict.fromkeys(v for f in every.variables.values() for v in sorted(f)))
    out.bound = stored(function)
    out.defined += _defined(function, out.names, out.bound, changes)
    out.made = frozenset(p for found in every.made.values() for p in found)
    return out


def _defined(
    function: ast.FunctionDef,
    names: Iterable[str],
    bound: Mapping[int, frozenset[str]],
    changes: Changes,
) -> Iterator[Defined]:
    leaves = leaving(function)
    written = gathered(function, changes.here)
    for name in names:
        parts = frozenset(part for n, part in written[id(function)] if n == name)

        def whole(s: ast.stmt, name: str = name) -> bool:
            return name in bound[id(s)]

        def touched(s: ast.stmt, name: str = name) -> bool:
            return name in bound[id(s)] or any(n == name for n, _ in written[id(s)])

        if ANY in parts:
            yield Defined(name, joins(function, name, touched, leaves))
            continue
        yield Defined(name, joins(function, name, whole, leaves), None, parts)
        for part in sorted(parts):

            def either(s: ast.stmt, wanted: tuple[str, str] = (name, part)) -> bool:
                return wanted[0] in bound[id(s)] or wanted in written[id(s)]

            yield Defined(name, joins(function, name, either, leaves), part)


# -- marks ---------------------------------------------------------------------------------------


@contextmanager
def watched(cx: Lowering, st: State, statement: ast.stmt) -> Iterator[None]:
    """Note what a statement of the selection changes in records that are returned by name."""
    frame = cx.frame
    if frame.places is None or frame.iterations:
        yield
        return
    scope, old = st.scopes.get(frame.scope, {}), State(st.live, {}, dict(st.heap))
    own = frame.places.bound.get(id(statement), frozenset())
    asked = (n for n in frame.places.names if n in scope and n not in own)
    old.scopes[frame.scope] = {n: scope[n] for n in asked}
    yield
    if not st.dead:
        frame.places.seen.update(seen(cx, old, st, statement))


def defined(cx: Lowering, st: State, statement: ast.stmt) -> None:
    """Mark the fields of the records whose last definition a statement is."""
    places, frame = cx.frame.places, cx.frame
    if places is None or frame.iterations:
        return
    for each in places.defined:
        name = each.name
        value = st.scopes.get(frame.scope, {}).get(name)
        here = name in each.plan.joins.get(id(statement), ())
        if here and value is not None and not isinstance(value, Node):
            # What it holds where that is no record is no field: it has the variable's own site.
            fields = partial(_is_field, each)
            marking = _Marking(cx, st, places, name in each.plan.inner, fields)
            st.scopes[frame.scope][name] = marking.value(value, name)


def _is_field(each: Defined, name: str) -> bool:
    return name != each.name and each.has(name)


def made(cx: Lowering, st: State, e: ast.expr, fields: Mapping[str, V]) -> dict[str, V]:
    """The fields of a record that is being made, those marked that are made of no variable.

    Code that the constructor runs reads them before a variable holds the record.
    """
    places, position = cx.frame.places, cx.position(e)
    if places is None or cx.frame.iterations or position not in places.made:
        return dict(fields)
    assert isinstance(e, ast.Call)
    variables = {f for f, v in returned.parts(e, list(fields)) if isinstance(v, ast.Name)}
    marking = _Marking(cx, st, places, False, lambda _: True)
    return {
        f: v if f in variables else marking.value(v, f"{position}.{f}") for f, v in fields.items()
    }


@dataclass(slots=True)
class _Marking:
    """Marks every scalar in a value; objects are changed in place, so that all names see it."""

    cx: Lowering
    st: State
    places: Places
    always: bool  # constants, too: another definition may give another value
    wanted: Callable[[str], bool]
    seen: set[int] = field(default_factory=set)

    def value(self, value: V, name: str) -> V:
        """The value with its scalars marked."""
        if isinstance(value, Node):
            return self._scalar(value, name)
        if isinstance(value, Choice):
            then, other = self.value(value.then, name), self.value(value.other, name)
            return Choice(value.cond, then, other)
        if isinstance(value, Tup) and not value.size:
            names = [f".{f}" for f in value.fields] or [f"[{i}]" for i in range(len(value.items))]
            pairs = zip(value.items, names, strict=True)
            return replace(value, items=tuple(self.value(v, name + part) for v, part in pairs))
        if isinstance(value, Ref) and self._own(value):
            self.seen.add(value.oid)
            self.st.heap[value.oid] = self._object(self.cx.heap.get(self.st, value), name)
        return value

    def _scalar(self, node: Node, name: str) -> Node:
        fixed = node.op is Op.FAIL or (self.cx.fixed(node) and not self.always)
        if fixed or not self.wanted(name):
            return node
        marks = self.places.marks.setdefault(name, [])
        marked = self.cx.graph.add(Op.MARK, node, attr=("place", name, len(marks)))
        marks.append(marked)
        return marked

    def _own(self, ref: Ref) -> bool:
        """Whether an object is one of this path: others are shared, or not known."""
        heap = self.cx.heap
        if ref.oid in self.seen or ref.oid in heap.base or ref.oid in heap.stale:
            return False
        obj = heap.get(self.st, ref)
        if isinstance(obj, InstObj):
            return not obj.name
        return not obj.unknown and (isinstance(obj, DictObj) or obj.kind == "list")

    def _object(self, obj: Obj, name: str) -> Obj:
        if isinstance(obj, ListObj):
            items = [self.value(v, f"{name}[{i}]") for i, v in enumerate(obj.items)]
            return replace(obj, items=tuple(items))
        if isinstance(obj, DictObj):
            return replace(obj, entries=self._entries(obj.entries, name))
        return replace(obj, fields={str(k): x for k, x in self._entries(obj.fields, name).items()})

    def _entries(
        self, entries: Mapping[object, Entry] | Mapping[str, Entry], name: str
    ) -> dict[object, Entry]:
        return {k: replace(x, value=self.value(x.value, f"{name}.{k}")) for k, x in entries.items()}


# -- what a `return` takes -------------------------------------------------------------------------


def result(cx: Lowering, st: State, statement: ast.Return, value: V) -> None:
    """Note what a `return` of the selection gives, point by point."""
    places = cx.frame.places
    named = None if places is None else places.named.get(id(statement))
    if places is None or named is None or statement.value is None:
        return
    whole = frozenset(cx.facts.returns) - {"*"}
    with suppress(Refused), cx.tentative():
        flat = points.flatten(cx, st, value, "", whole, statement.value)
        places.results.append((named, flat))


def of_points(places: Places) -> dict[str, tuple[Place, ...]]:
    """The places of every point: of each `return` that takes it as it stands there."""
    found: dict[str, dict[Place, None]] = {}
    changed: dict[str, set[int]] = {}
    for named, flat in places.results:
        for point, node in flat.items():
            marks = {m.id: m for n in _names(named, point) for m in places.marks.get(n, ())}
            ends = _ends(node, marks.keys())
            mine = {end.id for end in ends if end.id in marks}
            if all(end.id in marks or _nothing(end) for end in ends):
                kept = tuple([m for i, m in sorted(marks.items()) if i in mine])
                under = tuple([m for i, m in sorted(marks.items()) if i not in mine])
                found.setdefault(point, {})[Place(kept, under)] = None
            else:  # changed on some way: then it is not what stands there that is returned
                changed.setdefault(point, set()).update(mine)
    out = {}
    for point, ways in found.items():
        gone = changed.get(point, set())
        listed = [w for w in ways if w.ends and not any(n.id in gone for n in w.ends)]
        if listed:
            out[point] = tuple(listed)
    return out


def _nothing(node: Node) -> bool:
    """Whether a value is that of a way on which there is none."""
    return node.op is Op.FAIL or (node.is_const and node.attr is None)


def _names(named: returned.Named, point: str) -> Iterator[str]:
    """The names under which a point's place is marked, by what the `return` names around it."""
    for table in (named.variables, named.made):
        for prefix, found in table.items():
            rest = point.removeprefix(prefix)
            if not prefix:
                rest = point if point.startswith("[") else f".{point}"
            elif not point.startswith(prefix) or rest[:1] not in (".", "["):
                continue
            yield from (f + rest for f in sorted(found))


def keys(place: Place) -> list[str]:
    """The keys of a place's marks."""
    names = [n.attr[1] for n in place.marks if isinstance(n.attr, tuple)]
    return [f"{PLACE}{name}" for name in dict.fromkeys(names)]


def way(node: Node, place: Place) -> list[Node]:
    """The marks of a place, and those that its value passes on the way to a point."""
    stops = {n.id for n in place.ends}
    passed = [n for n in _walk(node, stops) if n.op is Op.MARK and n.id not in stops]
    return [*place.marks, *passed]


def _ends(node: Node, stops: Collection[int]) -> list[Node]:
    """What a value is chosen among, under the marks of other places and of sites."""
    return [n for n in _walk(node, stops) if n.id in stops or n.op not in (Op.SELECT, Op.MARK)]


def _walk(node: Node, stops: Collection[int]) -> Iterator[Node]:
    todo, seen = [node], {node.id}
    while todo:
        node = todo.pop()
        yield node
        if node.id not in stops and node.op in (Op.SELECT, Op.MARK):
            arms = [a for a in node.args[-2:] if a.id not in seen]
            seen.update(a.id for a in arms)
            todo += arms
