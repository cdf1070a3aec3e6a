"""`selc check --against-source`: the source, compiled again, and run under CPython.

This is the only command that runs code of the user.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from selc.check.findings import Finding

if TYPE_CHECKING:
    from selc.driver.pipeline import Decided
    from selc.frontend.facts.model import Facts

CALLS: Final = 512
SECONDS: Final = 120


def source(manifest: Mapping[str, Any]) -> list[Finding]:
    """The source gives the same graphs and hash, and does what G0 does."""
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
        plan["solver_budget"],
    )
    try:
        decided = decide(again, None, Sink(), Clock())
    except Refused as refused:
        return [*found, Finding("source", "failed", f"no longer compiles: {refused}")]
    fresh = made(decided, describe.answer(decided), again)
    parts = [k for k in ("graph0", "graph", "factors", "points") if fresh[k] != manifest[k]]
    if parts:
        found.append(Finding("source", "failed", f"gives other {', '.join(parts)}"))
    else:
        good = hash_of(specification(decided, fresh, {})) == manifest["hash"]
        detail = "gives the same graphs, relation and hash" if good else "gives another hash"
        found.append(Finding("source", "ok" if good else "failed", detail))
    return [*found, original(manifest, decided, again.facts)]


def original(manifest: Mapping[str, Any], decided: Decided, files: tuple[Path, ...]) -> Finding:
    """The function under CPython against the manifest's G0, on calls drawn by the checker."""
    from selc.check.certificate import read
    from selc.check.decide import Judge
    from selc.check.examine import seeds
    from selc.check.readings import Readings
    from selc.diag.diagnostic import Sink
    from selc.frontend.facts import load_facts

    facts = load_facts(list(files), Sink())
    reason = _unlike(facts, decided)
    if reason:
        return Finding("original", "skipped", reason)
    readings = Readings(read(manifest["graph0"]), read(manifest["graph"]))
    admits = [readings.dag.true(readings.in_r(g.nodes["real"])) for g in readings.r.assumes]
    calls = Judge(readings.dag, admits, seeds(manifest, readings)).admitted(CALLS)
    answers = _run(decided, facts, calls)
    if isinstance(answers, str):
        return Finding("original", "skipped", answers)
    return _compared(readings, calls, answers)


def _unlike(facts: Facts, decided: Decided) -> str:
    """Why the function cannot be called as it stands."""
    for section in ("functions", "objects", "globals", "tensors", "files", "env"):
        if getattr(facts, section):
            return f"`{section}:` facts stand for code that a call would run"
    if decided.program.sequences:
        return "the function reads sequences, and the graphs what is read of them"
    return ""


def _run(decided: Decided, facts: Facts, calls: list[dict[str, Any]]) -> list[Any] | str:
    from selc.check import original as script

    program = decided.program
    known = {**facts.facts, **facts.tables, **program.settings}
    inputs = [{program.parameters.get(n, n): v for n, v in call.items()} for call in calls]
    request = {
        "path": str(Path(program.path).resolve()),
        "function": program.function,
        "known": known,
        "calls": inputs,
    }
    text = repr(request)
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return "a fact is no plain value"
    paths = os.pathsep.join(p for p in sys.path if p)
    try:
        done = subprocess.run(
            [sys.executable, "-B", str(script.__file__)],
            input=text,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the function gave no answer within {SECONDS} s"
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return f"the function cannot be called: {last}"
    found: list[Any] = ast.literal_eval(done.stdout)
    return found


def _compared(readings: Any, calls: list[dict[str, Any]], answers: list[Any]) -> Finding:
    from selc.check.findings import shown
    from selc.check.grid import at
    from selc.check.values import key

    dag, g0 = readings.dag, readings.g0
    holds = [
        readings.holds(readings.real(g.nodes["path"]), readings.real(g.nodes["cond"]))
        for g in g0.guards
        if g.kind == "require" and g.origin not in ("facts", "class")  # those are not in the source
    ]
    returned = at(dag, dag.both(holds), calls)
    returned_points = {n: p.node for n, p in g0.points.items() if n not in g0.classes}
    columns = {n: at(dag, readings.real(node), calls) for n, node in returned_points.items()}
    compared = 0
    for k, answer in enumerate(answers):
        if isinstance(answer, str) is (returned[k] is True):
            what = f"raises {answer}" if isinstance(answer, str) else "returns"
            detail = f"the function {what} for {shown(calls[k])}, and G0 does not"
            return Finding("original", "failed", detail)
        if isinstance(answer, str):
            continue
        compared += 1
        for name, column in columns.items():
            if name not in answer or key(answer[name]) != key(column[k]):
                detail = (
                    f"{name} differs for {shown(calls[k])}: {answer.get(name)!r}, {column[k]!r}"
                )
                return Finding("original", "failed", detail)
    detail = f"CPython gives what G0 gives on {len(calls)} calls ({compared} of them returned)"
    return Finding("original", "sampled", detail)
