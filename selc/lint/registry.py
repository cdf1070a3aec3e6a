"""The registry of rules: what each one finds, why it matters, an example, what to write instead.

`selc explain`, docs/rules, SARIF and the tests of rules are made from here: the linter finds the
rule in its example and not in what it recommends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class LintRule:
    """One rule with its documentation; the texts are Markdown, the examples Python."""

    code: str
    name: str
    title: str
    level: str
    what: str
    why: str
    example: str
    instead: str
    limits: str
    fix: str
    """One concrete next step, for the end of a message."""
    default: bool = True
    preview: bool = False

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """Headings and texts in the order in which they are shown."""
        return (
            ("What it finds", self.what),
            ("Why this is bad", self.why),
            ("Example", self.example),
            ("Use instead", self.instead),
            ("Limits", self.limits),
        )


@cache
def all_rules() -> tuple[LintRule, ...]:
    """Every rule, sorted by code."""
    from selc.lint import texts_choice, texts_gaps, texts_tuned

    rules = (*texts_choice.RULES, *texts_tuned.RULES, *texts_gaps.RULES)
    return tuple(sorted(rules, key=lambda each: each.code))


@cache
def by_code() -> dict[str, LintRule]:
    """Rules by code."""
    return {each.code: each for each in all_rules()}


def rule(code: str) -> LintRule:
    """The rule of a code that the linter itself uses."""
    return by_code()[code]


def find_rule(code_or_name: str) -> LintRule | None:
    """The rule with this code (any case) or kebab name."""
    wanted = code_or_name.strip().lower().replace("_", "-")
    for each in all_rules():
        if wanted in (each.code.lower(), each.name):
            return each
    return None
