"""Native, Python and the interpreter agree on random graphs over every operation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.native.random_selectors import random_maker
from tests.unit.codegen.selectors import compare, write

pytestmark = pytest.mark.native


@pytest.mark.parametrize("seed", range(12))
def test_random_selectors_agree(seed: int, tmp_path: Path):
    spec = random_maker(seed, 60).spec()
    assert compare(spec, write(spec, tmp_path), 1200) > 1000
