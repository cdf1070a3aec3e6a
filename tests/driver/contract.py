"""The JSON object of `selc compile`, field by field: names, types, order, agreement.

`problems` lists every departure; it knows the form of exit 0, 1 and 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

KEYS = [
    *("format", "selc", "target", "function", "family", "scope", "assumptions", "graph"),
    *("points", "aux_by_default", "pins", "knobs", "legal", "guards", "tuple", "diagnostics"),
    *("artifacts", "cache", "timings_ms"),
]
EVIDENCE = ("proved", "exhaustive", "sampled", "refuted", "unknown")
STAGES = ["frontend", "passes", "cut", "vra", "codegen", "total"]
PLACE = {"path": (str, type(None)), "line": (int, type(None)), "column": (int, type(None))}
DIAGNOSTIC = {"code": str, "severity": str, "message": str, **PLACE}
ERROR = {k: v for k, v in DIAGNOSTIC.items() if k != "severity"}
LOCATION = {"path": str, "line": int, "column": int}
POINT = {"name": str, "role": str, "batch_dependent": bool, "depends_on": list, "pinned_by": list}
PIN = {"name": str, "type": str, "candidates": (list, dict), "offered": list, "legal": list}
PIN |= {"default": object, "free": bool, "location": dict, "fixes": list, "evidence": str}
KNOB = {"name": str, "choices": list, "setting": object}
LEGAL = {"assignments": int, "legal": int, "evidence": str, "relation": (list, type(None)),
         "witnessed": bool}  # fmt: skip
GUARD = {"kind": str, "text": str, "why": str, "location": dict, "evidence": str,
         "counterexample": (dict, type(None))}  # fmt: skip
GRAPH = {"values": int, "inputs": int, "selection_points": int, "batch_dependent_points": int}
ARTIFACTS = {"dir": str, "module": (str, type(None)), "native": (str, type(None)),
             "header": (str, type(None)), "manifest": (str, type(None))}  # fmt: skip
OPTIONAL: dict[str, dict[str, Any]] = {
    "point": {"decided": bool, "fields": list, "class": str},
    "pin": {"proof": str, "at": dict, "exact": bool},
    "guard": {"unseen": bool, "budget": str, "points": int},
}


def problems(answer: dict[str, Any], exit_code: int) -> list[str]:
    """What is wrong with an answer."""
    return list(_errors(answer) if exit_code == 2 else _answer(answer, exit_code))


def _errors(answer: dict[str, Any]) -> Iterator[str]:
    if list(answer) != ["format", "errors"] or answer["format"] != 1:
        yield f"an error object has format and errors, not {list(answer)}"
        return
    if not answer["errors"]:
        yield "there is no error"
    for error in answer["errors"]:
        yield from _record("error", error, ERROR)


def _answer(answer: dict[str, Any], exit_code: int) -> Iterator[str]:
    if list(answer) != KEYS:
        yield f"the keys are {list(answer)}"
        return
    if answer["format"] != 1 or answer["scope"] not in ("request", "launch"):
        yield "format or scope"
    if not all(isinstance(a, str) for a in [*answer["assumptions"], *answer["aux_by_default"]]):
        yield "assumptions and aux_by_default are texts"
    yield from _record("graph", answer["graph"], GRAPH)
    for point in answer["points"]:
        yield from _record("point", point, POINT)
    for pin in answer["pins"]:
        yield from _pin(pin)
    for knob in answer["knobs"]:
        yield from _record("knob", knob, KNOB)
        if exit_code == 0 and knob["setting"] not in knob["choices"]:
            yield f"{knob['name']} is set to none of its choices"
    for guard in answer["guards"]:
        yield from _guard(guard)
    for diagnostic in answer["diagnostics"]:
        yield from _record("diagnostic", diagnostic, DIAGNOSTIC)
    yield from _record("artifacts", answer["artifacts"], ARTIFACTS)
    if answer["cache"] not in ("hit", "miss"):
        yield f"cache is {answer['cache']!r}"
    times = answer["timings_ms"]
    if list(times) != STAGES or not all(isinstance(v, (int, float)) for v in times.values()):
        yield f"timings are {times}"
    yield from _consistent(answer)
    yield from _relation(answer)
    if exit_code == 1 and not any(d["severity"] == "error" for d in answer["diagnostics"]):
        yield "exit 1 without a reason among the diagnostics"
    if (exit_code == 0) != (answer["artifacts"]["module"] is not None):
        yield "a module exactly where the answer is yes"


def _record(what: str, value: Any, fields: dict[str, Any]) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"a {what} is {value!r}"
        return
    optional = OPTIONAL.get(what, {})
    for name, kind in fields.items():
        if name not in value:
            yield f"a {what} lacks {name}: {value}"
        elif kind is int and isinstance(value[name], bool):
            yield f"{what}.{name} is a bool"
        elif not isinstance(value[name], kind):
            yield f"{what}.{name} is {value[name]!r}"
    for name in value.keys() - fields.keys():
        if name not in optional or not isinstance(value[name], optional[name]):
            yield f"a {what} has {name}"


def _pin(pin: dict[str, Any]) -> Iterator[str]:
    yield from _record("pin", pin, PIN)
    yield from _record("location", pin["location"], LOCATION)
    if pin["evidence"] not in EVIDENCE:
        yield f"evidence {pin['evidence']}"
    found = pin["candidates"]
    if isinstance(found, dict):
        if list(found) != ["range", "exact"] or len(found["range"] or [0, 0, 0]) != 3:
            yield f"{pin['name']}: candidates {found}"
    elif not pin["free"] and any(v not in found + pin["offered"] for v in pin["legal"]):
        yield f"{pin['name']}: a legal value that is neither candidate nor offered"


def _guard(guard: dict[str, Any]) -> Iterator[str]:
    yield from _record("guard", guard, GUARD)
    yield from _record("location", guard["location"], LOCATION)
    wanted = (*EVIDENCE, "assumed") if guard["kind"] == "assume" else EVIDENCE
    if guard["kind"] not in ("require", "assume") or guard["evidence"] not in wanted:
        yield f"guard {guard['kind']} {guard['evidence']}"
    found = guard["counterexample"]
    if found is not None and list(found) != ["parameters", "inputs", "reading", "call"]:
        yield f"counterexample {found}"


def _consistent(answer: dict[str, Any]) -> Iterator[str]:
    points, graph = answer["points"], answer["graph"]
    names = [p["name"] for p in points]
    pins = [p["name"] for p in answer["pins"]]
    if len(set(names)) != len(names) or len(set(pins)) != len(pins):
        yield "a name occurs twice"
    if graph["selection_points"] != len(points):
        yield "selection_points does not count the points"
    moving = [p for p in points if p["role"] == "bits" and p["batch_dependent"]]
    if graph["batch_dependent_points"] != len(moving):
        yield "batch_dependent_points does not count the bits points that move"
    for point in points:
        if point["role"] not in ("bits", "neutral", "aux"):
            yield f"role {point['role']}"
        if point["batch_dependent"] and not point["depends_on"]:
            yield f"{point['name']} moves with nothing"
        if set(point["pinned_by"]) - set(pins):
            yield f"{point['name']} is pinned by what is no pin"
        for pin in answer["pins"]:
            if (point["name"] in pin["fixes"]) != (pin["name"] in point["pinned_by"]):
                yield f"{pin['name']} and {point['name']} disagree"
    free = [p["free"] for p in answer["pins"]]
    if free != sorted(free):
        yield "free pins come last"


def _relation(answer: dict[str, Any]) -> Iterator[str]:
    legal = answer["legal"]
    yield from _record("legal", legal, LEGAL)
    if legal["evidence"] not in EVIDENCE:
        yield f"evidence {legal['evidence']}"
    pins = [p for p in answer["pins"] if not p["free"]]
    width = len(pins) + len(answer["knobs"])
    rows = legal["relation"]
    if (rows is None) != (legal["legal"] > 4096):
        yield "the relation is left out above 4,096 rows, and only there"
    if rows is not None and (len(rows) != legal["legal"] or any(len(r) != width for r in rows)):
        yield "the relation has as many rows as there are legal assignments, a column for each pin"
    if legal["legal"] == 0 and answer["tuple"] is not None:
        yield "a tuple where nothing is legal"
    if answer["tuple"] is not None:
        if list(answer["tuple"]) != [p["name"] for p in pins]:
            yield f"the tuple is {answer['tuple']}"
        row = [*answer["tuple"].values(), *[k["setting"] for k in answer["knobs"]]]
        if rows is not None and row not in rows:
            yield f"the tuple {row} is not in the relation"
    for column, pin in enumerate(pins):
        values = [r[column] for r in rows or []]
        if rows is not None and any(v not in values for v in pin["legal"]):
            yield f"{pin['name']}: legal is not the projection of the relation"
