"""Kinds of inputs and roles of choices, written as annotations: `Runtime[int]`, `Bits[int]`.

To Python and to type checkers each is its argument: `Runtime[int]` is `int`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of an input: who determines it."""

    name: str


@dataclass(frozen=True, slots=True)
class Role:
    """The role of a choice: whether it can move a request's bits."""

    name: str


Fact = Annotated[T, Kind("fact")]
"""Known before serving. A field or parameter without a kind is one."""

Request = Annotated[T, Kind("request")]
"""The request's own."""

Runtime = Annotated[T, Kind("runtime")]
"""Determined by the batch."""

Unpinnable = Annotated[T, Kind("unpinnable")]
"""Determined by the batch, and never a pin itself."""

Bits = Annotated[T, Role("bits")]
"""Can move a request's bits. A field of the result without a role is one."""

Neutral = Annotated[T, Role("neutral")]
"""Cannot move a request's bits."""

Aux = Annotated[T, Role("aux")]
"""Not a choice; only guards read it."""
