"""The relation of legal assignments: its factors, what they join to, and that guards agree.

Every assignment that the relation allows keeps every guard true on the whole domain, and every one
that it refuses breaks some guard at some admitted call.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from selc.check.dag import TRUE
from selc.check.decide import Judge
from selc.check.findings import Finding, shown, summed
from selc.check.grid import at
from selc.check.readings import Readings
from selc.check.values import Unreadable, frozen, plain

MOST: Final = 200_000
"""Partial assignments of one group of parameters that are kept apart."""

Row = tuple[int, ...]


class Group:
    """Parameters that factors tie together: a natural join, gone through column by column.

    What has been chosen is forgotten once no factor to come reads it, so that chains of small
    factors stay cheap however many assignments they allow.
    """

    def __init__(
        self,
        names: Sequence[str],
        sizes: Mapping[str, int],
        factors: Sequence[tuple[tuple[str, ...], frozenset[Row]]],
    ) -> None:
        self.names = tuple(names)
        self.sizes = sizes
        place = {n: k for k, n in enumerate(self.names)}
        self.ending: list[list[tuple[tuple[str, ...], frozenset[Row]]]] = [[] for _ in names]
        last = dict.fromkeys(self.names, -1)
        for over, rows in factors:
            end = max(place[n] for n in over)
            self.ending[end].append((over, rows))
            for n in over:
                last[n] = max(last[n], end)
        self.live = [[n for n in self.names[:k] if last[n] >= k] for k in range(len(self.names))]

    def count(self, fixed: Mapping[str, int]) -> int:
        """How many allowed assignments have these positions."""
        return self._count(0, {}, fixed, {})

    def _count(
        self,
        k: int,
        chosen: dict[str, int],
        fixed: Mapping[str, int],
        known: dict[tuple[int, ...], int],
    ) -> int:
        if k == len(self.names):
            return 1
        state = (k, *(chosen[n] for n in self.live[k]))
        if state not in known:
            if len(known) > MOST:
                raise Unreadable(f"the relation over {', '.join(self.names)} is too large")
            name = self.names[k]
            total = 0
            for i in [fixed[name]] if name in fixed else range(self.sizes[name]):
                chosen[name] = i
                if all(tuple(chosen[n] for n in over) in rows for over, rows in self.ending[k]):
                    total += self._count(k + 1, chosen, fixed, known)
            del chosen[name]
            known[state] = total
        return known[state]


class Relation:
    """The factors of a manifest over the axes of R's parameters."""

    def __init__(self, readings: Readings, factors: Sequence[Mapping[str, Any]]) -> None:
        self.readings = readings
        pins = sorted(p.parameter or "" for p in readings.r.pins.values() if not p.free)
        self.names = [*pins, *sorted(readings.r.knobs)]
        self.axes = {n: list(readings.dag.domains[n]) for n in self.names}
        self.places = {
            n: {frozen(plain(v)): i for i, v in enumerate(axis)} for n, axis in self.axes.items()
        }
        self.factors = [self._factor(f) for f in factors]
        self.groups = list(self._groups())

    def parameter(self, pin: str) -> str:
        """The parameter of a pin."""
        found = self.readings.r.pins.get(pin)
        if found is None or found.parameter is None:
            raise Unreadable(f"R has no parameter for {pin}")
        return found.parameter

    def _factor(self, factor: Mapping[str, Any]) -> tuple[tuple[str, ...], frozenset[Row]]:
        names = tuple(factor["parameters"])
        if not set(names) <= set(self.names) or len(set(names)) != len(names):
            raise Unreadable(f"a factor over {names}, which are not the parameters of R")
        return names, frozenset(self.row(names, row) for row in factor["rows"])

    def row(self, names: Sequence[str], row: Sequence[Any]) -> Row:
        """Values as positions on the axes."""
        try:
            return tuple(self.places[n][frozen(v)] for n, v in zip(names, row, strict=True))
        except (KeyError, ValueError):
            raise Unreadable(f"{list(row)} are no values of {', '.join(names)}") from None

    def _groups(self) -> Iterator[Group]:
        """The connected parameters, each with their factors."""
        sizes = {n: len(axis) for n, axis in self.axes.items()}
        left = set(self.names)
        for first in self.names:
            if first not in left:
                continue
            tied = {first}
            while True:
                more = {n for names, _ in self.factors if tied & set(names) for n in names}
                if more <= tied:
                    break
                tied |= more
            left -= tied
            mine = [f for f in self.factors if set(f[0]) & tied]
            yield Group([n for n in self.names if n in tied], sizes, mine)

    def cells(self, names: Sequence[str]) -> Iterator[Row]:
        """Every assignment of some parameters, as positions."""
        return itertools.product(*(range(len(self.axes[n])) for n in names))

    def count(self, fixed: Mapping[str, int] | None = None) -> int:
        """How many assignments are allowed, with some positions fixed."""
        if any(not over and not rows for over, rows in self.factors):
            return 0
        return math.prod(g.count(fixed or {}) for g in self.groups)

    def total(self) -> int:
        """How many assignments there are."""
        return math.prod(len(axis) for axis in self.axes.values())

    def allowed(self, names: Sequence[str], fixed: Mapping[str, int] | None = None) -> set[Row]:
        """What is left for some parameters: positions that occur in an allowed assignment."""
        rest = dict(fixed or {})
        free = [n for n in names if n not in rest]
        out = set()
        for cell in self.cells(free):
            place = {**rest, **dict(zip(free, cell, strict=True))}
            if self.count(place):
                out.add(tuple(place[n] for n in names))
        return out

    def rows(self, fixed: Mapping[str, int] | None = None) -> Iterator[Row]:
        """Allowed assignments of all parameters, in the order of the axes."""
        yield from self._rows({}, dict(fixed or {}))

    def _rows(self, chosen: dict[str, int], fixed: Mapping[str, int]) -> Iterator[Row]:
        if len(chosen) == len(self.names):
            yield tuple(chosen[n] for n in self.names)
            return
        name = self.names[len(chosen)]
        for i in [fixed[name]] if name in fixed else range(len(self.axes[name])):
            if self.count({**fixed, **chosen, name: i}):
                yield from self._rows({**chosen, name: i}, fixed)

    def values(self, names: Sequence[str], row: Row) -> dict[str, Any]:
        """Positions as values."""
        return {n: self.axes[n][i] for n, i in zip(names, row, strict=True)}


