"""`selc explain`."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from selc.cli.output import format_option, write
from selc.cli.source import SourceCommand, facts_option, root_option
from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.rules import Rule, all_rules, find_rule
from selc.diag.suggest import did_you_mean

if TYPE_CHECKING:
    from selc.lint.registry import LintRule

_WIDTH = 88


@click.command(
    "explain",
    cls=SourceCommand,
    short_help="Explain an error or a rule, or why a value follows the batch.",
)
@click.argument("code", metavar="[CODE|NAME|TARGET]", required=False)
@click.option(
    "--value",
    metavar="NAME",
    help="A point, a pin or another value of TARGET: say why it follows the batch.",
)
@facts_option
@root_option
@format_option
@click.pass_context
def explain(
    ctx: click.Context,
    code: str | None,
    value: str | None,
    facts: tuple[Path, ...],
    roots: tuple[Path, ...],
    output_format: str,
) -> None:
    """Explain an error or a rule, by code (SEL902) or name (unbounded-loop).

    Without an argument, lists them all. With --value, explains a value of the selection TARGET: the
    way from the batch to it, two batches that differ there, the pin on it, and the other cuts of
    the same size.
    """
    if value is not None:
        if code is None:
            raise click.UsageError("--value needs a TARGET: path.py:function")
        from selc.driver.pipeline import Plan
        from selc.driver.why import run

        ctx.exit(write(run(Plan(code, facts, roots), value), output_format))
    if facts or roots:
        raise click.UsageError("--facts and --root say how to read a TARGET: give --value, too")
    from selc.lint import registry

    rules: list[Rule | registry.LintRule] = [*registry.all_rules(), *all_rules()]
    if code is None:
        for rule in rules:
            click.echo(f"{rule.code}  {rule.name:<26} {rule.title}")
        return
    found = find_rule(code) or registry.find_rule(code)
    if found is None:
        known = [name for rule in rules for name in (rule.code, rule.name)]
        hint = did_you_mean(code.strip(), known) or "`selc explain` lists them all"
        raise Refused(Diagnostic("SEL909", f"there is no code or rule `{code}`", help=hint))
    click.echo(explanation(found))


def explanation(rule: Rule | LintRule) -> str:
    """One rule as text for a terminal."""
    parts = [f"{rule.code} ({rule.name}): {rule.title}"]
    for heading, text in rule.sections:
        if not text:
            continue
        body = (
            text.rstrip()
            if heading in ("Example", "Use instead")
            else textwrap.fill(text, _WIDTH - 4)
        )
        parts.append(f"{heading}\n{textwrap.indent(body, '    ')}")
    return "\n\n".join(parts)
