"""What `selc tune` says and writes; the same from a run and from its journal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Severity
from selc.diag.outcome import Outcome
from selc.diag.span import Span
from selc.diag.table import table
from selc.harness.tune.decide import Decision, Ratio, Story, decide, matrix
from selc.harness.tune.problem import Candidate
from selc.harness.tune.tuplefile import write

FORMAT: Final = 1
WIDTH: Final = 100
FAILED: Final = "SEL956"
NOTHING: Final = "SEL955"
REFUSED_BY_SYSTEM: Final = "SEL915"
MOST_WARNINGS: Final = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """A run, finished or not."""

    header: Mapping[str, Any]
    stories: Sequence[Story]
    seconds: float | None = None
    """None when it is looked at again."""
    unfinished: str = ""


def finish(
    answer: Answer, out: Path | None, code: int = 0, trouble: Sequence[Diagnostic] = ()
) -> Outcome:
    """Decide, write the tuple, and say all of it."""
    decisions = [[decide(s, t) for t in range(len(s.problem["targets"]))] for s in answer.stories]
    data = as_json(answer, decisions)
    lines = list(as_text(answer, decisions))
    diagnostics = [*warnings(answer), *trouble]
    families = entries(answer, decisions)
    missing = [s.family for s, d in zip(answer.stories, decisions, strict=True) if not d[0].winner]
    if not families or missing:
        whose = ", ".join(f"`{m}`" for m in missing) or "any family"
        why = answer.unfinished or next((e["reason"] for s in answer.stories for e in s.ends), "")
        message = f"no tuple of {whose} was measured on every call: {why or 'all failed'}"
        help_ = "give it more time with `--budget`, or look at what failed above"
        diagnostics.append(Diagnostic(NOTHING, message, help=help_))
        code = code or 1
    if families and out is not None:
        try:
            write(out, families)
            data["written"] = str(out)
            lines.append(f"written: {out}")
        except OSError as error:
            place = Span(str(out), 0, 0, 0, 0)
            message = f"the tuple cannot be written: {error.strerror}"
            diagnostics.append(
                Diagnostic(REFUSED_BY_SYSTEM, message, place, help="the journal still holds it")
            )
            code = 2
    if code == 2:
        from selc.diag.render_json import errors_object

        data |= {"errors": errors_object(diagnostics)["errors"]}
    return Outcome(code, "\n".join(lines), data, diagnostics)


def entries(answer: Answer, decisions: Sequence[Sequence[Decision]]) -> dict[str, Any]:
    """The families of the tuple file, by name."""
    out = {}
    for story, (decision, *_) in sorted(
        zip(answer.stories, decisions, strict=True), key=lambda row: row[0].family
    ):
        if decision.winner is not None:
            out[story.family] = _entry(story, decision.winner)
    return out


def _entry(story: Story, winner: Candidate) -> dict[str, Any]:
    values, knobs = story.assignment(winner), set(story.problem["knobs"])
    return {
        "selector": story.problem["selector"],
        "pins": {n: v for n, v in values.items() if n not in knobs},
        "knobs": {n: v for n, v in values.items() if n in knobs},
    }


def as_json(answer: Answer, decisions: Sequence[Sequence[Decision]]) -> dict[str, Any]:
    """The whole answer."""
    return {
        "format": FORMAT,
        "device": dict(answer.header["device"]),
        "seconds": answer.seconds,
        "unfinished": answer.unfinished,
        "families": [
            _family(story, some) for story, some in zip(answer.stories, decisions, strict=True)
        ],
    }


def _family(story: Story, decisions: Sequence[Decision]) -> dict[str, Any]:
    out = {
        "family": story.family,
        "ended": story.ends[-1]["reason"] if story.ends else None,
        "calls": {"measured": len(story.problem["calls"]), "all": story.problem["distinct_calls"]},
        "measured": measured(story),
        "results": [_decision(story, d) for d in decisions],
    }
    if len(decisions) > 1:
        own = decisions[1:]
        out["matrix"] = {"targets": [d.target for d in own], "cost": matrix(story, own)}
    return out


def _decision(story: Story, d: Decision) -> dict[str, Any]:
    def ratio(r: Ratio | None) -> dict[str, float] | None:
        return None if r is None else {"value": r.value, "low": r.low, "high": r.high}

    return {
        "workload": d.target,
        "tuple": None if d.winner is None else story.assignment(d.winner),
        "seconds": d.cost,
        "runner_up": None if d.runner_up is None else story.assignment(d.runner_up),
        "gap": ratio(d.gap),
        "default": {"tuple": story.assignment(story.default), "seconds": d.default},
        "gain": ratio(d.gain),
        "stock": {"knobs_of": story.problem["stock_tuple"], "seconds": d.stock},
        "price": ratio(d.price),
    }


def measured(story: Story) -> dict[str, Any]:
    """How much of the grid was measured, in tuples and in launches."""
    p = story.problem
    skip = {tuple(pair) for pair in p["only_stock"]}
    pairs = {q for q, e in story.ledger.entries.items() if e.every or e.failure} - skip
    rows = {c.choices for c in story.candidates.values()} | {story.default.choices}
    some = {r for r in rows if any(q in pairs for q in enumerate(r))}
    whole = {r for r in rows if all(q in pairs for q in enumerate(r))}
    return {
        "legal": p["legal"],
        "candidates": p["candidates"],
        "in_part": len(some),
        "in_full": len(whole),
        "launches": p["launches"],
        "launches_measured": len(pairs),
        "share": len(pairs) / p["launches"] if p["launches"] else None,
        "rounds": sum(len(e.every) for e in story.ledger.entries.values()),
        "failed": sum(bool(e.failure) for e in story.ledger.entries.values()),
        "spread": story.ledger.spread(),
        "estimated": p.get("estimated", False),
    }


def as_text(answer: Answer, decisions: Sequence[Sequence[Decision]]) -> Iterator[str]:
    """The answer for people."""
    device = answer.header["device"]
    yield f"on {device.get('name', device.get('kind'))}" + (
        "" if answer.seconds is None else f", {answer.seconds:.0f} s"
    )
    for story, some in zip(answer.stories, decisions, strict=True):
        yield ""
        yield from _told(story, some)
    if answer.unfinished:
        yield ""
        yield f"unfinished: {answer.unfinished}; this is the best so far"


def _told(story: Story, decisions: Sequence[Decision]) -> Iterator[str]:
    m, p = measured(story), story.problem
    grid = f"{m['legal']} legal tuples" if m["legal"] is not None else "legal tuples not counted"
    if m["candidates"] not in (None, m["legal"]):
        grid += f", {m['candidates']} that differ on these calls"
    yield f"{story.family}: {grid}"
    calls = f"{len(p['calls'])} calls"
    if p["distinct_calls"] > len(p["calls"]):
        calls += f" for {p['distinct_calls']} distinct ones"
    share = "" if m["share"] is None else f" ({m['share']:.1%} of {m['launches']})"
    yield (
        f"  {calls}; {m['launches_measured']} launches measured{share}, "
        f"{m['in_part']} tuples in part, {m['in_full']} of them on every call"
    )
    yield f"  a round deviates by {m['spread']:.1%}" + (
        f"; ended: {story.ends[-1]['reason']}" if story.ends else ""
    )
    for d in decisions:
        yield from _result(story, d, len(decisions) > 1)
    if len(decisions) > 1:
        yield from _matrix(story, decisions[1:])


def _result(story: Story, d: Decision, named: bool) -> Iterator[str]:
    if named:
        yield f"  {'all workloads together' if d.target == 'all' else d.target}"
    if d.winner is None:
        yield "  no tuple was measured on every call"
        return
    values = ", ".join(f"{n}={v!r}" for n, v in story.assignment(d.winner).items())
    yield f"  tuned    {values}"
    rows = [["tuned", _ms(d.cost), "", ""]]
    if d.default is not None:
        rows.append(["default", _ms(d.default), *_ratio("gain", d.gain)])
    if d.stock is not None:
        rows.append(["stock", _ms(d.stock), *_ratio("price", d.price)])
    yield from table(["", "all calls", "", ""], rows, WIDTH, "    ")
    yield from _stock(story)
    if d.gap is not None and d.runner_up is not None:
        other = story.assignment(d.runner_up)
        own = story.assignment(d.winner)
        change = ", ".join(f"{n}={v!r}" for n, v in other.items() if own[n] != v)
        sure = "" if d.gap.low > 1 else ": not told apart"
        yield (
            f"    runner-up with {change}: {d.gap.value - 1:+.2%}, "
            f"95 % from {d.gap.low - 1:+.2%} to {d.gap.high - 1:+.2%}{sure}"
        )


def _stock(story: Story) -> Iterator[str]:
    """Whose knobs the stock selection has, where not the default tuple's."""
    knobs = story.problem["stock_tuple"]
    if not story.stock:
        yield "    the stock selection refuses a call of the workload, whatever the knobs"
    elif knobs:
        mine = story.assignment(story.default)
        names = [n for n in story.problem["knobs"] if knobs[n] != mine[n]]
        values = ", ".join(f"{n}={knobs[n]!r}" for n in names)
        yield f"    stock has {values}: with the default knobs it refuses a call of the workload"


