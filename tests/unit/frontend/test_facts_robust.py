"""Facts files of any content never raise, and the documentation's examples load."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from selc.diag.diagnostic import Severity, Sink
from selc.frontend.facts import load_facts

DOCS = Path(__file__).parents[3] / "docs" / "facts.md"
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", DOCS.read_text("utf-8"), re.DOTALL | re.MULTILINE)
PARTITION = re.findall(
    r"^```json\n(\{\n  \"format.*?)^```", DOCS.read_text("utf-8"), re.DOTALL | re.MULTILINE
)
ERRORS = re.findall(
    r"^```yaml-error\n(.*?)^```\n+```text\n(.*?)^```",
    DOCS.read_text("utf-8"),
    re.DOTALL | re.MULTILINE,
)

KEYS = st.sampled_from(
    [
        "layer",
        "selection",
        "facts",
        "inputs",
        "offer",
        "knobs",
        "tables",
        "functions",
        "env",
        "classes",
        "tensors",
        "objects",
        "globals",
        "files",
        "function",
        "scope",
        "family",
        "returns",
        "require",
        "assume",
        "kind",
        "type",
        "range",
        "multiple_of",
        "values",
        "length",
        "element",
        "default",
        "fixed",
        "value",
        "table",
        "fields",
        "file",
        "given",
        "shape",
        "dtype",
        "device",
        "strides",
        "class",
        "attrs",
        "m",
        "a.b",
        "'*'",
        "1",
        "true",
        "null",
    ]
)
SCALARS = st.sampled_from(
    [
        "runtime",
        "request",
        "knob",
        "int",
        "float",
        "bits",
        "launch",
        "1",
        "-1",
        "0",
        "1.5",
        "true",
        "null",
        "yes",
        ".nan",
        "2024-01-01",
        "017",
        "1e999",
        "'x'",
        "opaque",
        "m<3",
        "m+",
        "torch.int8",
        "no.json",
        ".",
        "''",
    ]
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(st.tuples(KEYS, inner), max_size=4).map(
            lambda items: "{" + ", ".join(f"{k}: {v}" for k, v in items) + "}"
        ),
    ),
    max_leaves=12,
)
FILES = st.lists(st.tuples(KEYS, TREES), max_size=6).map(
    lambda items: "".join(f"{k}: {v}\n" for k, v in items)
)
FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def check(folder: Path, texts: list[str]) -> None:
    paths = []
    for i, text in enumerate(texts):
        paths.append(folder / f"f{i}.yaml")
        paths[-1].write_text(text, "utf-8")
    sink = Sink()
    load_facts(paths, sink)
    for d in sink:
        assert d.severity is Severity.ERROR
        assert d.code in ("SEL910", "SEL911", "SEL912", "SEL914")
        assert d.span.path.startswith(str(folder))
        assert d.span.line >= 1
        assert d.span.column >= 1


@FUZZ
@given(st.lists(FILES, min_size=1, max_size=3))
def test_any_shape(tmp_path: Path, texts: list[str]) -> None:
    check(tmp_path, texts)


@FUZZ
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text(tmp_path: Path, text: str) -> None:
    check(tmp_path, [text])
    (tmp_path / "t.json").write_text(text, "utf-8")
    check(tmp_path, ["tables: {t: t.json}"])


@FUZZ
@given(st.text("{}[]:,-&*!|>'\"%@` \n\ta1.", max_size=40))
def test_any_punctuation(tmp_path: Path, text: str) -> None:
    check(tmp_path, [text, f"facts:\n  a: {text}\n"])


def test_yaml_is_imported_only_to_read_a_file() -> None:
    code = "import sys, selc.frontend.facts; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("text", BLOCKS)
def test_the_examples_of_the_documentation_load(tmp_path: Path, text: str) -> None:
    for name in re.findall(r"[\w./=,-]+\.json\b", text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(PARTITION[0] if "classes" in name else "{}")
    (tmp_path / "unpacked").mkdir()
    (tmp_path / "facts.yaml").write_text(text)
    sink = Sink()
    load_facts([tmp_path / "facts.yaml"], sink)
    assert [str(d.span) + " " + d.message for d in sink] == []


@pytest.mark.parametrize(("text", "told"), ERRORS)
def test_the_errors_of_the_documentation(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "facts.yaml").write_text(text)
    sink = Sink()
    load_facts([tmp_path / "facts.yaml"], sink)
    shown = "".join(
        f"facts.yaml:{d.span.line}:{d.span.column}: {d.code}: {d.message}\n  help: {d.help}\n"
        for d in sink
    )
    assert shown == told


def test_the_documentation_has_examples() -> None:
    assert len(BLOCKS) >= 10
    assert ERRORS
