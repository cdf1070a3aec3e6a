"""Straight-line C for one routine: every node once, nothing that can fault, then the checks.

Integers are int64 only where their bounds are known and fit; a node that may be undefined carries
a flag, and a stand-in inside its bounds for the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from selc.codegen import cops
from selc.codegen.cvalue import (
    BOOL,
    CONST,
    FLOAT,
    INT,
    INT64,
    ConstantTable,
    Unsupported,
    Val,
    all_of,
    any_of,
    constant,
    integer,
    is_constant_kind,
    negation,
    pick,
    real,
    stand_in,
    tag_of,
)
from selc.codegen.facts import NARROWED, NEVER, Fact, analyse, merge, text_possible
from selc.codegen.routine import Routine, source_comment
from selc.codegen.slots import Slot
from selc.ir.absval import INTEGRAL, NUMERIC, of_values
from selc.ir.graph import Node
from selc.ir.op import Op
from selc.ir.value import UNDEF, Value

BOOLS: Final = frozenset({Op.LT, Op.LE, Op.GT, Op.GE})
SEARCH_FROM: Final = 12


class CBody:
    """The statements and tables of a routine. Raises `Unsupported` where C cannot say it."""

    def __init__(
        self, routine: Routine, prefix: str, table: ConstantTable, slots: Mapping[str, Slot]
    ) -> None:
        self.routine = routine
        self.prefix = prefix
        self.table = table
        self.tables: list[str] = []
        self.lines: list[str] = []
        self.values: dict[int, Val] = {}
        self._slots = slots
        self.cone = routine.graph.cone(routine.roots)
        self.facts = analyse(routine.graph, self.cone)
        for node in self.cone:
            try:
                self.values[node.id] = self._emit(node)
            except Unsupported as refusal:
                where = source_comment(routine.graph, node)
                raise Unsupported(f"{refusal}" + (f" ({where})" if where else "")) from None

    def truthy(self, k: str) -> str:
        """Python's bool of a constant by number (the table is written last)."""
        return f"{self.prefix}truthy[{k}] != 0"

    # --- nodes ----------------------------------------------------------------------------------

    def _emit(self, node: Node) -> Val:
        fact = self.facts[node.id]
        if node.op is Op.MARK:
            return self.values[node.args[0].id]
        if node.op is Op.CONST:
            return constant(node.attr, fact, self.table)
        if node.op is Op.INPUT:
            return self._store(node, self._input(node, fact))
        if fact.abs.values == () or not fact.abs.kinds:
            return Val(Fact(NEVER), d="0")
        self._check_width(fact)
        args = [self.values[a.id] for a in node.args]
        if fact.abs.single and node.op is not Op.OK:
            assert fact.abs.values is not None
            return constant(fact.abs.values[0], fact, self.table)
        return self._store(node, self._compute(node, fact, args))

    def _input(self, node: Node, fact: Fact) -> Val:
        slot = self._slots[str(node.attr)]
        if slot.encoding == "float":
            return Val(fact, f=slot.access)
        if slot.encoding in ("int", "bool"):
            return Val(fact, v=slot.access)
        assert slot.values is not None
        name = f"{self.prefix}{slot.field}"
        out: dict[str, str] = {}
        for part, texts in self._rows(fact, list(slot.values)).items():
            if texts is not None:
                self.tables.append(
                    _array("double" if part == "f" else "int64_t", f"{name}_{part}", texts)
                )
                out[part] = f"{name}_{part}[{slot.access}]"
        return _assemble(fact, None, out)

    def _compute(self, node: Node, fact: Fact, args: list[Val]) -> Val:
        op = node.op
        if op is Op.SELECT:
            return self._select(fact, args)
        if op is Op.OK:
            return self._ok(node, fact, args)
        if any(a.defined == "0" for a in args):
            return Val(Fact(NEVER), d="0")
        simple = self._total(op, args)
        given = all_of(a.defined for a in args)
        if simple is not None:
            return Val(fact, v=simple, d=_flag(given))
        if op is Op.TUPLE and fact.abs.values is None:
            return Val(fact, d=_flag(given), items=tuple(args))
        if op in (Op.LOOKUP, Op.HASKEY, Op.INDEX, Op.IN):
            found = self._search(node, fact, args, given)
            if found is not None:
                return found
        if op in NARROWED and not text_possible(op, [a.fact.abs for a in args]):
            return self._numeric(node, fact, args, given)
        return self._by_cases(node, fact, args, given)

    def _total(self, op: Op, args: list[Val]) -> str | None:
        """Comparisons and truth, as tests."""
        if op in (Op.TRUTH, Op.NOT):
            test = cops.truth(args[0], self.truthy)
            return test if op is Op.TRUTH else negation(test)
        if op in (Op.EQ, Op.NE, Op.IS):
            try:
                relation = cops.identical if op is Op.IS else cops.equal
                a, b = args if op is Op.IS else self._alike(args[0], args[1])
                test = relation(a, b)
            except Unsupported:
                if all(a.fact.abs.values is not None for a in args):
                    return None
                raise
            return negation(test) if op is Op.NE else test
        return None

    def _numeric(self, node: Node, fact: Fact, args: list[Val], given: str) -> Val:
        op = node.op
        if any(not a.kinds & NUMERIC for a in args):
            return Val(Fact(NEVER), d="0")
        if op in (Op.MIN2, Op.MAX2):
            return self._extreme(op, fact, args, given)
        fine = cops.fails_not(op, args)
        defined = _flag(all_of([given, fine]))
        if op in BOOLS:
            return Val(fact, v=cops.compare(op, args[0], args[1]), d=defined)
        v, f, _, _ = stand_in(fact, self.table)
        if fact.abs.kinds <= INTEGRAL:
            return Val(
                fact, v=cops.integer_result(op, args, fine, v), d=defined, t=self._bool_tag(fact)
            )
        if fact.abs.kinds == {"float"}:
            return Val(fact, f=cops.float_result(op, args, fine, f), d=defined)
        raise Unsupported("a value is an int on one path and a float on another")

    def _bool_tag(self, fact: Fact) -> str | None:
        if len(fact.abs.kinds) > 1:
            raise Unsupported("a value is an int on one path and a bool on another")
        return None

    def _extreme(self, op: Op, fact: Fact, args: list[Val], given: str) -> Val:
        first, second = args
        relation = Op.LT if op is Op.MIN2 else Op.GT
        test = cops.compare(relation, second, first)
        chosen = self._merge(fact, test, second, first)
        fine = all_of([given, *(cops.is_number(a) for a in args)])
        return Val(fact, chosen.v, chosen.f, chosen.k, chosen.t, _flag(fine))

    def _select(self, fact: Fact, args: list[Val]) -> Val:
        cond, then, other = args
        if cond.defined == "0":
            return Val(Fact(NEVER), d="0")
        test = cops.truth(cond, self.truthy)
        merged = self._merge(fact, test, then, other)
        defined = all_of([cond.defined, pick(test, then.defined, other.defined)])
        return replace(merged, d=_flag(defined))

    def _alike(self, a: Val, b: Val) -> tuple[Val, Val]:
        """Two tuples in one form: beside a computed one, a constant one is taken apart."""
        if (a.items is None) == (b.items is None):
            return a, b
        return (a if a.items is not None else self._apart(a)), (
            b if b.items is not None else self._apart(b)
        )

    def _apart(self, a: Val) -> Val:
        if not a.fact.abs.single or a.kinds != {"tuple"}:
            return a
        assert a.fact.abs.values is not None
        members = a.fact.abs.values[0]
        assert isinstance(members, tuple)
        facts = [Fact(of_values((m,))) for m in members]
        items = tuple(constant(m, f, self.table) for m, f in zip(members, facts, strict=True))
        return Val(a.fact, d=a.d, items=items)

    def _merge_items(self, fact: Fact, test: str, then: Val, other: Val) -> Val:
        a, b = then.items, other.items
        if a is None or b is None or len(a) != len(b):
            raise Unsupported("a tuple is computed on one path and not on another")
        merged = [self._merge(merge(x.fact, y.fact), test, x, y) for x, y in zip(a, b, strict=True)]
        return Val(fact, items=tuple(merged))

    def _merge(self, fact: Fact, test: str, then: Val, other: Val) -> Val:
        then, other = self._alike(then, other)
        if then.items is not None or other.items is not None:
            return self._merge_items(fact, test, then, other)
        v, f, k, t = stand_in(fact, self.table)
        tags = Val(fact).tags

        def component(name: str, default: str) -> str:
            a, b = getattr(then, name), getattr(other, name)
            return pick(test, a if a is not None else default, b if b is not None else default)

        out_t = None
        if len(tags) > 1:
            out_t = pick(test, _tag_text(then, t), _tag_text(other, t))
        return Val(
            fact,
            v=component("v", v) if {BOOL, INT} & set(tags) else None,
            f=component("f", f) if FLOAT in tags else None,
            k=component("k", k) if CONST in tags else None,
            t=out_t,
        )

    def _ok(self, node: Node, fact: Fact, args: list[Val]) -> Val:
        assert isinstance(node.attr, tuple)
        op = Op(node.attr[0])
        if op is Op.FAIL:
            return Val(fact, v="0")
        if any(a.defined == "0" for a in args) or fact.abs.single:
            single = fact.abs.values[0] if fact.abs.single and fact.abs.values else True
            return Val(fact, v="1" if single else "0")
        given = all_of(a.defined for a in args)
        return Val(fact, v=any_of([negation(given), self._fine(op, node.attr[1], args)]))

    def _fine(self, op: Op, attr: Value, args: list[Val]) -> str:
        """A test that the operation does not raise on these, given that they are defined."""
        if op is Op.LOOKUP and ("tuple" not in args[0].kinds or args[0].items is not None):
            assert isinstance(attr, tuple)
            return any_of(cops.equals_constant(args[0], k, self.table) for k, _ in attr)
        whole = args[0].fact.abs.values if op is Op.INDEX and args[0].fact.abs.single else None
        if whole and isinstance(whole[0], (str, tuple)) and args[1].kinds <= INTEGRAL:
            n = len(whole[0])
            return all_of([f"{args[1].v} >= {integer(-n)}", f"{args[1].v} < {integer(n)}"])
        if op in NARROWED and not text_possible(op, [a.fact.abs for a in args]):
            if any(not a.kinds & NUMERIC for a in args):
                return "0"
            return cops.fails_not(op, args)
        rows = cops.cases(op, attr, args, self.table)
        return any_of(test for test, value in rows if value is not UNDEF)

    # --- tables -----------------------------------------------------------------------------------

    def _search(self, node: Node, fact: Fact, args: list[Val], given: str) -> Val | None:
        """Lookups in constant mappings and tuples."""
        op, attr = node.op, node.attr
        if op in (Op.LOOKUP, Op.HASKEY):
            assert isinstance(attr, tuple)
            keys = [k for k, _ in attr] if op is Op.LOOKUP else list(attr)
            if "tuple" in args[0].kinds and args[0].items is None:
                return None
            tests = [cops.equals_constant(args[0], k, self.table) for k in keys]
            if op is Op.HASKEY:
                return Val(fact, v=any_of(tests), d=_flag(given))
            results = [v for _, v in attr]
            if (
                len(keys) >= SEARCH_FROM
                and all(type(k) is int for k in keys)
                and args[0].kinds <= INTEGRAL
            ):
                return self._binary(node, fact, args[0], keys, results, given)
            return self._table(node, fact, tests, results, given)
        a, b = args
        if op is Op.IN and b.fact.abs.single and b.kinds == {"tuple"}:
            assert b.fact.abs.values is not None
            members = b.fact.abs.values[0]
            assert isinstance(members, tuple)
            if "tuple" in a.kinds and a.items is None:
                return None
            tests = [cops.equals_constant(a, m, self.table) for m in members]
            return Val(fact, v=any_of(tests), d=_flag(given))
        if op is Op.INDEX and a.fact.abs.single and a.kinds == {"tuple"} and b.kinds <= INTEGRAL:
            assert a.fact.abs.values is not None
            members = a.fact.abs.values[0]
            assert isinstance(members, tuple)
            keys = list(range(-len(members), len(members)))
            results = [members[i] for i in keys]
            if len(keys) >= SEARCH_FROM:
                return self._binary(node, fact, b, keys, results, given)
            tests = [cops.equals_constant(b, i, self.table) for i in keys]
            return self._table(node, fact, tests, results, given)
        return None

    def _binary(
        self, node: Node, fact: Fact, key: Val, keys: list[int], results: list[Value], given: str
    ) -> Val:
        """A sorted table of integers, searched by halving; the row past the end is the stand-in."""
        rows = {k: r for k, r in zip(keys, results, strict=True)}  # noqa: C416  # the last one wins
        order = sorted(rows)
        name = f"{self.prefix}t{node.id}"
        self.tables.append(_array("int64_t", f"{name}_key", [integer(k) for k in order]))
        at = f"r{node.id}"
        self.lines.append(f"const size_t {at} = selc_i_find({name}_key, {len(order)}, {key.v});")
        components = self._rows(fact, [rows[k] for k in order])
        out: dict[str, str] = {}
        for part, ctype in (("v", "int64_t"), ("f", "double"), ("k", "int64_t"), ("t", "int64_t")):
            if components.get(part) is not None:
                self.tables.append(_array(ctype, f"{name}_{part}", components[part] or []))
                out[part] = f"{name}_{part}[{at}]"
        found = f"{at} < {len(order)}"
        return _assemble(fact, _flag(all_of([given, found])), out)

    def _table(
        self, node: Node, fact: Fact, tests: list[str], results: list[Value], given: str
    ) -> Val:
        return self._chain(fact, list(zip(tests, results, strict=True)), given)

    def _by_cases(self, node: Node, fact: Fact, args: list[Val], given: str) -> Val:
        rows = cops.cases(node.op, node.attr, args, self.table)
        return self._chain(fact, rows, given)

    def _chain(self, fact: Fact, rows: list[tuple[str, Value]], given: str) -> Val:
        """One test after the other; the last one that holds is never needed twice."""
        good = [(test, value) for test, value in rows if value is not UNDEF and test != "0"]
        components = self._rows(fact, [value for _, value in good])
        out: dict[str, str] = {}
        for part, texts in components.items():
            if texts is None:
                continue
            text = texts[-1]
            for (test, _), here in zip(reversed(good), reversed(texts[:-1]), strict=True):
                text = pick(test, here, text)
            out[part] = text
        return _assemble(fact, _flag(all_of([given, any_of(t for t, _ in good)])), out)

    def _rows(self, fact: Fact, values: list[Value]) -> dict[str, list[str] | None]:
        """The components of constant rows, with the stand-in as a last row."""
        v, f, k, t = stand_in(fact, self.table)
        tags = Val(fact).tags
        vs, fs, ks, ts = [], [], [], []
        for value in values:
            is_int = isinstance(value, (bool, int))
            vs.append(integer(int(value)) if is_int else v)  # type: ignore[call-overload]  # tested
            fs.append(real(value) if isinstance(value, float) else f)
            ks.append(str(self.table.number(value)) if is_constant_kind(value) else k)
            ts.append(str(tag_of(value)))
        return {
            "v": [*vs, v] if {BOOL, INT} & set(tags) else None,
            "f": [*fs, f] if FLOAT in tags else None,
            "k": [*ks, k] if CONST in tags else None,
            "t": [*ts, str(t)] if len(tags) > 1 else None,
        }

    def live_lines(self, roots: Iterable[str]) -> list[str]:
        """The statements that the root expressions need."""
        wanted = set(re.findall(r"\w+", " ".join(roots)))
        kept = []
        for line in reversed(self.lines):
            name = line.split(" = ", 1)[0].rsplit(" ", 1)[-1]
            if name in wanted:
                wanted.update(re.findall(r"\w+", line))
                kept.append(line)
        return kept[::-1]

    # --- statements -------------------------------------------------------------------------------

    def _store(self, node: Node, val: Val) -> Val:
        """Give the components of a node names, unless they are names or numbers already."""
        if val.items is not None:
            named = [self._store_as(f"{node.id}_{j}", x, "") for j, x in enumerate(val.items)]
            flag = self._store_as(str(node.id), Val(val.fact, d=val.d), "")
            return replace(val, d=flag.d, items=tuple(named))
        where = source_comment(self.routine.graph, node)
        return self._store_as(str(node.id), val, f" /* {where} */" if where else "")

    def _store_as(self, number: str, val: Val, note: str) -> Val:
        if val.items is not None:
            return val
        out: dict[str, str | None] = {}
        for part in ("v", "f", "k", "t", "d"):
            text = getattr(val, part)
            if text is None or _is_atom(text):
                out[part] = text
                continue
            ctype = "double" if part == "f" else "int64_t"
            name = f"{part}{number}"
            self.lines.append(f"const {ctype} {name} = {text};{note}")
            out[part] = name
        return _assemble(val.fact, out["d"], out)

    def _check_width(self, fact: Fact) -> None:
        a = fact.abs
        if not a.kinds & INTEGRAL:
            return
        if a.lo is None or a.hi is None:
            raise Unsupported("an integer has no bounds that selc can see")
        if a.lo < INT64[0] or a.hi > INT64[1]:
            raise Unsupported("an integer may need more than 64 bits")


def _tag_text(a: Val, fallback: int) -> str:
    if a.t is not None:
        return a.t
    tags = a.tags
    return str(tags[0] if tags else fallback)


def _assemble(fact: Fact, d: str | None, parts: Mapping[str, str | None]) -> Val:
    return Val(fact, parts.get("v"), parts.get("f"), parts.get("k"), parts.get("t"), d)


def _flag(test: str) -> str | None:
    return None if test == "1" else test


_ATOM: Final = re.compile(
    r"\w+|INT64_C\(\d+\)|\(-INT64_C\(\d+\)\)|0x[01]\.[0-9a-f]+p[-+]\d+|\(-0x[01]\.[0-9a-f]+p[-+]\d+\)"
)


def _is_atom(text: str) -> bool:
    return _ATOM.fullmatch(text) is not None


def _array(ctype: str, name: str, items: list[str]) -> str:
    return f"static const {ctype} {name}[] = {{{', '.join(items)}}};"
