"""The rule for stubs: no helper of the engine that is given a value of the batch may be stated.

What a stated call is given is compared from run to run: where it differs, it is the batch's.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from tests.engines.stubs import PACKAGES, Dtype, Kernel, Stub, Tensor, corpus_file

METHOD = re.compile(r"^\s+def (\w+)\(", re.MULTILINE)


class Asked:
    """What the stated calls of one function were given, over all its runs."""

    def __init__(self, corpus: Path, package: str) -> None:
        self.corpus = corpus
        self.package = package
        self.fixed: object = None
        self.first: dict[tuple[object, ...], object] = {}
        self.counts: dict[tuple[object, ...], int] = {}
        self.homes: dict[str, str | None] = {}
        self.moved: set[str] = set()

    def begin(self, fixed: object) -> None:
        """Another run; `fixed` is all that it does not get from the batch."""
        self.counts.clear()
        self.fixed = fixed

    def note(
        self,
        key: str,
        site: tuple[int, int],
        given: tuple[tuple[Any, ...], Mapping[str, Any]],
        callee: Callable[[], Any],
        dotted: str | None,
    ) -> None:
        """A stated call."""
        if key not in self.homes:
            self.homes[key] = home(self.corpus, self.package, key, callee, dotted)
        n = self.counts[key, site] = self.counts.get((key, site), 0) + 1
        seen = shape(given)
        if self.first.setdefault((self.fixed, key, site, n), seen) != seen or "launched" in repr(
            seen
        ):
            self.moved.add(key)

    def stubbed_helpers(self) -> dict[str, str]:
        """Stated helpers of the engine that are given a value of the batch: key -> definition."""
        return {k: str(self.homes[k]) for k in sorted(self.moved) if self.homes[k] is not None}


def shape(value: Any, depth: int = 0) -> object:
    """An argument as it is compared between runs."""
    if isinstance(value, Tensor):
        return ("tensor", *(shape(n) for n in value.shape), value.dtype.name)
    if isinstance(value, Stub):
        return "launched" if set("([") & set(value._name) else value._name
    if isinstance(value, (Dtype, Enum)):
        return value.name
    if isinstance(value, Mapping):
        return tuple((str(k), shape(v, depth + 1)) for k, v in value.items())
    if isinstance(value, (tuple, list)):
        return tuple(shape(v, depth + 1) for v in value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return (type(value).__name__, value)
    if depth > 4 or not hasattr(value, "__dict__") or isinstance(value, (type, FunctionType)):
        return type(value).__name__
    return tuple((k, shape(v, depth + 1)) for k, v in vars(value).items())


# -- where a callee is defined -----------------------------------------------------------------


def home(
    corpus: Path, package: str, key: str, callee: Callable[[], Any], dotted: str | None
) -> str | None:
    """The engine's definition of what a stated call calls; None for kernels and libraries."""
    try:
        found = callee()
    except Exception:  # noqa: BLE001  # whatever stands in the way of finding it
        return unseen(corpus, package, key, dotted)
    while isinstance(found, (MethodType, functools.partial)) or hasattr(found, "__wrapped__"):
        if isinstance(found, MethodType):
            found = found.__func__
        else:
            found = getattr(found, "__wrapped__", None) or found.func
    if isinstance(found, Kernel):
        return None
    if isinstance(found, FunctionType):
        file = Path(found.__code__.co_filename)
        return found.__qualname__ if file.is_relative_to(corpus) else None
    if isinstance(found, type):
        return found.__qualname__ if found.__module__ == "tests.engines.engine" else None
    return None


def unseen(corpus: Path, package: str, key: str, dotted: str | None) -> str | None:
    """The definition of a callee that is not there in these runs, by its name alone."""
    parts = (dotted or "").split(".")
    for end in range(len(parts) - 1, 0, -1):
        file = corpus_file(corpus, ".".join(parts[:end]))
        if file is not None and defines(file, parts[end]):
            return dotted
    if dotted is not None and parts[0] not in PACKAGES:
        return None
    name = key.rpartition(".")[2]
    return f"some method {name}" if name in methods(corpus, package) else None


def defines(file: Path, name: str) -> bool:
    """Whether a module defines a function or class of this name anywhere."""
    return (
        re.search(rf"^\s*(?:def|class) {name}\b", file.read_text(encoding="utf-8"), re.M)
        is not None
    )


@functools.cache
def methods(corpus: Path, package: str) -> frozenset[str]:
    """The names of all methods and inner functions that an engine defines."""
    out: set[str] = set()
    for path in sorted((corpus / package).rglob("*.py")):
        out.update(METHOD.findall(path.read_text(encoding="utf-8")))
    return frozenset(out)
