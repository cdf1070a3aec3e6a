"""What the driver reports of its own: an empty domain, guards that nothing can repair, warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from selc.diag.diagnostic import Diagnostic, Refused, Severity, Sink
from selc.diag.span import Span
from selc.driver import rows

if TYPE_CHECKING:
    from selc.driver.pipeline import Decided
    from selc.ir.program import Program
    from selc.ir.residual import Residual
    from selc.vra.verdict import Legality


def empty_domain(program: Program) -> Diagnostic:
    """No input is admitted."""
    top = Span(program.path, 1, 1, 1, 1)
    where = next((g.span for g in program.guards if g.kind == "assume"), top)
    message = "no declared input satisfies every `assume`"
    hint = "widen the inputs' ranges, or drop an `assume`"
    return Diagnostic("SEL921", message, where, help=hint)


def pin_free(program: Program, residual: Residual, found: Legality) -> None:
    """A guard that reads no pin and fails is an error of the source or of the facts.

    One that reads a pin in the source, and fails whatever the pin is, leaves nothing legal instead.

    Raises:
        Refused: there is one, shown with an input on which it fails.
    """
    marks = {m.node.id for p in residual.pins if not p.free for m in program.sites[p.name].marks}
    wrong = []
    for failure in found.pin_free_failures:
        guard = residual.guards[failure.index].guard
        if marks & {n.id for n in program.graph.cone([guard.path, guard.cond])}:
            continue
        inputs = ", ".join(f"{k}={v!r}" for k, v in failure.inputs.items())
        message = f"`{guard.text}` does not hold on an admitted input: {inputs}"
        hint = "narrow the inputs' range, or state the condition under `assume:`"
        wrong.append(Diagnostic("SEL920", message, guard.span, label=guard.why, help=hint))
    if wrong:
        raise Refused(*wrong)


def too_large(program: Program) -> Diagnostic:
    """The guards tie too many pins together."""
    top = Span(program.path, 1, 1, 1, 1)
    message = "the legal assignments of the pins and knobs are too many to be counted"
    hint = "fix knobs with `{fixed: ...}`, or split the guard that reads most pins"
    return Diagnostic("SEL938", message, top, help=hint)


def warn(decided: Decided, whole_rows: bool, sink: Sink) -> None:
    """Guards that may hold vacuously, and rows of tables that the cut tears."""
    for each in decided.residual.guards:
        if each.unseen:
            text = each.guard.text
            message = f"`{text}` may hold only because a pin hides what it reads"
            hint = "state the condition over the choice, as a `require:` on `result`"
            sink.add(Diagnostic("SEL942", message, each.guard.span, Severity.WARNING, help=hint))
    torn = None if whole_rows else rows.split(decided.program, decided.residual)
    if torn is not None:
        pinned, adaptive, span = torn
        message = f"the pins fix {pinned} of a table's row while {adaptive} still follow the batch"
        hint = "pin whole rows with --whole-rows if a row is only tuned as a whole"
        sink.add(Diagnostic("SEL941", message, span, Severity.WARNING, help=hint))
