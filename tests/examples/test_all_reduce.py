"""All-reduce: thresholds by hand, and what the engines' own functions decide."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from examples import all_reduce as ar
from selc.lang import RequireError

KIB, MIB = 1024, 1024 * 1024
H100 = ar.Device("cuda", 90, 132, True, True)
B200 = ar.Device("cuda", 100, 148, True, True)
ENGINE = ar.Engine(False, 1 << 30)
VLLM = ar.Comm("vllm", None, None, 8 * MIB, 0, 8 * MIB, True, False, False, None, None, True, True)
SGLANG = ar.Comm(
    "sglang", "v2", None, 8 * MIB, 32 * MIB, 128 * MIB, False, False, False, None, None, True, True
)


def launch(
    size: int, ranks: int, comm: ar.Comm, capturing: bool = False, device: ar.Device = H100
) -> ar.Launch:
    """The launch for a message of so many bytes: tokens of 8 bfloat16 each."""
    assert size % 16 == 0
    return ar.all_reduce(
        device, ar.Model(8, 2), ar.Parallel(ranks), ENGINE, comm, ar.Batch(size // 16, capturing)
    )


def algorithms(ranks: int, sizes: list[int], comm: ar.Comm, **more: Any) -> list[str]:
    return [launch(size, ranks, comm, **more).algorithm for size in sizes]


def test_sglang_on_hopper() -> None:
    graph = [16, 384 * KIB, 384 * KIB + 16, 128 * MIB, 128 * MIB + 16]
    assert algorithms(4, graph, SGLANG, capturing=True) == [
        "one_shot_push",
        "one_shot_push",
        "two_shot_pull",
        "two_shot_pull",
        "nccl",
    ]
    eager = [896 * KIB, 896 * KIB + 16, 32 * MIB, 32 * MIB + 16]
    assert algorithms(4, eager, SGLANG) == [
        "one_shot_push",
        "two_shot_multicast",
        "two_shot_multicast",
        "nccl",
    ]
    two = [16 * MIB, 16 * MIB + 16, 128 * MIB, 128 * MIB + 16]
    assert algorithms(2, two, SGLANG, capturing=True) == [
        "one_shot_push",
        "one_shot_pull",
        "one_shot_pull",
        "nccl",
    ]
    eight = [128 * KIB, 128 * KIB + 16, 512 * KIB - 16, 512 * KIB, 128 * MIB, 128 * MIB + 16]
    assert algorithms(8, eight, SGLANG, capturing=True) == [
        "one_shot_push",
        "two_shot_pull",
        "two_shot_pull",
        "two_shot_multicast",
        "two_shot_multicast",
        "nccl",
    ]


def test_sglang_on_blackwell() -> None:
    sizes = [2304 * KIB, 2304 * KIB + 16, 128 * MIB]
    assert algorithms(4, sizes, SGLANG, capturing=True, device=B200) == [
        "one_shot_push",
        "two_shot_pull",
        "two_shot_pull",
    ]
    sizes = [768 * KIB, 768 * KIB + 16, 128 * MIB]
    assert algorithms(8, sizes, SGLANG, device=B200) == [
        "one_shot_push",
        "two_shot_multicast",
        "two_shot_multicast",
    ]


def test_thresholds_are_clipped_to_the_buffers() -> None:
    small = dataclasses.replace(SGLANG, push_bytes=64 * KIB, pull_bytes=1 * MIB)
    assert algorithms(4, [64 * KIB, 64 * KIB + 16, 1 * MIB, 1 * MIB + 16], small) == [
        "one_shot_push",
        "one_shot_pull",
        "two_shot_multicast",
        "nccl",
    ]


def test_blocks() -> None:
    def grid(size: int, ranks: int, **more: Any) -> tuple[int, int]:
        got = launch(size, ranks, SGLANG, **more)
        return got.blocks, got.threads

    assert grid(16, 4) == (132, 512)  # push: one block per processor
    assert grid(32 * MIB, 4) == (32, 512)  # multicast: 128 over the ranks
    assert grid(32 * MIB, 4, capturing=True) == (64, 512)  # pull
    assert grid(128 * MIB, 8, device=B200) == (32, 512)
    assert grid(128 * MIB, 2, device=B200) == (148, 512)
    assert [launch(m, 4, VLLM).blocks for m in (16, 8192, 8208, 36 * 8192)] == [1, 1, 2, 36]
    assert launch(512 * KIB - 16, 4, VLLM).blocks == 36


def test_in_place_only_in_graphs() -> None:
    assert launch(32 * MIB, 4, SGLANG, capturing=True).in_place
    assert not launch(16, 4, SGLANG, capturing=True).in_place  # pushed
    assert not launch(32 * MIB, 4, SGLANG).in_place


def test_vllm_on_hopper() -> None:
    sizes = [512 * KIB - 16, 512 * KIB, 8 * MIB - 16, 8 * MIB, 32 * MIB - 16, 32 * MIB]
    assert algorithms(4, sizes, VLLM) == [
        "one_shot_pull",
        "two_shot_pull",
        "two_shot_pull",
        "symm_mem_multimem",
        "symm_mem_multimem",
        "nccl",
    ]
    assert algorithms(8, [256 * KIB - 16, 256 * KIB], VLLM) == [
        "one_shot_pull",
        "symm_mem_multimem",
    ]
    assert algorithms(2, [8 * MIB - 16, 8 * MIB, 64 * MIB], VLLM) == [
        "one_shot_pull",
        "symm_mem_two_shot",
        "nccl",
    ]


def test_what_may_not_be_chosen() -> None:
    owner = dataclasses.replace(VLLM, two_shot_in_rank_order=False)
    with pytest.raises(RequireError, match="ranks"):
        launch(1 * MIB, 4, owner)
    free = dataclasses.replace(VLLM, nccl_fixed=False)
    with pytest.raises(RequireError, match="NCCL"):
        launch(64 * MIB, 4, free)


def test_mscclpp_rows() -> None:
    rows = ((1024, 512, 21), (2048, 1024, 42))
    comm = dataclasses.replace(SGLANG, custom=None, mscclpp=rows)
    got = [launch(size, 8, comm, capturing=True) for size in (1024, 1040, 2048, 2064)]
    assert [(g.algorithm, g.blocks, g.threads) for g in got] == [
        ("mscclpp", 21, 512),
        ("mscclpp", 42, 1024),
        ("mscclpp", 42, 1024),
        ("nccl", 0, 0),
    ]
    assert launch(1024, 8, comm).algorithm == "nccl"  # only while a graph is captured


class Message:
    """Stands for a tensor of which only the size is asked."""

    def __init__(self, size: int) -> None:
        self.nbytes = size
        self.dtype = "bfloat16"

    def numel(self) -> int:
        return self.nbytes // 2

    def element_size(self) -> int:
        return 2


def functions(path: Path, wanted: set[str], names: dict[str, Any]) -> dict[str, Any]:
    """Functions and methods of a file, executed from its own text over stubs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name in wanted]
    assert {n.name for n in found} == wanted
    for node in found:
        node.decorator_list = []
    future = ast.parse("from __future__ import annotations").body
    exec(compile(ast.Module([*future, *found], []), path.name, "exec"), names)
    return names


