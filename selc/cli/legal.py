"""`selc legal`."""

from __future__ import annotations

from pathlib import Path

import click

from selc.cli.output import write


@click.command("legal", short_help="Ask which assignments of pins are legal.")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.argument("assignments", metavar="[NAME=VALUE]...", nargs=-1)
@click.option(
    "--tuple",
    "tuple_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Fix what a tuple file commits to, whichever selector it was made for.",
)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json", "csv"]),
    default="text",
    show_default=True,
    help="How the answer is printed; csv exports every legal assignment.",
)
@click.pass_context
def legal(
    ctx: click.Context,
    directory: Path,
    assignments: tuple[str, ...],
    tuple_file: Path | None,
    output_format: str,
) -> None:
    """Ask which assignments of pins and knobs are legal, with some of them fixed.

    Says how many are left, what every other pin may still be, and which guard refuses values that
    cannot be. Exit code 1 if nothing is left.
    """
    from selc.driver import legal as driver

    export = "csv" if output_format == "csv" else ""
    outcome = driver.run(driver.Asked(directory, assignments, export, tuple_file))
    ctx.exit(write(outcome, "text" if export else output_format))
