"""The manifest: everything that a later check needs, apart from what code generation adds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from selc.driver.arguments import arguments, sequence_of
from selc.driver.cachekey import SOLVERS
from selc.driver.describe import location, type_of
from selc.ir.domain import Domain, Input
from selc.ir.value import to_json

if TYPE_CHECKING:
    from selc.driver.pipeline import Decided, Plan
    from selc.ir.bitclass import BitClass
    from selc.ir.program import SequenceInput


def inputs_json(decided: Decided) -> list[dict[str, Any]]:
    """The arguments with their domains; the examples together are one admitted call."""
    return [_argument(decided, each) for each in arguments(decided.program)]


def _argument(decided: Decided, each: Input | SequenceInput) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": each.name, "kind": each.kind}
    if isinstance(each, Input):
        entry |= _domain(each.domain)
        return entry | {"example": to_json(decided.example.get(each.name, each.domain[0]))}
    inputs = decided.program.graph.inputs
    entry["type"] = "sequence"
    entry["length"] = [each.length.lo, each.length.hi]
    entry["element"] = _domain(each.element)
    entry["aggregates"] = [
        {"name": leaf, "function": how} | _domain(inputs[leaf].domain)
        for how, leaf in each.aggregates.items()
    ]
    read = {how: decided.example[n] for how, n in each.aggregates.items() if n in decided.example}
    return entry | {"example": sequence_of(each, read)}


def _domain(domain: Domain) -> dict[str, Any]:
    if domain.values is None:
        return {"type": "int", "range": [domain.lo, domain.hi], "multiple_of": domain.step}
    return {"type": type_of(domain.values), "values": [to_json(v) for v in domain.values]}


def plan_json(plan: Plan) -> dict[str, Any]:
    """How to make the selector again, from the folder in which it was made."""
    return {
        "target": plan.target,
        "facts": [str(path) for path in plan.facts],
        "roots": [str(path) for path in plan.roots],
        "max_candidates": plan.max_candidates,
        "solver_budget": plan.solver_budget,
        "whole_rows": plan.whole_rows,
        "skip": sorted(plan.skip),
    }


def versions() -> dict[str, str]:
    """What an answer was made with."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from selc import __version__

    out = {"selc": __version__, "python": platform.python_version()}
    for package in SOLVERS:
        try:
            out[package] = version(package)
        except PackageNotFoundError:  # pragma: no cover  # installed with selc
            out[package] = "unknown"
    return out


def manifest(decided: Decided, answer: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    """The manifest; `answer` is the JSON object of the compilation."""
    from selc.ir.dump import dump_program, dump_residual
    from selc.vra.thresholds import thresholds

    program, legality = decided.program, decided.legality
    sides = thresholds(program, view=decided.view)
    out: dict[str, Any] = {k: v for k, v in answer.items() if k != "diagnostics"}
    out["legal"] = {k: v for k, v in answer["legal"].items() if k != "witnessed"}
    out["witnessed"] = answer["legal"]["witnessed"]
    out["summary"] = answer["graph"]
    out["inputs"] = inputs_json(decided)
    out["sites"] = [
        {"name": s.name, "kind": s.kind, "location": location(s.span)}
        for s in program.sites.values()
    ]
    out["graph0"] = dump_program(program)
    out["graph"] = dump_residual(decided.residual)
    out["cut"] = {
        "pins": [p["name"] for p in answer["pins"] if not p["free"]],
        "free": [p["name"] for p in answer["pins"] if p["free"]],
    }
    out["evidence"] = legality.evidence
    out["relation"] = answer["legal"]["relation"]
    out["factors"] = [
        {"parameters": list(f.parameters), "rows": _plain(f.rows)} for f in legality.factors
    ]
    out["witnesses"] = {
        pin.name: [_plain(pin.candidates.witness.get(i)) for i in range(len(listed))]
        for pin in decided.residual.pins
        if not pin.free and (listed := pin.candidates.values) is not None
    }
    out["thresholds"] = _plain(sides)
    if program.classes:
        out["classes"] = [_class(c) for c in program.classes]
    out["versions"] = versions()
    out["sources"] = {
        path: said
        for path, said in program.sources.items()
        if said != "absent" or not path.endswith(".py")
    }
    out["facts"] = _plain(program.facts)
    out["plan"] = plan_json(plan)
    return out


def _class(cls: BitClass) -> dict[str, Any]:
    bound = {k: v for k, v in cls.bound.items() if k not in ("classes", "file")}
    said = {e["name"]: e for e in cls.bound["classes"]}  # type: ignore[attr-defined]  # a list
    return {
        "name": cls.name,
        "fields": list(cls.fields),
        "given": {k: to_json(v) for k, v in cls.given},
        **_plain(bound),
        "classes": [
            {**_plain(said[name]), "members": [to_json(m) for n, m in cls.members if n == name]}
            for name in cls.names
        ],
    }


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return to_json(value)
