"""The Python modules of an emitted package, as text."""

from __future__ import annotations

from dataclasses import dataclass

from selc.codegen.names import comment, unique_identifiers
from selc.codegen.py import Constants, PythonBody, literal
from selc.codegen.routine import Check, Routine, place
from selc.codegen.spec import Argument, SelectorSpec
from selc.codegen.tree import Shape
from selc.ir.domain import Domain
from selc.ir.graph import Node
from selc.ir.op import Op
from selc.ir.value import Value


@dataclass(frozen=True, slots=True)
class NativeTables:
    """What `_python.py` must know of the native module; `key` is None if there is none."""

    key: str | None
    constants: tuple[Value, ...] = ()
    indexed: tuple[bool, ...] = ()


NOTICE = "Generated; do not edit. Compile the selection again instead."


def opening(spec: SelectorSpec, digest: str, what: str) -> list[str]:
    """The docstring of a generated module."""
    lines = [what, "", *spec.header.splitlines(), f"selector {digest}", NOTICE]
    safe = [comment(line).replace('"', "'") for line in lines]
    return ['"""' + safe[0], *safe[1:], '"""', ""]


def argument_identifiers(spec: SelectorSpec) -> list[str]:
    """The Python names of the arguments of `select`."""
    return unique_identifiers([a.name for a in spec.arguments], "argument")


def python_module(
    spec: SelectorSpec,
    bodies: tuple[PythonBody, PythonBody],
    shape: Shape,
    digest: str,
    native: NativeTables,
) -> str:
    """`_python.py`: the selector in plain Python, with the tables that describe it."""
    routine = bodies[0].routine
    choose = _chooser(spec, bodies[0])
    constants = bodies[0].constants
    lines = [
        *opening(spec, digest, "The selector in plain Python."),
        "from . import _runtime as _rt",
        "from . import _tuples",
        "",
        f"FAMILY = {spec.program.family!r}",
        f"HASH = {digest!r}",
        f"NATIVE_KEY = {native.key!r}",
        f"CONSTANTS = {literal(native.constants)}",
        f"INDEXED = {native.indexed!r}",
        "",
        *_arguments(spec),
        "",
        *_tables(spec),
        "",
        *_messages("MESSAGES", routine),
        "",
        *(_record_class(c.name, c.fields) for c in shape.classes),
        "",
        f"POINTS = {_texts([p.name for p, _ in spec.residual.points])}",
        f"ACCESS = {_texts(list(shape.access))}",
        "_MADE = {}",
        "",
        "",
        *_builder(_plain_keys(bodies), shape),
        *constants.lines,
        "",
        "",
        *choose,
    ]
    return "\n".join(lines) + "\n"


def unpinned_module(spec: SelectorSpec, body: PythonBody, digest: str) -> str:
    """`_unpinned.py`: the program without pins, under the same domain and all its guards."""
    choose = _chooser(spec, body)
    constants = body.constants
    lines = [
        *opening(spec, digest, "The selection without pins, for comparison."),
        "from . import _runtime as _rt",
        "from ._python import ARGUMENTS, TUPLES, build",
        "",
        *_messages("MESSAGES", body.routine),
        "",
        *constants.lines,
        "",
        "",
        *choose,
    ]
    return "\n".join(lines) + "\n"


def relation_module(spec: SelectorSpec, digest: str) -> str:
    """`_relation.py`: the factors of the legal relation, rows as mixed-radix numbers."""
    names = spec.residual.parameters
    sizes = {n: len(spec.parameter_values(n)) for n in names}
    lines = [
        *opening(spec, digest, "Which tuples are legal: positions, rows, guards."),
        "FACTORS = (",
    ]
    for factor in spec.factors:
        positions = tuple(names.index(p) for p in factor.parameters)
        rows = sorted(factor_codes(spec, factor.parameters, factor.rows, sizes))
        lines.append(f"    ({positions!r}, {tuple(rows)!r}, {factor.guards!r}),")
    return "\n".join([*lines, ")"]) + "\n"


