"""The arguments of a selector: its inputs, with a sequence in the place of what is read of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from selc.ir.domain import Input

if TYPE_CHECKING:
    from selc.ir.program import Program, SequenceInput
    from selc.ir.value import Value

AGGREGATES: Final[Mapping[str, Callable[[Sequence[int]], Value]]] = {
    "len": len,
    "min": min,
    "max": max,
    "sum": sum,
    "any": any,
    "all": all,
}


def arguments(program: Program) -> list[Input | SequenceInput]:
    """In the order of the parameters; knobs are none, aggregates stand for their sequence."""
    inside = {leaf for s in program.sequences.values() for leaf in s.aggregates.values()}
    found: list[tuple[int, Input | SequenceInput]] = [
        (place, leaf)
        for place, (name, leaf) in enumerate(program.graph.inputs.items())
        if leaf.kind != "knob" and name not in inside
    ]
    found += [(s.place - 1, s) for s in program.sequences.values()]
    return [each for _, each in sorted(found, key=lambda item: item[0])]


def aggregates_of(sequence: SequenceInput, values: Sequence[int]) -> dict[str, Value]:
    """What the graph reads of a concrete sequence, by input."""
    return {leaf: AGGREGATES[how](values) for how, leaf in sequence.aggregates.items()}


def admits(sequence: SequenceInput, values: object) -> bool:
    """Whether a value is a sequence of the declared length and elements."""
    return (
        isinstance(values, (list, tuple))
        and len(values) in sequence.length
        and all(v in sequence.element for v in values)
    )


def sequence_of(sequence: SequenceInput, read: Mapping[str, Value]) -> list[int]:
    """A sequence with the given aggregates (by function); they belong to some sequence."""
    numbers = {how: int(value) for how, value in read.items() if isinstance(value, int)}
    count = numbers.get("len", max(sequence.length.lo, min(1, sequence.length.hi)))
    low = numbers.get("min", sequence.element.lo if "sum" in numbers else None)
    high = numbers.get("max", sequence.element.hi if "sum" in numbers else None)
    low = (high if high is not None else sequence.element.lo) if low is None else low
    high = low if high is None else high
    ends = [numbers[how] for how in ("min", "max") if how in numbers][:count]
    rest = count - len(ends)
    if "sum" not in numbers or rest == 0:
        return [*ends, *[low] * rest]
    each, more = divmod(numbers["sum"] - sum(ends), rest)
    return [*ends, *[each + 1] * more, *[each] * (rest - more)]
