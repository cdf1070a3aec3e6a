"""Conditions under which a selection is valid."""

from __future__ import annotations


class RequireError(AssertionError):
    """What the chosen kernel needs does not hold."""


class AssumeError(AssertionError):
    """What the deployment promised of the inputs does not hold."""


def require(condition: object, why: str = "") -> None:
    """Demand what the chosen kernel needs.

    Raises:
        RequireError: the condition is false.
    """
    if not condition:
        raise RequireError(why)


def assume(condition: object, why: str = "") -> None:
    """State what the deployment promises of its inputs.

    Raises:
        AssumeError: the condition is false.
    """
    if not condition:
        raise AssumeError(why)
