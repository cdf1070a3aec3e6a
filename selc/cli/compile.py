"""`selc compile`."""

from __future__ import annotations

from pathlib import Path

import click

from selc.cli.output import format_option, write
from selc.cli.source import SourceCommand, facts_option, root_option
from selc.driver.options import ARTIFACTS, DEFAULT_ARTIFACTS, CompileOptions
from selc.vra.budget import SOLVER_STEPS


def _emit(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    for name in names:
        if name not in ARTIFACTS:
            from selc.diag.suggest import did_you_mean

            hint = did_you_mean(name, ARTIFACTS) or f"choose from {', '.join(ARTIFACTS)}"
            raise click.BadParameter(f"`{name}` is nothing that can be emitted; {hint}")
    return names


@click.command(
    "compile",
    cls=SourceCommand,
    short_help="Compile a selection into a batch-independent selector.",
)
@click.argument("target")
@facts_option
@root_option
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the selector goes.  [default: build/FAMILY_selector]",
)
@click.option(
    "--tuple",
    "tuple_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Tuple file: the values of the pins and the settings of the knobs.",
)
@click.option(
    "--profile",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Profile of a workload (JSON lines); chooses the default tuple.",
)
@click.option(
    "--emit",
    default=",".join(DEFAULT_ARTIFACTS),
    show_default=True,
    callback=_emit,
    metavar="LIST",
    help=f"What to write, separated by commas: {', '.join(ARTIFACTS)}.",
)
@click.option("--no-native", is_flag=True, help="Do not build the native extension.")
@click.option(
    "--max-candidates",
    type=click.IntRange(min=1),
    default=1024,
    show_default=True,
    help="Values with more candidates cannot be pins.",
)
@click.option(
    "--solver-budget",
    type=click.IntRange(min=1),
    default=SOLVER_STEPS,
    show_default=True,
    metavar="STEPS",
    help="Solver steps for one assignment of a guard; what is undecided then is not legal.",
)
@click.option("--whole-rows", is_flag=True, help="Pin the rows of tables as a whole.")
@click.option("--skip", multiple=True, metavar="PASS", help="Leave out a pass. May be repeated.")
@click.option("--require-proof", is_flag=True, help="Exit 1 unless every guard is proved.")
@click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")
@click.option(
    "--emit-after", metavar="PASS", help="Also write the graph after this pass (or `all`)."
)
@format_option
@click.pass_context
def compile_command(
    ctx: click.Context,
    target: str,
    facts: tuple[Path, ...],
    roots: tuple[Path, ...],
    out: Path | None,
    tuple_file: Path | None,
    profile: Path | None,
    emit: tuple[str, ...],
    no_native: bool,
    max_candidates: int,
    solver_budget: int,
    whole_rows: bool,
    skip: tuple[str, ...],
    require_proof: bool,
    no_cache: bool,
    emit_after: str | None,
    output_format: str,
) -> None:
    """Compile TARGET into a selector whose choices do not depend on the batch.

    Prints what depends on the batch, where it is cut off, which values are legal there, and the
    commitment tuple. Writes a package that needs nothing of selc at run time; where the answer is
    no (exit code 1), its manifest alone.
    """
    from selc.driver import compile as driver

    options = CompileOptions(
        target=target,
        facts=facts,
        roots=roots,
        out=out,
        tuple_file=tuple_file,
        profile=profile,
        emit=emit,
        native=not no_native,
        max_candidates=max_candidates,
        solver_budget=solver_budget,
        whole_rows=whole_rows,
        skip=skip,
        require_proof=require_proof,
        use_cache=not no_cache,
        format=output_format,
        emit_after=emit_after,
    )
    ctx.exit(write(driver.run(options), output_format))
