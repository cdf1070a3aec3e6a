"""`selector.h`: the selector for C99 and C++17. No allocation, no exceptions, one code path.

The native Python module includes this header, so that both compute the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

from selc.codegen.c import CBody
from selc.codegen.cvalue import (
    BOOL,
    CONST,
    FLOAT,
    INT,
    ConstantTable,
    Unsupported,
    Val,
    all_of,
    any_of,
)
from selc.codegen.module import NOTICE, factor_codes
from selc.codegen.names import c_lines, c_string, c_symbol, comment
from selc.codegen.routine import Routine
from selc.codegen.slots import Slot, make_slot, outside
from selc.codegen.spec import SelectorSpec
from selc.ir.domain import Domain
from selc.ir.value import Symbol, Value, to_json

MAX_ROWS: Final = 65_536
CHECKED: Final = "UINT64_C(0x73656c6370696e73)"


@dataclass(frozen=True, slots=True)
class OutputField:
    """How one point stands in the struct of outputs."""

    name: str
    field: str
    tags: tuple[int, ...]
    number: str  # text of the int64 component ("" if there is none)
    double: str
    tag: str  # text of the kind, "" if there is one kind only

    @property
    def members(self) -> list[tuple[str, str, str]]:
        """Type, name and value text of the members."""
        out = []
        if self.tag:
            out.append(("int64_t", f"{self.field}_kind", self.tag))
        if self.number or not self.double:
            out.append(("int64_t", self.field, self.number or "0"))
        if self.double:
            name = f"{self.field}_real" if self.number or self.tag else self.field
            out.append(("double", name, self.double))
        return out


@dataclass(frozen=True, slots=True)
class Header:
    """The text, with what the native module needs to know of it."""

    text: str
    symbol: str
    inputs: tuple[Slot, ...]
    parameters: tuple[Slot, ...]
    outputs: tuple[OutputField, ...]
    constants: tuple[Value, ...]


def make_header(spec: SelectorSpec, routine: Routine, digest: str) -> Header:
    """The header of a selector. Raises `Unsupported` with the reason where C cannot say it."""
    if spec.default is None:
        raise Unsupported("no assignment of the pins is legal")
    symbol = f"selc_{c_symbol(spec.program.family)}"
    prefix = f"{symbol}_"
    inputs, parameters = _slots(spec, routine)
    slots = {s.name: s for s in (*inputs, *parameters)}
    table = ConstantTable()
    body = CBody(routine, prefix, table, slots)
    outputs = tuple(
        _output(f"out{k}", name, body.values[node.id])
        for k, (name, node) in enumerate(
            zip([p.name for p, _ in spec.residual.points], routine.outputs, strict=True)
        )
    )
    arrays: list[str] = []
    domain = [outside(s, arrays, prefix) for s in inputs]
    texts = _select(spec, routine, body, symbol, inputs, outputs, domain)
    pins = _pins(spec, symbol, parameters, arrays)
    constants = tuple(table.values)
    used = "".join([*texts, *body.tables])
    lines = [
        *_opening(spec, digest, symbol),
        *_structs(spec, symbol, inputs, parameters, outputs),
        f"#define {symbol.upper()}_HASH {c_string(digest)}",
        "",
        *_constant_texts(prefix, constants),
        *(_truthy(prefix, constants) if f"{prefix}truthy[" in used else []),
        *arrays,
        *body.tables,
        "",
        *pins,
        *texts,
        "",
        f"#endif /* {symbol.upper()}_H */",
    ]
    return Header("\n".join(lines) + "\n", symbol, inputs, parameters, outputs, constants)


def _slots(spec: SelectorSpec, routine: Routine) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
    domains: dict[str, Domain] = {}
    for argument in spec.arguments:
        for leaf, how in argument.leaves:
            if how is None:
                assert argument.domain is not None
                domains[leaf] = argument.domain
            else:
                domains[leaf] = _leaf_domain(spec, leaf)
    inputs = tuple(
        make_slot(leaf, f"in{k}", "in", domains[leaf]) for k, leaf in enumerate(routine.leaves)
    )
    parameters = tuple(
        make_slot(name, f"p{k}", "pins", Domain(values=spec.parameter_values(name)))
        for k, name in enumerate(routine.parameters)
    )
    return inputs, parameters


def _leaf_domain(spec: SelectorSpec, leaf: str) -> Domain:
    for graph in (spec.residual.graph, spec.program.graph):
        if leaf in graph.inputs:
            return graph.inputs[leaf].domain
    raise Unsupported(f"{leaf} is read nowhere")


def _output(field: str, name: str, val: Val) -> OutputField:
    if val.items is not None:
        raise Unsupported(f"the point {name} is a tuple that is computed")
    tags = tuple(val.tags)
    numbers = [x for x, tag in ((val.v, {BOOL, INT}), (val.k, {CONST})) if tag & set(tags) and x]
    number = numbers[0] if numbers else ""
    if len(numbers) == 2:
        number = f"({val.has(CONST)} ? {val.k} : {val.v})"
    # a component that does not apply is zero, so that equal choices are equal bytes
    if number and not set(tags) <= {BOOL, INT, CONST}:
        number = f"({val.has(BOOL, INT, CONST)} ? {number} : 0)"
    double = val.f or ""
    if double and len(tags) > 1:
        double = f"({val.has(FLOAT)} ? {double} : 0.0)"
    tag = (val.t or str(tags[0])) if len(tags) > 1 else ""
    return OutputField(name, field, tags, number, double, tag)


def _opening(spec: SelectorSpec, digest: str, symbol: str) -> list[str]:
    guard = f"{symbol.upper()}_H"
    runtime = resources.files("selc.codegen.rt").joinpath("runtime.h").read_text("utf-8")
    return [
        *c_lines(f"{spec.header}\nselector {digest}\n{NOTICE}".strip()),
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        runtime.rstrip(),
        "",
    ]


def _struct(name: str, members: Sequence[tuple[str, str, str]]) -> list[str]:
    lines = [f"struct {name} {{"]
    for ctype, field, note in members or [("int64_t", "unused", "")]:
        lines.append(f"    {ctype} {field};" + (f" /* {note} */" if note else ""))
    return [*lines, "};", ""]


def _structs(
    spec: SelectorSpec,
    symbol: str,
    inputs: Sequence[Slot],
    parameters: Sequence[Slot],
    outputs: Sequence[OutputField],
) -> list[str]:
    kinds = "none 0, bool 1, int 2, float 3, constant 4"
    out: list[tuple[str, str, str]] = []
    for point in outputs:
        for ctype, field, _ in point.members:
            what = "position in constants" if point.tags == (CONST,) else ""
            if field.endswith("_kind"):
                what = kinds
            out.append((ctype, field, comment(f"{point.name} {what}".strip())))
    seal = ("uint64_t", "checked", "set by check_pins alone")
    public = [
        (s.ctype, s.field, s.note.replace(comment(s.name), comment(spec.public_name(s.name)), 1))
        for s in parameters
    ]
    return [
        "/* What a call gives. */",
        *_struct(f"{symbol}_in", [(s.ctype, s.field, s.note) for s in inputs]),
        "/* The tuple: start from default_pins; after a change, ask check_pins. */",
        *_struct(f"{symbol}_pins", [*public, seal]),
        "/* What is selected. */",
        *_struct(f"{symbol}_out", out),
    ]


def _constant_texts(prefix: str, constants: Sequence[Value]) -> list[str]:
    texts = [c_string(_text(v)) for v in constants] or ['""']
    return [f"static const char *const {prefix}constants[] = {{{', '.join(texts)}}};"]


def _text(value: Value) -> str:
    return value if isinstance(value, str) else str(to_json(value))


def _truthy(prefix: str, constants: Sequence[Value]) -> list[str]:
    bits = ", ".join("1" if isinstance(v, Symbol) or v else "0" for v in constants)
    return [f"static const int64_t {prefix}truthy[] = {{{bits}}};"]


def _pins(
    spec: SelectorSpec, symbol: str, parameters: Sequence[Slot], arrays: list[str]
) -> list[str]:
    """`default_pins` and `check_pins`."""
    assert spec.default is not None
    lines = [
        f"static inline void {symbol}_default_pins(struct {symbol}_pins *pins) {{",
        *(f"    {s.access} = {slot_text(s, spec.default[s.name])};" for s in parameters),
        f"    pins->checked = {CHECKED};",
        "}",
        "",
        "/* 0 if the tuple is legal, which it must be before it is used; else -1. */",
        f"static inline int {symbol}_check_pins(struct {symbol}_pins *pins) {{",
        "    pins->checked = 0;",
    ]
    lines += [f"    if ({outside(s, arrays, f'{symbol}_')}) return -1;" for s in parameters]
    lines += [f"    {line}" for line in _legality(spec, symbol, parameters, arrays)]
    return [*lines, f"    pins->checked = {CHECKED};", "    return 0;", "}", ""]


def slot_text(slot: Slot, value: Value) -> str:
    """The C text of a value in a slot."""
    from selc.codegen.cvalue import integer, real
    from selc.ir.value import same

    if slot.encoding == "float":
        assert isinstance(value, float)
        return real(value)
    if slot.encoding in ("int", "bool"):
        assert isinstance(value, (bool, int))
        return integer(int(value))
    assert slot.values is not None
    return str(next(i for i, v in enumerate(slot.values) if same(v, value)))


def _legality(
    spec: SelectorSpec, symbol: str, parameters: Sequence[Slot], arrays: list[str]
) -> list[str]:
    assert spec.default is not None
    if sum(len(f.rows) for f in spec.factors) > MAX_ROWS:
        default = spec.default
        same = [f"{s.access} != {slot_text(s, default[s.name])}" for s in parameters]
        return [
            "/* the relation is too large for a header: only the default tuple */",
            f"if ({' || '.join(same)}) return -1;",
        ]
    sizes = {s.name: len(s.values or ()) for s in parameters}
    slots = {s.name: s for s in parameters}
    used = sorted({p for f in spec.factors for p in f.parameters})
    lines: list[str] = []
    for name in used:
        lines += _position_text(slots[name], symbol, arrays)
    for number, factor in enumerate(spec.factors):
        codes = sorted(set(factor_codes(spec, factor.parameters, factor.rows, sizes)))
        if not factor.parameters:
            lines += [] if codes else ["return -1;"]
            continue
        if not codes:
            lines.append("return -1;")
            continue
        array = f"{symbol}_legal{number}"
        arrays.append(f"static const int64_t {array}[] = {{{', '.join(map(str, codes))}}};")
        code = "0"
        for name in factor.parameters:
            code = f"(({code}) * {sizes[name]} + at_{slots[name].field})"
        lines.append(f"if (selc_i_find({array}, {len(codes)}, {code}) == {len(codes)}) return -1;")
    return lines


def _position_text(slot: Slot, symbol: str, arrays: list[str]) -> list[str]:
    """Statements that set `at_pN` to the position of a parameter's value in its list."""
    assert slot.values is not None
    at = f"at_{slot.field}"
    if slot.encoding == "index":
        return [f"const int64_t {at} = {slot.access};"]
    array = f"{symbol}_{slot.field}_values"
    items = ", ".join(slot_text(slot, v) for v in slot.values)
    arrays.append(f"static const {slot.ctype} {array}[] = {{{items}}};")
    equal = (
        f"selc_i_same({array}[{at}], {slot.access})"
        if slot.encoding == "float"
        else (f"{array}[{at}] == {slot.access}")
    )
    return [f"int64_t {at} = 0;", f"while (!({equal})) ++{at};"]


