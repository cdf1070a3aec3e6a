"""What a workload is: arrivals, lengths, the engine that serves it, and how long a step takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal, cast

from selc.diag.span import Span
from selc.diag.suggest import did_you_mean
from selc.harness.synth.lengths import MOST, SHAPES, Lengths
from selc.harness.synth.placed import Placed, merged, parse, read, wrong

Process = Literal["poisson", "closed", "turns"]
PRESETS: Final = ("w-a", "w-b", "w-b-c")
PROCESSES: Final[tuple[Process, ...]] = ("poisson", "closed", "turns")
GROUPS: Final = ("engine", "step", "inputs")
NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "constant": ("value",),
    "uniform": ("min", "max"),
    "lognormal": ("mean", "sigma"),
    "geometric": ("mean",),
    "empirical": ("values",),
}


@dataclass(frozen=True, slots=True)
class Engine:
    """What bounds a batch. The names are the engines' own, in plain words."""

    chunk_budget: int = 8192
    """Tokens computed in a step; a longer prompt is computed in chunks."""
    max_requests: int = 256
    max_context: int = 32768
    page_size: int = 16
    kv_tokens: int = MOST
    """Tokens whose keys fit in memory; a request waits until it fits as a whole."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A step takes `overhead`, the longer of reading weights and computing, and attention."""

    overhead_us: float = 1000.0
    weights_us: float = 4000.0
    token_us: float = 27.0
    key_ns: float = 33.0
    """For every key that a request reads."""
    pair_ns: float = 1.3
    """For every pair of a query and a key."""

    def seconds(self, rows: int, keys: int, pairs: float) -> float:
        """The time of one step."""
        dense = max(self.weights_us, rows * self.token_us)
        return (self.overhead_us + dense) * 1e-6 + max(
            keys * self.key_ns, pairs * self.pair_ns
        ) * 1e-9


@dataclass(frozen=True, slots=True)
class Description:
    """A workload. `loads` are shares of the greatest throughput, or requests in flight (closed)."""

    process: Process
    prompt: Lengths
    """Of a request; in conversations, of what a turn adds."""
    output: Lengths
    requests: int
    loads: tuple[float, ...]
    turns: Lengths
    reuse: Literal["prompt", "all"]
    """How much of its conversation's last turn a request finds in the cache."""
    prefix: Lengths
    """Tokens at a prompt's start that are in the cache whoever asks; not in conversations."""
    engine: Engine
    cost: Cost
    inputs: Mapping[str, Any]
    """Of the selectors, where neither the batch nor the example says what is right."""
    places: Mapping[str, Span]
    """Where the description names them."""


def describe(preset: str | None, path: Path | None) -> Description:
    """A preset, a file, or a preset with what a file changes.

    Raises:
        Refused: the file cannot be read or says something wrong.
    """
    tree = None
    if preset is not None:
        own = Path(__file__).parent / "presets" / f"{preset}.yaml"
        tree = parse(own.read_text("utf-8"), own.name)
    if path is not None:
        file = read(path)
        tree = file if tree is None else merged(tree, file, GROUPS)
    assert tree is not None
    return _description(tree)


def check_load(load: float, process: Process) -> str:
    """What is wrong with a load, in words; empty if nothing."""
    if not math.isfinite(load) or load <= 0:
        return f"the load {load:g} is not positive"
    if process == "closed" and (load != int(load) or load > 1 << 20):
        return f"the load {load:g} is no number of requests in flight, which arrivals `closed` need"
    return ""


def _description(tree: Placed) -> Description:
    known = ("arrivals", "prompt", "output", "requests", "loads", "prefix", *GROUPS)
    _check_keys(tree, known, ("arrivals", "prompt", "output"))
    top = tree.entries
    arrivals = top["arrivals"]
    _check_keys(arrivals, ("process", "turns", "reuse"), ("process",))
    process = cast("Process", _one_of(arrivals.entries["process"], PROCESSES, "kind of arrivals"))
    for name in ("turns", "reuse"):
        if process != "turns" and name in arrivals.entries:
            hint = "write `process: turns`, or remove it"
            raise wrong(f"`{name}` is for conversations", arrivals.entries[name].key, hint)
    turns, reuse = arrivals.entries.get("turns"), arrivals.entries.get("reuse")
    if process == "turns" and turns is None:
        raise wrong("`turns` is missing", arrivals.span, "say how many turns conversations have")
    if process == "turns" and "prefix" in top:
        raise wrong("`prefix` is not for conversations", top["prefix"].key, "remove it")
    given = top.get("inputs")
    if given is not None:
        _check_keys(given, tuple(given.entries), ())
    loads = tuple(_loads(top["loads"], process)) if "loads" in top else (1.0,)
    return Description(
        process,
        _lengths(top["prompt"], 1),
        _lengths(top["output"], 1),
        _whole(top["requests"], 1) if "requests" in top else 200,
        loads,
        Lengths("constant") if turns is None else _lengths(turns, 1),
        "prompt" if reuse is None else cast("Any", _one_of(reuse, ("prompt", "all"), "reuse")),
        _lengths(top["prefix"], 0) if "prefix" in top else Lengths("constant", 0.0, least=0),
        Engine(**_numbers(top.get("engine"), Engine, lambda v: _whole(v, 1))),
        Cost(**_numbers(top.get("step"), Cost, lambda v: _real(v, 0.0))),
        {} if given is None else {name: _plain(value) for name, value in given.entries.items()},
        {} if given is None else {name: value.key for name, value in given.entries.items()},
    )


