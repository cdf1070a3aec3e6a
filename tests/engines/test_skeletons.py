"""`selc facts` on engine functions: valid YAML that names everything their facts files state."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from selc.frontend.skeleton import skeleton

FACTS = sorted(Path(__file__).parent.glob("*.yaml"))
SECTIONS = ("functions", "env", "tensors")


def _flat(prefix: str, value: object) -> set[str]:
    if isinstance(value, dict) and prefix == "self":
        return {f"self.{k}" for k in value}
    return {prefix}


@pytest.mark.corpus
@pytest.mark.parametrize("path", FACTS, ids=[p.stem for p in FACTS])
def test_skeleton_names_what_the_facts_state(path: Path, corpus: Path) -> None:
    stated = yaml.safe_load(path.read_text())
    text = skeleton(stated["selection"]["function"], [corpus / "vllm", corpus / "sglang"])
    made = yaml.safe_load(text)
    asked = set()
    for section in ("inputs", "facts", "tensors", "functions", "env", "globals", "objects"):
        asked |= set(made.get(section) or {})
    optional = {line[1:].split(":")[0].strip() for line in text.splitlines() if line.startswith("#   ")}
    missing = set()
    for section in ("facts", "inputs", *SECTIONS):
        for key, value in (stated.get(section) or {}).items():
            missing |= _flat(key, value) - asked - optional
    sizes = str(stated.get("tensors", {})) + str(stated["selection"])
    missing = {m for m in missing if m.strip('"') not in sizes and not _covered(m, asked | optional)}
    assert not missing, f"the skeleton does not ask for {sorted(missing)}:\n{text}"


def _covered(name: str, asked: set[str]) -> bool:
    """A fact may state a part of what the skeleton asks for, or be spelt by its qualified name."""
    last = name.rpartition(".")[2]
    return any(a == name or name.startswith(a + ".") or a.rpartition(".")[2] == last for a in asked)