def _ratio(name: str, r: Ratio | None) -> list[str]:
    if r is None:
        return ["", ""]
    how = "default / tuned" if name == "gain" else "tuned / stock"
    return [f"{name} {r.value:.3f}", f"{how}, 95 % from {r.low:.3f} to {r.high:.3f}"]


def _ms(seconds: float | None) -> str:
    if seconds is None or not math.isfinite(seconds):
        return "-"
    return f"{seconds * 1e3:.4g} ms"


def _matrix(story: Story, own: Sequence[Decision]) -> Iterator[str]:
    yield "  cost of each workload's tuple (row) on each workload (column), 1 is that one's own"
    names = [Path(d.target).name for d in own]
    rows = [
        [name, *("-" if c is None else f"{c:.3f}" for c in row)]
        for name, row in zip(names, matrix(story, own), strict=True)
    ]
    yield from table(["", *names], rows, WIDTH, "    ")


def warnings(answer: Answer) -> Iterator[Diagnostic]:
    """What failed, most frequent first."""
    for story in answer.stories:
        if unestimated := story.problem.get("unestimated"):
            message = f"the kernels of `{story.family}` fail to estimate: {unestimated}"
            help_ = "the search went without estimates and needs more launches so"
            yield Diagnostic(FAILED, message, severity=Severity.WARNING, help=help_)
        why = Counter(e.failure for e in story.ledger.entries.values() if e.failure)
        for text, count in why.most_common(MOST_WARNINGS):
            times = f" ({count} launches)" if count > 1 else ""
            message = f"a kernel of `{story.family}` failed and its tuples are out: {text}{times}"
            yield Diagnostic(FAILED, message, severity=Severity.WARNING)
