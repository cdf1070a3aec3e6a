"""How large a batch may be: what the selector's domain says, and what a device should be given."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from selc.harness.call import COUNT, LONGEST, LONGEST_ROWS, ROWS, TOTAL, Call, Request, inputs_of
from selc.harness.selector import Selector

FLOPS: Final = {"cpu": 2 * 10**9, "cuda": 2 * 10**13}
BYTES: Final = {"cpu": 1 << 27, "cuda": 1 << 31}
ROWS_MOST: Final = {"cpu": 1 << 13, "cuda": 1 << 17}
KEYS_MOST: Final = {"cpu": 1 << 16, "cuda": 1 << 22}
SMALL: Final = {"cpu": (64, 4096), "cuda": (8192, 1 << 17)}
"""Rows and tokens up to which kernels are not asked for an estimate: it may take a while."""
LONG: Final = {"cpu": 301, "cuda": 3001}
"""Context of the long probe, and of long companions."""
WATCHED: Final = {"cpu": 33, "cuda": 129}
"""Rows of a probe. Few elements in many are rounded to other bits where only an order changes."""
MEANINGS: Final = {
    "rows": ROWS,
    "count": COUNT,
    "longest_rows": LONGEST_ROWS,
    "longest": LONGEST,
    "total": TOTAL,
}
UNBOUNDED: Final = (1, 1 << 40)

Bounds = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of what describes a batch: those of the inputs that say it, else none."""

    rows: Bounds = UNBOUNDED
    count: Bounds = UNBOUNDED
    longest_rows: Bounds = UNBOUNDED
    longest: Bounds = UNBOUNDED
    total: Bounds = UNBOUNDED
    step: int = 1
    """Rows are a multiple of it."""
    long: int = LONG["cpu"]
    watched: int = WATCHED["cpu"]

    @classmethod
    def of(cls, selector: Selector, device: str) -> Limits:
        """The limits of a selector's domain; a condition that relates inputs is not seen."""
        found: dict[str, Bounds] = {}
        step = 1
        for entry in selector.manifest["inputs"]:
            meaning = meaning_of(entry["name"])
            ends = _ends(entry)
            if meaning and ends:
                low, high = found.get(meaning, UNBOUNDED)
                found[meaning] = max(low, ends[0]), min(high, ends[1])
            if meaning == "rows":
                step = math.lcm(step, entry.get("multiple_of") or 1)
        return cls(**found, step=step, long=LONG[device], watched=WATCHED[device])

    @property
    def most_context(self) -> int:
        """The longest context that some batch may have."""
        return min(self.longest[1], self.total[1])

    @property
    def most_rows(self) -> int:
        """The most tokens that one request may compute at once."""
        return min(self.longest_rows[1], self.rows[1], self.most_context)


def meaning_of(name: str) -> str:
    """What an input says of a batch, by its name; empty if no batch of requests sets it."""
    last = name.rsplit(".", 1)[-1]
    return next((m for m, names in MEANINGS.items() if last in names), "")


def settings_of(selector: Selector) -> dict[str, list[Any]]:
    """Inputs that requests do not set and that take few values, with these values."""
    out: dict[str, list[Any]] = {}
    for entry in selector.manifest["inputs"]:
        if meaning_of(entry["name"]):
            continue
        values = entry.get("values") or ([False, True] if entry["type"] == "bool" else [])
        ends = _ends(entry)
        if not values and ends and ends[1] - ends[0] < 8:
            values = list(range(ends[0], ends[1] + 1))
        plain = all(v is None or type(v) in (bool, int, str) for v in values)
        if plain and 2 <= len(values) <= 8:
            out[entry["name"]] = list(values)
    return out


Fits = Callable[[Sequence[Request]], str]


def size_check(
    selector: Selector, kernels: Any, device: str, extra: Mapping[str, Any], memory: int = 0
) -> Fits:
    """A function that says in words why a batch is too large for the device, or ""."""
    most = BYTES[device] if not memory else min(BYTES[device], memory // 8)

    def why(batch: Sequence[Request]) -> str:
        rows, keys = sum(r.rows for r in batch), sum(r.context for r in batch)
        if rows > ROWS_MOST[device] or keys > KEYS_MOST[device]:
            return f"{rows} rows over {keys} tokens are more than a battery computes here"
        if rows <= SMALL[device][0] and keys <= SMALL[device][1]:
            return ""
        call = call_of(selector, batch, extra, {})
        try:
            moved, flops = kernels.bytes_and_flops(call)
        except Exception:  # noqa: BLE001  an estimate: the launch itself will tell
            return ""
        if moved > most or flops > FLOPS[device]:
            return f"{moved:.2g} bytes and {flops:.2g} operations are too many for this device"
        return ""

    return why


def call_of(
    selector: Selector,
    batch: Sequence[Request],
    extra: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Call:
    """The launch of a batch."""
    inputs = inputs_of(batch, selector.examples, given)
    return Call(selector.family, inputs, selector.facts, tuple(batch), extra)


def _ends(entry: Mapping[str, Any]) -> Bounds | None:
    if entry.get("range") is not None:
        return int(entry["range"][0]), int(entry["range"][1])
    values = [v for v in entry.get("values") or () if type(v) is int]
    return (min(values), max(values)) if values else None
