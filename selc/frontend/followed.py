"""What of a module's text a lowering has read, so that edits elsewhere in it need not count.

Three things of a module can change an answer: the top-level statements that were parsed, with their
lines; which statements bind the names that were asked for; and, anywhere in the text, what could
change module-level state. The last is kept coarse: every line that assigns to a part of something,
calls a method that changes a container, or runs when the module is imported.
"""

from __future__ import annotations

import bisect
import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from selc.diag.diagnostic import Refused
from selc.frontend.source import ModuleSource, read_module

_METHODS: Final = (
    "append|appendleft|add|update|pop|popitem|setdefault|clear|extend|insert|remove|discard|sort"
    "|reverse|__setitem__|__delitem__"
)
_STATE: Final = re.compile(
    r"\[[^\n]*?\]\s*(?:=(?!=)|[-+*/|&]=|//=)"
    rf"|\.\s*(?:{_METHODS})\b"
    r"|\.\w+\s*(?:[-+*/|&%^@]|//|<<|>>|\*\*)?=(?!=)"
    r"|\bglobal\b|\bdel\b|\b(?:globals|vars)\(|\bsetattr\b|\b__dict__\b"
)
_DEFINES: Final = re.compile(r"(?:def|class|async|import|from)\b|[@#)\]}]")


def trace(module: ModuleSource) -> dict[str, Any] | None:
    """What was read of a module; None if its whole text counts."""
    if module.whole or "environment_variables" in module.asked:
        return None
    return _describe(module, sorted(module.asked), sorted(module.parsed))


def holds(path: str, said: Mapping[str, Any]) -> bool:
    """Whether all that was read of a file is still there, on the same lines."""
    try:
        module = read_module(Path(path))
        return said == _describe(module, list(said["names"]), [int(n) for n in said["statements"]])
    except (Refused, OSError, KeyError, TypeError, ValueError):
        return False


def _describe(module: ModuleSource, names: list[str], lines: list[int]) -> dict[str, Any]:
    there = {s.first_line: s.text for s in module.segments}
    return {
        "names": {n: [[s.first_line, s.kind] for s in module.binding(n)] for n in names},
        "statements": {str(n): _digest(there[n]) if n in there else "" for n in lines},
        "selections": [s.first_line for s in module.mentioning("selection")],
        "state": _digest("\n".join(_state_lines(module.text))),
    }


def _state_lines(text: str) -> Iterator[str]:
    lines = text.split("\n")
    starts = [0]
    for line in lines[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    wanted: set[int] = set()
    position = 0
    while (match := _STATE.search(text, position)) is not None:
        first = bisect.bisect_right(starts, match.start()) - 1
        if not lines[first][: match.start() - starts[first]].strip():
            first -= 1  # what it belongs to stands on a line before
            while first > 0 and not lines[first].strip():
                first -= 1
        last = bisect.bisect_right(starts, match.end() - 1) - 1
        wanted.update(range(max(first, 0), last + 1))
        position = match.start() + 1
    for number, line in enumerate(lines):
        if number in wanted or (line[:1].strip() and not _DEFINES.match(line)):
            yield line


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
