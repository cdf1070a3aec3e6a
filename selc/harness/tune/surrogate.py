"""What a launch's time is expected to be, from the times of other launches.

A Gaussian process over the logarithm of the time. Two launches are alike if their choices are (each
parameter by itself, and all of them together) and if their calls are; what a choice has of its own
is shared by all calls that get it. Scales are those under which the measured times are likeliest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeGuard

WIDTH: Final = 1.2
"""Prior: how far apart, in spans of a parameter, choices stop telling about each other."""
AT_ONCE: Final = 4_000_000
"""Numbers that are held at a time."""
LEVELS: Final = (-1.2, -0.6, 0.6, 1.2)


class Encoder:
    """Turns mappings into points: numbers as logarithms over their span, all else as 0 or 1.

    Zero and negative numbers mean something else than small ones (no split, say) and get an
    axis of their own.
    """

    def __init__(self, seen: Sequence[Mapping[str, Any]]) -> None:
        self._axes: list[tuple[str, str, float, float, Any]] = []
        for name in sorted({n for each in seen for n in each}):
            values = [each.get(name) for each in seen]
            numbers = sorted({math.log2(v) for v in values if _scales(v)})
            if len(numbers) > 1:
                span = max(numbers[-1] - numbers[0], 1.0)
                middle = (numbers[-1] + numbers[0]) / 2
                self._axes.append((name, "log", middle, span, None))
            others = {repr(v): v for v in values if not _scales(v)}
            kinds = len(others) + bool(numbers)
            if kinds > 1:
                for text in sorted(others)[: kinds - 1 if kinds == 2 else None]:
                    self._axes.append((name, "is", 0.0, 1.0, others[text]))
        self.groups = [name for name, *_ in self._axes]

    def __call__(self, each: Mapping[str, Any]) -> list[float]:
        """The point of a mapping."""
        out = []
        for name, kind, middle, span, value in self._axes:
            mine = each.get(name)
            if kind == "log":
                out.append((math.log2(mine) - middle) / span if _scales(mine) else 0.0)
            else:
                out.append(float(type(mine) is type(value) and mine == value))
        return out


def _scales(value: Any) -> TypeGuard[float]:
    return type(value) in (int, float) and value > 0 and math.isfinite(value)


@dataclass(frozen=True, slots=True)
class Scales:
    """Logarithms of what the process is made of."""

    alone: float = -3.0
    together: float = -1.6
    own: float = -6.5
    single: float = -20.0
    noise: float = -8.0
    calls: float = 0.0
    steady: float = -0.7
    widths: tuple[float, ...] = field(default=())


TOLD: Final = Scales(-5.5, -4.2, -8.0, -7.5, calls=-1.0, steady=-1.7)
"""Where an estimate says most of it."""
TRUST: Final = 0.3
"""By what part the effect of a choice may be larger or smaller than an estimate says."""

PRIORS: Final = {
    "alone": 1.5, "together": 1.5, "own": 0.3, "single": 0.5, "noise": 1.0, "calls": 0.8,
    "steady": 1.0, "widths": 0.7,
}  # fmt: skip


class Surrogate:
    """The process, given measured times of (call, choice) pairs."""

    def __init__(
        self, choices: Any, calls: Any, names: Sequence[str] = (), expected: Any = None
    ) -> None:
        """`expected[c][k]` is the logarithm that somebody expects of choice k on call c."""
        import numpy as np

        self._np = np
        self._parts = _parts(names)
        self._x = np.asarray(choices, float).reshape(len(choices), -1)
        self._c = np.asarray(calls, float).reshape(len(calls), -1)
        self._told = expected is not None
        self._priors = PRIORS | ({"alone": 1.0, "together": 1.0} if self._told else {})
        size = len(self._c), len(self._x)
        self._expected = np.asarray(expected, float) if self._told else np.zeros(size)
        self._tilt = self._expected - self._expected.mean(1, keepdims=True)
        start = TOLD if self._told else Scales()
        self.scales = replace(start, widths=(0.0,) * self._x.shape[1])
        self._start = self.scales

    def fit(self, which: Any, call: Any, log_seconds: Any, spread: float, sweeps: int = 2) -> None:
        """Take measured times in: indices of choices and of calls, and logarithms.

        `spread` is the relative deviation that a time of these is known to have.
        """
        np = self._np
        self._i, self._j = np.asarray(which), np.asarray(call)
        y = np.asarray(log_seconds, float) - self._expected[self._j, self._i]
        self._known = np.unique(self._j)
        self._means = np.zeros(len(self._c))
        self._start = replace(self._start, noise=2 * math.log(max(spread, 2e-3)))
        self.scales = replace(self.scales, noise=self._start.noise)
        self._y = y
        distances = (self._x[self._i][:, None, :] - self._x[self._i][None, :, :]) ** 2
        apart = ((self._c[self._j][:, None, :] - self._c[self._j][None, :, :]) ** 2).sum(-1)
        best, score = self.scales, self._score(self.scales, distances, apart)
        for _ in range(sweeps):
            for name, at in self._coordinates():
                for step in LEVELS:
                    trial = _moved(best, name, at, step)
                    value = self._score(trial, distances, apart)
                    if value > score:
                        best, score = trial, value
        self.scales = best
        self._solve(best, distances, apart)

    def _coordinates(self) -> list[tuple[str, int]]:
        names = [(n, 0) for n in PRIORS if n != "widths"]
        return names + [("widths", k) for k in range(self._x.shape[1])]

    def _between(self, s: Scales, distances: Any, apart: Any) -> Any:
        np = self._np
        widths = WIDTH * np.exp(np.asarray(s.widths))
        scaled = distances / (2 * widths**2)
        alike = math.exp(s.alone) * np.exp(-scaled).sum(-1)
        for part in self._parts:
            alike += math.exp(s.together) * np.exp(-scaled[..., part].sum(-1))
        if len(self._parts) > 1:
            alike += math.exp(s.together - 1) * np.exp(-scaled.sum(-1))
        return self._across(s, apart) * alike

    def _across(self, s: Scales, apart: Any) -> Any:
        """How alike calls are: a part of it whatever they are."""
        steady = math.exp(s.steady) / (1 + math.exp(s.steady))
        return steady + (1 - steady) * self._np.exp(-apart / (2 * math.exp(2 * s.calls)))

    def _own(self, s: Scales, distances: Any) -> Any:
        """What equal choices share beyond being alike, and choices that are equal in a part."""
        whole = math.exp(s.own) * (distances.sum(-1) == 0)
        if len(self._parts) > 1:
            for part in self._parts:
                whole = whole + math.exp(s.own) * (distances[..., part].sum(-1) == 0)
        return whole

    def _matrix(self, s: Scales, distances: Any, apart: Any) -> Any:
        np = self._np
        k = self._between(s, distances, apart) + self._own(s, distances)
        tilt = self._tilt[self._j, self._i]
        k += TRUST**2 * tilt[:, None] * tilt[None, :] * self._across(s, apart)
        k[np.diag_indices_from(k)] += math.exp(s.noise) + math.exp(s.single) + 1e-9
        return k

    def _trend(self) -> Any:
        """One column a call: its mean is free, nearly."""
        np = self._np
        h = np.zeros((len(self._y), len(self._known)))
        h[np.arange(len(self._y)), np.searchsorted(self._known, self._j)] = 1.0
        return h

    def _score(self, s: Scales, distances: Any, apart: Any) -> float:
        """The logarithm of the likelihood with the calls' means taken out, and the prior."""
        np = self._np
        k = self._matrix(s, distances, apart)
        try:
            root = np.linalg.cholesky(k)
        except np.linalg.LinAlgError:
            return -math.inf
        h = np.linalg.solve(root, np.column_stack([self._trend(), self._y]))
        h, y = h[:, :-1], h[:, -1]
        normal = h.T @ h + 1e-6 * np.eye(h.shape[1])
        beta = np.linalg.solve(normal, h.T @ y)
        rest = y - h @ beta
        value = -0.5 * float(rest @ rest) - float(np.log(np.diag(root)).sum())
        value -= 0.5 * float(np.linalg.slogdet(normal)[1])
        for name, at in self._coordinates():
            value -= (
                0.5 * ((_at(s, name, at) - _at(self._start, name, at)) / self._priors[name]) ** 2
            )
        return value

    def _solve(self, s: Scales, distances: Any, apart: Any) -> None:
        np = self._np
        k = self._matrix(s, distances, apart)
        self._root = np.linalg.cholesky(k)
        h = np.linalg.solve(self._root, np.column_stack([self._trend(), self._y]))
        h, y = h[:, :-1], h[:, -1]
        beta = np.linalg.solve(h.T @ h + 1e-6 * np.eye(h.shape[1]), h.T @ y)
        self._means[:] = beta.mean()
        self._means[self._known] = beta
        self._rest = np.linalg.solve(self._root.T, y - h @ beta)

    def predict(self, which: Any) -> tuple[Any, Any]:
        """Expected logarithms, candidate by call, and their covariance over the calls.

        `which[t][c]` is the number of the choice that candidate t gives call c.
        """
        np = self._np
        size = max(1, AT_ONCE // (len(self._y) * which.shape[1] * max(1, self._x.shape[1])))
        parts = [self._some(which[k : k + size]) for k in range(0, len(which), size)]
        return np.concatenate([m for m, _ in parts]), np.concatenate([c for _, c in parts])

    def joint(self, choice: Any, call: Any) -> tuple[Any, Any]:
        """Expected logarithms of some launches, and their covariance."""
        np = self._np
        cross = self._alike(self._i, self._j, choice, call)
        mean = self._means[call] + self._expected[call, choice] + cross.T @ self._rest
        v = np.linalg.solve(self._root, cross)
        return mean, self._alike(choice, call, choice, call) - v.T @ v

    def _some(self, which: Any) -> tuple[Any, Any]:
        np = self._np
        count, calls = which.shape
        every = np.arange(calls)
        flat, column = which.reshape(-1), np.tile(every, count)
        cross = self._alike(self._i, self._j, flat, column)
        level = self._means[column] + self._expected[column, flat]
        mean = (level + cross.T @ self._rest).reshape(count, calls)
        v = np.linalg.solve(self._root, cross).reshape(len(self._y), count, calls)
        distances = (self._x[which][:, :, None, :] - self._x[which][:, None, :, :]) ** 2
        apart = ((self._c[:, None, :] - self._c[None, :, :]) ** 2).sum(-1)
        tilt = self._tilt[every, which]
        prior = self._between(self.scales, distances, apart[None])
        prior += self._own(self.scales, distances)
        prior += TRUST**2 * tilt[:, :, None] * tilt[:, None, :] * self._across(self.scales, apart)
        prior += math.exp(self.scales.single) * np.eye(calls)
        return mean, prior - np.einsum("ntc,ntd->tcd", v, v, optimize=True)

    def _alike(self, choice: Any, call: Any, others: Any, calls: Any) -> Any:
        """Prior covariance of some launches with some others."""
        s = self.scales
        distances = (self._x[choice][:, None, :] - self._x[others][None, :, :]) ** 2
        apart = ((self._c[call][:, None, :] - self._c[calls][None, :, :]) ** 2).sum(-1)
        tilt = self._tilt[call, choice][:, None] * self._tilt[calls, others][None, :]
        tilt *= self._across(s, apart)
        same = (call[:, None] == calls) & (choice[:, None] == others)
        found = self._between(s, distances, apart) + self._own(s, distances)
        return found + TRUST**2 * tilt + math.exp(s.single) * same


def _parts(names: Sequence[str]) -> list[list[int]]:
    """The axes of each part of a launch (`gate_up`, `down`), or all of them."""
    parts: dict[str, list[int]] = {}
    for axis, name in enumerate(names):
        if "." in name:
            parts.setdefault(name.rsplit(".", 1)[0], []).append(axis)
    return list(parts.values()) if len(parts) > 1 else [list(range(len(names)))]


def _at(s: Scales, name: str, at: int) -> float:
    value = getattr(s, name)
    return float(value[at] if name == "widths" else value)


def _moved(s: Scales, name: str, at: int, step: float) -> Scales:
    if name != "widths":
        return replace(s, **{name: getattr(s, name) + step})
    widths = list(s.widths)
    widths[at] += step
    return replace(s, widths=tuple(widths))
