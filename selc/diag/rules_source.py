"""Codes for what is wrong with, or not supported in, the source of a selection."""

from __future__ import annotations

from typing import Final

from selc.diag.rules import Rule

RULES: Final = (
    Rule(
        code="SEL900",
        name="syntax-error",
        title="the file is not valid Python",
        means="The file that holds the selection, or one that it imports from, cannot be parsed.",
        why=(
            "selc reads source text and never runs it, so that a file it cannot parse tells it "
            "nothing."
        ),
        example=("def pick(num_tokens:\n    return 64\n"),
        action=(
            "Repair the line that the message points at. If the file is meant for a newer Python "
            "than the one that runs selc, run selc with that Python."
        ),
    ),
    Rule(
        code="SEL901",
        name="unsupported-construct",
        title="a construct that selc does not model",
        means=(
            "The selection uses a statement, an expression or a library function whose exact "
            "meaning selc cannot carry into its graph."
        ),
        why=(
            "A selection must behave as it does under CPython for every input. A construct that "
            "is only half understood would make the result silently wrong, so selc stops here."
        ),
        example=(
            "def pick(num_tokens):\n"
            "    async with lock:        # SEL901\n"
            "        return 64 if num_tokens < 128 else 128\n"
        ),
        action=(
            "Write the decision with assignments, `if`, arithmetic, comparisons, tuples, mappings "
            "and bounded loops. If the construct only computes something known before serving, "
            "state its value in the facts file under `functions:` or `globals:`. If the call is "
            "the kernel launch itself, mark it `opaque` there."
        ),
    ),
    Rule(
        code="SEL902",
        name="unbounded-loop",
        title="a loop without a bound that selc can see",
        means=(
            "The loop cannot be unrolled: the number of its iterations is not limited by the "
            "facts and by the declared ranges of the inputs."
        ),
        why=(
            "The graph has no cycles. Every loop is unrolled, so that each iteration is a site of "
            "its own that can be pinned and checked."
        ),
        example=(
            "def pick(num_tokens):\n"
            "    block = 16\n"
            "    while block < num_tokens:    # SEL902 if num_tokens has no upper end\n"
            "        block *= 2\n"
            "    return block\n"
        ),
        action=(
            "Give the inputs that the loop condition reads a `range:` with an upper end, or "
            "rewrite the loop as `for ... in range(N)` with a constant N and a `break`."
        ),
    ),
    Rule(
        code="SEL903",
        name="recursion",
        title="a function that calls itself",
        means=(
            "While calls were being inlined, selc arrived at a function that it is already inside "
            "of."
        ),
        why=(
            "Calls are inlined so that every site is kept apart; a recursive call has no end that "
            "the source alone shows."
        ),
        example=("def halve(n):\n    return n if n <= 64 else halve(n // 2)    # SEL903\n"),
        action=(
            "Rewrite the function as a loop with a bound. If its value is known before serving, "
            "state it in the facts file under `functions:`."
        ),
    ),
    Rule(
        code="SEL904",
        name="unknown-name",
        title="a name that is not defined anywhere selc can look",
        means=(
            "The name is no parameter, no local variable, no definition or import of the module, "
            "and no builtin that selc knows; or an import leads to a module that is not there."
        ),
        why="Under CPython this line raises NameError or reads something that selc has not seen.",
        example=(
            "def pick(num_tokens):\n"
            "    return BLOCK if num_tokens < BLOCK_LIMIT else 128    # SEL904 for both\n"
        ),
        action=(
            "Correct the spelling, add the folder that holds the imported package with `--root "
            "DIR`, or state the value under `globals:` in the facts file."
        ),
    ),
    Rule(
        code="SEL905",
        name="opaque-choice",
        title="a value that selc cannot see into decides a choice",
        means=(
            "The result of a call or an attribute whose source selc does not have, or that the "
            "facts file marks as `opaque`, reaches a condition or a selected value."
        ),
        why=(
            "selc could not tell whether the choice depends on the batch, and nothing could be "
            "pinned or checked."
        ),
        example=(
            "def pick(x):\n"
            "    if vendor_heuristic(x):    # SEL905\n"
            '        return "split"\n'
            '    return "plain"\n'
        ),
        action=(
            "Say in the facts file what the call returns: under `functions:` a constant, a "
            "`table:` from arguments to values, or `{kind: runtime, range: [lo, hi]}` for an "
            "unknown of the batch. Describe objects under `objects:`."
        ),
    ),
    Rule(
        code="SEL906",
        name="hidden-state",
        title="state that selc cannot see",
        means=(
            "The selection reads or writes something that outlives the call: a module variable "
            "that is assigned elsewhere, an attribute of an object, a cache, a clock, a random "
            "source."
        ),
        why=(
            "Equal inputs must give equal choices. State that other calls change can carry one "
            "batch into the choice for another."
        ),
        example=(
            "_last = None\n"
            "\n"
            "def pick(num_tokens):\n"
            "    global _last\n"
            "    if _last is None:    # SEL906\n"
            "        _last = num_tokens\n"
            "    return 64 if _last < 128 else 128\n"
        ),
        action=(
            "Pass the value in as a parameter and declare its kind, or, if it is fixed before "
            "serving, state it in the facts file under `globals:` or as `attrs:` of `objects:`."
        ),
    ),
    Rule(
        code="SEL907",
        name="function-not-found",
        title="the target names a function that is not there",
        means=(
            "The file or module exists and was read, but it defines no such function or method; "
            "or it defines several selections and the target does not say which."
        ),
        why="Compiling some other function instead would be a guess.",
        example="selc compile kernels.py:atention --facts h100.yaml    # SEL907: `attention`?\n",
        action=(
            "Name the function as `path.py:function`, `path.py:Class.method` or "
            "`package.module:function`, or under `selection: function:` in the facts file."
        ),
        language="sh",
    ),
    Rule(
        code="SEL908",
        name="file-not-found",
        title="a file, folder, module or table that is not there",
        means=(
            "The target, or a file that the selection reads while it decides, was found neither "
            "under the roots nor among the installed packages."
        ),
        why="What selc has not read, it cannot compile.",
        example="selc compile engine.moe:get_config --facts h100.yaml    # SEL908 without --root\n",
        action=(
            "Correct the path. For a package that is unpacked and not installed, add the folder "
            "that contains it with `--root DIR`. For data files outside the package's own folder, "
            "add them under `files:` or `tables:` in the facts file."
        ),
        language="sh",
    ),
    Rule(
        code="SEL909",
        name="wrong-command-line",
        title="the command line is wrong",
        means=(
            "An option, an argument or a command is unknown, missing, or has a value of the wrong "
            "form."
        ),
        why="Nothing was started; guessing what was meant could overwrite the wrong folder.",
        example="selc compile kernels.py --max-candidates many    # SEL909\n",
        action="Compare with `selc COMMAND --help`.",
        language="sh",
    ),
)