def factor_codes(
    spec: SelectorSpec,
    parameters: tuple[str, ...],
    rows: tuple[tuple[Value, ...], ...],
    sizes: dict[str, int],
) -> list[int]:
    """The rows of a factor as numbers in the mixed radix of its parameters' value lists."""
    from selc.ir.value import value_key

    places = [{value_key(v): i for i, v in enumerate(spec.parameter_values(p))} for p in parameters]
    codes = []
    for row in rows:
        code = 0
        for parameter, where, value in zip(parameters, places, row, strict=True):
            code = code * sizes[parameter] + where[value_key(value)]
        codes.append(code)
    return codes


def domain_text(domain: Domain) -> str:
    """The runtime object for a domain."""
    if domain.values is None:
        return f"_rt.IntRange({domain.lo}, {domain.hi}, {domain.step})"
    return f"_rt.Choices({literal(domain.values)})"


def _arguments(spec: SelectorSpec) -> list[str]:
    lines = ["ARGUMENTS = ("]
    for argument, ident in zip(spec.arguments, argument_identifiers(spec), strict=True):
        if argument.sequence is None:
            assert argument.domain is not None
            text = domain_text(argument.domain)
        else:
            length = argument.sequence.length
            how = tuple(how for how, _ in argument.sequence.aggregates)
            text = (
                f"_rt.Sequence(_rt.IntRange({length.lo}, {length.hi}, {length.step}), "
                f"{domain_text(argument.sequence.element)}, {how!r})"
            )
        lines.append(f"    ({argument.name!r}, {ident!r}, {text}),")
    return [*lines, ")"]


def _tables(spec: SelectorSpec) -> list[str]:
    names = spec.residual.parameters
    default = None
    if spec.default is not None:
        default = tuple(_position(spec, n, spec.default[n]) for n in names)
    knobs = [n for n in names if n in {k.name for k in spec.knobs}]
    guards = [
        f"{place(g.guard.span)}: the {g.guard.kind} `{g.guard.text}`"
        + (f" ({g.guard.why})" if g.guard.why else "")
        for g in spec.residual.guards
    ]
    lines = [f"PARAMETERS = {_texts([spec.public_name(n) for n in names])}", "VALUES = ("]
    lines += [f"    {literal(spec.parameter_values(n))}," for n in names]
    lines += [
        ")",
        f"KNOB_NAMES = frozenset({_texts(knobs)})",
        f"DEFAULT = {default!r}",
        "GUARDS = (",
    ]
    lines += [f"    {g!r}," for g in guards]
    lines += [
        ")",
        "",
        "",
        "def _relation():",
        "    from ._relation import FACTORS",
        "",
        "    return FACTORS",
        "",
        "",
        "TUPLES = _tuples.Tuples(",
        "    (FAMILY, HASH), PARAMETERS, VALUES, KNOB_NAMES, DEFAULT, _relation, GUARDS",
        ")",
    ]
    return lines


def _position(spec: SelectorSpec, name: str, value: Value) -> int:
    from selc.ir.value import same

    return next(i for i, v in enumerate(spec.parameter_values(name)) if same(v, value))


def _texts(texts: list[str]) -> str:
    return "(" + "".join(f"{t!r}, " for t in texts) + ")"


def _messages(name: str, routine: Routine) -> list[str]:
    rows = [f"    ({m.sentence!r}, {m.text!r}, {m.location!r})," for m in routine.messages]
    return [f"{name} = (", *rows, ")"]


def _record_class(name: str, fields: tuple[tuple[str, str], ...]) -> str:
    return f"{name} = _rt.record_type({name!r}, {fields!r})"


def _plain_keys(bodies: tuple[PythonBody, PythonBody]) -> list[bool]:
    """Which points have values that Python's equality tells apart exactly."""
    out = []
    for pair in zip(bodies[0].routine.outputs, bodies[1].routine.outputs, strict=True):
        kinds = {k for b, n in zip(bodies, pair, strict=True) for k in b.facts[n.id].abs.kinds}
        out.append(not kinds & {"float", "tuple"} and not {"int", "bool"} <= kinds)
    return out


def _builder(plain: list[bool], shape: Shape) -> list[str]:
    names = ", ".join(f"o{k}" for k in range(len(plain)))
    key = "".join(f"o{k}, " if p else f"_rt.typed_key(o{k}), " for k, p in enumerate(plain))
    return [
        f"def build({names}):",
        '    """The result record; equal choices give one object while the table has room."""',
        f"    key = ({key})",
        "    made = _MADE.get(key)",
        "    if made is None:",
        f"        made = _rt.remember(_MADE, key, {shape.expression})",
        "    return made",
        "",
        "",
    ]


