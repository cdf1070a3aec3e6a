"""Certificates with one thing changed, and every digest computed again.

A mutant of the graphs' text touches one line of one graph, so that the two no longer agree or the
claim no longer holds. Each says its kind, what was changed, and the manifest.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from selc.codegen import seal, selector_hash

_NODE = re.compile(r"^(v\d+ = )(\w+)(.*)$")

SWAPS = {
    "add": "sub", "sub": "add", "mul": "add", "floordiv": "mod", "mod": "floordiv", "lt": "le",
    "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq", "min2": "max2", "max2": "min2",
    "min": "max", "max": "min", "any": "all", "all": "any", "not": "truth", "truth": "not",
    "neg": "pos", "abs": "neg", "ceil": "floor", "floor": "ceil", "round": "trunc",
    "trunc": "ceil", "lshift": "rshift", "rshift": "lshift", "bitand": "bitor", "bitor": "bitand",
    "bitxor": "bitor", "is": "ne", "truediv": "mul", "pow": "mul", "sqrt": "abs", "log2": "sqrt",
    "invert": "neg", "pos": "neg", "int": "neg", "float": "neg", "float32": "neg", "str": "truth",
    "len": "sum", "sum": "len", "sorted": "len", "bit_length": "abs", "is_integer": "not",
}  # fmt: skip


class Mutant(NamedTuple):
    kind: str
    what: str
    manifest: dict[str, Any]


def resealed(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with digests that fit what it says."""
    manifest["hash"] = selector_hash(manifest)
    manifest["seal"] = seal(manifest)
    return manifest


def write(mutant: Mutant, folder: Path) -> None:
    (folder / "manifest.json").write_text(json.dumps(mutant.manifest))


def mutants(manifest: dict[str, Any]) -> Iterator[Mutant]:
    """Every mutant of a certificate, in a fixed order."""
    for kind, what, changed in _all(manifest):
        yield Mutant(kind, what, resealed(changed))


