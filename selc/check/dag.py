"""One graph that holds several readings side by side; nodes that agree are one node."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

from selc.check.certificate import Domain, Node, Text
from selc.check.meaning import SAME, once
from selc.check.values import UNDEF, WIDE, key

TRUE: Final = 0
"""The number of the node `const True` in every `Dag`."""


class Dag:
    """Nodes in order, arguments before their users. Operations on constants are computed."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.domains: dict[str, Domain] = {}
        self._known: dict[Hashable, int] = {}
        self.const(True)

    def const(self, value: Any) -> int:
        """A constant."""
        return self._intern(Node("const", (), value))

    def leaf(self, name: str, domain: Domain) -> int:
        """An input or a parameter; its domain is that of its first mention."""
        self.domains.setdefault(name, domain)
        return self._intern(Node("input", (), name))

    def add(self, op: str, args: Sequence[int], attr: Any = None) -> int:
        """An operation."""
        given = [self.nodes[a] for a in args]
        if op == "select" and given[0].op == "const":
            if given[0].attr is UNDEF:
                return args[0]
            return args[1] if given[0].attr else args[2]
        if op == SAME and args[0] == args[1]:
            return TRUE
        if op != "fail" and all(n.op == "const" for n in given):
            value = once(op, attr, [n.attr for n in given])
            if value is not WIDE:
                return self.const(value)
        return self._intern(Node(op, tuple(args), attr))

    def same(self, a: int, b: int) -> int:
        """Whether two values are equal in type and bits."""
        return self.add(SAME, (a, b))

    def true(self, a: int) -> int:
        """Whether a value is True."""
        return self.same(a, TRUE)

    def implies(self, premises: Iterable[int], claim: int) -> int:
        """The claim, where all premises are True."""
        for premise in premises:
            claim = self.add("select", (self.true(premise), claim, TRUE))
        return claim

    def both(self, nodes: Iterable[int]) -> int:
        """Whether all are True."""
        out = TRUE
        for n in nodes:
            out = self.add("select", (self.true(n), out, self.const(False)))
        return out

    def copy(
        self,
        text: Text,
        roots: Sequence[int],
        done: dict[int, int],
        leaves: Mapping[str, int] | None = None,
    ) -> list[int]:
        """Copies of some nodes of a certificate; what `done` holds stands for the original.

        `leaves` replaces inputs by nodes of this graph. Marks are looked through.
        """
        todo, wanted = [r for r in roots if r not in done], set()
        while todo:
            n = todo.pop()
            if n not in wanted:
                wanted.add(n)
                todo.extend(a for a in text.nodes[n].args if a not in done)
        for n in sorted(wanted, key=text.position):
            op, args, attr = text.nodes[n]
            if op == "input":
                replaced = (leaves or {}).get(attr)
                done[n] = (
                    self.leaf(attr, text.leaves[attr].domain) if replaced is None else replaced
                )
            elif op == "const":
                done[n] = self.const(attr)
            elif op == "mark":
                done[n] = done[args[0]]
            else:
                done[n] = self.add(op, [done[a] for a in args], attr)
        return [done[r] for r in roots]

    def cone(self, root: int) -> list[int]:
        """What a node reads, itself included, in order."""
        seen = {root}
        todo = [root]
        while todo:
            for a in self.nodes[todo.pop()].args:
                if a not in seen:
                    seen.add(a)
                    todo.append(a)
        return sorted(seen)

    def reads(self, root: int) -> list[str]:
        """The leaves that a node reads."""
        return [self.nodes[n].attr for n in self.cone(root) if self.nodes[n].op == "input"]

    def _intern(self, node: Node) -> int:
        known = (node.op, node.args, key(node.attr))
        number = self._known.get(known)
        if number is None:
            number = self._known[known] = len(self.nodes)
            self.nodes.append(node)
        return number
