"""The two functions of a selector, as what an emitter needs: leaves, checks in order, outputs."""

from __future__ import annotations

from dataclasses import dataclass

from selc.codegen.names import comment
from selc.codegen.spec import SelectorSpec
from selc.diag.span import Span
from selc.ir.graph import Graph, Node
from selc.ir.program import Guard


@dataclass(frozen=True, slots=True)
class Check:
    """A condition that must hold: `cond`, or `path` implies it. `message` numbers its text."""

    message: int
    cond: Node
    path: Node | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """What is said when a check fails."""

    kind: str
    text: str
    why: str
    location: str

    @property
    def sentence(self) -> str:
        """One line without the inputs."""
        tail = f" ({self.why})" if self.why else ""
        return f"{self.location}: the {self.kind} `{self.text}` does not hold{tail}"


@dataclass(frozen=True, slots=True)
class Routine:
    """Straight-line code: outputs of leaves, valid only if every check holds.

    `leaves` are the graph inputs in the order of the arguments, `parameters` those of the tuple;
    `needs_tuple` says that nothing may be selected without a tuple in force. The checks whose
    messages are `costly` come last, and their passes are remembered.
    """

    graph: Graph
    leaves: tuple[str, ...]
    parameters: tuple[str, ...]
    checks: tuple[Check, ...]
    messages: tuple[Message, ...]
    outputs: tuple[Node, ...]
    needs_tuple: bool = True
    costly: frozenset[int] = frozenset()

    @property
    def every_call(self) -> tuple[Check, ...]:
        """The checks that every call makes."""
        return tuple(c for c in self.checks if c.message not in self.costly)

    @property
    def once(self) -> tuple[Check, ...]:
        """The checks whose passes are remembered."""
        return tuple(c for c in self.checks if c.message in self.costly)

    @property
    def roots(self) -> list[Node]:
        """Every node whose value is asked for."""
        checked = [n for c in self.checks for n in (c.path, c.cond) if n is not None]
        return [*checked, *self.outputs]


def leaves_of(spec: SelectorSpec) -> tuple[str, ...]:
    """The graph inputs that the arguments feed, in order."""
    return tuple(leaf for argument in spec.arguments for leaf, _ in argument.leaves)


def pinned(spec: SelectorSpec) -> Routine:
    """R with its assumes and the guards that are not settled for every legal tuple."""
    from selc.codegen.cost import remembered

    checks: list[Check] = []
    messages: list[Message] = []
    costly: set[int] = set()
    kept = remembered(spec)
    for guard, node in spec.residual.assumes:
        checks.append(Check(len(messages), node))
        messages.append(message_of(guard))
    for index in spec.checked:
        residual_guard = spec.residual.guards[index]
        if index in kept:
            costly.add(len(messages))
        checks += [Check(len(messages), node) for node in residual_guard.readings]
        messages.append(message_of(residual_guard.guard))
    outputs = tuple(node for _, node in spec.residual.points)
    parameters = tuple(spec.residual.parameters)
    graph = spec.residual.graph
    return Routine(
        graph, leaves_of(spec), parameters, tuple(checks), tuple(messages), outputs,
        costly=frozenset(costly),
    )  # fmt: skip


def unpinned(spec: SelectorSpec) -> Routine:
    """G0 with every guard, in program order. Knobs are read from the tuple."""
    program = spec.program
    checks = tuple(Check(i, g.cond, g.path) for i, g in enumerate(program.guards))
    messages = tuple(message_of(g) for g in program.guards)
    outputs = tuple(p.node for p in program.points)
    parameters = tuple(spec.residual.parameters)
    return Routine(program.graph, leaves_of(spec), parameters, checks, messages, outputs, False)


def message_of(guard: Guard) -> Message:
    """The text for a guard."""
    return Message(guard.kind, guard.text, guard.why, place(guard.span))


def place(span: Span) -> str:
    """A source position as text."""
    return str(span) if span.path else "facts"


def source_comment(graph: Graph, node: Node) -> str:
    """Where a node comes from, for a comment; empty if unknown."""
    span = graph.origin.get(node.id)
    if span is None or not span.path:
        return ""
    return comment(f"{span.path.rsplit('/', 1)[-1]}:{span.line}")
