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

Pass = Callable[[Graph, Sequence[Node], Sequence[Node]], tuple[Graph, dict[Node, Node]]]


class Missing(Exception):
    """A part of the compiler that this needs is not there."""


def lower(source: Path, facts: Sequence[Path]) -> Program:
    """G0 of the selection in a file.

    Raises:
        Refused: the source or the facts are wrong or not supported.
    """
    from selc.frontend.facts import load_facts
    from selc.frontend.lower import lower as lower_target

    sink = Sink()
    stated = load_facts(facts, sink)
    if sink.has_errors:
        raise Refused(*sink)
    return lower_target(str(source), stated, (), sink)


def passes() -> list[tuple[str, Pass]]:
    """The simplifying passes in the order in which the driver runs them."""
    from selc.passes.simplify import PASSES

    return [(each.name, each.run) for each in PASSES]


def emit(source: Path, facts: Sequence[Path], out: Path, native: bool) -> ModuleType:
    """Compile a file and import the selector that was written to `out`."""
    from click.testing import CliRunner

    from selc.cli import app

    if importlib.util.find_spec("selc.driver.compile") is None:
        raise Missing("no code generation")
    options = [option for path in facts for option in ("--facts", str(path))]
    emitted = "python,native" if native else "python"
    command = ["compile", str(source), *options, "-o", str(out), "--emit", emitted, "--no-cache"]
    done = CliRunner().invoke(app, command + ([] if native else ["--no-native"]))
    if done.exit_code != 0:
        raise AssertionError(f"selc {' '.join(command)}: exit {done.exit_code}\n{done.output}")
    return load(out / "__init__.py", f"emitted_{out.parent.name}_{out.name}")


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
