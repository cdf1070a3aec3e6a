"""`selc facts` on engine functions: valid YAML that names everything their facts files state."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from selc.diag.diagnostic import Refused
from selc.frontend.skeleton import skeleton
from tests import adapters

FACTS = sorted(Path(__file__).parent.glob("*.yaml"))


@pytest.mark.corpus
@pytest.mark.parametrize("path", FACTS, ids=lambda p: p.stem)
def test_skeleton_names_what_the_facts_state(path: Path, corpus: Path, tmp_path: Path) -> None:
    stated = yaml.safe_load(path.read_text(encoding="utf-8"))
    target = stated["selection"]["function"]
    text = skeleton(target, [corpus])
    asked = names(text)
    missing = {
        (section, key)
        for section in ("facts", "inputs", "functions", "env", "tensors")
        for key in flat(section, stated.get(section) or {})
        if not covered(key, asked) and key not in str(stated.get("tensors"))
    }
    missing = {m for m in missing if needed(stated, m, path, corpus, tmp_path)}
    assert not missing, f"the skeleton does not ask for {sorted(missing)}:\n{text}"


def names(text: str) -> set[str]:
    """Everything that a skeleton asks for, with what it shows in comments."""
    made = yaml.safe_load(text)
    shown = [line.removeprefix("#   ") for line in text.splitlines() if line.startswith("#   ")]
    out = {key for line in shown for key in yaml.safe_load(line)}
    for section, entries in made.items():
        out |= set(flat(section, entries)) if section != "selection" else set()
    return out


def flat(section: str, entries: dict[str, Any]) -> dict[str, Any]:
    """Entries by name; the attributes of `self` each for itself."""
    out = dict(entries)
    inner = out.get("self")
    if section == "facts" and isinstance(inner, dict):
        out |= {f"self.{k}": v for k, v in out.pop("self").items()}
    return out


def covered(name: str, asked: set[str]) -> bool:
    """A fact may state a part or the whole of what is asked, or spell it by its qualified name."""
    name, asked = name.replace("'", '"'), {a.replace("'", '"') for a in asked}
    last = name.rpartition(".")[2]
    return any(
        a == name or name.startswith(a + ".") or a.startswith(name + ".")
        or (a.rpartition(".")[2] == last and not a.startswith("self."))
        for a in asked
    )  # fmt: skip


def needed(
    stated: dict[str, Any], missing: tuple[str, str], path: Path, corpus: Path, folder: Path
) -> bool:
    """Whether the selection is refused without an entry."""
    section, key = missing
    reduced = {**stated, section: {k: v for k, v in stated[section].items() if k != key}}
    if reduced[section] == stated[section]:
        return True
    facts = folder / "facts.yaml"
    facts.write_text(yaml.safe_dump(reduced), encoding="utf-8")
    try:
        adapters.lower(stated["selection"]["function"], [facts], [corpus])
    except Refused:
        return True
    return False


CATALOGUE = (Path(__file__).parent / "catalogue.txt").read_text(encoding="utf-8").split()[1::2]


@pytest.mark.corpus
@pytest.mark.parametrize("target", CATALOGUE)
def test_skeleton_of_every_catalogued_function(target: str, corpus: Path) -> None:
    made = yaml.safe_load(skeleton(target, [corpus]))
    assert made["selection"]["function"] == target
