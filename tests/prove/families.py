"""Small deployments of every family of the examples, for the brute-force judge."""

from __future__ import annotations

from tests.prove.judged import Deployment

TOKENS = "inputs: {{num_tokens: {{type: int, range: [1, {most}]}}}}\n"
PAGED = """
inputs:
  batch_size: {{type: int, range: [1, 3]}}
  total_q: {{type: int, range: [1, 120], multiple_of: 4}}
  max_seqlen_q: {{type: int, range: [1, {queries}], multiple_of: {step}}}
  max_seqlen_k: {{type: int, range: [1, 30000], multiple_of: {keys}}}
"""
VARYING = """
inputs:
  batch_size: {{type: int, range: [1, 1200], multiple_of: 300}}
  total_q: {{type: int, range: [1, 1500], multiple_of: 300}}
  max_seqlen_q: {{type: int, range: [1, {queries}], multiple_of: {step}}}
  max_seqlen_k: {{type: int, range: [1, 30000], multiple_of: {keys}}}
"""
SPLITS = "offer: {num_splits: [0, 17, 128, 255, 256, 257]}\n"
BLOCKS = "offer: {num_splits: [0, 17, 128, 255, 256, 257], kBlockM: [64, 192]}\n"


def families(large: bool) -> list[Deployment]:
    """The deployments; `large`: over more inputs than a test has time for."""
    tokens = TOKENS.format(most=2000 if large else 300)
    few = {"queries": 40, "step": 4 if large else 8, "keys": 2500 if large else 5000}
    paged, varying = PAGED.format(**few), VARYING.format(**few)
    llama, qwen = "h100 llama-3.1-70b", "h100 qwen3-30b-a3b"
    return [
        Deployment("all_reduce", f"{llama} vllm tp4", tokens),
        Deployment("all_reduce", f"{llama} sglang tp4", tokens),
        Deployment("all_reduce", f"{llama} sglang tp8", tokens),
        Deployment("moe", f"{qwen} vllm tp4", tokens),
        Deployment("moe", f"{qwen} sglang tp4", tokens),
        Deployment("gemm", f"{llama} vllm tp4", tokens),
        Deployment("cutlass_fp8", f"{llama} vllm tp4", tokens),
        Deployment("attention_stride", f"{llama} sglang tp4", paged),
        Deployment("attention_stride", f"{llama} vllm tp4", varying),
        Deployment("attention_fa3", f"{llama} sglang tp4", paged + SPLITS),
        Deployment("attention_fa3", f"{llama} vllm tp4", varying + BLOCKS),
        Deployment("attention_fa3", "h100 gemma-7b-it vllm tp1", varying),
        Deployment("attention_fa3", "h100 phi-3.5-mini vllm tp1", varying + SPLITS),
    ]
