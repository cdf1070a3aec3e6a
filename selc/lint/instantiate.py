"""Summaries at calls: what parameters stand for is put in for them."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from selc.lint.index import Function
from selc.lint.model import Step
from selc.lint.session import Summary
from selc.lint.values import CLEAN, OPAQUE, Flow, Label, Taint, Val, merge

if TYPE_CHECKING:
    from selc.lint.state import State

_MOST_STEPS = 14
_DEPTH = 3


def bind(target: Function, arguments: list[Val], keywords: Mapping[str, Val]) -> dict[int, Val]:
    """Parameters by position, with what the call gives them."""
    parameters = target.parameters
    bound = dict(enumerate(arguments[: len(parameters)]))
    names = {each.arg: position for position, each in enumerate(parameters)}
    for name, value in keywords.items():
        if name in names:
            bound[names[name]] = value
    return bound


def hits_of_call(
    state: State, node: ast.Call, summary: Summary, bound: Mapping[int, Val], skip: set[int]
) -> None:
    """Choices in the callee that this call's arguments reach; `skip` were reported at the call."""
    if state.silent or state.offline:
        return
    where = state.at(node)
    told = {(hit.code, hit.place) for hit in summary.hits if hit.label[0] == "src"}
    for hit in summary.hits:
        if hit.label[0] == "src" or (hit.code, hit.place) in told or hit.label[1] in skip:
            continue
        for label, flow in _arrivals(hit.label, hit.flow, bound, where).items():
            made = hit._replace(label=label, flow=flow)
            known = state.summary.hits
            if len(known) > 200:
                return
            if not any(
                h.code == made.code
                and h.place == made.place
                and (h.label[0] == "src") == (label[0] == "src")
                and (label[0] == "src" or h.label == label)
                for h in known
            ):
                known.append(made)


def returned_by_call(
    state: State, node: ast.Call, target: Function, summary: Summary, bound: Mapping[int, Val]
) -> Val:
    """What the call gives back."""
    local = target.module is state.module or bool(state.names.kind(target.node.name))
    return _value(summary.returns, bound, state.at(node), local, _DEPTH)


def _value(value: Val, bound: Mapping[int, Val], where: Step, local: bool, depth: int) -> Val:
    items = fields = None
    if depth and value.items is not None:
        items = tuple(_value(each, bound, where, local, depth - 1) for each in value.items)
    if depth and value.fields is not None:
        fields = {
            name: _value(each, bound, where, local, depth - 1)
            for name, each in value.fields.items()
        }
    if not value.dirty and items is None and fields is None:
        return value
    return Val(
        _taint(value.taint, bound, where, local),
        rows=_taint(value.rows, bound, where, local),
        vec=_taint(value.vec, bound, where, local),
        shape=_taint(value.shape, bound, where, local),
        items=items,
        fields=fields,
        const=value.const,
        target=value.target,
        opaque=value.opaque,
        mode=value.mode,
    )


def _taint(taint: Taint, bound: Mapping[int, Val], where: Step, local: bool) -> Taint:
    out: Taint = CLEAN
    for label, flow in taint.items():
        if label[0] == "src":
            if local:
                out = merge(out, {label: flow})
        else:
            out = merge(out, _arrivals(label, flow, bound, where))
    return out


def _arrivals(label: Label, flow: Flow, bound: Mapping[int, Val], where: Step) -> dict[Label, Flow]:
    """The labels of an argument, on the way that a parameter's label took."""
    assert isinstance(label[1], int)
    value = bound.get(label[1], OPAQUE)
    taint = {"arg": value.taint, "shape": value.rows, "vec": value.vec or value.rows}[label[0]]
    out = {}
    for name, before in taint.items():
        middle = () if before.steps and before.steps[-1][:2] == where[:2] else (where,)
        steps = (*before.steps, *middle, *flow.steps)
        if len(steps) > _MOST_STEPS:
            steps = (*steps[: _MOST_STEPS // 2], *steps[-_MOST_STEPS // 2 :])
        out[name] = Flow(steps, before.threshold or flow.threshold, before.control or flow.control)
    return out
