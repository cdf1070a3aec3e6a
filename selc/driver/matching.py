"""Values of tuple files and profiles, found among those that a pin or an input can take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from selc.ir.value import Value, to_json, value_key


@final
class Absent:
    """The type of `ABSENT`."""

    __slots__ = ()


ABSENT: Final = Absent()


def find(given: object, known: Iterable[Value]) -> Value | Absent:
    """The known value that `given` writes, equal in type; `ABSENT` if there is none."""
    wanted = value_key(frozen(given))
    return next((v for v in known if value_key(frozen(to_json(v))) == wanted), ABSENT)


def frozen(value: object) -> Value:
    """The same value with tuples for lists, deep."""
    if isinstance(value, (list, tuple)):
        return tuple(frozen(v) for v in value)
    if isinstance(value, dict):
        return tuple((str(k), frozen(v)) for k, v in value.items())
    return value
