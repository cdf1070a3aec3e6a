"""The shared cases with names and roles configured from their facts; SARIF against its schema."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from selc.cli.app import app
from selc.lint.config import Config
from selc.lint.run import Options, lint

ROOT = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("SELC_SHARED", ROOT.parent / "shared"))
CASES = SHARED / "cases"
FOLDERS = sorted(p.name for p in CASES.iterdir() if p.is_dir()) if CASES.is_dir() else []

MISSED = {
    "H6": "an exception carries the choice",
    "H7": "the environment carries it",
    "H10": "a global carries it",
    "I28": "the caller measured the time",
    "I29": "the history of calls carries it",
}
ALARMS = {
    "M18": "the declared range makes both answers equal",
    "N8": "the declared range makes both answers equal",
}


def settings(folder: Path) -> tuple[dict[str, Any], set[str]]:
    """Names and roles from the facts, and the fields that must be reported."""
    facts = yaml.safe_load((folder / "facts.yaml").read_text())
    expected = json.loads((folder / "expect.json").read_text())
    batch = ("runtime", "unpinnable")
    sources = [n.rsplit(".", 1)[-1] for n, v in facts["inputs"].items() if v.get("kind") in batch]
    returns = facts["selection"].get("returns", {})
    roles = {n: r if isinstance(r, str) else r.get("role", "bits") for n, r in returns.items()}
    bits = [name for name, role in roles.items() if role == "bits"]
    quiet = [name for name, role in roles.items() if role != "bits"]
    table = {"names": {"scalars": sources}, "roles": {"harmful": bits, "neutral": quiet}}
    return table, {name for name in expected["batch_dependent"] if name in bits}


@pytest.mark.parametrize("name", FOLDERS)
def test_case(name: str) -> None:
    table, wanted = settings(CASES / name)
    config = Config(CASES, table=table)
    report = lint(config, Options((CASES / name / "selector.py",), use_cache=False))
    found = {each.sink for each in report.findings if each.level == "error"}
    assert (not wanted <= found) == (name in MISSED), (wanted, found)
    if not wanted:
        assert bool(found) == (name in ALARMS), found


def test_sarif_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = SHARED / "sarif" / "sarif-schema-2.1.0.json"
    if not schema.is_file():
        pytest.skip(f"no schema in {schema.parent}; SELC_SHARED names the folder above")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SELC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "odd name é.py").write_text(
        "def launch(x, w):\n"
        "    split_k = 4 if x.shape[0] <= 32 else 1\n"
        "    k[(8,)](x, w, SPLIT_K=split_k)\n"
        "    k[(8,)](x, w, SPLIT_K=split_k)  # selc: ignore[SEL101] -- known\n"
    )
    (tmp_path / "broken.py").write_text("x = (\n")
    result = CliRunner().invoke(app, ["lint", ".", "--output-format", "sarif"])
    log = json.loads(result.stdout)
    jsonschema.validate(log, json.loads(schema.read_text()))
    assert len(log["runs"][0]["results"]) == 3
