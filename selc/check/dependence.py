"""What the manifest says of points: which inputs move them, and whether the batch does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from selc.check.dag import TRUE
from selc.check.decide import WORK, Judge
from selc.check.findings import Finding, summed
from selc.check.grid import at, everywhere, work
from selc.check.readings import Readings
from selc.check.values import UNDEF, key


def stated(readings: Readings, judge: Judge, points: Sequence[Mapping[str, Any]]) -> Finding:
    """Two calls that differ in the named inputs alone decide; without such calls, nothing moves."""
    returned = readings.dag.both(
        readings.holds(readings.real(g.nodes["path"]), readings.real(g.nodes["cond"]))
        for g in readings.g0.guards
        if g.kind == "require"
    )
    batch = readings.g0.batch()
    admits = readings.dag.both([returned, *judge.premises])
    verdicts: Counter[str] = Counter()
    wrong = []
    for entry in points:
        if entry.get("decided") is False:
            verdicts["undecided, as stated"] += 1
            continue
        name = entry["name"]
        node = readings.real(readings.g0.points[name].node)
        moves, how = _moves(readings, judge, node, admits, batch)
        verdicts[how] += 1
        if moves is not None and moves is not entry["batch_dependent"]:
            wrong.append(f"{name} {'follows' if moves else 'does not follow'} the batch")
        for each in sorted(batch):
            moves, how = _moves(readings, judge, node, returned, {each})
            verdicts[how] += 1
            if moves is not None and moves is not (each in entry["depends_on"]):
                wrong.append(f"{name} {'depends' if moves else 'does not depend'} on {each}")
    return summed("dependence", verdicts, "claims of what moves a point", wrong)


def _moves(
    readings: Readings, judge: Judge, node: int, where: int, names: set[str]
) -> tuple[bool | None, str]:
    """Whether some two calls that differ in these inputs alone give a point different values."""
    dag = readings.dag
    if not names & set(dag.reads(node)):
        return False, "proved"
    seen = dag.add("tuple", (where, node)) if where != TRUE else node
    if work(dag, seen) <= WORK:
        pairs = ((call, v if where == TRUE else _opened(v)) for call, v in everywhere(dag, seen))
        return _differ(pairs, names), "exhaustive"
    calls = [
        {**call, **{n: other[n] for n in names}}
        for call in judge.calls(128)
        for other in judge.calls(8)
    ]
    values = at(dag, seen, calls)
    found = _differ(
        ((c, v if where == TRUE else _opened(v)) for c, v in zip(calls, values, strict=True)), names
    )
    return (True, "exhaustive") if found else (None, "sampled")


def _opened(value: Any) -> Any:
    """The value of the point if the call counts."""
    return value[1] if type(value) is tuple and value[0] is True else UNDEF


def _differ(pairs: Iterable[tuple[Mapping[str, Any], Any]], names: set[str]) -> bool:
    first: dict[Hashable, Hashable] = {}
    for call, value in pairs:
        if value is UNDEF:
            continue
        rest = tuple((n, key(v)) for n, v in call.items() if n not in names)
        if first.setdefault(rest, key(value)) != key(value):
            return True
    return False
