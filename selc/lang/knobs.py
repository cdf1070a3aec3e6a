"""Settings of a deployment that no input determines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_UNSET = object()
_SETTINGS: ContextVar[Mapping[str, object]] = ContextVar("selc_knobs")


class KnobError(ValueError):
    """A setting that is not among the choices of its knob."""


def knob(name: str, *, choices: Sequence[T], default: T | None = None) -> T:
    """The setting of the knob `name`: what `knobs` set, else its default, else the first choice.

    Raises:
        KnobError: there is no choice, or the setting is none of them.
    """
    if not choices:
        raise KnobError(f"knob {name!r} has no choices")
    setting = _SETTINGS.get({}).get(name, _UNSET)
    if setting is _UNSET:
        setting = choices[0] if default is None else default
    for choice in choices:
        if type(choice) is type(setting) and choice == setting:
            return choice
    raise KnobError(f"knob {name!r} is set to {setting!r}; its choices are {tuple(choices)!r}")


@contextmanager
def knobs(settings: Mapping[str, object] | None = None, /, **named: object) -> Iterator[None]:
    """Set knobs for the calls made inside a `with` block."""
    token = _SETTINGS.set({**_SETTINGS.get({}), **(settings or {}), **named})
    try:
        yield
    finally:
        _SETTINGS.reset(token)
