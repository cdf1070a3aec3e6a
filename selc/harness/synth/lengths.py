"""Distributions of whole numbers: lengths in tokens, turns of a conversation."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Final, Literal

Shape = Literal["constant", "uniform", "lognormal", "geometric", "empirical"]
SHAPES: Final[tuple[Shape, ...]] = ("constant", "uniform", "lognormal", "geometric", "empirical")
MOST: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Lengths:
    """Draws are cut to [least, most]; `mean` is that before cutting."""

    shape: Shape
    mean: float = 1.0
    sigma: float = 0.0
    """Of the logarithm (lognormal)."""
    least: int = 1
    most: int = MOST
    values: tuple[int, ...] = ()

    def draw(self, source: random.Random) -> int:
        """One length."""
        return max(self.least, min(self.most, self._draw(source)))

    def _draw(self, source: random.Random) -> int:
        match self.shape:
            case "constant":
                return round(self.mean)
            case "uniform":
                return source.randint(self.least, self.most)
            case "lognormal":
                mu = math.log(self.mean) - self.sigma**2 / 2
                return round(min(source.lognormvariate(mu, self.sigma), MOST))
            case "geometric":
                if self.mean <= 1:
                    return 1
                return 1 + int(math.log(1.0 - source.random()) / math.log1p(-1 / self.mean))
            case "empirical":
                return source.choice(self.values)
