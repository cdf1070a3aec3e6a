"""What a deployment makes of a workload: the engine within it, and the selectors' inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from selc.diag.diagnostic import Refused
from selc.harness.call import COUNT, LONGEST, LONGEST_ROWS, ROWS, TOTAL, Call, Request, inputs_of
from selc.harness.selector import Selector
from selc.harness.synth.description import Engine

BOUNDS: Final[Mapping[str, tuple[Sequence[str], str]]] = {
    "chunk_budget": ((*ROWS, *LONGEST_ROWS), "max_num_batched_tokens"),
    "max_requests": (COUNT, "max_num_seqs"),
    "max_context": (LONGEST, "max_model_len"),
    "kv_tokens": (TOTAL, "kv_tokens"),
}
"""What bounds each of the engine's numbers: the ends of inputs, and a fact."""
KNOWN: Final = frozenset((*ROWS, *COUNT, *LONGEST_ROWS, *LONGEST, *TOTAL))


def within(engine: Engine, selectors: Sequence[Selector]) -> tuple[Engine, list[str]]:
    """The engine with nothing larger than the selectors were compiled for, and what changed."""
    notes = []
    for selector in selectors:
        facts = Call(selector.family, {}, selector.facts)
        for name, (inputs, fact) in BOUNDS.items():
            bounds = [(facts.find(fact), f"the fact `{fact}`")]
            bounds += [
                (_end(each), f"`{each['name']}`")
                for each in selector.manifest["inputs"]
                if _last(each["name"]) in inputs
            ]
            for bound, why in bounds:
                if type(bound) is int and 0 < bound < getattr(engine, name):
                    notes.append(f"{name} is {bound}: so far goes {why} of `{selector.family}`")
                    engine = replace(engine, **{name: bound})
        page = facts.find("page_size")
        if type(page) is int and page > 0 and page != engine.page_size:
            notes.append(f"page_size is {page}: a fact of `{selector.family}`")
            engine = replace(engine, page_size=page)
    return engine, notes


class Asker:
    """One selector: a batch's inputs, and whether its default tuple takes them."""

    def __init__(self, selector: Selector, given: Mapping[str, Any]) -> None:
        self.selector = selector
        self.given = {k: v for k, v in given.items() if k in selector.examples}
        self.names = selector.examples
        self.fitted = {
            each["name"]: each
            for each in selector.manifest["inputs"]
            if _last(each["name"]) in KNOWN and each["name"] not in self.given
        }
        self.reads_lengths = any(_last(n) in KNOWN and _last(n) not in ROWS for n in self.fitted)
        self._answers: dict[tuple[Any, ...], str] = {}

    @property
    def unknown(self) -> list[str]:
        """Inputs that neither the batch nor the description says; they keep their example."""
        return [n for n in self.names if n not in self.fitted and n not in self.given]

    def ask(self, requests: Sequence[Request]) -> tuple[dict[str, Any], str]:
        """The inputs, rounded up to what is declared; why they are refused, or nothing."""
        inputs = inputs_of(requests, self.names, self.given)
        for name, declared in self.fitted.items():
            value = _rounded(inputs[name], declared)
            if value is None:
                return inputs, f"`{name}` is outside the declared {_domain(declared)}"
            inputs[name] = value
        key = tuple(inputs[name] for name in self.fitted)
        if key not in self._answers:
            self._answers[key] = self._refusal(inputs)
        return inputs, self._answers[key]

    def _refusal(self, inputs: Mapping[str, Any]) -> str:
        assert self.selector.default is not None
        try:
            self.selector.choice(self.selector.default, inputs)
        except Refused as refused:
            error = refused.__context__
            guard = getattr(error, "guard", None)
            if guard is None:
                return str(error)
            return f"`{guard}` does not hold ({getattr(error, 'location', '')})"
        return ""


def _last(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def _numbers(declared: Mapping[str, Any]) -> list[int]:
    return sorted(v for v in declared.get("values") or () if type(v) is int)


def _end(declared: Mapping[str, Any]) -> int | None:
    if "range" in declared:
        end = declared["range"][1]
        return end if type(end) is int else None
    return max(_numbers(declared), default=None)


def _rounded(value: int, declared: Mapping[str, Any]) -> int | None:
    """The least declared value that is not below; None if there is none."""
    if "range" in declared:
        low, high = declared["range"]
        step = declared.get("multiple_of", 1)
        up = low + max(0, -(-(value - low) // step)) * step
        return up if up <= high else None
    return next((v for v in _numbers(declared) if v >= value), None)


def _domain(declared: Mapping[str, Any]) -> str:
    if "range" in declared:
        low, high = declared["range"]
        return f"{low}..{high}"
    return f"values up to {max(_numbers(declared), default='none')}"
