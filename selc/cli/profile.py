"""`selc profile`."""

from __future__ import annotations

from pathlib import Path

import click

from selc.cli.output import format_option, write

_profiles = click.argument(
    "paths", metavar="PROFILE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)


@click.group("profile", short_help="Look at recorded workloads, merge and compare them.")
def profile() -> None:
    """Look at recorded workloads, merge and compare them.

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
