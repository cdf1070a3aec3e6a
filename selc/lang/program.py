"""The two decorators: records, and selections over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar, dataclass_transform

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Selection:
    """What a decorated function declares; kept in its attribute `__selection__`."""

    family: str
    scope: Literal["request", "launch"]


@dataclass_transform(frozen_default=True)
def record(cls: type[C]) -> type[C]:
    """An immutable record: of inputs, whose fields have kinds, or of choices, with roles.

    A field of an input record without a kind is a fact; a field of a result without a role can
    move bits.
    """
    return dataclass(frozen=True)(cls)


def selection(*, family: str, scope: Literal["request", "launch"] = "request") -> Callable[[F], F]:
    """Mark a function as the selection for a family of kernels.

    Args:
        family: the name of the set of kernels that it chooses among.
        scope: `request` if the choice is applied to one request, `launch` if one choice serves a
            whole batch.
    """
    if scope not in ("request", "launch"):
        raise ValueError(f"scope {scope!r} is neither 'request' nor 'launch'")

    def mark(function: F) -> F:
        function.__selection__ = Selection(family, scope)  # type: ignore[attr-defined]  # functions take attributes
        return function

    return mark
