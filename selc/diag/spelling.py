"""Values as a user would write them in Python."""

from __future__ import annotations

from collections.abc import Mapping


def spelt(value: object) -> str:
    """A value of JSON as Python has it, in ASCII; its lists are tuples in every selection."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(spelt, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!a}: {spelt(v)}" for k, v in value.items()) + "}"
    return ascii(value)


def arguments(values: Mapping[str, object]) -> str:
    """Values by name, as the arguments of a call."""
    return ", ".join(f"{name}={spelt(value)}" for name, value in values.items())
