"""`selc bits`: from its options to batteries, and to an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TextIO

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.outcome import Outcome
from selc.harness.bits import report
from selc.harness.bits.battery import Battery, moving
from selc.harness.device import Device
from selc.harness.selector import Selector
from selc.harness.setup import Family, settings_of, setup

FORMAT: Final = 1
NOTHING: Final = "SEL955"
OTHER: Final = "SEL951"

Progress = Callable[[str, int, int], None]
"""Told the family, the cells that are done, and all of them."""


@dataclass(frozen=True, slots=True)
class BitsOptions:
    """What the command was given."""

    directories: tuple[Path, ...]
    kernels: tuple[str, ...] = ()
    tuple_path: Path | None = None
    device: str = "auto"
    settings: tuple[str, ...] = ()
    quick: bool = False
    budget: float | None = None
    out: Path | None = None
    progress: Progress | None = None


def run(options: BitsOptions) -> Outcome:
    """Run the battery of every family; exit 0 if all pinned cells are equal and could differ."""
    families = setup(options.directories, options.kernels)
    commitments = {f.selector.family: commitment(f.selector, options) for f in families.values()}
    device = Device.open(options.device)
    answers = []
    with ExitStack() as stack:
        stream = None
        if options.out is not None:
            stream = stack.enter_context(options.out.open("w", encoding="utf-8"))
        for family in families.values():
            share = None if options.budget is None else options.budget / len(families)
            battery = Battery(
                family.selector, family.kernels, device, commitments[family.selector.family],
                settings_of(options.settings), options.quick, share,
            )  # fmt: skip
            answers.append(_family(battery, family, options, stream))
    lines = [line for a in answers for line in (*report.text(a), "")]
    done = all(a["verdict"] == "equal" for a in answers)
    return Outcome(0 if done else 1, "\n".join(lines), {"format": FORMAT, "families": answers})


def listed(options: BitsOptions) -> Outcome:
    """The cells that a run would have."""
    families = setup(options.directories, options.kernels)
    device = Device.open(options.device)
    answers, lines = [], []
    for name, family in families.items():
        battery = Battery(
            family.selector, family.kernels, device, {}, settings_of(options.settings),
            options.quick,
        )  # fmt: skip
        found = battery.cells()
        runs = [c for c in found if not c.obstacle]
        lines.append(f"{name}: {len(runs)} cells, {len(found) - len(runs)} that cannot be built")
        for cell in found:
            size = f"{len(cell.batch)} requests, {sum(r.rows for r in cell.batch)} rows"
            lines.append(f"  {cell.name}: {cell.obstacle or size}")
        cells = [
            {"cell": c.name, "requests": len(c.batch), "obstacle": c.obstacle or None}
            for c in found
        ]
        answers.append({"family": name, "cells": cells})
    return Outcome(0, "\n".join(lines), {"format": FORMAT, "families": answers})


def commitment(selector: Selector, options: BitsOptions) -> Mapping[str, Any]:
    """The tuple that is tested: the file's, else the default.

    Raises:
        Refused: nothing is legal, or the file does not fit.
    """
    if options.tuple_path is not None:
        try:
            loaded: Mapping[str, Any] = selector.package.load(options.tuple_path)
        except (selector.package.SelectionError, ValueError, OSError) as error:
            raise Refused(
                Diagnostic(
                    OTHER,
                    f"the tuple of `{selector.family}` in `{options.tuple_path}`: {error}",
                    help="write it with this selector's `commit`",
                )
            ) from None
        return loaded
    if selector.default is None:
        raise Refused(Diagnostic(NOTHING, f"no tuple of `{selector.family}` is legal"))
    return selector.default


def _family(
    battery: Battery, family: Family, options: BitsOptions, stream: TextIO | None
) -> dict[str, Any]:
    selector = family.selector
    head = {
        "format": FORMAT,
        "family": selector.family,
        "selector": selector.hash,
        "kernels": {"name": family.name, "digest": family.digest},
        "device": battery.device.describe(),
        "tuple": dict(battery.commitment),
        "extra": dict(battery.extra),
        "quick": options.quick,
    }
    _write(stream, {"kind": "header", **head}, options)
    total = len(battery.cells())
    records = []
    for record in battery.run():
        records.append(record)
        _write(stream, {"family": selector.family, **record}, options)
        if options.progress is not None:
            options.progress(selector.family, len(records) // 2, total)
    points, read = moving(selector, family.kernels)
    found = report.summary(records, points, read)
    knobs = [k["name"] for k in selector.manifest["knobs"]]
    head["control_knobs"] = {k: v for k, v in battery.control.items() if k in knobs}
    short = {k: v for k, v in found.items() if k not in ("differing", "failed")}
    last = {"family": selector.family, "control_knobs": head["control_knobs"], **short}
    _write(stream, {"kind": "summary", **last}, options)
    return {**head, **found}


def _write(stream: TextIO | None, record: Mapping[str, Any], options: BitsOptions) -> None:
    if stream is None:
        return
    try:
        stream.write(json.dumps(record, default=str) + "\n")
        stream.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(options.out)) from None
