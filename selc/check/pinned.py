"""What the certificate says of single pins: free ones, and the candidates of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from selc.check.certificate import Pin
from selc.check.dag import TRUE
from selc.check.decide import Judge, Verdict
from selc.check.findings import Finding, shown, summed
from selc.check.grid import at
from selc.check.readings import Readings
from selc.check.values import frozen, key, plain


def free(readings: Readings, judge: Judge) -> Finding:
    """The unpinned source gives the site of a free pin, wherever reached, what it is fixed to."""
    verdicts: Counter[str] = Counter()
    wrong = []
    pins = {n: p for n, p in readings.r.pins.items() if p.free}
    for name in pins:
        for mark in readings.site(name):
            value, path = readings.real(mark.node), readings.real(mark.path)
            claim = readings.dag.same(value, readings.fixed[name])
            verdict = judge.always(readings.dag.implies([path], claim))
            if not verdict.holds:
                earlier = [
                    readings.holds(readings.real(g.nodes["path"]), readings.real(g.nodes["cond"]))
                    for g in readings.g0.guards[: mark.after]
                ]
                verdict = judge.always(readings.dag.implies([path], claim), earlier)
            verdicts[verdict.how] += 1
            if not verdict.holds:
                wrong.append(f"{name} has another value for {shown(verdict.call)}")
    return summed("free pins", verdicts, f"{len(pins)} values that no batch moves", wrong)


def stated(readings: Readings, entries: list[dict[str, Any]]) -> Finding:
    """The pins of R are those that the manifest lists, with the same candidates and offers."""
    wrong = []
    listed = {entry["name"]: entry for entry in entries}
    if len(listed) != len(entries) or set(listed) != set(readings.r.pins):
        wrong.append("R has other pins")
    for name, pin in readings.r.pins.items():
        entry = listed.get(name)
        if entry is None:
            continue
        if entry["free"] is not pin.free:
            wrong.append(f"{name} is {'free' if pin.free else 'not free'} in R")
        if not pin.free and frozen(entry["offered"]) != frozen(plain(tuple(pin.offered))):
            wrong.append(f"{name} has other offers in R")
        if not pin.free and frozen(entry["candidates"]) != frozen(_listed(pin)):
            wrong.append(f"{name} has other candidates in R")
        leaf = readings.r.leaves.get(pin.parameter or "")
        if leaf is not None and not pin.free and not _covers(pin, leaf.domain):
            wrong.append(f"{name} ranges over other values in R")
    return Finding(
        "pins", "failed" if wrong else "ok", "; ".join(wrong[:3]) or f"{len(listed)} pins"
    )


def _listed(pin: Pin) -> Any:
    if isinstance(pin.candidates, range):
        span = pin.candidates
        return {"range": [span[0], span[-1], span.step], "exact": pin.exact}
    return plain(tuple(pin.candidates))


def _covers(pin: Pin, domain: Any) -> bool:
    mine = {key(v) for v in (*pin.candidates, *pin.offered)}
    return mine == {key(v) for v in domain}


def candidates(
    readings: Readings, judge: Judge, witnesses: Mapping[str, list[Mapping[str, Any] | None]]
) -> Finding:
    """Every listed candidate is taken by the call that the manifest names; no other value is."""
    verdicts: Counter[str] = Counter()
    wrong = []
    for name, pin in readings.r.pins.items():
        if pin.free or isinstance(pin.candidates, range):
            continue
        taken = _taken(readings, judge, name, pin, witnesses.get(name, []))
        if taken and pin.exact:
            wrong.append(taken)
        verdict = _complete(readings, judge, name, pin)
        verdicts[verdict.how] += 1
        if not verdict.holds:
            wrong.append(f"{name} also takes another value, for {shown(verdict.call)}")
    return summed("candidates", verdicts, "sets of values that sites take", wrong)


def _taken(
    readings: Readings,
    judge: Judge,
    name: str,
    pin: Pin,
    named: list[Mapping[str, Any] | None],
) -> str | None:
    dag = readings.dag
    if len(named) != len(pin.candidates):
        return f"{name}: not every candidate has a call that takes it"
    for value, call in zip(pin.candidates, named, strict=True):
        if call is None:
            return f"{name} = {value!r}: no call is named that takes it"
        if not _inside(readings, call):
            return f"{name} = {value!r}: the call named for it is outside the declared domain"
        seen: Any = None
        for mark in readings.site(name):
            path, node = readings.real(mark.path), readings.real(mark.node)
            earlier = [
                readings.holds(readings.real(g.nodes["path"]), readings.real(g.nodes["cond"]))
                for g in readings.g0.guards[: mark.after]
            ]
            reached = dag.both([*judge.premises, *earlier, path])
            if at(dag, reached, [call])[0] is True:
                seen = (at(dag, node, [call])[0],)
        if seen is None or key(seen[0]) != key(value):
            return f"{name} = {value!r}: {shown(call)} does not take it"
    return None


def _inside(readings: Readings, call: Mapping[str, Any]) -> bool:
    leaves = readings.g0.leaves
    return set(call) == set(leaves) and all(
        any(key(v) == key(call[n]) for v in leaf.domain)
        if isinstance(leaf.domain, tuple)
        else type(call[n]) is int and call[n] in leaf.domain
        for n, leaf in leaves.items()
    )


def _complete(readings: Readings, judge: Judge, name: str, pin: Pin) -> Verdict:
    """Whether the last mark that is reached has a listed value at every call."""
    dag = readings.dag
    worst = Verdict("proved")
    later: list[int] = []
    for mark in reversed(readings.site(name)):
        path, node = readings.real(mark.path), readings.real(mark.node)
        inside = dag.const(False)
        for value in pin.candidates:
            inside = dag.add("select", (dag.same(node, dag.const(value)), TRUE, inside))
        claim = dag.implies([path, *later], inside)
        earlier = [
            readings.holds(readings.real(g.nodes["path"]), readings.real(g.nodes["cond"]))
            for g in readings.g0.guards[: mark.after]
        ]
        verdict = judge.always(claim)
        if not verdict.holds:
            verdict = judge.always(claim, earlier)
        if not verdict.holds:
            return verdict
        if verdict.how == "sampled" or worst.how == "proved":
            worst = verdict
        later.append(dag.add("not", (dag.both([*earlier, path]),)))
    return worst
