"""The cells of a battery: launches in which the watched request must keep its bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from selc.harness.bits.batch import MIXES, Cell, Probe, joined, others, probes, whole
from selc.harness.bits.limits import Fits, Limits, meaning_of
from selc.harness.bits.reach import around, bounds, reach
from selc.harness.call import Request

KINDS: Final = {
    "repeat": "the same launch again",
    "companions": "other requests beside it",
    "position": "another place in the batch",
    "size": "batch sizes 1 to 64",
    "mixed": "decode beside prefill, and the other way round",
    "chunk": "the same tokens computed in other chunks",
    "cached": "a cached prefix instead of a cold one",
    "pages": "other page layouts",
    "lengths": "companions as short and as long as can be",
    "threshold": "inputs one below, at and one above where the selection changes side",
    "setting": "other values of inputs that requests do not set",
}
FINE: Final = tuple(range(1, 65))
COARSE: Final = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64)


def cells(
    limits: Limits,
    thresholds: Mapping[str, Sequence[Any]],
    settings: Mapping[str, Sequence[Any]],
    fits: Fits,
    quick: bool = False,
) -> Iterator[Cell]:
    """All cells, kind by kind; those that cannot be built have an obstacle."""
    short, long, tiny, *more = probes(limits, quick)
    both = [short, long]
    for probe in (*both, *more):
        yield from _repeat(probe, limits)
    for probe in (*both, *more):
        yield from _companions(probe, limits, quick or probe not in both)
    for probe in both:
        yield from _position(probe, limits, quick)
        yield from _size(probe, limits, quick)
        yield from _mixed(probe, limits)
    for probe in (*both, *more):
        yield from _chunk(probe, limits)
    yield from _anywhere(whole(limits), limits, quick)
    for probe in both:
        yield from _cached(probe, limits)
        yield from _pages(probe, limits)
        yield from _lengths(probe, limits, fits)
    yield from _thresholds(both, tiny, around(thresholds, limits, quick), limits, fits)
    for name in thresholds:
        if thresholds[name] and not meaning_of(name) and name not in settings:
            why = "no batch of requests sets this input; it keeps its example"
            yield Cell("threshold", name, short, (), obstacle=why)
    for name, choices in settings.items():
        for choice in choices:
            yield from _setting(short, name, choice, limits)
    for probe in (*both, *more):
        yield _cell("repeat", "at-the-end", probe, limits, again=True)


def _cell(
    kind: str,
    detail: str,
    probe: Probe,
    limits: Limits,
    companions: Sequence[Request] = (),
    place: int = 0,
    own: Request | None = None,
    **more: Any,
) -> Cell:
    mine = probe.request() if own is None else own
    if companions and limits.rows[1] - mine.rows < len(companions):
        rows = max(1, min(mine.rows, limits.rows[1] - min(len(companions), limits.count[1] - 1)))
        mine = replace(mine, rows=rows)
    batch, at = joined(mine, companions, place, limits)
    why = "the domain admits no companion" if companions and len(batch) == 1 else ""
    return Cell(kind, detail, probe, batch, at, obstacle=why, **more)


def _repeat(probe: Probe, limits: Limits) -> Iterator[Cell]:
    yield _cell("repeat", "alone", probe, limits)
    yield _cell("repeat", "alone-anew", probe, limits, again=True)
    yield _cell("repeat", "batch", probe, limits, others("mixed", 7, limits), 3, again=True)


def _companions(probe: Probe, limits: Limits, few: bool) -> Iterator[Cell]:
    for count in (1, 7, 31, 63):
        for mix in MIXES:
            if few and mix != "mixed" and count != 7:
                continue
            for form, rows in (("both", 0), ("decode", 1)):
                yield _cell(
                    "companions", f"{count}-{mix}-{form}", probe, limits,
                    others(mix, count, limits, form), count // 2, probe.request(rows),
                )  # fmt: skip
    for first in (2, 3):
        strangers = others("mixed", 7, limits, first=first)
        yield _cell("companions", f"7-others-{first}", probe, limits, strangers, 3)


def _position(probe: Probe, limits: Limits, quick: bool) -> Iterator[Cell]:
    for count, places in ((7, range(8)), (31, (0, 15, 31)), (63, (0, 32, 63))):
        if quick and count == 63:
            continue
        for place in places:
            for form, rows in (("both", 0), ("decode", 1)):
                companions = others("short", count, limits, form)
                own = probe.request(rows)
                detail = f"{place}-of-{count + 1}-{form}"
                yield _cell("position", detail, probe, limits, companions, place, own)


def _size(probe: Probe, limits: Limits, quick: bool) -> Iterator[Cell]:
    for size in COARSE if quick else FINE:
        if size > limits.count[1]:
            break
        companions = others("short", size - 1, limits, "decode")
        for form, rows in (("decode", 1), ("chunk", 0)):
            if form == "decode" or size in COARSE:
                own = probe.request(rows)
                yield _cell("size", f"{size}-{form}", probe, limits, companions, size // 2, own)


def _mixed(probe: Probe, limits: Limits) -> Iterator[Cell]:
    for count in (3, 15):
        prefill = others("mixed", count, limits, "whole")
        decode = others("long", count, limits, "decode")
        one = probe.request(1)
        yield _cell("mixed", f"decode-in-{count}-prefills", probe, limits, prefill, 1, one)
        yield _cell("mixed", f"chunk-in-{count}-decodes", probe, limits, decode, count)
        both = [*decode[: count // 2], *prefill[count // 2 :]]
        yield _cell("mixed", f"decode-in-{count}-of-both", probe, limits, both, 1, one)


def _chunk(probe: Probe, limits: Limits) -> Iterator[Cell]:
    sizes = {1, 2, 3, 7, 16, probe.rows - 1, 2 * probe.rows, probe.context // 2, probe.context}
    for rows in sorted(s for s in sizes if 1 <= s <= min(probe.context, limits.most_rows)):
        if rows != probe.rows:
            yield _cell("chunk", f"{rows}-rows", probe, limits, own=probe.request(rows))
    for back in (1, 2, 16):
        if back < min(probe.rows, probe.context) and probe.context - back >= limits.longest[0]:
            own = probe.request(1, back)
            yield _cell("chunk", f"decode-{back}-before", probe, limits, own=own)
            own = probe.request(back=back)
            yield _cell("chunk", f"chunk-{back}-before", probe, limits, own=own)
    companions = others("mixed", 7, limits)
    yield _cell("chunk", "7-rows-in-batch", probe, limits, companions, 4, probe.request(7))


def _anywhere(probe: Probe, limits: Limits, quick: bool) -> Iterator[Cell]:
    """Single tokens and small chunks from all over a long chunk."""
    count = 6 if quick else 24
    last = min(probe.rows, probe.context - limits.longest[0]) - 1
    for back in sorted({last * k // count for k in range(count + 1)} if last > 0 else ()):
        for rows in (1, 7):
            own = probe.request(rows, back)
            yield _cell("chunk", f"{own.rows}-rows-{back}-before", probe, limits, own=own)


def _cached(probe: Probe, limits: Limits) -> Iterator[Cell]:
    prefix = probe.context - probe.rows
    for cached in sorted({16, prefix // 2, prefix // 16 * 16, prefix}):
        if 0 < cached <= prefix:
            own = probe.request(cached=cached)
            yield _cell("cached", f"{cached}-tokens", probe, limits, own=own)
    whole = probe.request(1, cached=probe.context - 1)
    yield _cell("cached", "decode", probe, limits, own=whole)
    companions = [replace(r, cached=r.context - r.rows) for r in others("mixed", 7, limits)]
    yield _cell("cached", "in-batch", probe, limits, companions, 3, probe.request(cached=prefix))


def _pages(probe: Probe, limits: Limits) -> Iterator[Cell]:
    for layout in (0, 2, 3):
        extra = {"layout": layout}
        yield _cell("pages", f"layout-{layout}", probe, limits, extra=extra)
        companions = others("mixed", 7, limits)
        yield _cell("pages", f"layout-{layout}-batch", probe, limits, companions, 3, extra=extra)


def _lengths(probe: Probe, limits: Limits, fits: Fits) -> Iterator[Cell]:
    for count in (1, 7, 63):
        companions = others("one", count, limits)
        yield _cell("lengths", f"{count}-of-one-token", probe, limits, companions, count // 2)
    for count in (1, 7):
        size = min(limits.most_context, 1 << 17)
        while size > probe.context:
            companions = [Request(8000 + i, 1, size) for i in range(count)]
            cell = _cell("lengths", f"{count}-of-{size}-tokens", probe, limits, companions)
            if cell.obstacle or not fits(cell.batch):
                yield cell
                one = probe.request(1)
                detail = f"{count}-of-{size}-tokens-decode"
                yield _cell("lengths", detail, probe, limits, companions, count, one)
                break
            size //= 2


def _thresholds(
    both: Sequence[Probe],
    tiny: Probe,
    found: Mapping[str, Sequence[int]],
    limits: Limits,
    fits: Fits,
) -> Iterator[Cell]:
    for name, values in found.items():
        for value in values:
            yield from _threshold(both, tiny, name, value, limits, fits)


def _threshold(
    both: Sequence[Probe], tiny: Probe, name: str, value: int, limits: Limits, fits: Fits
) -> Iterator[Cell]:
    meaning = meaning_of(name)
    low, high = bounds(limits, meaning)
    if not low <= value <= high:
        return
    obstacle = ""
    found = False
    for probe in (*both, tiny):
        if probe is tiny and found:
            continue
        for decode in (False, True):
            made = reach(probe, meaning, value, limits, decode)
            if isinstance(made, str):
                obstacle = obstacle or made
                continue
            why = fits(made.batch)
            found = found or not why
            detail = f"{name}={value}-{'decode' if decode else 'chunk'}"
            yield replace(made, kind="threshold", detail=detail, obstacle=why)
    if obstacle and not found:
        yield Cell("threshold", f"{name}={value}", tiny, (), obstacle=obstacle)


def _setting(probe: Probe, name: str, value: Any, limits: Limits) -> Iterator[Cell]:
    given = {name: value}
    yield _cell("setting", f"{name}={value}", probe, limits, given=given)
    companions = others("mixed", 7, limits, "decode")
    one = probe.request(1)
    detail = f"{name}={value}-batch"
    yield _cell("setting", detail, probe, limits, companions, 3, one, given=given)
