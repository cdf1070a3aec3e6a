"""Which configurations are compared, on which launches, and what stays fixed meanwhile."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused, Sink
from selc.diag.files import Files
from selc.diag.suggest import did_you_mean
from selc.harness.bits.batch import Cell
from selc.harness.bits.launch import relevant
from selc.harness.call import Call, Request
from selc.harness.selector import Selector
from selc.harness.setup import usage

MOST: Final = 256
"""Configurations. Each runs at least twice on every batch."""
TUPLES: Final = 512
SHAPES: Final = {False: 8, True: 2}
"""Batches of each group of a battery's cells, also for a quick run."""
VALUES: Final = {False: 64, True: 8}
"""Values near thresholds, one batch each."""
GROUPS: Final = ("repeat", "size", "mixed", "threshold", "lengths", "companions")
STEP: Final = 100_000
"""Between the seeds of a request in one round and the next."""

Member = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A batch with a watched request, and that request alone."""

    inputs: Mapping[str, Any]
    batch: tuple[Request, ...]
    at: int
    alone: Request
    extra: Mapping[str, Any] = field(default_factory=dict)

    def round(self, seed: int) -> Shape:
        """The same lengths with other data."""
        return replace(
            self,
            batch=tuple(replace(r, seed=r.seed + STEP * seed) for r in self.batch),
            alone=replace(self.alone, seed=self.alone.seed + STEP * seed),
        )


def shapes_of(
    cells: Iterable[Cell],
    calls: Sequence[Call],
    quick: bool,
    at: Callable[[Sequence[Request]], Mapping[str, Any]],
) -> list[Shape]:
    """Batches of a battery's cells, spread evenly, and one of each size that a profile has.

    `at` gives the selector's inputs for a batch.
    """
    by_group: dict[str, dict[Any, list[Cell]]] = {}
    for cell in cells:
        plain = not (cell.obstacle or cell.extra or cell.given)
        if plain and cell.kind in GROUPS and cell.probe.magnitude == "normal":
            value = cell.detail.rpartition("-")[0] if cell.kind == "threshold" else cell.batch
            by_group.setdefault(cell.kind, {}).setdefault(value, []).append(cell)
    found: dict[tuple[Request, ...], Shape] = {}
    for kind, group in by_group.items():
        most = VALUES[quick] if kind == "threshold" else SHAPES[quick]
        for k, alike in enumerate(spread(list(group.values()), most)):
            cell = alike[k % len(alike)]
            shape = Shape(at(cell.batch), cell.batch, cell.at, cell.probe.request())
            found.setdefault(cell.batch, shape)
    sizes = set()
    for call in calls:
        size = (call.rows, len(call.requests))
        if size not in sizes and call.requests:
            sizes.add(size)
            extra = {k: v for k, v in call.extra.items() if k != "requests"}
            shape = Shape(call.inputs, call.requests, 0, call.requests[0], extra)
            found.setdefault(call.requests, shape)
    return list(found.values())


def fields_of(selector: Selector, kernels: Any, given: Sequence[str]) -> tuple[str, ...]:
    """The fields that were named; by default all that the batch moves and that set bits.

    Raises:
        Refused: a name is no point that is chosen, or there are none.
    """
    points = {p["name"]: p for p in selector.manifest["points"]}
    if not given:
        moved = [n for n, p in points.items() if p["role"] == "bits" and p["batch_dependent"]]
        given = list(relevant(kernels, dict.fromkeys(n for n in moved if n[:6] != "class.")))
        if not given:
            raise usage("no bits point moves with the batch", "name fields with `--fields`")
    for name in given:
        if name not in points:
            hint = did_you_mean(name, list(points)) or f"the points are {', '.join(points)}"
            raise usage(f"the selection has no point `{name}`", hint)
        if points[name]["role"] == "aux" or name.startswith("class."):
            raise usage(f"`{name}` is no choice of a kernel", "leave it out of `--fields`")
    if len(set(given)) != len(given):
        raise usage("a field is named twice in `--fields`")
    return tuple(given)


def given_of(
    selector: Selector,
    kernels: Any,
    fields: Sequence[str],
    stated: Mapping[str, Any],
    bases: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """What the partition holds under: the other points that set bits and that the kernels read.

    Raises:
        Refused: one was not stated and the tuple leaves it to the batch or the request.
    """
    bits = [p["name"] for p in selector.manifest["points"] if p["role"] == "bits"]
    for name in stated:
        if name not in bits or name in fields:
            raise usage(
                f"`--given {name}` is no other bits point",
                f"there are {', '.join(b for b in bits if b not in fields) or 'none'}",
            )
    out = dict(stated)
    others = [n for n in bits if n not in fields and n not in stated and n[:6] != "class."]
    for name in relevant(kernels, dict.fromkeys(others)):
        values = {typed((base[name],)) for base in bases}
        if len(values) != 1:
            raise usage(
                f"`{name}` sets bits too, and the tuple does not fix it",
                f"give it with `--given {name}=VALUE`, or add it to `--fields`",
            )
        out[name] = bases[0][name]
    for name, value in out.items():
        if not _plain(value):
            raise usage(f"`{name}` is {value!r}, which a partition cannot hold")
    return out


def from_selector(
    selector: Selector, fields: Sequence[str], inputs: Sequence[Mapping[str, Any]]
) -> list[Member]:
    """Every configuration that some legal tuple, or no tuple, gives to one of some calls.

    Raises:
        Refused: there are too many.
    """
    found: dict[Any, Member] = {}
    for tuple_ in (None, *itertools.islice(selector.tuples(), TUPLES)):
        for call in inputs:
            try:
                choice = selector.stock(call) if tuple_ is None else selector.choice(tuple_, call)
            except Refused:
                continue
            member = tuple(choice[f] for f in fields)
            found.setdefault(typed(member), member)
    return _checked(found.values(), fields)


def from_file(path: Path, fields: Sequence[str]) -> list[Member]:
    """Configurations as a JSON list: mappings by field, or lists in the order of the fields.

    Raises:
        Refused: it is something else.
    """
    sink = Sink()
    text = Files(sink).read(path, "configurations")
    if sink.has_errors:
        raise Refused(*sink)
    hint = f'write [{{"{fields[0]}": VALUE, ...}}, ...], or lists in the order of --fields'
    try:
        data = json.loads(text or "")
    except ValueError as error:
        raise usage(f"`{path}` is not JSON: {error}", hint) from None
    found: dict[Any, Member] = {}
    for each in data if isinstance(data, list) else [None]:
        if isinstance(each, dict) and set(each) == set(fields):
            member = tuple(each[f] for f in fields)
        elif isinstance(each, list) and len(each) == len(fields):
            member = tuple(each)
        else:
            raise usage(f"`{path}` holds {json.dumps(each)[:60]}, no configuration", hint)
        found.setdefault(typed(member), member)
    return _checked(found.values(), fields)


def typed(member: Member) -> tuple[tuple[str, Any], ...]:
    """A key that orders members and tells 1 from True."""
    return tuple((type(v).__name__, 0 if v is None else v) for v in member)


def spread(items: Sequence[Any], most: int) -> list[Any]:
    """At most so many of some items, first and last included."""
    if len(items) <= most:
        return list(items)
    return [items[i * (len(items) - 1) // (most - 1)] for i in range(most)]


def _checked(members: Iterable[Member], fields: Sequence[str]) -> list[Member]:
    out = sorted(members, key=typed)
    if len(out) > MOST:
        raise usage(
            f"there are {len(out)} configurations of {', '.join(fields)}; {MOST} are compared",
            "choose some with `--configs FILE.json`",
        )
    for member in out:
        for name, value in zip(fields, member, strict=True):
            if not _plain(value):
                raise usage(f"`{name}` is {value!r}, which a partition cannot hold")
    if len(out) < 1:
        raise Refused(Diagnostic("SEL955", "there is no configuration to compare"))
    return out


def _plain(value: Any) -> bool:
    return value is None or type(value) in (bool, int, str)
