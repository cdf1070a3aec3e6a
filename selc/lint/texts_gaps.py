"""SEL3xx: gaps in a guard. SEL4xx: the batch enters the numbers."""

from __future__ import annotations

from selc.lint.registry import LintRule

_MODES = "Needs `modes` in the configuration: the names by which the project asks for its invariant mode."

RULES = (
    LintRule(
        "SEL301",
        "unguarded-sibling",
        "a choice is not guarded where its siblings are",
        "error",
        "With the invariant mode on, the batch still reaches a choice of a kind that the mode pins "
        "elsewhere: the same field, or the same library call.",
        "Whoever wrote the guards knew that this choice moves bits, and missed a place.",
        "def decode(num_tokens):\n"
        "    num_splits = 1 if envs.VLLM_BATCH_INVARIANT else num_tokens // 64\n"
        "    return run_decode(num_splits=num_splits)\n\n\n"
        "def prefill(num_tokens):\n"
        "    return run_prefill(num_splits=num_tokens // 64)\n",
        "def decode(num_tokens):\n"
        "    num_splits = 1 if envs.VLLM_BATCH_INVARIANT else num_tokens // 64\n"
        "    return run_decode(num_splits=num_splits)\n\n\n"
        "def prefill(num_tokens):\n"
        "    num_splits = 1 if envs.VLLM_BATCH_INVARIANT else num_tokens // 64\n"
        "    return run_prefill(num_splits=num_splits)\n",
        f"{_MODES} Guards outside of what was linted, such as a refused backend, are not seen.",
        "guard it as its siblings are guarded",
    ),
    LintRule(
        "SEL302",
        "pin-not-used",
        "a pin parameter is accepted and not used",
        "warning",
        "A function takes a parameter that exists to pin a choice (`num_splits`, `fixed_split_size`) "
        "and never reads it, while another function of the module passes the same parameter on.",
        "The pin is dropped on this path, in silence.",
        "class Updater:\n"
        "    def update_full(self, lens, fixed_split_size):\n"
        "        self.wrapper.plan(lens, fixed_split_size=fixed_split_size)\n\n"
        "    def update_window(self, lens, fixed_split_size):\n"
        "        self.wrapper.run_plan(lens)\n",
        "class Updater:\n"
        "    def update_full(self, lens, fixed_split_size):\n"
        "        self.wrapper.plan(lens, fixed_split_size=fixed_split_size)\n\n"
        "    def update_window(self, lens, fixed_split_size):\n"
        "        self.wrapper.plan(lens, fixed_split_size=fixed_split_size)\n",
        "Parameters are known by their names (`pins`). Functions without a call are taken for stubs.",
        "pass it on, or take it out of the signature",
    ),
    LintRule(
        "SEL303",
        "pin-overwritten",
        "a pin is overwritten after it was set",
        "error",
        "Under the invariant mode a variable or attribute is pinned, and a later statement of the same "
        "function overwrites it without asking for the mode.",
        "The last writer wins: the pin never reaches the kernel.",
        "def build(num_tokens):\n"
        "    num_splits = 0\n"
        "    if envs.VLLM_BATCH_INVARIANT:\n"
        "        num_splits = 1\n"
        "    if num_tokens > 64:\n"
        "        num_splits = 8\n"
        "    return run_kernel(num_splits=num_splits)\n",
        "def build(num_tokens):\n"
        "    num_splits = 0\n"
        "    if num_tokens > 64:\n"
        "        num_splits = 8\n"
        "    if envs.VLLM_BATCH_INVARIANT:\n"
        "        num_splits = 1\n"
        "    return run_kernel(num_splits=num_splits)\n",
        _MODES,
        "set the pin last, or ask for the mode in the later statement",
    ),
    LintRule(
        "SEL304",
        "half-pinned",
        "one of two harmful fields is pinned",
        "error",
        "Under the invariant mode one field of a configuration is fixed, and another one that moves a "
        "reduction still follows the batch.",
        "One moving field is enough to move bits.",
        "def config(batch_size: int):\n"
        "    split_k = 64 if batch_size < 128 else 8\n"
        "    if envs.VLLM_BATCH_INVARIANT:\n"
        "        split_k = 1\n"
        "    return {'split_k': split_k, 'block_k': 256 if batch_size < 128 else 32}\n",
        "def config(batch_size: int):\n"
        "    split_k = 64 if batch_size < 128 else 8\n"
        "    block_k = 256 if batch_size < 128 else 32\n"
        "    if envs.VLLM_BATCH_INVARIANT:\n"
        "        split_k = 1\n"
        "        block_k = 32\n"
        "    return {'split_k': split_k, 'block_k': block_k}\n",
        _MODES,
        "pin the other field too",
    ),
    LintRule(
        "SEL305",
        "guard-enabled-again",
        "what a guard switches off, a later default switches on again",
        "error",
        "A method that asks for the invariant mode sets an attribute, and another method that runs "
        "later in the same start-up sets it again without asking.",
        "Order decides, and nobody reads the order.",
        "class Args:\n"
        "    def __post_init__(self):\n"
        "        self._handle_deterministic()\n"
        "        self._handle_defaults()\n\n"
        "    def _handle_deterministic(self):\n"
        "        if self.enable_deterministic_inference:\n"
        "            self.enable_fusion = False\n\n"
        "    def _handle_defaults(self):\n"
        "        self.enable_fusion = True\n",
        "class Args:\n"
        "    def __post_init__(self):\n"
        "        self._handle_defaults()\n"
        "        self._handle_deterministic()\n\n"
        "    def _handle_deterministic(self):\n"
        "        if self.enable_deterministic_inference:\n"
        "            self.enable_fusion = False\n\n"
        "    def _handle_defaults(self):\n"
        "        self.enable_fusion = True\n",
        f"{_MODES} Only methods called one after the other in one method are compared.",
        "run the guard last, or ask for the mode in the later method",
    ),
    LintRule(
        "SEL401",
        "scale-over-batch",
        "one scale is computed over the whole batch",
        "warning",
        "The largest absolute value over all rows of an activation becomes a scale. Preview.",
        "A neighbour's outlier changes how coarsely this request is rounded: no pin of a kernel helps.",
        "def quantize(x):\n    scale = x.abs().max() / 448.0\n    return x / scale\n",
        "def quantize(x):\n    scale = x.abs().amax(dim=-1, keepdim=True) / 448.0\n    return x / scale\n",
        "Scales that a library computes are known only where its call is described.",
        "use one scale for each token",
        preview=True,
    ),
)
