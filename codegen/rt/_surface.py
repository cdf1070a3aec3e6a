"""What a generated package offers: the selector, native where it can be, and its tuple."""

from __future__ import annotations

import functools
import importlib
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ._files import jsonable
from ._record import Recorder
from ._runtime import SelectionError


class Pin(NamedTuple):
    """A pin: what it may be, what it is unless repinned, where it stands in the source."""

    type: str
    candidates: tuple[Any, ...]
    offered: tuple[Any, ...]
    legal: tuple[Any, ...]
    default: Any
    free: bool
    location: dict[str, Any]
    fixes: tuple[str, ...]


class Knob(NamedTuple):
    """A knob: its settings and the initial one."""

    choices: tuple[Any, ...]
    setting: Any


class Surface:
    """The public functions of one package.

    `python` is its module of tables, `bind` orders arguments, `select` is the Python selector.
    """

    def __init__(
        self,
        package: str,
        python: Any,
        bind: Callable[..., tuple[Any, ...]],
        select: Callable[..., Any],
        unpinned: Callable[..., Any],
    ) -> None:
        self._python = python
        self._tuples = python.TUPLES
        if len(python.INDEXED) == len(self._tuples.names):
            self._tuples.fields = functools.partial(_struct, python.INDEXED)
        renamed = {name: ident for name, ident, _ in python.ARGUMENTS if name != ident}
        self._bind = _accepting(renamed, bind)
        select.__name__ = select.__qualname__ = bind.__qualname__ = "select"
        unpinned.__name__ = unpinned.__qualname__ = "select_unpinned"
        self.select = _accepting(renamed, select)
        self.select_unpinned = _accepting(renamed, unpinned)
        self.native = False
        self.reason = ""
        native = self._load_native(package)
        if native is not None:
            self.native = True
            self.select = native.select

    def repin(self, assignment: Mapping[str, object]) -> dict[str, object]:
        """Put new values of pins and knobs in force; those not named stay. Returns all of them.

        Raises:
            SelectionError: The tuple would not be legal, or a name is unknown; nothing changes.
        """
        result: dict[str, object] = self._tuples.repin(assignment)
        return result

    def pins(self) -> dict[str, object]:
        """The pins and knobs in force."""
        result: dict[str, object] = self._tuples.pins()
        return result

    def legal(
        self, partial: Mapping[str, object] | None = None, **named: object
    ) -> dict[str, tuple[object, ...]]:
        """The values that remain for every pin and knob once some are fixed.

        Keywords name pins by their last part, or with underscores for the dots.
        """
        wanted = dict(partial or {})
        for keyword, value in named.items():
            wanted[self._parameter(keyword)] = value
        result: dict[str, tuple[object, ...]] = self._tuples.legal(wanted)
        return result

    def commit(self, path: Any, assignment: Mapping[str, object] | None = None) -> None:
        """Write the tuple in force, or another legal one, to a tuple file.

        A path that ends in `.py` or `.h` gives constants for production instead.
        """
        self._tuples.commit(os.fspath(path), assignment)

    def load(self, path: Any) -> dict[str, object]:
        """Put the tuple of a tuple file in force; one made for another selector is refused."""
        result: dict[str, object] = self._tuples.load(os.fspath(path))
        return result

    def points(self, choice: Any) -> dict[str, object]:
        """A choice by the names of its points."""
        out: dict[str, object] = {}
        for name, path in zip(self._python.POINTS, self._python.ACCESS, strict=True):
            value = choice
            for part in path.split("."):
                value = getattr(value, part)
            out[name] = value
        return out

    def record(self, path: Any = None, limit: int = 65536) -> Recorder:
        """A counter of distinct calls, written to `path` when it is closed or the process ends."""
        names = tuple(name for name, _, _ in self._python.ARGUMENTS)
        identity = (self._python.FAMILY, self._python.HASH)
        return Recorder(identity, names, self._bind, self.select, path, limit)

    def _parameter(self, keyword: str) -> str:
        names: tuple[str, ...] = self._tuples.names
        if keyword in names:
            return keyword
        tails = [n for n in names if n.rsplit(".", 1)[-1] == keyword]
        flat = [n for n in names if re.sub(r"\W+", "_", n).strip("_") == keyword]
        found = tails if len(tails) == 1 else flat
        return found[0] if len(found) == 1 else keyword

    def _load_native(self, package: str) -> Any:
        if os.environ.get("SELC_NO_NATIVE"):
            self.reason = "SELC_NO_NATIVE is set"
            return None
        if self._python.NATIVE_KEY is None:
            self.reason = "built without a native module"
            return None
        try:
            native = importlib.import_module(f"{package}._native")
        except ImportError as error:
            self.reason = str(error)
            return None
        if native.KEY != self._python.NATIVE_KEY:
            self.reason = "the native module belongs to another build"
            return None
        names = tuple(ident for _, ident, _ in self._python.ARGUMENTS)
        choices = tuple(getattr(domain, "values", ()) for _, _, domain in self._python.ARGUMENTS)
        native.bind(names, choices, self._python.CONSTANTS, self._slow, self._python.build)
        self._plain_select = self.select
        self._tuples.watch(functools.partial(_install, native, self._python.INDEXED))
        return native

    def _slow(self, commitment: Any, refused: bool, args: tuple[Any, ...], named: Any) -> Any:
        """The Python selector under a given tuple: foreign types, and the text of every error."""
        values = self._bind(*args, **(named or {}))
        choice = self._python.choose(commitment, values)
        if refused:
            raise SelectionError(
                "the native selector refused this call and the Python selector did not; nothing "
                f"was selected. Report this call: {[jsonable(v) for v in values]!r}"
            )
        return choice


def _install(native: Any, indexed: tuple[bool, ...], commitment: Any) -> None:
    """Hand a tuple to the native module: list positions where it wants those, else the values."""
    native.install(commitment, _struct(indexed, commitment))


def _struct(indexed: tuple[bool, ...], commitment: Any) -> tuple[Any, ...]:
    """What the members of the C struct of pins hold."""
    pairs = zip(indexed, commitment.indices, commitment.values, strict=True)
    return tuple(i if by_index else v for by_index, i, v in pairs)


def _accepting(renamed: Mapping[str, str], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with arguments also under names that are no identifiers."""
    if not renamed:
        return function

    @functools.wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        return function(*args, **{renamed.get(n, n): v for n, v in named.items()})

    return call
