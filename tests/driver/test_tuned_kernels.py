"""Kernels that choose values when they run: said in the answer, warned of if the batch decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from selc.diag.diagnostic import Severity
from selc.diag.outcome import Outcome
from tests import adapters
from tests.driver.conftest import Compile

FACTS = """\
selection: {function: plan, scope: launch}
inputs:
  m: {kind: runtime, range: [1, 4096]}
facts: {n: 4096}
"""
LAUNCH = """\
def plan(m, n):
    block = 16 if m <= 64 else 128
    kernel[(m,)](0, m, n, BLOCK=block)
"""
HEAD = "import triton\nimport triton.language as tl\n\n"
KERNEL = """\
@triton.jit
def kernel(x, M, N, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    pass


"""


def compiled_with(compiled: Compile, project: Path, source: str, **files: str) -> Outcome:
    (project / "plan.py").write_text(source)
    (project / "facts.yaml").write_text(FACTS)
    for name, text in files.items():
        (project / f"{name}.py").write_text(text)
    return compiled()


@pytest.mark.parametrize(
    ("decorator", "said", "warned"),
    [
        ('@triton.autotune(configs=[], key=["M", "N"])',
         "`kernel` is tuned when it runs (@autotune, plan.py:4), by the key `M`, `N`", "`M`"),
        ('@triton.autotune([], ["N"])',
         "`kernel` is tuned when it runs (@autotune, plan.py:4), by the key `N`", ""),
        ("@triton.autotune(configs=[], key=KEY)",
         "`kernel` is tuned when it runs (@autotune, plan.py:4), by the key computed names",
         "`M`"),
        ('@triton.heuristics({"EVEN": lambda a: a["N"] % a["BLOCK"] == 0})',
         "`kernel` computes `EVEN` when it runs (@heuristics, plan.py:4), from `N`, `BLOCK`", ""),
        ('@triton.heuristics({"EVEN": lambda a: a["M"] % 16 == 0})',
         "`kernel` computes `EVEN` when it runs (@heuristics, plan.py:4), from `M`", "`M`"),
        ('@triton.heuristics({"EVEN": even})',
         "`kernel` computes `EVEN` when it runs (@heuristics, plan.py:4), from computed names",
         "`M`"),
    ],
)  # fmt: skip
def test_what_a_kernel_chooses(
    compiled: Compile, project: Path, decorator: str, said: str, warned: str
) -> None:
    outcome = compiled_with(compiled, project, f"{HEAD}{decorator}\n{KERNEL}{LAUNCH}")
    assert outcome.exit_code == 0
    assert outcome.json["assumptions"] == [said]
    assert said in " ".join(outcome.text.split())
    manifest = json.loads((project / "plan_selector/manifest.json").read_text())
    assert said in manifest["assumptions"]
    told = [d for d in outcome.diagnostics if d.code == "SEL945"]
    assert len(told) == bool(warned)
    for diagnostic in told:
        assert diagnostic.severity is Severity.WARNING
        assert f"chooses by {warned}, which follows the batch" in diagnostic.message
        assert diagnostic.span.line == outcome.json["pins"][0]["location"]["line"] + 1


def test_a_kernel_of_another_module(compiled: Compile, project: Path) -> None:
    kernels = f'{HEAD}@triton.autotune(configs=[], key=["M"])\n{KERNEL}'
    source = f"from kernels import kernel\n\n\n{LAUNCH}"
    outcome = compiled_with(compiled, project, source, kernels=kernels)
    (said,) = outcome.json["assumptions"]
    assert "kernels.py:4), by the key `M`" in said
    assert [d.code for d in outcome.diagnostics] == ["SEL945"]


def test_a_choice_that_is_not_protected_may_move(compiled: Compile, project: Path) -> None:
    decorator = '@triton.heuristics({"EVEN": lambda a: a["BLOCK"] > 64})'
    (project / "plan.py").write_text(f"{HEAD}{decorator}\n{KERNEL}{LAUNCH}")
    (project / "facts.yaml").write_text(
        FACTS.replace("scope: launch", "scope: launch, returns: {kernel.BLOCK: neutral}")
    )
    assert [d.code for d in compiled().diagnostics] == ["SEL945"]


def test_a_plain_kernel_says_nothing(compiled: Compile, project: Path) -> None:
    outcome = compiled_with(compiled, project, HEAD + KERNEL + LAUNCH)
    assert (outcome.json["assumptions"], outcome.diagnostics) == ([], [])


@pytest.mark.corpus
def test_a_kernel_of_an_engine(corpus: Path, tmp_path: Path) -> None:
    module = "vllm.model_executor.layers.fla.ops.l2norm"
    facts = tmp_path / "facts.yaml"
    facts.write_text(
        f"selection: {{function: '{module}:l2norm_fwd', scope: launch}}\n"
        "facts: {eps: 1.0e-6}\n"
        "tensors: {x: {shape: [num_tokens, 128], dtype: torch.bfloat16}}\n"
        "inputs: {num_tokens: {kind: runtime, range: [1, 16384]}}\n"
        f"globals: {{{module}.USE_DEFAULT_FLA_NORM: 1}}\n"
    )
    program = adapters.lower(f"{module}:l2norm_fwd", [facts], [corpus])
    (said,) = program.assumptions
    assert said.startswith("`l2norm_fwd_kernel` is tuned when it runs (@autotune, ")
    assert said.endswith("l2norm.py:50), by the key `D`")
