"""`selc cache`."""

from __future__ import annotations

import click

from selc.cli.output import format_option, write


@click.group("cache", short_help="Look at, empty or verify the cache.")
def cache() -> None:
    """Look at, empty or verify the compilation cache."""


@cache.command("list")
@format_option
@click.pass_context
def list_command(ctx: click.Context, output_format: str) -> None:
    """List what is cached."""
    from selc.driver import cache as driver

    ctx.exit(write(driver.list_entries(), output_format))


@cache.command("clear")
@format_option
@click.pass_context
def clear(ctx: click.Context, output_format: str) -> None:
    """Remove everything that is cached."""
    from selc.driver import cache as driver

    ctx.exit(write(driver.clear(), output_format))


@cache.command("verify")
@format_option
@click.pass_context
def verify(ctx: click.Context, output_format: str) -> None:
    """Compare every entry with its digest; exit code 1 if one differs."""
    from selc.driver import cache as driver

    ctx.exit(write(driver.verify(), output_format))
