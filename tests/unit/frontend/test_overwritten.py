"""What is overwritten at a site is what every later read sees."""

from __future__ import annotations

import itertools
import textwrap
from pathlib import Path

import pytest

from selc.ir.interp import run_program
from tests.property.observe import Observer
from tests.unit.frontend.lifting import lift, write

FACTS = """
selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
facts: {always: true}
inputs: {m: {kind: runtime, range: [0, 9]}}
"""


@pytest.mark.parametrize(
    ("body", "site"),
    [
        ("always and (1 if m <= 4 else 2)", "L2C24-42"),
        ("(1 if m <= 4 else 2) if always else 7", "L2C13-31"),
        ("any((m <= 4 and m > 1) for _ in range(1))", "L2C17-33"),
    ],
)
def test_an_expression_that_is_all_of_another(tmp_path: Path, body: str, site: str) -> None:
    write(tmp_path, {"mod.py": f"def choose(m, always):\n    return {body}\n"})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    pins = {name: 5 for name in program.sites if name.startswith(f"choose.{site}")}
    assert pins
    for m in range(10):
        assert run_program(program, {"m": m}, pins).points["result"] in (5, True)
        assert run_program(program, {"m": m}, dict.fromkeys(pins, False)).points["result"] is False


def test_the_arm_that_a_negation_does_not_take(tmp_path: Path) -> None:
    source = """
        def choose(m, always):
            if not (m <= 4):
                r = 1
            else:
                assert m > 2
                r = 2
            return r
    """
    write(tmp_path, {"mod.py": source})
    program = lift(tmp_path, "pkg.mod:choose", FACTS)
    (site,) = [s for s in program.sites if s.startswith("choose.L3C8-")]
    for m in range(10):
        assert run_program(program, {"m": m}, {site: True}).points == {"result": 1}
        assert run_program(program, {"m": m}, {site: False}).returned == (m > 2)


ALTERNATIVES = [
    # a constant where one alternative is gone through, and none where another is
    """
    def choose(m, key):
        p = q = 0
        for s in {"a": (1,), "b": (4, 9), "c": (0, 3)}[key]:
            if s == 9:
                break
            x = m // 3 if s > 2 else 7
            y = x * s + 1
            p = x % 5 + y
            q = x % 7
        return p * 100 + q
    """,
    # one body for several receivers
    """
    class Rule:
        def __init__(self, least):
            self.least = least

        def of(self, m, scale):
            if self.least == 0:
                rest = 4
            else:
                rest = m // self.least
            return rest * scale if rest > 1 else 3

    def choose(m, key):
        rule = Rule(0) if key == "a" else Rule(2)
        return rule.of(m, 2) + 1
    """,
    # one body called by several names, with arguments that are known for one of them
    """
    def scaled(m, by):
        part = m * by
        return part + 1 if part > 2 else part

    def choose(m, key):
        t = 0
        for by in ((0, 1) if key == "a" else (2,)):
            t = t + scaled(m, by)
        return t
    """,
]


@pytest.mark.parametrize("source", ALTERNATIVES)
def test_what_is_gone_through_once_for_each_alternative(tmp_path: Path, source: str) -> None:
    text = textwrap.dedent(source)
    write(tmp_path, {"mod.py": text})
    facts = """
        selection: {function: "pkg.mod:choose", scope: launch, returns: {result: bits}}
        inputs:
          m: {kind: runtime, range: [0, 9]}
          key: {kind: request, type: str, values: [a, b, c]}
    """
    program = lift(tmp_path, "pkg.mod:choose", textwrap.dedent(facts))
    kinds = {"definition": "variable", "field": "variable"}
    sites = {n: kinds.get(s.kind, s.kind) for n, s in program.sites.items()}
    observer = Observer(text, "choose", sites)
    calls = [{"m": m, "key": key} for m, key in itertools.product(range(10), "abc")]
    checked = 0
    for name in program.sites:
        values = set()  # a pin is given what the site takes
        for call in calls:
            observer.run(call, {}, lambda _: True)
            assert run_program(program, call, {}).sites.get(name) == observer.seen.get(name), name
            values |= {observer.seen[name]} if name in observer.seen else set()
        for value, call in itertools.product(values, calls):
            want = observer.run(call, {name: value}, lambda result: (result,))
            got = run_program(program, call, {name: value})
            assert (name in got.sites) == (name in observer.seen), (name, call)
            if program.sites[name].kind != "parameter":
                result = (got.points["result"],) if got.returned else None
                assert result == want, (name, value, call)
                checked += len(values) > 1
    assert checked > 100
