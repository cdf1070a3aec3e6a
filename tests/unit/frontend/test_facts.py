"""Facts files that are right: what they say, and how several of them merge."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path

import pytest

from selc.diag.diagnostic import Sink
from selc.frontend.facts import Facts, InputDecl, load_facts, typed_key


def load(folder: Path, *texts: str) -> Facts:
    paths = []
    for i, text in enumerate(texts):
        paths.append(folder / f"f{i}.yaml")
        paths[-1].write_text(text, encoding="utf-8")
    sink = Sink()
    facts = load_facts(paths, sink)
    assert [f"{d.span}: {d.message}" for d in sink] == []
    return facts


def exact(value: object) -> object:
    return typed_key(value)


WHOLE = """\
layer: h100
selection:
  function: get_config
  scope: launch
  family: moe
  returns: {block_m: neutral, 'a.b': aux, '*': bits}
  require: ["result['split_k'] >= 1"]
  assume:  ["num_tokens <= 8192"]
facts:      {hidden: 4096, dtype: torch.bfloat16, device.num_sms: 132, shape: [1, [2, 3]]}
inputs:
  num_tokens: {kind: runtime, type: int, range: [1, 1000], multiple_of: 16}
  kv_len:     {kind: request, range: [1, 131072]}
  lens:       {kind: unpinnable, length: [1, 64], element: {range: [1, 4096]}}
  step:       {kind: knob, values: [128, 256], default: 256}
  flag:       {kind: runtime, type: bool}
offer:      {algo: ["reduce+scatter", twoshot, twoshot]}
knobs:      {split_stride: 1024, pad: {fixed: 8}}
tables:     {configs: tables/t.json}
functions:
  "current_platform.is_cuda": true
  "torch.cuda.get_device_name": "NVIDIA_H100_80GB_HBM3"
  next_power_of_2: {table: [[1, 1], [3, 4]]}
  get_m: {kind: runtime, range: [1, 64]}
  kernel: opaque
  word: {value: opaque}