def _all(m: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for graph in ("graph0", "graph"):
        yield from _lines(m, graph)
        yield from _guards(m, graph)
        yield from _roles(m, graph)
    yield from _unseen(m)
    yield from _pins(m)
    yield from _ranges(m)
    yield from _free(m)
    yield from _relation(m)
    yield from _inputs(m)
    yield from _shown(m)
    yield from _points(m)


def _text(m: dict[str, Any], graph: str, lines: list[str]) -> dict[str, Any]:
    out = copy.deepcopy(m)
    out[graph] = "\n".join(lines)
    return out


def _lines(m: dict[str, Any], graph: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Nodes: another operation, another constant, an edge led elsewhere, two arms exchanged."""
    lines = m[graph].split("\n")
    for i, line in enumerate(lines):
        found = _NODE.match(line)
        if found is None:
            continue
        head, op, rest = found.groups()
        if op in SWAPS:
            new = [*lines]
            new[i] = f"{head}{SWAPS[op]}{rest}"
            yield f"{graph}: operation {op}", line, _text(m, graph, new)
        if op == "const":
            for changed in _constants(rest.strip()):
                new = [*lines]
                new[i] = f"{head}const {changed}"
                yield f"{graph}: constant", line, _text(m, graph, new)
        args = re.findall(r"\bv\d+\b", rest.split(";")[0].split("[")[0])
        if op == "select" and args[1] != args[2]:
            new = [*lines]
            new[i] = line.replace(
                f"{args[0]}, {args[1]}, {args[2]}", f"{args[0]}, {args[2]}, {args[1]}"
            )
            yield f"{graph}: arms exchanged", line, _text(m, graph, new)
        if args:
            constant = next((ln for ln in lines[:i] if re.match(r"v\d+ = const", ln)), None)
            if constant is not None:
                new = [*lines]
                target = constant.split(" ")[0]
                new[i] = re.sub(rf"\b{args[-1]}\b(?!.*\b{args[-1]}\b)", target, line, count=1)
                if new[i] != line:
                    yield f"{graph}: edge", line, _text(m, graph, new)
        if op == "lookup":
            changed = re.sub(r"(\d+)\)(?!.*\d\))", lambda n: f"{int(n[1]) + 1})", line, count=1)
            if changed != line:
                new = [*lines]
                new[i] = changed
                yield f"{graph}: table", line, _text(m, graph, new)


def _constants(text: str) -> Iterator[str]:
    if re.fullmatch(r"-?\d+", text):
        yield str(int(text) + 1)
        yield f"{text}.0"
        if text in ("0", "1"):
            yield str(bool(int(text)))
    elif text in ("True", "False"):
        yield "False" if text == "True" else "True"
    elif text.startswith('"'):
        yield text[:-1] + '_"'


def _guards(m: dict[str, Any], graph: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A guard dropped, weakened to another node, or in one reading less."""
    lines = m[graph].split("\n")
    if "guards:" not in lines:
        return
    start = lines.index("guards:") + 1
    true = next((ln.split(" ")[0] for ln in lines if re.fullmatch(r"v\d+ = const True", ln)), None)
    for i in range(start, len(lines)):
        if not lines[i].startswith("  "):
            break
        yield f"{graph}: guard dropped", lines[i], _text(m, graph, lines[:i] + lines[i + 1 :])
        if true is not None:
            for reading in ("pinned", "adaptive", "mixed", "implies"):
                weak = re.sub(rf"{reading} v\d+", f"{reading} {true}", lines[i])
                if weak != lines[i]:
                    new = [*lines]
                    new[i] = weak
                    yield f"{graph}: guard weakened", lines[i], _text(m, graph, new)
        for reading in ("adaptive", "mixed"):
            less = re.sub(rf", {reading} v\d+", "", lines[i])
            if less != lines[i]:
                new = [*lines]
                new[i] = less
                yield f"{graph}: reading dropped", lines[i], _text(m, graph, new)


def _unseen(m: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The flag of a guard that may be vacuous, taken away or put on, in the list and in R."""
    lines = m["graph"].split("\n")
    start = lines.index("guards:") + 1 if "guards:" in lines else len(lines)
    for k, guard in enumerate(g for g in m["guards"] if g["kind"] == "require"):
        out = copy.deepcopy(m)
        head, where, place = lines[start + k].partition("  ; ")
        if guard.get("unseen"):
            del out["guards"][k]["unseen"]
            changed = head.removesuffix(", unseen")
        else:
            out["guards"][k]["unseen"] = True
            changed = re.sub(r", mixed v\d+", "", head) + ", unseen"
        new = [*lines]
        new[start + k] = changed + where + place
        out["graph"] = "\n".join(new)
        kind = "taken away" if guard.get("unseen") else "put on"
        yield f"guards: unseen {kind}", guard["text"], out


def _roles(m: dict[str, Any], graph: str) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The role of a point in one graph, and where reading (b) overwrites it besides its sites."""
    other = {"bits": "neutral", "neutral": "bits", "aux": "bits"}
    lines = m[graph].split("\n")
    for i in range(lines.index("points:") + 1, len(lines)):
        found = re.match(r"  (.*): (bits|neutral|aux) = v", lines[i])
        if found is None:
            break
        new = [*lines]
        new[i] = lines[i].replace(f": {found[2]} =", f": {other[found[2]]} =")
        yield f"{graph}: role", lines[i], _text(m, graph, new)
        if "  over " in lines[i]:
            new = [*lines]
            new[i] = lines[i].partition("  over ")[0]
            yield f"{graph}: place dropped", lines[i], _text(m, graph, new)


def _pins(m: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for k, pin in enumerate(m["pins"]):
        out = copy.deepcopy(m)
        del out["pins"][k]
        yield "pins: pin dropped from the list", pin["name"], out
        if pin["free"] or not isinstance(pin["candidates"], list):
            continue
        name = pin["name"]
        for extra in (-7, None):
            yield "pins: candidate added", f"{name} {extra}", _candidate(m, k, extra)
        for value in pin["candidates"]:
            yield "pins: candidate removed", f"{name} {value}", _candidate(m, k, value, gone=True)
        out = copy.deepcopy(m)
        out["pins"][k]["offered"].append(99_999)
        yield "pins: offer added", name, out
        out = copy.deepcopy(m)
        out["pins"][k]["free"] = True
        yield "pins: pin called free", name, out
        out = copy.deepcopy(m)
        head, _, tail = out["graph"].partition("\npins:\n")
        tail = re.sub(rf"(?m)^  {re.escape(_named(name))}: pin.*\n(    .*\n)*", "", tail + "\n")
        out["graph"] = f"{head}\npins:\n{tail}"
        del out["pins"][k]
        out["cut"]["pins"].remove(name)
        yield "pins: pin dropped everywhere", name, out


def _named(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][\w.\-]*", name) else json.dumps(name)


def _literal(value: Any) -> str:
    if isinstance(value, list):
        inner = ", ".join(map(_literal, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _candidate(m: dict[str, Any], k: int, value: Any, gone: bool = False) -> dict[str, Any]:
    """A candidate more or less, in the list, in R and among the calls that take them."""
    out = copy.deepcopy(m)
    pin = out["pins"][k]
    name, calls = pin["name"], out["witnesses"][pin["name"]]
    old = "{" + ", ".join(map(_literal, pin["candidates"])) + "}"
    if gone:
        place = [type(v) is type(value) and v == value for v in pin["candidates"]].index(True)
        del pin["candidates"][place], calls[place]
    else:
        pin["candidates"].append(value)
        calls.append(calls[0])
    new = "{" + ", ".join(map(_literal, pin["candidates"])) + "}"
    head = f"input {_named(name)}: pin "
    out["graph"] = out["graph"].replace(head + old, head + new, 1)
    mark = f"  {_named(name)}: pin"
    before, _, after = out["graph"].partition(mark)
    out["graph"] = before + mark + after.replace(f"candidates {old}", f"candidates {new}", 1)
    return out


def _ranges(m: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Candidates as a range that leaves some out, or that is called exact and is not."""
    for k, pin in enumerate(m["pins"]):
        span = span_of(pin)
        if span is None:
            continue
        low, high, step = span
        fewer = [(low, high - step), (low + step, high)]
        for ends in fewer:
            if low < high and ends[0] <= pin["default"] <= ends[1]:
                yield "pins: range with less", str(ends), as_range(m, k, (*ends, step), True)
                yield "pins: bound with less", str(ends), as_range(m, k, (*ends, step), False)
        for ends in ((low, high + step), (low - step, high)):
            yield "pins: range with more", str(ends), as_range(m, k, (*ends, step), True)
        if step > 1 and step % 2 == 0:
            more = as_range(m, k, (low, high, step // 2), True)
            yield "pins: range with more", f"steps of {step // 2}", more


def span_of(pin: dict[str, Any]) -> tuple[int, int, int] | None:
    """The first, the last and the step of a pin's candidates, if they are such integers."""
    listed = pin["candidates"]
    if pin["free"] or pin["offered"] or not isinstance(listed, list) or pin["default"] is None:
        return None
    if len(listed) < 2 or any(type(v) is not int for v in listed):
        return None
    span = range(listed[0], listed[-1] + 1, max(1, listed[1] - listed[0]))
    return (span[0], span[-1], span.step) if list(span) == listed else None


def as_range(m: dict[str, Any], k: int, span: tuple[int, int, int], exact: bool) -> dict[str, Any]:
    """The certificate with the candidates of a pin as a range."""
    out = copy.deepcopy(m)
    pin = out["pins"][k]
    name, low, high, step = pin["name"], *span
    old = "{" + ", ".join(map(_literal, pin["candidates"])) + "}"
    new = f"{low}..{high}" + (f" step {step}" if step != 1 else "")
    was = len(pin["candidates"])
    pin["candidates"], pin["exact"] = {"range": [low, high, step], "exact": exact}, exact
    del out["witnesses"][name]
    head = f"input {_named(name)}: pin "
    out["graph"] = out["graph"].replace(head + old, head + new, 1)
    mark = f"  {_named(name)}: pin"
    before, _, after = out["graph"].partition(mark)
    listed = new + ("" if exact else " at most")
    out["graph"] = before + mark + after.replace(f"candidates {old}", f"candidates {listed}", 1)
    values = range(low, high + 1, step)
    for guard in out["guards"]:
        shown = guard["counterexample"] or {"parameters": {}}
        if shown["parameters"].get(name, low) not in values:
            guard["counterexample"] = None
    for factor in out["factors"]:
        if name in factor["parameters"]:
            place = factor["parameters"].index(name)
            factor["rows"] = [row for row in factor["rows"] if row[place] in values]
    out["legal"]["assignments"] = out["legal"]["assignments"] // was * len(values)
    return _counted(out)


def _free(m: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    lines = m["graph"].split("\n")
    for i, line in enumerate(lines):
        found = re.match(r"    constant (.*)$", line)
        if found is not None:
            for changed in _constants(found[1]):
                new = [*lines]
                new[i] = f"    constant {changed}"
                yield "pins: constant of a free pin", line, _text(m, "graph", new)


def _relation(m: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for k, factor in enumerate(m["factors"]):
        if factor["rows"]:
            out = copy.deepcopy(m)
            row = out["factors"][k]["rows"].pop()
            yield "relation: row of a factor removed", str(row), _counted(out)
        for row in _absent(m, factor):
            out = copy.deepcopy(m)
            out["factors"][k]["rows"].append(row)
            yield "relation: row of a factor added", str(row), _counted(out)
        out = copy.deepcopy(m)
        del out["factors"][k]
        yield "relation: factor dropped", str(factor["parameters"]), _counted(out)
    if m["relation"]:
        out = copy.deepcopy(m)
        out["relation"].pop()
        yield "relation: row dropped", "last", out
    for name in ("legal", "assignments"):
        out = copy.deepcopy(m)
        out["legal"][name] += 1
        yield "relation: count", name, out
    for k, pin in enumerate(m["pins"]):
        if not pin["free"] and pin["legal"]:
            out = copy.deepcopy(m)
            out["pins"][k]["legal"].pop()
            yield "relation: legal value of a pin", pin["name"], out
    for name, value in (m["tuple"] or {}).items():
        pin = next(p for p in m["pins"] if p["name"] == name)
        for other in pin["candidates"] if isinstance(pin["candidates"], list) else []:
            if other not in pin["legal"] and other != value:
                out = copy.deepcopy(m)
                out["tuple"][name] = other
                next(p for p in out["pins"] if p["name"] == name)["default"] = other
                yield "relation: tuple that is not legal", f"{name} {other}", out


def _axes(m: dict[str, Any]) -> dict[str, list[Any]]:
    out = {p["name"]: [*_listed(p), *p["offered"]] for p in m["pins"] if not p["free"]}
    return out | {k["name"]: k["choices"] for k in m["knobs"]}


def _listed(pin: dict[str, Any]) -> list[Any]:
    if isinstance(pin["candidates"], list):
        return pin["candidates"]
    low, high, step = pin["candidates"]["range"]
    return list(range(low, high + 1, step))


def _absent(m: dict[str, Any], factor: dict[str, Any]) -> list[list[Any]]:
    axes = _axes(m)
    names = factor["parameters"]
    rows: list[list[Any]] = [[]]
    for name in names:
        rows = [[*row, v] for row in rows for v in axes.get(name, [])]
    return [row for row in rows if row not in factor["rows"]][:2]


def _counted(out: dict[str, Any]) -> dict[str, Any]:
    """Counts, rows and projections that follow from the factors."""
    axes = _axes(out)
    names = [p["name"] for p in out["pins"] if not p["free"]] + [k["name"] for k in out["knobs"]]
    rows: list[list[Any]] = [[]]
    for name in names:
        rows = [[*row, v] for row in rows for v in axes.get(name, [])][:200_000]
    kept = [
        row
        for row in rows
        if all([row[names.index(n)] for n in f["parameters"]] in f["rows"] for f in out["factors"])
    ]
    out["legal"]["legal"] = len(kept)
    if out["relation"] is not None:
        out["relation"] = kept if len(kept) <= 4096 else None
    for pin in out["pins"]:
        if not pin["free"]:
            place = names.index(pin["name"])
            left = [row[place] for row in kept]
            pin["legal"] = [v for v in axes[pin["name"]] if v in left]
    return out


def _inputs(m: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for k, entry in enumerate(m["inputs"]):
        if "range" in entry:
            out = copy.deepcopy(m)
            out["inputs"][k]["range"][1] += 1
            yield "inputs: domain in the list", entry["name"], out
        out = copy.deepcopy(m)
        out["inputs"][k]["kind"] = "request" if entry["kind"] != "request" else "runtime"
        if entry["name"] in {
            ln.split(" ")[1].rstrip(":")
            for ln in m["graph0"].split("\n")
            if ln.startswith("input ")
        }:
            yield "inputs: kind in the list", entry["name"], out
    for graph in ("graph0", "graph"):
        lines = m[graph].split("\n")
        for i, line in enumerate(lines):
            found = re.match(r"input (.*): (runtime|unpinnable|request) (\d+)\.\.(\d+)(.*)$", line)
            if found is None:
                continue
            name, kind, low, high, step = found.groups()
            other = "request" if kind != "request" else "runtime"
            for changed in (
                f"input {name}: {kind} {low}..{int(high) + 1}{step}",
                f"input {name}: {other} {low}..{high}{step}",
            ):
                new = [*lines]
                new[i] = changed
                yield f"{graph}: input", line, _text(m, graph, new)


def _shown(m: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Calls that are shown for something: witnesses of candidates, counterexamples, examples."""
    for name, calls in m["witnesses"].items():
        for k in range(len(calls)):
            out = copy.deepcopy(m)
            out["witnesses"][name][k] = None
            yield "calls: witness gone", name, out
    for k, guard in enumerate(m["guards"]):
        out = copy.deepcopy(m)
        out["guards"][k]["text"] += " "
        yield "guards: text", guard["text"], out
        out = copy.deepcopy(m)
        out["guards"][k]["kind"] = "assume" if guard["kind"] == "require" else "require"
        yield "guards: kind", guard["text"], out


def _points(m: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    other = {"bits": "neutral", "neutral": "bits", "aux": "bits"}
    for k, point in enumerate(m["points"]):
        out = copy.deepcopy(m)
        out["points"][k]["role"] = other[point["role"]]
        yield "points: role in the list", point["name"], out
        if point.get("decided") is not False:
            out = copy.deepcopy(m)
            out["points"][k]["batch_dependent"] = not point["batch_dependent"]
            yield "points: dependence", point["name"], out
    for entry in ("pins", "free"):
        out = copy.deepcopy(m)
        out["cut"][entry].append("nowhere.x")
        yield "cut: another name", entry, out
    out = copy.deepcopy(m)
    out["scope"] = "request" if m["scope"] == "launch" else "launch"
    yield "scope", m["scope"], out
