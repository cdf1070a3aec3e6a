"""The mutable state of lowering at one program point, and how two states join.

A state belongs to a *region*: a run of statements entered under one condition. `live` says,
relative to the region's entry, whether control gets here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from selc.frontend.iterators import Iterators
from selc.frontend.values import (
    Choice,
    DictObj,
    Entry,
    Func,
    InstObj,
    ListObj,
    Obj,
    Poison,
    Ref,
    Tup,
    Unbound,
    V,
)
from selc.ir.graph import Graph, Node
from selc.ir.op import Op


@dataclass(slots=True)
class State:
    """Variables by scope, heap objects, and the condition of being here."""

    live: Node
    scopes: dict[int, dict[str, V]] = field(default_factory=dict)
    heap: dict[int, Obj] = field(default_factory=dict)

    def fork(self, live: Node) -> State:
        """An independent copy that starts a region."""
        return State(live, {k: dict(v) for k, v in self.scopes.items()}, dict(self.heap))

    def become(self, other: State) -> None:
        """Take over the variables and heap of `other`."""
        self.scopes, self.heap = other.scopes, other.heap

    @property
    def dead(self) -> bool:
        """Whether control certainly does not get here."""
        return self.live.is_const and not self.live.attr


class Heap:
    """Object ids, objects that exist in every state, and what is known of aliases."""

    def __init__(self) -> None:
        self.count = 0
        self.base: dict[int, Obj] = {}
        self.sources: dict[int, tuple[int, int]] = {}  # merged object -> the two it stands for
        self.superseded: dict[int, int] = {}
        self.stale: set[int] = set()
        self.remembered: set[int] = set()  # objects that a memo dict holds

    def new(self, state: State | None, obj: Obj) -> Ref:
        """A fresh object, in one state or (state None) in all."""
        self.count += 1
        (self.base if state is None else state.heap)[self.count] = obj
        return Ref(self.count)

    def outlives(self, ref: Ref) -> bool:
        """Whether an object is, or may be, one that the next call finds again."""
        todo = [ref.oid]
        for oid in todo:
            if oid in self.base or oid in self.remembered:
                return True
            todo += [i for i in self.sources.get(oid, ()) if i not in todo]
        return False

    def related(self, ref: Ref) -> list[Ref]:
        """An object, those that it stands for, and those that stand for it."""
        todo = [ref.oid]
        for oid in todo:
            beside = [*self.sources.get(oid, ()), self.superseded.get(oid, oid)]
            todo += [i for i in dict.fromkeys(beside) if i not in todo]
        return [Ref(i) for i in todo]

    def get(self, state: State, ref: Ref) -> Obj:
        """The object's content in `state`."""
        obj = state.heap.get(ref.oid)
        return self.base[ref.oid] if obj is None else obj


def _elements(value: V, beside: V) -> tuple[V, ...] | None:
    """The elements of a tuple that is joined with one of its shape; of no value, none each."""
    if isinstance(value, Tup):
        if not isinstance(beside, Tup):
            return value.items
        same = len(value.items) == len(beside.items) and value.fields == beside.fields
        return value.items if same else None
    if isinstance(value, Node) and value.op is Op.FAIL and isinstance(beside, Tup):
        return (value,) * len(beside.items)
    return None


def _order(a: Mapping[object, Entry], b: Mapping[object, Entry]) -> tuple[list[object], bool]:
    """An order of the keys of two dicts that is that of each; whether there is none."""
    if [*a] == [*b]:
        return [*a], False
    for keys in ([*{**a, **b}], [*{**b, **a}]):
        if all([k for k in keys if k in each] == [*each] for each in (a, b)):
            return keys, False
    return [*{**a, **b}], True


