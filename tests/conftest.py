"""Options and fixtures that every kind of test shares.

Generated examples are the same in every run, so that a change is judged by what it changes;
`SELC_RANDOM=1` looks for new ones. Slow machines are no failure.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "selc",
    deadline=None,
    derandomize=os.environ.get("SELC_RANDOM") != "1",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("selc")

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / ".corpus"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite expected outputs instead of comparing"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if (CORPUS / "vllm").is_dir() and (CORPUS / "sglang").is_dir():
        return
    skip = pytest.mark.skip(reason="no engines in .corpus/; `make corpus` fetches them")
    for item in items:
        if item.get_closest_marker("corpus"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder that holds the packages `vllm` and `sglang` as text; for tests marked `corpus`."""
    return CORPUS


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compare text with a file; with --update-golden, write the file."""
    update = bool(request.config.getoption("--update-golden"))

    def compare(path: Path, text: str) -> None:
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        expected = path.read_text(encoding="utf-8") if path.exists() else ""
        if text != expected:
            lines = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), str(path), "now", lineterm=""
            )
            pytest.fail("\n".join(lines) + "\n`make golden` accepts the difference", pytrace=False)

    return compare
