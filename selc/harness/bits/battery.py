"""Runs a family's battery under a fixed tuple, and the same cells without pins as a control."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from selc.diag.diagnostic import Refused
from selc.harness.bits.batch import Cell, Probe, padded
from selc.harness.bits.cells import cells
from selc.harness.bits.compare import difference
from selc.harness.bits.control import control_tuple
from selc.harness.bits.launch import Failure, Launcher, Rows, Skip, relevant
from selc.harness.bits.limits import Fits, Limits, call_of, settings_of, size_check
from selc.harness.call import Call, Request
from selc.harness.device import Device
from selc.harness.selector import Selector

ARMS: Final = ("pinned", "control")

Record = dict[str, Any]


@dataclass(slots=True)
class Reference:
    """A probe alone: its choice and its rows, or why there are none."""

    choice: dict[str, Any] = field(default_factory=dict)
    rows: Rows | None = None
    status: str = ""
    reason: str = ""


@dataclass(slots=True)
class Battery:
    """One family's battery. `commitment` is the tuple; `extra` holds `--set` values."""

    selector: Selector
    kernels: Any
    device: Device
    commitment: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)
    quick: bool = False
    budget: float | None = None
    _launcher: Launcher = field(init=False)
    _cells: list[Cell] | None = None
    _control: Mapping[str, Any] | None = None
    _references: dict[tuple[Probe, str], Reference] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._launcher = Launcher(self.kernels, self.device.kind)

    def cells(self) -> list[Cell]:
        """All cells, also those that cannot be built."""
        if self._cells is None:
            self._cells = self._built()
        return self._cells

    def _built(self) -> list[Cell]:
        kind = self.device.kind
        limits = Limits.of(self.selector, kind)
        fits = size_check(self.selector, self.kernels, kind, self.extra, self.device.memory_bytes)
        settings = settings_of(self.selector)
        made = cells(limits, self.selector.thresholds, settings, fits, self.quick)
        return [c if c.obstacle else _sized(padded(c, limits), fits) for c in made]

    @property
    def control(self) -> Mapping[str, Any]:
        """The tuple whose knobs the unpinned selection is asked under."""
        if self._control is None:

            def asked(batch: Sequence[Request], cell: Cell) -> Mapping[str, Any]:
                return call_of(self.selector, batch, {}, cell.given).inputs

            pairs = [
                (asked([c.probe.request()], c), asked(c.batch, c))
                for c in self.cells()
                if not c.obstacle
            ]
            self._control = control_tuple(self.selector, self.commitment, pairs)
        return self._control

    def run(self) -> Iterator[Record]:
        """One record for each cell and arm, as soon as it is there."""
        start = time.monotonic()
        for cell in self.cells():
            spent = time.monotonic() - start
            if self.budget is not None and spent > self.budget and not cell.obstacle:
                late = f"the budget of {self.budget:g} s is spent"
                for arm in ARMS:
                    yield _record(cell, arm, "skipped", reason=late)
                continue
            yield from self._cell(cell)

    def _cell(self, cell: Cell) -> Iterator[Record]:
        if cell.obstacle:
            for arm in ARMS:
                yield _record(cell, arm, "skipped", reason=cell.obstacle)
            return
        extra = {**self.extra, **_magnitude(cell.probe), **cell.extra}
        call = call_of(self.selector, cell.batch, extra, cell.given)
        pinned = self._arm(cell, call, "pinned")
        yield pinned
        control = self._arm(cell, call, "control", pinned)
        yield control

    def _arm(self, cell: Cell, call: Call, arm: str, before: Record | None = None) -> Record:
        """The cell under the tuple, or without one; a launch that was just made is not repeated."""
        alone = self._reference(cell.probe, arm)
        try:
            choice = self._choice(arm, call)
        except Refused as refused:
            return _record(cell, arm, "skipped", call, reason=_why(refused))
        choices = {"alone": alone.choice, "here": choice}
        if alone.rows is None:
            reason = f"the request alone: {alone.reason}"
            return _record(cell, arm, alone.status, call, choices, reason=reason)
        if before is not None and before.get("choices") == choices:
            return {**before, "arm": arm, "same_launch": True}
        try:
            if cell.again:
                self._launcher.again()
            found = [self._launcher.rows(choice, call, cell.at) for _ in range(1 + cell.again)]
        except Skip as skip:
            return _record(cell, arm, "skipped", call, choices, reason=str(skip))
        except Failure as failure:
            return _record(cell, arm, "failed", call, choices, reason=str(failure))
        return _compared(cell, arm, call, choices, alone.rows, found)

    def _reference(self, probe: Probe, arm: str) -> Reference:
        known = self._references.get((probe, arm))
        if known is not None:
            return known
        made = self._references[probe, arm] = Reference()
        extra = {**self.extra, **_magnitude(probe)}
        call = call_of(self.selector, [probe.request()], extra, {})
        try:
            made.choice = self._choice(arm, call)
        except Refused as refused:
            made.status, made.reason = "skipped", _why(refused)
            return made
        try:
            rows = self._launcher.rows(made.choice, call, 0)
            if rows.trouble:
                made.status, made.reason = "skipped", rows.trouble
            else:
                made.rows = rows
        except Skip as skip:
            made.status, made.reason = "skipped", str(skip)
        except Failure as failure:
            made.status, made.reason = "failed", str(failure)
        return made

    def _choice(self, arm: str, call: Call) -> dict[str, Any]:
        if arm == "control":
            return relevant(self.kernels, self.selector.stock(call.inputs, self.control))
        return relevant(self.kernels, self.selector.choice(self.commitment, call.inputs))


