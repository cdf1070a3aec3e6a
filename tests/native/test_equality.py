"""The families of the examples agree in all their forms; scripts/equality.py asks far more."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.equality import DEPLOYMENTS
from tests.native.equality import Forms, compare

pytestmark = [pytest.mark.native, pytest.mark.slow]


@pytest.mark.parametrize("family", DEPLOYMENTS)
def test_all_forms_agree(family: str, tmp_path: Path) -> None:
    forms = Forms(family, tuple(DEPLOYMENTS[family].split()), tmp_path)
    said = compare(forms, 1000, 12 if family == "gemm" else 40, 1)
    assert len(said) >= 2
    assert not any(" 0 returned" in line for line in said[:2])
