"""Collects the cases of `*.sel` files as tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import adapters
from tests.sel_case import Execution, Failure, difference
from tests.sel_file import REWRITTEN, Case, SelError, parse, rewrite


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".sel":
        return SelFile.from_parent(parent, path=file_path)
    return None


class SelFile(pytest.File):
    """A file of cases."""

    def collect(self) -> Iterator[pytest.Item]:
        try:
            cases = parse(self.path.read_text(encoding="utf-8"))
        except SelError as error:
            raise self.CollectError(f"{self.path}: {error}") from error
        for case in cases:
            yield SelItem.from_parent(self, name=case.name, case=case)


class SelItem(pytest.Item):
    """One case."""

    def __init__(self, *, case: Case, **rest: Any) -> None:
        super().__init__(**rest)
        self.case = case

    def runtest(self) -> None:
        with tempfile.TemporaryDirectory(prefix="sel-") as folder:
            execution = Execution(self.case, Path(folder))
            try:
                changes = execution.run()
            except adapters.Missing as missing:
                pytest.skip(str(missing))
        if changes and self.config.getoption("--update-golden"):
            # Read again: other cases of this file may have been rewritten meanwhile.
            now = {c.name: c for c in parse(self.path.read_text(encoding="utf-8"))}[self.name]
            wanted = {(s.kind, s.argument): text for s, text in changes}
            places = [(s, wanted.get((s.kind, s.argument))) for s in now.sections]
            rewrite(self.path, [(s, t) for s, t in places if t is not None and s.kind in REWRITTEN])
        elif changes:
            raise Failure("\n".join(difference(s, text) for s, text in changes))
        if execution.skipped:
            pytest.skip("; ".join(execution.skipped))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, Failure):
            place = f"{self.path}:{self.case.line}"
            again = f"pytest '{self.nodeid}'  (with --update-golden: accept the difference)"
            return f"{place}: {excinfo.value}\n\n{again}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.name
