"""SEL1xx: the batch reaches a choice."""

from __future__ import annotations

from selc.lint.registry import LintRule

_LIMITS = (
    "Names tell what a batch quantity is; a parameter under another name counts where a call in the "
    "same package gives it one. Values are followed through two levels of calls (`calls` in the "
    "configuration), not through containers that are filled elsewhere."
)

RULES = (
    LintRule(
        "SEL101",
        "batch-moves-reduction",
        "the batch reaches a field that moves a reduction",
        "error",
        "A batch quantity flows, by data or through a branch, into a launch constant or a field of a "
        "configuration that changes the order in which values are added: `BLOCK_K`, `SPLIT_K`, "
        "`num_splits`, `NUM_SEGMENTS` and their like. At level warning: another constant of a launch "
        "that a comparison on the batch decides.",
        "Floating-point addition is not associative. A request whose sum is cut in two today and in "
        "four tomorrow gets other bits tomorrow, because of who else was in the batch.",
        "def launch(x, w, y):\n"
        "    num_tokens = x.shape[0]\n"
        "    split_k = 4 if num_tokens <= 32 else 1\n"
        "    gemm_kernel[(64,)](x, w, y, SPLIT_K=split_k)\n",
        "def launch(x, w, y):\n"
        "    split_k = 4 if w.shape[0] >= 8192 else 1\n"
        "    gemm_kernel[(64,)](x, w, y, SPLIT_K=split_k)\n",
        f"{_LIMITS} Whether a field moves a reduction is known by its name (`roles`), for some kernels "
        "by kernel.",
        "choose the value from the deployment alone",
    ),
    LintRule(
        "SEL102",
        "batch-picks-kernel",
        "the batch decides which kernel runs",
        "warning",
        "A condition on a batch quantity decides between calls of different kernels: two arms of a "
        "branch, a function that is picked and then called, a dict of functions.",
        "Two kernels for one operation hardly ever add in the same order: a request moves from one to "
        "the other when its neighbours change.",
        "def combine(x, out):\n"
        "    if x.shape[0] <= 32:\n"
        "        fused_reduce_compiled(x, out)\n"
        "    else:\n"
        "        fused_reduce_triton(x, out)\n",
        "def combine(x, out, use_triton):\n"
        "    if use_triton:\n"
        "        fused_reduce_triton(x, out)\n"
        "    else:\n"
        "        fused_reduce_compiled(x, out)\n",
        f"{_LIMITS} A kernel is recognised by its name, by `kernel[grid](...)`, or by calling one. "
        "Two kernels that do give the same bits are reported too: say so with a suppression.",
        "run one of them for every batch",
    ),
    LintRule(
        "SEL103",
        "batch-picks-row",
        "the batch picks a row of a table",
        "error",
        "A table of configurations is read at a key that follows the batch: the nearest size, the next "
        "larger size, the size itself. At level warning for tables that are not known to hold kernel "
        "configurations, such as sizes to pad to.",
        "Rows of tuned tables differ in `BLOCK_K` or in the split of K for most shipped devices. The "
        "row, and with it the order of sums, moves with the number of tokens.",
        "def config_for(configs, M):\n"
        "    config = configs[min(configs.keys(), key=lambda x: abs(x - M))]\n"
        "    return config\n",
        "def config_for(configs, pinned_size):\n"
        "    config = configs[pinned_size]\n"
        "    return config\n",
        f"{_LIMITS} Tables in which every row has the same harmful fields are reported: their contents "
        "are not read.",
        "pin the key of the table",
    ),
    LintRule(
        "SEL104",
        "batch-picks-traced-branch",
        "the batch picks a branch of torch.cond",
        "warning",
        "The predicate of `torch.cond` follows the batch.",
        "Both branches are compiled and the batch decides between them at run time, as with SEL102.",
        "import torch\n\n\n"
        "def gemm(x, w):\n"
        "    return torch.cond(x.shape[0] < 32, small_gemm, large_gemm, (x, w))\n",
        "def gemm(x, w):\n    return large_gemm(x, w)\n",
        _LIMITS,
        "call one of the branches for every batch",
    ),
    LintRule(
        "SEL105",
        "batch-decides-choice",
        "a choice that follows the batch is returned or stored",
        "warning",
        "A function named like a choice (`should_...`, `use_...`, `get_..._config`, `can_run...`) "
        "returns a value that follows the batch, or a field that names a kernel or an algorithm is set "
        "to one.",
        "Whoever reads the answer runs one kernel or another. The place where the batch enters is "
        "here, and this is where it can be pinned.",
        "def should_custom_ar(inp, max_size):\n"
        "    inp_size = inp.numel() * inp.element_size()\n"
        "    return inp_size < max_size\n",
        "def should_custom_ar(largest_input, max_size):\n    return largest_input < max_size\n",
        f"{_LIMITS} Functions are known by their names (`functions.selectors`).",
        "decide once, for the largest batch, before serving",
    ),
    LintRule(
        "SEL106",
        "library-follows-batch",
        "a library call that can be pinned is not",
        "warning",
        "A call into a library whose kernel choice follows the batch unless an argument pins it: "
        "`flash_attn_varlen_func` without `num_splits=1`, FlashInfer's `plan` without a fixed split "
        "size, schedulers that are given the lengths of a batch.",
        "The choice is made inside the library, where nobody sees it.",
        "def attend(q, k, v, cu_seqlens_q, max_seqlen_q):\n"
        "    return flash_attn_varlen_func(q, k, v, cu_seqlens_q, max_seqlen_q, num_splits=0)\n",
        "def attend(q, k, v, cu_seqlens_q, max_seqlen_q):\n"
        "    return flash_attn_varlen_func(q, k, v, cu_seqlens_q, max_seqlen_q, num_splits=1)\n",
        "Libraries are described in a data file (`summaries` adds your own). What a pin does not cover "
        "is not known: tile sizes inside the library may still follow the batch.",
        "pass the argument that pins it",
    ),
    LintRule(
        "SEL107",
        "closed-library",
        "a closed library picks its kernel from the batch",
        "warning",
        "A matrix product, norm or top-k of a library that picks its algorithm from the number of rows. "
        "Off by default; on with `--select SEL107` and in audits (`--assume-unguarded`).",
        "cuBLAS and its like choose the split of K from the shape of the call.",
        "import torch\n\n\ndef project(x, w):\n    return torch.mm(x, w)\n",
        "def project(x, w):\n    return matmul_persistent(x, w)\n",
        "Nothing in Python tells whether the library's choice differs for the sizes that occur: this "
        "needs a bitwise sweep on the device.",
        "replace it by a kernel with one fixed configuration, or measure that its bits do not move",
        default=False,
    ),
    LintRule(
        "SEL108",
        "batch-cuts-request",
        "the rest of the batch decides where a request is cut",
        "warning",
        "The length of the piece of a request that one step computes follows a budget that the batch "
        "shares: what the neighbours leave.",
        "A prompt of 1500 tokens runs as 1024 + 476 alone and as 248 + 1024 + 228 in company: other "
        "shapes of calls, and other orders of sums.",
        "def add_request(req, token_budget, page_size):\n"
        "    trunc_len = token_budget // page_size * page_size\n"
        "    req.set_extend_input_len(trunc_len)\n",
        "def add_request(req, chunk, page_size):\n"
        "    trunc_len = chunk // page_size * page_size\n"
        "    req.set_extend_input_len(trunc_len)\n",
        "Budgets are known by their names. Cutting at multiples of one number is not recognised as a "
        "remedy: say so with a suppression.",
        "cut at multiples of one number, counted from the start of the request",
    ),
    LintRule(
        "SEL109",
        "batch-in-neutral-field",
        "the batch reaches a field that normally does not move bits",
        "note",
        "A batch quantity reaches `BLOCK_M`, `GROUP_M`, `num_warps`, `num_stages` or another field that "
        "tiles rows. Off by default.",
        "One accumulator per row does not see how many rows share its tile. Some kernels reduce across "
        "warps or rows: there, give the field a role of its own in `roles.kernels`.",
        "def launch(x, w):\n"
        "    block_m = 16 if x.shape[0] <= 16 else 64\n"
        "    gemm_kernel[(64,)](x, w, BLOCK_M=block_m)\n",
        "def launch(x, w):\n    gemm_kernel[(64,)](x, w, BLOCK_M=64)\n",
        _LIMITS,
        "nothing, unless the kernel reduces over this field",
        default=False,
    ),
)
