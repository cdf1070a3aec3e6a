"""Values keep their type: what CPython makes an integer of a boolean is one in the selector."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from tests.driver.conftest import Compile

FACTS = """\
selection: {function: plan, scope: request, returns: {result: neutral}}
inputs:
  flag: {kind: request, values: [true, false, 0, 1, 2]}
"""


@pytest.mark.parametrize(
    "body",
    ["-(-flag)", "-(-flag // 4)", "0 - (0 - flag)", "+flag", "flag // 1", "flag * 1", "~~flag"],
)
def test_twice_negated(project: Path, compiled: Compile, body: str) -> None:
    (project / "plan.py").write_text(f"def plan(flag):\n    return {body}\n")
    (project / "facts.yaml").write_text(FACTS)
    assert compiled().exit_code == 0
    spec = importlib.util.spec_from_file_location(
        "typed_selector",
        project / "plan_selector/__init__.py",
        submodule_search_locations=[str(project / "plan_selector")],
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["typed_selector"] = package
    try:
        spec.loader.exec_module(package)
        for flag in (True, False, 0, 1, 2):
            wanted = eval(body, {"flag": flag})
            for got in (package.select(flag).result, package.select_unpinned(flag).result):
                assert (type(got), got) == (type(wanted), wanted), flag
    finally:
        for name in [n for n in sys.modules if n.split(".")[0] == "typed_selector"]:
            del sys.modules[name]
