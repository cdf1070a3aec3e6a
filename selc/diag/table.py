"""Plain text tables: columns as wide as their longest cell, the last one wrapped, ASCII only."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

GAP: Final = "  "
NARROW: Final = 16
"""A last column is never made narrower than this."""


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, indent: str = "  "
) -> list[str]:
    """The lines of a table. Cells of all columns but the last are cut to keep room for it."""
    if not rows:
        return []
    count = len(head)
    sizes = [max(len(r[c]) for r in (head, *rows)) for c in range(count)]
    spare = width - len(indent) - len(GAP) * (count - 1)
    last = max(NARROW, spare - sum(sizes[:-1]))
    while sum(sizes[:-1]) > spare - min(last, NARROW) and max(sizes[:-1], default=0) > NARROW:
        sizes[sizes.index(max(sizes[:-1]))] -= 1
    last = max(NARROW, spare - sum(sizes[:-1]))
    lines = []
    for row in (head, *rows):
        cells = [short(row[c], sizes[c]).ljust(sizes[c]) for c in range(count - 1)]
        wrapped = textwrap.wrap(row[-1], last, break_on_hyphens=False) or [""]
        lines.append(indent + GAP.join([*cells, wrapped[0]]))
        blank = indent + GAP.join([" " * s for s in sizes[:-1]] + [""])
        lines += [blank + part for part in wrapped[1:]]
    return [line.rstrip() for line in lines]


def short(text: str, size: int) -> str:
    """A text cut in the middle to `size` characters."""
    if len(text) <= size:
        return text
    tail = (size - 3) // 2
    return text[: size - 3 - tail] + "..." + text[len(text) - tail :] if size > 8 else text[:size]


def listing(items: Sequence[str], most: int) -> str:
    """Items with commas; of long lists the ends, and how many there are."""
    if len(items) <= most:
        return ", ".join(items)
    return f"{', '.join(items[: most - 2])}, ..., {items[-1]} ({len(items)})"
