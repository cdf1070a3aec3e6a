"""The registry of codes: what each one means, why it exists, an example, what to do.

A code is never used for a second meaning. `selc explain` and docs/errors.md are made from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Rule:
    """One code with its explanation. The texts are Markdown; `example` is a code block's inside."""

    code: str
    name: str
    title: str
    means: str
    why: str
    example: str
    action: str
    language: str = "python"

    @property
    def first_step(self) -> str:
        """The first sentence of what to do, as a hint: without capital and full stop."""
        sentence = self.action.partition(". ")[0].rstrip(".").replace("\n", " ")
        return sentence[:1].lower() + sentence[1:]

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """Headings and texts in the order in which they are shown."""
        return (
            ("What it means", self.means),
            ("Why selc reports it", self.why),
            ("Example", self.example),
            ("What to do", self.action),
        )


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, sorted by code."""
    from selc.diag import rules_answers, rules_facts, rules_harness, rules_source

    rules = (
        *rules_source.RULES,
        *rules_facts.RULES,
        *rules_answers.RULES,
        *rules_harness.RULES,
    )
    return tuple(sorted(rules, key=lambda rule: rule.code))


def find_rule(code_or_name: str) -> Rule | None:
    """The rule with this code (any case) or kebab name."""
    wanted = code_or_name.strip().lower().replace("_", "-")
    for rule in all_rules():
        if wanted in (rule.code.lower(), rule.name):
            return rule
    return None
