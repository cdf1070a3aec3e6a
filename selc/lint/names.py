"""What names say: batch quantities, activations, weights, roles of fields, kinds of callees.

Patterns come from data/defaults.toml and from the user's configuration; each answer is remembered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

_WORDS = frozenset(
    [
        "Tensor",
        "autotune",
        "heuristics",
        "lru_cache",
        "cache",
        "do_bench",
        "do_bench_cudagraph",
        "elapsed_time",
        "perf_counter",
        "perf_counter_ns",
        "amax",
    ]
)
NAME_LISTS = (
    "scalars",
    "parameters",
    "vectors",
    "activations",
    "weights",
    "static",
    "objects",
    "configs",
)
ROLE_LISTS = ("harmful", "opaque", "neutral", "sizes", "chunks")
FUNCTION_LISTS = ("selectors", "kernels", "benign", "helpers", "tables", "offline", "no_choice")


@dataclass(frozen=True, slots=True)
class Library:
    """A call into a library whose choice follows the batch unless an argument pins it."""

    call: re.Pattern[str]
    follows: str
    pin: str
    rule: str
    argument: str = ""
    pinned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Names:
    """All patterns, compiled."""

    lists: Mapping[str, re.Pattern[str]]
    kernels: tuple[tuple[re.Pattern[str], tuple[tuple[re.Pattern[str], str], ...]], ...]
    pins: Mapping[str, str]
    libraries: tuple[Library, ...]
    modes: tuple[str, ...] = ()
    memo: dict[tuple[str, str], Any] = field(default_factory=dict)

    def matches(self, kind: str, name: str) -> bool:
        """Whether a whole name matches a list of patterns."""
        key = (kind, name)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self.lists[kind].fullmatch(name) is not None
        return bool(found)

    def kind(self, name: str) -> str:
        """`scalar`, `vector`, `rows`, `weight`, `static` or nothing."""
        key = ("", name)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._kind(name)
        return str(found)

    def _kind(self, name: str) -> str:
        bare = name.lstrip("_")
        for kind, word in (
            ("static", "static"),
            ("scalars", "scalar"),
            ("vectors", "vector"),
            ("weights", "weight"),
            ("activations", "rows"),
        ):
            if self.lists[kind].fullmatch(bare):
                return word
        return ""

    def role(self, field_name: str, callee: str = "") -> str:
        """The role of a field of a call or a record; nothing for one that is not known."""
        key = (f"role {callee}", field_name)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = self._role(field_name, callee)
        return str(found)

    def _role(self, field_name: str, callee: str) -> str:
        for pattern, fields in self.kernels:
            if callee and pattern.fullmatch(callee):
                for name, role in fields:
                    if name.fullmatch(field_name):
                        return role
        for role in ROLE_LISTS:
            if self.lists[role].fullmatch(field_name):
                return role
        return ""

    def is_kernel(self, callee: str) -> bool:
        """Whether a call of this dotted name runs a kernel."""
        key = ("kernel", callee)
        found = self.memo.get(key)
        if found is None:
            last = callee.rsplit(".", 1)[-1]
            ops = re.search(r"(^|\.)ops\.\w+", callee) is not None
            found = (ops or self.matches("kernels", last)) and not self.matches("benign", last)
            self.memo[key] = found
        return bool(found)

    def library(self, callee: str) -> Library | None:
        """What is known of a call into a library."""
        key = ("library", callee)
        if key not in self.memo:
            last = callee.rsplit(".", 1)[-1]
            found = [
                entry
                for entry in self.libraries
                if entry.call.fullmatch(callee) or entry.call.fullmatch(last)
            ]
            self.memo[key] = found[0] if found else None
        entry: Library | None = self.memo[key]
        return entry

    def is_word(self, word: str) -> bool:
        """Whether a word alone can bring anything of the batch, or of a rule, into a file."""
        key = ("word", word)
        found = self.memo.get(key)
        if found is None:
            found = self.memo[key] = (
                word in _WORDS
                or word in self.pins
                or any(word == mode.rsplit(".", 1)[-1] for mode in self.modes)
                or self.kind(word) in ("scalar", "vector", "rows")
                or any(self.lists[kind].fullmatch(word) for kind in ("parameters", "objects"))
            )
        return bool(found)

    def is_mode(self, name: str) -> bool:
        """Whether a dotted name (a call ends in `.()`) is the invariant mode."""
        if not self.modes:
            return False
        key = ("mode", name)
        found = self.memo.get(key)
        if found is None:
            bare = name.removesuffix(".()").removesuffix(".get")
            found = any(bare == mode or bare.endswith(f".{mode}") for mode in self.modes)
            self.memo[key] = found
        return bool(found)


@lru_cache(maxsize=256)
def union(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One pattern for several; it matches nothing if there are none."""
    return re.compile("|".join(f"(?:{p})" for p in patterns) if patterns else r"(?!)")


def libraries(rows: Iterable[Mapping[str, Any]]) -> tuple[Library, ...]:
    """Entries of a file of libraries."""
    return tuple(
        Library(
            re.compile(row["call"]),
            row["follows"],
            row["pin"],
            row.get("rule", "SEL106"),
            row.get("argument", ""),
            tuple(row.get("pinned", ())),
        )
        for row in rows
    )
