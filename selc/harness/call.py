"""One launch of a workload: what the selector is asked, and the requests that it serves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from selc.diag.diagnostic import Diagnostic, Refused

MISSING: Final = "SEL950"
ROWS: Final = ("num_tokens", "M", "m", "num_rows", "total_q", "tokens")
COUNT: Final = ("batch_size", "num_reqs", "num_seqs", "bs", "b")
LONGEST_ROWS: Final = ("max_seqlen_q", "max_query_len", "sq")
LONGEST: Final = ("max_seqlen_k", "max_seq_len", "max_kv_len", "sk", "seqlen_k")
TOTAL: Final = ("total_k", "total_kv", "num_kv_tokens")


@dataclass(frozen=True, slots=True)
class Request:
    """A request's part of one launch.

    `seed` makes its data: equal seeds are the same request, whatever it is batched with. `rows` of
    its tokens are computed now, and `context` counts its tokens up to the last of them. `cached`
    of them came out of a prefix cache, which changes where they lie and not what they are.
    """

    seed: int
    rows: int
    context: int
    cached: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """One launch.

    `inputs` are the selector's, by name; `facts` the deployment's, nested as in a facts file;
    `extra` is whatever else a kernel needs (`page_size`, `layout`, `magnitude`, a fact the
    selection never read), and may hold `requests`.
    """

    family: str
    inputs: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    requests: tuple[Request, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Tokens that are computed in this launch."""
        return sum(r.rows for r in self.requests)

    @property
    def key(self) -> str:
        """The call as canonical JSON: equal keys are the same work."""
        requests = [[r.seed, r.rows, r.context, r.cached] for r in self.requests]
        extra = {k: v for k, v in self.extra.items() if k != "requests"}
        body = {"family": self.family, "inputs": dict(self.inputs), "requests": requests}
        return json.dumps({**body, "extra": extra}, sort_keys=True)

    def get(self, *names: str) -> Any:
        """The first of some values that is there: in `extra`, `inputs`, then the facts.

        A name is a fact's whole path (`model.head_dim`) or its last part.

        Raises:
            Refused: none is there; the message says how to give one.
        """
        found = self.find(*names)
        if found is None:
            raise Refused(
                Diagnostic(
                    MISSING,
                    f"the kernels of `{self.family}` need `{names[0]}`, which is neither in the "
                    "profile's `extra` nor among the selector's facts",
                    help=f"give it with `--set {names[0]}=VALUE`",
                )
            )
        return found

    def find(self, *names: str, default: Any = None) -> Any:
        """As `get`, with a default."""
        for name in names:
            for where in (self.extra, self.inputs):
                if where.get(name) is not None:
                    return where[name]
            fact = _fact(self.facts, name)
            if fact is not None:
                return fact
        return default


def requests_of(inputs: Mapping[str, Any], extra: Mapping[str, Any]) -> tuple[Request, ...]:
    """The requests of a profile's call: as recorded under `extra`, else the plainest batch.

    Without a record the requests are alike: as many as the batch size says (one if nothing does),
    all as long as the longest. That is the most work that these inputs can mean.
    """
    recorded = extra.get("requests")
    if recorded is not None:
        return tuple(Request(*(int(v) for v in each)) for each in recorded)
    rows = _first(inputs, ROWS)
    longest_rows = _first(inputs, LONGEST_ROWS)
    longest = _first(inputs, LONGEST)
    count = _first(inputs, COUNT)
    if count is None:
        count = max(1, rows // longest_rows) if rows and longest_rows else (rows or 1)
        if longest is None:
            count, longest_rows = 1, rows or 1
    each = longest_rows or max(1, (rows or count) // count)
    context = max(longest or each, each)
    total = rows if rows is not None else each * count
    out = []
    for index in range(count):
        mine = min(each, max(1, total - (count - index - 1)))
        total -= mine
        out.append(Request(index, mine, context))
    return tuple(out)


def inputs_of(
    requests: Sequence[Request], names: Mapping[str, Any], given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What a selector is asked for a batch.

    `names` are the selector's inputs with the value each has where nothing says otherwise (the
    manifest's example); those whose meaning is known by name are computed, `given` ones win.
    """
    rows = [r.rows for r in requests]
    known = {
        **dict.fromkeys(ROWS, sum(rows)),
        **dict.fromkeys(COUNT, len(requests)),
        **dict.fromkeys(LONGEST_ROWS, max(rows, default=1)),
        **dict.fromkeys(LONGEST, max((r.context for r in requests), default=1)),
        **dict.fromkeys(TOTAL, sum(r.context for r in requests)),
    }
    out = {}
    for name, example in names.items():
        out[name] = known.get(name.rsplit(".", 1)[-1], example)
    out.update({k: v for k, v in (given or {}).items() if k in names})
    return out


def _first(inputs: Mapping[str, Any], names: Sequence[str]) -> int | None:
    for name, value in inputs.items():
        if name.rsplit(".", 1)[-1] in names and type(value) is int:
            return value
    return None


def _fact(facts: Mapping[str, Any], name: str) -> Any:
    at: Any = facts
    for part in name.split("."):
        at = at.get(part) if isinstance(at, Mapping) else None
    if at is not None or "." in name:
        return at
    for value in facts.values():
        if isinstance(value, Mapping) and value.get(name) is not None:
            return value[name]
    return None
