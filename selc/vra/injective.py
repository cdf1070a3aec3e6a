"""Sites whose value gives a batch input away: pinning one would be pinning that input."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Final

from selc.ir.graph import Node
from selc.ir.op import Op, TooWide
from selc.ir.program import Mark, Program, Site
from selc.ir.value import UNDEF, Value
from selc.vra.enumerate import MAX_POINTS
from selc.vra.observe import own, where_reached
from selc.vra.sweep import Piece, exact_keys, sweep
from selc.vra.view import View, of_program

MAX_PINNABLE: Final = 64
"""A batch input of more values than this may not be pinned, nor an image that tells it."""


def injective(
    program: Program, site: Site, budget: int = MAX_POINTS, view: View | None = None
) -> tuple[str, ...]:
    """The large or unpinnable batch inputs that the site's value tells, where it is reached."""
    return all_injective(program, [site], budget, view)[site.name]


def all_injective(
    program: Program, sites: Sequence[Site], budget: int = MAX_POINTS, view: View | None = None
) -> dict[str, tuple[str, ...]]:
    """The same for many sites, with one enumeration for all that read the same inputs.

    An input is determined if no two admitted points at which the site is reached agree in the site
    but not in the input, and it takes more than `MAX_PINNABLE` values there (one that is not
    pinnable: more than one). Where that is too much to enumerate, a site that is an affine image of
    one such input counts, and no other.
    """
    view = view or of_program(program)
    inputs = view.graph.inputs
    protected = {
        n: 1 if inputs[n].kind == "unpinnable" else MAX_PINNABLE
        for n in view.names
        if inputs[n].is_batch(program.scope)
        and (inputs[n].kind == "unpinnable" or len(inputs[n].domain) > MAX_PINNABLE)
    }
    out: dict[str, tuple[str, ...]] = {}
    groups: dict[int, list[Site]] = {}
    for site in sites:
        out[site.name] = ()
        mask = own(view, site)
        if view.mask_of(protected) & mask:
            groups.setdefault(mask, []).append(site)
    for mask, group in sorted(groups.items()):
        out.update(_enumerated(program, view, mask, group, protected, budget))
    return out


def _enumerated(
    program: Program,
    view: View,
    mask: int,
    group: Sequence[Site],
    protected: dict[str, int],
    budget: int,
) -> dict[str, tuple[str, ...]]:
    guards = [n if n is not None and not view.masks[n.id] & ~mask else None for n in view.holds]
    admits = [n for n in view.admits if not view.masks[n.id] & ~mask]
    names = view.inputs_of(mask)
    told = [[_Told(n) for n in names if n in protected] for _ in group]
    if view.size(mask) > budget:
        return {s.name: _structural(view, s, protected) for s in group}
    # each mark by itself: where guards are left out, a later mark must not hide an earlier one
    reached = [(m, [g for g in guards[: m.guards_before] if g]) for s in group for m in s.marks]
    owner = [own_ for own_, s in zip(told, group, strict=True) for _ in s.marks]
    try:
        for piece in sweep(view, names, gently=True):
            kept = piece.holds(admits)
            left = [
                (mark, before, some)
                for (mark, before), some in zip(reached, owner, strict=True)
                if any(t.open for t in some) and not _never(mark)
            ]
            for mark, before, some in piece.together(
                left, lambda item: [where_reached(view, item[0]), *item[1], item[0].path]
            ):
                if any(t.open for t in some):
                    _note(piece, names, mark, before, kept, some)
            if not any(t.open for some in told for t in some):
                break
    except TooWide:
        return {s.name: _structural(view, s, protected) for s in group}
    return {
        s.name: tuple(t.name for t in some if t.open and len(t.inputs) > protected[t.name])
        for s, some in zip(group, told, strict=True)
    }


@dataclass(slots=True)
class _Told:
    """What the values of a site tell of one input."""

    name: str
    open: bool = True  # no value was seen with two
    pairs: set[tuple[Hashable, Value]] = field(default_factory=set)
    values: set[Hashable] = field(default_factory=set)
    inputs: set[Value] = field(default_factory=set)

    def add(self, keys: Sequence[Hashable], inputs: Sequence[Value]) -> None:
        """Note what was seen together."""
        self.pairs.update(zip(keys, inputs, strict=True))
        self.values.update(keys)
        self.inputs.update(inputs)
        self.open = len(self.pairs) == len(self.values)


def _never(mark: Mark) -> bool:
    return mark.path.is_const and mark.path.attr is not True


def _note(
    piece: Piece,
    names: Sequence[str],
    mark: Mark,
    guards: Sequence[Node],
    kept: Sequence[bool] | None,
    told: Sequence[_Told],
) -> None:
    """Note the values of a mark where it is reached."""
    (values,) = piece.columns([where_reached(piece.view, mark)])
    flags = piece.holds([*guards, *([] if mark.path.is_const else [mark.path])])
    keys = exact_keys(values)
    here = [v is not UNDEF for v in values]
    for more in (kept, flags):
        if more is not None:
            here = [a and b for a, b in zip(here, more, strict=True)]
    for t in told:
        if t.open:
            inputs = piece.coordinate(names.index(t.name))
            t.add(list(compress(keys, here)), list(compress(inputs, here)))


def _structural(view: View, site: Site, protected: dict[str, int]) -> tuple[str, ...]:
    found = {_affine(m.node) for m in site.marks}
    return tuple(n for n in view.names if n in protected and found == {n})


def _affine(node: Node) -> str | None:
    """The input of which a node is an affine image that is not constant."""
    while node.op is not Op.INPUT:
        parts = [a for a in node.args if not a.is_const]
        if len(parts) != 1 or node.op not in _AFFINE:
            return None
        if node.op is Op.MUL and any(a.is_const and a.attr == 0 for a in node.args):
            return None
        if node.op is Op.LSHIFT and node.args[1] is parts[0]:
            return None
        node = parts[0]
    return str(node.attr)


_AFFINE: Final = frozenset(
    {Op.MARK, Op.ADD, Op.SUB, Op.NEG, Op.POS, Op.MUL, Op.INT, Op.LSHIFT, Op.INVERT}
)
