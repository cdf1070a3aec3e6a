"""What the language is to Python: annotations, records, checks, knobs, and nothing else."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import typing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import selc.lang as lang
from selc.lang import (
    AssumeError,
    Aux,
    Bits,
    Fact,
    KnobError,
    Neutral,
    Request,
    RequireError,
    Runtime,
    Unpinnable,
    assume,
    float32,
    knob,
    knobs,
    record,
    require,
    selection,
)
from selc.lang.kinds import Kind, Role


@record
class Launch:
    splits: Bits[int]
    block: Neutral[int] = 64


@selection(family="attention", scope="launch")
def attention(batch: Runtime[int], stride: int = 0) -> Launch:
    """Chooses."""
    require(batch > 0, "a batch")
    return Launch(splits=knob("splits", choices=(1, 2), default=2) + stride)


def test_a_selection_stays_what_it_was() -> None:
    assert attention(3) == Launch(splits=2, block=64)
    assert attention(batch=3, stride=4).splits == 6
    assert attention.__name__ == "attention"
    assert attention.__doc__ == "Chooses."
    assert vars(attention)["__selection__"] == lang.Selection("attention", "launch")
    with pytest.raises(ValueError, match="'batch' is neither 'request' nor 'launch'"):
        selection(family="x", scope="batch")  # type: ignore[arg-type]


def test_records_are_frozen_and_compare_by_value() -> None:
    launch = Launch(splits=1)
    assert dataclasses.replace(launch, block=128) == Launch(1, 128)
    with pytest.raises(dataclasses.FrozenInstanceError):
        launch.splits = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("alias", "mark"),
    [
        (Fact[int], Kind("fact")),
        (Request[int], Kind("request")),
        (Runtime[int], Kind("runtime")),
        (Unpinnable[int], Kind("unpinnable")),
        (Bits[int], Role("bits")),
        (Neutral[int], Role("neutral")),
        (Aux[int], Role("aux")),
    ],
)
def test_marks_are_annotations(alias: object, mark: object) -> None:
    assert typing.get_args(alias) == (int, mark)
    hints = typing.get_type_hints(Launch, include_extras=True)
    assert hints["splits"] == Bits[int]


def test_checks() -> None:
    require(True)
    assume(1)
    with pytest.raises(RequireError, match="fits"):
        require(0, "fits")
    with pytest.raises(AssumeError, match="small"):
        assume(0 > 1, "small")
    assert issubclass(RequireError, AssertionError)
    assert issubclass(AssumeError, AssertionError)


def test_knobs() -> None:
    assert attention(1).splits == 2
    with knobs(splits=1):
        assert attention(1).splits == 1
        with knobs({"splits": 2}, other=5):
            assert attention(1).splits == 2
        assert attention(1).splits == 1
    assert attention(1).splits == 2
    assert knob("first", choices=("a", "b")) == "a"


def test_knobs_refuse_what_is_no_choice() -> None:
    with knobs(splits=3), pytest.raises(KnobError, match=r"'splits' is set to 3; its choices are"):
        attention(1)
    with knobs(splits=True), pytest.raises(KnobError):  # 1 and True are different values
        attention(1)
    with pytest.raises(KnobError, match="no choices"):
        knob("none", choices=())


@given(st.floats(allow_nan=False))
def test_float32_rounds_once(x: float) -> None:
    y = float32(x)
    assert float32(y) == y
    assert float32(-x) == -y


def test_float32_values() -> None:
    assert float32(0.1) == 0.10000000149011612
    assert float32(1e39) == float("inf")
    assert float32(-1e39) == float("-inf")
    assert float32(16777217) == 16777216.0


def test_everything_is_exported() -> None:
    assert all(hasattr(lang, name) for name in lang.__all__)


def test_importing_it_imports_little() -> None:
    code = (
        "import sys, dataclasses, typing, contextlib, contextvars; before = set(sys.modules);"
        "import selc.lang; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.'); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    new = {name.split(".")[0] for name in done.stdout.split()}
    assert new <= {"selc", "math", "struct", "_struct", "__future__"}


USER_FILE = """\
from selc.lang import Bits, Request, Runtime, assume, float32, knob, record, require, selection

@record
class Batch:
    num_tokens: Runtime[int]
    seqlen: Request[int]

@record
class Launch:
    splits: Bits[int]
    rest: int

@selection(family="attention", scope="launch")
def attention(heads: int, batch: Batch) -> Launch:
    assume(batch.num_tokens > 0, "work")
    require(heads % 2 == 0)
    stride = knob("stride", choices=(0, 512), default=0)
    scale = float32(batch.seqlen / 3)
    return Launch(splits=batch.num_tokens // 64 + stride, rest=int(scale))

reveal_type(attention(8, Batch(num_tokens=1, seqlen=2)).splits)
reveal_type(knob("x", choices=("a", "b")))
Batch(num_tokens="no", seqlen=1)
attention(8, Batch(1, 2)).splits = 3
attention("8")
"""


@pytest.mark.slow
def test_mypy_accepts_it_and_sees_through_it(tmp_path: Path) -> None:
    from mypy import api

    path = tmp_path / "user.py"
    path.write_text(USER_FILE, encoding="utf-8")
    out, _, _ = api.run(["--strict", "--no-error-summary", "--hide-error-context", str(path)])
    lines = [line.partition("user.py:")[2] for line in out.splitlines()]
    assert lines == [
        '21: note: Revealed type is "int"',
        '22: note: Revealed type is "str"',
        '23: error: Argument "num_tokens" to "Batch" has incompatible type "str"; expected "int"'
        "  [arg-type]",
        '24: error: Property "splits" defined in "Launch" is read-only  [misc]',
        '25: error: Missing positional argument "batch" in call to "attention"  [call-arg]',
        '25: error: Argument 1 to "attention" has incompatible type "str"; expected "int"'
        "  [arg-type]",
    ]
