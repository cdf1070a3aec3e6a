"""Every rule finds its own example, and nothing in what it recommends; the pages say the same."""

from __future__ import annotations

import pytest

from selc.lint.registry import LintRule, all_rules, find_rule
from tests.lint.conftest import Lint

MODES = ("VLLM_BATCH_INVARIANT", "enable_deterministic_inference")
WITH_EXAMPLE = [rule for rule in all_rules() if rule.example]


def codes(project: Lint, rule: LintRule, text: str) -> list[str]:
    modes = MODES if rule.code.startswith("SEL3") else ()
    return [finding.code for finding in project(text, modes=modes, select=("ALL",))]


@pytest.mark.parametrize("rule", WITH_EXAMPLE, ids=lambda rule: rule.code)
def test_the_example_is_found(project: Lint, rule: LintRule) -> None:
    assert rule.code in codes(project, rule, rule.example)


@pytest.mark.parametrize("rule", WITH_EXAMPLE, ids=lambda rule: rule.code)
def test_what_is_recommended_is_clean(project: Lint, rule: LintRule) -> None:
    assert codes(project, rule, rule.instead) == []


def test_codes_and_names_are_unique_and_texts_are_there() -> None:
    rules = all_rules()
    assert len({rule.code for rule in rules}) == len({rule.name for rule in rules}) == len(rules)
    for rule in rules:
        assert all((rule.what, rule.why, rule.limits, rule.fix)), rule.code
        assert find_rule(rule.name) is find_rule(rule.code.lower()) is rule


def test_pages_are_current() -> None:
    from scripts.rules_pages import main

    assert main(["--check"]) == 0
