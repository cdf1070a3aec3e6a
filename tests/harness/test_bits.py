"""The battery on kernels with planted faults: each is found, by the cells meant for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from selc.diag.diagnostic import Refused  # noqa: E402
from selc.driver.compile import run as compile_run  # noqa: E402
from selc.driver.options import CompileOptions  # noqa: E402
from selc.harness.bits import command, report  # noqa: E402
from selc.harness.bits.battery import Battery, moving  # noqa: E402
from selc.harness.bits.cells import KINDS  # noqa: E402
from selc.harness.bits.compare import as_bits, degenerate, difference  # noqa: E402
from selc.harness.device import Device  # noqa: E402
from selc.harness.selector import Selector  # noqa: E402
from tests.harness.bit_kernels import FACTS, FAULTS, KNOB, KNOB_FACTS, SELECTION, Toy  # noqa: E402


def compiled(folder: Path, selection: str = SELECTION, facts: str = FACTS) -> Path:
    (folder / "toy.py").write_text(selection)
    (folder / "toy.yaml").write_text(facts)
    outcome = compile_run(
        CompileOptions(
            target=str(folder / "toy.py"),
            facts=(folder / "toy.yaml",),
            out=folder / "toy_selector",
            emit=("python",),
            native=False,
            use_cache=False,
        )
    )
    assert outcome.exit_code == 0, outcome.diagnostics
    return folder / "toy_selector"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("toy"))


def battery(directory: Path, kernels: Toy, **more: Any) -> dict[str, Any]:
    selector = Selector.load(directory)
    assert selector.default is not None
    made = Battery(selector, kernels, Device.open("cpu"), selector.default, **more)
    return report.summary(list(made.run()), *moving(selector, kernels))


def test_clean_kernels_pass_and_the_control_fails(directory: Path) -> None:
    answer = battery(directory, Toy())
    assert answer["verdict"] == "equal", answer["why"]
    assert set(answer["groups"]) == set(KINDS)
    assert all(g["pinned"]["equal"] > 0 for g in answer["groups"].values())
    assert answer["total"]["control"]["differs"] > 20


@pytest.mark.parametrize("kind", sorted(FAULTS))
def test_a_planted_fault_is_found(directory: Path, kind: str) -> None:
    answer = battery(directory, Toy(FAULTS[kind]))
    assert answer["verdict"] == "differs"
    assert kind in {r["group"] for r in answer["differing"]}
    first = next(r for r in answer["differing"] if r["group"] == kind)
    assert first["first"]["element"] == 3
    assert first["differing"] >= 1


def test_a_quick_battery_finds_most_faults(directory: Path) -> None:
    for kind in sorted(set(FAULTS) - {"size"}):
        assert battery(directory, Toy(FAULTS[kind]), quick=True)["verdict"] == "differs", kind


def payload(bits: int) -> float:
    return float(torch.tensor(bits, dtype=torch.int32).view(torch.float32))


@pytest.mark.parametrize(
    ("alone", "here", "differs"),
    [(0.0, -0.0, True), (0x7FC00000, 0x7FC00001, True), (0x7FC00000, 0x7FC00000, False)],
)
def test_bits_and_not_values_are_compared(alone: float, here: float, differs: bool) -> None:
    a, b = torch.ones((2, 4)), torch.ones((2, 4))
    for t, v in ((a, alone), (b, here)):
        if isinstance(v, int):
            t.view(torch.int32)[1, 2] = v
        else:
            t[1, 2] = v
    odd = difference(as_bits(a), as_bits(b))
    assert (odd is not None) == differs
    if odd is not None:
        assert (odd.row, odd.element, odd.count, odd.total) == (1, 2, 1, 8)


@pytest.mark.parametrize("special", [(0.0, -0.0), (float("nan"), -float("nan"))])
def test_zeros_and_nans_of_other_bits_are_found(
    directory: Path, special: tuple[float, float]
) -> None:
    answer = battery(directory, Toy(FAULTS["chunk"], special=special), quick=True)
    assert {r["group"] for r in answer["differing"]} == {"chunk"}


def test_equal_nans_are_equal(directory: Path) -> None:
    nan = float("nan")
    answer = battery(directory, Toy(FAULTS["chunk"], special=(nan, nan)), quick=True)
    assert answer["verdict"] == "equal"


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "float16", "float64", "float8_e4m3fn", "int8", "bool"]
)
def test_every_type_has_bits(dtype: str) -> None:
    a = torch.tensor([[0, 1], [1, 0]]).to(getattr(torch, dtype))
    b = a.clone()
    assert difference(as_bits(a), as_bits(b)) is None
    b[1, 0] = 0
    assert difference(as_bits(a), as_bits(b)).row == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("values", "word"), [([1.0, 1.0], "equal"), ([float("nan")] * 2, "finite"), ([1.0, 2.0], "")]
)
def test_outputs_that_show_nothing(values: list[float], word: str) -> None:
    assert word in degenerate(torch.tensor([values]))
    assert bool(degenerate(torch.tensor([values]))) == bool(word)


def test_kernels_that_ignore_the_choice_leave_the_control_without_power(directory: Path) -> None:
    answer = battery(directory, Toy(reads=False), quick=True)
    assert answer["verdict"] == "inconclusive"
    assert "unpinned choices moved and the bits did not" in answer["why"]
    answer = battery(directory, Toy(reads=False, parameters=("warps",)), quick=True)
    assert answer["verdict"] == "inconclusive"
    assert "read none of the points" in answer["why"]


def test_without_a_moving_point_there_is_no_control(tmp_path: Path) -> None:
    fixed = compiled(tmp_path, 'def plan(num_tokens, batch_size, max_seqlen_k, capturing):\n'
                     '    return {"stride": 32, "warps": 4}\n')  # fmt: skip
    answer = battery(fixed, Toy(), quick=True)
    assert (answer["verdict"], answer["control_applies"]) == ("equal", False)
    assert "no control" in answer["why"]


def test_rows_in_multiples_are_filled_up(tmp_path: Path) -> None:
    facts = FACTS.replace(
        "type: int, range: [1, 512]", "type: int, range: [8, 512], multiple_of: 8", 1
    )
    directory = compiled(tmp_path, facts=facts)
    answer = battery(directory, Toy())
    assert answer["verdict"] == "equal", answer["why"]
    assert answer["total"]["pinned"]["equal"] > 300
    assert answer["total"]["pinned"]["skipped"] < 60, answer["skipped"]
    answer = battery(directory, Toy(FAULTS["companions"]), quick=True)
    assert "companions" in {r["group"] for r in answer["differing"]}


def test_knobs_that_refuse_the_unpinned_selection_leave_a_control(tmp_path: Path) -> None:
    """Under the tuple's own knob, stock launches are refused: other knobs show the power."""
    selection = SELECTION
    for before, after in KNOB.items():
        selection = selection.replace(before, after)
    directory = compiled(tmp_path, selection, FACTS + KNOB_FACTS)
    selector = Selector.load(directory)
    assert (selector.default or {})["room"] == 1
    outcome = command.run(options(directory, quick=True))
    (answer,) = outcome.json["families"]
    assert "it had room=4" in outcome.text
    assert answer["control_knobs"] == {"room": 4}
    assert answer["verdict"] == "equal", answer["why"]
    assert answer["total"]["control"]["differs"] > 10
    assert answer["total"]["control"]["skipped"] == 0


