"""Codes for what is wrong with facts files and with the domain that they declare."""

from __future__ import annotations

from typing import Final

from selc.diag.rules import Rule

RULES: Final = (
    Rule(
        code="SEL910",
        name="unknown-fact-key",
        title="a key that facts files do not have",
        means="A facts file has a key, at the top or inside a section, that selc does not know.",
        why=(
            "A misspelled key would otherwise be passed over, and the compilation would rest on a "
            "promise that nobody made."
        ),
        example=(
            "inputs:\n"
            "  num_tokens: {kind: runtime, type: int, ranges: [1, 16384]}    # SEL910: `range`\n"
        ),
        action="Correct the key; the message names the closest known ones.",
        language="yaml",
    ),
    Rule(
        code="SEL911",
        name="wrong-fact-value",
        title="a value of the wrong type or form in a facts file",
        means=(
            "The key is known, but its value is not of the form that the key asks for: another "
            "type, a range with one end, an unknown kind or role, a value outside a parameter's "
            "type."
        ),
        why="Types matter: `1`, `1.0` and `true` are different values to a selection.",
        example=(
            'inputs:\n  num_tokens: {kind: runtime, type: int, range: [1, "16k"]}    # SEL911\n'
        ),
        action="Write the value in the form that the message shows.",
        language="yaml",
    ),
    Rule(
        code="SEL912",
        name="missing-fact",
        title="a parameter that nothing is said about",
        means=(
            "The selection reads a parameter or an attribute that has no default in the source "
            "and is neither a fact nor an input in the facts files."
        ),
        why=(
            "selc must know of every value whether it is known before serving, comes with the "
            "request, or comes from the batch; this is what the guarantee is about."
        ),
        example=(
            "# def pick(num_tokens, hidden): ...\n"
            "inputs:\n"
            "  num_tokens: {kind: runtime, type: int, range: [1, 16384]}\n"
            "# SEL912: `hidden` is neither under `facts:` nor under `inputs:`\n"
        ),
        action=(
            "Add it under `facts:` with its value if it is fixed before serving, else under "
            "`inputs:` with its kind, type and range."
        ),
        language="yaml",
    ),
    Rule(
        code="SEL913",
        name="unread-fact",
        title="a fact that nobody reads",
        means=(
            "A name under `facts:`, `inputs:`, `knobs:` or another section is no parameter of the "
            "selection and is read nowhere in what was compiled."
        ),
        why=(
            "It is usually a misspelled name whose real owner keeps its default, so that the "
            "result is for another deployment than the one meant."
        ),
        example="facts: {hiden_size: 4096}    # SEL913: the parameter is `hidden_size`\n",
        action=(
            "Correct the name, or remove the line. Facts that several selections share belong in "
            "a file with `layer:`; what one selection does not read of it is passed over."
        ),
        language="yaml",
    ),
    Rule(
        code="SEL914",
        name="unreadable-facts",
        title="a facts file that cannot be read",
        means=(
            "The file is not there, is not UTF-8 text, or is not valid YAML with a mapping at the "
            "top."
        ),
        why="Without the facts selc does not know the deployment.",
        example=("facts: {hidden: 4096\ninputs:    # SEL914: the brace above is still open\n"),
        action="Correct the path or the YAML at the position in the message.",
        language="yaml",
    ),
    Rule(
        code="SEL915",
        name="file-access",
        title="a file or folder that cannot be read or written",
        means=(
            "The operating system refused to open, create or replace a file, for example because "
            "of permissions, a full disk, or a file where a folder is needed."
        ),
        why=(
            "Nothing, or not everything, could be read or written; a half-written selector is "
            "never left in place of a whole one."
        ),
        example="selc compile kernels.py:attention --facts h100.yaml -o /dev/null/out  # SEL915\n",
        action=(
            "Choose another folder with `-o`, or correct the permissions of the one that the "
            "message names."
        ),
        language="sh",
    ),
    Rule(
        code="SEL920",
        name="impossible-require",
        title="a requirement that reads no pin fails on an admitted input",
        means=(
            "A `require` (in unmodified code an `assert`, or a path to an uncaught `raise`) is "
            "false, or a partial operation such as a division fails, for an input inside the "
            "declared domain, and no pin can change that."
        ),
        why=(
            "No choice of pins makes the selection valid there: the declared domain promises "
            "inputs that the source rejects."
        ),
        example=(
            "def pick(num_tokens):          # num_tokens: range [0, 16384]\n"
            "    assert num_tokens > 0      # SEL920, with num_tokens=0\n"
            "    return 64 if num_tokens < 128 else 128\n"
        ),
        action=(
            "Narrow the `range:` or `values:` of the input, or state the condition as a promise "
            "of the deployment under `assume:`."
        ),
    ),
    Rule(
        code="SEL921",
        name="empty-domain",
        title="no input is admitted",
        means=(
            "A range or list of values is empty, or no input of the declared ranges meets every "
            "`assume`."
        ),
        why="Everything would hold of no inputs at all, and the result would mean nothing.",
        example=(
            "inputs:\n"
            "  num_tokens: {kind: runtime, type: int, range: [1, 99], multiple_of: 128}  # SEL921\n"
        ),
        action="Widen the range, or correct the `assume` that excludes everything.",
        language="yaml",
    ),
)
