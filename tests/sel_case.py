"""Executes one case: what it says of the graph after passes, of diagnostics, of calls.

A line of [run] is executed by CPython on the source, by the interpreter on G0 and after every pass,
by the emitted Python and by the native selector: one line, many oracles.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

from selc.diag.diagnostic import Refused
from selc.diag.span import NOWHERE
from selc.ir.dump import dump, program_roots
from selc.ir.interp import run_program
from selc.ir.literal import Reader
from selc.ir.program import Program
from selc.ir.value import Symbol, same
from selc.ir.verify import verify_program
from tests import adapters
from tests.sel_file import Case, Section

NAME = "case.py"


class Failure(Exception):
    """The case does not hold; says why in full."""


@dataclasses.dataclass(slots=True)
class Execution:
    """One case in a folder of its own."""

    case: Case
    folder: Path
    skipped: list[str] = dataclasses.field(default_factory=list)

    def run(self) -> list[tuple[Section, str]]:
        """Check everything; the sections that are not as expected, with what they should be.

        Raises:
            Failure: something differs that no rewriting can mend.
        """
        source, facts = self.write()
        try:
            program = adapters.lower(source, facts)
        except Refused as refused:
            return self.refused(refused)
        if self.case.all("diag"):
            raise Failure("[diag] expects a refusal, and nothing was refused")
        stages = dict(self.stages(program))
        changes = [c for s in self.case.all("ir") for c in self.ir(s, stages)]
        for section in self.case.all("check"):
            check_lines(section, self.text(self.stage(section, stages)))
        lines = [ln for s in self.case.all("run") for ln in s.body.splitlines() if ln.strip()]
        if lines:
            self.calls(lines, source, program, stages)
        return changes

    def write(self) -> tuple[Path, list[Path]]:
        """The source and the facts as files."""
        source = self.folder / NAME
        source.write_text(self.case.body("src") or "", encoding="utf-8")
        facts = []
        if (text := self.case.body("facts")) is not None:
            facts.append(self.folder / "facts.yaml")
            facts[-1].write_text(text, encoding="utf-8")
        if (text := self.case.body("domain")) is not None:
            facts.append(self.folder / "domain.yaml")
            facts[-1].write_text(domain_facts(text), encoding="utf-8")
        return source, facts

    def refused(self, refused: Refused) -> list[tuple[Section, str]]:
        """A refusal is what [diag] expects, or a failure."""
        lines = []
        for d in refused.diagnostics:
            where = (
                ""
                if d.span == NOWHERE
                else f"{Path(d.span.path).name}:{d.span.line}:{d.span.column}: "
            )
            lines.append(f"{where}{d.code} {d.message}")
            lines += [f"  help: {d.help}"] if d.help else []
        text = "\n".join(lines) + "\n"
        sections = self.case.all("diag")
        if not sections:
            raise Failure(f"refused:\n{text}")
        return [(s, text) for s in sections if s.body != text]

    def stages(self, program: Program) -> Iterator[tuple[str, Program]]:
        """G0, and what each pass makes of it; each is verified."""
        verify_program(program)
        yield "lower", program
        try:
            yield from simplified(program)
        except adapters.Missing as missing:
            self.skipped.append(str(missing))

    def stage(self, section: Section, stages: Mapping[str, Program]) -> Program:
        """The stage that a section looks at."""
        if section.after not in stages:
            known = ", ".join(stages)
            raise Failure(f"line {section.line}: no pass {section.after!r}; there are {known}")
        return stages[section.after]

    def text(self, program: Program) -> str:
        """A stage as [ir] shows it."""
        roots = [p.node for p in program.points]
        roots += [n for g in program.guards for n in (g.path, g.cond)]
        lines = [f"{p.name} = {p.node}" for p in program.points]
        lines += [f"{g.kind} {g.path} implies {g.cond}  # {g.text}" for g in program.guards]
        text = dump(program.graph, roots) + "\n".join(lines) + "\n"
        return text.replace(f"{self.folder}/", "")

    def ir(self, section: Section, stages: Mapping[str, Program]) -> list[tuple[Section, str]]:
        """A full text, compared exactly."""
        text = self.text(self.stage(section, stages))
        return [] if section.body == text else [(section, text)]

    def calls(
        self, lines: list[str], source: Path, program: Program, stages: Mapping[str, Program]
    ) -> None:
        """Every line by every oracle."""
        user = adapters.load(source, f"case_{abs(hash(str(source)))}")
        selectors = {"python": adapters.emit(program, self.folder / "py", native=False)}
        try:
            selectors["native"] = adapters.emit(program, self.folder / "c", native=True)
        except adapters.Missing as missing:
            self.skipped.append(str(missing))
        for line in lines:
            call = Call(line, user)
            want = call.by_cpython()
            inputs = call.inputs(program)
            for name, stage in stages.items():
                call.compare(f"interpreter after {name}", want, interpreted(stage, inputs))
            given = {k: v for k, v in inputs.items() if program.graph.inputs[k].kind != "knob"}
            for name, module in selectors.items():
                call.compare(name, want, selected(module, module.select, given))
                call.compare(
                    f"{name}, unpinned", want, selected(module, module.select_unpinned, given)
                )


def simplified(program: Program) -> Iterator[tuple[str, Program]]:
    """What each pass makes of a program, in turn; each is verified."""
    current = dataclasses.replace(program, sites={})
    current.points = [dataclasses.replace(p, sites=(), places=()) for p in program.points]
    for name, run in adapters.passes():
        graph, image = run(current.graph, list(program_roots(current)), ())
        current = dataclasses.replace(
            current,
            graph=graph,
            points=[dataclasses.replace(p, node=image[p.node]) for p in current.points],
            guards=[
                dataclasses.replace(g, path=image[g.path], cond=image[g.cond])
                for g in current.guards
            ],
        )
        verify_program(current)
        yield name, current


class Call:
    """One line of [run]: `f(1, m=2) == Launch(3)` or `f(1) raises RequireError`."""

    def __init__(self, line: str, user: ModuleType) -> None:
        self.line = line
        self.names = vars(user)
        head, raises, error = line.partition(" raises ")
        self.error = error.strip() if raises else None
        tree = ast.parse(head.strip(), mode="eval").body
        self.expected: ast.expr | None = None
        if self.error is None:
            if not (isinstance(tree, ast.Compare) and isinstance(tree.ops[0], ast.Eq)):
                raise Failure(f"{line}: expected `call == value` or `call raises Error`")
            self.expected, tree = tree.comparators[0], tree.left
        if not isinstance(tree, ast.Call):
            raise Failure(f"{line}: expected a call on the left")
        self.function = self.value(tree.func)
        self.args = [self.value(a) for a in tree.args]
        self.kwargs = {str(k.arg): self.value(k.value) for k in tree.keywords}

    def value(self, tree: ast.expr) -> Any:
        """An expression over the names of the source."""
        return eval(compile(ast.Expression(tree), "<run>", "eval"), dict(self.names))

    def by_cpython(self) -> dict[str, object] | None:
        """The points by the source itself, which has to agree with the line; None if it raises."""
        try:
            result = self.function(*self.args, **self.kwargs)
        except Exception as error:
            if self.error is None or type(error).__name__ != self.error:
                raise Failure(f"{self.line}: CPython raises {error!r}") from error
            return None
        if self.expected is None:
            raise Failure(f"{self.line}: CPython returns {result!r}")
        got, want = flatten(result), flatten(self.value(self.expected))
        self.compare("CPython", want, got)
        return got

    def inputs(self, program: Program) -> dict[str, object]:
        """The inputs of the graph that this call gives."""
        bound = inspect.signature(self.function).bind(*self.args, **self.kwargs)
        bound.apply_defaults()
        out: dict[str, object] = {}
        for name, declared in program.graph.inputs.items():
            if declared.kind == "knob":
                out[name] = program.settings.get(name, declared.domain[0])
                continue
            value = _argument(bound.arguments, name)
            out[name] = value
        return out

    def compare(
        self, who: str, want: Mapping[str, object] | None, got: Mapping[str, object] | None
    ) -> None:
        """Whether one oracle agrees.

        Raises:
            Failure: it does not.
        """
        if want is None or got is None:
            agree = want is got
        else:
            agree = set(want) == set(got) and all(equal(want[k], got[k]) for k in want)
        if not agree:
            raise Failure(f"{self.line}\n  expected {want}\n  {who}: {got}")


def _argument(arguments: Mapping[str, Any], name: str) -> Any:
    """The value of an input: a parameter, a field of one, or a field by its bare name."""
    first, *rest = name.split(".")
    if not rest and first not in arguments:
        records = [a for a in arguments.values() if dataclasses.is_dataclass(a)]
        (holder,) = [r for r in records if name in {f.name for f in dataclasses.fields(r)}]
        return getattr(holder, name)
    value = arguments[first]
    for part in rest:
        value = getattr(value, part)
    return value


def interpreted(program: Program, inputs: Mapping[str, object]) -> dict[str, object] | None:
    """The points by the reference interpreter."""
    result = run_program(program, inputs)
    return dict(result.points) if result.returned else None


def selected(
    module: ModuleType, select: Callable[..., object], inputs: Mapping[str, object]
) -> dict[str, object] | None:
    """The points by an emitted selector."""
    try:
        return flatten(select(**inputs))
    except module.SelectionError:
        return None


def flatten(result: object, prefix: str = "") -> dict[str, object]:
    """A result as points: fields, nested ones with dots, elements of tuples in brackets."""
    dot = f"{prefix}." if prefix else ""
    if dataclasses.is_dataclass(result):
        parts = [(f"{dot}{f.name}", getattr(result, f.name)) for f in dataclasses.fields(result)]
    elif isinstance(result, dict):
        parts = [(f"{dot}{key}", value) for key, value in result.items()]
    elif hasattr(result, "_asdict"):
        parts = [(f"{dot}{key}", value) for key, value in result._asdict().items()]
    elif isinstance(result, (tuple, list)):
        parts = [(f"{prefix}[{k}]", value) for k, value in enumerate(result)]
    else:
        return {prefix or "result": result}
    return {k: v for name, value in parts for k, v in flatten(value, name).items()}


def equal(a: object, b: object) -> bool:
    """Equal in type and bits; a symbol is equal to what bears its name."""
    if isinstance(a, Symbol) or isinstance(b, Symbol):
        return str(getattr(a, "name", a)) == str(getattr(b, "name", b))
    if isinstance(a, Enum):
        return a is b
    return same(a, b)


def domain_facts(text: str) -> str:
    """[domain] lines, `name: [kind] lo..hi [step s]` or `name: [kind] {a, b}`, as a facts file."""
    inputs: dict[str, dict[str, object]] = {}
    for line in filter(str.strip, text.splitlines()):
        name, _, rest = line.partition(":")
        kind, sep, domain = rest.strip().partition(" ")
        if not (sep and kind.isalpha()):
            kind, domain = "", rest.strip()
        entry: dict[str, object] = {"kind": kind} if kind else {}
        if domain.startswith("{"):
            values = Reader(f"({domain[1:-1]},)").value()
            assert isinstance(values, tuple)
            inputs[name.strip()] = {**entry, "values": list(values)}
            continue
        span, _, step = domain.partition(" step ")
        low, high = (int(bound) for bound in span.split(".."))
        entry |= {"type": "int", "range": [low, high]}
        inputs[name.strip()] = {**entry, "multiple_of": int(step)} if step else entry
    return json.dumps({"inputs": inputs}, indent=1) + "\n"


def check_lines(section: Section, text: str) -> None:
    """Every line of a [check] stands in the text, in order.

    Raises:
        Failure: one does not.
    """
    found = iter(line.strip() for line in text.splitlines())
    for wanted in filter(str.strip, section.body.splitlines()):
        if not any(wanted.strip() in line for line in found):
            raise Failure(
                f"[{section.kind} {section.argument}] misses, in order: {wanted}\n\n{text}"
            )


def difference(section: Section, text: str) -> str:
    """What is expected and what is."""
    old, new = section.body.splitlines(), text.splitlines()
    title = f"[{section.kind} {section.argument}]"
    return "\n".join(difflib.unified_diff(old, new, title, "now", lineterm=""))
