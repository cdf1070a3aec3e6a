"""From a target and its facts to G0.

Lowering walks the syntax tree once, building gated values directly: the source is structured, so
the gates of every join are known when it is reached (Brandis & Moessenboeck, Single-pass generation
of static single-assignment form for structured languages, TOPLAS 1994; gates as in Ottenstein,
Ballance & MacCabe, The program dependence web, PLDI 1990). Facts are folded, calls inlined and
loops unrolled on the way. It is repeated with wider abstract values for sites that have several
marks until what it took for certain holds whatever those sites are pinned to.
"""

from __future__ import annotations

import ast
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from selc.diag.diagnostic import Diagnostic, Refused, Sink
from selc.diag.span import Span
from selc.diag.suggest import did_you_mean
from selc.frontend import (
    bind,
    bitclasses,
    bodies,
    caching,
    dsl,
    expr,
    launches,
    literals,
    names,
    places,
    points,
    reading,
    sequences,
    tuplesite,
    unread,
)
from selc.frontend.changes import Change
from selc.frontend.context import Frame, Lowering, column_key, span_of
from selc.frontend.facts import Expr, Facts
from selc.frontend.modules import ModuleFinder
from selc.frontend.sites import Instance, suffixes
from selc.frontend.source import ModuleSource
from selc.frontend.state import State
from selc.frontend.values import Cls, Func, InstObj, Poison, Ref, Seq, V
from selc.ir.absval import ANY, AbsVal, join, of_values
from selc.ir.bitclass import leaves_of
from selc.ir.graph import Node
from selc.ir.op import Op, TooWide
from selc.ir.program import Place, Point, Program, Site
from selc.ir.value import Value

MAX_ROUNDS = 8
RECURSION = 20_000


def lower(target: str, facts: Facts, roots: Sequence[object], sink: Sink) -> Program:
    """Lower a target under its facts.

    Args:
        target: `path.py`, `path.py:function` or `package.module:function`.
        facts: the merged facts files.
        roots: folders in which packages are looked for, before the installed ones.
        sink: receives every diagnostic of the run.

    Raises:
        Refused: the source or the facts are wrong or not supported; `sink` has all reasons.
    """
    finder = ModuleFinder(tuple(roots))  # type: ignore[arg-type]  # paths
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION))
    try:
        return _settled(target, facts, finder, sink)
    except RecursionError:
        where = Span(target.rpartition(":")[0] or target, 1, 1, 1, 1)
        raise Refused(
            Diagnostic(
                "SEL901", "the source is nested too deeply", where, help="split it into functions"
            )
        ) from None
    except TooWide:
        where = Span(target.rpartition(":")[0] or target, 1, 1, 1, 1)
        raise Refused(
            Diagnostic(
                "SEL901",
                "an integer grows beyond 4,300 digits",
                where,
                help="narrow the inputs' ranges",
            )
        ) from None
    finally:
        sys.setrecursionlimit(limit)


def _settled(target: str, facts: Facts, finder: ModuleFinder, sink: Sink) -> Program:
    presets: dict[str, AbsVal] = {}
    changes: frozenset[Change] = frozenset()
    for n in range(MAX_ROUNDS):
        attempt = Sink()
        cx = Lowering(facts, finder, presets, attempt)
        cx.changes = changes
        try:
            program, wider = _attempt(cx, target)
        except Refused as refused:
            for diagnostic in (*attempt, *refused.diagnostics):
                sink.add(diagnostic)
            raise Refused(*sink) from None
        grown = {k: v for k, v in wider.items() if presets.get(k) != v}
        if not grown and cx.changes <= changes:
            for diagnostic in attempt:
                sink.add(diagnostic)
            return program
        changes |= cx.changes
        presets = {**presets, **{k: ANY if n > 4 else v for k, v in grown.items()}}
    raise Refused(Diagnostic("SEL990", "the abstract values of pinnable sites did not settle"))