def _chooser(spec: SelectorSpec, body: PythonBody) -> list[str]:
    """`choose(commitment, values)`: `values` are the arguments in order."""
    routine, constants = body.routine, body.constants
    statements = body.numbered()
    first = {n.id for n in routine.graph.cone(_early(routine))}
    names = "".join(f"a{k}, " for k in range(len(spec.arguments)))
    lines = [
        "def choose(commitment, values):",
        '    """The choice for these arguments, or an error."""',
    ]
    if spec.arguments:
        lines.append(f"    {names.rstrip(', ')}{',' if len(spec.arguments) == 1 else ''} = values")
    lines += [f"    {line}" for line in _domain_checks(spec, constants)]
    used = {str(n.attr) for n in body.cone if n.op is Op.INPUT} & set(routine.parameters)
    if routine.needs_tuple or used:
        lines += [
            "    if commitment is None:",
            "        raise _rt.no_tuple(ARGUMENTS, values)",
        ]
    if used:
        names = "".join(f"p{k}, " if n in used else "_, " for k, n in enumerate(routine.parameters))
        lines.append(f"    {names.rstrip(' ')} = commitment.values")
    lines += [f"    {line}" for number, line in statements if number in first]
    for check in routine.every_call:
        lines += _check(check, body)
    if routine.once:
        lines += _once(spec, body, [line for number, line in statements if number not in first])
    outputs = [body.text[o.id] for o in routine.outputs]
    unsure = [t for o, t in zip(routine.outputs, outputs, strict=True) if not body.is_defined(o)]
    if unsure:
        lines += [
            f"    if {' or '.join(f'{t} is _rt.UNDEF' for t in unsure)}:",
            "        raise _rt.undefined(ARGUMENTS, values, TUPLES.view(commitment))",
        ]
    lines.append(f"    return build({', '.join(outputs)})")
    return lines


def _early(routine: Routine) -> list[Node]:
    """What every call needs."""
    checked = [n for c in routine.every_call for n in (c.path, c.cond) if n is not None]
    return [*checked, *routine.outputs]


def _once(spec: SelectorSpec, body: PythonBody, statements: list[str]) -> list[str]:
    """The costly checks, skipped where they passed before for this tuple and these inputs."""
    key = "".join(
        f"i{k}, " if whole else f"_rt.typed_key(i{k}), "
        for k, whole in enumerate(_whole_leaves(spec))
    )
    lines = [
        f"    known = ({key})",
        "    if known not in commitment.passed:",
        *(f"        {line}" for line in statements),
    ]
    for check in body.routine.once:
        lines += [f"    {line}" for line in _check(check, body)]
    return [*lines, "        _rt.remember_pass(commitment.passed, known)"]


def _whole_leaves(spec: SelectorSpec) -> list[bool]:
    """Which leaves are integers of one type, so that Python's equality tells them apart."""
    out: list[bool] = []
    for argument in spec.arguments:
        plain = argument.domain is not None and argument.domain.kinds in ({"int"}, {"str"})
        out += [plain or argument.sequence is not None] * len(argument.leaves)
    return out


def _check(check: Check, body: PythonBody) -> list[str]:
    condition = body.text[check.cond.id]
    test = f"{condition} is not True"
    if check.path is not None:
        test = f"{body.text[check.path.id]} is not False and {test}"
    if check.cond.is_const and check.cond.attr is True:
        return []
    given = f"MESSAGES[{check.message}], ARGUMENTS, values, TUPLES.view(commitment)"
    return [f"    if {test}:", f"        raise _rt.broken({given})"]


def _domain_checks(spec: SelectorSpec, constants: Constants) -> list[str]:
    lines = []
    leaf = 0
    for k, argument in enumerate(spec.arguments):
        if argument.sequence is not None:
            targets = "".join(f"i{leaf + j}, " for j in range(len(argument.leaves))).rstrip(" ")
            call = f"_rt.admit(ARGUMENTS, {k}, values)"
            lines.append(f"{targets} = {call}" if targets else call)
        else:
            quick = _quick_test(argument, f"a{k}", constants)
            lines += [
                f"i{leaf} = a{k}  # {comment(argument.name)}",
                f"if {quick}:",
                f"    i{leaf} = _rt.admit(ARGUMENTS, {k}, values)",
            ]
        leaf += len(argument.leaves)
    return lines


