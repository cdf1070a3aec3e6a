"""All checks of one manifest, in order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from selc.check import dependence, fidelity, flow, package, pinned, relation
from selc.check.certificate import Text, read
from selc.check.decide import Judge
from selc.check.findings import Finding
from selc.check.readings import Readings
from selc.check.values import Unreadable, frozen, plain

OUTSIDE: Final = frozenset(
    {
        *("hash", "native", "files", "seal", "tuple", "timings_ms", "cache", "artifacts"),
        *("versions", "plan", "witnessed"),
    }
)
"""Entries that the hash of a selector does not cover; `seal` covers them."""

CHOSEN: Final = {"pins": "default", "knobs": "setting", "inputs": "example"}


def examine(manifest: Mapping[str, Any], directory: Path, run: bool = True) -> list[Finding]:
    """Every finding on a manifest in its folder; `run`: the package there is executed.

    Raises:
        Unreadable: the manifest is no certificate of this format.
    """
    try:
        return list(_all(manifest, directory, run))
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        what = f"{type(error).__name__}: {error}"
        raise Unreadable(f"an entry is missing or malformed ({what})") from error


def _all(manifest: Mapping[str, Any], directory: Path, run: bool) -> Iterator[Finding]:
    sealed = list(digests(manifest, directory))
    yield from sealed
    g0, r = read(manifest["graph0"]), read(manifest["graph"])
    yield flow.noninterference(r)
    readings = Readings(g0, r)
    fit = fidelity.shape(readings)
    yield fit
    yield pinned.stated(readings, manifest["pins"])
    yield entries(manifest, readings)
    if fit.result == "failed":
        return
    yield fidelity.assumptions(readings, Judge(readings.dag, [], []))
    admits = [readings.dag.true(readings.in_r(g.nodes["real"])) for g in r.assumes]
    judge = Judge(readings.dag, admits, seeds(manifest, readings))
    yield fidelity.points(readings, judge)
    yield fidelity.guards(readings, judge)
    yield pinned.free(readings, judge)
    yield pinned.candidates(readings, judge, witnesses(manifest, g0))
    legal = relation.Relation(readings, manifest["factors"])
    yield relation.stated(legal, manifest)
    yield relation.allowed(readings, legal, judge)
    broken = [
        calls_of(g["counterexample"]["inputs"], g0) if g.get("counterexample") else None
        for g in manifest["guards"]
    ]
    known = [call for call in broken if call is not None]
    yield relation.refused(readings, legal, judge, manifest["guards"], known)
    yield relation.shown_calls(readings, legal, judge, manifest, example_of(manifest, g0), broken)
    yield dependence.stated(readings, judge, manifest["points"])
    if any(f.result == "failed" for f in sealed):
        yield Finding("package", "skipped", "not run: the folder is not as it was written")
        return
    if run:
        yield from package.agrees(readings, legal, judge, manifest, directory)


def digests(manifest: Mapping[str, Any], directory: Path) -> Iterator[Finding]:
    """Files, seal and hash are those of the content."""
    wrong = []
    for name, digest in sorted(manifest["files"].items()):
        path = directory / Path(name).name
        if not path.is_file():
            wrong.append(f"{name} is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            wrong.append(f"{name} was changed")
    if "__init__.py" not in manifest["files"]:
        wrong.append("the folder holds no selector")
    detail = f"{len(manifest['files'])} files have their digests"
    yield Finding("files", "failed" if wrong else "ok", ", ".join(wrong) or detail)
    sealed = {k: v for k, v in manifest.items() if k != "seal"}
    good = digest_of(sealed) == manifest["seal"]
    text = "the manifest is as it was written" if good else "the manifest was changed"
    yield Finding("seal", "ok" if good else "failed", text)
    good = digest_of(named(manifest)) == manifest["hash"]
    text = "the hash is that of the content" if good else "the hash belongs to other content"
    yield Finding("hash", "ok" if good else "failed", text)


def digest_of(data: object) -> str:
    """SHA-256 over canonical JSON."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def named(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What the hash covers: not the tuple in force, nor how the selector was built."""
    kept = {k: v for k, v in manifest.items() if k not in OUTSIDE}
    for entry, chosen in CHOSEN.items():
        kept[entry] = [{k: v for k, v in row.items() if k != chosen} for row in kept[entry]]
    return kept


