"""`_native.c`: the extension module around the header, against the limited API of Python 3.11."""

from __future__ import annotations

import hashlib
from importlib import resources

from selc.codegen.cvalue import BOOL, CONST, FLOAT, INT, NONE, Unsupported, integer
from selc.codegen.header import CHECKED, MAX_ROWS, Header, OutputField
from selc.codegen.module import NOTICE, argument_identifiers
from selc.codegen.names import c_lines, c_string
from selc.codegen.slots import Slot
from selc.codegen.spec import SelectorSpec, Sequence
from selc.ir.domain import Domain


def native_text(spec: SelectorSpec, header: Header) -> str:
    """The text of the extension module; it includes `selector.h`."""
    glue = _glue(spec, header)
    runtime = resources.files("selc.codegen.rt").joinpath("native.c").read_text("utf-8")
    key = hashlib.sha256("\0".join([header.text, *glue, runtime]).encode()).hexdigest()[:32]
    signature = f"select({', '.join(argument_identifiers(spec))})\n--\n\n"
    doc = (
        signature + "The choice for a call, whose domain and guards are checked, or SelectionError."
    )
    s = header.symbol
    rows = sum(len(f.rows) for f in spec.factors)
    lines = [
        *c_lines(f"{spec.header}\n{NOTICE}".strip()),
        "#define PY_SSIZE_T_CLEAN",
        "#define Py_LIMITED_API 0x030B0000",
        "#include <Python.h>",
        "",
        '#include "selector.h"',
        "",
        f"#define SELC_IN {s}_in",
        f"#define SELC_PINS {s}_pins",
        f"#define SELC_OUT {s}_out",
        f"#define SELC_SELECT {s}_select",
        f"#define SELC_RUN {s}_run",
        f"#define SELC_COSTLY {int(f'{s}_run(' in header.text)}",
        f"#define SELC_CHECK {s}_check_pins",
        f"#define SELC_CHECK_IS_COMPLETE {int(rows <= MAX_ROWS)}",
        f"#define SELC_CHECKED {CHECKED}",
        f"#define SELC_ARGUMENTS {len(spec.arguments)}",
        f"#define SELC_PARAMETERS {len(header.parameters)}",
        f"#define SELC_OUTPUTS {len(header.outputs)}",
        f"#define SELC_KEY {c_string(key)}",
        f"#define SELC_DOC {c_string(doc)}",
        "",
        runtime,
        *glue,
    ]
    return "\n".join(lines) + "\n"


def module_key(text: str) -> str:
    """The key that a native text puts into its module."""
    return text.split("#define SELC_KEY ", 1)[1].split("\n", 1)[0].strip('"')


def _glue(spec: SelectorSpec, header: Header) -> list[str]:
    return [
        "static int read_inputs(selc_state *st, PyObject *const *a, struct SELC_IN *in) {",
        *_read_inputs(spec, header.inputs),
        "    (void)st; (void)a; (void)in;",
        "    return 1;",
        "}",
        "",
        "static int read_pins(PyObject *values, struct SELC_PINS *pins) {",
        *_read_pins(header.parameters),
        "    (void)values; (void)pins;",
        "    return 1;",
        "}",
        "",
        "static int write_outputs(selc_state *st, const struct SELC_OUT *out, PyObject **to) {",
        *(line for k, o in enumerate(header.outputs) for line in _write_output(k, o)),
        "    (void)st; (void)out; (void)to;",
        "    return 1;",
        "}",
    ]  # fmt: skip


def _read_pins(slots: tuple[Slot, ...]) -> list[str]:
    calls = [
        _reader(s, f"PyTuple_GetItem(values, {k})", f"pins->{s.field}", True)
        for k, s in enumerate(slots)
    ]
    return [f"    if (!{call}) return 0;" for call in calls]


def _reader(slot: Slot, source: str, target: str, position: bool) -> str:
    if slot.encoding == "float":
        return f"as_real({source}, &{target})"
    if slot.encoding == "bool":
        return f"as_bool({source}, &{target})"
    if slot.encoding == "int" or position:
        return f"as_int({source}, &{target})"
    raise AssertionError(slot)


def _read_inputs(spec: SelectorSpec, slots: tuple[Slot, ...]) -> list[str]:
    lines = []
    leaf = 0
    for k, argument in enumerate(spec.arguments):
        if argument.sequence is None:
            slot = slots[leaf]
            if slot.encoding == "index":
                call = f"as_choice(a[{k}], PyTuple_GetItem(st->choices, {k}), &in->{slot.field})"
            else:
                call = _reader(slot, f"a[{k}]", f"in->{slot.field}", False)
            lines.append(f"    if (!{call}) return 0;")
        else:
            lines += _read_sequence(k, argument.sequence, slots[leaf : leaf + len(argument.leaves)])
        leaf += len(argument.leaves)
    return lines


def _read_sequence(k: int, sequence: Sequence, slots: tuple[Slot, ...]) -> list[str]:
    length, element = sequence.length, sequence.element
    if element.values is not None or length.values is not None:
        raise Unsupported("a sequence whose elements are a list of values")
    if length.hi * max(abs(element.lo), abs(element.hi), 1) >= 1 << 62:
        raise Unsupported("the sum of a sequence may need more than 64 bits")
    lines = [
        "    {",
        f"        const struct span length = {_span(length)};",
        f"        const struct span element = {_span(element)};",
        "        struct totals t;",
        f"        if (!as_totals(a[{k}], length, element, &t)) return 0;",
    ]
    for slot, (how, _) in zip(slots, sequence.aggregates, strict=True):
        lines.append(f"        in->{slot.field} = t.{how};")
    return [*lines, "        (void)t;", "    }"]


def _span(domain: Domain) -> str:
    return f"{{{integer(domain.lo)}, {integer(domain.hi)}, {integer(domain.step)}}}"


def _write_output(k: int, point: OutputField) -> list[str]:
    members = {name: ctype for ctype, name, _ in point.members}
    real = next((f"out->{n}" for n, c in members.items() if c == "double"), "0.0")
    number = f"out->{point.field}"
    expressions = {
        NONE: "Py_NewRef(Py_None)",
        BOOL: f"PyBool_FromLong({number} != 0)",
        INT: f"PyLong_FromLongLong((long long){number})",
        FLOAT: f"PyFloat_FromDouble({real})",
        CONST: f"Py_XNewRef(PyTuple_GetItem(st->constants, (Py_ssize_t){number}))",
    }
    if len(point.tags) <= 1:
        tag = point.tags[0] if point.tags else NONE
        return [f"    if ((to[{k}] = {expressions[tag]}) == NULL) return 0;"]
    lines = [f"    switch (out->{point.field}_kind) {{"]
    lines += [f"    case {tag}: to[{k}] = {expressions[tag]}; break;" for tag in point.tags[:-1]]
    lines.append(f"    default: to[{k}] = {expressions[point.tags[-1]]}; break;")
    return [*lines, "    }", f"    if (to[{k}] == NULL) return 0;"]
