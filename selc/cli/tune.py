"""`selc tune`."""

from __future__ import annotations

from pathlib import Path

import click

from selc.cli.bench import seconds, workload_options
from selc.cli.output import format_option, write

_PATH = click.Path(path_type=Path)


@click.command("tune", short_help="Find the fastest legal tuple for a workload.")
@click.option(
    "--replay",
    is_flag=True,
    help="Decide again from the journal alone; nothing is measured.",
)
@click.option(
    "--show",
    type=_PATH,
    metavar="JOURNAL",
    help="Report what a journal holds; plots go where -o says.",
)
@workload_options
@click.option(
    "--budget",
    callback=seconds,
    metavar="TIME",
    default="300s",
    show_default=True,
    help="End after this time at the latest.",
)
@click.option(
    "--launches",
    type=click.IntRange(min=1),
    help="Measure at most so many launches of a family in the search; by default as many as pay.",
)
@click.option(
    "--calls",
    type=click.IntRange(min=1),
    default=24,
    show_default=True,
    help="Calls of a family that are measured; similar ones of the profile are counted together.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="How often a launch is timed in the search.",
)
@click.option("-o", "--out", type=_PATH, help="Where the tuple file goes; with --show, the plots.")
@format_option
@click.pass_context
def tune(
    ctx: click.Context,
    replay: bool,
    show: Path | None,
    directories: tuple[Path, ...],
    kernels: tuple[str, ...],
    profiles: tuple[Path, ...],
    weights: tuple[float, ...],
    settings: tuple[str, ...],
    device: str,
    timeout: float,
    journal: Path | None,
    seed: int,
    budget: float,
    launches: int | None,
    calls: int,
    rounds: int,
    out: Path | None,
    output_format: str,
) -> None:
    """Find the legal tuple with the least cost on a workload, measuring few of them.

    The cost is the time of all calls of the profile. Says how sure the result is, and what the
    default tuple and the stock selection cost on the same calls. Several profiles give one tuple
    for all, and how each workload's own tuple does on the others. An interrupted run writes the
    best so far and goes on from its journal. Exit code 1 if no tuple is legal or none works.
    """
    if show is not None:
        from selc.harness.tune.show import show as report

        ctx.exit(write(report(show, out), output_format))
    if replay:
        from selc.harness.tune.replay import replay as again

        if journal is None:
            raise click.UsageError("--replay needs the journal: --journal FILE")
        ctx.exit(write(again(journal, out), output_format))
    for given, what in ((directories, "DIR, the emitted selectors"), (profiles, "--profile")):
        if not given:
            raise click.UsageError(f"say on what to tune: {what}")
    from selc.harness.tune import run as harness

    options = harness.Options(
        directories,
        kernels,
        profiles,
        weights,
        settings,
        device,
        budget,
        launches,
        calls,
        rounds,
        journal,
        seed,
        timeout,
        out,
    )
    ctx.exit(write(harness.run(options), output_format))


for _parameter in tune.params:  # --replay and --show need neither
    if _parameter.name in ("directories", "profiles"):
        _parameter.required = False
