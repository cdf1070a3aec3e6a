"""The registry is complete, and covers every code that the sources mention."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from selc.diag.rules import Rule, all_rules, find_rule
from selc.diag.suggest import closest, did_you_mean
from selc.lint.registry import by_code

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_rule_has_all_sections(rule: Rule) -> None:
    assert re.fullmatch(r"SEL\d{3}", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert rule.title
    assert not rule.title.endswith(".")
    for heading, text in rule.sections:
        assert text.strip(), heading
        assert "\t" not in text
    assert not rule.example.startswith("\n")


def test_codes_and_names_are_unique() -> None:
    rules = all_rules()
    assert len({rule.code for rule in rules}) == len(rules)
    assert len({rule.name for rule in rules}) == len(rules)


def test_rules_are_found_by_code_and_by_name() -> None:
    for rule in all_rules():
        assert find_rule(rule.code) is rule
        assert find_rule(rule.code.lower()) is rule
        assert find_rule(rule.name) is rule
    assert find_rule("SEL000") is None
    assert find_rule("") is None


def test_every_code_in_the_sources_is_registered() -> None:
    known = {rule.code for rule in all_rules()} | set(by_code())
    files = [*(ROOT / "selc").rglob("*.py"), *(ROOT / "codegen").rglob("*.py")]
    missing = {
        f"{path.relative_to(ROOT)}: {code}"
        for path in files
        for code in re.findall(r"""["'](SEL\d{3})["']""", path.read_text(encoding="utf-8"))
        if code not in known
    }
    assert not missing


def test_the_page_is_current() -> None:
    script = ROOT / "scripts" / "errors_page.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_suggestions() -> None:
    assert closest("Num_Token", ["num_tokens", "hidden"]) == ("num_tokens",)
    assert did_you_mean("hiden", ["hidden", "num_tokens"]) == "did you mean `hidden`?"
    assert did_you_mean("block", ["block_m", "block_n"]) == "did you mean `block_n` or `block_m`?"
    assert did_you_mean("zzz", ["hidden"]) == ""
    assert did_you_mean("x", []) == ""
