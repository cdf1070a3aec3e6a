"""The program in docs/dsl.md runs."""

from __future__ import annotations

import runpy
from pathlib import Path

PAGE = Path(__file__).resolve().parents[3] / "docs" / "dsl.md"


def test_the_page_runs(tmp_path: Path) -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```python\n")[1:]
    assert blocks
    for block in blocks:
        path = tmp_path / "page.py"
        path.write_text(block.split("```")[0], encoding="utf-8")
        runpy.run_path(str(path), run_name="page")
