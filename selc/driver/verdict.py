"""Whether the answer to a compilation is yes: legality, the committed tuple, required proofs."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from selc.diag.diagnostic import Diagnostic
from selc.diag.span import Span
from selc.diag.spelling import arguments, spelt
from selc.driver.describe import counterexample
from selc.ir.value import to_json

if TYPE_CHECKING:
    from selc.driver.pipeline import Decided
    from selc.driver.tuples import Committed
    from selc.ir.value import Value
    from selc.vra.verdict import GuardVerdict

SETTLED: Final = ("proved", "exhaustive")
MAX_SHOWN: Final = 4


def nothing_legal(decided: Decided) -> list[Diagnostic]:
    """SEL931, with an input for each guard that stands in the way."""
    found = decided.legality
    if found.legal and decided.committed is not None:
        return []
    if found.legal:
        knobs = ", ".join(f"`{k}` = {v!r}" for k, v in decided.program.settings.items())
        message = f"nothing is legal with the knobs at their initial settings ({knobs})"
        hint = f"{found.legal} assignments are legal with other settings; change `knobs:`"
        return [Diagnostic("SEL931", message, _place(decided, ()), help=hint)]
    from selc.driver.conflict import conflict, matter

    core = conflict(decided)
    culprits = [v for v in core if v.refuted and v.counterexample is not None]
    undecided = [v for v in core if v.unknown]
    notes = [_breaks(decided, v) for v in culprits] + [_open(decided, v) for v in undecided]
    read = sorted({name for v in core for name in matter(decided, v)})
    if len(core) > 1:
        notes.insert(
            0, f"these {len(core)} guards conflict; without any one of them, some are legal"
        )
    notes += [f"the inputs that matter: {', '.join(read)}"] if read else []
    many = f"none of the {found.assignments} assignments" if found.assignments > 1 else "no choice"
    return [
        Diagnostic(
            "SEL931",
            f"{many} of the pins is legal",
            _place(decided, (*culprits, *undecided)),
            notes=tuple(notes[: MAX_SHOWN + 2]),
            help="narrow the ranges, state a promise under `assume:`, or offer a pin another value",
        )
    ]


def wrong_tuple(decided: Decided, committed: Committed, selector: str) -> list[Diagnostic]:
    """Why a tuple does not hold for this selector; none if it does."""
    broken = _broken(decided, committed)
    if committed.selector is None or committed.selector == selector:
        return broken
    notes = [f"the file has {committed.selector}, this one is {selector}"]
    if not broken and decided.legality.legal:
        notes.append("its values are legal here, too")
    return [
        Diagnostic(
            "SEL933",
            f"the tuple of `{decided.program.family}` was made for another selector",
            committed.span,
            notes=tuple(notes),
            help="commit it again from this selector, after looking at what changed",
        ),
        *broken,
    ]


def _broken(decided: Decided, committed: Committed) -> list[Diagnostic]:
    """SEL937: the guards that a tuple breaks; where nothing is legal that is said already."""
    if decided.legality.legal == 0 or admits(decided, committed.values):
        return []
    broken = _single(decided, committed.values)
    names = {p.parameter: p.name for p in decided.residual.pins}
    values = {names.get(k, k): to_json(v) for k, v in committed.values.items()}
    shown = ", ".join(f"{name} = {spelt(value)}" for name, value in values.items())
    notes = [_breaks(decided, v) if v.counterexample else _open(decided, v) for v in broken]
    return [
        Diagnostic(
            "SEL937",
            f"the tuple is not legal: {shown}",
            committed.span,
            notes=tuple(notes[:MAX_SHOWN]),
            help="choose values that are legal together, or compile without --tuple",
        )
    ]


def unproved(decided: Decided) -> list[Diagnostic]:
    """SEL932: what keeps the answer from being proved."""
    weak = [v for v in decided.legality.guards if v.unknown or v.evidence == "sampled"]
    notes = []
    for v in weak[:MAX_SHOWN]:
        guard = decided.residual.guards[v.index].guard
        how = f"sampled at {v.points} points" if v.evidence == "sampled" else ""
        how = how or f"undecided for {v.unknown} assignments" + (
            f" ({v.budget})" if v.budget else ""
        )
        notes.append(f"`{guard.text}` (line {guard.span.line}): {how}")
    if not weak:
        return []
    count = f"{len(weak)} guards are" if len(weak) > 1 else "a guard is"
    return [
        Diagnostic(
            "SEL932",
            f"{count} not proved, and a proof was required",
            _place(decided, weak),
            notes=tuple(notes),
            help="narrow the ranges of what the guard reads, give a larger --solver-budget where "
            "solver steps were spent, or compile without --require-proof",
        )
    ]


def admits(decided: Decided, values: Mapping[str, Value]) -> bool:
    """Whether the relation holds an assignment."""
    from selc.ir.value import value_key

    for factor in decided.legality.factors:
        wanted = [value_key(values[name]) for name in factor.parameters]
        if not any([value_key(v) for v in row] == wanted for row in factor.rows):
            return False
    return True


def _single(decided: Decided, values: Mapping[str, Value]) -> list[GuardVerdict]:
    """The verdicts of the guards that one assignment breaks."""
    from selc.ir.domain import Domain
    from selc.vra.legality import legality

    residual = decided.residual
    graph = copy.copy(residual.graph)
    graph.inputs = {
        name: replace(leaf, domain=Domain(values=(values[name],))) if name in values else leaf
        for name, leaf in residual.graph.inputs.items()
    }
    alone = legality(replace(residual, graph=graph), rlimit=decided.legality.rlimit)
    return [v for v in alone.guards if v.refuted or v.unknown]


def _breaks(decided: Decided, verdict: GuardVerdict) -> str:
    shown = counterexample(decided, verdict.counterexample)
    assert shown is not None
    guard = decided.residual.guards[verdict.index].guard
    pins = ", ".join(f"{k} = {spelt(v)}" for k, v in shown["parameters"].items())
    inputs = arguments(shown["inputs"])
    where = f" with {pins}" if pins else ""
    return f"`{guard.text}` (line {guard.span.line}) fails{where} for {inputs or 'every input'}"


def _open(decided: Decided, verdict: GuardVerdict) -> str:
    guard = decided.residual.guards[verdict.index].guard
    spent = f" ({verdict.budget})" if verdict.budget else ""
    return (
        f"`{guard.text}` (line {guard.span.line}) is undecided for {verdict.unknown} "
        f"assignments{spent}; what is undecided is not legal"
    )


def _place(decided: Decided, verdicts: Iterable[GuardVerdict]) -> Span:
    """Where the first of some guards stands, or the first pin."""
    for verdict in verdicts:
        return decided.residual.guards[verdict.index].guard.span
    pins = decided.residual.pins
    return pins[0].site.span if pins else Span(decided.program.path, 1, 1, 1, 1)
