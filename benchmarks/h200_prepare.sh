#!/usr/bin/env bash
# Compiles the selectors that the GPU machine works with, and makes the workloads: that machine has
# neither libcst nor z3. A minute or two.
#
#     benchmarks/h200_prepare.sh [FOLDER [SET]]  .h200 by default; PYTHON names the interpreter
#
# SET is `recorded`, the default, or `holdout`: deployments on which nothing was designed.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-.h200}
set=${2:-recorded}
python=${PYTHON:-python3}
mkdir -p "$out/facts"

compile() {    # name, selection, facts files...
    local name=$1 source=$2 facts=()
    shift 2
    for each; do facts+=(--facts "$each"); done
    "$python" -m selc compile "examples/kernels/$source.py" "${facts[@]}" -o "$out/$name" \
        --no-native --format json > "$out/$name.json" || { cat "$out/$name.json"; exit 1; }
    "$python" - "$out/$name.json" "$name" <<'PY'
import json, sys
made = json.load(open(sys.argv[1]))
legal = made["legal"]
pins = ", ".join(p["name"] for p in made["pins"] if not p["free"])
print(f"{sys.argv[2]:18} {legal['legal']:6} of {legal['assignments']:6} legal, pins: {pins}")
PY
    rm "$out/$name.json"
}

facts=examples/kernels

holdout() {    # Llama-3.1-70B on 4 ranks, Qwen3-30B-A3B on 2
    local model='{hidden: 8192, heads: 64, kv_heads: 8, intermediate: 28672}' workload
    echo "facts: {model: $model, parallel: {tensor: 4}, linear: down}" > "$out/facts/gemm.yaml"
    echo "facts: {model: {heads: 64, kv_heads: 8}, parallel: {tensor: 4}}" > "$out/facts/attention.yaml"
    local table='E=128,N=384,device_name=NVIDIA_H200'
    echo "facts: {parallel: {tensor: 2}, gate_up_table: '$table', down_table: '$table'}" \
        > "$out/facts/moe.yaml"
    compile attention_70b attention $facts/attention-h200.yaml "$out/facts/attention.yaml"
    compile gemm_down_70b gemm $facts/gemm-h200.yaml "$out/facts/gemm.yaml"
    compile moe_tp2 moe $facts/moe-h200.yaml "$out/facts/moe.yaml"
    for workload in w-a w-b w-b-c; do
        synth $workload "$out/attention_70b" "$out/gemm_down_70b" "$out/moe_tp2"
    done
}

synth() {    # workload, selectors...
    "$python" -m selc profile synth "${@:2}" --preset "$1" -o "$out/$1.jsonl" > "$out/$1.txt"
    echo "$1: $(wc -l < "$out/$1.jsonl") calls"
}

if [ "$set" = holdout ]; then
    holdout
    du -sh "$out"
    exit
fi
compile attention attention $facts/attention-h200.yaml
echo 'facts: {model: {head_dim: 64}}' > "$out/facts/head64.yaml"
compile attention_d64 attention $facts/attention-h200.yaml "$out/facts/head64.yaml"
for linear in qkv o gate_up down; do
    echo "facts: {linear: $linear}" > "$out/facts/$linear.yaml"
    compile "gemm_$linear" gemm $facts/gemm-h200.yaml "$out/facts/$linear.yaml"
done
compile moe moe $facts/moe-h200.yaml
compile rms_norm rms_norm $facts/rms_norm-h200.yaml
compile all_reduce all_reduce $facts/all_reduce-h200x2.yaml

"$python" - "$out/configs" <<'PY'
# The configurations whose bits are compared with each other.
import itertools, json, pathlib, sys

out = pathlib.Path(sys.argv[1])
out.mkdir(exist_ok=True)

def write(name, configs):
    distinct = list({json.dumps(c): c for c in configs}.values())
    (out / f"{name}.json").write_text(json.dumps(distinct))
    print(f"{name}: {len(distinct)} configurations")

table = json.load(open("examples/tables/vllm-0.21.0-moe.json"))
rows = table["E=128,N=768,device_name=NVIDIA_H200"].values()
names = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
write("moe", [{f"{p}.{n}": r[n] for p in ("gate_up", "down") for n in names} for r in rows])
tiles = ((16, 64, 256, 4, 4), (16, 128, 128, 4, 4), (32, 64, 128, 4, 4), (64, 64, 128, 4, 4),
         (64, 128, 64, 4, 4), (128, 128, 64, 8, 4), (128, 256, 64, 8, 3), (16, 64, 64, 4, 4))
names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages")
write("gemm", [{**dict(zip(names, t)), "SPLIT_K": s} for t in tiles for s in (1, 2, 4, 8)])
for name in ("attention", "attention_d64"):
    write(name, [
        {"split_stride": s, "BLOCK_M": m, "BLOCK_N": n, "num_warps": w}
        for s, m, n, w in itertools.product((0, 1024), (16, 64, 128), (32, 64, 128), (4, 8))
        if (w == 4 or n >= 64) and (w == 8 or m < 128)
    ])
PY

for workload in w-a w-b w-b-c; do
    synth $workload "$out/attention" "$out/gemm_qkv" "$out/moe" "$out/rms_norm"
done
"$python" -m selc profile synth "$out/all_reduce" --preset w-a --calls 8 -o "$out/all_reduce.jsonl" \
    > "$out/all_reduce.txt"
du -sh "$out"
