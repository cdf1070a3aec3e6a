"""Questions to Z3: the only module that imports it, and only when asked.

Budgets are counted in the solver's own steps, so that an answer does not depend on the machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Final

from selc.ir.absval import AbsVal
from selc.ir.evaluate import compile_nodes
from selc.ir.graph import Node
from selc.ir.op import TooWide
from selc.ir.program import Mark
from selc.ir.value import Value
from selc.vra.budget import SOLVER_STEPS
from selc.vra.encoding import Encoder, Expr, Term, Unsupported
from selc.vra.enumerate import Row
from selc.vra.view import View

SPENT: Final = ("max. resource limit exceeded", "canceled")
"""Z3's reasons for not knowing that a larger budget may remove."""


@lru_cache(maxsize=1)
def _z3() -> ModuleType:
    import z3

    return z3  # type: ignore[no-any-return]  # a module without types


class Session:
    """Queries over one view: conditions that always hold are asserted once."""

    def __init__(
        self,
        view: View,
        premises: Sequence[Node] = (),
        rlimit: int = SOLVER_STEPS,
        loose: bool = False,
    ) -> None:
        self.encoder = Encoder(view, _z3(), loose)
        self.view = view
        self.premises = premises
        self.solver = self.encoder.z3.Solver(ctx=self.encoder.context)
        self.solver.set("rlimit", rlimit)
        self.declared: set[str] = set()
        self.spent = False
        """Whether the last query ended because its budget was spent."""
        for term in self.encoder.encode(premises, view.facts):
            self.solver.add(self.true(term))

    def true(self, term: Term) -> Expr:
        """Whether a term is defined and True."""
        if term.kind != "bool":
            if term.kind == "int" and term.defined is not None:
                return self.encoder.truth(False)
            raise Unsupported("a condition that is not a bool")
        return term.expr if term.defined is None else self.encoder.z3.And(term.defined, term.expr)

    def solve(self, goals: Sequence[Expr]) -> tuple[Mapping[str, Value] | None, bool]:
        """An input that meets the goals, or whether there is certainly none."""
        z3 = self.encoder.z3
        fresh = [
            self.encoder.constraints[n]
            for n in sorted(self.encoder.constraints.keys() - self.declared)
        ]
        self.declared |= self.encoder.constraints.keys()
        self.spent = False
        if fresh:
            self.solver.add(*fresh)
        self.solver.push()
        try:
            self.solver.add(*goals)
            verdict = self.solver.check()
            if verdict == z3.sat:
                return self._point(self.solver.model()), True
            self.spent = verdict == z3.unknown and self.solver.reason_unknown() in SPENT
            return None, verdict == z3.unsat
        except z3.Z3Exception:
            return None, False
        finally:
            self.solver.pop()

    def _point(self, model: Expr) -> dict[str, Value]:
        out: dict[str, Value] = {}
        for name, term in self.encoder.leaves.items():
            shown = model.eval(term.expr, model_completion=True)
            if term.kind == "bool":
                out[name] = bool(self.encoder.z3.is_true(shown))
            else:
                number = shown.as_long()
                out[name] = number if term.kind == "int" else self.encoder.atoms[number]
        return out


def find(
    view: View, conditions: Sequence[Node], names: Sequence[str], rlimit: int = SOLVER_STEPS
) -> tuple[Row | None, bool]:
    """A point at which every condition is True; (None, True) if there certainly is none."""
    try:
        session = Session(view, conditions, rlimit)
        point, decided = session.solve(())
    except (Unsupported, TooWide):
        return None, False
    if point is None:
        return None, decided
    row = tuple(point.get(n, view.first(n)) for n in names)
    shown = compile_nodes(view.graph, conditions, names, view.facts)(*row)
    return (row, True) if all(v is True for v in shown) else (None, False)


def session_over(
    view: View, names: Sequence[str], rlimit: int = SOLVER_STEPS, loose: bool = False
) -> Session | None:
    """A session that assumes the assumes over some inputs, or None if they have no encoding.

    A `loose` one excludes, and what it finds has to be confirmed.
    """
    try:
        return Session(
            view, [n for n in view.admits if view.masks[n.id] & view.mask_of(names)], rlimit, loose
        )
    except (Unsupported, TooWide):
        return None


def find_mark(
    session: Session, marks: Sequence[Mark], guards: Sequence[Node | None], value: Value
) -> tuple[Mapping[str, Value] | None, bool]:
    """A point at which the last mark that is reached has a value; (None, True): certainly none."""
    try:
        e, z3, view = session.encoder, session.encoder.z3, session.view
        goals: list[Expr] = []
        later: list[Expr] = []
        for m in reversed(marks):
            live = [g for g in guards[: m.guards_before] if g is not None]
            terms = [e.encode([n], view.facts)[0] for n in (m.node, m.path, *live)]
            reached = z3.And(e.truth(True), *[session.true(t) for t in terms[1:]])
            known = e.truth(True) if terms[0].defined is None else terms[0].defined
            goals.append(z3.And(reached, known, e.equals(terms[0], value), *later))
            later.append(z3.Not(reached))
        return session.solve([z3.Or(*goals)])
    except (Unsupported, TooWide):
        return None, False


def point_of(session: Session, conditions: Sequence[Node]) -> Mapping[str, Value] | None:
    """A point at which all conditions that have an encoding are True, if one is found."""
    goals = []
    for node in conditions:
        try:
            (term,) = session.encoder.encode([node], session.view.facts)
            goals.append(session.true(term))
        except (Unsupported, TooWide):
            continue
    return session.solve(goals)[0]


def independent(
    view: View,
    node: Node,
    conditions: Sequence[Node],
    moving: Sequence[str],
    rlimit: int = SOLVER_STEPS,
) -> bool:
    """Whether no two points that meet the conditions, equal but in `moving`, differ in the node."""
    try:
        session = Session(view, conditions, rlimit)
        e, z3 = session.encoder, session.encoder.z3
        (term,) = e.encode([node], view.facts)
        conditions_of = [session.true(t) for t in e.encode(conditions, view.facts)]
        renamed = []
        for name in moving:
            if name in e.leaves:
                x = e.leaves[name].expr
                make = z3.Bool if z3.is_bool(x) else z3.Int
                renamed.append((x, make(f"{name}'", e.context)))
        if not renamed:
            return True

        def other(expr: Expr) -> Expr:
            return z3.substitute(expr, *renamed)

        goals = [other(c) for c in conditions_of]
        goals += [other(e.constraints[n]) for n in moving if n in e.constraints]
        goals.append(term.expr != other(term.expr))
        if term.defined is not None:
            goals += [term.defined, other(term.defined)]
        point, decided = session.solve(goals)
    except (Unsupported, TooWide):
        return False
    return point is None and decided


def lenient_session(view: View, rlimit: int = SOLVER_STEPS) -> Session:
    """A session that assumes what it can of the assumes; points it finds must be confirmed."""
    kept = []
    for node in view.admits:
        try:
            Encoder(view, _z3()).encode([node], view.facts)
        except (Unsupported, TooWide):
            continue
        kept.append(node)
    return Session(view, kept, rlimit)


def falsify(
    session: Session, node: Node, facts: Sequence[AbsVal], parameters: int
) -> tuple[Mapping[str, Value] | None, bool]:
    """A point at which a node is not True under `facts`; (None, True): certainly none."""
    session.spent = False
    try:
        (term,) = session.encoder.encode([node], facts, parameters)
        return session.solve([session.encoder.z3.Not(session.true(term))])
    except (Unsupported, TooWide):
        return None, False
