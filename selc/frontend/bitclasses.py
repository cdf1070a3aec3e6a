"""Bit classes of the facts as virtual points: a class is a table over points of the selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from selc.diag.diagnostic import Diagnostic, Refused
from selc.diag.span import Span
from selc.diag.suggest import did_you_mean
from selc.frontend import literals
from selc.frontend.context import Lowering
from selc.frontend.facts.model import ClassesDecl
from selc.frontend.facts.partition import Partition
from selc.ir.absval import of_values
from selc.ir.bitclass import BitClass, class_node, is_class
from selc.ir.graph import Node
from selc.ir.op import Op
from selc.ir.program import Guard, Mark, Point, Program, Site
from selc.ir.value import kind_of, same

_KINDS = frozenset({"none", "bool", "int", "str", "symbol"})


def wanted(cx: Lowering, names: list[str]) -> list[BitClass]:
    """The classes of the facts that are about these points; their values count as possible there.

    Raises:
        Refused: a class names what the function does not return, or does not fit its file.
    """
    out = []
    for name, decl in cx.facts.classes.items():
        missing = [f for f in (*decl.fields, *decl.given) if f not in names]
        if missing and decl.span.path in cx.facts.layer_paths:
            continue
        if missing:
            message = f"the bit class `{name}` names `{missing[0]}`, which is not returned"
            hint = did_you_mean(missing[0], names) or f"it returns: {', '.join(names)}"
            raise _wrong(decl.span, message, hint)
        if f"class.{name}" in names:
            message = f"the function returns `class.{name}`, and so is the bit class called"
            raise _wrong(decl.span, message, "give the bit class another name")
        assert decl.partition is not None
        made = _made(cx, name, decl, decl.partition, names)
        for place, field in enumerate(made.fields):
            values = of_values([member[place] for _, member in made.members])
            cx.class_values[field] = values
        out.append(made)
    return out


def _made(
    cx: Lowering, name: str, decl: ClassesDecl, partition: Partition, names: list[str]
) -> BitClass:
    order = _order(name, decl, partition)
    prefix = decl.fields[0].removesuffix(partition.fields[order[0]])
    given = {}
    for key, value in partition.given.items():
        point = prefix + key if prefix + key in names else key
        if point not in names:
            message = f"the bit class `{name}` was measured at `{key}`, which is not returned"
            raise _wrong(decl.span, message, f"it returns: {', '.join(names)}")
        given[point] = literals.resolve(cx, value)
    for key, value in decl.given.items():
        stated = literals.resolve(cx, value)
        if key in given and not same(given[key], stated):
            message = f"the bit class `{name}` is stated for {key} = {stated!r}, but was measured "
            hint = f"its file says {key} = {given[key]!r}: measure again, or correct the entry"
            raise _wrong(decl.span, message + f"at {given[key]!r}", hint)
        given[key] = stated
    members = [
        (c.name, tuple([literals.resolve(cx, m[i]) for i in order]))
        for c in partition.classes
        for m in c.members
    ]
    bound: dict[str, object] = {
        "family": partition.family,
        "device": partition.device,
        "dtype": partition.dtype,
        "kernel": partition.kernel,
        "versions": dict(partition.versions),
        "file": str(decl.file),
        "classes": [
            {"name": c.name, "evidence": c.evidence, "shapes": c.shapes, "seeds": c.seeds}
            for c in partition.classes
        ],
    }
    return BitClass(f"class.{name}", decl.fields, tuple(members), tuple(given.items()), (), bound)


def _order(name: str, decl: ClassesDecl, partition: Partition) -> list[int]:
    """For each field of the entry its place in the file: by name, or by the end of its key path."""
    places = []
    for field in decl.fields:
        found = [i for i, f in enumerate(partition.fields) if field == f or field.endswith(f".{f}")]
        if len(found) != 1 or found[0] in places:
            message = f"the file of bit class `{name}` was not made for the field `{field}`"
            raise _wrong(decl.span, message, f"it is about: {', '.join(partition.fields)}")
        places.append(found[0])
    rest = [f for i, f in enumerate(partition.fields) if i not in places]
    if rest:
        message = f"the file of bit class `{name}` is also about `{rest[0]}`"
        raise _wrong(decl.span, message, f"add it: `fields: [{', '.join(partition.fields)}]`")
    return places


def attach(
    cx: Lowering, program: Program, classes: list[BitClass], unnamed: frozenset[str]
) -> None:
    """Add the classes to a lowered program: points, sites, and a guard that each is kept.

    `unnamed` are points that the only `return` computes, so that nothing else can read them.

    Raises:
        Refused: a field has a role or values that a class cannot have.
    """
    for each in classes:
        cls = replace(each, unnamed=tuple([f for f in each.fields if f in unnamed]))
        decl = cx.facts.classes[cls.name.partition(".")[2]]
        _check(cx, program, cls, decl)
        add_class(program, cls, decl.span)
        program.assumptions += _assumptions(cls)


def add_class(program: Program, cls: BitClass, span: Span) -> None:
    """Add one class: its fields are read through points that can be overwritten, and neutral."""
    graph = program.graph
    values = [_ended(program, f) for f in cls.fields]
    given = [program.point(n).node for n, _ in cls.given]
    made = class_node(graph, cls, values, given)
    marked = graph.add(Op.MARK, made, attr=("class", cls.name), origin=span)
    kept = is_class(graph, cls, values, given, marked)
    always = graph.const(True)
    mark = Mark(marked, always, len(program.guards))
    program.sites[cls.name] = Site(cls.name, "class", span, [mark])
    program.points.append(Point(cls.name, "bits", marked, (cls.name,)))
    why = "no configuration of the class is legal for this input"
    program.guards.append(Guard("require", "class", f"{cls.name} is kept", why, span, always, kept))
    program.classes.append(cls)


def _check(cx: Lowering, program: Program, cls: BitClass, decl: ClassesDecl) -> None:
    family = cls.bound.get("family")
    if family is not None and family != program.family:
        message = f"the file of `{cls.name}` was made for the family `{family}`"
        raise _wrong(decl.span, message, f"this selection is of the family `{program.family}`")
    others = {f for c in program.classes for f in c.fields} | set(cls.fields)
    for name, _ in cls.given:
        point = program.point(name)
        if point.role != "bits" or name in others:
            message = f"`{cls.name}` is given at `{name}`, which is no bits field of its own"
            raise _wrong(decl.span, message, "give it at fields that are protected themselves")
    for place, name in enumerate(cls.fields):
        if program.point(name).role == "aux":
            message = f"`{name}` of `{cls.name}` is aux: it is not a choice"
            raise _wrong(decl.span, message, "leave it out, or make its role bits or neutral")
        stated = {kind_of(m[place]) for _, m in cls.members}
        kinds = cx.abs(program.point(name).node).kinds | stated
        if not kinds <= _KINDS:
            odd = ", ".join(sorted(kinds - _KINDS))
            message = f"`{name}` of `{cls.name}` can be a {odd}"
            raise _wrong(decl.span, message, "fields of a class are ints, bools, texts or null")
        if {"bool", "int"} <= kinds:
            message = f"`{name}` of `{cls.name}` is a bool in one place and an int in another"
            raise _wrong(decl.span, message, "measure with the values that the program returns")


def _ended(program: Program, name: str) -> Node:
    """The field as a read of its point, by which it can be overwritten; it counts as neutral."""
    place = next(k for k, p in enumerate(program.points) if p.name == name)
    point = program.points[place]
    node = program.graph.add(Op.MARK, point.node, attr=("result", name))
    program.points[place] = replace(point, role="neutral", node=node)
    return node


def _assumptions(cls: BitClass) -> list[str]:
    bound = cls.bound
    versions = bound["versions"]
    assert isinstance(versions, Mapping)
    with_ = ", ".join(f"{k} {v}" for k, v in versions.items() if v is not None)
    at = "".join(f", {k} = {v!r}" for k, v in cls.given)
    out = []
    found = bound["classes"]
    assert isinstance(found, list)
    for each in found:
        how = each["evidence"]
        for key in ("shapes", "seeds"):
            how += f", {key} {_shown(each[key])}" if each[key] is not None else ""
        count = sum(name == each["name"] for name, _ in cls.members)
        out.append(
            f"bit class {cls.name} = {each['name']!r}: its {count} configurations of "
            f"{', '.join(cls.fields)} give equal bits ({how}; {bound['device']}, "
            f"{bound['dtype']}, kernel {bound['kernel']}, {with_}{at})"
        )
    return out


def _shown(value: object) -> str:
    text = repr(value) if not isinstance(value, tuple) else str(list(value))
    return text if len(text) <= 60 else text[:57] + "..."


def _wrong(span: Span, message: str, hint: str) -> Refused:
    return Refused(Diagnostic("SEL911", message, span, help=hint))
