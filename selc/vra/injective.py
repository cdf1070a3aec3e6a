"""Sites whose value gives a batch input away: pinning one would be pinning that input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from selc.ir.graph import Node
from selc.ir.op import Op, TooWide
from selc.ir.program import Program, Site
from selc.ir.value import UNDEF, value_key
from selc.vra.enumerate import MAX_POINTS, points
from selc.vra.observe import observer, own
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
    places = [(k, n) for k, n in enumerate(names) if n in protected]
    pairs: list[list[dict[object, object] | None]] = [[{} for _ in places] for _ in group]
    try:
        rows = points(view, mask, admits, budget)
        if rows is None:
            return {s.name: _structural(view, s, protected) for s in group}
        # each mark by itself: where guards are left out, a later mark must not hide an earlier one
        see = observer(view, [[m] for s in group for m in s.marks], (), names, guards)
        owner = [told for told, s in zip(pairs, group, strict=True) for _ in s.marks]
        for chunk in rows:
            for row, shown in zip(chunk, see(chunk), strict=True):
                for site, value in zip(owner, shown, strict=False):
                    if value is not UNDEF and any(p is not None for p in site):
                        _note(site, places, row, value_key(value))
    except TooWide:
        return {s.name: _structural(view, s, protected) for s in group}
    return {
        s.name: tuple(
            n
            for (_, n), told in zip(places, site, strict=True)
            if told is not None and len(set(told.values())) > protected[n]
        )
        for s, site in zip(group, pairs, strict=True)
    }


def _note(
    site: list[dict[object, object] | None],
    places: Sequence[tuple[int, str]],
    row: tuple[object, ...],
    key: object,
) -> None:
    for j, (k, _) in enumerate(places):
        told = site[j]
        if told is not None and told.setdefault(key, row[k]) != row[k]:
            site[j] = None


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