def _lengths(tree: Placed, least: int) -> Lengths:
    """A distribution, or a plain number for a constant one."""
    if not isinstance(tree.value, dict):
        return Lengths("constant", _whole(tree, least), least=least)
    if "distribution" not in tree.entries:
        raise wrong("`distribution` is missing", tree.span, "one of " + ", ".join(SHAPES))
    shape = _one_of(tree.entries["distribution"], SHAPES, "distribution")
    needed = NEEDED[shape]
    bounds = () if shape in ("constant", "empirical") else ("min", "max")
    _check_keys(tree, ("distribution", *needed, *bounds), needed)
    at = tree.entries
    low = _whole(at["min"], least) if "min" in at else least
    high = _whole(at["max"], low) if "max" in at else MOST
    if shape == "constant":
        return Lengths("constant", _whole(at["value"], least), least=least)
    if shape == "empirical":
        items = at["values"].value
        if not isinstance(items, tuple) or not items:
            raise wrong("`values` is a list of lengths", at["values"].span, "write [128, 512]")
        return Lengths("empirical", least=least, values=tuple(_whole(v, least) for v in items))
    mean = _real(at["mean"], 1.0) if "mean" in at else 1.0
    sigma = _real(at["sigma"], 0.0, 10.0) if "sigma" in at else 0.0
    return Lengths(cast("Any", shape), mean, sigma, low, high)


def _loads(tree: Placed, process: Process) -> list[float]:
    items = tree.value if isinstance(tree.value, tuple) else (tree,)
    if not items:
        raise wrong("`loads` is empty", tree.span, "write at least one")
    out = []
    for item in items:
        load = _real(item, 0.0)
        trouble = check_load(load, process)
        if trouble:
            raise wrong(trouble, item.span, "write a number above 0, whole for `closed`")
        out.append(load)
    return out


def _numbers(
    tree: Placed | None, record: type[Engine | Cost], number: Callable[[Placed], Any]
) -> dict[str, Any]:
    if tree is None:
        return {}
    _check_keys(tree, [f.name for f in fields(record)], ())
    return {name: number(value) for name, value in tree.entries.items()}


def _plain(tree: Placed) -> Any:
    if isinstance(tree.value, tuple):
        return [_plain(item) for item in tree.value]
    if isinstance(tree.value, dict):
        return {name: _plain(value) for name, value in tree.entries.items()}
    return tree.value


def _check_keys(tree: Placed, known: Any, needed: tuple[str, ...]) -> None:
    if not isinstance(tree.value, dict):
        raise wrong("a mapping is needed here", tree.span, f"it may have {', '.join(known)}")
    for name, value in tree.entries.items():
        if name not in known:
            hint = did_you_mean(name, known) or f"known here: {', '.join(known)}"
            raise wrong(f"there is no key `{name}`", value.key, hint)
    for name in needed:
        if name not in tree.entries:
            raise wrong(f"`{name}` is missing", tree.span, f"add `{name}:`")


def _one_of(tree: Placed, known: tuple[str, ...], what: str) -> str:
    if isinstance(tree.value, str) and tree.value in known:
        return tree.value
    hint = did_you_mean(str(tree.value), known) or "one of " + ", ".join(known)
    raise wrong(f"there is no {what} `{tree.value}`", tree.span, hint)


def _real(tree: Placed, least: float, most: float = 1e12) -> float:
    value = tree.value
    if type(value) not in (int, float):
        raise wrong("a number is needed here", tree.span, "write one")
    if not least <= value <= most:
        raise wrong(f"{value} is not in {least:g}..{most:g}", tree.span, "change it")
    return float(value)


def _whole(tree: Placed, least: int) -> int:
    value = tree.value
    if type(value) is float and value == value and abs(value) <= MOST and value == int(value):
        value = int(value)
    if type(value) is not int:
        raise wrong("a whole number is needed here", tree.span, "write one")
    if not least <= value <= MOST:
        raise wrong(f"{value} is not in {least}..{MOST}", tree.span, "change it")
    return value