def entries(manifest: Mapping[str, Any], readings: Readings) -> Finding:
    """What the manifest lists is what its graphs hold."""
    g0, r = readings.g0, readings.r
    wrong = []
    if {p["name"]: p["role"] for p in manifest["points"]} != {
        n: p.role for n, p in g0.points.items()
    } or len(manifest["points"]) != len(g0.points):
        wrong.append("the points are not those of G0")
    if [s["name"] for s in manifest["sites"]] != list(g0.sites):
        wrong.append("the sites are not those of G0")
    listed = [(g["kind"], g["text"], g["why"], bool(g.get("unseen"))) for g in manifest["guards"]]
    if listed != [(g.kind, g.text, g.why, g.unseen) for g in (*r.guards, *r.assumes)]:
        wrong.append("the guards are not those of R")
    free = sorted(n for n, p in r.pins.items() if p.free)
    cut = sorted(n for n, p in r.pins.items() if not p.free)
    if (sorted(manifest["cut"]["free"]), sorted(manifest["cut"]["pins"])) != (free, cut):
        wrong.append("the cut is not the pins of R")
    if manifest["scope"] != g0.scope:
        wrong.append("the scope is not that of G0")
    if {k["name"]: frozen(k["choices"]) for k in manifest["knobs"]} != {
        n: frozen(list(g0.leaves[n].domain)) for n in r.knobs
    }:
        wrong.append("the knobs are not those of R")
    wrong += _inputs(manifest["inputs"], g0)
    detail = "inputs, points, sites, guards, cut and knobs are those of the graphs"
    return Finding("entries", "failed" if wrong else "ok", "; ".join(wrong[:3]) or detail)


def _inputs(listed: list[dict[str, Any]], g0: Text) -> list[str]:
    """What is wrong with the list of inputs; those that nothing reads are in no graph."""
    wrong = []
    seen = set()
    for entry in listed:
        parts = entry["aggregates"] if entry["type"] == "sequence" else [entry]
        for part in parts:
            seen.add(part["name"])
            leaf = g0.leaves.get(part["name"])
            if leaf is None:
                continue
            if leaf.kind != entry["kind"]:
                wrong.append(f"{part['name']} has another kind in G0")
            if "values" in part:
                same = frozen(part["values"]) == frozen(plain(tuple(leaf.domain)))
            else:
                low, high = part["range"]
                same = leaf.domain == range(low, high + 1, part["multiple_of"])
            if not same:
                wrong.append(f"{part['name']} has another domain in G0")
    missing = {n for n, leaf in g0.leaves.items() if leaf.kind != "knob"} - seen
    return wrong + [f"{n} is not listed" for n in sorted(missing)]


def calls_of(inputs: Mapping[str, Any], g0: Text) -> dict[str, Any]:
    """A call in JSON as values of the declared domains; what is in none stays out."""
    out = {}
    for name, data in inputs.items():
        leaf = g0.leaves.get(name)
        if leaf is None:
            continue
        if isinstance(leaf.domain, range):
            out[name] = data
            continue
        for value in leaf.domain:
            if frozen(plain(value)) == frozen(data):
                out[name] = value
                break
    return out


def example_of(manifest: Mapping[str, Any], g0: Text) -> dict[str, Any]:
    """The examples of all inputs: one call, with what the graphs read of sequences."""
    data: dict[str, Any] = {}
    for entry in manifest["inputs"]:
        if entry["type"] != "sequence":
            data[entry["name"]] = entry["example"]
            continue
        for part in entry["aggregates"]:
            data[part["name"]] = package.AGGREGATES[part["function"]](entry["example"])
    return calls_of(data, g0)


def seeds(manifest: Mapping[str, Any], readings: Readings) -> list[dict[str, Any]]:
    """Where to look first: the example, thresholds and their neighbours, counterexamples."""
    g0 = readings.g0
    out = [example_of(manifest, g0)]
    for name, values in manifest["thresholds"].items():
        leaf = g0.leaves.get(name)
        near = [v + d for v in values if type(v) is int for d in (-1, 0, 1)]
        out += [{name: v} for v in near if leaf is not None and v in leaf.domain]
    shown = [g["counterexample"] for g in manifest["guards"] if g.get("counterexample")]
    return out + [calls_of(s["inputs"], g0) for s in shown]


def witnesses(manifest: Mapping[str, Any], g0: Text) -> dict[str, list[Mapping[str, Any] | None]]:
    """The calls that take the candidates, by pin."""
    return {
        name: [None if call is None else calls_of(call, g0) for call in calls]
        for name, calls in manifest["witnesses"].items()
    }
