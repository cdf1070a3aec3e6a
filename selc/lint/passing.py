"""Checks at calls: fields that are passed, and libraries that choose inside."""

from __future__ import annotations

import ast

from selc.lint.expr import evaluate
from selc.lint.names import Library
from selc.lint.sinks import check_field, report
from selc.lint.state import State
from selc.lint.values import CLEAN, UNKNOWN, Taint, Val, dotted, merge, only


def check_filled(state: State, node: ast.Call, kernel: str) -> None:
    """A launch that computes split counts, its first argument, from lengths of the batch."""
    first = node.args[0] if node.args else None
    if not isinstance(first, ast.Name) or "split" not in kernel:
        return
    if state.names.role(first.id) != "harmful":
        return
    taint: Taint = CLEAN
    for each in node.args[1:]:
        value = evaluate(state, each)
        taint = merge(taint, merge(value.vec, value.taint))
    report(
        state,
        "SEL101",
        "error",
        node,
        taint,
        sink=first.id,
        role="harmful",
        what=f"`{first.id}`, which `{kernel}` fills,",
    )


def check_keywords(state: State, node: ast.Call, name: str, keywords: dict[str, Val]) -> None:
    """Keyword arguments that are fields."""
    if name.rsplit(".", 1)[-1] in ("debug", "info", "warning", "error"):
        return
    for word in node.keywords:
        if word.arg:
            value = keywords[word.arg]
            if value.taint:
                check_field(state, word.value, word.arg, value, name, f"`{name}`")


def check_spread(state: State, node: ast.Call, name: str) -> None:
    """`**config`, where the batch picked the whole configuration; variables named like fields."""
    for word in node.keywords:
        if word.arg is None:
            value = evaluate(state, word.value)
            text = dotted(word.value).rsplit(".", 1)[-1]
            if value.taint and state.names.matches("tables", text):
                report(
                    state,
                    "SEL101",
                    "error",
                    word.value,
                    value.taint,
                    sink=text,
                    role="configuration",
                    what=f"the configuration `{text}` of `{name}`",
                )
    if name.startswith("torch.") and not name.startswith("torch.ops."):
        return
    for each in node.args:
        if isinstance(each, ast.Name) and state.names.role(each.id) in ("harmful", "opaque"):
            value = evaluate(state, each)
            if value.taint and not state.names.matches("helpers", name.rsplit(".", 1)[-1]):
                check_field(state, each, each.id, value, name, f"`{name}`")


def check_library(
    state: State,
    node: ast.Call,
    name: str,
    arguments: list[Val],
    keywords: dict[str, Val],
    spread: list[Val],
) -> None:
    """A call into a library whose choice follows the batch unless it is pinned."""
    entry = state.names.library(name)
    if entry is None or state.silent or _is_other_library(state, name):
        return
    if any(isinstance(each, ast.Starred) for each in node.args) and spread:
        return  # it hands on whatever it was given
    if entry.argument and _is_pinned(state, node, entry, keywords, spread):
        return
    where = state.at(node)
    taint: Taint = CLEAN
    for value in (*arguments, *keywords.values()):
        taint = merge(taint, only(merge(value.rows, merge(value.vec, value.taint)), "src"))
    if not taint:
        taint = state.source("the shapes of the batch", where)
    level = "warning"
    report(
        state,
        entry.rule,
        level,
        node,
        taint,
        sink=name,
        role="library",
        what=f"`{name}` follows the batch inside: {entry.follows}",
        help=entry.pin,
    )


def _is_pinned(
    state: State, node: ast.Call, entry: Library, keywords: dict[str, Val], spread: list[Val]
) -> bool:
    """Whether the argument that pins a library's choice is given, by a value or by its maker."""
    if any(word.arg == entry.argument and _is_pin(state, word.value) for word in node.keywords):
        return True
    if any(isinstance(each, ast.Name) and each.id in state.names.pins for each in node.args):
        return True
    given = keywords.get(entry.argument)
    for each in spread:
        given = given or (each.fields or {}).get(entry.argument)
    if given is None:
        return "disable_split_kv" in keywords
    if "*" in entry.pinned:
        return True
    if given.const is not UNKNOWN:
        return repr(given.const) in entry.pinned
    return not given.taint and not given.mode and not given.opaque


def _is_other_library(state: State, name: str) -> bool:
    """AITER's functions share names with FlashAttention's and take no split."""
    head = name.partition(".")[0]
    whole = state.local_imports.get(head) or state.module.imports.get(head, head)
    return "aiter" in whole


def _is_pin(state: State, node: ast.expr) -> bool:
    """Whether an argument is an attribute that is a pin itself: it is judged where it is set."""
    if not isinstance(node, ast.Attribute) or node.attr not in state.names.pins:
        return False
    return not (isinstance(node.value, ast.Name) and node.value.id == state.receiver)
