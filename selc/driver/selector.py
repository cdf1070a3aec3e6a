"""What the code generator is told of a decided selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from selc.driver.arguments import arguments
from selc.driver.describe import (
    fixed_points,
    knob_order,
    legal_values,
    pins_in_order,
    setting_of,
    type_of,
)
from selc.ir.domain import Input

if TYPE_CHECKING:
    from selc.codegen.spec import Argument, Factor, PinSpec, SelectorSpec
    from selc.driver.pipeline import Decided
    from selc.ir.program import SequenceInput
    from selc.ir.residual import Pin


def specification(
    decided: Decided, manifest: Mapping[str, Any], texts: Mapping[str, str]
) -> SelectorSpec:
    """What the code generator needs; `texts` are further files to write, by name.

    Bit classes are no fields of the record that is emitted: the source does not return them.
    """
    from selc import __version__
    from selc.codegen.spec import KnobSpec, SelectorSpec

    program, inputs = decided.program, decided.program.graph.inputs
    virtual = program.virtual
    verdicts = {v.index: v.evidence for v in decided.legality.guards}
    return SelectorSpec(
        program=replace(program, points=[p for p in program.points if p.name not in virtual]),
        residual=replace(
            decided.residual,
            points=[(p, n) for p, n in decided.residual.points if p.name not in virtual],
        ),
        arguments=tuple(_argument(each) for each in arguments(program)),
        pins=tuple(_pin(decided, pin) for pin in pins_in_order(decided)),
        knobs=tuple(
            KnobSpec(name, tuple(inputs[name].domain), setting_of(decided, name))
            for name in knob_order(decided)
        ),
        evidence=tuple(verdicts[i] for i in range(len(decided.residual.guards))),
        factors=_factors(decided),
        default=decided.committed,
        manifest=manifest,
        header=f"selc {__version__}\n{program.target}",
        texts=texts,
    )


def _argument(each: Input | SequenceInput) -> Argument:
    from selc.codegen.spec import Argument, Sequence

    if isinstance(each, Input):
        return Argument(each.name, each.kind, each.domain)
    read = Sequence(each.length, each.element, tuple(each.aggregates.items()))
    return Argument(each.name, each.kind, sequence=read)


def _pin(decided: Decided, pin: Pin) -> PinSpec:
    from selc.codegen.spec import PinSpec

    known = pin.candidates.values or ()
    start = pin.constant
    if pin.parameter is not None:
        start = None if decided.committed is None else decided.committed[pin.parameter]
    return PinSpec(
        name=pin.name,
        parameter=pin.parameter,
        type=type_of(known + pin.offered),
        candidates=known,
        legal=legal_values(decided, pin),
        offered=pin.offered,
        default=start,
        free=pin.free,
        location=pin.site.span,
        fixes=tuple([n for n in fixed_points(decided, pin) if n not in decided.program.virtual]),
    )


def _factors(decided: Decided) -> tuple[Factor, ...]:
    from selc.codegen.spec import Factor

    out = []
    for factor in decided.legality.factors:
        names = set(factor.parameters)
        guards = tuple(
            v.index for v in decided.legality.guards if v.parameters and set(v.parameters) <= names
        )
        out.append(Factor(factor.parameters, factor.rows, guards))
    if not decided.legality.legal and all(f.rows for f in out):
        out.append(Factor((), ()))
    return tuple(out)
