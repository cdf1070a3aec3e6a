"""Choices: where a batch quantity is reported, and what the report says."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from selc.lint.session import Hit, place
from selc.lint.values import NOTHING, UNKNOWN, Label, Taint, Val, join, merge, only, step, tainted

if TYPE_CHECKING:
    from selc.lint.state import State

TIMED: Label = ("src", "measured time")
_MOST_HITS = 80
_COMPUTES = re.compile(r"_?(compute|calc|calculate|determine)_|.*_(plan|heuristics?)$")


def report(
    state: State,
    code: str,
    level: str,
    node: ast.expr | ast.stmt,
    taint: Taint,
    *,
    sink: str,
    what: str,
    role: str = "",
    help: str = "",
) -> None:
    """Record that labels reach a choice; one hit for the batch, one for each parameter."""
    if state.offline:
        taint = {label: flow for label, flow in taint.items() if label == TIMED}
    if state.silent or not taint:
        return
    hits = state.summary.hits
    where = place(state.module.shown, node)
    text = state.module.line(node.lineno)
    last = state.at(node)
    state.pending.pop(sink.rsplit(".", 1)[-1], None)
    sources = [label for label in taint if label[0] == "src"]
    sources.sort(
        key=lambda label: (
            not taint[label].threshold,
            taint[label].control,
            len(taint[label].steps),
        )
    )
    chosen = sources[:1] + [label for label in taint if label[0] != "src"]
    for label in chosen:
        if any(h.code == code and h.place == where and h.label == label for h in hits):
            continue
        if sum(h.label[0] != "src" for h in hits) > _MOST_HITS and label[0] != "src":
            continue
        flow = step({label: taint[label]}, last)[label]
        hits.append(
            Hit(
                code,
                level,
                where,
                state.function.qualname,
                label,
                flow,
                sink,
                role,
                what,
                help,
                text,
            )
        )


def check_field(
    state: State,
    node: ast.expr | ast.stmt,
    name: str,
    value: Val,
    callee: str,
    owner: str,
    launch: bool = False,
) -> None:
    """A field of a call, a record or a configuration."""
    taint = value.taint
    if not taint:
        return
    last = callee.rsplit(".", 1)[-1]
    role = state.names.role(name, last)
    what = f"`{name}` of {owner}"
    pin = state.names.pins.get(name, "")
    help_ = f"pin `{name}` to {pin}" if pin else ""
    if role == "harmful":
        report(state, "SEL101", "error", node, taint, sink=name, role=role, what=what, help=help_)
    elif role == "opaque":
        report(state, "SEL105", "warning", node, taint, sink=name, role=role, what=what)
    elif role == "neutral":
        report(state, "SEL109", "note", node, taint, sink=name, role=role, what=what)
    elif launch and not role and name.isupper() and _chosen(taint):
        report(state, "SEL101", "warning", node, taint, sink=name, role="constexpr", what=what)


def _chosen(taint: Taint) -> bool:
    """Whether a comparison or a branch lies on the way: sizes that pass through are no choice."""
    return any(flow.threshold or flow.control for flow in taint.values())


def check_store(
    state: State, name: str, value: Val, node: ast.stmt | ast.Call, lasting: bool = False
) -> None:
    """An assignment to a name or attribute that is a field by its name."""
    if state.silent:
        return
    taint = value.taint
    if lasting and (value.taint or (value.const is not UNKNOWN and value.const is not None)):
        taint = merge(taint, state.control)
    if not taint:
        return
    role = state.names.role(name)
    if role == "chunks":
        what = f"where a request is cut, `{name}`,"
        report(state, "SEL108", "warning", node, taint, sink=name, role="chunk", what=what)
    elif role == "harmful":
        if lasting or isinstance(node, ast.Call):
            check_field(state, node, name, tainted(NOTHING, taint), "", "what is stored")
        else:
            state.pending[name] = (node, taint)
    elif role == "opaque" and lasting:
        check_field(state, node, name, tainted(NOTHING, taint), "", "what is stored")


def check_switched(
    state: State,
    name: str,
    first: Val,
    second: Val,
    cause: Taint,
    body: Sequence[ast.stmt],
    orelse: Sequence[ast.stmt],
) -> None:
    """A variable that two arms leave different: a field, or a configuration with fields."""
    node = _assignment(body, name) or _assignment(orelse, name)
    if node is None or state.silent:
        return
    if state.names.role(name) == "harmful":
        state.pending[name] = (node, cause)
    if first.fields is None or second.fields is None:
        return
    for key in _differing(first, second):
        check_field(state, node, key, tainted(NOTHING, cause), "", f"`{name}`")


def _differing(first: Val, second: Val) -> list[str]:
    """Fields that are not known to be equal."""
    out = []
    ours, theirs = first.fields or {}, second.fields or {}
    for key in {**ours, **theirs}:
        one, other = ours.get(key), theirs.get(key)
        if one is None or other is None or not _equal(one, other):
            out.append(key)
    return out


def _equal(first: Val, second: Val) -> bool:
    """Whether two values are the same, or both unknown."""
    if first is second or (first.const is UNKNOWN and second.const is UNKNOWN):
        return True
    return type(first.const) is type(second.const) and bool(first.const == second.const)


def _assignment(body: Sequence[ast.stmt], name: str) -> ast.stmt | None:
    found: ast.stmt | None = None
    for each in body:
        for node in ast.walk(each):
            match node:
                case ast.Assign(targets=targets) if any(
                    isinstance(t, ast.Name) and t.id == name for t in targets
                ):
                    found = node
                case ast.AnnAssign(target=ast.Name(id=other)) if other == name:
                    found = node
                case _:
                    pass
    return found


def check_returns(state: State) -> Val:
    """What the function returns, and a report if it is named like a choice."""
    ways = [way for way in state.returned if way.node is not None]
    if not ways:
        return NOTHING
    texts = {ast.dump(way.node) for way in ways if way.node is not None}
    several = len(texts) > 1
    whole: Val | None = None
    cause: Taint = {}
    told: list[tuple[ast.stmt | None, Val]] = []
    for way in ways:
        value = way.value
        if several and way.control and _pickable(way.value, way.node):
            cause = merge(cause, way.control)
            value = tainted(value, way.control)
            _check_row(state, way.node, value, ways[0].value, way.control)
        if value.taint:
            told.append((way.node, value))
        whole = value if whole is None else join(whole, value)
    assert whole is not None
    if told and not state.silent:
        told.sort(key=lambda each: _rank(each[1].taint))
        seen: set[Label] = set()
        for node, value in told:
            fresh = {
                label: flow
                for label, flow in value.taint.items()
                if label not in seen and not (label[0] == "src" and seen)
            }
            seen.update(value.taint)
            _check_selector(state, node, tainted(NOTHING, fresh))
    return whole


def _rank(taint: Taint) -> tuple[bool, bool, bool]:
    """The batch before parameters, comparisons before none, data before branches."""
    sources = only(taint, "src")
    return (
        not sources,
        not any(flow.threshold for flow in sources.values()),
        any(flow.control for flow in sources.values()),
    )


def _pickable(value: Val, node: ast.stmt | None) -> bool:
    if (value.rows or value.vec or value.shape) and not value.taint:
        return False
    inner = node.value if isinstance(node, ast.Return) else None
    if isinstance(
        inner,
        ast.Name
        | ast.Attribute
        | ast.Constant
        | ast.Compare
        | ast.BoolOp
        | ast.Dict
        | ast.Subscript,
    ):
        return True
    return not value.opaque and not isinstance(inner, ast.Call)


def _check_row(state: State, node: ast.stmt | None, value: Val, other: Val, cause: Taint) -> None:
    if value.fields is None or node is None:
        return
    for key in value.fields:
        if other.fields is None or other is value or key in _differing(value, other):
            field = tainted(NOTHING, cause)
            if state.names.role(key) == "harmful":
                check_field(state, node, key, field, "", "the returned configuration")


def _check_selector(state: State, node: ast.stmt | None, value: Val) -> None:
    """A function that is named like a choice and returns one that follows the batch."""
    name = state.function.node.name
    if node is None or not state.names.matches("selectors", name):
        return
    if state.names.matches("no_choice", name):
        return
    splits = any(word in name for word in ("num_split", "kv_split", "split_k", "n_split"))
    harmful = splits or state.names.role(name.split("_", 1)[-1]) == "harmful"
    if not harmful and not _COMPUTES.match(name) and not _chosen(value.taint):
        return
    role = "harmful" if harmful else "opaque"
    level = "error" if harmful else "warning"
    report(
        state,
        "SEL105",
        level,
        node,
        value.taint,
        sink=name,
        role=role,
        what=f"what `{name}` returns",
    )


def _still(state: State, name: str) -> bool:
    """Whether a variable holds anything of the batch or of a parameter at some way out."""
    ends = [state.env, *(way.env for way in state.returned)]
    return any(name in env and bool(env[name].taint) for env in ends)


def flush_pending(state: State) -> None:
    """Variables named like harmful fields that no other report spoke of."""
    reported = {hit.sink.rsplit(".", 1)[-1].lower() for hit in state.summary.hits}
    for name, (node, taint) in list(state.pending.items()):
        if name.lower() not in reported and _still(state, name):
            what = f"`{name}`"
            pin = state.names.pins.get(name, "")
            help_ = f"pin `{name}` to {pin}" if pin else ""
            report(
                state,
                "SEL101",
                "error",
                node,
                taint,
                sink=name,
                role="harmful",
                what=what,
                help=help_,
            )
