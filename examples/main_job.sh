#!/usr/bin/env bash
# The main job: compile a kernel selection for a deployment, then use the selector that came out.
# Sets up .venv first. Needs Python 3.11 or newer and make; with a C compiler the selector is native.
set -euo pipefail
cd "$(dirname "$0")/.."

make --no-print-directory setup
bin=.venv/bin

echo '== selc compile examples/moe.py =='
"$bin/selc" compile examples/moe.py \
    --facts examples/facts/h100.yaml \
    --facts examples/facts/qwen3-30b-a3b.yaml \
    --facts examples/facts/vllm.yaml \
    --facts examples/facts/tp4.yaml \
    -o build/moe_selector

echo
echo '== the selector in a new interpreter, without any installed package =='
"$bin/python" -S examples/use_moe.py build
