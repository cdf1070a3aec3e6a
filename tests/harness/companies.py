"""A request in other company and other places, for kernels of any family."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from selc.harness.call import Call, Request

OWN = Request(seed=5, rows=3, context=10)


def others(count: int) -> list[Request]:
    return [Request(100 + i, 1 + i % 3, 20 + i) for i in range(count)]


def companies(counts: Sequence[int]) -> Iterator[tuple[list[Request], slice]]:
    """Batches with OWN first, last and between others, and where its rows are."""
    for count in counts:
        rest = others(count)
        for place in {0, count // 2, count}:
            before = sum(r.rows for r in rest[:place])
            batch = [*rest[:place], OWN, *rest[place:]]
            yield batch, slice(before, before + OWN.rows)


def run(kernels, choice, requests, **extra):
    """A launch's output and the error against float64."""
    call = Call("", {}, {}, tuple(requests), extra)
    inputs = kernels.prepare(call, "cpu")
    output, reference = kernels.launch(choice, inputs), kernels.reference(inputs)
    assert output.shape == reference.shape
    return output, float((output.double() - reference).norm() / reference.norm())