def test_what_cannot_run_is_no_pass(directory: Path) -> None:
    pinned = Selector.load(directory).choice(
        Selector.load(directory).default or {}, dict(Selector.load(directory).examples)
    )
    answer = battery(directory, Toy(unsupported=pinned["stride"]), quick=True)
    assert answer["verdict"] == "inconclusive"
    assert answer["total"]["pinned"]["equal"] == 0

    class Broken(Toy):
        def launch(self, choice: Any, inputs: Any) -> Any:
            if len(inputs.requests) == 8:
                raise RuntimeError("illegal memory access")
            return super().launch(choice, inputs)

    answer = battery(directory, Broken(), quick=True)
    assert answer["verdict"] == "failed"

    class Short(Toy):
        def launch(self, choice: Any, inputs: Any) -> Any:
            return super().launch(choice, inputs)[:1]

    assert battery(directory, Short(), quick=True)["verdict"] == "failed"


def test_thresholds_are_reached(directory: Path) -> None:
    """Every threshold in the manifest, one below and one above, comes up as an input."""
    selector = Selector.load(directory)
    made = Battery(selector, Toy(), Device.open("cpu"), selector.default or {})
    seen: dict[str, set[int]] = {}
    for record in made.run():
        for name, value in record.get("inputs", {}).items():
            seen.setdefault(name, set()).add(value)
    for name in ("num_tokens", "batch_size", "max_seqlen_k"):
        values = selector.thresholds[name]
        assert values
        for value in values:
            assert {value - 1, value, value + 1} <= seen[name], name
    assert set(range(1, 65)) <= seen["batch_size"]


def test_the_budget_is_kept_and_said(directory: Path) -> None:
    answer = battery(directory, Toy(), budget=0.0)
    assert answer["verdict"] == "inconclusive"
    assert any("budget" in why for why in answer["skipped"])


def options(directory: Path, **more: Any) -> command.BitsOptions:
    given: dict[str, Any] = {"kernels": ("tests.harness.bit_kernels:good",), "device": "cpu"}
    return command.BitsOptions((directory,), **{**given, **more})


def test_the_command(directory: Path, tmp_path: Path) -> None:
    out = tmp_path / "bits.jsonl"
    outcome = command.run(options(directory, out=out, quick=True))
    assert outcome.exit_code == 0
    (family,) = outcome.json["families"]
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines[0]["kind"] == "header"
    assert lines[0]["selector"] == Selector.load(directory).hash
    assert lines[-1]["kind"] == "summary"
    cells = [r for r in lines if r["kind"] == "cell"]
    for arm, counts in family["total"].items():
        for state, count in counts.items():
            assert count == sum(r["arm"] == arm and r["status"] == state for r in cells)
    assert "without pins" in outcome.text
    listed = command.listed(options(directory, quick=True))
    names = [c["cell"] for c in listed.json["families"][0]["cells"]]
    assert names == [r["cell"] for r in cells if r["arm"] == "pinned"]
    assert len(set(names)) == len(names)


def test_another_selectors_tuple_is_refused(directory: Path, tmp_path: Path) -> None:
    tuple_ = tmp_path / "tuple.yaml"
    Selector.load(directory).package.commit(tuple_)
    assert command.run(options(directory, tuple_path=tuple_, quick=True)).exit_code == 0
    tuple_.write_text(tuple_.read_text().replace(Selector.load(directory).hash, "0" * 64))
    with pytest.raises(Refused, match="toy"):
        command.run(options(directory, tuple_path=tuple_, quick=True))
