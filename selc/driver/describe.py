"""What was decided, as the JSON object of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from selc.diag.spelling import arguments
from selc.ir.value import kind_of, to_json

if TYPE_CHECKING:
    from selc.diag.span import Span
    from selc.driver.pipeline import Decided
    from selc.ir.graph import Graph, Node
    from selc.ir.program import Guard
    from selc.ir.residual import Candidates, Pin
    from selc.ir.value import Value
    from selc.vra.verdict import Counterexample, Evidence

FORMAT = 1


def location(span: Span) -> dict[str, Any]:
    """A place as JSON; columns from 1."""
    return {"path": span.path, "line": span.line, "column": span.column}


def knob_order(decided: Decided) -> list[str]:
    """The free knobs: those of the facts' inputs in their order, then the others."""
    stated = [k for k in decided.facts.inputs if k in decided.residual.knobs]
    return stated + sorted(k for k in decided.residual.knobs if k not in stated)


def columns(decided: Decided) -> list[int]:
    """Where the contract's columns (pins by name, knobs as declared) stand in the relation."""
    names = decided.legality.parameters
    wanted = [*[n for n in names if n not in decided.residual.knobs], *knob_order(decided)]
    return [names.index(n) for n in wanted]


def pins_in_order(decided: Decided) -> list[Pin]:
    """Non-free pins by name, then free ones by name."""
    return sorted(decided.residual.pins, key=lambda p: (p.free, p.name))


def fixed_points(decided: Decided, pin: Pin) -> list[str]:
    """The points that read the pinned site."""
    if pin.parameter is not None:
        graph = decided.residual.graph
        leaf = [n for n in graph.nodes if n.attr == pin.parameter and n.op.value == "input"]
        reached = _below(graph, leaf)
        return [p.name for p, n in decided.residual.points if n.id in reached]
    program = decided.program
    reached = _below(program.graph, [m.node for m in pin.site.marks])
    return [p.name for p in program.points if p.node.id in reached]


def _below(graph: Graph, nodes: Iterable[Node]) -> set[int]:
    reached = {n.id for n in nodes}
    for node in graph.nodes:
        if any(a.id in reached for a in node.args):
            reached.add(node.id)
    return reached


def type_of(values: Sequence[Value]) -> str:
    """The type of a pin's values, as Python writes it."""
    kinds = {{"none": "None", "symbol": "str"}.get(k, k) for k in map(kind_of, values)}
    return " | ".join(sorted(kinds, key=lambda k: (k == "None", k))) or "int"


def candidates_json(found: Candidates) -> object:
    """A list, or a range that says whether it is exact."""
    if found.values is not None:
        return [to_json(v) for v in found.values]
    return {"range": list(found.span) if found.span is not None else None, "exact": found.exact}


def legal_values(decided: Decided, pin: Pin) -> tuple[Value, ...]:
    """The projection of the legal relation on a pin."""
    if pin.parameter is None:
        return ()
    return decided.legality.projections[decided.legality.parameters.index(pin.parameter)]


def counterexample(decided: Decided, found: Counterexample | None) -> dict[str, Any] | None:
    """An input that breaks a guard, with the call to paste."""
    if found is None:
        return None
    names = {p.parameter: p.name for p in decided.residual.pins if p.parameter}
    inputs = {k: to_json(v) for k, v in found.inputs.items()}
    return {
        "parameters": {names.get(k, k): to_json(v) for k, v in found.parameters.items()},
        "inputs": inputs,
        "reading": found.reading,
        "call": f"{decided.program.function}({arguments(inputs)})",
    }


def points_json(decided: Decided) -> list[dict[str, Any]]:
    """Every selection point."""
    fixes = {p.name: fixed_points(decided, p) for p in pins_in_order(decided)}
    out: list[dict[str, Any]] = []
    for point in decided.program.points:
        found = decided.dependence[point.name]
        entry: dict[str, Any] = {
            "name": point.name,
            "role": point.role,
            "batch_dependent": found.batch_dependent,
            "depends_on": list(found.depends_on),
            "pinned_by": [name for name, points in fixes.items() if point.name in points],
        }
        if not found.decided:
            entry["decided"] = False
        for cls in decided.program.classes:
            if point.name == cls.name:
                entry["fields"] = list(cls.fields)
            elif point.name in cls.fields:
                entry["class"] = cls.name
        out.append(entry)
    return out


