"""Linting texts and projects in a folder of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from selc.lint.config import Config
from selc.lint.model import Finding
from selc.lint.run import Options, lint

Lint = Callable[..., list[Finding]]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SELC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lint:
    """Lint a project given as file names and texts; the folder becomes the current one."""
    monkeypatch.chdir(tmp_path)

    def run(
        files: dict[str, str] | str,
        paths: Sequence[str] = (),
        modes: Sequence[str] = (),
        use_cache: bool = False,
        **settings: object,
    ) -> list[Finding]:
        texts = {"module.py": files} if isinstance(files, str) else files
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        config = Config(tmp_path, modes=tuple(modes), **settings)  # type: ignore[arg-type]
        named = tuple(tmp_path / name for name in (paths or texts))
        return lint(config, Options(named, use_cache=use_cache)).findings

    return run
