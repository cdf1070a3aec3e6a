"""Which tuples of a selector are measured."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.span import Span
from selc.harness.runner import choice_key
from selc.harness.selector import NOT_A_SELECTOR, Selector

UNREADABLE: Final = "SEL914"
MOST_LEGAL: Final = 100_000
"""Legal tuples that are looked at."""
POOL: Final = 2_000
"""Of those, how many are drawn to pick spread-out ones from."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tuple, or the stock selection."""

    name: str
    commitment: Mapping[str, Any] | None
    """None: the selection without any pin."""

    def choice(self, selector: Selector, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The points that a call gets.

        Raises:
            Refused: the call is outside the domain or breaks a guard.
        """
        if self.commitment is None:
            return selector.stock(inputs)
        return selector.choice(self.commitment, inputs)


class Picked(NamedTuple):
    """The tuples to measure, and out of how many."""

    candidates: tuple[Candidate, ...]
    legal: int
    """Legal tuples; at `MOST_LEGAL` there may be more. 0: they were not counted."""


def pick(
    selector: Selector, default: Mapping[str, Any], files: Sequence[Path], limit: int
) -> Picked:
    """The default tuple, the stock selection, and those of the files.

    Without files, also every legal tuple: above `limit` a fixed selection in which all values of
    all parameters come up about equally often.

    Raises:
        Refused: a file's tuple is not one of this selector.
    """
    out = [Candidate("stock", None), Candidate("default", dict(default))]
    for path in files:
        taken = path.stem in [c.name for c in out]
        name = str(path) if taken else path.stem
        out.append(Candidate(name, commitment_of(selector, path)))
    if files:
        return Picked(tuple(out), 0)
    legal = list(itertools.islice(selector.tuples(), MOST_LEGAL))
    known = choice_key(default)
    rest = [(n, t) for n, t in enumerate(legal, start=1) if choice_key(t) != known]
    for number, commitment in spread_out(rest, limit):
        out.append(Candidate(f"#{number}", dict(commitment)))
    return Picked(tuple(out), len(legal))


def spread_out(
    tuples: Sequence[tuple[int, Mapping[str, Any]]], limit: int
) -> list[tuple[int, Mapping[str, Any]]]:
    """At most `limit` of some numbered tuples, the same ones every time, in order."""
    if len(tuples) <= limit:
        return list(tuples)
    pool = random.Random(0).sample(list(tuples), min(POOL, len(tuples)))  # noqa: S311
    seen: Counter[tuple[str, str]] = Counter()
    out = []
    for _ in range(limit):
        best = min(pool, key=lambda each: sum(seen[n, repr(v)] for n, v in each[1].items()))
        pool.remove(best)
        seen.update((n, repr(v)) for n, v in best[1].items())
        out.append(best)
    return sorted(out, key=lambda each: each[0])


def commitment_of(selector: Selector, path: Path) -> dict[str, Any]:
    """The pins and knobs that a tuple file holds for a selector's family.

    Raises:
        Refused: the file cannot be read, is of another selector, or its tuple is not legal.
    """
    place = Span(str(path), 1, 1, 1, 1)
    try:
        selector.package.load(path)
    except OSError as error:
        message = f"tuple file `{path}` cannot be read: {error.strerror}"
        raise Refused(Diagnostic(UNREADABLE, message, place, help="check the path")) from None
    except (selector.package.SelectionError, ValueError) as error:
        raise Refused(
            Diagnostic(
                NOT_A_SELECTOR,
                f"the tuple for `{selector.family}` cannot be used: {error}",
                place,
                help="write one with this selector's `commit` or with `selc tune`",
            )
        ) from None
    return dict(selector.package.pins())
