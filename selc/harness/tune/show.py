"""`selc tune --show`: a journal's decision as text and plots."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.outcome import Outcome
from selc.diag.table import table
from selc.harness.tune.decide import Decision, Story, decide, rank
from selc.harness.tune.replay import recorded
from selc.harness.tune.report import finish

USAGE: Final = "SEL909"
COLOURS: Final = {"stock": "#0072b2", "default": "#d55e00", "tuned": "#009e73"}
WIDTH: Final = 100
MOST: Final = 12


def show(path: Path, folder: Path | None) -> Outcome:
    """The report, what each call costs, and plots into a folder if one is given."""
    try:
        answer = recorded(path)
    except Refused as refused:
        return Outcome(2, diagnostics=list(refused.diagnostics))
    told = finish(answer, None)
    lines, calls = [told.text], {}
    for story in answer.stories:
        decision = decide(story)
        if decision.winner is None:
            continue
        rows = calls[story.family] = by_call(story, decision)
        lines += ["", f"{story.family}: seconds of all calls alike, where pinning loses most first"]
        lines += _table(rows)
    data = {**told.json, "by_call": calls}
    if folder is not None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            data["plots"] = [n for s in answer.stories for n in draw(s, folder)]
        except ImportError:
            why = "plots need matplotlib, which is not there"
            trouble = Diagnostic(USAGE, why, help="`pip install 'selc[bench]'` has it")
            return Outcome(2, told.text, data, [trouble])
        lines += ["", f"plots in {folder}: {', '.join(data['plots'])}"]
    return Outcome(told.exit_code, "\n".join(lines), data, told.diagnostics)


def by_call(story: Story, decision: Decision) -> list[dict[str, Any]]:
    """What every call costs tuned, by default and under the stock selection; greatest loss first.

    `loss` is what the tuned tuple takes beyond the stock selection, for all calls alike.
    """
    assert decision.winner is not None
    at = story.problem["targets"].index(decision.target)
    rows = []
    for number, call in enumerate(story.problem["calls"]):
        tuned, default, stock = (
            story.ledger.seconds((number, row[number])) if row else None
            for row in (decision.winner.choices, story.default.choices, story.stock)
        )
        weight = call["weights"][at]
        known = tuned is not None and stock is not None
        rows.append(
            {
                "inputs": call["inputs"],
                "rows": call["rows"],
                "requests": call["requests"],
                "weight": weight,
                "tuned": tuned,
                "default": default,
                "stock": stock,
                "loss": weight * (tuned - stock) if known else None,  # type: ignore[operator]
            }
        )
    return sorted(rows, key=lambda r: -(r["loss"] if r["loss"] is not None else -math.inf))


def over_parameters(story: Story, decision: Decision) -> dict[str, list[tuple[Any, float, int]]]:
    """For every pin and knob its values with the least cost measured there, and of how many."""
    at = story.problem["targets"].index(decision.target)
    weights = [c["weights"][at] for c in story.problem["calls"]]
    out: dict[str, list[tuple[Any, float, int]]] = {}
    ranked = rank(story, weights)
    for position, (name, values) in enumerate(story.problem["parameters"]):
        for index, value in enumerate(values):
            costs = [cost for cost, c in ranked if c.values[position] == index]
            if costs:
                out.setdefault(name, []).append((value, min(costs), len(costs)))
    return out


def draw(story: Story, folder: Path) -> list[str]:
    """Three plots of a family; the files' names."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    decision = decide(story)
    if decision.winner is None:
        return []
    out = []
    stem = re.sub(r"\W+", "_", story.family)
    for name, plot in (("pins", _pins), ("batch", _batch), ("loss", _loss)):
        figure = plt.figure(figsize=(9, 5), layout="constrained")
        if plot(figure, story, decision):
            figure.suptitle(f"{story.family}, {decision.target}", fontsize=10)
            figure.savefig(folder / f"{stem}-{name}.svg")
            out.append(f"{stem}-{name}.svg")
        plt.close(figure)
    return out


def _pins(figure: Any, story: Story, decision: Decision) -> bool:
    found = {n: rows for n, rows in over_parameters(story, decision).items() if len(rows) > 1}
    if not found or decision.cost is None:
        return False
    axes = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    assert decision.winner is not None
    best = story.assignment(decision.winner)
    for one, (name, rows) in zip(axes, found.items(), strict=True):
        texts = [str(value) for value, _, _ in rows]
        costs = [cost / decision.cost for _, cost, _ in rows]
        winner = best[name]
        colours = [COLOURS["tuned"] if value == winner else "#999999" for value, _, _ in rows]
        one.bar(range(len(texts)), costs, color=colours)
        one.set_xticks(range(len(texts)), texts, rotation=60, fontsize=7)
        one.set_title(name.rsplit(".", 1)[-1], fontsize=8)
    axes[0].set_ylabel("least cost measured with this value, tuned = 1")
    axes[0].set_ylim(bottom=0.9)
    return True


def _batch(figure: Any, story: Story, decision: Decision) -> bool:
    rows = [r for r in by_call(story, decision) if r["tuned"] is not None]
    axes = figure.subplots()
    for which, colour in COLOURS.items():
        points: dict[int, list[float]] = {}
        for row in rows:
            if row[which] is not None:
                points.setdefault(row["rows"] or 1, []).append(row[which])
        line = sorted((x, math.exp(sum(map(math.log, ys)) / len(ys))) for x, ys in points.items())
        axes.plot(*zip(*line, strict=True), "o-", color=colour, label=which) if line else None
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("rows of the batch")
    axes.set_ylabel("seconds of a call (geometric mean)")
    axes.legend()
    return bool(rows)


def _loss(figure: Any, story: Story, decision: Decision) -> bool:
    rows = [r for r in by_call(story, decision) if r["loss"] is not None][:24][::-1]
    if not rows or not decision.stock:
        return False
    axes = figure.subplots()
    shares = [r["loss"] / decision.stock for r in rows]
    colours = [COLOURS["default"] if s > 0 else COLOURS["tuned"] for s in shares]
    axes.barh(range(len(rows)), shares, color=colours)
    axes.set_yticks(range(len(rows)), [_inputs(r) for r in rows], fontsize=6)
    axes.axvline(0.0, color="black", linewidth=0.5)
    axes.set_xlabel("tuned less stock, as part of the stock selection's whole cost")
    return True


def _inputs(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{k}={v}" for k, v in row["inputs"].items())


def _table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    def ms(value: float | None) -> str:
        return "-" if value is None else f"{value * 1e3:.4g} ms"

    cells = [
        [
            "-" if r["loss"] is None else f"{r['loss'] * 1e3:+.3g} ms",
            *(ms(r[n]) for n in COLOURS),
            f"{r['weight']:g}",
            _inputs(r),
        ]
        for r in rows[:MOST]
    ]
    return table(["tuned - stock", *COLOURS, "count", "call"], cells, WIDTH)