def _attempt(cx: Lowering, target: str) -> tuple[Program, dict[str, AbsVal]]:
    func, module = entry(cx, target)
    node = func.node
    assert isinstance(node, ast.FunctionDef)
    marks = dsl.decoration(node)
    cx.offers = {k: tuple(literals.resolve(cx, x) for x in v) for k, v in cx.facts.offer.items()}
    st = State(cx.true, {launches.SCOPE: {}})
    instance = Instance(func.qualname, None, 0, 0, "", "")
    cx.instances[""] = instance
    layout = cx.plan_of(node)
    local = (
        frozenset(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))
        | layout.assigned
    )
    frame = Frame(instance, module, layout, cx.new_scope(None, local), None, 0, cls=func.cls)
    cx.frames.append(names.module_frame(cx, module))
    bound = bind.bind(cx, st, func)
    frame.places = places.plan(cx, st, node)
    cx.frames.pop()
    st.scopes[frame.scope] = dict(bound)
    _mark_record_inputs(cx, st, frame, bound)
    value = bodies.run_function(cx, st, frame, node)
    _report_missing(cx)
    if cx.failed or isinstance(value, Poison):
        raise Refused
    _discharge(cx)
    cx.frames.append(names.module_frame(cx, module))
    whole = frozenset(cx.facts.returns) - {"*"}
    flat = _choices(cx, st, value, whole, node)

    def resolve(e: ast.expr) -> V:
        return expr.lower(cx, State(cx.true), e)

    classes = bitclasses.wanted(cx, list(flat))
    roles = points.roles(cx, list(flat), points.annotated_roles(cx, st, node.returns, resolve))
    _facts_guards(cx, st, bound, value, flat, node)
    sequences.relate(cx)
    naming = _names(cx)
    sites = {naming[key]: site for key, site in cx.sites.items() if key in naming}
    for name, site in sites.items():
        site.name = name
    listed = _points(cx, flat, roles, frame.places, sites, naming)
    cx.frames.pop()
    _report_unread(cx, node)
    program = Program(
        graph=cx.graph,
        target=target,
        function=func.qualname,
        family=cx.facts.family or (marks.family if marks else "") or func.qualname,
        scope=cx.facts.scope or (marks.scope if marks else "") or "request",
        path=str(module.path),
        points=listed,
        guards=cx.guards,
        sites=sites,
        offers=_offers(cx, sites, naming),
        settings=cx.settings,
        facts=_read_facts(cx),
        sources={**cx.finder.sources, **cx.sources, **cx.facts.sources},
        followed=cx.finder.followed(),
        parameters={n: n for n in cx.graph.inputs},
        sequences={k: s for k, s in cx.sequences.items() if s.aggregates},
    )
    program.assumptions.extend(dict.fromkeys(cx.assumptions))
    if program.scope == "request":
        program.assumptions.append("each choice is applied to one request (scope: request)")
    wider = _wider(cx, list(listed), sites, naming)
    cx.changes |= frame.places.seen
    named = frame.places.all
    named_points = {k or "result" for k in named.variables}
    unnamed = named.computed - named_points if layout.returns == 1 else set()
    bitclasses.attach(cx, program, classes, frozenset(unnamed))
    return program, wider


def _choices(
    cx: Lowering, st: State, value: V, whole: frozenset[str], node: ast.FunctionDef
) -> dict[str, Node]:
    """What is selected: the returned choices, and those of launches and assigned attributes."""
    launched = launches.points(cx, st)
    if not launched:
        return points.flatten(cx, st, value, "", whole, node)
    flat = launches.returned(cx, st, value, "", node)
    return {**{k: v for k, v in flat.items() if k not in launched}, **launched}


# -- the entry function --------------------------------------------------------------------------


def entry(cx: Lowering, target: str) -> tuple[Func, ModuleSource]:
    """The function that a target names, with its module."""
    module, name = cx.finder.split_target(target)
    stated = cx.facts.function
    if name is None and stated is not None:
        head, _, tail = stated.rpartition(":")
        if head:
            found = cx.finder.find(head)
            if found is None:
                raise Refused(
                    Diagnostic(
                        "SEL908",
                        f"the module `{head}` is not found",
                        cx.facts.spans.get("selection.function", Span("", 0, 0, 0, 0)),
                        help="give the folder that holds its package with --root",
                    )
                )
            module = found
        name = tail
    cx.entry_module = module
    cx.frames.append(names.module_frame(cx, module))
    try:
        if name is None:
            name = _decorated(cx, module)
        name = unicodedata.normalize("NFKC", name)  # as Python reads identifiers
        cx.entry_name = name
        value = _lookup(cx, module, name)
    finally:
        cx.frames.pop()
    if not isinstance(value, Func) or not isinstance(value.node, ast.FunctionDef):
        known = sorted({n for s in module.segments if s.kind == "def" for n in s.names})
        raise Refused(
            Diagnostic(
                "SEL907",
                f"`{name}` is not a function that selc can follow in {module.path}",
                Span(str(module.path), 1, 1, 1, 1),
                help=did_you_mean(name, known),
            )
        )
    return value, module


