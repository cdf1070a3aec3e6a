"""`manifest.json`: what the driver knows, what was emitted, and the hash of both.

`hash` names the selector: SHA-256 over the canonical JSON of what decides which tuples it accepts
and what it selects under them. It is the same with and without a compiler, and whichever tuple is
the default. `seal` covers everything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from selc import __version__
from selc.codegen.cost import remembered
from selc.codegen.spec import SelectorSpec
from selc.ir.value import Symbol, to_json

OUTSIDE: Final = frozenset(
    {
        *("hash", "native", "files", "seal", "tuple", "timings_ms", "cache", "artifacts"),
        *("versions", "plan", "witnessed"),
    }
)
"""Entries that do not count for the hash: the tuple, the build, and how it was made."""

CHOSEN: Final = {"pins": "default", "knobs": "setting", "inputs": "example"}
"""What of each pin, knob and input follows the default tuple, and does not count either."""


def canonical(data: object) -> bytes:
    """JSON text that depends on the content alone."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), default=_plain).encode()


def selector_hash(manifest: Mapping[str, Any]) -> str:
    """The name of the selector that a manifest describes."""
    kept = {k: v for k, v in manifest.items() if k not in OUTSIDE}
    for entry, chosen in CHOSEN.items():
        rows = kept.get(entry)
        if isinstance(rows, list) and all(isinstance(r, dict) for r in rows):
            kept[entry] = [{k: v for k, v in r.items() if k != chosen} for r in rows]
    return hashlib.sha256(canonical(kept)).hexdigest()


def seal(manifest: Mapping[str, Any]) -> str:
    """The digest over everything but the seal itself."""
    return hashlib.sha256(canonical({k: v for k, v in manifest.items() if k != "seal"})).hexdigest()


def describe(spec: SelectorSpec) -> dict[str, Any]:
    """The driver's entries with those of code generation, without hash, files and seal."""
    manifest: dict[str, Any] = json.loads(canonical(spec.manifest))
    manifest.setdefault("format", 1)
    manifest.setdefault("selc", __version__)
    costly = remembered(spec)

    def when(index: int) -> str:
        if index not in spec.checked:
            return "settled for legal tuples"
        return "once per tuple and inputs" if index in costly else "every call"

    manifest["runtime"] = {
        "guards": [{"index": i, "when": when(i)} for i in range(len(spec.residual.guards))],
        "assumes": ["every call"] * len(spec.residual.assumes),
        "parameters": [spec.public_name(p) for p in spec.residual.parameters],
    }
    return manifest


def hash_of(spec: SelectorSpec) -> str:
    """The name of the selector that a specification makes."""
    return selector_hash(describe(spec))


def finished(
    manifest: Mapping[str, Any], digest: str, native: Mapping[str, Any], files: Mapping[str, bytes]
) -> str:
    """The text of the file."""
    whole: dict[str, Any] = {**manifest, "hash": digest, "native": dict(native)}
    whole["files"] = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}
    whole["seal"] = seal(whole)
    return json.dumps(whole, indent=1) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, (tuple, Symbol)):
        return to_json(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)
