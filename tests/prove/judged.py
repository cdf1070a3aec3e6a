"""What the brute-force judge is given: selections with their facts, read here without selc."""

from __future__ import annotations

import ast
import contextlib
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import yaml

from selc.driver.compile import run
from selc.driver.options import CompileOptions
from tests.prove.brute import Judge, Row, Source, Tally, exact, loaded
from tests.prove.observed import FAULTS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


@dataclass(frozen=True)
class Deployment:
    """A family of the examples with facts, and one layer more that makes its domain small."""

    family: str
    layers: str
    small: str
    function: str = ""


class Unjudged(Exception):
    """The judge does not find a site, or has no relation to compare with."""


def compiled(path: Path, facts: Sequence[Path], out: Path) -> Row:
    """The answer, with every row of the relation under `rows`."""
    emit = ("python",)
    outcome = run(CompileOptions(str(path), tuple(facts), out=out, emit=emit, native=False,
                                 use_cache=False, format="json"))  # fmt: skip
    if outcome.exit_code not in (0, 1):
        raise Unjudged([d.message for d in outcome.diagnostics])
    answer: Row = json.loads(json.dumps(outcome.json))
    manifest = json.loads((out / "manifest.json").read_text())
    answer["rows"] = list(rows_of(answer, manifest["factors"]))
    relation = answer["legal"]["relation"]
    if relation is not None and {exact(r) for r in relation} != {exact(r) for r in answer["rows"]}:
        raise Unjudged("the rows of the relation are not those of its factors")
    return answer


