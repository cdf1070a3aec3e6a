"""Journals: what is kept, what is dropped, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from selc.diag.diagnostic import Refused
from selc.harness.journal import Journal, digest, read_journal

HEAD: dict[str, Any] = {
    "command": "bench",
    "selectors": {"a": "1"},
    "kernels": {"a": "2"},
    "device": {"kind": "cpu", "torch": "2"},
    "calls": "x",
}


def written(path: Path, *records: dict[str, Any]) -> None:
    journal = Journal.open(path, HEAD)
    for record in records:
        journal.write(record)
    journal.close()


def test_records_come_back(tmp_path: Path) -> None:
    path = tmp_path / "j"
    written(path, {"kind": "sample", "seconds": [0.1, 1 / 3]})
    written(path, {"kind": "sample", "seconds": [0.2]}, {"kind": "other"})
    journal = Journal.open(path, HEAD)
    assert [r["seconds"] for r in journal.of_kind("sample")] == [[0.1, 1 / 3], [0.2]]
    head, records = read_journal(path)
    assert (head, records) == ({"kind": "header", "format": 1, **HEAD}, journal.records)


def test_without_a_file() -> None:
    journal = Journal.open(None, HEAD)
    journal.write({"kind": "sample"})
    assert journal.records == [{"kind": "sample"}]


@pytest.mark.parametrize("cut", range(1, 24))
def test_a_torn_last_line_is_dropped(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "j"
    written(path, {"kind": "sample", "n": 1}, {"kind": "sample", "n": 2})
    path.write_bytes(path.read_bytes()[:-cut])
    written(path, {"kind": "sample", "n": 3})
    _, records = read_journal(path)
    assert [r["n"] for r in records] == [1, 3]


def test_a_torn_header_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_text('{"kind": "hea')
    written(path, {"kind": "sample"})
    assert read_journal(path)[1] == [{"kind": "sample"}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"command": "tune"}, "was written by another command"),
        ({"selectors": {"a": "0"}}, "was written with other selectors (a: '1', now '0')"),
        ({"kernels": {"a": "0"}}, "was written with other kernels"),
        ({"device": {"kind": "cpu", "torch": "3"}}, "other software (torch: '2', now '3')"),
        ({"calls": "y"}, "was written for other calls"),
        ({"new": 1}, "was written with another `new`"),
    ],
)
def test_another_header_is_refused(tmp_path: Path, change: dict[str, Any], words: str) -> None:
    path = tmp_path / "j"
    written(path)
    before = path.read_bytes()
    with pytest.raises(Refused) as caught:
        Journal.open(path, {**HEAD, **change})
    assert words in str(caught.value)
    assert caught.value.diagnostics[0].code == "SEL954"
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "words", "line"),
    [
        ("no\n", "is no journal", 1),
        ("[]\n", "is no journal", 1),
        ('{"kind": "sample"}\n', "is no journal of this version", 1),
        ('{"kind": "header", "format": 2}\n', "is no journal of this version", 1),
        ('{"kind": "header", "format": 1}\n{"x\n{"kind": "a"}\n', "is damaged in this line", 2),
    ],
)
def test_what_is_no_journal(tmp_path: Path, text: str, words: str, line: int) -> None:
    path = tmp_path / "j"
    path.write_text(text)
    with pytest.raises(Refused, match=words) as caught:
        Journal.open(path, HEAD)
    assert caught.value.diagnostics[0].span.line == line
    assert path.read_text() == text


def test_two_runs_at_once(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path / "j", HEAD)
    with pytest.raises(Refused, match="is in use by another run"):
        Journal.open(tmp_path / "j", HEAD)
    journal.close()
    Journal.open(tmp_path / "j", HEAD).close()


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be opened"):
        Journal.open(tmp_path / "no" / "j", HEAD)


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j"
    journal = Journal.open(path, HEAD)
    journal.write({"kind": "sample", "n": 1})
    monkeypatch.setattr(journal, "_stream", Path("/dev/full").open("wb"))  # noqa: SIM115
    with pytest.raises(Refused, match="can no longer be written: No space left on device") as full:
        journal.write({"kind": "sample", "n": 2})
    assert "make room" in full.value.diagnostics[0].help
    assert [r["n"] for r in journal.records] == [1, 2]
    assert [r["n"] for r in read_journal(path)[1]] == [1]


def test_digests_do_not_depend_on_order() -> None:
    assert digest(["a", "b"]) == digest(["b", "a"]) != digest(["ab"])
