"""Binding the entry function's parameters to inputs, facts, tables, knobs and objects."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from selc.diag.diagnostic import Diagnostic, Refused
from selc.frontend import bodies, dsl, literals, names, sequences, tensors
from selc.frontend.context import Lowering, span_of
from selc.frontend.facts import InputDecl
from selc.frontend.state import State
from selc.frontend.values import Cls, DictObj, Entry, Func, InstObj, Poison, Ref, Seq, Tup, V
from selc.ir.domain import Domain
from selc.ir.graph import Node


def bind(cx: Lowering, st: State, func: Func) -> dict[str, V]:
    """A value for every parameter; what is missing is collected in `cx.missing`."""
    assert isinstance(func.node, ast.FunctionDef)
    spec = func.node.args
    every = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    positional = [*spec.posonlyargs, *spec.args]
    defaults: dict[str, V] = dict(
        zip(
            [a.arg for a in positional][len(positional) - len(func.defaults) :],
            func.defaults,
            strict=True,
        )
    )
    defaults.update(func.kw_defaults)
    fields = _record_fields(cx, st, func, every)
    counts: dict[str, int] = {}
    for name, record in fields.items():
        for field in [f[0] for f in record] if record is not None else [name]:
            counts[field] = counts.get(field, 0) + 1
    bound: dict[str, V] = {}
    for a in every:
        span = span_of(a, str(func.module.path))
        record = fields[a.arg]
        if record is not None:
            bound[a.arg] = _record(cx, st, a, record, counts, func)
            continue
        kind, _, _ = dsl.annotation(a.annotation)
        value = _value(cx, st, a.arg, (a.arg,), kind, span)
        if isinstance(value, Seq):
            decl, text = cx.facts.inputs[a.arg], ast.unparse(a.annotation) if a.annotation else ""
            value = sequences.declare(cx, a.arg, decl, decl.kind or kind, text)
        if value is None and a.arg == "self" and func.cls is not None:
            value = _self(cx, st, func.cls)
        if value is None and a.arg == "cls" and func.flavour == "class" and func.cls is not None:
            value = func.cls
        if value is None and a.arg in defaults:
            value = defaults[a.arg]
        if value is None:
            yaml = (
                f"inputs:\n  {a.arg}: {{kind: {kind or 'runtime'}, type: int, range: [1, 16384]}}"
                f"   # or facts:\n#  {a.arg}: ..."
            )
            cx.missing.setdefault(yaml, (span, f"the parameter `{a.arg}` has no value"))
            value = Poison()
        bound[a.arg] = value
    for star in (spec.vararg, spec.kwarg):
        if star is not None:
            empty = DictObj({}) if star is spec.kwarg else None
            bound[star.arg] = cx.heap.new(None, empty) if empty is not None else Tup(())
    return bound


def _self(cx: Lowering, st: State, cls: Cls) -> V:
    """The object whose method is lowered, from `facts: {self: ...}` and declared chains."""
    group = cx.facts.facts.get("self", {})
    cx.read.add("facts.self")
    fields = (
        {k: Entry(cx.true, literals.from_python(cx, None, v)) for k, v in group.items()}
        if isinstance(group, dict)
        else {}
    )
    fields.update(nested(cx, st, "self"))
    return cx.heap.new(None, InstObj(cls, fields, literals.FROM_FACTS))


Field = tuple[str, ast.expr | None, ast.expr | None, Cls]


def _record_fields(
    cx: Lowering, st: State, func: Func, every: list[ast.arg]
) -> dict[str, list[Field] | None]:
    """For parameters annotated with a record of the DSL: its fields."""
    out: dict[str, list[Field] | None] = {}
    for a in every:
        out[a.arg] = None
        annotation = a.annotation
        if not isinstance(annotation, ast.Name):
            continue
        try:
            with cx.tentative():
                cls = names.module_value(cx, st, func.module, annotation.id, annotation)
        except Refused:
            continue
        if isinstance(cls, Cls) and any(
            ast.unparse(d).rpartition(".")[2].startswith("record") for d in cls.node.decorator_list
        ):
            out[a.arg] = [
                (i.target.id, i.annotation, i.value, cls)
                for i in cls.node.body
                if isinstance(i, ast.AnnAssign) and isinstance(i.target, ast.Name)
            ]
    return out


def _record(
    cx: Lowering, st: State, a: ast.arg, fields: list[Field], counts: dict[str, int], func: Func
) -> V:

    entries: dict[str, Entry] = {}
    for name, annotation, default, cls in fields:
        kind, _, _ = dsl.annotation(annotation)
        keys = (f"{a.arg}.{name}", name) if counts[name] == 1 else (f"{a.arg}.{name}",)
        value = _value(cx, st, keys[-1], keys, kind, span_of(a, str(func.module.path)))
        if value is None and isinstance(cx.facts.facts.get(a.arg), dict):
            group = cx.facts.facts[a.arg]
            if isinstance(group, dict) and name in group:
                cx.read.add(f"facts.{a.arg}.{name}")
                value = literals.from_python(cx, None, group[name])
        if value is None and default is not None:
            value = bodies.run_class_value(cx, cls, default)
        if value is None:
            yaml = (
                f"inputs:\n  {keys[-1]}: {{range: [1, 16384]}}"
                if kind
                else f"facts:\n  {a.arg}.{name}: ..."
            )
            span = span_of(a, str(func.module.path))
            cx.missing.setdefault(yaml, (span, f"`{a.arg}.{name}` has no value"))
            value = Poison()
        if isinstance(value, Node) and cx.known(value) is None:
            cx.record_inputs.append((a.arg, name, value))
        entries[name] = Entry(cx.true, value)
    owner = fields[0][3] if fields else None
    return cx.heap.new(None, InstObj(owner, dict(entries), literals.FROM_FACTS))


def _value(
    cx: Lowering, st: State, name: str, keys: tuple[str, ...], kind: str, span: object
) -> V | None:
    """What the facts give under one of these names."""
    for key in keys:
        if key in cx.facts.inputs:
            cx.read.add(f"inputs.{key}")
            return declare(cx, name, cx.facts.inputs[key], kind)
        if key in cx.facts.knobs:
            knob = cx.facts.knobs[key]
            return dsl.declare_knob(
                cx,
                key,
                tuple(literals.resolve(cx, c) for c in knob.choices or (knob.setting,)),
                None,
            )
        if key in cx.facts.facts:
            cx.read.add(f"facts.{key}")
            value = cx.facts.facts[key]
            if isinstance(value, dict) and key == "self":
                return None
            if isinstance(value, dict) and _has_parts(cx, key):
                return _implied(cx, st, key, value)
            return literals.from_python(cx, None, value)
        if key in cx.facts.tables:
            cx.read.add(f"tables.{key}")
            return literals.from_python(cx, None, cx.facts.tables[key])
        if key in cx.facts.tensors:
            return tensors.declared(cx, st, key, cx.facts.tensors[key], known_names(cx))
        if key in cx.facts.objects:
            return declared_object(cx, st, key)
    if name != "self" and "." not in name and _has_parts(cx, name):
        return _implied(cx, st, name, {})
    return None


def known_names(cx: Lowering) -> dict[str, V]:
    """Inputs and facts by name, for sizes and guards in facts files."""
    out: dict[str, V] = {k: literals.from_python(cx, None, v) for k, v in cx.facts.facts.items()}
    for name, decl in cx.facts.inputs.items():
        if decl.kind:
            out[name] = declare(cx, name, decl, "")
    return grouped(cx, out)


def grouped(cx: Lowering, known: dict[str, V]) -> dict[str, V]:
    """Dotted names as attributes of what their first part names, beside what facts state of it."""
    dotted = {
        k: v for k, v in known.items() if "." in k and all(p.isidentifier() for p in k.split("."))
    }
    out = {k: v for k, v in known.items() if k not in dotted}
    for head in dict.fromkeys(k.partition(".")[0] for k in dotted):
        inner = {k.partition(".")[2]: v for k, v in dotted.items() if k.startswith(head + ".")}
        entries: dict[object, Entry] = {k: Entry(cx.true, v) for k, v in grouped(cx, inner).items()}
        stated = out.get(head)
        obj = cx.heap.base.get(stated.oid) if isinstance(stated, Ref) else None
        if isinstance(obj, DictObj):
            entries = {**obj.entries, **entries}
        out[head] = cx.heap.new(None, DictObj(entries, frozen=literals.FROM_FACTS))
    return out


def declared_object(cx: Lowering, st: State, chain: str) -> V:
    """An object as the facts declare it: its class from source, its attributes as stated.

    Attributes that are objects or tensors themselves are declared under their own chain.
    """
    decl = cx.facts.objects[chain]
    cls: Cls | None = None
    if decl.cls == "torch:device":
        index = decl.attrs.get("index")
        return tensors.device_of(
            cx, str(decl.attrs.get("type")) + ("" if index is None else f":{index}")
        )
    if decl.cls is not None:
        head, _, tail = decl.cls.rpartition(":")
        source = cx.finder.find(head)
        found = (
            None
            if source is None
            else names.module_value(cx, st, source, tail, ast.Name(tail, ast.Load()))
        )
        if not isinstance(found, Cls):
            raise Refused(
                Diagnostic(
                    "SEL908",
                    f"the class `{decl.cls}` is not found",
                    decl.span,
                    help=(
                        "write `package.module:Class`, and give the folder of its package with "
                        "--root"
                    ),
                )
            )
        cls = found
    fields = {k: Entry(cx.true, literals.from_python(cx, None, v)) for k, v in decl.attrs.items()}
    fields.update(nested(cx, st, chain))
    return cx.heap.new(None, InstObj(cls, fields, literals.FROM_FACTS))


def _implied(cx: Lowering, st: State, chain: str, attrs: Mapping[str, object]) -> V:
    """An object that the facts declare only by attributes of it."""
    fields = {str(k): Entry(cx.true, literals.from_python(cx, None, v)) for k, v in attrs.items()}
    fields.update(nested(cx, st, chain))
    return cx.heap.new(None, InstObj(None, fields, literals.FROM_FACTS))


def _has_parts(cx: Lowering, chain: str) -> bool:
    """Whether the facts declare attributes of a chain as objects, tensors or inputs."""
    sections = (cx.facts.objects, cx.facts.tensors, cx.facts.inputs)
    return any(key.startswith(chain + ".") for section in sections for key in section)


def nested(cx: Lowering, st: State, chain: str) -> dict[str, Entry]:
    """Attributes of `chain` that the facts declare as objects, tensors or inputs of their own."""
    out: dict[str, Entry] = {}
    for section in (cx.facts.objects, cx.facts.tensors, cx.facts.inputs):
        for key in section:
            head, _, name = key.rpartition(".")
            if head.startswith(chain + "."):
                implied = head[len(chain) + 1 :].partition(".")[0]
                if implied not in out and f"{chain}.{implied}" not in cx.facts.objects:
                    out[implied] = Entry(cx.true, _implied(cx, st, f"{chain}.{implied}", {}))
            if head != chain:
                continue
            if section is cx.facts.objects:
                out[name] = Entry(cx.true, declared_object(cx, st, key))
            elif section is cx.facts.tensors:
                out[name] = Entry(
                    cx.true, tensors.declared(cx, st, key, cx.facts.tensors[key], known_names(cx))
                )
            else:
                cx.read.add(f"inputs.{key}")
                out[name] = Entry(cx.true, declare(cx, key, cx.facts.inputs[key], ""))
    return out


def declare(cx: Lowering, name: str, decl: InputDecl, annotated: str) -> V:
    """An input leaf with its declared domain."""
    kind = decl.kind or annotated
    if not kind:
        raise Refused(
            Diagnostic(
                "SEL911",
                f"the input `{name}` has no kind",
                decl.span,
                help="add `kind: runtime`, `request`, `unpinnable`, `knob` or `fact`",
            )
        )
    if annotated and decl.kind and decl.kind != annotated:
        message = f"`{name}` is `{annotated}` in the program and `{decl.kind}` in the facts"
        raise Refused(
            Diagnostic("SEL911", message, decl.span, help="leave the kind out of the facts")
        )
    if decl.length is not None or decl.element is not None:
        return sequences.declare(cx, name, decl, kind, "")
    if decl.values is not None:
        values = tuple(literals.resolve(cx, v) for v in decl.values)
        if any(isinstance(v, dict) for v in decl.values):
            raise Refused(
                Diagnostic(
                    "SEL901",
                    f"the input `{name}` has mappings as values",
                    decl.span,
                    help="use scalars or lists",
                )
            )
        domain = Domain(values=values)
    else:
        if decl.type not in ("int", "any", ""):
            raise Refused(
                Diagnostic(
                    "SEL911",
                    f"the input `{name}` of type {decl.type} has a range",
                    decl.span,
                    help="list its `values:`",
                )
            )
        assert decl.lo is not None
        assert decl.hi is not None
        domain = Domain(decl.lo, decl.hi, decl.step)
    if kind == "knob":
        knob = cx.facts.knobs.get(name)
        if knob is not None and knob.fixed:
            return cx.graph.const(literals.resolve(cx, knob.setting))
        if knob is not None and knob.setting is not None:
            cx.settings[name] = literals.resolve(cx, knob.setting)
        if domain.values is None:
            domain = Domain(values=tuple(domain))
    return cx.graph.input(name, kind, domain)
