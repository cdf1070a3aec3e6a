"""How inputs, pins and knobs stand in the C structs.

Numbers of one type are themselves; everything else is its position in the declared list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from selc.codegen.cvalue import INT64, Unsupported, integer
from selc.codegen.names import comment
from selc.ir.domain import Domain
from selc.ir.value import Value, to_json

CHAIN: Final = 8
_ENCODINGS: Final = {
    frozenset({"int"}): "int",
    frozenset({"bool"}): "bool",
    frozenset({"float"}): "float",
}


@dataclass(frozen=True, slots=True)
class Slot:
    """One field: what the user calls it, where C finds it, how its values are written."""

    name: str
    field: str
    access: str
    encoding: str  # 'int' | 'bool' | 'float' | 'index'
    domain: Domain

    @property
    def values(self) -> tuple[Value, ...] | None:
        """The declared list, if there is one."""
        return self.domain.values

    @property
    def ctype(self) -> str:
        """The type of the field."""
        return "double" if self.encoding == "float" else "int64_t"

    @property
    def note(self) -> str:
        """What the field holds, for a comment."""
        if self.values is None:
            step = f" in steps of {self.domain.step}" if self.domain.step != 1 else ""
            return comment(f"{self.name}: {self.domain.lo}..{self.domain.hi}{step}")
        shown = ", ".join(repr(to_json(v)) for v in self.values)
        prefix = "position in " if self.encoding == "index" else ""
        return comment(f"{self.name}: {prefix}{shown}")


def make_slot(name: str, field: str, struct: str, domain: Domain) -> Slot:
    """The slot of an input or a parameter."""
    encoding = _ENCODINGS.get(domain.kinds, "index")
    if encoding == "int":
        ends = [int(v) for v in domain.values] if domain.values else [domain.lo, domain.hi]  # type: ignore[call-overload]  # kinds say int
        if min(ends) < INT64[0] or max(ends) > INT64[1]:
            raise Unsupported(f"{name} may need more than 64 bits")
    if encoding == "float" and any(v != v for v in domain.values or ()):
        raise Unsupported(f"{name} may be NaN")
    return Slot(name, field, f"{struct}->{field}", encoding, domain)


def outside(slot: Slot, arrays: list[str], prefix: str) -> str:
    """A test that the field is outside its domain; may add a table to `arrays`."""
    x, domain = slot.access, slot.domain
    if domain.values is None:
        tests = [f"{x} < {integer(domain.lo)}", f"{x} > {integer(domain.hi)}"]
        if domain.step != 1:
            # the bounds come first, so that the difference is small enough unless the range is not
            if domain.hi - domain.lo > INT64[1]:
                raise Unsupported(f"{slot.name} has a range wider than 64 bits")
            tests.append(f"({x} - {integer(domain.lo)}) % {integer(domain.step)} != 0")
        return " || ".join(tests)
    if slot.encoding == "index":
        return f"{x} < 0 || {x} >= {len(domain.values)}"
    if slot.encoding == "bool":
        have = sorted({int(v) for v in domain.values})  # type: ignore[call-overload]  # bools
        return " && ".join(f"{x} != {v}" for v in have)
    if slot.encoding == "float":
        from selc.codegen.cvalue import real

        return " && ".join(f"!selc_i_same({x}, {real(float(v))})" for v in domain.values)  # type: ignore[arg-type]  # floats
    return _outside_integers(slot, sorted({int(v) for v in domain.values}), arrays, prefix)  # type: ignore[call-overload]  # ints


def _outside_integers(slot: Slot, values: Sequence[int], arrays: list[str], prefix: str) -> str:
    if len(values) <= CHAIN:
        return " && ".join(f"{slot.access} != {integer(v)}" for v in values)
    name = f"{prefix}{slot.field}_domain"
    arrays.append(f"static const int64_t {name}[] = {{{', '.join(integer(v) for v in values)}}};")
    return f"selc_i_find({name}, {len(values)}, {slot.access}) == {len(values)}"
