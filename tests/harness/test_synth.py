"""`selc profile synth`: every call is one that the selector takes, and what is left out is said."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from selc.cli import app
from selc.harness import workload
from selc.harness.call import inputs_of, requests_of
from selc.harness.selector import Selector
from selc.harness.synth.description import PRESETS, PROCESSES, Cost, Engine, describe
from selc.harness.synth.lengths import SHAPES
from selc.harness.synth.synth import Asked, synth

ROOT = Path(__file__).resolve().parents[2]
ATTENTION = """
from selc.lang import Bits, Neutral, Runtime, Unpinnable, assume, record, require, selection

@record
class Engine:
    page_size: int
    max_num_batched_tokens: int

@record
class Batch:
    batch_size: Runtime[int]
    num_tokens: Runtime[int]
    max_seqlen_k: Unpinnable[int]
    capturing: Runtime[bool]

@record
class Launch:
    splits: Bits[int]
    block: Neutral[int]

@selection(family="attention", scope="launch")
def attention(engine: Engine, batch: Batch) -> Launch:
    require(batch.max_seqlen_k <= LONGEST, "keys are addressed in so many bits")
    splits = 4 if batch.max_seqlen_k > 1024 else 1
    block = 64 if batch.num_tokens > 32 and not batch.capturing else engine.page_size
    return Launch(splits=splits, block=block)
"""
GEMM = """
from selc.lang import Bits, Runtime, record, selection

@record
class Tile:
    m: Bits[int]

@selection(family="gemm", scope="launch")
def gemm(m: Runtime[int]) -> Tile:
    return Tile(m=16 if m <= 16 else 128)
"""


def compiled(folder: Path, name: str, source: str, facts: str) -> Path:
    path, given, out = folder / f"{name}.py", folder / f"{name}.yaml", folder / f"{name}_selector"
    path.write_text(source)
    given.write_text(facts)
    arguments = ["compile", str(path), "--facts", str(given), "--no-native", "-o", str(out)]
    done = CliRunner().invoke(app, [*arguments, "--no-cache"])
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def selectors(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("selectors")
    attention = """
facts: {engine: {page_size: 32, max_num_batched_tokens: 1024}}
inputs:
  batch_size: {range: [1, 64]}
  num_tokens: {range: [1, 2048]}
  max_seqlen_k: {range: [1, 16384]}
  capturing: {values: [false, true]}