def stated(relation: Relation, manifest: Mapping[str, Any]) -> Finding:
    """Counts, rows, projections and the tuple of the manifest are those of its factors."""
    wrong = []
    legal = manifest["legal"]
    if (legal["assignments"], legal["legal"]) != (relation.total(), relation.count()):
        wrong.append(
            f"{relation.count()} of {relation.total()} are allowed, the manifest says "
            f"{legal['legal']} of {legal['assignments']}"
        )
    rows = manifest["relation"]
    if rows is None:
        if relation.count() <= 4096:
            wrong.append("the rows are left out")
    else:
        order = [relation.parameter(p["name"]) for p in manifest["pins"] if not p["free"]]
        order += [k["name"] for k in manifest["knobs"]]
        have = {relation.row(order, row) for row in rows}
        wanted = {tuple(row[relation.names.index(n)] for n in order) for row in relation.rows()}
        if len(have) != len(rows) or have != wanted:
            wrong.append("the rows are not those that the factors allow")
    for entry in manifest["pins"]:
        if entry["free"]:
            continue
        name = relation.parameter(entry["name"])
        axis = relation.axes[name]
        left = sorted(i for (i,) in relation.allowed([name]))
        if frozen(entry["legal"]) != frozen([plain(axis[i]) for i in left]):
            wrong.append(f"other values of {entry['name']} are legal")
    wrong += _tuple(relation, manifest)
    detail = f"{relation.count()} of {relation.total()} assignments are legal"
    return Finding("relation", "failed" if wrong else "ok", "; ".join(wrong[:3]) or detail)


def _tuple(relation: Relation, manifest: Mapping[str, Any]) -> list[str]:
    chosen = manifest["tuple"]
    if chosen is None:
        return [] if relation.count() == 0 else ["there is no tuple, although some are legal"]
    settings = {k["name"]: k["setting"] for k in manifest["knobs"]}
    pins = {p["name"]: p for p in manifest["pins"] if not p["free"]}
    if set(chosen) != set(pins):
        return ["the tuple names other pins"]
    for name, entry in pins.items():
        if frozen(entry["default"]) != frozen(chosen[name]):
            return [f"the default of {name} is not in the tuple"]
    values = {**settings, **{relation.parameter(n): v for n, v in chosen.items()}}
    row = relation.row(relation.names, [values[n] for n in relation.names])
    legal = relation.count(dict(zip(relation.names, row, strict=True)))
    return [] if legal else ["the tuple in force is not legal"]


def allowed(readings: Readings, relation: Relation, judge: Judge) -> Finding:
    """Every guard, in every reading, holds for every assignment that the relation allows."""
    verdicts: Counter[str] = Counter()
    wrong = []
    for guard in readings.r.guards:
        for reading, node in guard.nodes.items():
            names = [n for n in readings.r.reads(node) if n in relation.axes]
            names.sort(key=relation.names.index)
            for row in sorted(relation.allowed(names)):
                values = relation.values(names, row)
                leaves = {n: readings.dag.const(v) for n, v in values.items()}
                holds = readings.dag.copy(readings.r, [node], {}, leaves)[0]
                verdict = judge.always(readings.dag.true(holds))
                verdicts[verdict.how] += 1
                if not verdict.holds:
                    call = shown({**values, **(verdict.call or {})})
                    wrong.append(f"`{guard.text}` fails ({reading}) for {call}")
    return summed("legal", verdicts, "guards under allowed assignments", wrong)