class Joiner:
    """Joins states and values under a condition."""

    def __init__(self, graph: Graph, heap: Heap, iterators: Iterators) -> None:
        self.graph = graph
        self.heap = heap
        self.iterators = iterators

    def states(self, cond: Node, then: State, other: State) -> State:
        """The state that is `then` if `cond` else `other` (both of the same region)."""
        live = self.graph.select(cond, then.live, other.live)
        if then.dead:
            return State(live, other.scopes, other.heap)
        if other.dead:
            return State(live, then.scopes, then.heap)
        out = State(live)
        merged: dict[tuple[int, int], Ref] = {}
        for oid in {**then.heap, **other.heap}:
            a, b = then.heap.get(oid), other.heap.get(oid)
            if a is None or b is None:
                base = self.heap.base.get(oid)
                known = a if a is not None else b
                assert known is not None
                out.heap[oid] = known
                if base is None:
                    continue
                a, b = a or base, b or base
            out.heap[oid] = a if a is b else self._objects(cond, a, b, then, other, out, merged)
        for sid in {**then.scopes, **other.scopes}:
            left, right = then.scopes.get(sid, {}), other.scopes.get(sid, {})
            out.scopes[sid] = {
                name: self._values(
                    cond,
                    left.get(name, Unbound(name)),
                    right.get(name, Unbound(name)),
                    then,
                    other,
                    out,
                    merged,
                )
                for name in {**left, **right}
            }
        self._merged = merged
        return out

    def values(self, cond: Node, a: V, b: V, then: State, other: State, out: State) -> V:
        """The value that is `a` if `cond` else `b`; `out` receives joined objects."""
        if then.dead:
            return b
        if other.dead:
            return a
        return self._values(cond, a, b, then, other, out, getattr(self, "_merged", {}))

    def _values(
        self,
        cond: Node,
        a: V,
        b: V,
        then: State,
        other: State,
        out: State,
        merged: dict[tuple[int, int], Ref],
    ) -> V:
        if a is b or (type(a) is type(b) and a == b):
            return a
        if isinstance(a, Poison) or isinstance(b, Poison):
            return Poison()
        if isinstance(a, Node) and isinstance(b, Node):
            return self.graph.select(cond, a, b)
        mine, others = _elements(a, b), _elements(b, a)
        if mine is not None and others is not None:
            like = a if isinstance(a, Tup) else b
            assert isinstance(like, Tup)
            cls = like.cls if not isinstance(b, Tup) or like.cls is b.cls else None
            pairs = zip(mine, others, strict=True)
            items = [self._values(cond, x, y, then, other, out, merged) for x, y in pairs]
            joined = Tup(tuple(items), like.fields, cls=cls)
            self.iterators.joined(joined, a, b)
            return joined
        if isinstance(a, Func) and isinstance(b, Func) and a.node is b.node and a.scope == b.scope:
            return a
        if isinstance(a, Ref) and isinstance(b, Ref):
            key = (a.oid, b.oid)
            if key in merged:
                return merged[key]
            left, right = self.heap.get(then, a), self.heap.get(other, b)
            if self._alike(left, right):
                self.heap.count += 1
                ref = merged[key] = Ref(self.heap.count)
                out.heap[ref.oid] = self._objects(cond, left, right, then, other, out, merged)
                self.heap.sources[ref.oid] = key
                for oid in key:
                    self.heap.superseded[oid] = ref.oid
                return ref
        return Choice(cond, a, b)

    @staticmethod
    def _alike(a: Obj, b: Obj) -> bool:
        if isinstance(a, ListObj) and isinstance(b, ListObj):
            return (
                len(a.items) == len(b.items) and a.kind == b.kind and not (a.unknown or b.unknown)
            )
        if isinstance(a, InstObj) and isinstance(b, InstObj):
            same = a.cls is b.cls or (
                a.cls is not None and b.cls is not None and a.cls.node is b.cls.node
            )
            return same and a.name == b.name
        return isinstance(a, DictObj) and isinstance(b, DictObj) and a.unknown == b.unknown

    def _objects(
        self,
        cond: Node,
        a: Obj,
        b: Obj,
        then: State,
        other: State,
        out: State,
        merged: dict[tuple[int, int], Ref],
    ) -> Obj:
        frozen = a.frozen or b.frozen
        if isinstance(a, ListObj) and isinstance(b, ListObj):
            if len(a.items) != len(b.items):
                why = "its length depends on a condition that is not known before serving"
                return ListObj((), a.unknown or why, frozen or why, a.kind)
            pairs = zip(a.items, b.items, strict=True)
            items = tuple(self._values(cond, x, y, then, other, out, merged) for x, y in pairs)
            return ListObj(items, a.unknown, frozen, a.kind)
        no = self.graph.const(False)
        if isinstance(a, DictObj) and isinstance(b, DictObj):
            entries = self._entries(cond, a.entries, b.entries, no, then, other, out, merged)
            memo = tuple(m for m in a.memo if m in b.memo)
            return DictObj(entries, a.unknown, frozen, memo)
        assert isinstance(a, InstObj)
        assert isinstance(b, InstObj)
        fields = self._entries(cond, a.fields, b.fields, no, then, other, out, merged)
        return InstObj(a.cls, {str(k): v for k, v in fields.items()}, frozen, a.name)

    def _entries(
        self,
        cond: Node,
        a: object,
        b: object,
        no: Node,
        then: State,
        other: State,
        out: State,
        merged: dict[tuple[int, int], Ref],
    ) -> dict[object, Entry]:
        assert isinstance(a, dict)
        assert isinstance(b, dict)
        result: dict[object, Entry] = {}
        keys, loose = _order(a, b)
        for key in keys:
            x, y = a.get(key), b.get(key)
            if x is None or y is None:
                one = x if x is not None else y
                assert one is not None
                present = self.graph.select(cond, x.present if x else no, y.present if y else no)
                result[key] = Entry(present, one.value, loose or one.loose)
            else:
                value = self._values(cond, x.value, y.value, then, other, out, merged)
                present = self.graph.select(cond, x.present, y.present)
                result[key] = Entry(present, value, loose or x.loose or y.loose)
        return result
