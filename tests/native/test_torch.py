"""Inside an engine: under torch.compile, in a custom operator, and in forked workers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.native.kit import attention
from tests.unit.codegen.selectors import load, write

if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch", reason="torch is not installed", exc_type=ImportError)
pytestmark = [pytest.mark.native, pytest.mark.slow]


@pytest.fixture(scope="module", name="module")
def _module(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return load(write(attention().spec(), tmp_path_factory.mktemp("torch")))


def compiled(function: Callable[..., Any], **options: Any) -> tuple[Callable[..., Any], list[Any]]:
    """The function under Dynamo, and the graphs that it makes."""
    torch._dynamo.reset()
    graphs: list[Any] = []

    def backend(graph: Any, example: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    return torch.compile(function, backend=backend, **options), graphs


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("dynamic", [None, True])
def test_in_a_custom_operator_it_is_opaque(module: Any, native: bool, dynamic: bool | None) -> None:
    """No graph break, and a selection for every call: also after a repin."""
    select = module.select if native else module._python_select
    seen: list[int] = []
    name = f"selc_test::scaled_{int(native)}_{str(dynamic).lower()}"

    @torch.library.custom_op(name, mutates_args=())  # type: ignore[untyped-decorator]
    def scaled(x: torch.Tensor, kv_len: int) -> torch.Tensor:
        choice = select(num_tokens=x.shape[0], kv_len=kv_len, causal=True)
        seen.append(choice.tile.m)
        return x * choice.num_splits

    @scaled.register_fake  # type: ignore[untyped-decorator]
    def _(x: Any, kv_len: int) -> Any:
        return torch.empty_like(x)

    def layer(x: torch.Tensor, kv_len: int) -> torch.Tensor:
        return scaled(x + 1, kv_len) + 1

    module.repin({"attention.num_splits": 1})
    run, graphs = compiled(layer, fullgraph=True, dynamic=dynamic)
    for tokens in (3, 4, 5, 17):
        x = torch.ones(tokens, 2)
        assert torch.equal(run(x, 4096), layer(x, 4096))
    made = len(graphs)
    module.repin({"attention.num_splits": 4})
    x = torch.ones(17, 2)
    assert torch.equal(run(x, 4096), (x + 1) * 4 + 1)
    assert seen[-1] == 1024
    assert len(graphs) == made  # a repin compiles nothing
    assert made <= 2
    with pytest.raises(module.SelectionError, match="16 \\* num_splits"):
        run(x, 48)
    module.repin({"attention.num_splits": 1})


def test_called_directly_it_runs_outside_of_the_graph(module: Any) -> None:
    """Dynamo cuts the graph at the call, runs it as it is, and goes on: the result is right."""

    def layer(x: torch.Tensor, kv_len: int) -> torch.Tensor:
        y = x + 1
        choice = module.select(num_tokens=x.shape[0], kv_len=kv_len, causal=True)
        return y * choice.num_splits

    module.repin({"attention.num_splits": 2})
    whole, _ = compiled(layer, fullgraph=True)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        whole(torch.ones(3, 2), 4096)
    run, graphs = compiled(layer, dynamic=False)
    run(torch.ones(3, 2), 4096)
    assert len(graphs) == 2  # before the call and after it
    for tokens in (3, 4):
        x = torch.ones(tokens, 2)
        assert torch.equal(run(x, 4096), (x + 1) * 2)
    module.repin({"attention.num_splits": 4})
    assert torch.equal(run(torch.ones(4, 2), 4096), torch.ones(4, 2) * 8)
    with pytest.raises(module.SelectionError):
        run(torch.ones(4, 2), 48)
    module.repin({"attention.num_splits": 1})


def test_choices_made_before_are_constants_of_the_graph(module: Any) -> None:
    """A choice that was made outside is a constant inside, in one whole graph."""

    def layer(x: torch.Tensor, num_splits: int, pack: bool) -> torch.Tensor:
        return (x * num_splits).neg() if pack else x * num_splits

    run, graphs = compiled(layer, fullgraph=True)
    choice = module.select(17, 4096, True)
    x = torch.ones(3)
    assert torch.equal(run(x, choice.num_splits, choice.tile.pack), x * choice.num_splits)
    assert len(graphs) == 1


def test_numpy_integers_and_tensors(module: Any) -> None:
    numpy = pytest.importorskip("numpy")
    plain = module.select(17, 4096, True)
    for kind in (numpy.int32, numpy.int64, numpy.uint16):
        assert module.select(kind(17), kind(4096), True) is plain
    assert module.select(torch.ones(17).shape[0], 4096, True) is plain
    for wrong in (numpy.float64(17.0), numpy.bool_(True), torch.tensor(17.5)):
        with pytest.raises(module.SelectionError):
            module.select(wrong, 4096, True)
    with pytest.raises(module.SelectionError, match="outside the declared range"):
        module.select(numpy.uint64((1 << 64) - 1), 4096, True)


def test_in_a_forked_worker_after_torch(module: Any, tmp_path: Path) -> None:
    module.repin({"attention.num_splits": 2})
    child = os.fork()
    if child == 0:
        good = module.select(17, 4096, True).num_splits == 2
        module.repin({"attention.num_splits": 4})
        good = good and module.select(17, 4096, True).num_splits == 4
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert module.select(17, 4096, True).num_splits == 2
    module.repin({"attention.num_splits": 1})
