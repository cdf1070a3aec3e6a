"""From the residual graph to C text, Python text, a header and the manifest."""

from __future__ import annotations

from selc.codegen.build import native_key
from selc.codegen.dot import dot_text
from selc.codegen.html import html_text
from selc.codegen.manifest import hash_of, seal, selector_hash
from selc.codegen.package import emit, emit_manifest
from selc.codegen.spec import Argument, Artifacts, Factor, KnobSpec, PinSpec, SelectorSpec, Sequence
from selc.codegen.target import install, is_ours

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
    "emit_manifest",
    "hash_of",
    "html_text",
    "install",
    "is_ours",
    "native_key",
    "seal",
    "selector_hash",
]
