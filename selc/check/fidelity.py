"""Whether R is G0 with the pins' sites overwritten, in every reading that guards are judged in."""

from __future__ import annotations

from collections import Counter

from selc.check.certificate import Guard
from selc.check.dag import TRUE
from selc.check.decide import Judge
from selc.check.findings import Finding, shown, summed
from selc.check.readings import Readings


def shape(readings: Readings) -> Finding:
    """R has G0's points with their roles and sites, its guards with their texts, and its inputs."""
    g0, r = readings.g0, readings.r
    wrong = []
    if {n: (p.role, p.sites) for n, p in g0.points.items()} != {
        n: (p.role, p.sites) for n, p in r.points.items()
    }:
        wrong.append("the points differ")
    if g0.scope != r.scope:
        wrong.append("the scopes differ")
    kinds = {"require": r.guards, "assume": r.assumes}
    for kind, have in kinds.items():
        wanted = [g[:5] for g in g0.guards if g.kind == kind]
        if wanted != [g[:5] for g in have]:
            wrong.append(f"the guards of kind {kind} differ")
    if any(g.kind not in kinds for g in g0.guards):
        wrong.append("a guard is neither required nor assumed")
    parameters = {p.parameter for p in r.pins.values() if not p.free}
    for name, leaf in r.leaves.items():
        mine = g0.leaves.get(name)
        if name in parameters:
            if leaf.kind != "pin" or mine is not None:
                wrong.append(f"{name} is no parameter")
        elif mine != leaf or type(mine.domain) is not type(leaf.domain):
            wrong.append(f"the input {name} is another in R")
    if set(r.knobs) != {n for n, leaf in g0.leaves.items() if leaf.kind == "knob"}:
        wrong.append("the knobs differ")
    detail = f"R has the {len(g0.points)} points and {len(g0.guards)} guards of G0"
    return Finding("shape", "failed" if wrong else "ok", "; ".join(wrong[:3]) or detail)


def assumptions(readings: Readings, judge: Judge) -> Finding:
    """R's assumes are those of the unpinned source. `judge` takes none of them as a premise."""
    given = [g for g in readings.g0.guards if g.kind == "assume"]
    verdicts: Counter[str] = Counter()
    wrong = []
    for guard, mine in zip(given, readings.r.assumes, strict=True):
        path, cond = (readings.real(guard.nodes[k]) for k in ("path", "cond"))
        theirs = readings.dag.true(readings.in_r(mine.nodes["real"]))
        verdict = judge.always(readings.dag.same(theirs, readings.holds(path, cond)))
        verdicts[verdict.how] += 1
        if not verdict.holds:
            wrong.append(f"`{guard.text}` differs for {shown(verdict.call)}")
    return summed("domain", verdicts, "assumes of R against G0", wrong)


def points(readings: Readings, judge: Judge) -> Finding:
    """Where the overwritten source returns, R gives its points."""
    returned = [
        readings.holds(readings.a(g.nodes["path"]), readings.a(g.nodes["cond"]))
        for g in readings.g0.guards
        if g.kind == "require"
    ]
    names = list(readings.g0.points)
    claims = [
        readings.dag.same(
            readings.in_r(readings.r.points[n].node), readings.a(readings.g0.points[n].node)
        )
        for n in names
    ]
    found = judge.each(claims, [returned] * len(claims))
    wrong = [
        f"{n} is another value for {shown(v.call)}"
        for n, v in zip(names, found, strict=True)
        if not v.holds
    ]
    verdicts = Counter(v.how for v in found)
    return summed("points", verdicts, "points of R against G0 with its pins overwritten", wrong)


def guards(readings: Readings, judge: Judge) -> Finding:
    """R's guards hold exactly where those of G0 do, in every reading.

    Guards before one that fails are what Python would have stopped at: the later ones may differ.
    """
    verdicts: Counter[str] = Counter()
    before: dict[str, list[int]] = {"pinned": [], "adaptive": [], "mixed": []}
    required = [g for g in readings.g0.guards if g.kind == "require"]
    texts, claims, under = [], [], []
    wrong = []
    for guard, mine in zip(required, readings.r.guards, strict=True):
        if readings.unseen(guard) is not mine.unseen:
            says = "is called unseen, but is not" if mine.unseen else "is unseen, but not called so"
            wrong.append(f"`{guard.text}` {says}")
        verdicts["unseen, as stated"] += mine.unseen
        for reading, copied in (
            ("pinned", readings.a),
            ("adaptive", readings.b),
            ("mixed", readings.mixed),
        ):
            if reading == "mixed" and not readings.needs_mixed(guard):
                continue
            path, cond = (copied(guard.nodes[k]) for k in ("path", "cond"))
            wanted = readings.holds(path, cond)
            claim = _claim(readings, mine, reading, wanted)
            if reading == "mixed":
                # what is taken from two readings may fit together nowhere: there it says nothing
                undefined = readings.dag.add("fail", ())
                for node in (path, cond):
                    nothing = readings.dag.same(node, undefined)
                    claim = readings.dag.add("select", (nothing, TRUE, claim))
            texts.append(f"`{guard.text}` differs ({reading})")
            claims.append(claim)
            under.append([*before[reading], *before["pinned"]])
            before[reading].append(wanted)
    found = judge.each(claims, under)
    verdicts += Counter(v.how for v in found)
    wrong += [f"{t} for {shown(v.call)}" for t, v in zip(texts, found, strict=True) if not v.holds]
    return summed("guards", verdicts, "readings of guards of R against G0", wrong)


def _claim(readings: Readings, mine: Guard, reading: str, wanted: int) -> int:
    """R's guard in a reading agrees with what it should be.

    R leaves out a reading that says nothing new: then the others imply it.
    """
    dag = readings.dag
    node = mine.nodes.get(reading)
    if node is not None:
        return dag.same(dag.true(readings.in_r(node)), wanted)
    others = [dag.true(readings.in_r(n)) for n in mine.nodes.values()]
    return dag.implies(others, wanted)
