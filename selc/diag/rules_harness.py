"""Codes of the harness: kernels, selectors, calls, devices, journals, tuning."""

from __future__ import annotations

from typing import Final

from selc.diag.rules import Rule

RULES: Final = (
    Rule(
        code="SEL950",
        name="no-kernels",
        title="kernels are missing, or something that they need",
        means=(
            "The object named by `--kernels` cannot be imported or lacks one of the four methods, "
            "no kernels are named for a family, or a kernel needs a fact that nothing gives."
        ),
        why="Without kernels there is nothing to measure, and guessed shapes are another call.",
        example=(
            "$ selc bench build/attention_selector --kernels mykernels:attn --profile p.jsonl\n"
            "error: [SEL950] the module `mykernels` has no `attn`\n"
        ),
        action=(
            "Name them as `package.module:object`, with the methods that docs/harness.md lists. "
            "Give a missing fact with `--set NAME=VALUE`."
        ),
        language="text",
    ),
    Rule(
        code="SEL951",
        name="not-a-selector",
        title="a folder is not the emitted selector that is needed",
        means=(
            "The folder has no manifest, cannot be imported, or is another selector than the one "
            "that a tuple file, profile or journal names by its hash."
        ),
        why="Times and tuples hold for one selector; for another they would be silently wrong.",
        example=(
            "$ selc tune build/other_selector --profile p.jsonl\n"
            "error: [SEL951] the profile was recorded with another selector\n"
        ),
        action="Compile the selection with `-o DIR`, and record the profile with it.",
        language="text",
    ),
    Rule(
        code="SEL952",
        name="call-refused",
        title="the selector refuses a call of the profile",
        means="A call is outside the declared domain, or breaks a guard under the tuple asked for.",
        why="An engine stops at that call. Leaving it out silently would tune for other traffic.",
        example="num_tokens=20000 is outside 1..16384, but the profile has such a call\n",
        action=(
            "Record the profile with this selector, or remove the call. If the engine does make "
            "such calls, compile the selection for the wider domain."
        ),
        language="text",
    ),
    Rule(
        code="SEL953",
        name="no-device",
        title="the device that was asked for is not there",
        means="`--device cuda` was given, and torch is missing or sees no GPU.",
        why="Another device would measure other kernels.",
        example=(
            "$ selc bench build/moe_selector --device cuda --profile p.jsonl\n"
            "error: [SEL953] torch sees no CUDA device\n"
        ),
        action="Use `--device cpu`, or run where a GPU is; `pip install 'selc[bench]'` has torch.",
        language="text",
    ),
    Rule(
        code="SEL954",
        name="journal",
        title="the journal cannot be used",
        means=(
            "It was written by a run with other selectors, kernels, device or calls, is damaged, "
            "or can no longer be written (the disk is full, for instance)."
        ),
        why=(
            "A run is resumed and a decision replayed from its journal. One of another run would "
            "mix measurements that cannot be compared."
        ),
        example=(
            "$ selc tune build/moe_selector --profile p.jsonl --journal old.jsonl\n"
            "error: [SEL954] the journal `old.jsonl` was written with other kernels\n"
        ),
        action="Name another journal, or remove this one. Make room if the disk is full.",
        language="text",
    ),
    Rule(
        code="SEL955",
        name="nothing-to-measure",
        title="there is no legal tuple, or no call, to measure",
        means=(
            "The selector has no legal assignment, or the profile holds no call of its family. For "
            "an empty relation the exit code is 1: the answer is no."
        ),
        why="There is nothing among which a fastest one could be found.",
        example=(
            "$ selc tune build/moe_selector --profile attention-only.jsonl\n"
            "error: [SEL955] the profile has no call of `moe`\n"
        ),
        action="Look at `selc legal DIR` and `selc profile show PROFILE`.",
        language="text",
    ),
    Rule(
        code="SEL956",
        name="kernel-failed",
        title="a kernel failed, or gave a wrong result",
        means=(
            "The kernel crashed, hung, ran out of memory or differs from its float64 reference by "
            "more than its tolerance. A warning where other choices remain; an error if none does. "
            "A warning also where the kernels' `estimate` fails: the search then goes without it."
        ),
        why="A fast wrong kernel must not win, and one bad choice must not end a run.",
        example="BLOCK_K=512: out of resource, shared memory, required 294912, limit 232448\n",
        action=(
            "Run the one choice with `selc bench DIR --tuple`. State what the kernel needs as a "
            "`require` in the selection, so that the choice is no longer legal."
        ),
        language="text",
    ),
    Rule(
        code="SEL957",
        name="workload-description",
        title="a description of a workload is wrong",
        means=(
            "`selc profile synth` got a description with an unknown key, a value of the wrong "
            "type or out of bounds, or a load that its kind of arrivals does not have."
        ),
        why="A guessed workload gives a profile of other traffic, and a tuple tuned for it.",
        example=(
            "prompt: {distribution: lognorml, mean: 8000, sigma: 0.4}\n"
            "                        ^^^^^^^^ there is no distribution `lognorml`\n"
        ),
        action=(
            "Correct the value at the place shown; docs/profiles.md lists the keys. Start from "
            "`--preset` and describe only what differs."
        ),
        language="text",
    ),
)
