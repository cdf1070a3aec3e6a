"""What the certificate says of single pins: free ones, and the candidates of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from selc.check.certificate import Domain, Pin
from selc.check.dag import TRUE, Dag
from selc.check.decide import Judge, Verdict
from selc.check.findings import Finding, shown, summed
from selc.check.grid import at
from selc.check.readings import Readings
from selc.check.values import frozen, key, plain

LOOKED_UP: Final = 33
"""Values of a range for which a call is looked for."""


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
        if pin.free:
            continue
        if isinstance(pin.candidates, range):
            taken = _looked_up(readings, judge, name, pin, verdicts) if pin.exact else None
        else:
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


class _Place(NamedTuple):
    """A mark of a site: its value, what must hold for it to be reached, and to be the last."""

    node: int
    path: int
    earlier: list[int]
    last: list[int]


def _places(readings: Readings, name: str) -> Iterator[_Place]:
    """The marks of a site, the last first."""
    dag = readings.dag
    last: list[int] = []
    for mark in reversed(readings.site(name)):
        path, node = readings.real(mark.path), readings.real(mark.node)
        earlier = [
            readings.holds(readings.real(g.nodes["path"]), readings.real(g.nodes["cond"]))
            for g in readings.g0.guards[: mark.after]
        ]
        yield _Place(node, path, earlier, list(last))
        last.append(dag.add("not", (dag.both([*earlier, path]),)))


def _complete(readings: Readings, judge: Judge, name: str, pin: Pin) -> Verdict:
    """Whether the last mark that is reached has a listed value at every call."""
    worst = Verdict("proved")
    for place in _places(readings, name):
        inside = _among(readings.dag, place.node, pin.candidates)
        claim = readings.dag.implies([place.path, *place.last], inside)
        verdict = judge.always(claim)
        if not verdict.holds:
            verdict = judge.always(claim, place.earlier)
        if not verdict.holds:
            return verdict
        if verdict.how == "sampled" or worst.how == "proved":
            worst = verdict
    return worst


def _among(dag: Dag, node: int, values: Domain) -> int:
    """Whether a node has one of the values."""
    if isinstance(values, range):
        low, high, step = (dag.const(v) for v in (values[0], values[-1], values.step))
        place = dag.add("mod", (dag.add("sub", (node, low)), step))
        integer = dag.same(dag.add("int", (node,)), node)  # and no boolean
        inside = (dag.add("le", (low, node)), dag.add("le", (node, high)))
        return dag.both([integer, *inside, dag.same(place, dag.const(0))])
    out = dag.const(False)
    for value in values:
        out = dag.add("select", (dag.same(node, dag.const(value)), TRUE, out))
    return out


def _looked_up(
    readings: Readings, judge: Judge, name: str, pin: Pin, verdicts: Counter[str]
) -> str | None:
    """Whether some call takes each value of a range; only some are looked at in a long one."""
    dag, span = readings.dag, pin.candidates
    chosen = sorted({k * (len(span) - 1) // (LOOKED_UP - 1) for k in range(LOOKED_UP)})
    verdicts["sampled"] += len(chosen) < len(span)
    for value in (span[k] for k in chosen):
        hows = []
        for place in _places(readings, name):
            there = [place.path, *place.last, dag.same(place.node, dag.const(value))]
            claim = dag.add("not", (dag.both(there),))
            hows.append(judge.always(claim, place.earlier).how)
        if all(how in ("proved", "exhaustive") for how in hows):
            return f"{name} never takes {value!r}"
        verdicts["sampled"] += "refuted" not in hows
    return None