"""
    gemm = "inputs:\n  m: {range: [8, 4096], multiple_of: 8}\n"
    return [
        compiled(folder, "attention", ATTENTION.replace("LONGEST", "16384"), attention),
        compiled(folder, "gemm", GEMM, gemm),
    ]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("preset", ["w-a", "w-b", "w-b-c"])
def test_every_call_is_taken(preset: str, selectors: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "p.jsonl"
    answer = synth(selectors, Asked(preset, requests=60), out)
    assert answer.exit_code == 0
    loaded = {s.family: s for s in map(Selector.load, selectors)}
    steps = sum(load["steps"] for load in answer.json["loads"])
    counted = dict.fromkeys(loaded, 0)
    distinct = dict.fromkeys(loaded, 0)
    for line in lines(out):
        selector = loaded[line["family"]]
        assert line["selector"] == selector.hash
        assert selector.default is not None
        assert selector.choice(selector.default, line["inputs"])
        requests = requests_of(line["inputs"], line["extra"])
        assert line["extra"]["page_size"] == 32
        asked = inputs_of(requests, selector.examples)
        rows = sum(r.rows for r in requests)
        if line["family"] == "gemm":
            assert line["inputs"] == {"m": -(-rows // 8) * 8}
        else:
            assert line["inputs"] == asked
            assert rows <= 1024
            assert len(requests) <= 64
            assert all(r.cached % 32 == 0 and r.cached < r.context for r in requests)
        counted[line["family"]] += line["count"]
        distinct[line["family"]] += 1
    assert set(counted.values()) == {steps}
    assert all(1 < n <= 24 for n in distinct.values())
    for family in answer.json["families"]:
        assert family["distinct"] == distinct[family["family"]]
        assert family["left_out"] == []
        assert abs(family["tokens_error"]) < 0.02
        assert (family["keys_error"] is None) == (family["family"] == "gemm")
        assert abs(family["keys_error"] or 0.0) < 0.02
    told = [d.message for d in answer.diagnostics if "capturing" in d.message]
    assert told == [
        "nothing says what `capturing` of `attention` is in a batch: always "
        f"{loaded['attention'].examples['capturing']!r}"
    ]
    shown = workload.show([out])
    assert shown.exit_code == 0
    assert {f["calls"] for f in shown.json["families"]} == {steps}


@pytest.mark.parametrize("name", ["attention", "moe"])
def test_bundled_selections_take_every_step(name: str, tmp_path: Path) -> None:
    folder = ROOT / "examples" / "kernels"
    one, out = tmp_path / f"{name}_selector", tmp_path / "p.jsonl"
    arguments = ["compile", str(folder / f"{name}.py"), "--no-native", "--no-cache", "-o", str(one)]
    done = CliRunner().invoke(app, [*arguments, "--facts", str(folder / f"{name}-small.yaml")])
    assert done.exit_code == 0, done.output
    answer = synth([one], Asked("w-a", loads=(0.5, 2.0), requests=60), out)
    assert answer.exit_code == 0
    assert answer.json["families"][0]["left_out"] == []
    selector = Selector.load(one)
    assert selector.default is not None
    assert all(selector.choice(selector.default, line["inputs"]) for line in lines(out))


def test_totals_said_are_totals_written(selectors: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "p.jsonl"
    answer = synth(selectors[:1], Asked("w-a", loads=(0.5,), requests=80, calls=12), out).json
    (load,), (family,) = answer["loads"], answer["families"]
    for name, error in (("rows", "tokens_error"), ("context", "keys_error")):
        kept = sum(
            line["count"] * sum(getattr(r, name) for r in requests_of({}, line["extra"]))
            for line in lines(out)
        )
        true = load["tokens" if name == "rows" else "keys"]
        assert kept / true - 1 == pytest.approx(family[error])
    assert load["tokens"] == load["prompt_tokens"] - load["cached_tokens"] + (
        load["output_tokens"] - load["requests"]
    )


def test_the_same_seed_gives_the_same_file(selectors: list[Path], tmp_path: Path) -> None:
    texts = []
    for number, seed in enumerate((3, 3, 4)):
        out = tmp_path / f"{number}.jsonl"
        command = [sys.executable, "-m", "selc", "profile", "synth", *map(str, selectors)]
        command += ["--preset", "w-a", "--requests", "20", "--seed", str(seed), "-o", str(out)]
        environment = {**os.environ, "PYTHONHASHSEED": str(number + 1)}
        subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True)
        texts.append(out.read_bytes())
    assert texts[0] == texts[1] != texts[2]


def test_refused_steps_are_left_out_and_said(tmp_path: Path) -> None:
    facts = """
facts: {engine: {page_size: 16, max_num_batched_tokens: 8192}}
inputs:
  batch_size: {range: [1, 64]}
  num_tokens: {range: [1, 8192]}
  max_seqlen_k: {range: [1, 16384]}
  capturing: {values: [false, true]}
selection: {assume: ["max_seqlen_k <= 700 or batch_size < 3"]}
"""
    one = compiled(tmp_path, "one", ATTENTION.replace("LONGEST", "16384"), facts)
    out = tmp_path / "p.jsonl"
    answer = synth([one], Asked("w-a", loads=(1.0,), requests=60), out)
    assert answer.exit_code == 0
    (family,) = answer.json["families"]
    (left,) = family["left_out"]
    assert "batch_size < 3" in left["why"]
    assert left["steps"] + family["calls"] == answer.json["loads"][0]["steps"]
    assert left["steps"] > 0 < family["calls"]
    assert any(d.code == "SEL952" and str(left["steps"]) in d.message for d in answer.diagnostics)
    assert all(
        c["inputs"]["max_seqlen_k"] <= 700 or c["inputs"]["batch_size"] < 3 for c in lines(out)
    )


def test_all_steps_refused(tmp_path: Path) -> None:
    facts = """
