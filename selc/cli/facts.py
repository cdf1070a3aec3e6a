"""`selc facts`."""

from __future__ import annotations

from pathlib import Path

import click

from selc.cli.output import write
from selc.cli.source import root_option


@click.command("facts", short_help="Print a facts-file skeleton for a function.")
@click.argument("target")
@root_option
@click.pass_context
def facts(ctx: click.Context, target: str, roots: tuple[Path, ...]) -> None:
    """Print a facts-file skeleton for a function: its parameters and the outside names it reads.

    Every value in it is a guess with the line that reads it; replace them by your deployment's.
    """
    from selc.driver import facts as driver

    ctx.exit(write(driver.run(target, roots), "text"))
