"""Under which knobs the unpinned selection is asked: those of the tuple, if it admits the cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from selc.diag.diagnostic import Refused
from selc.harness.selector import Selector

SAMPLE: Final = 24
"""Pairs of calls by which settings are compared."""
TUPLES: Final = 2048


def control_tuple(
    selector: Selector,
    commitment: Mapping[str, Any],
    pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> Mapping[str, Any]:
    """A legal tuple whose knobs let the unpinned selection through, on as many pairs as can be.

    A pair is the calls of a request alone and in a batch. The tuple in force comes first, then the
    others in order. Its pins do not matter.
    """
    some = pairs[:: max(1, len(pairs) // SAMPLE)]
    best, most = commitment, -1
    for each in _settings(selector, commitment):
        count = sum(all(_admits(selector, each, call) for call in pair) for pair in some)
        if count > most:
            best, most = each, count
        if most == len(some):
            break
    return best


def _settings(selector: Selector, commitment: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """One legal tuple for each setting of the knobs."""
    yield commitment
    knobs = [k["name"] for k in selector.manifest["knobs"] if k["name"] in commitment]
    if not knobs:
        return
    seen = {repr([commitment[k] for k in knobs])}
    for each in itertools.islice(selector.tuples(), TUPLES):
        key = repr([each[k] for k in knobs])
        if key not in seen:
            seen.add(key)
            yield dict(each)


def _admits(selector: Selector, commitment: Mapping[str, Any], inputs: Mapping[str, Any]) -> bool:
    try:
        selector.stock(inputs, commitment)
    except Refused:
        return False
    return True
