"""Bit classes that do not fit the selection are refused where they stand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from selc.diag.diagnostic import Refused
from tests.adapters import lower
from tests.classes.test_classes import BOUND, VERSIONS

SOURCE = """\
def plan(m):
    bm = 16 if m <= 32 else 64
    wide = m > 64
    split = 2 if m > 48 else 1
    scale = 0.5 if m > 7 else 1.5
    return {"bm": bm, "wide": wide, "split": split, "scale": scale, "log": m, "deep": {"bm": bm}}
"""
CLASSES = [{"members": [[16, True], [64, True]], "evidence": "proved"}]
FILE: dict[str, Any] = {
    **BOUND, "versions": VERSIONS, "fields": ["bm", "wide"], "classes": CLASSES
}  # fmt: skip


def refused(folder: Path, file: dict[str, Any], entry: dict[str, Any], layer: bool = False) -> Any:
    (folder / "plan.py").write_text(SOURCE)
    (folder / "c.json").write_text(json.dumps({**FILE, **file}))
    facts = {
        "selection": {"function": "plan", "scope": "launch", "returns": {"log": "aux"}},
        "inputs": {"m": {"kind": "runtime", "type": "int", "range": [1, 96]}},
    }
    (folder / "facts.yaml").write_text(json.dumps(facts))
    classes = {"c": {"fields": ["bm", "wide"], "file": "c.json", **entry}}
    more = {"layer": "shared", "classes": classes} if layer else {"classes": classes}
    (folder / "classes.yaml").write_text(json.dumps(more, indent=1))
    try:
        return lower(folder / "plan.py", [folder / "facts.yaml", folder / "classes.yaml"])
    except Refused as error:
        (told,) = error.diagnostics
        assert (Path(told.span.path).name, told.span.line) == ("classes.yaml", 3)
        assert told.help
        return told.message


ONE = {"fields": ["bm"], "classes": [{"members": [[16]], "evidence": "proved"}]}
WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no such field": ({}, {"fields": ["bm", "width"]}, "names `width`, which is not returned"),
    "other fields": ({}, {"fields": ["bm", "split"]}, "was not made for the field `split`"),
    "too few fields": ({}, {"fields": ["bm"]}, "is also about `wide`"),
    "another family": ({"family": "moe"}, {}, "was made for the family `moe`"),
    "given elsewhere": ({"given": {"split": 1}}, {"given": {"split": 2}}, "but was measured at 1"),
    "given bool": ({"given": {"split": 1}}, {"given": {"split": True}}, "but was measured at 1"),
    "given nowhere": ({"given": {"stages": 1}}, {}, "`stages`, which is not returned"),
    "given aux": ({}, {"given": {"log": 1}}, "which is no bits field of its own"),
    "an aux field": ({**ONE, "fields": ["log"]}, {"fields": ["log"]}, "is aux: it is no"),
    "a float": ({**ONE, "fields": ["scale"]}, {"fields": ["scale"]}, "can be a float"),
    "a bool for an int": (
        {**ONE, "classes": [{"members": [[True]], "evidence": "proved"}]},
        {"fields": ["bm"]},
        "is a bool in one place and an int in another",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit(name: str, tmp_path: Path) -> None:
    file, entry, message = WRONG[name]
    told = refused(tmp_path, file, entry)
    assert isinstance(told, str)
    assert message.replace("is aux: it is no", "is aux: it is not a choice") in told


def test_a_layer_is_passed_over(tmp_path: Path) -> None:
    program = refused(tmp_path, {}, {"fields": ["bm", "width"]}, layer=True)
    assert program.classes == []


def test_fields_by_the_end_of_their_path(tmp_path: Path) -> None:
    program = refused(tmp_path, ONE, {"fields": ["deep.bm"]})
    assert [(c.name, c.fields) for c in program.classes] == [("class.c", ("deep.bm",))]
    roles = {p.name: p.role for p in program.points}
    assert (roles["deep.bm"], roles["bm"], roles["class.c"]) == ("neutral", "bits", "bits")


def test_the_order_of_the_entry_counts(tmp_path: Path) -> None:
    program = refused(tmp_path, {}, {"fields": ["wide", "bm"]})
    (cls,) = program.classes
    assert [m for _, m in cls.members] == [(True, 16), (True, 64)]
    assert cls.of((True, 16), ()) == "c0"
    assert cls.of((1, 16), ()) == (1, 16)
