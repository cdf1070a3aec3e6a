"""Answers by running CPython functions, written without the analyses."""

from __future__ import annotations

import contextlib
import itertools


class Stop(Exception):
    """A guard failed."""


FAULTS = (Stop, AssertionError, ValueError, TypeError, ArithmeticError, LookupError)


class Run:
    """One run: sees sites, overwrites some, raises where a guard fails."""

    def __init__(self, over=None):
        self.over, self.seen = over or {}, {}

    def site(self, name, value):
        self.seen[name] = value
        return self.over.get(name, value)


def key(v):
    return (type(v).__name__, v) if not isinstance(v, tuple) else ("tuple", *map(key, v))


def inputs(spec):
    names = list(spec)
    return [
        dict(zip(names, row, strict=True))
        for row in itertools.product(*(d for _, d in spec.values()))
    ]


def admitted(spec, assume):
    return [p for p in inputs(spec) if assume(**p)]


def taken(f, rows):
    """Name -> {key: (value, count)}."""
    out: dict = {}
    for p in rows:
        run = Run()
        with contextlib.suppress(*FAULTS):
            f(run, **p)
        for name, v in run.seen.items():
            old = out.setdefault(name, {}).get(key(v), (v, 0))
            out[name][key(v)] = (v, old[1] + 1)
    return out


def outcome(f, p, over=None):
    try:
        return f(Run(over), **p)
    except FAULTS:
        return None


def depends(f, spec, assume, batch, point):
    rows = inputs(spec)
    shown = {tuple(map(key, p.values())): outcome(f, p) for p in rows}
    moved = set()
    for name in batch:
        lines: dict = {}
        for p in rows:
            res = shown[tuple(map(key, p.values()))]
            if res is not None:
                rest = tuple(key(v) for k, v in p.items() if k != name)
                lines.setdefault(rest, set()).add(key(res[point]))
        if any(len(s) > 1 for s in lines.values()):
            moved.add(name)
    groups: dict = {}
    for p in rows:
        if assume(**p):
            res = shown[tuple(map(key, p.values()))]
            if res is not None:
                rest = tuple(key(v) for k, v in p.items() if k not in batch)
                groups.setdefault(rest, set()).add(key(res[point]))
    return moved, any(len(s) > 1 for s in groups.values())


def legal(f, spec, assume, axes, named, knobs=()):
    """All legal rows over sorted pins then sorted knobs; `named`: point -> its site (not aux)."""
    names = sorted(axes)
    rows = admitted(spec, assume)
    out = set()
    for values in itertools.product(*(axes[n] for n in names)):
        over = dict(zip(names, values, strict=True))
        good: dict = {}
        for p in rows:
            setting = tuple(p[k] for k in sorted(knobs))
            first = outcome(f, p, over)
            ok = first is not None
            if ok:
                ok = outcome(f, p, {s: first[point] for point, s in named.items()}) is not None
            good[setting] = good.get(setting, True) and ok
        out |= {(*values, *setting) for setting, ok in good.items() if ok}
    return out
