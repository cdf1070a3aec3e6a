"""The one place where tests of whole selections touch the driver and the front end.

Tests say what they want in the words of the product; what has to be called for it stands here.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from selc.diag.diagnostic import Refused, Sink
from selc.ir.graph import Graph, Node
from selc.ir.program import Program
from selc.ir.residual import Residual, ResidualGuard

Pass = Callable[[Graph, Sequence[Node], Sequence[Node]], tuple[Graph, dict[Node, Node]]]


class Missing(Exception):
    """A part of the compiler that this needs is not there."""


def lower(source: Path | str, facts: Sequence[Path], roots: Sequence[Path] = ()) -> Program:
    """G0 of the selection in a file, or of a target in a package under one of `roots`.

    Raises:
        Refused: the source or the facts are wrong or not supported.
    """
    from selc.frontend.facts import load_facts
    from selc.frontend.lower import lower as lower_target

    sink = Sink()
    stated = load_facts(facts, sink)
    if sink.has_errors:
        raise Refused(*sink)
    return lower_target(str(source), stated, tuple(roots), sink)


def passes() -> list[tuple[str, Pass]]:
    """The simplifying passes in the order in which the driver runs them."""
    from selc.passes.simplify import PASSES

    return [(each.name, each.run) for each in PASSES]


def emit(program: Program, out: Path, native: bool) -> ModuleType:
    """Write the selector of a program in which nothing is pinned, and import it."""
    from selc.codegen.package import emit as write
    from selc.codegen.spec import Argument, KnobSpec, SelectorSpec, Sequence
    from selc.driver.arguments import arguments
    from selc.ir.domain import Input

    graph = program.graph
    inputs = list(graph.inputs.values())
    knobs = [i for i in inputs if i.kind == "knob"]
    settings = {k.name: program.settings.get(k.name, k.domain[0]) for k in knobs}
    holds = [(g, graph.either(graph.negate(g.path), g.cond)) for g in program.guards]
    residual = Residual(
        graph=graph,
        scope=program.scope,
        points=[(p, p.node) for p in program.points],
        guards=[ResidualGuard(g, node) for g, node in holds if g.kind == "require"],
        assumes=[(g, node) for g, node in holds if g.kind == "assume"],
        pins=[],
        knobs=[k.name for k in knobs],
    )
    spec = SelectorSpec(
        program=program,
        residual=residual,
        arguments=tuple(
            Argument(i.name, i.kind, i.domain)
            if isinstance(i, Input)
            else Argument(
                i.name,
                i.kind,
                sequence=Sequence(i.length, i.element, tuple(i.aggregates.items())),
            )
            for i in arguments(program)
        ),
        pins=(),
        knobs=tuple(KnobSpec(k.name, tuple(k.domain), settings[k.name]) for k in knobs),
        evidence=("unknown",) * len(residual.guards),
        factors=(),
        default=settings,
    )
    sink = Sink()
    made = write(spec, out, frozenset({"native"} if native else ()), native, sink)
    if native and made.native is None:
        raise Missing(f"no native selector: {made.reason}")
    return load(out / "__init__.py", f"emitted_{out.parent.name.replace('-', '_')}_{out.name}")


def load(path: Path, name: str) -> ModuleType:
    """Import a file (a package, if it is an `__init__.py`) under a name of its own."""
    folder = [str(path.parent)] if path.name == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folder)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
