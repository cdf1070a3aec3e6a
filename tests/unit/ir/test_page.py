"""docs/ir.md: its table of operations is that of the code, its example is a graph."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

from selc.ir.dump import dump
from selc.ir.op import TABLE
from selc.ir.read import read

PAGE = Path(__file__).resolve().parents[3] / "docs" / "ir.md"
START, END = "<!-- operations", "<!-- end -->"


def operations() -> str:
    rows = ["| operation | arguments | total | value |", "|---|---|---|---|"]
    for op, row in TABLE.items():
        count = "..." if row.arity == -1 else str(row.arity)
        doc = row.doc.replace("|", "\\|")
        rows.append(f"| `{op.value}` | {count} | {'yes' if row.total else ''} | {doc} |")
    return "\n".join(rows) + "\n"


def test_table_of_operations(golden: Callable[[Path, str], None]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    head, start, rest = page.partition(START)
    note, _, _ = rest.partition("\n")
    _, end, tail = rest.partition(END)
    golden(PAGE, f"{head}{start}{note}\n{operations()}{end}{tail}")


def test_example() -> None:
    block = PAGE.read_text(encoding="utf-8").split("## Text\n\n")[1].split("\n\nInputs")[0]
    text = textwrap.dedent(block) + "\n"
    assert dump(read(text)) == text
