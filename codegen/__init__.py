"""From the residual graph to C text, Python text, a header and the manifest."""

from __future__ import annotations

from selc.codegen.build import native_key
from selc.codegen.dot import dot_text
from selc.codegen.manifest import seal, selector_hash
from selc.codegen.package import emit, is_ours
from selc.codegen.spec import Argument, Artifacts, Factor, KnobSpec, PinSpec, SelectorSpec, Sequence

__all__ = [
    "Argument",
    "Artifacts",
    "Factor",
    "KnobSpec",
    "PinSpec",
    "SelectorSpec",
    "Sequence",
    "dot_text",
    "emit",
    "is_ours",
    "native_key",
    "seal",
    "selector_hash",
]