def _quick_test(argument: Argument, text: str, constants: Constants) -> str:
    """True if the value needs a closer look."""
    domain = argument.domain
    assert domain is not None
    if domain.values is None:
        steps = f" or ({text} - {domain.lo}) % {domain.step}" if domain.step != 1 else ""
        return f"type({text}) is not int or not {domain.lo} <= {text} <= {domain.hi}{steps}"
    kinds = {type(v) for v in domain.values}
    if len(kinds) == 1 and kinds <= {int, str, bool}:
        known = constants.named("S", f"frozenset({literal(domain.values)})")
        return f"type({text}) is not {kinds.pop().__name__} or {text} not in {known}"
    return "True"


def init_module(spec: SelectorSpec, digest: str) -> str:
    """`__init__.py`: what users import."""
    idents = argument_identifiers(spec)
    signature = ", ".join(idents)
    one = "," if len(idents) == 1 else ""
    lines = [
        *opening(spec, digest, f"Kernel selection of the family {spec.program.family}."),
        _INIT_HEAD,
        f"PINS = {_pins_text(spec)}",
        f"KNOBS = {_knobs_text(spec)}",
        f"FACTS = {_literal_mapping(spec.program.facts)}",
        "",
        "",
        f"def _bind({signature}):",
        f"    return ({signature}{one})",
        "",
        "",
        f"def _python_select({signature}):",
        '    """The choice for a call, whose domain and guards are checked, or SelectionError."""',
        f"    return _python.choose(_python.TUPLES.current, ({signature}{one}))",
        "",
        "",
        f"def _unpinned_select({signature}):",
        '    """What the selection takes without any pin, under the same checks."""',
        "    from . import _unpinned",
        "",
        f"    return _unpinned.choose(_python.TUPLES.current, ({signature}{one}))",
        "",
        "",
        _INIT_TAIL,
    ]
    return "\n".join(lines)


def _literal_mapping(data: object) -> str:
    import json

    from selc.ir.value import to_json

    if isinstance(data, dict):
        return repr(
            {str(k): json.loads(json.dumps(to_json(v), default=str)) for k, v in data.items()}
        )
    return "{}"


def _pins_text(spec: SelectorSpec) -> str:
    rows = ["{"]
    for pin in spec.pins:
        location = {
            "path": pin.location.path,
            "line": pin.location.line,
            "column": pin.location.column,
        }
        rows += [
            f"    {pin.name!r}: _surface.Pin(",
            f"        {pin.type!r}, {literal(pin.candidates)}, {literal(pin.offered)},",
            f"        {literal(pin.legal)}, {literal(pin.default)}, {pin.free!r}, {location!r},",
            f"        {pin.fixes!r},",
            "    ),",
        ]
    return "\n".join([*rows, "}"])


def _knobs_text(spec: SelectorSpec) -> str:
    rows = [
        f"    {k.name!r}: _surface.Knob({literal(k.choices)}, {literal(k.setting)}),"
        for k in spec.knobs
    ]
    return "\n".join(["{", *rows, "}"])


_INIT_HEAD = """from . import _python, _surface
from . import _runtime as _rt
from ._runtime import SelectionError

__all__ = [
    "FACTS",
    "KNOBS",
    "NATIVE",
    "PINS",
    "SelectionError",
    "commit",
    "legal",
    "load",
    "pins",
    "points",
    "record",
    "repin",
    "select",
    "select_unpinned",
]
"""

_INIT_TAIL = """_SURFACE = _surface.Surface(
    __name__, _python, _bind, _python_select, _unpinned_select
)
NATIVE = _SURFACE.native
NATIVE_REASON = _SURFACE.reason
select = _SURFACE.select
select_unpinned = _SURFACE.select_unpinned
repin = _SURFACE.repin
pins = _SURFACE.pins
legal = _SURFACE.legal
commit = _SURFACE.commit
load = _SURFACE.load
points = _SURFACE.points
record = _SURFACE.record
"""
