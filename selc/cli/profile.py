"""`selc profile`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from selc.cli.output import format_option, write

PRESETS: Final = ("w-a", "w-b", "w-b-c")
_profiles = click.argument(
    "paths", metavar="PROFILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)


@click.group("profile", short_help="Look at workloads, merge, compare and make them.")
def profile() -> None:
    """Look at workloads, merge and compare them, and make one from a description.

    A profile is what a selector's `record` writes: the distinct calls with their counts.
    """


@profile.command("show")
@_profiles
@format_option
@click.pass_context
def show(ctx: click.Context, paths: tuple[Path, ...], output_format: str) -> None:
    """Say how many calls there are, and how every input is spread."""
    from selc.harness import workload

    ctx.exit(write(workload.show(paths), output_format))


@profile.command("merge")
@_profiles
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="Where it goes.")
@click.option(
    "--weight", "weights", multiple=True, type=float, help="One for each profile; default 1."
)
@format_option
@click.pass_context
def merge(
    ctx: click.Context,
    paths: tuple[Path, ...],
    out: Path,
    weights: tuple[float, ...],
    output_format: str,
) -> None:
    """Make one profile of several; counts of equal calls are added."""
    from selc.harness import workload

    ctx.exit(write(workload.merge(paths, weights, out), output_format))


@profile.command("diff")
@click.argument("one", metavar="BEFORE", type=click.Path(path_type=Path))
@click.argument("other", metavar="AFTER", type=click.Path(path_type=Path))
@format_option
@click.pass_context
def diff(ctx: click.Context, one: Path, other: Path, output_format: str) -> None:
    """Compare two profiles by the share of every call; exit code 1 if they differ."""
    from selc.harness import workload

    ctx.exit(write(workload.diff(one, other), output_format))


@profile.command("synth")
@click.argument(
    "directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--preset", type=click.Choice(PRESETS), help="A workload that is described already.")
@click.option(
    "--description",
    type=click.Path(path_type=Path),
    help="A YAML file with a workload, or with what differs from the preset.",
)
@click.option(
    "--load",
    "loads",
    multiple=True,
    type=float,
    help="Share of the greatest throughput, or requests in flight in a closed loop; may be "
    "repeated. By default those of the description.",
)
@click.option("--requests", type=click.IntRange(1, 1_000_000), help="Requests at each load.")
@click.option("--seconds", type=float, help="Stop each simulation after so much of its time.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of all random draws.")
@click.option(
    "--calls",
    type=click.IntRange(1, 65536),
    default=24,
    show_default=True,
    help="Distinct calls of a family at most.",
)
@click.option("-o", "--out", required=True, type=click.Path(path_type=Path), help="Where it goes.")
@format_option
@click.pass_context
def synth(
    ctx: click.Context,
    directories: tuple[Path, ...],
    preset: str | None,
    description: Path | None,
    loads: tuple[float, ...],
    requests: int | None,
    seconds: float | None,
    seed: int,
    calls: int,
    out: Path,
    output_format: str,
) -> None:
    """Make a profile of the selectors in DIR by simulating an engine that serves a workload."""
    from selc.harness.synth.synth import Asked
    from selc.harness.synth.synth import synth as make

    if preset is None and description is None:
        raise click.UsageError("say what the workload is: --preset or --description")
    asked = Asked(preset, description, loads, requests, seconds, seed, calls)
    ctx.exit(write(make(directories, asked, out), output_format))
