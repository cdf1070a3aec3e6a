"""Bit classes of kernels whose classes are known, and the file compiled with."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from selc.diag.diagnostic import Refused, Sink  # noqa: E402
from selc.driver.compile import run as compile_run  # noqa: E402
from selc.driver.options import CompileOptions  # noqa: E402
from selc.frontend.facts.partition import read_partition  # noqa: E402
from selc.harness.bits.classes_command import ClassesOptions, run  # noqa: E402
from selc.harness.bits.command import BitsOptions  # noqa: E402
from selc.harness.selector import Selector  # noqa: E402
from tests.harness.test_bits import compiled  # noqa: E402

ALL = [[s, w] for s, w in itertools.product((16, 32, 64), (4, 8))]
BY_STRIDE = [ALL[0:2], ALL[2:4], ALL[4:6]]
MODULE = "tests.harness.bit_kernels"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    path = tmp_path / "configs.json"
    path.write_text(json.dumps(ALL))
    return path


def classes(
    directory: Path, out: Path, kernels: str = "pairs", quick: bool = True, **more: Any
) -> tuple[int, dict[str, Any]]:
    bits = BitsOptions((directory,), (f"{MODULE}:{kernels}",), device="cpu", out=out, quick=quick)
    outcome = run(ClassesOptions(bits, ("stride", "warps"), **more))
    return outcome.exit_code, outcome.json


def members(answer: dict[str, Any]) -> list[Any]:
    return [c["members"] for c in answer["classes"]]


def test_classes_are_found_and_compile(directory: Path, tmp_path: Path, configs: Path) -> None:
    out = tmp_path / "classes.json"
    code, answer = classes(directory, out, configs=configs, magnitudes=True)
    assert code == 0
    assert members(answer) == BY_STRIDE
    assert answer["left_out"] == answer["in_no_class"] == []
    content = json.loads(out.read_text())
    sink = Sink()
    read = read_partition(out.read_text(), str(out), sink)
    assert read is not None, sink.items
    assert read.versions["torch"] == torch.__version__
    assert (read.kernel, read.dtype, read.family) == ("sha256:toy", "float32", "toy")
    for each in content["classes"]:
        assert each["evidence"] == "measured"
        assert each["seeds"] == [0, 1]
        assert {s["magnitude"] for s in each["shapes"]} == {"normal", "extreme"}
        assert 1 in {s["num_tokens"] for s in each["shapes"]}

    facts = tmp_path / "classes.yaml"
    facts.write_text(
        json.dumps({"classes": {"sums": {"fields": ["stride", "warps"], "file": str(out)}}})
    )
    toy = directory.parent
    outcome = compile_run(
        CompileOptions(
            target=str(toy / "toy.py"),
            facts=(toy / "toy.yaml", facts),
            out=tmp_path / "with_classes",
            emit=("python",),
            native=False,
            use_cache=False,
        )
    )
    assert outcome.exit_code == 0, outcome.diagnostics
    selector = Selector.load(tmp_path / "with_classes")
    (said,) = selector.manifest["classes"]
    assert [c["members"] for c in said["classes"]] == BY_STRIDE
    assert selector.parameters["class.sums"] == ("c0", "c1", "c2")


def test_the_selector_knows_what_to_try(directory: Path, tmp_path: Path) -> None:
    code, answer = classes(directory, tmp_path / "c.json")
    assert code == 0
    tried = [m for c in members(answer) for m in c]
    assert {m[0] for m in tried} == {16, 32, 64}
    assert {m[1] for m in tried} == {4, 8}


def test_the_order_of_trying_does_not_show(directory: Path, tmp_path: Path, configs: Path) -> None:
    texts = set()
    for seed in range(4):
        order = list(ALL)
        random.Random(seed).shuffle(order)
        configs.write_text(json.dumps(order))
        classes(directory, tmp_path / "c.json", configs=configs)
        texts.add((tmp_path / "c.json").read_text())
    assert len(texts) == 1


def test_one_launch_is_enough_to_part_a_class(
    directory: Path, tmp_path: Path, configs: Path
) -> None:
    code, answer = classes(directory, tmp_path / "c.json", "part_at_21", False, configs=configs)
    assert code == 0
    bad = {tuple(m) for m, _ in answer["in_no_class"]}
    assert bad == {(16, 8), (32, 8), (64, 8)}  # alone they have other bits than among 21 rows
    assert members(answer) == [[[16, 4]], [[32, 4]], [[64, 4]]]


def test_data_of_mixed_magnitudes_parts_what_other_data_does_not(
    directory: Path, tmp_path: Path, configs: Path
) -> None:
    out = tmp_path / "c.json"
    assert members(classes(directory, out, "part_extreme", configs=configs)[1]) == BY_STRIDE
    code, answer = classes(directory, out, "part_extreme", configs=configs, magnitudes=True)
    assert (code, members(answer)) == (0, [[m] for m in ALL])


def test_what_is_unstable_or_moves_is_in_no_class(
    directory: Path, tmp_path: Path, configs: Path
) -> None:
    code, answer = classes(directory, tmp_path / "c.json", "unstable", configs=configs)
    assert (code, members(answer)) == (0, [BY_STRIDE[0], BY_STRIDE[2]])
    assert {tuple(m) for m, _ in answer["in_no_class"]} == {(32, 4), (32, 8)}
    assert "ran again" in answer["in_no_class"][0][1]
    code, answer = classes(directory, tmp_path / "c.json", "moving", configs=configs)
    assert (code, members(answer)) == (0, [BY_STRIDE[0], [[32, 4]], BY_STRIDE[2]])
    ((member, why),) = answer["in_no_class"]
    assert member == [32, 8]
    assert "move with its batch" in why


def test_what_cannot_run_is_left_out_and_listed(
    directory: Path, tmp_path: Path, configs: Path
) -> None:
    code, answer = classes(directory, tmp_path / "c.json", "lacking", configs=configs)
    assert (code, members(answer)) == (0, BY_STRIDE[:2])
    assert [m for m, _ in answer["left_out"]] == BY_STRIDE[2]
    assert "no kernel with stride 64" in answer["left_out"][0][1]


def test_other_bits_fields_are_given(directory: Path, tmp_path: Path) -> None:
    bits = BitsOptions(
        (directory,), (f"{MODULE}:pairs",), device="cpu", out=tmp_path / "c.json", quick=True
    )
    outcome = run(ClassesOptions(bits, ("warps",)))
    stride = (Selector.load(directory).default or {})["plan.stride"]
    assert outcome.json["given"] == {"stride": stride}
    assert members(outcome.json) == [[[4], [8]]]
    outcome = run(ClassesOptions(bits, ("warps",), given=("stride=64",)))
    assert json.loads((tmp_path / "c.json").read_text())["given"] == {"stride": 64}
    with pytest.raises(Refused, match="no other bits point"):
        run(ClassesOptions(bits, ("warps",), given=("warps=4",)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[16]]", "no configuration"),
        ("{}", "no configuration"),
        ("[[16, 4], [0.5, 4]]", "cannot hold"),
        ("[", "not JSON"),
        ("[]", "no configuration to compare"),
    ],
)
def test_odd_configurations(
    directory: Path, tmp_path: Path, configs: Path, text: str, why: str
) -> None:
    configs.write_text(text)
    with pytest.raises(Refused, match=why):
        classes(directory, tmp_path / "c.json", configs=configs)


def test_a_profile_adds_its_batches(directory: Path, tmp_path: Path, configs: Path) -> None:
    profile = tmp_path / "p.jsonl"
    inputs = {"num_tokens": 173, "batch_size": 2, "max_seqlen_k": 99, "capturing": True}
    line = {"format": 1, "family": "toy", "selector": "", "inputs": inputs, "extra": {}, "count": 3}
    profile.write_text(json.dumps(line) + "\n")
    classes(directory, tmp_path / "c.json", configs=configs, profiles=(profile,))
    shapes = json.loads((tmp_path / "c.json").read_text())["classes"][0]["shapes"]
    assert any(s["num_tokens"] == 173 for s in shapes)


def test_the_budget_is_kept_and_said(directory: Path, tmp_path: Path, configs: Path) -> None:
    out = tmp_path / "c.json"
    bits = BitsOptions(
        (directory,), (f"{MODULE}:pairs",), device="cpu", out=out, quick=True, budget=0.0
    )
    outcome = run(ClassesOptions(bits, ("stride", "warps"), configs))
    assert outcome.exit_code == 1
    assert outcome.json["cases_late"] > 0
    assert outcome.json["cases"] == 0
    assert not out.exists()
