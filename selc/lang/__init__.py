"""The language of selections: a subset of Python with Python's own semantics.

A decorated function stays an ordinary callable, and running it under CPython is the reference for
everything that is made from it. Nothing here does more than Python would do without it.
"""

from selc.lang.checks import AssumeError, RequireError, assume, require
from selc.lang.kinds import Aux, Bits, Fact, Neutral, Request, Runtime, Unpinnable
from selc.lang.knobs import KnobError, knob, knobs
from selc.lang.numbers import float32
from selc.lang.program import Selection, record, selection

__all__ = [
    "AssumeError",
    "Aux",
    "Bits",
    "Fact",
    "KnobError",
    "Neutral",
    "Request",
    "RequireError",
    "Runtime",
    "Selection",
    "Unpinnable",
    "assume",
    "float32",
    "knob",
    "knobs",
    "record",
    "require",
    "selection",
]
