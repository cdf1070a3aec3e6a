"""Codes for answers: no cut, nothing legal, proofs that failed, warnings, internal errors."""

from __future__ import annotations

from typing import Final

from selc.diag.rules import Rule

RULES: Final = (
    Rule(
        code="SEL930",
        name="no-cut",
        title="the batch cannot be cut off from the choices",
        means=(
            "Every set of values that separates the batch from the protected choices contains a "
            "value that cannot be a pin: an `unpinnable` input or an injective image of one, a "
            "value without a finite set of candidates, or one with more than `--max-candidates` "
            "of them."
        ),
        why=(
            "Without a cut there is no finite set of constants that makes the choices independent "
            "of the batch."
        ),
        example=(
            "def pick(num_tokens):        # num_tokens: runtime, range [1, 16384]\n"
            "    return num_tokens * 2    # SEL930: the choice is the batch size itself\n"
        ),
        action=(
            "Look at the path in the message. Declare a tighter range, mark a field that cannot "
            "move a request's bits as `neutral`, derive the choice from a coarser value (a "
            "bucket, a comparison), or raise `--max-candidates`."
        ),
    ),
    Rule(
        code="SEL931",
        name="no-legal-assignment",
        title="no assignment of the pins is legal",
        means=(
            "A cut was found, but each combination of candidates breaks some guard on some "
            "admitted input. The exit code is 1: the input was understood and the answer is no."
        ),
        why="A selector that may violate what its kernel needs is never emitted.",
        example=(
            "def pick(num_tokens):                     # runtime, range [1, 16384]\n"
            "    block = 64 if num_tokens <= 8192 else 128\n"
            "    assert num_tokens <= block * 96    # 64 fails for 6145 tokens, 128 for 12289\n"
            "    return block\n"
        ),
        action=(
            "The message shows for the guards an input that breaks them. Narrow the domain, state "
            "a promise under `assume:`, or let a pin take a further value under `offer:`."
        ),
    ),
    Rule(
        code="SEL932",
        name="proof-failed",
        title="a proof that was required could not be made",
        means=(
            "`--require-proof` was given and some guard has only sampled evidence, or its solver "
            "budget ran out. The exit code is 1."
        ),
        why="Sampled and unknown are not proved, and are never shown as such.",
        example="selc compile kernels.py:attention --facts h100.yaml --require-proof    # SEL932\n",
        action=(
            "Narrow the ranges so that exhaustive enumeration fits, simplify the guard that the "
            "message names, or compile without `--require-proof` and read the evidence."
        ),
        language="sh",
    ),
    Rule(
        code="SEL933",
        name="wrong-tuple-file",
        title="the tuple file does not fit",
        means=(
            "The file is not valid YAML of format 1, lacks the family, names pins or knobs that "
            "the selection does not have, gives a value that is no candidate, or belongs to "
            "another selector."
        ),
        why="A commitment made for another program would be silently wrong for this one.",
        example=(
            "format: 1\n"
            "families:\n"
            "  attention:\n"
            "    pins: {attention.num_split: 1}    # SEL933: `attention.num_splits`\n"
        ),
        action=(
            "Compare the names and values with those that `selc compile` prints, or make the "
            "tuple anew for this selector."
        ),
        language="yaml",
    ),
    Rule(
        code="SEL934",
        name="wrong-profile",
        title="the profile does not fit",
        means=(
            "A line of the profile is not a JSON object of format 1, or names an input that the "
            "selection does not have, or the profile holds no call of this family. Calls outside "
            "the declared domain are left out with a warning of this code."
        ),
        why="The default tuple is chosen by what the workload takes most often.",
        example=(
            '{"format": 1, "family": "moe", "inputs": {"tokens": 17}, "count": 3}\n'
            "# SEL934: the input is `num_tokens`\n"
        ),
        action="Record the profile anew with the selector's `record`, or correct the line.",
        language="json",
    ),
    Rule(
        code="SEL935",
        name="check-failed",
        title="an emitted selector does not hold what its manifest says",
        means=(
            "`selc check` found a file that was changed, a bits point that reads the batch, a "
            "legal relation that comes out otherwise, or a source that now gives another "
            "selection. The exit code is 1."
        ),
        why="A selector that is not the one that was verified carries no guarantee.",
        example="selc check build/moe_selector    # SEL935 after an edit of its files\n",
        action="Compile the selection again and use the new folder.",
        language="sh",
    ),
    Rule(
        code="SEL936",
        name="no-selector",
        title="the folder holds no emitted selector",
        means="There is no manifest.json in the folder that this version of selc can read.",
        why="Everything that is checked is checked from the manifest.",
        example="selc check examples    # SEL936\n",
        action="Name the folder that `selc compile` wrote (its `-o`).",
        language="sh",
    ),
    Rule(
        code="SEL937",
        name="illegal-tuple",
        title="the tuple of the tuple file is not legal",
        means=(
            "Every value is a candidate of its pin, and together they break a guard on an admitted "
            "input. The message names the guard and the input. The exit code is 1."
        ),
        why="A selector must not start with a commitment that its kernels cannot keep.",
        example=(
            "format: 1\n"
            "families:\n"
            "  plan:\n"
            "    pins: {plan.width: 128, plan.stages: 4}    # SEL937: needs width * stages <= 256\n"
        ),
        action="Choose values that are legal together: the relation of the JSON output lists them.",
        language="yaml",
    ),
    Rule(
        code="SEL938",
        name="relation-too-large",
        title="the legal relation is too large to be counted",
        means=(
            "Each guard was decided, but the guards tie so many pins and knobs together that the "
            "assignments which satisfy all of them cannot be counted within the budget."
        ),
        why="Whether anything is legal at all would stay unknown.",
        example=("requires = [sum(sizes) <= 4096]    # one guard over twenty pins: SEL938\n"),
        action=(
            "Fix knobs (`{fixed: ...}`), narrow their choices, or split the guard that reads most "
            "pins into several."
        ),
    ),
    Rule(
        code="SEL940",
        name="no-c-compiler",
        title="the native selector was not built (warning)",
        means=(
            "No C compiler was found, or it failed. The Python selector is complete and behaves "
            "the same; only the call is slower."
        ),
        why="Whoever counts on the native call should know that it is not there.",
        example="CC=no-such-compiler selc compile kernels.py:attention -o out    # SEL940\n",
        action="Install a C compiler with the Python headers, set CC, or pass `--no-native`.",
        language="sh",
    ),
    Rule(
        code="SEL941",
        name="split-table-row",
        title="the cut splits the row of a table (warning)",
        means=(
            "Some fields of a tuned table's row are pinned or follow pins while others of the "
            "same row still move with the batch, and no `require` covers what they use together."
        ),
        why=(
            "Rows were tuned as a whole. A mixture of two rows was never measured and may need "
            "more shared memory or registers than the device has."
        ),
        example=(
            "config = CONFIGS[bucket]              # a row of four tile sizes\n"
            'return config["BLOCK_SIZE_K"], config["num_stages"]    # SEL941 if one is pinned\n'
        ),
        action=(
            "Pass `--whole-rows` to pin rows as a whole, or state the resource limit as a "
            "`require`."
        ),
    ),
    Rule(
        code="SEL942",
        name="unseen-guard",
        title="a guard that may hold vacuously (warning)",
        means=(
            "The guard compares a value that a pin decides with a quantity of the real batch that "
            "the pin hides, and the reading in which both are real could not be built."
        ),
        why=(
            "It may hold with every pin in place although the kernel that runs would need it to "
            "be checked against the real batch."
        ),
        example=(
            "one = pages <= 4                     # pages is pinned\n"
            "assert not one or pages <= 32       # SEL942: what of the real number of pages?\n"
        ),
        action=(
            "State the condition over the actual inputs under `require:` in the facts file, with "
            "`result` for what was selected."
        ),
    ),
    Rule(
        code="SEL945",
        name="tuned-by-the-batch",
        title="a kernel tunes itself by the batch (warning)",
        means=(
            "A launched kernel is decorated with `@triton.autotune` or `@triton.heuristics`, and "
            "what decides there is a launch argument that follows the batch. Which configuration "
            "runs is chosen in the kernel's launcher, after the selection."
        ),
        why=(
            "selc pins what the selection returns. A configuration that the launcher chooses may "
            "still differ from batch to batch, and with it the order of the sums."
        ),
        example=(
            '@triton.autotune(configs=CONFIGS, key=["M"])    # SEL945 if M is the batch size\n'
            "@triton.jit\n"
            "def kernel(x, M, BLOCK: tl.constexpr): ...\n"
        ),
        action=(
            "Launch the kernel with one configuration, or let the key hold only what the batch "
            "does not move. If the configurations give equal bits, measure that with `selc bits`."
        ),
    ),
    Rule(
        code="SEL990",
        name="internal-error",
        title="selc itself failed",
        means="An assumption inside selc did not hold. The exit code is 3.",
        why="This is a mistake in selc, whatever the input was; nothing was emitted.",
        example="selc: internal error [SEL990]: ...\n",
        action=(
            "Report it with the file that the message names. It holds the versions, the command "
            "line and the traceback. `SELC_DEBUG=1` prints the traceback on the spot too."
        ),
        language="text",
    ),
)