def rows_of(answer: Row, factors: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """The assignments that every factor allows."""
    pins = [p for p in answer["pins"] if not p["free"]]
    axes = {p["name"]: [*p["candidates"], *p["offered"]] for p in pins}
    axes |= {k["name"]: k["choices"] for k in answer["knobs"]}
    names = list(axes)
    kept = [
        ([names.index(n) for n in f["parameters"]], {exact(row) for row in f["rows"]})
        for f in factors
    ]
    for row in itertools.product(*axes.values()):
        if all(exact([row[i] for i in places]) in allowed for places, allowed in kept):
            yield list(row)


def merged(layers: Sequence[Path]) -> Row:
    """Facts files, the later over the earlier; tables are read."""
    out: Row = {}
    for path in layers:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        for name, file in (data.get("tables") or {}).items():
            table = json.loads((path.parent / file).read_text(encoding="utf-8"))
            data["facts"] = {**(data.get("facts") or {}), name: table}
        out = _over(out, data)
    return out


def _over(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {k: _over(old[k], new[k]) if k in old and k in new else {**old, **new}[k]
                for k in (*old, *(k for k in new if k not in old))}  # fmt: skip
    return new


def domain(spec: Mapping[str, Any]) -> list[Any]:
    """The values of an input."""
    if "values" in spec:
        return [loaded(v) for v in spec["values"]]
    if spec.get("type") == "bool":
        return [False, True]
    low, high = spec["range"]
    step = spec.get("multiple_of", 1)
    return [v for v in range(low, high + 1) if v % step == 0]


def judge_deployment(case: Deployment, folder: Path) -> tuple[Row, Tally]:
    """Compile a deployment with its small layer, and judge it."""
    small = folder / "small.yaml"
    small.write_text(case.small, encoding="utf-8")
    layers = [EXAMPLES / "facts" / f"{name}.yaml" for name in case.layers.split()] + [small]
    path = EXAMPLES / f"{case.family}.py"
    answer = compiled(path, layers, folder / "out")
    if str(EXAMPLES) not in sys.path:
        sys.path.insert(0, str(EXAMPLES))
    pins = [p["name"] for p in answer["pins"]]
    points = [p["name"] for p in answer["points"]]
    source = Source(path, case.function or answer["function"], pins, points)
    if source.unplaced:
        raise Unjudged(f"no place is found for {source.unplaced}")
    facts = merged(layers)
    fixed = {n: _argument(source, n, facts["facts"]) for n in source.parameters}
    fixed = {n: v for n, v in fixed.items() if v is not _MISSING}
    batch = source.names["Batch"]
    inputs = {f.name: domain(facts["inputs"][f.name]) for f in fields(batch)}
    names = source.names

    def arguments(call: Row) -> Row:
        return {**fixed, "batch": batch(**{n: call[n] for n in inputs})}

    @contextlib.contextmanager
    def setting(given: Row) -> Iterator[None]:
        from selc.lang import knobs

        with knobs(given):
            yield

    settings = [k["name"] for k in answer["knobs"]]

    def admitted(call: Row) -> bool:
        held, names["require"] = names.get("require"), lambda *_: None
        try:
            with setting({k: call[k] for k in settings}):
                source.run(arguments(call), {})
        except names["AssumeError"]:
            return False
        except FAULTS:
            return True
        finally:
            names["require"] = held
        return True

    from selc.lang import AssumeError

    names["AssumeError"] = AssumeError
    whole = {**inputs, **{k["name"]: list(map(loaded, k["choices"])) for k in answer["knobs"]}}
    every = [dict(zip(whole, row, strict=True)) for row in itertools.product(*whole.values())]
    calls = [c for c in every if admitted(c)]
    judge = Judge(source, calls, arguments, setting, lambda *_: True)
    with assumptions_aside(names):
        return answer, judge.judge(answer, answer["rows"])


@contextlib.contextmanager
def assumptions_aside(names: Row) -> Iterator[None]:
    """What is assumed of inputs is assumed of the unpinned source alone."""
    from selc.lang import checks

    files = [vars(m) for m in list(sys.modules.values()) if _is_example(m)]
    held = [m for m in (names, *files) if m.get("assume") is checks.assume]
    for module in held:
        module["assume"] = lambda *_: None
    try:
        yield
    finally:
        for module in held:
            module["assume"] = checks.assume


def _is_example(module: object) -> bool:
    return str(EXAMPLES) in str(getattr(module, "__file__", ""))


_MISSING = object()


def _argument(source: Source, name: str, facts: Mapping[str, Any]) -> Any:
    cls = source.names.get(str(source.call.__annotations__[name]))
    given = facts.get(name, _MISSING)
    if name != "batch" and isinstance(cls, type) and is_dataclass(cls):
        known = {f.name for f in fields(cls)}
        given = {} if given is _MISSING else given
        return cls(**{k: loaded(v) for k, v in given.items() if k in known})
    return given if given is _MISSING else loaded(given)


def judge_case(folder: Path, out: Path) -> tuple[Row, Tally]:
    """Compile a folder with a plain function and its facts, and judge it."""
    path, layer = folder / "selector.py", folder / "facts.yaml"
    answer = compiled(path, [layer], out)
    facts = merged([layer])
    said = facts["selection"]
    points = [p["name"] for p in answer["points"]]
    if any(p["free"] and p.get("at") for p in answer["pins"]):
        raise Unjudged("a free pin follows the request")
    inputs = {n: domain(spec) for n, spec in facts["inputs"].items()}
    known = {k: loaded(v) for k, v in (facts.get("facts") or {}).items()}
    every = [dict(zip(inputs, row, strict=True)) for row in itertools.product(*inputs.values())]
    calls = [c for c in every if _all(said.get("assume"), {**known, **c})]
    taken = _parameters(path, said["function"])
    runs = [{k: v for k, v in {**known, **c}.items() if k in taken} for c in calls]
    pins = [p["name"] for p in answer["pins"]]
    source = Source(path, said["function"], pins, points, runs)
    if source.unplaced:
        raise Unjudged(f"no place is found for {source.unplaced}")
    kinds = {n: spec["kind"] for n, spec in facts["inputs"].items()}
    own = {"request"} if said.get("scope", "request") == "request" else set()

    def arguments(call: Row) -> Row:
        return {k: v for k, v in {**known, **call}.items() if k in source.parameters}

    judge = Judge(
        source,
        calls,
        arguments,
        lambda given: contextlib.nullcontext(),
        lambda call, points: _all(
            said.get("require"), {**known, **call, "result": points.get("result", points)}
        ),
        [n for n, kind in kinds.items() if kind in own],
    )
    return answer, judge.judge(answer, answer["rows"])


def _parameters(path: Path, function: str) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    node = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function)
    return {a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}


def _all(guards: Sequence[str] | None, names: Row) -> bool:
    return all(eval(text, {}, dict(names)) for text in guards or ())
