"""The single checks of an emitted selector; each says what it looked at."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from selc.driver.matching import Absent, find, frozen
from selc.ir.value import Value, same, to_json, value_key

if TYPE_CHECKING:
    from selc.ir.program import Program
    from selc.ir.residual import Pin, Residual

CALLS: Final = 256
"""Calls on which R is compared with G0."""

_SEED: Final = 20250101


class Finding(NamedTuple):
    """One check: its name, `ok`, `failed` or `skipped`, and a few words."""

    name: str
    result: str
    detail: str


def digests(directory: Path, manifest: Mapping[str, Any]) -> list[Finding]:
    """The files, the seal and the hash."""
    from selc.codegen import seal, selector_hash

    found: list[Finding] = []
    wrong = []
    for name, digest in sorted(manifest["files"].items()):
        try:
            content = (directory / Path(name).name).read_bytes()
        except OSError:
            wrong.append(f"{name} is missing")
            continue
        if hashlib.sha256(content).hexdigest() != digest:
            wrong.append(f"{name} was changed")
    detail = ", ".join(wrong) or f"{len(manifest['files'])} files have their digests"
    found.append(Finding("files", "failed" if wrong else "ok", detail))
    good = seal(manifest) == manifest["seal"]
    detail = "the manifest is as it was written" if good else "the manifest was changed"
    found.append(Finding("seal", "ok" if good else "failed", detail))
    good = selector_hash(manifest) == manifest["hash"]
    detail = "the hash is that of the content" if good else "the hash belongs to other content"
    found.append(Finding("hash", "ok" if good else "failed", detail))
    if "__init__.py" not in manifest["files"]:
        found.append(Finding("package", "failed", "the folder holds a manifest and no selector"))
    return found


def noninterference(residual: Residual) -> Finding:
    """No path in R leads from a batch input to a bits point."""
    from selc.passes.depend import reads

    bits = [(p.name, n) for p, n in residual.points if p.role == "bits"]
    inputs = residual.graph.inputs
    batch = {name for name, leaf in inputs.items() if leaf.is_batch(residual.scope)}
    read = reads(residual.graph, [n for _, n in bits])
    moved = [
        f"{name} reads {', '.join(sorted(some & batch))}"
        for (name, _), some in zip(bits, read, strict=True)
        if some & batch
    ]
    if moved:
        return Finding("noninterference", "failed", "; ".join(moved))
    detail = f"no path in R from a batch input to any of {len(bits)} bits points"
    return Finding("noninterference", "ok", detail)


def parameters(residual: Residual, manifest: Mapping[str, Any]) -> Finding:
    """R's parameters range over the manifest's candidates and offers; its knobs are the same."""
    wrong = []
    pins = {p.name: p for p in residual.pins}
    for entry in manifest["pins"]:
        pin = pins.pop(entry["name"], None)
        if pin is None or pin.free != entry["free"]:
            wrong.append(f"R has no such pin {entry['name']}")
        elif not pin.free and not _ranges(residual, pin, entry):
            wrong.append(f"{entry['name']} ranges over other values in R")
    wrong += [f"the manifest lacks the pin {name}" for name in pins]
    if {k["name"] for k in manifest["knobs"]} != set(residual.knobs):
        wrong.append("the knobs differ")
    detail = "; ".join(wrong) or f"{len(manifest['pins'])} pins, {len(residual.knobs)} knobs"
    return Finding("parameters", "failed" if wrong else "ok", detail)


def _ranges(residual: Residual, pin: Pin, entry: Mapping[str, Any]) -> bool:
    stated = entry["candidates"]
    if not isinstance(stated, list):
        return True
    wanted = {value_key(frozen(v)) for v in [*stated, *entry["offered"]]}
    have = {value_key(frozen(to_json(v))) for v in (*(pin.candidates.values or ()), *pin.offered)}
    leaf = residual.graph.inputs.get(pin.parameter or "")
    inside = {value_key(frozen(to_json(v))) for v in leaf.domain} if leaf is not None else have
    return wanted == have == inside


def legality(residual: Residual, manifest: Mapping[str, Any]) -> list[Finding]:
    """The relation, decided anew, is the manifest's, and the tuple is in it."""
    from selc.vra.legality import legality as decide

    anew = decide(residual)
    claimed = manifest["legal"]
    same_counts = (anew.assignments, anew.legal) == (claimed["assignments"], claimed["legal"])
    factors = _keys({tuple(f.parameters): f.rows for f in anew.factors})
    stated = _keys({tuple(f["parameters"]): f["rows"] for f in manifest.get("factors", [])})
    good = same_counts and factors == stated
    detail = f"{anew.legal} of {anew.assignments} assignments are legal ({anew.evidence})"
    if not good:
        detail += f"; the manifest says {claimed['legal']} of {claimed['assignments']}"
        detail += "" if not same_counts else ", with other values"
    found = [Finding("legality", "ok" if good else "failed", detail)]
    if manifest.get("tuple") is None:
        return [*found, Finding("tuple", "skipped", "there is none: nothing is legal")]
    values = _assignment(residual, manifest)
    if isinstance(values, str):
        return [*found, Finding("tuple", "failed", values)]
    legal = all(
        any(
            all(same(values[n], v) for n, v in zip(f.parameters, row, strict=True))
            for row in f.rows
        )
        for f in anew.factors
    )
    detail = "the tuple in force is legal" if legal else "the tuple in force is not legal"
    return [*found, Finding("tuple", "ok" if legal else "failed", detail)]


