"""The commitment tuple of a generated selector: what is legal, what is in force, how it is written.

The tuple in force is one immutable object; repinning replaces it in one step.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ._constants import header_text, python_text
from ._files import family_entry, write_family, write_text
from ._runtime import Choices, Refusal, SelectionError, shown


class Commitment:
    """One value for every parameter. Never changed once made.

    `passed` remembers for which inputs its costly guards held.
    """

    __slots__ = ("indices", "passed", "values")

    def __init__(self, indices: tuple[int, ...], values: tuple[object, ...]) -> None:
        self.indices = indices
        self.values = values
        self.passed: set[object] = set()


class Factor:
    """A condition on the parameters at `positions`; `codes` number the rows that satisfy it."""

    __slots__ = ("codes", "guards", "positions", "radices", "rows")

    def __init__(
        self,
        positions: Sequence[int],
        sizes: Sequence[int],
        codes: Sequence[int],
        guards: Sequence[int],
    ) -> None:
        self.positions = tuple(positions)
        self.radices = tuple(sizes[p] for p in positions)
        self.codes = frozenset(codes)
        self.guards = tuple(guards)
        self.rows = [self._row(code) for code in codes]

    def _row(self, code: int) -> dict[int, int]:
        digits = []
        for radix in reversed(self.radices):
            code, digit = divmod(code, radix)
            digits.append(digit)
        return dict(zip(self.positions, reversed(digits), strict=True))

    def holds(self, indices: Sequence[int]) -> bool:
        """Whether a full assignment satisfies it."""
        code = 0
        for position, radix in zip(self.positions, self.radices, strict=True):
            code = code * radix + indices[position]
        return code in self.codes

    def allows(self, partial: Mapping[int, int]) -> bool:
        """Whether some row agrees with a partial assignment."""
        fixed = [(p, partial[p]) for p in self.positions if p in partial]
        return any(all(row[p] == v for p, v in fixed) for row in self.rows)


class Relation:
    """The legal assignments, as a conjunction of factors over indices of values."""

    def __init__(self, sizes: Sequence[int], factors: Sequence[tuple[Any, Any, Any]]) -> None:
        self.sizes = tuple(sizes)
        self.factors = [Factor(p, sizes, codes, guards) for p, codes, guards in factors]

    def broken(self, indices: Sequence[int]) -> list[Factor]:
        """The factors that a full assignment does not satisfy."""
        return [f for f in self.factors if not f.holds(indices)]

    def solutions(self, partial: Mapping[int, int]) -> Iterator[dict[int, int]]:
        """Full assignments that extend a partial one, in lexicographic order."""
        if not all(f.allows(partial) for f in self.factors):
            return
        free = next((p for p in range(len(self.sizes)) if p not in partial), None)
        if free is None:
            yield dict(partial)
            return
        for value in range(self.sizes[free]):
            yield from self.solutions({**partial, free: value})

    def remaining(self, partial: Mapping[int, int]) -> list[list[int]]:
        """For every parameter the values that some legal extension of `partial` gives it."""
        found: list[set[int]] = [set() for _ in self.sizes]
        for position, size in enumerate(self.sizes):
            for value in range(size):
                if value in found[position] or partial.get(position, value) != value:
                    continue
                witness = next(self.solutions({**partial, position: value}), None)
                for p, v in (witness or {}).items():
                    found[p].add(v)
        return [sorted(values) for values in found]


class Tuples:
    """The parameters of one selector, their legal values, and the tuple in force.

    `guards` are texts with places; `fields` says what the C struct of pins holds for a tuple.
    """

    def __init__(
        self,
        identity: tuple[str, str],
        names: tuple[str, ...],
        values: tuple[tuple[object, ...], ...],
        knobs: frozenset[str],
        default: tuple[int, ...] | None,
        relation: Callable[[], Sequence[tuple[Any, Any, Any]]],
        guards: tuple[str, ...],
    ) -> None:
        self.family, self.hash = identity
        self.names = names
        self.values = values
        self.knobs = knobs
        self.guards = guards
        self._choices: Final = tuple(Choices(v) for v in values)
        self._load = relation
        self._relation: Relation | None = None
        self._lock = threading.Lock()
        self.fields: Callable[[Commitment], Sequence[object]] | None = None
        self._watchers: list[Callable[[Commitment], None]] = []
        self.current: Commitment | None = self._commitment(default) if default is not None else None

    def watch(self, changed: Callable[[Commitment], None]) -> None:
        """Call `changed` with the tuple in force, now and whenever it is replaced."""
        with self._lock:
            self._watchers.append(changed)
            if self.current is not None:
                changed(self.current)

    def view(self, commitment: Commitment | None) -> dict[str, object]:
        """A tuple by name."""
        return {} if commitment is None else dict(zip(self.names, commitment.values, strict=True))

    def pins(self) -> dict[str, object]:
        """The pins and knobs in force."""
        return self.view(self.current)

    def repin(self, assignment: Mapping[str, object]) -> dict[str, object]:
        """Put new values in force; those not named stay. Returns the whole tuple.

        Raises:
            SelectionError: A name is unknown, or the tuple would not be legal; nothing changes.
        """
        changes = self._indices(assignment)
        with self._lock:
            if self.current is not None:
                merged = {**dict(enumerate(self.current.indices)), **changes}
            elif len(changes) == len(self.names):
                merged = changes
            else:
                missing = [n for p, n in enumerate(self.names) if p not in changes]
                raise SelectionError(f"no tuple is in force; also give {', '.join(missing)}")
            full = tuple(merged[p] for p in range(len(self.names)))
            broken = self.relation.broken(full)
            if broken:
                raise self._illegal(changes, full, broken)
            fresh = self._commitment(full)
            self.current = fresh
            for changed in self._watchers:
                changed(fresh)
        return self.view(fresh)

    def legal(self, partial: Mapping[str, object]) -> dict[str, tuple[object, ...]]:
        """The values that remain for every pin and knob once some are fixed (none: not legal)."""
        left = self.relation.remaining(self._indices(partial))
        return {
            name: tuple(values[i] for i in indices)
            for name, values, indices in zip(self.names, self.values, left, strict=True)
        }

    def commit(self, path: str, assignment: Mapping[str, object] | None = None) -> None:
        """Write the tuple in force, or another legal one, in the form that the path asks for.

        A tuple file (YAML, `.json` for JSON), or constants (`.py` a module, `.h` a header).

        Raises:
            SelectionError: The assignment is not legal, or there is none.
        """
        commitment = self.current
        if assignment is not None:
            merged = {**dict(enumerate(commitment.indices if commitment else ()))}
            merged.update(self._indices(assignment))
            full = tuple(merged[p] for p in range(len(self.names)))
            broken = self.relation.broken(full)
            if broken:
                raise self._illegal(self._indices(assignment), full, broken)
            commitment = self._commitment(full)
        if commitment is None:
            raise SelectionError("no assignment is legal; there is no tuple to write")
        view = self.view(commitment)
        pins = {n: v for n, v in view.items() if n not in self.knobs}
        knobs = {n: v for n, v in view.items() if n in self.knobs}
        if path.endswith(".py"):
            write_text(path, python_text(self.family, self.hash, pins, knobs))
        elif path.endswith(".h"):
            fields = None if self.fields is None else self.fields(commitment)
            write_text(path, header_text(self.family, self.hash, view, fields))
        else:
            write_family(path, self.family, self.hash, pins, knobs)

    def load(self, path: str) -> dict[str, object]:
        """Put the tuple of a tuple file in force.

        Raises:
            SelectionError: It was made for another selector, or is not legal here.
        """
        return self.repin(family_entry(path, self.family, self.hash))

    @property
    def relation(self) -> Relation:
        """The legal assignments, read when first asked for."""
        if self._relation is None:
            self._relation = Relation([len(v) for v in self.values], self._load())
        return self._relation

    def _commitment(self, indices: tuple[int, ...]) -> Commitment:
        values = tuple(v[i] for v, i in zip(self.values, indices, strict=True))
        return Commitment(tuple(indices), values)

    def _indices(self, assignment: Mapping[str, object]) -> dict[int, int]:
        out: dict[int, int] = {}
        for name, value in assignment.items():
            if name not in self.names:
                close = difflib.get_close_matches(str(name), self.names, 1)
                hint = (
                    f"; did you mean {close[0]!r}?" if close else f"; there are {list(self.names)}"
                )
                raise SelectionError(f"{name!r} is neither a pin nor a knob{hint}")
            position = self.names.index(name)
            try:
                known = self._choices[position].admit(value)
            except Refusal as refusal:
                raise SelectionError(f"{name}={shown(value)} {refusal}") from None
            # admit returns the listed object itself, so that identity finds it among 1 and True
            out[position] = next(i for i, v in enumerate(self.values[position]) if v is known)
        return out

    def _illegal(
        self, changes: Mapping[int, int], full: tuple[int, ...], broken: Sequence[Factor]
    ) -> SelectionError:
        view = {n: v[i] for n, v, i in zip(self.names, self.values, full, strict=True)}
        texts = [self.guards[g] for f in broken for g in f.guards]
        why = f"; it would break {texts[0]}" if texts else ""
        left = []
        for position in changes:
            others = {p: i for p, i in enumerate(full) if p != position}
            values = [w[position] for w in self.relation.solutions(others)]
            names = ", ".join(repr(self.values[position][v]) for v in values[:12]) or "nothing"
            left.append(f"{self.names[position]} may then be {names}")
        tuple_text = ", ".join(f"{n}={v!r}" for n, v in view.items())
        message = f"not a legal tuple: {tuple_text}{why}; with the rest as it is, {'; '.join(left)}"
        return SelectionError(message, guard=texts[0] if texts else None, tuple=view)