def _select(
    spec: SelectorSpec,
    routine: Routine,
    body: CBody,
    symbol: str,
    inputs: Sequence[Slot],
    outputs: Sequence[OutputField],
    domain: Sequence[str],
) -> list[str]:
    """The refusal texts and the function itself."""
    leaf_names = [s.name for s in inputs]
    messages = [f"{name} is outside its declared domain" for name in leaf_names]
    messages += [m.sentence for m in routine.messages]
    messages += ["the program defines no choice for this call although no guard forbids it"]
    messages += ["the tuple was changed and not checked; call check_pins first"]
    checks = []
    for check in (*routine.every_call, *routine.once):
        val = body.values[check.cond.id]
        if not val.kinds <= {"bool"}:
            raise Unsupported("a guard is not a bool")
        fine = all_of([val.defined, f"{val.v} != 0"]) if val.v is not None else "0"
        checks.append((fine, len(inputs) + 1 + check.message))
    undefined = any_of(
        f"!({body.values[o.id].defined})"
        for o in routine.outputs
        if body.values[o.id].d is not None
    )
    members = [m for point in outputs for m in point.members]
    roots = [t for t, _ in checks] + [undefined] + [text for _, _, text in members]
    last = len(messages)
    fail = f"{symbol}_fail"
    lines = [
        *_fail(symbol, messages, inputs),
        "/* 0 and *out, or the number of what does not hold, with *out untouched and the reason in",
        "   message (at most size bytes, always terminated; NULL and 0 for none). */",
        *_signature(symbol, bool(routine.once)),
        f"    if (pins->checked != {CHECKED}) return {fail}({last}, in, message, size);",
    ]
    lines += [
        f"    if ({test}) return {fail}({k + 1}, in, message, size);"
        for k, test in enumerate(domain)
    ]
    split = len(routine.every_call)
    every = [t for t, _ in checks[:split]] + roots[len(checks) :]
    early = body.live_lines(every)
    known = set(early)
    lines += ["    {", *(f"    {line}" for line in early)]
    lines += _fails(checks[:split], fail)
    if routine.once:
        late = [line for line in body.live_lines(roots) if line not in known]
        lines += ["    if (!passed) {", *(f"        {line}" for line in late)]
        lines += [*_fails(checks[split:], fail), "    }"]
    if undefined != "0":
        lines.append(f"    if ({undefined}) return {fail}({last - 1}, in, message, size);")
    lines += [f"    out->{name} = {text};" for _, name, text in members]
    lines += (
        ["    }"]
        + (["    (void)in;"] if not inputs else [])
        + (["    (void)out;"] if not members else [])
    )
    lines += ["    return 0;", "}"]
    return [*lines, *_whole(symbol)] if routine.once else lines


