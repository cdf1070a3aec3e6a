"""What lowering carries along: graph, regions, frames, sites, guards, diagnostics."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn

from selc.diag.diagnostic import Diagnostic, Refused, Sink
from selc.diag.span import NOWHERE, Span
from selc.frontend.faults import exception_of
from selc.frontend.iterators import Iterators
from selc.frontend.sites import Instance, Plan, plan
from selc.frontend.state import Heap, Joiner, State
from selc.frontend.values import Obj, Ref, V
from selc.ir.absval import AbsVal, join, never_fails, of_domain, of_values, transfer
from selc.ir.graph import Graph, Node, is_place
from selc.ir.op import TABLE, Op
from selc.ir.program import Guard, Mark, SequenceInput, Site
from selc.ir.value import Value, value_key

if TYPE_CHECKING:
    from selc.frontend.changes import Change
    from selc.frontend.enums import Members
    from selc.frontend.facts import Facts
    from selc.frontend.modules import ModuleFinder
    from selc.frontend.places import Places
    from selc.frontend.source import ModuleSource

MAX_UNROLL = 20_000
MAX_DEPTH = 100


class Cascade(Refused):
    """Raised when something refused before is used again; it has been reported already."""


@dataclass(slots=True)
class Exit:
    """One way out of a function, loop or try body: its condition, state and value."""

    live: Node
    state: State
    value: V | None
    exception: str = ""
    span: Span = NOWHERE
    text: str = ""


@dataclass(slots=True)
class Frame:
    """One function being lowered."""

    instance: Instance
    module: ModuleSource
    plan: Plan
    scope: int
    closure: int | None
    depth: int  # number of open regions at entry
    cls: V | None = None
    returns: list[Exit] = field(default_factory=list)
    iterations: str = ""
    loops: list[Loop] = field(default_factory=list)
    silent: bool = False  # lambdas: no sites
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    places: Places | None = None  # of the selection itself


@dataclass(slots=True)
class Loop:
    """An unrolled loop being lowered."""

    depth: int
    breaks: list[Exit] = field(default_factory=list)
    continues: list[Exit] = field(default_factory=list)


@dataclass(slots=True)
class Handler:
    """An enclosing `try` and the exceptions it catches."""

    depth: int
    catches: Callable[[str], bool]
    raises: list[Exit] = field(default_factory=list)


COLUMN: Final = "column|"


PLACE: Final = "place|"


def column_key(node: Node) -> str:
    """The key under which a table's column has an abstract value of its own."""
    return f"{COLUMN}{value_key(node.attr)!r}"