def pins_json(decided: Decided) -> list[dict[str, Any]]:
    """Every pin, free ones last."""
    out: list[dict[str, Any]] = []
    for pin in pins_in_order(decided):
        default: object = to_json(pin.constant)
        if not pin.free and pin.parameter is not None:
            default = to_json(decided.default.values[pin.parameter]) if decided.default else None
        known = pin.candidates.values or ()
        entry: dict[str, Any] = {
            "name": pin.name,
            "type": type_of(known + pin.offered),
            "candidates": candidates_json(pin.candidates),
            "offered": [to_json(v) for v in pin.offered],
            "legal": [default] if pin.free else [to_json(v) for v in legal_values(decided, pin)],
            "default": default,
            "free": pin.free,
            "location": location(pin.site.span),
            "fixes": fixed_points(decided, pin),
        }
        if pin.free:
            entry["evidence"] = "proved"
            entry["proof"] = pin.proof
            if pin.at is not None:
                entry["default"], entry["legal"] = None, []
                entry["at"] = {k: to_json(v) for k, v in pin.at.items()}
        else:
            entry["evidence"] = evidence_of(decided, pin)
            entry["exact"] = pin.candidates.exact
        out.append(entry)
    return out


def evidence_of(decided: Decided, pin: Pin) -> str:
    """The weakest evidence among the guards that read a pin."""
    from selc.vra.verdict import weakest

    out: Evidence = "proved"
    for verdict in decided.legality.guards:
        if pin.parameter in verdict.parameters:
            out = weakest(out, verdict.evidence)
    return out


def setting_of(decided: Decided, knob: str) -> Value:
    """The setting of a free knob that is in force; its initial one where nothing is legal."""
    committed = decided.committed
    return committed[knob] if committed is not None else decided.program.settings.get(knob)


def knobs_json(decided: Decided) -> list[dict[str, Any]]:
    """Every free knob with its setting."""
    out: list[dict[str, Any]] = []
    for name in knob_order(decided):
        domain = decided.program.graph.inputs[name].domain
        setting = setting_of(decided, name)
        out.append(
            {"name": name, "choices": [to_json(v) for v in domain], "setting": to_json(setting)}
        )
    return out


def guards_json(decided: Decided) -> list[dict[str, Any]]:
    """Every guard with its evidence; assumes are promises and say `assumed`."""
    verdicts = {v.index: v for v in decided.legality.guards}
    out: list[dict[str, Any]] = []
    for index, each in enumerate(decided.residual.guards):
        verdict = verdicts[index]
        entry = _guard(each.guard) | {
            "evidence": verdict.evidence,
            "counterexample": counterexample(decided, verdict.counterexample),
        }
        if each.unseen:
            entry["unseen"] = True
        if verdict.budget:
            entry["budget"] = verdict.budget
        if verdict.points:
            entry["points"] = verdict.points
        out.append(entry)
    for guard, _ in decided.residual.assumes:
        out.append(_guard(guard) | {"evidence": "assumed", "counterexample": None})
    return out


def _guard(guard: Guard) -> dict[str, Any]:
    return {
        "kind": guard.kind,
        "text": guard.text,
        "why": guard.why,
        "location": location(guard.span),
    }


def relation_json(decided: Decided) -> list[list[Any]] | None:
    """The legal assignments, columns as the contract orders them."""
    rows = decided.legality.relation
    if rows is None:
        return None
    order = columns(decided)
    return [[to_json(row[i]) for i in order] for row in rows]


def tuple_json(decided: Decided) -> dict[str, Any] | None:
    """The tuple in force, over the non-free pins."""
    committed = decided.committed
    if committed is None:
        return None
    pins = {p.parameter: p.name for p in decided.residual.pins if p.parameter is not None}
    return {pins[k]: to_json(v) for k, v in sorted(committed.items()) if k in pins}


def assumptions(decided: Decided) -> list[str]:
    """What has to be true outside the proof."""
    out = list(decided.program.assumptions)
    out.extend(
        f"assume: {g.text}" + (f" ({g.why})" if g.why else "") for g, _ in decided.residual.assumes
    )
    return out


def answer(decided: Decided) -> dict[str, Any]:
    """The JSON object of `selc compile`, without diagnostics, artifacts, cache and timings."""
    from selc import __version__

    program, legality = decided.program, decided.legality
    points = points_json(decided)
    moving = [p for p in points if p["role"] == "bits" and p["batch_dependent"]]
    return {
        "format": FORMAT,
        "selc": __version__,
        "target": program.target,
        "function": program.function,
        "family": program.family,
        "scope": program.scope,
        "assumptions": assumptions(decided),
        "graph": {
            "values": len(decided.residual.graph.nodes),
            "inputs": len([i for i in program.graph.inputs.values() if i.kind != "knob"]),
            "selection_points": len(points),
            "batch_dependent_points": len(moving),
        },
        "points": points,
        "aux_by_default": list(program.aux_by_default),
        "pins": pins_json(decided),
        "knobs": knobs_json(decided),
        "legal": {
            "assignments": legality.assignments,
            "legal": legality.legal,
            "evidence": legality.evidence,
            "relation": relation_json(decided) if legality.legal else [],
            "witnessed": decided.default.witnessed if decided.default else False,
        },
        "guards": guards_json(decided),
        "tuple": tuple_json(decided),
    }