def _signature(symbol: str, split: bool) -> list[str]:
    """The head of the function that selects; with costly guards it is told if they passed."""
    name, more = ("run", ", int passed") if split else ("select", "")
    return [
        f"static inline int {symbol}_{name}(const struct {symbol}_in *in,",
        f"    const struct {symbol}_pins *pins, struct {symbol}_out *out, char *message,",
        f"    size_t size{more}) {{",
    ]


def _whole(symbol: str) -> list[str]:
    return [
        "",
        "/* With every guard; run leaves out the costly ones if they passed for these inputs. */",
        *_signature(symbol, split=False),
        f"    return {symbol}_run(in, pins, out, message, size, 0);",
        "}",
    ]


def _fails(checks: Sequence[tuple[str, int]], fail: str) -> list[str]:
    return [
        f"    if (!({test})) return {fail}({code}, in, message, size);"
        for test, code in checks
        if test != "1"
    ]


def _fail(symbol: str, messages: Sequence[str], inputs: Sequence[Slot]) -> list[str]:
    lines = [
        "/* The text for a number that select returns. */",
        f"static inline int {symbol}_fail(int code, const struct {symbol}_in *in, char *message,",
        "    size_t size) {",
        "    static const char *const texts[] = {",
        *(f"        {c_string(m)}," for m in messages),
        "    };",
        "    size_t used = 0;",
        "    if (message == NULL || size == 0) return code;",
        '    selc_i_say(message, size, &used, "%s; inputs:", texts[code - 1]);',
    ]
    for slot in inputs:
        form = "%.17g" if slot.encoding == "float" else "%lld"
        value = f"in->{slot.field}" if slot.encoding == "float" else f"(long long)in->{slot.field}"
        mark = "#" if slot.encoding == "index" else ""
        what = f'" %s={mark}{form}", {c_string(slot.name)}, {value}'
        lines.append(f"    selc_i_say(message, size, &used, {what});")
    return [*lines, "    (void)in;", "    return code;", "}", ""]
