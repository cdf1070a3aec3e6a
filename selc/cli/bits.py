"""`selc bits`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from selc.cli.bench import seconds
from selc.cli.output import format_option, write


@click.command("bits", short_help="Test on real kernels that a request's bits do not move.")
@click.argument(
    "directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--kernels", multiple=True, metavar="[FAMILY=]MODULE:OBJECT", help="Ours if not given."
)
@click.option(
    "--tuple",
    "tuple_path",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The tuple to test. Default: each selector's own.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="Where kernels run.",
)
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="What kernels need besides."
)
@click.option("--quick", is_flag=True, help="Fewer sizes, and 8 thresholds of each input.")
@click.option(
    "--budget", callback=seconds, metavar="TIME", help="Skip what comes later, as 60s or 5m."
)
@click.option("--list", "list_cells", is_flag=True, help="Print the cells and run none.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="A line of JSON for every cell; with --classes, the partition.",
)
@click.option(
    "--classes", is_flag=True, help="Find which configurations give equal bits with each other."
)
@click.option(
    "--fields",
    metavar="F1,F2,...",
    help="What a configuration consists of. Default: the points that move and set bits.",
)
@click.option(
    "--configs",
    type=click.Path(path_type=Path),
    help="A JSON list of configurations. Default: all that the selector may take.",
)
@click.option(
    "--given", multiple=True, metavar="NAME=VALUE", help="Another point's value meanwhile."
)
@click.option(
    "--seeds", "rounds", type=int, default=2, show_default=True, help="Rounds of random data."
)
@click.option("--magnitudes", is_flag=True, help="Also data of mixed magnitudes, 1e-4 to 1e4.")
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Compare at every batch size of a workload too.",
)
@format_option
@click.pass_context
def bits(
    ctx: click.Context,
    directories: tuple[Path, ...],
    kernels: tuple[str, ...],
    tuple_path: Path | None,
    device: str,
    settings: tuple[str, ...],
    quick: bool,
    budget: float | None,
    list_cells: bool,
    out: Path | None,
    classes: bool,
    fields: str | None,
    configs: Path | None,
    given: tuple[str, ...],
    rounds: int,
    magnitudes: bool,
    profiles: tuple[Path, ...],
    output_format: str,
) -> None:
    """Test on real kernels that a request's bits do not move.

    Runs the kernels of emitted selectors under a fixed tuple: a request alone, and in many other
    batches, where it has to keep its bits. Then the same without pins, where it must not.

    Exit code 1: a cell differs, or nothing could have.

    With --classes it compares configurations instead and writes a partition for `classes:` facts.
    """
    only = {"fields": fields, "configs": configs, "given": given, "magnitudes": magnitudes}
    odd = next((name for name, value in {**only, "profile": profiles}.items() if value), None)
    if odd is not None and not classes:
        raise click.UsageError(f"--{odd} goes with --classes")
    from selc.harness.bits import command

    options = command.BitsOptions(
        directories, kernels, tuple_path, device, settings, quick, budget, out, _progress
    )
    if classes:
        from selc.harness.bits import classes_command

        names = tuple(n.strip() for n in (fields or "").split(",") if n.strip())
        asked = classes_command.ClassesOptions(
            options, names, configs, given, rounds, magnitudes, profiles
        )
        ctx.exit(write(classes_command.run(asked), output_format))
    ctx.exit(write((command.listed if list_cells else command.run)(options), output_format))


def _progress(family: str, done: int, total: int) -> None:
    """A line that counts, where somebody looks at it."""
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        click.echo(f"\r{family}: {done} of {total}{end}", nl=False, err=True)
