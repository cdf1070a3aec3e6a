"""Recording in workers: what they counted is written when they end, however they were started."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.kit import attention
from tests.unit.codegen.selectors import load, write

PROGRAM = """
import importlib, multiprocessing, sys
sys.path.insert(0, sys.argv[1])
m = importlib.import_module(sys.argv[2])
recorder = m.record(sys.argv[3]) if sys.argv[4] != "spawn" else None

def work(k):
    own = recorder if recorder is not None else m.record(sys.argv[3])
    for _ in range(50):
        own.select(1 + k, 4096, True)

if __name__ == "__main__":
    if recorder is not None:
        recorder.select(100, 4096, True)
    context = multiprocessing.get_context(sys.argv[4])
    workers = [context.Process(target=work, args=(k,)) for k in range(3)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers(method: str, tmp_path: Path) -> None:
    package = write(attention().spec(), tmp_path, native=False)
    (tmp_path / "program.py").write_text(PROGRAM)
    path = tmp_path / "profile.jsonl"
    command = [sys.executable, "program.py", str(package.parent), package.name, str(path), method]
    subprocess.run(command, check=True, cwd=tmp_path)
    counts = {}
    for line in map(json.loads, path.read_text().splitlines()):
        counts[line["inputs"]["num_tokens"]] = line["count"]
    assert counts == {1: 50, 2: 50, 3: 50} | ({100: 1} if method == "fork" else {})


def test_memory_is_bounded(tmp_path: Path) -> None:
    module = load(write(attention().spec(), tmp_path, native=False))
    path = tmp_path / "profile.jsonl"
    recorder = module.record(path, limit=10)
    for k in range(95):
        recorder.select(1 + k, 4096, True)
        assert len(recorder) <= 10
    assert len(path.read_text().splitlines()) == 90
    recorder.close()
    assert len(path.read_text().splitlines()) == 95
    assert recorder.dropped == 0
