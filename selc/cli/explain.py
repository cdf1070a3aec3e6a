"""`selc explain`."""

from __future__ import annotations

import textwrap

import click

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.rules import Rule, all_rules, find_rule
from selc.diag.suggest import did_you_mean

_WIDTH = 88


@click.command("explain", short_help="Explain an error or a rule, by code or name.")
@click.argument("code", metavar="[CODE|NAME]", required=False)
def explain(code: str | None) -> None:
    """Explain an error or a rule, by code (SEL902) or name (unbounded-loop).

    Without an argument, lists them all.
    """
    if code is None:
        for rule in all_rules():
            click.echo(f"{rule.code}  {rule.name:<24} {rule.title}")
        return
    found = find_rule(code)
    if found is None:
        known = [name for rule in all_rules() for name in (rule.code, rule.name)]
        hint = did_you_mean(code.strip(), known) or "`selc explain` lists them all"
        raise Refused(Diagnostic("SEL909", f"there is no code or rule `{code}`", help=hint))
    click.echo(explanation(found))


def explanation(rule: Rule) -> str:
    """One rule as text for a terminal."""
    parts = [f"{rule.code} ({rule.name}): {rule.title}"]
    for heading, text in rule.sections:
        body = text.rstrip() if heading == "Example" else textwrap.fill(text, _WIDTH - 4)
        parts.append(f"{heading}\n{textwrap.indent(body, '    ')}")
    return "\n\n".join(parts)