def _keys(factors: Mapping[tuple[str, ...], Any]) -> dict[tuple[str, ...], frozenset[object]]:
    return {
        names: frozenset(value_key(frozen([to_json(v) for v in row])) for row in rows)
        for names, rows in factors.items()
    }


def _assignment(residual: Residual, manifest: Mapping[str, Any]) -> dict[str, Value] | str:
    """The parameters of R under the manifest's tuple and settings; why not, if it lacks some."""
    out: dict[str, Value] = {}
    stated = dict(manifest["tuple"])
    for pin in residual.pins:
        if pin.parameter is not None:
            axis = (*(pin.candidates.values or ()), *pin.offered)
            found = find(stated[pin.name], axis) if pin.name in stated else Absent()
            if isinstance(found, Absent):
                return f"the tuple has no value for {pin.name} that it can take"
            out[pin.parameter] = found
    for knob in manifest["knobs"]:
        leaf = residual.graph.inputs.get(knob["name"])
        found = find(knob["setting"], leaf.domain) if leaf is not None else frozen(knob["setting"])
        if isinstance(found, Absent):
            return f"the setting of {knob['name']} is none of its choices"
        out[knob["name"]] = found
    return out


# --- R against G0 -------------------------------------------------------------------------------


def agreement(program: Program, residual: Residual) -> Finding:
    """R under random parameters and inputs gives what G0 gives with its sites overwritten."""
    from selc.ir.interp import run, run_program

    draw = random.Random(_SEED)  # noqa: S311  # a fixed sequence, not a secret
    inputs = program.graph.inputs
    compared = 0
    for _ in range(CALLS):
        call = {n: i.domain[draw.randrange(len(i.domain))] for n, i in inputs.items()}
        chosen: dict[str, Value] = {}
        overwrites: dict[str, Value] = {}
        for pin in residual.pins:
            if pin.parameter is not None:
                axis = (*(pin.candidates.values or ()), *pin.offered)
                chosen[pin.parameter] = overwrites[pin.name] = axis[draw.randrange(len(axis))]
        for pin in residual.pins:
            if pin.free:
                value = pin.constant
                if pin.at is not None:
                    value = run_program(program, {**call, **pin.at}, overwrites).sites.get(pin.name)
                overwrites[pin.name] = value
        env = {**call, **chosen}
        assumed = run(residual.graph, [n for _, n in residual.assumes], env)
        if not all(v is True for v in assumed):
            continue
        compared += 1
        reference = run_program(program, call, overwrites)
        held = run(residual.graph, [g.pinned for g in residual.guards], env)
        if reference.returned != all(v is True for v in held):
            return Finding("agreement", "failed", f"guards differ for {_shown(env)}")
        if reference.returned:
            got = run(residual.graph, [n for _, n in residual.points], env)
            for (point, _), value in zip(residual.points, got, strict=True):
                if not same(value, reference.points[point.name]):
                    where = f"{point.name} differs for {_shown(env)}"
                    return Finding("agreement", "failed", where)
    detail = f"R gives what G0 gives under the same pins on {compared} calls (sampled)"
    return Finding("agreement", "ok" if compared else "skipped", detail)


def _shown(env: Mapping[str, Value]) -> str:
    return ", ".join(f"{k}={v!r}" for k, v in env.items())


# --- the source ---------------------------------------------------------------------------------


def source(manifest: Mapping[str, Any]) -> list[Finding]:
    """The source, compiled again as the manifest's plan says, gives the same graphs and hash."""
    from selc.codegen import hash_of
    from selc.diag.diagnostic import Refused, Sink
    from selc.driver import describe
    from selc.driver.cache import state_of
    from selc.driver.manifest import manifest as made
    from selc.driver.pipeline import Clock, Plan, decide
    from selc.driver.selector import specification

    changed = [
        path for path, said in manifest["sources"].items() if state_of(path, len(said) // 2) != said
    ]
    detail = f"{len(manifest['sources'])} files are as they were"
    if changed:
        detail = f"changed or missing: {', '.join(changed[:4])}"
    found = [Finding("sources", "failed" if changed else "ok", detail)]
    plan = manifest["plan"]
    again = Plan(
        plan["target"],
        tuple(Path(p) for p in plan["facts"]),
        tuple(Path(p) for p in plan["roots"]),
        plan["max_candidates"],
        plan["whole_rows"],
        frozenset(plan["skip"]),
    )
    try:
        decided = decide(again, None, Sink(), Clock())
    except Refused as refused:
        return [*found, Finding("source", "failed", f"no longer compiles: {refused}")]
    fresh = made(decided, describe.answer(decided), again)
    parts = [k for k in ("graph0", "graph", "factors", "points") if fresh[k] != manifest[k]]
    if parts:
        return [*found, Finding("source", "failed", f"gives other {', '.join(parts)}")]
    good = hash_of(specification(decided, fresh, {})) == manifest["hash"]
    detail = "gives the same graphs, relation and hash" if good else "gives another hash"
    return [*found, Finding("source", "ok" if good else "failed", detail)]
