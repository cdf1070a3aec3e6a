"""`selc bench`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from selc.cli.output import format_option, write

_PATH = click.Path(path_type=Path)


def seconds(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """A time written as `300`, `300s`, `5m` or `1h`."""
    if value is None:
        return None
    unit = {"s": 1.0, "m": 60.0, "h": 3600.0}.get(value[-1:])
    try:
        found = float(value[:-1]) * unit if unit else float(value)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise click.BadParameter(f"{value!r} is no time; write it as 300s, 5m or 1h", ctx, param)
    return found


def workload_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of commands that run kernels on a workload."""
    for option in reversed(
        (
            click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=_PATH),
            click.option(
                "--kernels",
                multiple=True,
                metavar="MODULE:OBJECT",
                help="Kernels, in the order of the selectors or as FAMILY=MODULE:OBJECT; by "
                "default those that come with selc for the family.",
            ),
            click.option(
                "--profile",
                "profiles",
                multiple=True,
                required=True,
                type=_PATH,
                help="A recorded workload. May be repeated.",
            ),
            click.option(
                "--weight",
                "weights",
                multiple=True,
                type=float,
                help="One for each profile; default 1.",
            ),
            click.option(
                "--set",
                "settings",
                multiple=True,
                metavar="NAME=VALUE",
                help="What kernels need besides the profile, as page_size=16. May be repeated.",
            ),
            click.option(
                "--device",
                type=click.Choice(["auto", "cpu", "cuda"]),
                default="auto",
                show_default=True,
                help="Where kernels run; auto takes a GPU where there is one.",
            ),
            click.option(
                "--timeout",
                callback=seconds,
                metavar="TIME",
                default="60s",
                show_default=True,
                help="A kernel that does not answer for so long has failed.",
            ),
            click.option(
                "--journal", type=_PATH, help="Where every measurement is kept, to go on from."
            ),
            click.option("--seed", type=int, default=0, show_default=True, help="Of the order."),
        )
    ):
        command = option(command)
    return command


@click.command("bench", short_help="Measure what each legal tuple costs on a workload.")
@workload_options
@click.option(
    "--tuple",
    "tuples",
    multiple=True,
    type=_PATH,
    help="Measure this tuple file, the default and the stock selection only. May be repeated.",
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="How often each launch is timed.",
)
@click.option(
    "--budget", callback=seconds, metavar="TIME", help="End after this time, as 300s or 5m."
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=64,
    show_default=True,
    help="Measure at most so many legal tuples besides the default.",
)
@click.option("-o", "--out", type=_PATH, help="A folder for results and plots.")
@format_option
@click.pass_context
def bench(
    ctx: click.Context,
    directories: tuple[Path, ...],
    kernels: tuple[str, ...],
    profiles: tuple[Path, ...],
    weights: tuple[float, ...],
    settings: tuple[str, ...],
    device: str,
    timeout: float,
    journal: Path | None,
    seed: int,
    tuples: tuple[Path, ...],
    rounds: int,
    budget: float | None,
    limit: int,
    out: Path | None,
    output_format: str,
) -> None:
    """Measure legal tuples of emitted selectors over the calls of a profile.

    The default tuple, the stock selection and legal tuples are timed against each other on real
    kernels, after a check of their results. What fails is listed and does not end the run. Exit
    code 1 if no tuple is legal or none works.
    """
    from selc.harness import bench as harness

    options = harness.Options(
        directories,
        kernels,
        profiles,
        weights,
        settings,
        tuples,
        device,
        rounds,
        budget,
        limit,
        journal,
        seed,
        timeout,
        out,
    )
    ctx.exit(write(harness.run(options), output_format))
