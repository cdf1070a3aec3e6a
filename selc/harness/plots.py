"""Plots of a benchmark: time over the batch, stock against pinned, and the roofline."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from selc.diag.table import short
from selc.harness.summary import Line, Summary

if TYPE_CHECKING:
    from selc.harness.bench_report import Run

COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Told apart also by those who see few colours (Okabe and Ito)."""
NAMED: Final = 3
"""The fastest tuples that get a colour of their own, besides those with a name."""


def draw(run: Run, folder: Path) -> list[str]:
    """Draw up to three plots for each family; the files' names."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    out: list[str] = []
    for summary in run.summaries:
        if not any(line.cells for line in summary.lines):
            continue
        stem = re.sub(r"\W+", "_", summary.plan.family)
        for name, plot in (("time", _time), ("stock", _stock), ("roofline", _roofline)):
            figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
            if plot(axes, summary, run.ceilings):
                axes.set_title(f"{summary.plan.family}: {run.device.get('name')}", fontsize=10)
                figure.savefig(folder / f"{stem}-{name}.svg")
                out.append(f"{stem}-{name}.svg")
            plt.close(figure)
    return out


def _coloured(summary: Summary) -> list[tuple[Line, str | None]]:
    """Lines from the slowest to the fastest, with a colour for those that stand out."""
    colours = iter(COLOURS)
    left, out = NAMED, []
    for line in summary.lines:
        if not line.cells:
            continue
        numbered = line.candidate.name.startswith("#")
        left -= numbered
        out.append((line, next(colours, None) if not numbered or left >= 0 else None))
    return out[::-1]


def _by_batch(line: Line, summary: Summary) -> dict[int, float]:
    """The geometric mean of the times of all calls with as many rows."""
    logs: dict[int, list[float]] = {}
    for cell in line.cells:
        rows = summary.plan.calls[cell.call][0].rows
        logs.setdefault(rows, []).append(math.log(cell.spread.median))
    return {rows: math.exp(sum(x) / len(x)) for rows, x in sorted(logs.items())}


def _time(axes: Any, summary: Summary, ceilings: Mapping[str, float]) -> bool:
    for line, colour in _coloured(summary):
        points = _by_batch(line, summary)
        style: dict[str, Any] = {"color": "0.8", "linewidth": 0.6, "zorder": 1}
        if colour:
            style = {"color": colour, "marker": "o", "markersize": 3, "zorder": 2}
            style["label"] = _label(line)
        axes.plot(list(points), [t * 1e6 for t in points.values()], **style)
    axes.set(xscale="log", yscale="log", xlabel="rows of the launch", ylabel="time [us]")
    _legend(axes)
    return True


def _stock(axes: Any, summary: Summary, ceilings: Mapping[str, float]) -> bool:
    stock = summary.named("stock")
    if stock is None:
        return False
    base = _by_batch(stock, summary)
    for line, colour in _coloured(summary):
        if line is stock or not colour:
            continue
        ratios = {rows: t / base[rows] for rows, t in _by_batch(line, summary).items()}
        axes.plot(
            list(ratios),
            list(ratios.values()),
            color=colour,
            marker="o",
            markersize=3,
            label=_label(line),
        )
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    axes.set(xscale="log", xlabel="rows of the launch", ylabel="time / time of the stock selection")
    _legend(axes)
    return True


def _roofline(axes: Any, summary: Summary, ceilings: Mapping[str, float]) -> bool:
    work = summary.plan.work
    large = ceilings.get("matmul", 0.0) > 1e12
    unit, scale = ("TFLOP/s", 1e12) if large else ("GFLOP/s", 1e9)
    found = [1.0]
    for line, colour in _coloured(summary):
        if not colour:
            continue
        cells = [c for c in line.cells if work[c.call][0] and work[c.call][1]]
        x = [work[c.call][1] / work[c.call][0] for c in cells]
        y = [work[c.call][1] / c.spread.median / scale for c in cells]
        found += x
        axes.scatter(x, y, s=14, color=colour, label=_label(line), zorder=2)
    if len(found) == 1:
        return False
    if ceilings:
        low, high = min(found) / 2, max(found) * 2
        knee = ceilings["matmul"] / ceilings["copy"]
        xs = sorted({low, min(max(knee, low), high), high})
        ys = [min(ceilings["matmul"], x * ceilings["copy"]) / scale for x in xs]
        axes.plot(xs, ys, color="0.3", linewidth=1, label="measured copy and product", zorder=1)
    axes.set(xscale="log", yscale="log", xlabel="operations / byte", ylabel=unit)
    _legend(axes)
    return True


def _label(line: Line) -> str:
    """A tuple's name; of a numbered one its values too."""
    name, values = line.candidate.name, line.candidate.commitment
    if not values or not name.startswith("#"):
        return name
    text = ", ".join(f"{n.rsplit('.', 1)[-1]}={v}" for n, v in values.items())
    return f"{name} {short(text, 50)}"


def _legend(axes: Any) -> None:
    axes.grid(True, which="major", linewidth=0.3)
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], fontsize=8)
