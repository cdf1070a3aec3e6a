"""Questions about the relation of a certificate: what is left, why something is refused."""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from selc.check.certificate import read
from selc.check.decide import WORK, Judge
from selc.check.examine import seeds
from selc.check.grid import at, everywhere, work
from selc.check.readings import Readings
from selc.check.relation import Relation
from selc.check.values import UNDEF, Unreadable, frozen, plain

SAMPLES: Final = 16_384


@dataclass(frozen=True, slots=True)
class Joint:
    """Which values the pinned sites take together; `whole`: every call was looked at."""

    seen: frozenset[Hashable]
    whole: bool


class Questions:
    """The relation of one manifest. Names are those of pins and knobs, in its order.

    Raises:
        Unreadable: the manifest is no certificate of this format.
    """

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        try:
            self.readings = Readings(read(manifest["graph0"]), read(manifest["graph"]))
            self.relation = Relation(self.readings, manifest["factors"])
            self.pins = [p["name"] for p in manifest["pins"] if not p["free"]]
            self.names = [*self.pins, *(k["name"] for k in manifest["knobs"])]
            admits = [
                self.readings.dag.true(self.readings.in_r(g.nodes["real"]))
                for g in self.readings.r.assumes
            ]
            self.judge = Judge(self.readings.dag, admits, seeds(manifest, self.readings))
            self.guards = manifest["guards"]
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            raise Unreadable(f"an entry is missing or malformed ({error})") from error

    def spelt(self, name: str) -> str | None:
        """The pin or knob of that name, or whose last part it is."""
        if name in self.names:
            return name
        found = [n for n in self.names if n.rsplit(".", 1)[-1] == name]
        return found[0] if len(found) == 1 else None

    def parameter(self, name: str) -> str:
        """The parameter of a pin; a knob is one itself."""
        return self.relation.parameter(name) if name in self.pins else name

    def axis(self, name: str) -> list[Any]:
        """What a pin or knob may be, as JSON."""
        return [plain(v) for v in self.relation.axes[self.parameter(name)]]

    def place(self, name: str, text: str) -> int | None:
        """The position of a value, given as JSON, as Python spells it, or as a bare word."""
        found = (self.position(name, data) for data in _read(text))
        return next((place for place in found if place is not None), None)

    def position(self, name: str, data: Any) -> int | None:
        """The position of a value that is given as data of JSON."""
        wanted = frozen(data)
        return next((i for i, v in enumerate(self.axis(name)) if frozen(v) == wanted), None)

    def total(self) -> int:
        """How many assignments there are."""
        return self.relation.total()

    def count(self, fixed: Mapping[str, int]) -> int:
        """How many legal assignments have these positions."""
        return self.relation.count(self._fixed(fixed))

    def remaining(self, name: str, fixed: Mapping[str, int]) -> list[Any]:
        """The values that a pin or knob has in the legal assignments that are left."""
        left = self.relation.allowed([self.parameter(name)], self._fixed(fixed))
        axis = self.axis(name)
        return [axis[i] for (i,) in sorted(left)]

    def rows(self, fixed: Mapping[str, int], most: int | None) -> Iterator[list[Any]]:
        """The legal assignments that are left, columns as `names`."""
        order = [self.relation.names.index(self.parameter(n)) for n in self.names]
        for k, row in enumerate(self.relation.rows(self._fixed(fixed))):
            if most is not None and k >= most:
                return
            yield [plain(self.relation.axes[self.relation.names[c]][row[c]]) for c in order]

    def broken(self, fixed: Mapping[str, int]) -> dict[str, Any] | None:
        """A guard that these values alone break, with an admitted call."""
        readings = self.readings
        values = self.relation.values(list(self._fixed(fixed)), tuple(fixed.values()))
        leaves = {n: readings.dag.const(v) for n, v in values.items()}
        for entry, guard in zip(self.guards, readings.r.guards, strict=False):
            for reading, node in guard.nodes.items():
                read_by = {n for n in readings.r.reads(node) if n in self.relation.axes}
                if not read_by <= set(values):
                    continue
                holds = readings.dag.copy(readings.r, [node], {}, leaves)[0]
                verdict = self.judge.always(readings.dag.true(holds))
                if not verdict.holds:
                    call = {n: plain(v) for n, v in (verdict.call or {}).items()}
                    return {
                        "text": entry["text"],
                        "why": entry["why"],
                        "location": entry["location"],
                        "reading": reading,
                        "inputs": {n: call[n] for n in readings.g0.leaves if n in call},
                    }
        return None

    def witnessed(self, fixed: Mapping[str, int]) -> bool | None:
        """Whether one admitted call takes these values of all pins; None if it is not known."""
        if not set(self.pins) <= set(fixed):
            return None
        row = [self.axis(n)[i] for n, i in fixed.items()]
        ordered = dict(zip(fixed, row, strict=True))
        return self.seen(self.joint(), [ordered.get(n) for n in self.names])

    def seen(self, joint: Joint, row: list[Any]) -> bool | None:
        """Whether a row's pins were taken together."""
        if frozen(row[: len(self.pins)]) in joint.seen:
            return True
        return False if joint.whole else None

    def joint(self) -> Joint:
        """What the pinned sites take together, over the whole domain if that is small enough."""
        readings, dag = self.readings, self.readings.dag
        marks = [readings.site(p) for p in self.pins]
        sites = [readings.reached(m, {}, {}) for m in marks]
        holds = [
            readings.holds(readings.real(g.nodes["path"]), readings.real(g.nodes["cond"]))
            for g in readings.g0.guards
        ]
        together = dag.add("tuple", sites)
        returned = dag.both([*holds, *self.judge.premises])
        whole = dag.add("select", (returned, together, dag.const(None)))
        if work(dag, whole) <= 4 * WORK:
            values = [v for _, v in everywhere(dag, whole)]
            return Joint(_taken(values), True)
        return Joint(_taken(at(dag, whole, self.judge.calls(SAMPLES))), False)

    def _fixed(self, fixed: Mapping[str, int]) -> dict[str, int]:
        return {self.parameter(n): i for n, i in fixed.items()}


def _taken(values: Any) -> frozenset[Hashable]:
    return frozenset(frozen(plain(v)) for v in values if v is not None and v is not UNDEF)


def _read(text: str) -> Iterator[Any]:
    """What a value on a command line may mean, most literal first."""
    with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        yield _listed(ast.literal_eval(text))
    with contextlib.suppress(ValueError, RecursionError):
        yield json.loads(text)
    yield text


def _listed(value: Any) -> Any:
    """Python's tuples as JSON's lists, deep."""
    if isinstance(value, (tuple, list)):
        return [_listed(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _listed(v) for k, v in value.items()}
    return value
