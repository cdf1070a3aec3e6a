"""The emitted package, native and fallback, against R: run in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from selc.check.decide import Judge
from selc.check.findings import Finding, shown
from selc.check.grid import at
from selc.check.readings import Readings
from selc.check.relation import Relation
from selc.check.values import UNDEF, WIDE, frozen, plain

CALLS: Final = 512
SECONDS: Final = 120

AGGREGATES: Final[Mapping[str, Callable[[list[int]], Any]]] = {
    "len": len,
    "min": min,
    "max": max,
    "sum": sum,
    "any": any,
    "all": all,
}

_PROGRAM: Final = """
import importlib.util, json, sys
from pathlib import Path
folder, calls = Path(sys.argv[1]), json.load(sys.stdin)
spec = importlib.util.spec_from_file_location(
    "checked_selector", folder / "__init__.py", submodule_search_locations=[str(folder)]
)
package = importlib.util.module_from_spec(spec)
sys.modules["checked_selector"] = package
spec.loader.exec_module(package)
def fixed(v):
    return tuple(map(fixed, v)) if isinstance(v, list) else v
def jsonable(v):
    if isinstance(v, (tuple, list)):
        return [jsonable(x) for x in v]
    if isinstance(v, float) and (v != v or v in (float("inf"), float("-inf"))):
        return repr(v)
    return v if v is None or isinstance(v, (bool, int, float, str)) else str(v)
def asked(select):
    out = []
    for call in calls:
        try:
            choice = select(**{k: fixed(v) for k, v in call.items()})
        except package.SelectionError:
            out.append(None)
        else:
            out.append({k: jsonable(v) for k, v in package.points(choice).items()})
    return out
answer = {"native": package.NATIVE, "pinned": asked(package.select)}
answer["unpinned"] = asked(package.select_unpinned)
print(json.dumps(answer))
"""


def agrees(
    readings: Readings,
    relation: Relation,
    judge: Judge,
    manifest: Mapping[str, Any],
    directory: Path,
) -> list[Finding]:
    """What native code and fallback select under the tuple in force is what R says."""
    if manifest["tuple"] is None:
        return [Finding("package", "skipped", "there is no tuple to select under")]
    chosen = _chosen(relation, manifest)
    calls, environments = _calls(readings, judge, manifest, chosen)
    wanted = _expected(readings, judge, environments)
    real = _unpinned(readings, environments)
    found = []
    for name, setting in (("native", None), ("fallback", "1")):
        answer = _run(directory, calls, setting)
        if isinstance(answer, str):
            found.append(Finding(name, "failed", answer))
        elif name == "native" and answer["native"] is not manifest["native"]["available"]:
            found.append(Finding(name, "skipped", "the native module does not load here"))
        elif name == "native" and not answer["native"]:
            found.append(Finding(name, "skipped", "built without a native module"))
        else:
            found.append(_compared(name, "R", calls, answer["pinned"], wanted))
            if name == "fallback":
                found.append(_compared("unpinned", "G0", calls, answer["unpinned"], real))
    return found


def _chosen(relation: Relation, manifest: Mapping[str, Any]) -> dict[str, Any]:
    values = {k["name"]: k["setting"] for k in manifest["knobs"]}
    values.update({relation.parameter(n): v for n, v in manifest["tuple"].items()})
    row = relation.row(relation.names, [values[n] for n in relation.names])
    return relation.values(relation.names, row)


def _calls(
    readings: Readings, judge: Judge, manifest: Mapping[str, Any], chosen: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Calls as JSON, and what the graphs read of them."""
    leaves = readings.g0.leaves
    idle = {e["name"]: e["example"] for e in manifest["inputs"] if e["name"] not in leaves}
    sequences = [e for e in manifest["inputs"] if e["type"] == "sequence"]
    names = [e["name"] for e in manifest["inputs"]]
    calls, environments = [], []
    for drawn in judge.calls(CALLS):
        environment = {**drawn, **chosen}
        call = {n: plain(environment[n]) if n in leaves else idle[n] for n in names}
        for entry in sequences:
            values = [int(v) for v in entry["example"]]
            call[entry["name"]] = values
            for part in entry["aggregates"]:
                environment[part["name"]] = AGGREGATES[part["function"]](values)
        calls.append(call)
        environments.append(environment)
    return calls, environments


def _expected(
    readings: Readings, judge: Judge, environments: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any] | None]:
    dag, r = readings.dag, readings.r
    guards = [dag.true(readings.in_r(n)) for g in r.guards for n in g.nodes.values()]
    points = {n: readings.in_r(p.node) for n, p in r.points.items()}
    return _rows(readings, dag.both([*judge.premises, *guards]), points, environments)


def _unpinned(
    readings: Readings, environments: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any] | None]:
    """What G0 takes as it is, under its own guards."""
    guards = [
        readings.holds(readings.real(g.nodes["path"]), readings.real(g.nodes["cond"]))
        for g in readings.g0.guards
    ]
    points = {n: readings.real(p.node) for n, p in readings.g0.points.items()}
    return _rows(readings, readings.dag.both(guards), points, environments)


def _rows(
    readings: Readings,
    accepted: int,
    points: Mapping[str, int],
    environments: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any] | None]:
    dag = readings.dag
    fine = at(dag, accepted, environments)
    returned = {n: node for n, node in points.items() if n not in readings.g0.classes}
    columns = {n: at(dag, node, environments) for n, node in returned.items()}
    out: list[dict[str, Any] | None] = []
    for k, ok in enumerate(fine):
        row = {n: column[k] for n, column in columns.items()}
        bad = any(v is UNDEF or v is WIDE for v in row.values())
        out.append({n: plain(v) for n, v in row.items()} if ok is True and not bad else None)
    return out


def _run(directory: Path, calls: Sequence[Mapping[str, Any]], setting: str | None) -> Any:
    environment = {k: v for k, v in os.environ.items() if k != "SELC_NO_NATIVE"}
    if setting is not None:
        environment["SELC_NO_NATIVE"] = setting
    command = [sys.executable, "-I", "-B", "-c", _PROGRAM, str(directory.resolve())]
    try:
        done = subprocess.run(  # our own interpreter on the folder that is checked
            command,
            input=json.dumps(calls),
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {SECONDS} s"
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return f"the package does not run: {last[0]}"
    return json.loads(done.stdout)


def _compared(
    name: str,
    graph: str,
    calls: Sequence[Mapping[str, Any]],
    have: Sequence[Mapping[str, Any] | None],
    wanted: Sequence[Mapping[str, Any] | None],
) -> Finding:
    for call, mine, other in zip(calls, have, wanted, strict=True):
        if (mine is None) != (other is None):
            says = "refuses" if mine is None else "accepts"
            return Finding(name, "failed", f"it {says} {shown(call)}, {graph} does not")
        if mine is None or other is None:
            continue
        for point, value in other.items():
            if frozen(mine.get(point)) != frozen(value):
                detail = f"{point} is {mine.get(point)!r} for {shown(call)}, in {graph} {value!r}"
                return Finding(name, "failed", detail)
    refused = sum(w is None for w in wanted)
    detail = f"selects what {graph} says on {len(calls)} calls ({refused} of them refused)"
    return Finding(name, "sampled", detail)