def _decorated(cx: Lowering, module: ModuleSource) -> str:
    found: list[str] = []
    for segment in module.mentioning("selection"):
        found += [
            node.name
            for node in module.parse(segment)
            if isinstance(node, ast.FunctionDef) and dsl.decoration(node) is not None
        ]
    if len(found) == 1:
        return found[0]
    what = (
        "has no function decorated with `@selection`"
        if not found
        else f"has several selections: {', '.join(found)}"
    )
    raise Refused(
        Diagnostic(
            "SEL907",
            f"{module.path} {what}",
            Span(str(module.path), 1, 1, 1, 1),
            help="name it: `path.py:function`, or `selection: {function: ...}` in a facts file",
        )
    )


def _lookup(cx: Lowering, module: ModuleSource, name: str) -> V | None:
    first, *rest = name.split(".")
    where = ast.Name(first, ast.Load())
    cx.passed_tries |= _around(module, first)
    value = names.module_value(cx, State(cx.true), module, first, where)
    if value is None:
        known = sorted({n for s in module.segments for n in s.names})
        raise Refused(
            Diagnostic(
                "SEL907",
                f"there is no `{first}` in {module.path}",
                Span(str(module.path), 1, 1, 1, 1),
                help=did_you_mean(first, known),
            )
        )
    for part in rest:
        if not isinstance(value, Cls):
            return None
        value = reading.class_member(cx, State(cx.true), value, part)
    return value


def _around(module: ModuleSource, name: str) -> set[tuple[str, int]]:
    """The `try` statements whose body defines the entry function, and so did not raise before."""
    return {
        (str(module.path), t.lineno)
        for s in module.segments_binding(name)
        for top in module.parse(s)
        if not isinstance(top, (ast.FunctionDef, ast.ClassDef))
        for t in ast.walk(top)
        if isinstance(t, ast.Try)
        and any(
            isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name == name
            for b in t.body
            for n in ast.walk(b)
        )
    }


def _mark_record_inputs(cx: Lowering, st: State, frame: Frame, bound: dict[str, V]) -> None:
    """Inputs that arrive inside a record parameter are parameter sites too."""
    cx.frames.append(frame)
    for parameter, field, node in cx.record_inputs:
        ref = bound[parameter]
        assert isinstance(ref, Ref)
        obj = cx.heap.get(st, ref)
        assert isinstance(obj, InstObj)
        marked = cx.mark(
            st,
            f"{parameter}.{field}",
            "parameter",
            node,
            span_of(frame.module.parse(frame.module.segments[0])[0], str(frame.module.path)),
        )
        entries = dict(obj.fields)
        entries[field] = type(entries[field])(cx.true, marked)
        cx.heap.base[ref.oid] = InstObj(obj.cls, entries, obj.frozen, obj.name)
    cx.frames.pop()


# -- guards from the facts -----------------------------------------------------------------------


def _facts_guards(
    cx: Lowering,
    st: State,
    bound: dict[str, V],
    value: V,
    flat: dict[str, Node],
    node: ast.FunctionDef,
) -> None:
    seen = points.mirror(cx, st, value, "", flat, node)
    if launches.points(cx, st):
        seen = points.mirror_flat(cx, flat)
    scope = cx.frame.scope
    known: dict[str, V] = {k: literals.from_python(cx, None, v) for k, v in cx.facts.facts.items()}
    known.update({k: cx.graph.input(k, i.kind, i.domain) for k, i in cx.graph.inputs.items()})
    known.update({k: Seq(k, False) for k in cx.sequences})
    known = bind.grouped(cx, known)
    st.scopes[scope] = known
    for kind, listed in (("assume", cx.facts.assume), ("require", cx.facts.require)):
        for text in listed:
            if kind == "require":
                st.scopes[scope]["result"] = seen
            _facts_guard(cx, st, kind, text)


