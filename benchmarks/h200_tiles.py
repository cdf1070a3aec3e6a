"""Tiles that are worth a try on an H200, and what the example selections take."""

from __future__ import annotations

import importlib.util
import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Choice = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
SHARED = 232448
TABLE = "E=128,N=768,device_name=NVIDIA_H200"


def fits(m: int, n: int, k: int, stages: int, walks: bool) -> bool:
    return (m + n) * k * 2 * stages + (m * n if walks else 0) + 1024 <= SHARED


def tile(m: int, n: int, k: int, split: int, warps: int, stages: int, **more: Any) -> Choice:
    names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "SPLIT_K", "num_warps", "num_stages")
    chosen = dict(zip(names, (m, n, k, split, warps, stages), strict=True))
    return {**chosen, "GROUP_M": 8, "padding": 1, "persistent": False, **more}


def gemm_candidates(m: int, quick: bool) -> Iterator[Choice]:
    """Tiles worth a try at so many rows."""
    some = few_rows if m <= 64 else some_rows if m <= 512 else many_rows
    yield from some(m, quick)


def few_rows(m: int, quick: bool) -> Iterator[Choice]:
    height = 16 if m <= 16 else 32 if m <= 32 else 64
    stages = (4,) if quick else (3, 4, 6)
    splits = (1, 2, 4, 8)
    for n, k, split, s in itertools.product((32, 64, 128), (64, 128, 256), splits, stages):
        if fits(height, n, k, s, False):
            for swap in (True, False) if height < 64 <= n else (False,):
                yield tile(height, n, k, split, 4, s, swap_ab=swap)


def some_rows(m: int, quick: bool) -> Iterator[Choice]:
    splits = (1, 2, 4) if m < 512 else (1, 2)
    stages = (4,) if quick else (3, 4)
    for h, n, k in itertools.product((64, 128), (64, 128, 256), (64, 128)):
        for split, s in itertools.product(splits, stages):
            if fits(h, n, k, s, False):
                yield tile(h, n, k, split, 8 if h * n >= 128 * 128 else 4, s)


def many_rows(m: int, quick: bool) -> Iterator[Choice]:
    groups = (8,) if quick else (1, 8, 16)
    for h, n, k in ((128, 128, 64), (128, 128, 128), (128, 256, 64), (256, 128, 64)):
        for s, walks, group in itertools.product((3, 4), (True, False), groups):
            if fits(h, n, k, s, walks):
                yield tile(h, n, k, 1, 8, s, persistent=walks, GROUP_M=group)
    yield tile(128, 256, 128, 1, 8, 2, persistent=True)


def table() -> dict[int, dict[str, int]]:
    """The rows of the tuned table of experts."""
    rows = json.loads((ROOT / "examples/tables/vllm-0.21.0-moe.json").read_text())[TABLE]
    return {int(count): row for count, row in rows.items()}


def moe_choice(up: Mapping[str, int], down: Mapping[str, int], **more: Any) -> Choice:
    out: Choice = {"expert_assignment": "sorted"}
    for name, row in (("gate_up", up), ("down", down)):
        out |= {f"{name}.{key}": value for key, value in row.items()}
        out |= {f"{name}.SPLIT_K": 1}
        out |= {f"{name}.{key}": value for key, value in more.items() if key != "naive"}
    if more.get("naive"):
        out["expert_assignment"] = "naive"
    return out


def moe_candidates() -> Iterator[tuple[str, Choice]]:
    """Each distinct row, named by its token counts, with either order of operands."""
    named: dict[str, list[int]] = {}
    rows = table()
    for count, row in rows.items():
        named.setdefault(json.dumps(row), []).append(count)
    for text, counts in named.items():
        row = json.loads(text)
        name = "row " + "=".join(map(str, counts))
        yield name, moe_choice(row, row)
        if row["BLOCK_SIZE_M"] < 64:
            yield name + " mma", moe_choice(row, row, swap_ab=False)


def stock(family: str, tokens: int, linear: str = "qkv") -> Choice:
    """What the example selection takes for so many tokens, run as ordinary Python."""
    module = example(family)
    batch = module.Batch(num_tokens=tokens)
    engine = {"max_num_batched_tokens": 8192}
    if family == "rms_norm":
        chosen = module.rms_norm(
            module.Model(hidden=4096, element_size=2), module.Engine(**engine), batch
        )
        return {name: getattr(chosen, name) for name in ("BLOCK_SIZE", "num_warps")}
    sizes = {"hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "intermediate": 14336}
    chosen = module.gemm(
        module.Device(num_sms=132, shared_memory=SHARED),
        module.Model(element_size=2, **sizes),
        module.Parallel(tensor=1),
        module.Engine(workspace=1 << 30, **engine),
        batch,
        linear,
    )
    names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "GROUP_M", "SPLIT_K", "num_warps", "num_stages")
    return {"padding": 1, **{name: getattr(chosen, name) for name in names}}


def example(family: str) -> Any:
    """An example selection, imported."""
    if family not in sys.modules:
        path = ROOT / f"examples/kernels/{family}.py"
        spec = importlib.util.spec_from_file_location(family, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[family] = module
        spec.loader.exec_module(module)
    return sys.modules[family]


def short(choice: Mapping[str, Any]) -> str:
    c = choice
    text = f"{c['BLOCK_M']}x{c['BLOCK_N']}x{c['BLOCK_K']} s{c['SPLIT_K']} w{c['num_warps']}"
    text += f" st{c['num_stages']} g{c.get('GROUP_M', 8)}"
    text += " mma" if c.get("swap_ab") is False and c["BLOCK_M"] < 64 else ""
    text += " pdl" if c.get("pdl") else ""
    return text + (" walks" if c.get("persistent") else "")
