"""Batches that bring an input of the selection to a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from selc.harness.bits.batch import Cell, Probe, others
from selc.harness.bits.limits import UNBOUNDED, Bounds, Limits, meaning_of
from selc.harness.call import Request

FEW = 8
"""Companions among which many rows are spread, if they may compute so many each."""


def around(
    thresholds: Mapping[str, Sequence[Any]], limits: Limits, quick: bool
) -> dict[str, list[int]]:
    """For each input that a batch sets, the values one below, at and one above each threshold.

    A quick battery takes 8 thresholds of each, spread evenly.
    """
    out: dict[str, list[int]] = {}
    for name, values in thresholds.items():
        meaning = meaning_of(name)
        ints = [v for v in values if type(v) is int]
        if not meaning or not ints:
            continue
        if quick and len(ints) > FEW:
            ints = [ints[i * (len(ints) - 1) // (FEW - 1)] for i in range(FEW)]
        low, high = bounds(limits, meaning)
        near = {v + d for v in ints for d in (-1, 0, 1)}
        out[name] = sorted(v for v in near if max(low, 1) <= v <= high)
    return out


def bounds(limits: Limits, meaning: str) -> Bounds:
    """The bounds of what an input means."""
    found: Bounds = getattr(limits, meaning, UNBOUNDED)
    return found


def reach(probe: Probe, meaning: str, value: int, limits: Limits, decode: bool) -> Cell | str:
    """A batch with the probe in which `meaning` has a value, or why there is none.

    With `decode` the probe computes one row, else as many of its own as the value allows.
    """
    make = {
        "rows": _rows,
        "count": _count,
        "longest_rows": _longest_rows,
        "longest": _longest,
        "total": _total,
    }[meaning]
    made = make(probe, value, limits, 1 if decode else probe.rows)
    if isinstance(made, str):
        return made
    batch = tuple(made)
    at = batch.index(next(r for r in batch if r.seed == probe.seed))
    return Cell("", "", probe, batch, at)


def _rows(probe: Probe, value: int, limits: Limits, rows: int) -> list[Request] | str:
    mine = probe.request(min(rows, value))
    rest = value - mine.rows
    each = limits.most_rows
    room = limits.count[1] - 1
    count = min(rest, max(FEW, -(-rest // each)))
    if count > room:
        return f"{value} rows need more than {limits.count[1]} requests"
    return [*_spread(rest, count, limits), mine]


def _spread(rows: int, count: int, limits: Limits) -> list[Request]:
    """Some requests that compute so many rows together, one of them a single row."""
    single = count > 1 and rows - 1 <= (count - 1) * limits.most_rows
    sizes = [1] if single else []
    left, n = rows - len(sizes), count - len(sizes)
    sizes += [left // n + (i < left % n) for i in range(n)] if n else []
    least, most = limits.longest[0], limits.most_context
    return [Request(5000 + i, r, max(r, least, min(r + 40, most))) for i, r in enumerate(sizes)]


def _count(probe: Probe, value: int, limits: Limits, rows: int) -> list[Request] | str:
    if value - 1 + rows > limits.rows[1]:
        rows = limits.rows[1] - value + 1
    if rows < 1:
        return f"{value} requests compute more rows than the {limits.rows[1]} that are admitted"
    companions = others("mixed" if value <= 64 else "short", value - 1, limits, "decode")
    return [*companions[: value // 2], probe.request(rows), *companions[value // 2 :]]


def _longest_rows(probe: Probe, value: int, limits: Limits, rows: int) -> list[Request] | str:
    mine = probe.request(min(rows, value))
    if mine.rows == value:
        return [*others("mixed", min(3, limits.count[1] - 1), limits, "decode"), mine]
    if limits.count[1] < 2 or value + mine.rows > limits.rows[1]:
        if value <= min(probe.context, limits.rows[1]):
            return [probe.request(value)]
        return f"a request with {value} rows leaves no room for the probe"
    if value > limits.most_context:
        return f"no request has {value} tokens"
    return [Request(6000, value, max(value, limits.longest[0])), mine]


def _longest(probe: Probe, value: int, limits: Limits, rows: int) -> list[Request] | str:
    if value < probe.context:
        return "the probe's own context is longer"
    if value == probe.context:
        return [probe.request(rows)]
    if limits.count[1] < 2:
        return "only one request is admitted"
    if limits.rows[1] < 2:
        return "only one row is admitted"
    return [Request(6001, 1, value), probe.request(min(rows, limits.rows[1] - 1))]


def _total(probe: Probe, value: int, limits: Limits, rows: int) -> list[Request] | str:
    rest = value - probe.context
    if rest < 0:
        return "the probe's own context is longer"
    most = limits.longest[1]
    count = -(-rest // most)
    if count > limits.count[1] - 1:
        return f"{value} tokens need more than {limits.count[1]} requests"
    sizes = [rest // count + (i < rest % count) for i in range(count)] if count else []
    return [*(Request(6100 + i, 1, c) for i, c in enumerate(sizes)), probe.request(rows)]
