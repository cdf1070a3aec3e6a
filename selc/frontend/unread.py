"""What the facts state and nothing reads: a mistake, unless it comes from a shared layer."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from selc.diag.diagnostic import Diagnostic
from selc.diag.suggest import did_you_mean

if TYPE_CHECKING:
    from selc.diag.span import Span
    from selc.frontend.context import Lowering

_WORD: Final = re.compile(r"\w+")


def report(cx: Lowering, node: ast.FunctionDef) -> None:
    """Report every entry of the facts that is no parameter and that the program does not read."""
    facts = cx.facts
    parameters = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    variadic = [a.arg for a in (node.args.vararg, node.args.kwarg) if a is not None]
    values: dict[str, Sequence[str]] = {
        "facts": list(facts.facts),
        "inputs": list(facts.inputs),
        "tables": list(facts.tables),
        "knobs": [k for k in facts.knobs if k not in facts.inputs],
    }
    for section, keys in values.items():
        for key in keys:
            _neither(cx, section, key, parameters)
    for section, things in (("tensors", facts.tensors), ("objects", facts.objects)):
        for key in things:
            if key.split(".")[0] not in (*parameters, *variadic):
                _neither(cx, section, key, parameters)
    words: set[str] | None = None
    for section, named in (
        ("functions", facts.functions), ("globals", facts.globals), ("env", facts.env),
    ):  # fmt: skip
        for key in named:
            span = _unread(cx, section, key)
            if span is None:
                continue
            words = _words(cx) if words is None else words
            _mentioned(cx, key, span, words)


def _neither(cx: Lowering, section: str, key: str, parameters: list[str]) -> None:
    """A value that is no parameter, and that nothing reads."""
    span = _unread(cx, section, key)
    if span is None:
        return
    shown = f"the parameters are: {', '.join(parameters)}" if parameters else "it has no parameters"
    hint = did_you_mean(key, parameters) or f"remove it, or check its spelling; {shown}"
    message = f"`{key}` is neither a parameter nor read"
    cx.sink.add(Diagnostic("SEL913", message, span, help=hint))


def _mentioned(cx: Lowering, key: str, span: Span, words: set[str]) -> None:
    """A name that may stand on a path not taken, but has to stand somewhere."""
    spelt = _WORD.findall(key.partition("(")[0].partition("[")[0])
    if not spelt or spelt[-1] in words:
        return
    message = f"no source that the selection reads mentions `{key}`"
    hint = did_you_mean(spelt[-1], words) or "remove it, or check its spelling"
    cx.sink.add(Diagnostic("SEL913", message, span, help=hint))


def _unread(cx: Lowering, section: str, key: str) -> Span | None:
    """Where an entry stands that was not read and that no layer states."""
    path = f"{section}.{key}"
    if path in cx.read or any(r.startswith(path + ".") for r in cx.read):
        return None
    spans = cx.facts.spans
    span = spans.get(path) or next((s for p, s in spans.items() if p.startswith(path + ".")), None)
    return None if span is None or span.path in cx.facts.layer_paths else span


def _words(cx: Lowering) -> set[str]:
    """Every word of the modules that were read."""
    return {word for text in cx.finder.texts() for word in _WORD.findall(text)}