env:        {VLLM_TUNED_CONFIG_FOLDER: null, VLLM_X: 1, VLLM_Y: "yes", VLLM_Z: on}
classes:    {gemm: {fields: [BLOCK_SIZE_M, num_warps], file: c.json, given: {split_k: 1}}}
tensors:
  x: {shape: [num_tokens, hidden // 2, 4], dtype: torch.bfloat16, device: cuda}
  y: {shape: [], dtype: float16, strides: []}
objects:
  self.comm: {class: "pkg.comm:CustomComm", attrs: {world_size: 4, cfg.size: 2}}
globals:    {"pkg.mod.LIMIT": 4096}
files:      {"configs/*.json": tables}
"""


def test_every_section(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/t.json").write_text('{"16": {"K": [1, 2.0, null]}, "1": {}}')
    (tmp_path / "c.json").write_text(
        '{"format": 1, "fields": ["BLOCK_SIZE_M", "num_warps"], "device": "d", "dtype": "bf16", '
        '"kernel": "k", "versions": {"torch": "2", "triton": null}, '
        '"classes": [{"members": [[16, 4], [32, 4]], "representative": [32, 4], '
        '"evidence": "proved"}]}'
    )
    facts = load(tmp_path, WHOLE)
    assert (facts.function, facts.scope, facts.family) == ("get_config", "launch", "moe")
    assert facts.returns == {"block_m": "neutral", "a.b": "aux", "*": "bits"}
    assert [e.text for e in facts.require] == ["result['split_k'] >= 1"]
    assert [(e.text, e.span.line, e.span.column) for e in facts.assume] == [
        ("num_tokens <= 8192", 8, 13)
    ]
    assert facts.facts == {
        "hidden": 4096,
        "dtype": "torch.bfloat16",
        "device": {"num_sms": 132},
        "shape": (1, (2, 3)),
    }
    tokens = facts.inputs["num_tokens"]
    assert (tokens.kind, tokens.type, tokens.lo, tokens.hi, tokens.step) == (
        "runtime",
        "int",
        16,
        992,
        16,
    )
    assert (tokens.span.line, tokens.span.column) == (11, 3)
    assert facts.inputs["kv_len"].type == "int"
    lens = facts.inputs["lens"]
    assert (lens.type, lens.length, lens.element) == ("tuple", (1, 64), (1, 4096))
    assert facts.inputs["flag"].values == (False, True)
    assert facts.inputs["step"].default == 256
    knobs = {n: (k.setting, k.fixed, k.choices) for n, k in facts.knobs.items()}
    assert knobs == {
        "split_stride": (1024, False, None),
        "pad": (8, True, None),
        "step": (256, False, (128, 256)),
    }
    assert facts.offer == {"algo": ("reduce+scatter", "twoshot")}
    assert facts.tables == {"configs": {"16": {"K": (1, 2.0, None)}, "1": {}}}
    assert list(facts.tables["configs"]) == ["16", "1"]  # type: ignore[call-overload]  # a dict
    assert facts.table_files == {"configs": tmp_path / "tables/t.json"}
    assert facts.functions["current_platform.is_cuda"].value is True
    assert facts.functions["next_power_of_2"].table == ((1, 1), (3, 4))
    unknown = facts.functions["get_m"]
    assert unknown.kind == "runtime"
    assert unknown.domain is not None
    assert (unknown.domain.lo, unknown.domain.hi) == (1, 64)
    assert facts.functions["kernel"].opaque
    assert not facts.functions["kernel"].is_value
    assert facts.functions["word"].value == "opaque"
    assert facts.env == {
        "VLLM_TUNED_CONFIG_FOLDER": None,
        "VLLM_X": "1",
        "VLLM_Y": "yes",
        "VLLM_Z": "on",
    }
    gemm = facts.classes["gemm"]
    assert (gemm.fields, gemm.given) == (("BLOCK_SIZE_M", "num_warps"), {"split_k": 1})
    assert gemm.file == tmp_path / "c.json"
    assert gemm.partition is not None
    assert [(c.name, c.members) for c in gemm.partition.classes] == [("c0", ((32, 4), (16, 4)))]
    x, y = facts.tensors["x"], facts.tensors["y"]
    assert (x.shape, x.dtype, x.device, x.strides) == (
        ("num_tokens", "hidden // 2", 4),
        "torch.bfloat16",
        "cuda",
        None,
    )
    assert (y.shape, y.dtype, y.strides) == ((), "torch.float16", ())
    comm = facts.objects["self.comm"]
    assert (comm.cls, comm.attrs) == (
        "pkg.comm:CustomComm",
        {"world_size": 4, "cfg": {"size": 2}},
    )
    assert facts.globals == {"pkg.mod.LIMIT": 4096}
    assert facts.files == {"configs/*.json": tmp_path / "tables"}
    assert facts.layers == ("h100",)


def test_no_files() -> None:
    assert load_facts([], Sink()) == Facts()


def test_sources_are_digests_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_bytes(b"{}")
    facts = load(tmp_path, "tables: {t: t.json}\n")
    names = [str(tmp_path / "f0.yaml"), str(tmp_path / "t.json")]
    assert list(facts.sources) == names
    assert facts.sources[names[1]] == hashlib.blake2b(b"{}", digest_size=32).hexdigest()


def test_spans_name_where_a_thing_is_set(tmp_path: Path) -> None:
    facts = load(
        tmp_path,
        "facts:\n  a.b: 1\n  c: {d: 2}\n",
        "facts: {c: {d: 3}}\ninputs:\n  m: {kind: runtime, values: [1]}\n",
    )
    places = {k: (Path(s.path).name, s.line, s.column) for k, s in facts.spans.items()}
    assert places["facts.a.b"] == ("f0.yaml", 2, 3)
    assert places["facts.c.d"] == ("f1.yaml", 1, 13)
    assert places["inputs.m.values"] == ("f1.yaml", 3, 22)


# ---- values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-1", -1),
        ("+3", 3),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0o17", 15),
        ("0b101", 5),
        ("0", 0),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("1.0", 1.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.5e3", 1500.0),
        ("1E-5", 1e-5),
        ("-0.0", -0.0),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("text", "text"),
        ("torch.bfloat16", "torch.bfloat16"),
        ("y", "y"),
        ("n", "n"),
        ("'yes'", "yes"),
        ('"2024-01-01"', "2024-01-01"),
        ("1.2.3", "1.2.3"),
        ("0000:1b", "0000:1b"),
        ("!!str 12", "12"),
        ("!!float 1", 1.0),
        ("[1, [2, a], {b: [3]}]", (1, (2, "a"), {"b": (3,)})),
        ("{1: a, 1.5: b, null: c, [1, 2]: d}", {1: "a", 1.5: "b", None: "c", (1, 2): "d"}),
        ("{on: 1, off: 2}", {"on": 1, "off": 2}),
        ("1 # a comment", 1),
    ],
)
def test_values(tmp_path: Path, text: str, value: object) -> None:
    assert exact(load(tmp_path, f"facts:\n  x: {text}\n").facts["x"]) == exact(value)


def test_values_of_an_input_are_compared_with_their_type(tmp_path: Path) -> None:
    text = (
        "inputs:\n  m: {kind: runtime, values: [1, true, 1.0, 1, 0.0, -0.0, null, {a: [1]}, '1']}\n"
    )
    decl = load(tmp_path, text).inputs["m"]
    assert exact(decl.values) == exact((1, True, 1.0, 0.0, -0.0, None, {"a": (1,)}, "1"))


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ("[1, 2]", "int"),
        ("[1.0]", "float"),
        ("[true]", "bool"),
        ("[full, window]", "str"),
        ("[[], [1]]", "tuple"),
        ("[1, true]", "any"),
        ("[null, 1]", "any"),
        ("[{a: 1}]", "any"),
        ("[torch.float16, torch.bfloat16]", "any"),
        ("[Backend.FLASH]", "any"),
    ],
)
def test_the_type_is_inferred(tmp_path: Path, values: str, type_: str) -> None:
    facts = load(tmp_path, f"inputs: {{m: {{kind: runtime, values: {values}}}}}\n")
    assert facts.inputs["m"].type == type_


@pytest.mark.parametrize(
    ("spec", "bounds"),
    [
        ("range: [5, 5]", (5, 5, 1)),
        ("range: [1, 100], multiple_of: 16", (16, 96, 16)),
        ("range: [-33, 33], multiple_of: 16", (-32, 32, 16)),
        ("range: [0, 15], multiple_of: 16", (0, 0, 16)),
    ],
)
def test_ranges(tmp_path: Path, spec: str, bounds: tuple[int, int, int]) -> None:
    decl = load(tmp_path, f"inputs: {{m: {{kind: runtime, {spec}}}}}\n").inputs["m"]
    assert (decl.lo, decl.hi, decl.step) == bounds


def test_a_kind_may_be_left_to_the_marks_of_the_program(tmp_path: Path) -> None:
    facts = load(tmp_path, "selection: {assume: [m > 0]}\ninputs: {m: {range: [1, 2]}}\n")
    assert facts.inputs["m"].kind == ""


def test_names_that_yaml_takes_for_truth_values(tmp_path: Path) -> None:
    facts = load(tmp_path, "facts: {off: 1}\ninputs: {on: {kind: runtime, values: [1]}}\n")
    assert (facts.facts, list(facts.inputs)) == ({"off": 1}, ["on"])


def test_anchors_and_merge_keys(tmp_path: Path) -> None:
    text = """\
inputs:
  a: &tokens {kind: runtime, range: [1, 64]}
  b: *tokens
  c: {<<: *tokens, kind: request}
  d: {<<: [*tokens], kind: request}
"""
    inputs = load(tmp_path, text).inputs
    assert [inputs[n].kind for n in "abcd"] == ["runtime", "runtime", "request", "request"]
    assert {inputs[n].hi for n in "abcd"} == {64}


def test_a_byte_order_mark_and_windows_lines(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"\xef\xbb\xbffacts:\r\n  a: 1\r\n")
    sink = Sink()
    facts = load_facts([path], sink)
    assert not sink.items
    assert (facts.facts, facts.spans["facts.a"].line) == ({"a": 1}, 2)


# ---- knobs


def test_a_knob_of_inputs_takes_its_setting_from_knobs(tmp_path: Path) -> None:
    text = "inputs: {s: {kind: knob, values: [1, 2, 4]}}\n"
    assert load(tmp_path, text).knobs["s"].setting is None
    facts = load(tmp_path, text, "knobs: {s: 2}\n")
    assert (facts.knobs["s"].setting, facts.knobs["s"].fixed) == (2, False)
    assert facts.inputs["s"].default == 2
    fixed = load(tmp_path, text, "knobs: {s: {fixed: 4}}\n").knobs["s"]
    assert (fixed.setting, fixed.fixed, fixed.choices) == (4, True, (1, 2, 4))


def test_the_range_of_a_knob_is_a_list_of_choices(tmp_path: Path) -> None:
    text = "inputs: {s: {kind: knob, range: [1, 9], multiple_of: 4}}\n"
    assert load(tmp_path, text).knobs["s"].choices == (4, 8)


# ---- merging


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ("{a: 1, b: 2}", "{b: 3}", {"a": 1, "b": 3}),
        ("{d: {x: 1, y: 2}}", "{d: {y: 3, z: 4}}", {"d": {"x": 1, "y": 3, "z": 4}}),
        ("{d: {x: 1}}", "{d.y: 2}", {"d": {"x": 1, "y": 2}}),
        ("{d.e.x: 1}", "{d: {e: {x: 2}}}", {"d": {"e": {"x": 2}}}),
        ("{d.e: 1, d.f: 2}", "{g: 1}", {"d": {"e": 1, "f": 2}, "g": 1}),
        ("{l: [1, 2, 3]}", "{l: [4]}", {"l": (4,)}),
        ("{a: 1}", "{a: null}", {"a": None}),
        ("{d: {x: 1}}", "{d: null}", {"d": None}),
        ("{d: {x: 1}}", "{d: 3}", {"d": 3}),
        ("{d: 3}", "{d.x: 1}", {"d": {"x": 1}}),
        ("{t: {1: a, 2: b}}", "{t: {2: c}}", {"t": {1: "a", 2: "c"}}),
        ("{a: 1}", "", {"a": 1}),
    ],
)
def test_facts_merge(tmp_path: Path, first: str, second: str, merged: object) -> None:
    facts = load(tmp_path, f"facts: {first}\n", f"layer: l\nfacts: {second}\n")
    assert facts.facts == merged


def test_three_files_and_their_layers(tmp_path: Path) -> None:
    facts = load(
        tmp_path,
        "layer: h100\nfacts: {device.num_sms: 132, device.name: H100, sm: 90}\n",
        "layer: tp4\nfacts: {world_size: 4, hidden: 1}\n",
        "facts: {hidden: 2, device.name: H200}\n",
    )
    assert facts.layers == ("h100", "tp4")
    assert facts.layer_keys == {"device.num_sms", "sm", "world_size"}
    assert facts.layer_paths == {str(tmp_path / "f0.yaml"), str(tmp_path / "f1.yaml")}
    assert facts.facts["hidden"] == 2


def test_a_prefix_is_of_a_layer_if_all_below_it_is(tmp_path: Path) -> None:
    facts = load(tmp_path, "layer: h100\nfacts: {device: {num_sms: 132, caps: {}}}\n")
    assert facts.layer_keys == {"device", "device.num_sms", "device.caps"}


def test_another_domain_replaces_the_former(tmp_path: Path) -> None:
    base = "inputs: {m: {kind: runtime, range: [1, 99], multiple_of: 3}}\n"

    def over(text: str) -> InputDecl:
        return load(tmp_path, base, f"inputs: {{m: {text}}}\n").inputs["m"]

    assert over("{values: [1, 2]}").values == (1, 2)
    assert over("{values: [1, 2]}").kind == "runtime"
    assert over("{length: [1, 2], element: {range: [3, 4]}}").length == (1, 2)
    assert (over("{range: [1, 10]}").lo, over("{range: [1, 10]}").hi) == (3, 9)
    assert over("{kind: unpinnable}").kind == "unpinnable"
    assert over("{multiple_of: null}").step == 1
    assert over("{values: [1], range: null}").values == (1,)


def test_another_answer_of_a_function_replaces_the_former(tmp_path: Path) -> None:
    base = "functions: {f: {kind: runtime, range: [1, 9]}}\n"
    for text, value in (("{value: 3}", 3), ("4", 4), ("null", None), ("[1]", (1,))):
        fact = load(tmp_path, base, f"functions: {{f: {text}}}\n").functions["f"]
        assert (fact.is_value, fact.value, fact.kind) == (True, value, None)
    again = load(tmp_path, "functions: {f: {value: 1}}\n", base).functions["f"]
    assert (again.kind, again.is_value) == ("runtime", False)


def test_null_takes_declarations_away(tmp_path: Path) -> None:
    facts = load(
        tmp_path,
        """\
selection: {function: f, scope: launch, returns: {a: bits, b: aux}, assume: [m > 0]}
inputs: {m: {kind: runtime, range: [1, 9]}, n: {kind: runtime, values: [1]}}
offer: {x: [1]}
knobs: {k: 1}
env: {A: "1"}
""",
        """\
selection: {scope: null, returns: {b: null}, assume: null}
inputs: {n: null}
offer: {x: null}
knobs: {k: null}
env: {A: null}
tables:
""",
    )
    assert (facts.function, facts.scope, facts.returns) == ("f", None, {"a": "bits"})
    assert (facts.assume, list(facts.inputs), facts.offer, facts.knobs) == ((), ["m"], {}, {})
    assert facts.env == {"A": None}


def test_lists_of_guards_replace(tmp_path: Path) -> None:
    facts = load(tmp_path, "selection: {require: [a, b]}\n", "selection: {require: [c]}\n")
    assert [e.text for e in facts.require] == ["c"]


def test_paths_are_relative_to_their_own_file(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/t.json").write_text("[1]")
    (tmp_path / "sub/a.yaml").write_text("tables: {t: t.json}\n")
    (tmp_path / "b.yaml").write_text("facts: {a: 1}\n")
    sink = Sink()
    facts = load_facts([tmp_path / "sub/a.yaml", tmp_path / "b.yaml"], sink)
    assert not sink.items
    assert facts.tables == {"t": (1,)}


def test_an_input_replaces_the_fact_of_a_layer(tmp_path: Path) -> None:
    facts = load(
        tmp_path,
        "layer: m\nfacts: {world: 4, batch.m: 1, batch.n: 2}\n",
        "inputs: {world: {kind: request, values: [1]}, batch.m: {kind: runtime, values: [1]}}\n",
    )
    assert facts.facts == {"batch": {"n": 2}}
    assert set(facts.inputs) == {"world", "batch.m"}


def test_expressions_in_blocks(tmp_path: Path) -> None:
    text = "selection:\n  require:\n  - >\n    a\n    < b\n  - |\n    (a\n    < c)\n"
    assert [e.text for e in load(tmp_path, text).require] == ["a < b", "(a\n< c)"]