def moving(selector: Selector, kernels: Any) -> tuple[list[str], list[str]]:
    """Points that set bits and move with the batch without pins, and which the kernels read."""
    points = selector.manifest["points"]
    found = [p["name"] for p in points if p["role"] == "bits" and p["batch_dependent"]]
    classes = selector.manifest.get("classes") or []
    read = list(relevant(kernels, dict.fromkeys(found)))
    if any(name.startswith("class.") for name in found):
        fields = [f for c in classes if isinstance(c, Mapping) for f in c.get("fields", ())]
        read += relevant(kernels, dict.fromkeys(fields)) or [n for n in found if n not in read]
    return found, read


def _sized(cell: Cell, fits: Fits) -> Cell:
    from dataclasses import replace

    why = fits(cell.batch)
    return replace(cell, obstacle=why) if why else cell


def _magnitude(probe: Probe) -> dict[str, Any]:
    return {} if probe.magnitude == "normal" else {"magnitude": probe.magnitude}


def _why(refused: Refused) -> str:
    """What the selector said, without the values of the call: equal reasons read alike."""
    said = refused.__context__
    text = refused.diagnostics[0].message if said is None else str(said)
    text = text.partition("; inputs:")[0].removesuffix("; nothing was selected")
    return "refused: " + re.sub(r"^([\w.]+)=\S+ is ", r"\1 is ", text)


def _compared(
    cell: Cell, arm: str, call: Call, choices: Mapping[str, Any], alone: Rows, launches: list[Rows]
) -> Record:
    """The rows that both launches computed, those of the first launch of the cell that differs."""
    first = max(alone.first, launches[0].first)
    last = min(alone.context, launches[0].context)
    a = alone.bits[first - alone.first : last - alone.first]
    odd = None
    for found in launches:
        b = found.bits[first - found.first : last - found.first]
        if a.shape != b.shape or not len(a):
            reason = f"{tuple(b.shape)} elements in place of {tuple(a.shape)}"
            return _record(cell, arm, "failed", call, choices, reason=reason)
        odd = odd or difference(a, b)
    more: Record = {"rows": last - first}
    if odd is not None:
        more["first"] = {
            "token": first + odd.row,
            "element": odd.element,
            "alone": odd.expected,
            "here": odd.found,
        }
        more |= {"differing": odd.count, "elements": odd.total}
    return _record(cell, arm, "equal" if odd is None else "differs", call, choices, **more)


def _record(
    cell: Cell,
    arm: str,
    status: str,
    call: Call | None = None,
    choices: Mapping[str, Any] | None = None,
    **more: Any,
) -> Record:
    out: Record = {"kind": "cell", "cell": cell.name, "group": cell.kind, "arm": arm}
    out |= {"status": status, "probe": cell.probe.label}
    if call is not None:
        requests = [[r.seed, r.rows, r.context, r.cached] for r in call.requests]
        out |= {"inputs": dict(call.inputs), "requests": requests, "at": cell.at}
    if choices is not None:
        out["choices"] = dict(choices)
    return {**out, **more}