SIZES = sorted(
    {base + d for base in (16, 16384, 131072, *(k << 18 for k in (1, 2, 4, 32, 128, 256, 512)))
     for d in (-16, 0, 16) if base + d > 0}
)  # fmt: skip


@pytest.mark.corpus
@pytest.mark.parametrize("ranks", [2, 4, 6, 8])
@pytest.mark.parametrize("symmetric", [False, True])
def test_vllm_agrees(corpus: Path, ranks: int, symmetric: bool) -> None:
    folder = corpus / "vllm/distributed/device_communicators"
    tables: dict[str, Any] = {"Any": Any, "KiB": KIB, "MiB": MIB}
    body = ast.parse((folder / "all_reduce_utils.py").read_text(encoding="utf-8")).body
    kept: list[ast.stmt] = [n for n in body if isinstance(n, (ast.Assign, ast.AnnAssign))]
    kept = [n for n in kept if "logger" not in ast.unparse(n)]
    exec(compile(ast.Module(kept, []), "tables", "exec"), tables)
    weak = {"is_weak_contiguous": lambda _: True}
    admits = functions(folder / "custom_all_reduce.py", {"should_custom_ar"}, dict(weak))
    symm = functions(folder / "symm_mem.py", {"should_use_symm_mem"}, {})
    limit = min(8 * MIB, tables["CUSTOM_ALL_REDUCE_MAX_SIZES"]["9.0"][ranks])
    custom = SimpleNamespace(disabled=False, world_size=ranks, fully_connected=True, max_size=limit)
    symm_mem = SimpleNamespace(
        disabled=False,
        dtype="bfloat16",
        max_size=tables["SYMM_MEM_ALL_REDUCE_MAX_SIZES"]["9.0"][ranks],
    )
    config = tables["NCCL_SYMM_MEM_ALL_REDUCE_CONFIG"]
    comm = dataclasses.replace(VLLM, nccl_symm_mem=symmetric, pull_bytes=1 << 40)
    for size in SIZES:
        got = launch(size, ranks, comm).algorithm
        preferred = config["custom_ar_preferred_ranges"].get(ranks)
        if symmetric and preferred is not None and not preferred[0] < size < preferred[1]:
            assert got == "nccl_symm_mem"
        elif admits["should_custom_ar"](custom, Message(size)):
            assert got in ("one_shot_pull", "two_shot_pull"), size
        elif symm["should_use_symm_mem"](symm_mem, Message(size)):
            assert got == ("symm_mem_two_shot" if ranks == 2 else "symm_mem_multimem"), size
        else:
            assert got == "nccl", size


@pytest.mark.corpus
@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("device", [H100, B200], ids=["h100", "b200"])
def test_sglang_0_5_10_agrees(corpus: Path, ranks: int, device: ar.Device) -> None:
    names: dict[str, Any] = {
        "is_weak_contiguous": lambda _: True,
        "is_sm100_supported": lambda: device is B200,
        "ModeConfig": lambda push, pull: SimpleNamespace(
            one_shot_push_threshold=push, one_shot_pull_threshold=pull
        ),
        "INF": 1 << 60,
        "AllReduceAlgo": SimpleNamespace(
            ONE_SHOT_PUSH="one_shot_push",
            ONE_SHOT_PULL="one_shot_pull",
            TWO_SHOT_PULL="two_shot_pull",
        ),
    }
    path = corpus / "sglang/srt/distributed/device_communicators/custom_all_reduce_v2.py"
    functions(path, {"should_custom_ar", "_determine_algo", "_init_config"}, names)
    names["_init_config"]()
    comm = SimpleNamespace(
        disabled=False,
        max_pull_size=16 * MIB,
        override_algo=None,
        config=names["THRESHOLD_2_SHOT_MAP"][ranks],
    )
    mine = dataclasses.replace(SGLANG, custom="v2-0.5.10", push_bytes=16 * MIB, pull_bytes=16 * MIB)
    for size in [*SIZES, *(k * KIB + d for k in (160, 192, 720, 896) for d in (0, 16))]:
        got = launch(size, ranks, mine, device=device).algorithm
        if names["should_custom_ar"](comm, Message(size)):
            assert got == names["_determine_algo"](comm, Message(size)), size
        else:
            assert got == "nccl"