class Lowering:
    """The state of lowering one program (one attempt; see `lower.lower`)."""

    def __init__(
        self, facts: Facts, finder: ModuleFinder, presets: dict[str, AbsVal], sink: Sink
    ) -> None:
        self.graph = Graph()
        self.facts = facts
        self.finder = finder
        self.presets = presets
        self.sink = sink
        self.heap = Heap()
        self.iterators = Iterators()
        self.joiner = Joiner(self.graph, self.heap, self.iterators)
        self.true = self.graph.const(True)
        self.false = self.graph.const(False)
        self.none = self.graph.const(None)
        self.bases: list[Node] = [self.true]
        self.conds: list[Node] = []
        self.frames: list[Frame] = []
        self.handlers: list[Handler] = []
        self.guards: list[Guard] = []
        self.sites: dict[str, Site] = {}  # by key; names are given at the end
        self.owner: dict[str, Instance] = {}
        self.bases_of: dict[str, str] = {}  # key -> name without instance suffix
        self.instances: dict[str, Instance] = {}
        self.remembered: dict[int, set[str]] = {}  # cached functions -> keys of their calls
        self.remembered_by: dict[str, list[set[int]]] = {}  # memo dicts -> nodes made per key
        self.plans: dict[int, Plan] = {}
        self.keep: list[object] = []  # keeps syntax nodes alive: plans are keyed by id
        self.next_scope = 0
        self.read: set[str] = set()  # facts that were read, dotted
        self.missing: dict[str, tuple[Span, str]] = {}
        self.obligations: list[tuple[int, V, Span]] = []  # memo reads to be discharged
        self.module_values: dict[tuple[str, str], V] = {}
        self.assumptions: list[str] = []
        self.sources: dict[str, str] = {}  # files read beside the sources -> digest
        self.parents: dict[int, int | None] = {}  # scope -> the scope around it
        self.local_names: dict[int, frozenset[str]] = {}
        self.comprehensions: set[int] = set()
        self.import_names: dict[tuple[int, str], str] = {}
        self.evaluating: set[str] = set()
        self.lambda_count = 0
        self.unknowns: dict[str, list[tuple[int, ...]]] = {}  # unknown call -> arguments of each
        self.launch_roles: dict[str, str] = {}  # recorded choice -> role
        self.assigned_at: dict[str, ast.AST] = {}  # assigned attribute -> the last assignment
        self.class_values: dict[str, AbsVal] = {}  # point -> what a bit class may make of it
        self.wide_columns = any(key.startswith(COLUMN) for key in presets)
        self.closures: dict[
            int, dict[str, V]
        ] = {}  # scopes that functions made at module level close over
        self.passed_tries: set[tuple[str, int]] = (
            set()
        )  # module-level `try` statements that did not raise
        self.chosen_calls: list[object] = []  # calls whose callee depends on the path
        self.kernel_homes: dict[str, str] = {}  # kernel -> module
        self.record_inputs: list[tuple[str, str, Node]] = []  # (parameter, field, leaf)
        self.settings: dict[str, object] = {}  # knob -> initial setting
        self.sequences: dict[str, SequenceInput] = {}
        self.offers: dict[
            str, tuple[Value, ...]
        ] = {}  # variable -> values it may be pinned to besides
        self.span_override: Span | None = None
        self.failed = False
        self.current_exception = ""
        self.spellings: dict[str, str] = {}  # keys of `functions:` in normal form
        self.set_later: dict[str, frozenset[str]] = {}  # class -> attributes that are state
        self.settled: set[int] = set()  # shared objects of which what may change is forgotten
        self.enums: dict[str, Members] = {}  # by the kind of their symbols
        self.enum_bases: dict[tuple[str, str], tuple[str | None]] = {}
        self.running: list[tuple[str, int]] = []  # module-level statements that run: path, line
        self.change_counts: dict[str, int] = {}  # module-level container -> places that change it
        self.entry_module: ModuleSource | None = None
        self.entry_name = ""
        self.spoiled: set[str] = set()  # sites that some path gives a value that is no scalar
        self.alternatives = 0  # of a value, around what is gone through once for each of them
        self.unseen: dict[
            str, tuple[ModuleSource, str]
        ] = {}  # imported names that could not be followed
        self.lengths: dict[str, set[int]] = {}  # sites -> lengths of the tuples that they hold
        self.changes: frozenset[Change] = frozenset()  # of records, as earlier attempts saw them
        self._module_scopes: dict[str, int] = {}
        self._abs: list[AbsVal] = []
        self._site_numbers: dict[str, int] = {}
        self._mark_keys: list[str] = []

    def new_scope(self, parent: int | None, local: frozenset[str]) -> int:
        """A fresh scope; `local` are the names that it binds anywhere."""
        self.next_scope += 1
        self.parents[self.next_scope] = parent
        self.local_names[self.next_scope] = local
        return self.next_scope

    def module_scope(self, module: ModuleSource) -> int:
        """The scope that holds what functions write to a module's globals on this path."""
        path = str(module.path)
        if path not in self._module_scopes:
            self._module_scopes[path] = self.new_scope(None, frozenset())
        return self._module_scopes[path]

    # -- regions -----------------------------------------------------------------------------

    @property
    def frame(self) -> Frame:
        """The innermost function."""
        return self.frames[-1]

    def path(self, st: State) -> Node:
        """The condition, from the program's entry, of getting to this point."""
        return self.graph.both(self.bases[-1], st.live)

    def since(self, depth: int, st: State) -> Node:
        """The condition of being here, relative to the region that was innermost at `depth`."""
        out = self.true
        for cond in self.conds[depth:]:
            out = self.graph.both(out, cond)
        return self.graph.both(out, st.live)

    @contextmanager
    def under(self, cond: Node) -> Iterator[None]:
        """A region entered under `cond`, relative to the one around it."""
        self.conds.append(cond)
        self.bases.append(self.graph.both(self.bases[-1], cond))
        try:
            yield
        finally:
            self.conds.pop()
            self.bases.pop()

    @contextmanager
    def for_each(self) -> Iterator[None]:
        """What is gone through once for each alternative of a value: its sites are the same."""
        self.alternatives += 1
        try:
            yield
        finally:
            self.alternatives -= 1

    def fixed(self, node: Node) -> bool:
        """Whether a value need not be overwritten: it is known, also in every alternative."""
        return not self.alternatives and self.known(node) is not None

    def branch(
        self, st: State, cond: Node, then: Callable[[State], V], other: Callable[[State], V]
    ) -> V:
        """Run one of two continuations; join states and values if the condition is not known."""
        known = self.known_bool(cond)
        if known is not None:
            return then(st) if known else other(st)
        a, b = st.fork(self.true), st.fork(self.true)
        with self.under(self.graph.both(st.live, cond)):
            va = then(a)
        with self.under(self.graph.both(st.live, self.graph.negate(cond))):
            vb = other(b)
        joined = self.joiner.states(cond, a, b)
        value = self.joiner.values(cond, va, vb, a, b, joined)
        st.live = self.graph.both(st.live, joined.live)
        st.become(joined)
        return value

    # -- what is known of nodes ----------------------------------------------------------------

    def abs(self, node: Node) -> AbsVal:
        """The abstract value of a node, whatever is pinned above it."""
        nodes = self.graph.nodes
        while len(self._abs) <= node.id:
            n = nodes[len(self._abs)]
            if n.op is Op.INPUT:
                value = of_domain(self.graph.inputs[str(n.attr)].domain)
            elif n.op is Op.CONST:
                value = of_values((n.attr,))
            else:
                value = transfer(n, [self._abs[a.id] for a in n.args])
                if n.op is Op.MARK and isinstance(n.attr, int):
                    key = self._mark_keys[n.attr]
                    preset = self.presets.get(key)
                    value = value if preset is None else join(value, preset)
                    offered = self.offered(key)
                    value = join(value, of_values(offered)) if offered else value
                elif n.op is Op.MARK and isinstance(n.attr, tuple):
                    wider = self._marked(*n.attr[:2])
                    value = value if wider is None else join(value, wider)
                elif n.op is Op.LOOKUP and self.wide_columns:
                    wider = self.presets.get(column_key(n))
                    value = value if wider is None else join(value, wider)
            self._abs.append(value)
        return self._abs[node.id]

    def _marked(self, kind: Value, name: Value) -> AbsVal | None:
        """What may be read at a mark that is no site, besides what stands under it."""
        if kind == "result":
            return self.class_values.get(str(name))
        return self.presets.get(f"{PLACE}{name}") if kind == "place" else None

    def known(self, node: Node) -> tuple[Value] | None:
        """The node's value, if it can only be one."""
        if node.is_const:
            return (node.attr,)
        a = self.abs(node)
        return (a.values[0],) if a.single and a.values is not None else None

    def known_bool(self, node: Node) -> bool | None:
        """A bool node's value, if it can only be one."""
        value = self.known(node)
        return None if value is None else bool(value[0])

    # -- sites -----------------------------------------------------------------------------------

    def site_key(self, base: str) -> str:
        """The key of a site of the innermost frame."""
        return f"{self.frame.instance.key}|{base}{self.frame.iterations}"

    def site_number(self, key: str) -> int:
        """A positive number for a site key."""
        return self._site_numbers.setdefault(key, len(self._site_numbers) + 1)

    def offered(self, key: str) -> tuple[Value, ...]:
        """The values offered besides for a site: by `variable` or `function.variable`."""
        base = self.bases_of.get(key, key.rpartition("|")[2])
        owner = self.owner.get(key)
        function = (
            owner.function
            if owner is not None
            else self.frame.instance.function
            if self.frames
            else ""
        )
        return self.offers.get(base, ()) or self.offers.get(f"{function}.{base}", ())

    def position(self, e: ast.AST) -> str:
        """The place of an expression as a site's name has it."""
        return _place(self.span(e))

    def site_marks(self, key: str) -> list[Mark]:
        """The marks of a site so far."""
        site = self.sites.get(key)
        return [] if site is None else list(site.marks)

    def forget(self, key: str, marks: list[Mark]) -> None:
        """Marks that are parts of one evaluation."""
        site = self.sites[key]
        site.marks = [m for m in site.marks if m not in marks]
        if not site.marks:
            for table in (self.sites, self.owner, self.bases_of):
                table.pop(key, None)

    def register(self, key: str, base: str, kind: str, span: Span, node: Node, st: State) -> None:
        """Note that the site takes the value of `node` here."""
        site = self.sites.get(key)
        if site is None:
            site = self.sites[key] = Site("", kind, span)
            self.owner[key] = self.frame.instance
            self.bases_of[key] = base + self.frame.iterations
        site.marks.append(Mark(node, self.path(st), len(self.guards)))

    def mark(self, st: State, base: str, kind: str, node: Node, span: Span) -> Node:
        """Wrap a node as the value of a named site."""
        if self.frame.silent:
            return node
        key = self.site_key(base)
        self._mark_keys.append(key)
        marked = self.graph.add(Op.MARK, node, attr=len(self._mark_keys) - 1, origin=span)
        self.register(key, base, kind, span, marked, st)
        return marked

    def key_of(self, node: Node) -> str | None:
        """The key of the site whose value a node is by itself."""
        while is_place(node):
            node = node.args[0]
        if node.op is Op.MARK and isinstance(node.attr, int):
            return self._mark_keys[node.attr]
        for key, number in self._site_numbers.items():
            if number == node.site and any(m.node is node for m in self.sites[key].marks):
                return key
        return None

    def plan_of(self, function: ast.FunctionDef) -> Plan:
        """The site plan of a function, computed once."""
        known = self.plans.get(id(function))
        if known is None:
            known = self.plans[id(function)] = plan(function)
            self.keep.append(function)
        return known

    # -- operations --------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> Span:
        """The position of a syntax node in the innermost frame's file."""
        if self.span_override is not None:
            return self.span_override
        path = self.frame.module.path if self.frames else ""
        return span_of(node, str(path))

    def op(self, st: State, e: ast.expr, op: Op, *args: Node, attr: Value = None) -> Node:
        """An operation of the expression `e`, with its implicit guard."""
        if op is Op.SELECT:
            return self._op(st, e, op, args, attr)
        if self.enums:
            args = self.operands(op, args, e)
        args = tuple(self.settle(a) for a in args)
        node = self._op(st, e, op, args, attr)
        self.check(st, e, op, attr, args)
        return node

    def operands(self, op: Op, args: tuple[Node, ...], e: ast.AST) -> tuple[Node, ...]:
        """Arguments of an operation, Enum members turned to what they are where Python would."""
        from selc.frontend import enums

        return enums.operands(self, op, args, e)

    def _op(self, st: State, e: ast.expr, op: Op, args: tuple[Node, ...], attr: Value) -> Node:
        span = self.span(e)
        if all(a.is_const for a in args):
            node = self.graph.fold(op, *args, attr=attr, origin=span)
        else:
            base = _place(span)
            key = self.site_key(base)
            node = self.graph.fold(op, *args, attr=attr, site=self.site_number(key), origin=span)
            if not node.is_const and not self.frame.silent and node.site == self.site_number(key):
                self._last_in(key, node)
                self.register(key, base, "expression", span, node, st)
        return node

    def op_unchecked(self, st: State, e: ast.expr, op: Op, *args: Node, attr: Value = None) -> Node:
        """Like `op`, for an operation whose guard has been added already."""
        return self._op(st, e, op, args, attr)

    def settle(self, node: Node) -> Node:
        """The constant that a node certainly is, else the node."""
        if node.is_const or node.op is Op.FAIL:
            return node
        value = self.known(node)
        return node if value is None else self.graph.const(value[0])

    def _last_in(self, key: str, node: Node) -> None:
        """An expression's site is its last node: forget inner nodes of the same evaluation."""
        site = self.sites.get(key)
        if site is not None:
            site.marks = [m for m in site.marks if m.node not in node.args]

    def marks_of(self, e: ast.expr) -> list[Mark]:
        """The marks of an expression's site so far."""
        site = self.sites.get(self.site_key(_place(self.span(e))))
        return [] if site is None else list(site.marks)

    def forget_marks(self, e: ast.expr, before: list[Mark], node: Node) -> None:
        """Of an evaluation that made several nodes, the site is its value alone."""
        site = self.sites.get(self.site_key(_place(self.span(e))))
        if site is not None:
            site.marks = [m for m in site.marks if m.node is node or any(m is b for b in before)]

    def check(self, st: State, e: ast.expr, op: Op, attr: Value, args: tuple[Node, ...]) -> None:
        """Guard an operation that may raise."""
        if TABLE[op].total or never_fails(op, attr, [self.abs(a) for a in args]):
            return
        ok = self.graph.fold(Op.OK, *args, attr=(op.value, attr), origin=self.span(e))
        if self.known_bool(ok) is True:
            return
        self.partial(st, e, ok, exception_of(op, attr, [self.abs(a) for a in args]))

    def partial(self, st: State, e: ast.AST, ok: Node, exception: str, text: str = "") -> None:
        """Control goes on only if `ok`; otherwise `exception` is raised here."""
        if self.known_bool(ok) is True:
            return
        if self.handlers and exception == "":
            self.refuse(
                e,
                "SEL901",
                "this may raise inside a `try`, and which exception is not certain",
                help=(
                    "narrow the facts so that it cannot raise, or state the result of the call "
                    "under `functions:`"
                ),
            )
        for handler in reversed(self.handlers):
            if handler.catches(exception):
                failed = st.fork(self.graph.both(st.live, self.graph.negate(ok)))
                handler.raises.append(
                    Exit(self.since(handler.depth, failed), failed, None, exception, self.span(e))
                )
                st.live = self.graph.both(st.live, ok)
                return
        words = text or f"`{snippet(e)}` must not raise {exception or 'an exception'}"
        self.guard(st, "require", "partial", snippet(e), words, self.span(e), ok)

    def guard(
        self, st: State, kind: str, origin: str, text: str, why: str, span: Span, cond: Node
    ) -> None:
        """Add a guard at this point."""
        path = self.path(st)
        if self.known_bool(path) is False:
            return
        self.guards.append(Guard(kind, origin, text, why, span, path, cond))

    # -- heap ----------------------------------------------------------------------------------

    def obj(self, st: State, ref: Ref, e: ast.AST) -> Obj:
        """The content of a heap object, for reading."""
        if ref.oid in self.heap.stale:
            self.refuse(
                e,
                "SEL906",
                "this object may have been changed through another name",
                help="change a copy of it: `dict(x)` or `x.copy()`",
            )
        return self.heap.get(st, ref)

    def replace(self, st: State, ref: Ref, obj: Obj, e: ast.AST) -> None:
        """Change a heap object."""
        old = self.obj(st, ref, e)
        if self.heap.outlives(ref) and not old.frozen and not getattr(old, "unknown", ""):
            self.refuse(
                e,
                "SEL906",
                "this object is shared between calls: a change to it would be seen by the next one",
                help="change a copy of it: `dict(x)` or `x.copy()`",
            )
        if old.frozen:
            self.refuse(
                e,
                "SEL906",
                f"this object cannot be changed here: {old.frozen}",
                help="change a copy of it: `dict(x)` or `x.copy()`",
            )
        if ref.oid in self.heap.superseded and self.heap.superseded[ref.oid] != ref.oid:
            self.refuse(
                e,
                "SEL906",
                "this object may be known by another name whose value would have to change too",
                help="change a copy of it: `dict(x)` or `x.copy()`",
            )
        todo = [ref.oid]
        while todo:
            for source in self.heap.sources.get(todo.pop(), ()):
                if source not in self.heap.stale:
                    self.heap.stale.add(source)
                    todo.append(source)
        st.heap[ref.oid] = obj

    # -- diagnostics -----------------------------------------------------------------------------

    @contextmanager
    def tentative(self) -> Iterator[None]:
        """What is refused in here leaves no trace but `Refused`: the caller can do without."""
        missing, sink, failed = dict(self.missing), self.sink, self.failed
        self.sink, self.failed = Sink(), False
        try:
            yield
            if self.failed:
                raise Refused
        except Refused:
            self.missing = missing
            self.sink = Sink()
            raise
        finally:
            found, self.sink, self.failed = self.sink, sink, failed
            for diagnostic in found:
                sink.add(diagnostic)

    def refuse(
        self, node: ast.AST | Span, code: str, message: str, help: str = "", label: str = ""
    ) -> NoReturn:
        """Give up on this statement."""
        span = node if isinstance(node, Span) else self.span(node)
        raise Refused(Diagnostic(code, message, span, label=label, help=help))

    def need(self, node: ast.AST, yaml: str, message: str) -> NoReturn:
        """Something outside the source is missing in the facts; collected and shown at once."""
        span = self.span(node)
        self.missing.setdefault(yaml, (span, message))
        raise Refused(
            Diagnostic("SEL912", message, span, help=f"state it in a facts file:\n{yaml}")
        )


def _place(span: Span) -> str:
    """The name of an expression by its position."""
    if span.end_line == span.line:
        return f"L{span.line}C{span.column}-{span.end_column}"
    return f"L{span.line}C{span.column}-L{span.end_line}C{span.end_column}"


def span_of(node: ast.AST, path: str) -> Span:
    """The position of a syntax node."""
    line = getattr(node, "lineno", 0)
    if not line:
        return Span(path, 0, 0, 0, 0)
    end = getattr(node, "end_lineno", None) or line
    column = getattr(node, "col_offset", 0)
    return Span(path, line, column + 1, end, (getattr(node, "end_col_offset", None) or column) + 1)


def snippet(node: ast.AST) -> str:
    """The source form of a syntax node, on one line."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 100 else text[:97] + "..."