def _facts_guard(cx: Lowering, st: State, kind: str, text: Expr) -> None:
    cx.span_override = text.span
    try:
        e = ast.parse(text.text.strip(), mode="eval").body
        for name in {n.id for n in ast.walk(e) if isinstance(n, ast.Name)}:
            if name in cx.facts.facts:
                cx.read.add(f"facts.{name}")
        old = st.live
        cond = expr.truth(cx, st, expr.lower(cx, st, e), e)
        st.live = old
        cx.guard(st, kind, "facts", text.text, "", text.span, cond)
    finally:
        cx.span_override = None


# -- names, points, presets ----------------------------------------------------------------------


def _names(cx: Lowering) -> dict[str, str]:
    """The final name of every site that can be one."""
    tails = suffixes(cx.instances.values())
    out: dict[str, str] = {}
    for key, site in cx.sites.items():
        instance = cx.owner[key]
        if key in cx.spoiled or not site.marks or caching.repeated(cx, instance):
            continue
        if site.kind == "expression" and len({m.node.id for m in site.marks}) > 1:
            continue
        if not tuplesite.of_one_shape(cx, key, site):
            continue
        name = f"{instance.function}.{cx.bases_of[key]}{tails.get(instance.key, '')}"
        out[key] = name
    counts: dict[str, int] = {}
    for name in out.values():
        counts[name] = counts.get(name, 0) + 1
    return {k: v for k, v in out.items() if counts[v] == 1}


def _points(
    cx: Lowering,
    flat: dict[str, Node],
    roles: dict[str, str],
    found_places: places.Places,
    sites: dict[str, Site],
    naming: dict[str, str],
) -> list[Point]:
    root = {cx.bases_of[key]: name for key, name in naming.items() if cx.owner[key].key == ""}
    named, groups = found_places.all, places.of_points(found_places)
    variables = {k or "result": v for k, v in named.variables.items()}
    out: list[Point] = []
    for name, node in flat.items():
        bases = [*sorted(variables.get(name, ())), *[f"{r}.{name}" for r in sorted(named.records)]]
        found = [root[b] for b in bases if b in root and sites[root[b]].kind != "parameter"]
        if not found and name in cx.launch_roles:
            key = launches.site_of(cx, node)
            found = [naming[key]] if key in naming and cx.sites[key].kind != "parameter" else []
        out.append(Point(name, roles[name], node, tuple(found), groups.get(name, ())))
    return out


def _offers(
    cx: Lowering, sites: dict[str, Site], naming: dict[str, str]
) -> dict[str, tuple[Value, ...]]:
    out: dict[str, tuple[Value, ...]] = {}
    used: set[str] = set()
    for key, name in naming.items():
        values = cx.offered(key)
        if values:
            out[name] = values
            used.update(
                k for k in cx.offers if k == cx.bases_of[key] or k.endswith("." + cx.bases_of[key])
            )
    unknown = [k for k in cx.offers if k not in used]
    if unknown:
        span = cx.facts.spans.get(f"offer.{unknown[0]}")
        message = (
            f"`offer:` names `{unknown[0]}`, which is no variable of the selection that depends "
            "on an input and holds a number, a text, a truth value, a member of an Enum or a tuple "
            "of such"
        )
        known = sorted({cx.bases_of[k] for k in naming})
        hint = did_you_mean(unknown[0], known) or (
            "name a variable as the source does; a class is chosen by the condition that picks it"
        )
        raise Refused(
            Diagnostic("SEL911", message, span, help=hint)
            if span
            else Diagnostic("SEL911", message, help=hint)
        )
    return out


