"""Processes killed while they compile and store leave nothing that a later one could stumble over.

SELC_KILLS=200 asks for more kills than the usual ten.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

from selc.driver import cache
from tests.adapters import load
from tests.driver.conftest import Compile

ROOT = Path(__file__).resolve().parents[2]
KILLS = int(os.environ.get("SELC_KILLS", "10"))

VICTIM = """
import itertools
from pathlib import Path
from selc.driver import cachekey
from selc.driver.compile import run
from selc.driver.options import CompileOptions

cachekey.own_code = lambda: "as it is"
for limit in itertools.cycle(range(9, 16)):
    options = CompileOptions(target="plan.py", facts=(Path("facts.yaml"),), emit=("python",),
                             native=False, max_candidates=limit, out=Path("shared_selector"))
    state = run(options).json["cache"]
    print(state, flush=True)
    if state == "hit":
        for path in Path(CACHE, "v1", "entries").glob("*.json"):
            path.unlink(missing_ok=True)
"""


def test_killed_anywhere(compiled: Compile, project: Path, private_cache: Path) -> None:
    reference = {
        limit: compiled(max_candidates=limit, use_cache=False).json["pins"] for limit in (9, 12)
    }
    draw = random.Random(5)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for kill in range(KILLS):
        victim = subprocess.Popen(
            [sys.executable, "-c", VICTIM.replace("CACHE", repr(str(private_cache)))],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert victim.stdout is not None
        if kill % 5:
            assert victim.stdout.readline().strip() in ("hit", "miss")
        time.sleep(draw.random() * 0.3)
        victim.kill()
        victim.communicate()
        assert cache.verify().exit_code == 0
        for limit, pins in reference.items():
            again = compiled(max_candidates=limit, out=project / "shared_selector")
            assert (again.exit_code, again.json["pins"]) == (0, pins)
        module = load(project / "shared_selector" / "__init__.py", f"survivor_{kill}")
        assert module.select(m=7).width in (16, 128)
    assert cache.clear().exit_code == 0
