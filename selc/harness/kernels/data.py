"""Numbers that follow from a seed and a place alone, the same on every device.

The integers of a counter are mixed and four parts of the result added, which is close enough to a
normal distribution. Everything up to the last multiplication is exact, so a CPU and a GPU agree.
"""

from __future__ import annotations

from typing import Any, Final

CHUNK: Final = 1 << 24
WORD: Final = (1 << 64) - 1
GOLDEN: Final = 0x9E3779B97F4A7C15
SPREAD: Final = 3.0**0.5 / 65536
"""One over the deviation of the sum of four 16-bit numbers."""


def normal(
    seed: int, stream: int, start: int, count: int, device: str, powers: tuple[float, ...] = ()
) -> Any:
    """Numbers `start` to `start + count` of a stream of a seed, float32.

    With `powers` each number is multiplied by one of them, at random.
    """
    import torch

    key = _signed(mixed(mixed(seed) + stream))
    out = torch.empty(count, dtype=torch.float32, device=device)
    scales = torch.tensor(powers, dtype=torch.float32, device=device) if powers else None
    for low in range(0, count, CHUNK):
        high = min(low + CHUNK, count)
        words = torch.arange(start + low, start + high, dtype=torch.int64, device=device)
        words = _mix(words.mul_(_signed(GOLDEN)).add_(key))
        total = (words & 0xFFFF) + (words >> 16 & 0xFFFF) + (words >> 32 & 0xFFFF)
        total += words >> 48 & 0xFFFF
        part = out[low:high]
        part.copy_(total - 2 * 0xFFFF).mul_(SPREAD)
        if scales is not None:
            part.mul_(scales[(_mix(words) & 0xFFFF) % len(powers)])
    return out


def mixed(value: int) -> int:
    """An integer to a 64-bit one that looks like any other."""
    value = (value + GOLDEN) & WORD
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & WORD
    return value ^ (value >> 31)


def _mix(words: Any) -> Any:
    words = words ^ (words >> 30 & (1 << 34) - 1)
    words.mul_(_signed(0xBF58476D1CE4E5B9))
    words ^= words >> 27 & (1 << 37) - 1
    words.mul_(_signed(0x94D049BB133111EB))
    words ^= words >> 31 & (1 << 33) - 1
    return words


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
