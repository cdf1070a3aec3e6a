"""What a skeleton guesses from names, and that what it prints is read back."""

from __future__ import annotations

from pathlib import Path

import yaml

from selc.diag.diagnostic import Sink
from selc.frontend.facts import load_facts
from selc.frontend.skeleton import skeleton

SOURCE = """\
def f(num_tokens, batch_size, seqlen, kv_len: int, bsz, hidden_size: int, head_dim, topk: int,
      use_graph, block_size=16):
    return comm.pick(num_tokens)
"""
OBJECTS = """\
class Comm:
    def __init__(self, size):
        self.limit = size
    def fits(self, n):
        return n < self.limit

def choose(flag):
    return Comm

class Layer:
    def __init__(self, flag):
        cls = choose(flag)
        self.comm = cls(4)
    def forward(self, num_tokens):
        comm = self.comm
        return comm.fits(num_tokens)
"""


def test_kinds_and_sizes(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(SOURCE)
    made = yaml.safe_load(skeleton(f"{tmp_path / 'k.py'}:f", []))
    assert {k for k, v in made["inputs"].items() if v["kind"] == "runtime"} == {
        "num_tokens", "batch_size", "seqlen", "kv_len", "bsz",
    }  # fmt: skip
    assert made["facts"] == {"hidden_size": 4096, "head_dim": 128, "topk": 8, "use_graph": False}


def test_objects_by_what_is_assigned(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(OBJECTS)
    text = skeleton(f"{tmp_path / 'k.py'}:Layer.forward", [])
    made = yaml.safe_load(text)
    assert made["objects"] == {"self.comm": {"class": "k:Comm", "attrs": {"limit": None}}}
    (tmp_path / "f.yaml").write_text(text)
    sink = Sink()
    load_facts([tmp_path / "f.yaml"], sink)
    assert not sink.has_errors
