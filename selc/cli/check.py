"""`selc check`."""

from __future__ import annotations

from pathlib import Path

import click

from selc.cli.output import format_option, write


@click.command("check", short_help="Verify an emitted selector again.")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--against-source",
    is_flag=True,
    help="Also compile the source again and compare it with the selector.",
)
@format_option
@click.pass_context
def check(ctx: click.Context, directory: Path, against_source: bool, output_format: str) -> None:
    """Verify an emitted selector again, from its manifest.

    Exit code 1 if a digest, a guard or the relation does not hold.
    """
    from selc.driver import check as driver

    ctx.exit(write(driver.run(directory, against_source), output_format))