def refused(
    readings: Readings,
    relation: Relation,
    judge: Judge,
    guards: Sequence[Mapping[str, Any]],
    known: Sequence[Mapping[str, Any]],
) -> Finding:
    """Every cell that a factor refuses breaks some guard at some admitted call."""
    verdicts: Counter[str] = Counter()
    wrong = []
    undecided = any(g["evidence"] == "unknown" for g in guards)
    for names, rows in relation.factors:
        cells = [c for c in relation.cells(names) if c not in rows]
        nodes = _judged(readings, relation, names)
        left = _found(readings, relation, names, nodes, cells, judge, known)
        verdicts["refused by a call"] += len(cells) - len(left)
        for cell in left:
            values = relation.values(names, cell)
            how = _searched(readings, values, nodes, judge)
            verdicts[how if how != "unknown" or not undecided else "undecided, as stated"] += 1
            if how == "proved" or (how == "unknown" and not undecided):
                wrong.append(f"nothing speaks against {shown(values)}")
    return summed("refused", verdicts, "assignments that the factors refuse", wrong)


def _judged(readings: Readings, relation: Relation, names: Sequence[str]) -> list[int]:
    """The readings of guards that read some of these parameters and no others."""
    out = []
    for guard in readings.r.guards:
        for node in guard.nodes.values():
            read = {n for n in readings.r.reads(node) if n in relation.axes}
            if read <= set(names):
                out.append(node)
    return out


def _found(
    readings: Readings,
    relation: Relation,
    names: Sequence[str],
    nodes: Sequence[int],
    cells: Sequence[Row],
    judge: Judge,
    known: Sequence[Mapping[str, Any]],
) -> list[Row]:
    """The cells that no call at hand refuses; calls that refuse one are tried on the others."""
    pool = [*known, *judge.admitted(256)]
    others = {n: axis[0] for n, axis in relation.axes.items()}
    holds = readings.dag.both([readings.dag.true(readings.in_r(n)) for n in nodes])
    admits = readings.dag.both(judge.premises)
    left = []
    for cell in cells:
        values = relation.values(names, cell)
        calls = [{**others, **c, **values} for c in pool]
        fine = at(readings.dag, holds, calls)
        inside = at(readings.dag, admits, calls)
        if not any(f is not True and i is True for f, i in zip(fine, inside, strict=True)):
            left.append(cell)
    return left


def _searched(
    readings: Readings, values: Mapping[str, Any], nodes: Sequence[int], judge: Judge
) -> str:
    """Looks for a call that refuses an assignment; `proved` says that there is none."""
    leaves = {n: readings.dag.const(v) for n, v in values.items()}
    result = "proved"
    for node in nodes:
        holds = readings.dag.copy(readings.r, [node], {}, leaves)[0]
        if holds == TRUE:
            continue
        verdict = judge.always(readings.dag.true(holds))
        if not verdict.holds:
            return "refused by search"
        if verdict.how == "sampled":
            result = "unknown"
    return result


def shown_calls(
    readings: Readings,
    relation: Relation,
    judge: Judge,
    manifest: Mapping[str, Any],
    example: Mapping[str, Any],
    known: Sequence[Mapping[str, Any] | None],
) -> Finding:
    """The example is accepted under the tuple, and every counterexample breaks its guard."""
    dag, r = readings.dag, readings.r
    admits = dag.both(judge.premises)
    wrong = []
    others = {n: axis[0] for n, axis in relation.axes.items()}
    shown_by = zip(manifest["guards"], [*r.guards, *r.assumes], known, strict=True)
    count = 0
    for entry, guard, inputs in shown_by:
        if inputs is None:
            continue
        count += 1
        stated_as = entry["counterexample"]
        names = list(stated_as["parameters"])
        row = relation.row(names, [stated_as["parameters"][n] for n in names])
        call = {**others, **inputs, **relation.values(names, row)}
        node = guard.nodes.get(stated_as["reading"])
        breaks = node is not None and at(dag, dag.true(readings.in_r(node)), [call])[0] is not True
        if not breaks or at(dag, admits, [call])[0] is not True:
            wrong.append(f"{shown(call)} does not break `{guard.text}`")
    if manifest["tuple"] is not None:
        values = {k["name"]: k["setting"] for k in manifest["knobs"]}
        values.update({relation.parameter(n): v for n, v in manifest["tuple"].items()})
        row = relation.row(relation.names, [values[n] for n in relation.names])
        call = {**others, **example, **relation.values(relation.names, row)}
        nodes = [dag.true(readings.in_r(n)) for g in r.guards for n in g.nodes.values()]
        count += 1
        if at(dag, dag.both([*judge.premises, *nodes]), [call])[0] is not True:
            wrong.append(f"the example {shown(example)} is not accepted")
    detail = f"{count} calls do what they are shown for"
    return Finding("calls", "failed" if wrong else "ok", "; ".join(wrong[:3]) or detail)