def _wider(
    cx: Lowering, listed: list[Point], sites: dict[str, Site], naming: dict[str, str]
) -> dict[str, AbsVal]:
    """Abstract values that marks must have so that pins and overwritten points stay inside them."""
    out: dict[str, AbsVal] = {}
    keys = {name: key for key, name in naming.items()}
    marks = {key: [m.node for m in site.marks] for key, site in cx.sites.items()}
    for key, site in cx.sites.items():
        if site.kind != "expression" and len(site.marks) > 1 and key in naming:
            out[key] = _joined([cx.abs(m.node) for m in site.marks])
    for point in listed:
        for name in point.sites:
            key = keys[name]
            together = [cx.abs(m.node) for s in point.sites for m in sites[s].marks]
            together.append(_made(cx, point))
            out[key] = join(out[key], _joined(together)) if key in out else _joined(together)
        for place in point.places:
            together = [cx.abs(n) for n in places.way(point.node, place)]
            together += [cx.class_values[n] for n in (point.name,) if n in cx.class_values]
            for key in places.keys(place):
                marks[key] = [n for n in place.marks if key in places.keys(Place((n,)))]
                out[key] = join(out[key], _joined(together)) if key in out else _joined(together)
    out = {k: v for k, v in out.items() if cx.presets.get(k) != v and not _covers(cx, marks[k], v)}
    return out | _wider_columns(cx, listed)


def _wider_columns(cx: Lowering, listed: list[Point]) -> dict[str, AbsVal]:
    """Columns of tables that a bit class overwrites: they can be what its members are."""
    out: dict[str, AbsVal] = {}
    for point in listed:
        values = cx.class_values.get(point.name)
        if values is None or point.sites:
            continue
        for leaf in leaves_of(point.node, frozenset()):
            if leaf.op is Op.LOOKUP:
                key = column_key(leaf)
                out[key] = join(out.get(key, cx.abs(leaf)), values)
    return {k: v for k, v in out.items() if k not in cx.presets or not _same(cx.presets[k], v)}


def _made(cx: Lowering, point: Point) -> AbsVal:
    """What a point can be; a launch that is not made is null there, and overwrites nothing."""
    found = cx.abs(point.node)
    if point.name in cx.class_values:
        found = join(found, cx.class_values[point.name])
    if point.name not in cx.launch_roles:
        return found
    values = None if found.values is None else tuple(v for v in found.values if v is not None)
    return replace(found, values=values, kinds=found.kinds - {"none"})


def _covers(cx: Lowering, marks: list[Node], value: AbsVal) -> bool:
    """Whether every mark already has this abstract value."""
    return all(_same(cx.abs(n), value) for n in marks)


def _same(a: AbsVal, b: AbsVal) -> bool:
    if a.values is not None and b.values is not None:
        return (
            of_values((*a.values, *b.values)) == of_values(a.values) if a.values else not b.values
        )
    return (a.values is None, a.kinds, a.lo, a.hi) == (b.values is None, b.kinds, b.lo, b.hi)


def _joined(values: list[AbsVal]) -> AbsVal:
    out = values[0]
    for v in values[1:]:
        out = join(out, v)
    return out


# -- what is missing, what is too much -----------------------------------------------------------


def _report_missing(cx: Lowering) -> None:
    if not cx.missing:
        return
    items = list(cx.missing.items())
    yaml: dict[str, list[str]] = {}
    for text, _ in items:
        head, _, rest = text.partition("\n")
        yaml.setdefault(head, []).append(rest)
    paste = "\n".join(f"{head}\n" + "\n".join(lines) for head, lines in yaml.items())
    cx.sink.items = [d for d in cx.sink.items if d.code != "SEL912"]
    for n, (_, (span, message)) in enumerate(items):
        last = n == len(items) - 1
        cx.sink.add(
            Diagnostic(
                "SEL912",
                message,
                span,
                help=f"state what is missing in a facts file:\n{paste}" if last else "",
            )
        )
    cx.failed = True


def _discharge(cx: Lowering) -> None:
    for oid, _, span in cx.obligations:
        obj = cx.heap.base.get(oid)
        name = getattr(obj, "unknown", "") or "a module-level dict"
        raise Refused(
            Diagnostic(
                "SEL906",
                f"what `{name}` holds here depends on earlier calls",
                span,
                help=f'state its content under `globals:`: {{"{name}": ...}}',
            )
        )


def _report_unread(cx: Lowering, node: ast.FunctionDef) -> None:
    """A fact that nobody reads is a mistake, unless it comes from a shared layer."""
    unread.report(cx, node)
    if cx.sink.has_errors:
        raise Refused


def _read_facts(cx: Lowering) -> dict[str, object]:
    top = {r.split(".")[1] for r in cx.read if r.startswith("facts.")}
    return {k: v for k, v in cx.facts.facts.items() if k in top}