facts: {engine: {page_size: 16, max_num_batched_tokens: 8192}}
inputs:
  batch_size: {range: [1, 64]}
  num_tokens: {range: [1, 8192]}
  max_seqlen_k: {range: [1, 16384]}
  capturing: {values: [false, true]}
selection: {assume: ["batch_size > 60"]}
"""
    one = compiled(tmp_path, "one", ATTENTION.replace("LONGEST", "16384"), facts)
    answer = synth([one], Asked("w-b", requests=2), tmp_path / "p.jsonl")
    assert answer.exit_code == 2
    (diagnostic,) = answer.diagnostics
    assert diagnostic.code == "SEL952"
    assert "batch_size > 60" in diagnostic.message
    assert not (tmp_path / "p.jsonl").exists()


def test_inputs_are_rounded_up_to_what_is_declared(tmp_path: Path) -> None:
    facts = "inputs: {m: {values: [1, 2]}}"
    one = compiled(tmp_path, "one", GEMM, facts)
    path = tmp_path / "d.yaml"
    path.write_text(
        "arrivals: {process: closed}\nloads: 1\nprompt: 50\noutput: 1\nrequests: 1\n"
        "engine: {chunk_budget: 2}\n"
    )
    assert synth([one], Asked(None, path), tmp_path / "a.jsonl").exit_code == 0
    odd = compiled(tmp_path, "odd", GEMM, "inputs: {m: {values: [4]}}")
    answer = synth([odd], Asked(None, path), tmp_path / "b.jsonl")
    assert answer.exit_code == 0
    assert [c["inputs"] for c in lines(tmp_path / "b.jsonl")] == [{"m": 4}]


def test_said_inputs_win(selectors: list[Path], tmp_path: Path) -> None:
    path, out = tmp_path / "d.yaml", tmp_path / "p.jsonl"
    path.write_text("inputs: {capturing: true}\n")
    answer = synth(selectors, Asked("w-b-c", path, requests=4), out)
    assert answer.diagnostics == []
    assert all(c["inputs"]["capturing"] for c in lines(out) if c["family"] == "attention")


@pytest.mark.parametrize(
    ("text", "place", "words", "hint"),
    [
        ("arrivals: {process: poison}", "1:21", "`poison`", "`poisson`"),
        ("engine: {chunk_buget: 5}", "1:10", "`chunk_buget`", "`chunk_budget`"),
        ("engine:\n  chunk_budget: 0", "2:17", "0 is not in", "change it"),
        ("prompt: {distribution: lognorml, mean: 5}", "1:24", "`lognorml`", "`lognormal`"),
        ("prompt: {distribution: lognormal, mean: 5}", "1:9", "`sigma` is missing", "sigma"),
        ("prompt: {distribution: uniform, min: 5, max: 3}", "1:46", "3 is not in 5", "change"),
        ("prompt: {distribution: geometric, mean: .nan}", "1:41", "nan", "change"),
        ("prompt: long", "1:9", "whole number", "write"),
        ("output: 2.5", "1:9", "whole number", "write"),
        ("loads: [0.5, -1]", "1:14", "-1", "change"),
        ("loads: []", "1:8", "empty", "at least one"),
        ("arrivals: {process: closed}\nloads: [0.5]", "2:9", "in flight", "whole"),
        ("arrivals: {process: turns}", "1:11", "`turns` is missing", "how many turns"),
        ("arrivals: {process: poisson, turns: 3}", "1:30", "conversations", "process: turns"),
        ("inputs: {captring: true}", "1:10", "`captring`", "`capturing`"),
        ("step: [1]", "1:7", "a mapping", "overhead_us"),
        ("requests: 5\nrequests: 6", "2:1", "twice", "keep one"),
        ("a: [1\nb: 2", "2:2", "not YAML", "brackets"),
        ("prompt: !!python/object:os.system x", "1:9", "no meaning", "tag"),
        ("- 1", "1:1", "a mapping", "key: value"),
        ("", "1:1", "a mapping", "key: value"),
        ("x: &a [*a]", "1:4", "too deeply", "flatten"),
    ],
)
def test_errors_point_at_what_is_wrong(
    text: str, place: str, words: str, hint: str, selectors: list[Path], tmp_path: Path
) -> None:
    path = tmp_path / "d.yaml"
    path.write_text(text)
    out = tmp_path / "p.jsonl"
    answer = synth(selectors, Asked("w-b", path), out)
    assert answer.exit_code == 2
    (diagnostic,) = answer.diagnostics
    assert str(diagnostic.span) == f"{path}:{place}"
    assert diagnostic.code == "SEL957"
    assert words in diagnostic.message
    assert hint in diagnostic.help
    assert not out.exists()


def test_the_page_lists_every_key_and_its_example_is_one(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "profiles.md").read_text()
    (example,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    path = tmp_path / "d.yaml"
    path.write_text(example)
    assert describe(None, path).engine == Engine(kv_tokens=500_000)
    assert describe(None, path).cost == Cost()
    for name in (*(f.name for f in fields(Engine) + fields(Cost)), *SHAPES, *PROCESSES):
        assert f"`{name}`" in text
    for preset in PRESETS:
        loads = describe(preset, None).loads
        row = next(line for line in text.splitlines() if line.startswith(f"| `{preset}`"))
        assert [float(n) for n in re.findall(r"[0-9.]+", row.split("|")[3])] == list(loads)


def test_errors_of_the_command(selectors: list[Path], tmp_path: Path) -> None:
    def run(*options: str, where: str = "p.jsonl") -> tuple[int, str]:
        arguments = ["profile", "synth", str(selectors[1]), *options, "-o", str(tmp_path / where)]
        done = CliRunner().invoke(app, arguments)
        return done.exit_code, done.output

    assert run()[0] == 2
    assert "--preset or --description" in run()[1]
    for options, words in (
        (("--preset", "w-b-c", "--load", "0.5"), "SEL957"),
        (("--preset", "w-b", "--load", "nan"), "SEL957"),
        (("--preset", "w-b", "--seconds", "-1"), "SEL957"),
        (("--preset", "w-b", "--seconds", "1e-9"), "SEL957"),
        (("--description", str(tmp_path / "none.yaml")), "SEL914"),
    ):
        code, output = run(*options)
        assert (code, words in output) == (2, True), output
    code, output = run("--preset", "w-b", "--requests", "2", where="none/p.jsonl")
    assert (code, "SEL915" in output) == (2, True)
    done = CliRunner().invoke(
        app, ["profile", "synth", str(tmp_path), "--preset", "w-b", "-o", str(tmp_path / "p")]
    )
    assert (done.exit_code, "SEL951" in done.output) == (2, True)


def test_a_selector_without_a_legal_tuple(tmp_path: Path) -> None:
    facts = """
facts: {engine: {page_size: 16, max_num_batched_tokens: 8192}}
inputs:
  batch_size: {range: [1, 9]}
  num_tokens: {range: [1, 99]}
  max_seqlen_k: {range: [1, 9000]}
  capturing: {values: [false, true]}
selection: {require: ["result['splits'] * 1024 >= max_seqlen_k"]}
"""
    path, given = tmp_path / "one.py", tmp_path / "one.yaml"
    path.write_text(ATTENTION.replace("LONGEST", "16384"))
    given.write_text(facts)
    out = tmp_path / "selector"
    arguments = ["compile", str(path), "--facts", str(given), "--no-native", "-o", str(out)]
    assert CliRunner().invoke(app, [*arguments, "--no-cache"]).exit_code == 1
    answer = synth([out], Asked("w-b"), tmp_path / "p.jsonl")
    assert answer.exit_code == 1
    assert [d.code for d in answer.diagnostics] == ["SEL955"]


def test_a_file_is_readable_by_others(selectors: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "p.jsonl"
    mask = os.umask(0o022)
    try:
        synth(selectors[1:], Asked("w-b-c", requests=1), out)
    finally:
        os.umask(mask)
    assert out.stat().st_mode & 0o777 == 0o644
