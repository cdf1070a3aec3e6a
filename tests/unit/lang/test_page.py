"""The program in docs/dsl.md runs."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "dsl.md"


def test_the_page_runs() -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```python\n")[1:]
    assert blocks
    for block in blocks:
        names: dict[str, object] = {"__name__": "page"}
        exec(compile(block.split("```")[0], str(PAGE), "exec"), names)
