"""The battery on the kernels that come with selc, with small models on the CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

pytest.importorskip("torch")

from selc.cli import app

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "kernels"
FAMILIES = ("attention", "gemm", "moe", "all_reduce", "rms_norm")


@pytest.fixture(scope="module")
def selectors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("families")
    out = {}
    for family in FAMILIES:
        out[family] = folder / f"{family}_selector"
        done = CliRunner().invoke(
            app,
            [
                *("compile", str(EXAMPLES / f"{family}.py")),
                *("--facts", str(EXAMPLES / f"{family}-small.yaml")),
                *("-o", str(out[family]), "--no-native", "--no-cache"),
            ],
        )
        assert done.exit_code == 0, done.output
    return out


def bits(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    done = CliRunner().invoke(
        app, ["bits", *map(str, arguments), "--device", "cpu", "--format", "json"]
    )
    assert done.exit_code in (0, 1), done.output
    return done.exit_code, json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_pinned_bits_stay_and_unpinned_bits_do_not(
    selectors: dict[str, Path], tmp_path: Path, family: str
) -> None:
    code, answer = bits(selectors[family], "-o", tmp_path / "bits.jsonl")
    (found,) = answer["families"]
    assert code == 0, found["why"]
    total = found["total"]
    assert total["pinned"]["differs"] == total["pinned"]["failed"] == 0
    assert total["pinned"]["equal"] > 300
    assert total["control"]["differs"] > 0


@pytest.mark.slow
def test_the_fixed_count_scheme_fails(selectors: dict[str, Path], tmp_path: Path) -> None:
    """Splits counted per launch, not placed by tokens, move with chunks: the battery says so."""
    (tmp_path / "counted.py").write_text(
        "from selc.harness.kernels.attention import Attention\n"
        "class Counted(Attention):\n"
        "    parameters = (*Attention.parameters, 'split_stride')\n"
        "    def launch(self, choice, inputs):\n"
        "        fixed = {k: v for k, v in choice.items() if k != 'split_stride'}\n"
        "        return super().launch({**fixed, 'num_splits': 4}, inputs)\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        code, answer = bits(selectors["attention"], "--kernels", "counted:Counted", "--quick")
    (found,) = answer["families"]
    assert code == 1
    assert "chunk" in {r["group"] for r in found["differing"]}


@pytest.mark.slow
def test_classes_of_attention(selectors: dict[str, Path], tmp_path: Path) -> None:
    """The stride orders the sums; how many rows of queries share a block does not."""
    out = tmp_path / "classes.json"
    code, answer = bits(selectors["attention"], "--classes", "--quick", "-o", out)
    assert code == 0
    assert answer["fields"] == ["split_stride", "BLOCK_M"]
    for each in answer["classes"]:
        assert len({stride for stride, _ in each["members"]}) == 1
    assert len(answer["classes"]) == 3


def test_cells_are_listed(selectors: dict[str, Path]) -> None:
    code, answer = bits(selectors["gemm"], "--list")
    (found,) = answer["families"]
    assert code == 0
    assert len(found["cells"]) > 400


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--fields", "x"), "--fields goes with --classes"),
        (("--classes",), "needs a file"),
        (("--classes", "-o", "c.json", "--fields", "BLOCK_X"), "no point `BLOCK_X`"),
        (("--kernels", "no_such:thing"), "SEL950"),
        (("--tuple", "nowhere.yaml"), "nowhere.yaml"),
        (("--budget", "soon"), "soon"),
    ],
)
def test_odd_arguments(selectors: dict[str, Path], arguments: tuple[str, ...], text: str) -> None:
    done = CliRunner().invoke(app, ["bits", str(selectors["gemm"]), "--device", "cpu", *arguments])
    assert done.exit_code == 2, done.output
    assert text in done.stderr
    assert "Traceback" not in done.output
