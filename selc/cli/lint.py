"""`selc lint`."""

from __future__ import annotations

from pathlib import Path

import click

_FORMATS = ("full", "concise", "json", "sarif", "github")


@click.command("lint", short_help="Find batch-dependent kernel selection in source.")
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option(
    "--output-format",
    type=click.Choice(_FORMATS),
    default="full",
    show_default=True,
    help="How findings are printed.",
)
@click.option(
    "--baseline", type=click.Path(path_type=Path), help="A file of findings that are known."
)
@click.option("--write-baseline", is_flag=True, help="Write the baseline instead of reporting.")
@click.option(
    "--diff", metavar="REV", help="Only findings whose path touches the change since REV."
)
@click.option(
    "--fail-on",
    type=click.Choice(["note", "warning", "error"]),
    help="The mildest level that makes the exit code 1 (default: warning).",
)
@click.option("--select", multiple=True, metavar="CODE", help="Only these rules. May be repeated.")
@click.option("--ignore", multiple=True, metavar="CODE", help="Not these rules. May be repeated.")
@click.option("--preview", is_flag=True, help="With rules that are in preview.")
@click.option(
    "--assume-unguarded",
    is_flag=True,
    help="An audit: ignore the effect of the invariant mode, report closed libraries too.",
)
@click.option(
    "--config",
    "config_file",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Where to look for the configuration.",
)
@click.option(
    "--jobs", type=click.IntRange(min=0), default=0, help="Processes (default: by cores)."
)
@click.option("--no-cache", is_flag=True, help="Neither read nor write the cache.")
@click.pass_context
def lint(
    ctx: click.Context,
    paths: tuple[str, ...],
    output_format: str,
    baseline: Path | None,
    write_baseline: bool,
    diff: str | None,
    fail_on: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    preview: bool,
    assume_unguarded: bool,
    config_file: Path | None,
    jobs: int,
    no_cache: bool,
) -> None:
    """Find batch-dependent kernel selection in source.

    PATHs are files and folders; the current folder if there is none. Nothing is imported or run.
    Exit codes: 0 clean, 1 findings, 2 the command or a file is wrong.
    """
    from selc.lint import run
    from selc.lint.config import load_config, with_options

    config = with_options(
        load_config(config_file or Path.cwd()),
        select=_codes(select) or None,
        ignore=_codes(ignore) or None,
        preview=True if preview else None,
        assume_unguarded=True if assume_unguarded else None,
        fail_on=fail_on,
    )
    run.check_codes([*config.select, *config.ignore])
    options = run.Options(
        tuple(map(Path, paths)), baseline, write_baseline, diff, jobs, not no_cache
    )
    report = run.lint(config, options)
    _print(report, output_format)
    ctx.exit(1 if run.fails(report, config.fail_on) else 0)


def _codes(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(code.strip() for value in values for code in value.split(",") if code.strip())


def _print(report: object, output_format: str) -> None:
    from selc.lint.formats import data, plain, sarif
    from selc.lint.run import Report

    assert isinstance(report, Report)
    findings = report.findings
    text = {
        "full": lambda: plain.full(findings),
        "concise": lambda: plain.concise(findings),
        "github": lambda: plain.github(findings),
        "json": lambda: data.as_json(findings),
        "sarif": lambda: sarif.sarif(findings, report.suppressed),
    }[output_format]()
    if text:
        click.echo(text.encode("utf-8", "backslashreplace").decode("utf-8"))
    if report.known:
        click.echo(f"selc: {report.known} known by the baseline", err=True)
    if report.stale:
        click.echo(
            f"selc: {len(report.stale)} of the baseline are gone; `--write-baseline` drops them",
            err=True,
        )
