"""Printing: one outcome or a list of errors, as text or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from selc.diag.diagnostic import Diagnostic, Severity

if TYPE_CHECKING:
    from selc.diag.outcome import Outcome

format_option = click.option(
    "--format",
    "output_format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How results are printed.",
)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, also one that could not be parsed."""
    chosen = False
    for index, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument == "--format" and index + 1 < len(arguments):
            chosen = arguments[index + 1] == "json"
        elif argument.startswith("--format="):
            chosen = argument == "--format=json"
    return chosen


def write(outcome: Outcome, output_format: str) -> int:
    """Print what a command has to say; the exit code."""
    write_diagnostics(outcome.diagnostics)
    if output_format == "json":
        from selc.diag.render_json import errors_object

        refused = outcome.exit_code == 2 and "errors" not in outcome.json
        write_json(errors_object(outcome.diagnostics) if refused else outcome.json)
    elif outcome.text:
        _echo(outcome.text.rstrip("\n"))
    return outcome.exit_code


def write_errors(diagnostics: Iterable[Diagnostic], as_json: bool) -> None:
    """Report that the input is wrong: text on stderr, and the JSON object on stdout if asked."""
    items = list(diagnostics)
    write_diagnostics(items)
    if as_json:
        from selc.diag.render_json import errors_object

        write_json(errors_object(items))


def write_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print diagnostics to stderr, errors last so that they are what one sees."""
    items = sorted(diagnostics, key=lambda item: item.severity is Severity.ERROR)
    if items:
        from selc.diag.render_text import render_all

        _echo(render_all([_with_step(item) for item in items]), err=True)


def _with_step(item: Diagnostic) -> Diagnostic:
    """An error with a next step: where it has none of its own, that of its code."""
    if item.help or item.severity is not Severity.ERROR:
        return item
    from dataclasses import replace

    from selc.diag.rules import find_rule

    rule = find_rule(item.code)
    return item if rule is None else replace(item, help=rule.first_step)


def write_json(value: dict[str, Any]) -> None:
    """Print one JSON object; ASCII only, so that no terminal encoding can break it."""
    import json

    _echo(json.dumps(value, indent=2, allow_nan=False))


def _echo(text: str, err: bool = False) -> None:
    stream = sys.stderr if err else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), err=err)
