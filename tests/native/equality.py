"""One family of the examples in all its forms: CPython, interpreter, fallback, native, C header."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from selc.codegen import emit
from selc.codegen.header import make_header
from selc.codegen.routine import pinned
from selc.diag.diagnostic import Sink
from selc.driver import describe
from selc.driver.manifest import manifest
from selc.driver.pipeline import Plan
from selc.driver.selector import specification
from selc.ir.interp import run_program
from selc.lang import AssumeError
from tests.examples.deployed import FAMILIES, Deployed, Unplaced, residual_points
from tests.examples.test_deployments import same_points, sites
from tests.native.test_header import STOP, STRICT, decode, driver, word
from tests.unit.codegen.selectors import agree, load

ROOT = Path(__file__).resolve().parents[2]
HOSTS = {
    "-O0": ("gcc", "c99", "-O0", "host.c"),
    "-O2": ("gcc", "c99", "-O2", "host.c"),
    "-O3": ("gcc", "c99", "-O3", "host.c"),
    "C++17": ("g++", "c++17", "-O2", "host.cc"),
}
"""Compilers of the header; each builds it with strict warnings, under both sanitizers."""
Args = tuple[Any, ...]


class Forms:
    """A family at a deployment, compiled once and emitted with a native module and a header."""

    def __init__(self, family: str, layers: tuple[str, ...], folder: Path) -> None:
        sys.path.insert(0, str(ROOT / "examples"))
        FAMILIES.setdefault("attention_fa3", "attention")
        FAMILIES.setdefault("attention_stride", "attention")
        self.deployed = Deployed(family, layers)
        self.decided = self.deployed.decide()
        plan = Plan(str(self.deployed.path), self.deployed.files, ())
        self.manifest = manifest(self.decided, describe.answer(self.decided), plan)
        self.spec = specification(self.decided, self.manifest, {})
        self.folder = folder
        sink = Sink()
        made = emit(
            self.spec, folder / "selector", frozenset({"native", "python", "header"}), True, sink
        )
        assert made.native, made.reason
        self.package = load(folder / "selector")
        self.names = [a.name for a in self.spec.arguments]
        self.domains = [a.domain for a in self.spec.arguments]
        self.texts: dict[int, tuple[Any, Any]] = {}

    # --- calls ------------------------------------------------------------------------------------

    def boundaries(self, limit: int = 20_000) -> list[Args]:
        """The ends of every domain and both sides of every threshold, in all combinations."""
        axes = []
        for argument, domain in zip(self.spec.arguments, self.domains, strict=True):
            assert domain is not None
            near: set[Any] = {domain[0], domain[len(domain) - 1]}
            for side in self.manifest["thresholds"].get(argument.name) or ():
                near |= {side + d for d in (-1, 0, 1)} if type(side) is int else {side}
            axes.append([v for v in domain if v in near])
        every = list(itertools.islice(itertools.product(*axes), 4_000_000))
        return every if len(every) <= limit else random.Random(2).sample(every, limit)

    def random_calls(self, count: int, seed: int) -> Iterator[Args]:
        """Uniform ones and small ones in turn."""
        draw = random.Random(seed)
        for k in range(count):
            row = []
            for domain in self.domains:
                assert domain is not None
                most = len(domain)
                row.append(
                    domain[int(most ** draw.random()) - 1 if k % 2 else draw.randrange(most)]
                )
            yield tuple(row)

    def tuples(self, count: int) -> list[dict[str, Any]]:
        """The default tuple and some other legal ones, by public name."""
        relation = self.package._python.TUPLES.relation
        names = self.package._python.PARAMETERS
        values = self.package._python.VALUES
        found = [
            {n: values[p][row[p]] for p, n in enumerate(names)}
            for row in itertools.islice(relation.solutions({}), 4096)
        ]
        default = self.package.pins()
        others = [t for t in found if t != default]
        return [default, *random.Random(3).sample(others, min(count, len(others)))]

    def outcome(self, function: Any, args: Args) -> object:
        """The points of a choice, or the text of the refusal."""
        try:
            choice = function(*args)
        except self.package.SelectionError as error:
            return str(error)
        known = self.texts.get(id(choice))
        if known is None or known[0] is not choice:
            known = self.texts[id(choice)] = choice, tuple(self.package.points(choice).values())
        return known[1]

    # --- comparisons ------------------------------------------------------------------------------

    def native_and_fallback(self, rows: Sequence[Args]) -> None:
        """The same choice, or the same refusal with the same text."""
        for args in rows:
            native = self.outcome(self.package.select, args)
            python = self.outcome(self.package._python_select, args)
            assert native is python or agree(native, python), (args, native, python)

    def header(self, rows: Sequence[Args]) -> None:
        """The header under every compiler, sanitized, against the native module."""
        header = make_header(self.spec, pinned(self.spec), "0" * 64)
        current = self.package._python.TUPLES.current
        values = dict(
            zip(
                self.spec.residual.parameters,
                (self.spec.parameter_values(n)[i] for n, i in
                 zip(self.spec.residual.parameters, current.indices, strict=True)),
                strict=True,
            )
        )  # fmt: skip
        head = b"".join(word(s, values[s.name]) for s in header.parameters)
        words: dict[tuple[int, Any, type], bytes] = {}

        def packed(args: Args) -> Iterator[bytes]:
            yield head
            for k, value in enumerate(args):
                key = (k, value, type(value))
                if key not in words:
                    words[key] = word(header.inputs[k], value)
                yield words[key]

        data = b"".join(part for args in rows for part in packed(args))
        outputs = {host: self._run(driver(header), header.text, host, data) for host in HOSTS}
        assert len(set(outputs.values())) == 1
        out = outputs["-O0"]
        size = len(out) // len(rows)
        decoded: dict[bytes, object] = {}
        for k, args in enumerate(rows):
            row = out[k * size : (k + 1) * size]
            got = decoded.get(row)
            if got is None:
                got = decoded[row] = decode(header, row)
            want = self.outcome(self.package.select, args)
            if isinstance(got, int):
                assert got > 0, args
                assert isinstance(want, str), (args, want)
            else:
                assert agree(got, want), (args, got, want)

    def _run(self, text: str, header: str, host: str, data: bytes) -> bytes:
        compiler, standard, level, name = HOSTS[host]
        folder = self.folder / f"host{host}"
        folder.mkdir(exist_ok=True)
        (folder / "selector.h").write_text(header)
        (folder / name).write_text(text)
        flags = [
            level,
            f"-std={standard}",
            "-fsanitize=address,undefined",
            *STOP,
            *STRICT,
            "-ffp-contract=off",
        ]
        subprocess.run(
            [compiler, *flags, str(folder / name), "-o", str(folder / "host"), "-lm"], check=True
        )
        done = subprocess.run([str(folder / "host")], input=data, capture_output=True, check=True)
        return done.stdout

    def unpinned(self, rows: Sequence[Args]) -> int:
        """`select_unpinned`, the interpreter of G0 and CPython running the source."""
        plain = self.deployed.cpython(self.decided, {})
        knobs = {n: v for n, v in self.package.pins().items() if n in self.package.KNOBS}
        returned = 0
        for args in rows:
            row = {**dict(zip(self.names, args, strict=True)), **knobs}
            try:
                want = plain(row)
            except AssumeError:
                want = None
            got = self.outcome(self.package.select_unpinned, args)
            shown = run_program(self.decided.program, row)
            if want is None:
                assert isinstance(got, str), (row, got)
                continue
            returned += 1
            assert shown.returned, row
            assert same_points(dict(shown.points), want), row
            assert not isinstance(got, str), (row, got)
            points = dict(zip(self.package._python.POINTS, got, strict=True))  # type: ignore[call-overload]  # a tuple
            assert same_points(points, want), (row, points, want)
        return returned

    def pinned(self, rows: Sequence[Args]) -> int | None:
        """`select`, the interpreter of R and CPython with the pins overwritten."""
        current = self.package._python.TUPLES.current
        names = self.spec.residual.parameters
        setting = {n: self.spec.parameter_values(n)[i]
                   for n, i in zip(names, current.indices, strict=True)}  # fmt: skip
        try:
            source = self.deployed.cpython(self.decided, sites(self.decided, setting))
        except Unplaced:
            return None
        returned = 0
        for args in rows:
            row = {**dict(zip(self.names, args, strict=True)), **setting}
            got = self.outcome(self.package.select, args)
            if isinstance(got, str):
                continue
            points = dict(zip(self.package._python.POINTS, got, strict=True))  # type: ignore[call-overload]  # a tuple
            shown = residual_points(self.decided, row)
            want = source(row)
            assert shown is not None, row
            assert want is not None, row
            virtual = self.decided.program.virtual
            shown = {k: v for k, v in shown.items() if k not in virtual}
            assert same_points(points, want), (row, points, want)
            assert same_points(points, shown), (row, points, shown)
            returned += 1
        return returned


def compare(forms: Forms, count: int, few: int, tuples: int) -> list[str]:
    """Everything; one line for each comparison."""
    said = []
    edges = forms.boundaries()
    calls = list(forms.random_calls(count, 1))
    served = (c for c in calls if not isinstance(forms.outcome(forms.package.select, c), str))
    sample = [*edges[:: max(len(edges) // few, 1)], *itertools.islice(served, few)]
    settings = forms.tuples(tuples)
    share = -(-len(calls) // len(settings))
    done = forms.unpinned(sample)
    said.append(f"unpinned, CPython and interpreter: {len(sample)} calls, {done} returned")
    for k, setting in enumerate(settings):
        forms.package.repin(setting)
        part = [*edges, *calls[k * share : (k + 1) * share]]
        forms.native_and_fallback(part)
        forms.header(part)
        done_pinned = forms.pinned(sample[:: 1 if k == 0 else 4])
        told = "no place in the source" if done_pinned is None else f"{done_pinned} returned"
        shown = ", ".join(f"{n.rpartition('.')[2]}={v}" for n, v in setting.items()) or "no pins"
        said.append(
            f"{shown}: {len(part)} calls native, fallback and header at {' '.join(HOSTS)} "
            f"sanitized; pinned CPython and interpreter: {told}"
        )
    return said
