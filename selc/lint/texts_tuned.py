"""SEL2xx: tuned by the batch. SEL0xx: the linter's own."""

from __future__ import annotations

from selc.lint.registry import LintRule

RULES = (
    LintRule(
        "SEL001",
        "unparsable-file",
        "a file cannot be parsed",
        "error",
        "A file that is no Python of this version. Nothing in it is checked.",
        "A file that is left out in silence reads as a file without findings.",
        "def broken(:\n",
        "def whole():\n    return 1\n",
        "Syntax newer than the Python that runs selc is not understood.",
        "correct the file, or exclude it in the configuration",
    ),
    LintRule(
        "SEL002",
        "unused-suppression",
        "a suppression suppresses nothing",
        "warning",
        "`# selc: ignore[...]` on a line without such a finding.",
        "It would hide the next finding there, which nobody has looked at.",
        "def double(x):  # selc: ignore[SEL101] -- pinned by the caller\n    return 2 * x\n",
        "def double(x):\n    return 2 * x\n",
        "Suppressions of rules that are not selected are not judged.",
        "remove the comment",
    ),
    LintRule(
        "SEL003",
        "unknown-suppression",
        "a suppression names no rule",
        "warning",
        "`# selc: ignore` without a rule in brackets, or with one that does not exist.",
        "It suppresses nothing, and whoever wrote it believes otherwise.",
        "def double(x):  # selc: ignore[SEL999]\n    return 2 * x\n",
        "def double(x):\n    return 2 * x\n",
        "None.",
        "write `# selc: ignore[SEL101] -- reason`",
    ),
    LintRule(
        "SEL004",
        "function-too-large",
        "a function is too large to follow",
        "warning",
        "The budget of steps for one function is spent; what comes after is not checked.",
        "A check that stops early must say so.",
        "",
        "",
        "The budget counts steps, not seconds: the same function always gives the same answer.",
        "split the function",
    ),
    LintRule(
        "SEL201",
        "autotune-key-follows-batch",
        "an autotune key holds a batch size",
        "warning",
        "`@triton.autotune` (or an alias of it) with a key that names a batch quantity.",
        "Each size of the batch is tuned for itself, and gets the tiles that were fastest for it. At "
        "level error if the configurations differ in a field that moves a reduction.",
        "import triton\n\n\n"
        "@triton.autotune(configs=[triton.Config({'BLOCK_K': 32}), triton.Config({'BLOCK_K': 64})],\n"
        "                 key=['M', 'N', 'K'])\n"
        "@triton.jit\n"
        "def gemm(a, b, c, M, N, K, BLOCK_K: tl.constexpr):\n    pass\n",
        "import triton\n\n\n"
        "@triton.autotune(configs=[triton.Config({'BLOCK_M': 32}), triton.Config({'BLOCK_M': 64})],\n"
        "                 key=['N', 'K'])\n"
        "@triton.jit\n"
        "def gemm(a, b, c, N, K, BLOCK_M: tl.constexpr):\n    pass\n",
        "Configurations that a function builds are taken to differ in everything.",
        "take the batch out of the key, or tune among configurations of one reduction order",
    ),
    LintRule(
        "SEL202",
        "autotune-by-first-batch",
        "an autotuned kernel is tuned by whichever batch comes first",
        "warning",
        "`@triton.autotune` whose configurations differ in a field that moves a reduction, on a kernel "
        "that takes a batch quantity which the key leaves out.",
        "The first call decides for all others: two servers, or two starts of one, get other bits.",
        "import triton\n\n\n"
        "@triton.autotune(configs=[triton.Config({'BLOCK_K': 32}), triton.Config({'BLOCK_K': 64})],\n"
        "                 key=['N', 'K'])\n"
        "@triton.jit\n"
        "def gemm(a, b, c, M, N, K, BLOCK_K: tl.constexpr):\n    pass\n",
        "import triton\n\n\n"
        "@triton.autotune(configs=[triton.Config({'BLOCK_K': 32})], key=['N', 'K'])\n"
        "@triton.jit\n"
        "def gemm(a, b, c, M, N, K, BLOCK_K: tl.constexpr):\n    pass\n",
        "Kernels that take no batch quantity under a known name are not reported.",
        "leave one configuration, or one reduction order in all of them",
    ),
    LintRule(
        "SEL203",
        "heuristic-follows-batch",
        "a launch heuristic follows the batch",
        "warning",
        "`@triton.heuristics` whose function reads a batch quantity.",
        "The value is computed at each launch, from that launch's batch.",
        "import triton\n\n\n"
        "@triton.heuristics({'SPLIT_K': lambda args: 4 if args['M'] < 64 else 1})\n"
        "@triton.jit\n"
        "def gemm(a, b, c, M, N, K, SPLIT_K: tl.constexpr):\n    pass\n",
        "import triton\n\n\n"
        "@triton.heuristics({'SPLIT_K': lambda args: 4 if args['K'] > 4096 else 1})\n"
        "@triton.jit\n"
        "def gemm(a, b, c, M, N, K, SPLIT_K: tl.constexpr):\n    pass\n",
        "Fields that only tile rows are left out.",
        "read only what the deployment fixes",
    ),
    LintRule(
        "SEL204",
        "plan-cached-by-batch",
        "a plan or configuration is cached by the shape of the batch",
        "warning",
        "A function under `lru_cache` or `cache` that is named like a choice and takes a batch quantity, "
        "or a dict of plans that is filled under a key which holds one.",
        "Each size gets a plan of its own. If the plan is tuned or depends on what was seen before, the "
        "first and the second sighting of a size differ too.",
        "PLANS = {}\n\n\n"
        "def plan_for(M, N, K):\n"
        "    key = (M, N, K)\n"
        "    if key not in PLANS:\n"
        "        PLANS[key] = make_plan(M, N, K)\n"
        "    return PLANS[key]\n",
        "PLANS = {}\n\n\n"
        "def plan_for(N, K):\n"
        "    key = (N, K)\n"
        "    if key not in PLANS:\n"
        "        PLANS[key] = make_plan(N, K)\n"
        "    return PLANS[key]\n",
        "Caches are known by their names and by the decorators of functools.",
        "key the plan by the weights alone",
    ),
    LintRule(
        "SEL205",
        "choice-by-measured-time",
        "a choice is made by measured time",
        "warning",
        "Measured time (`do_bench`, `elapsed_time`, `perf_counter`) reaches a choice.",
        "Time differs from run to run and from rank to rank; so does the choice, and with it the bits.",
        "def tune(candidates, run):\n"
        "    times = [do_bench(lambda: run(c)) for c in candidates]\n"
        "    best_config = candidates[min(range(len(candidates)), key=lambda i: times[i])]\n"
        "    return best_config\n",
        "def tune(candidates, stored):\n    best_config = candidates[stored]\n    return best_config\n",
        "Times that are only logged are not reported.",
        "tune once, store the winner, and load it on every rank",
    ),
)
