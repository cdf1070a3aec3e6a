"""The graphs of a certificate, read from the text in the manifest: G0 and R."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from selc.check.meaning import MEANING
from selc.check.values import Line, Unreadable, key

Domain = range | tuple[Any, ...]

_TITLE: Final = re.compile(r"([a-z]+):\Z")


class Node(NamedTuple):
    """An operation on earlier nodes."""

    op: str
    args: tuple[int, ...]
    attr: Any


def is_place(node: Node) -> bool:
    """Whether a node marks a field of a record, where `b` overwrites it; it is no site."""
    return node.op == "mark" and isinstance(node.attr, tuple) and node.attr[:1] == ("place",)


class Leaf(NamedTuple):
    """An input, a knob, or the parameter of a pin."""

    kind: str
    domain: Domain


class Mark(NamedTuple):
    """A place where a site's value comes to be: reached if `path`, after the first guards."""

    node: int
    path: int
    after: int


class Guard(NamedTuple):
    """A condition of G0 with its path, or of R in its readings."""

    kind: str
    origin: str
    text: str
    why: str
    where: str
    nodes: dict[str, int]
    unseen: bool = False


class Point(NamedTuple):
    """A selected field."""

    role: str
    node: int
    sites: tuple[str, ...]
    places: tuple[tuple[list[int], list[int]], ...] = ()  # where it comes from, and what is below


@dataclass
class Pin:
    """A pinned site of R. A free one is a constant, or its own value at a fixed batch point."""

    free: bool
    parameter: str | None
    where: str
    candidates: Domain = ()
    exact: bool = True
    offered: tuple[Any, ...] = ()
    constant: Any = None
    at: dict[str, Any] | None = None
    proof: str = ""


@dataclass
class BitClass:
    """A partition of the values of some points, where other points have given values."""

    fields: tuple[str, ...]
    given: dict[str, Any] = field(default_factory=dict)
    unnamed: list[str] = field(default_factory=list)
    members: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)


@dataclass
class Text:
    """What the text of one graph holds. `nodes` are in order, arguments before their users."""

    head: dict[str, list[str]] = field(default_factory=dict)
    leaves: dict[str, Leaf] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    points: dict[str, Point] = field(default_factory=dict)
    guards: list[Guard] = field(default_factory=list)
    assumes: list[Guard] = field(default_factory=list)
    sites: dict[str, list[Mark]] = field(default_factory=dict)
    pins: dict[str, Pin] = field(default_factory=dict)
    knobs: list[str] = field(default_factory=list)
    classes: dict[str, BitClass] = field(default_factory=dict)
    seen: set[Hashable] = field(default_factory=set)
    _places: dict[int, int] = field(default_factory=dict)

    @property
    def scope(self) -> str:
        """`request` or `launch`."""
        return self.head.get("scope", ["request"])[0]

    def position(self, number: int) -> int:
        """Where a node stands among the lines."""
        return self._places[number]

    def batch(self) -> set[str]:
        """The inputs that the batch determines."""
        kinds = {"runtime", "unpinnable"} | ({"request"} if self.scope == "launch" else set())
        return {name for name, leaf in self.leaves.items() if leaf.kind in kinds}

    def cone(self, roots: list[int]) -> list[int]:
        """What some nodes read, themselves included, in order."""
        seen: set[int] = set()
        todo = list(roots)
        while todo:
            n = todo.pop()
            if n not in seen:
                seen.add(n)
                todo.extend(self.nodes[n].args)
        return [n for n in self.nodes if n in seen]

    def reads(self, root: int) -> set[str]:
        """The leaves that a node reads."""
        return {self.nodes[n].attr for n in self.cone([root]) if self.nodes[n].op == "input"}


def read(text: str) -> Text:
    """The graph that the text describes.

    Raises:
        Unreadable: a line is malformed, or names what is not there.
    """
    out = Text()
    section = "head"
    for line in text.split("\n"):
        title = _TITLE.fullmatch(line)
        if line == "graph":
            section = "graph"
        elif title is not None:
            section = title[1]
        elif line.strip():
            _LINES[section if section in _LINES else ""](out, line)
    if not out.points:
        raise Unreadable("the graph has no points")
    return out


def _head(out: Text, line: str) -> None:
    word, _, rest = line.partition(" ")
    out.head.setdefault(word, []).append(rest)


def _graph(out: Text, text: str) -> None:
    line = Line(text)
    if line.accept("input"):
        name = line.name()
        line.expect(":")
        leaf = Leaf(line.name(), line.domain())
        if name in out.leaves:
            raise Unreadable(f"two inputs are named {name}")
        out.leaves[name] = leaf
        return
    number = line.node()
    line.expect("=")
    op = line.name()
    args = tuple(_listed(out, line))
    attr: Any = None
    if op == "const":
        attr = line.value()
    elif op == "input":
        attr = line.name()
        if attr not in out.leaves:
            raise Unreadable(f"no input is named {attr}")
    elif line.accept("["):
        attr = line.value()
        line.expect("]")
    site = line.integer() if line.accept("!") else 0
    line.rest()
    same = (op, args, key(attr), site)
    if same in out.seen:
        raise Unreadable(f"two nodes are one: {text.strip()[:120]}")
    out.seen.add(same)
    if op not in MEANING or number in out.nodes:
        raise Unreadable(f"no such operation, or two nodes of one number: {text.strip()[:120]}")
    if MEANING[op].arity not in (-1, len(args)):
        raise Unreadable(f"{op} takes {MEANING[op].arity} arguments: {text.strip()[:120]}")
    out.nodes[number] = Node(op, args, attr)
    out._places[number] = len(out._places)


def _listed(out: Text, line: Line) -> Iterator[int]:
    while line.kind == "name" and re.fullmatch(r"v\d+", line.token):
        yield _node(out, line)
        if not line.accept(","):
            return


def _node(out: Text, line: Line) -> int:
    number = line.node()
    if number not in out.nodes:
        raise Unreadable(f"v{number} is used before its line: {line.text.strip()[:120]}")
    return number


def _point(out: Text, text: str) -> None:
    line = Line(text)
    name = line.name()
    line.expect(":")
    role = line.name()
    line.expect("=")
    node = _node(out, line)
    sites = []
    if line.accept("at"):
        sites.append(line.name())
        while line.accept(","):
            sites.append(line.name())
    places: list[tuple[list[int], list[int]]] = []
    more = line.accept("over")
    while more:
        ends = _marks(out, line)
        places.append((ends, _marks(out, line) if line.accept("and") else []))
        more = line.accept(",")
    line.rest()
    if any(not is_place(out.nodes[n]) for ends, under in places for n in (*ends, *under)):
        raise Unreadable(f"no place: {text.strip()[:120]}")
    if role not in ("bits", "neutral", "aux") or name in out.points:
        raise Unreadable(f"no point: {text.strip()[:120]}")
    out.points[name] = Point(role, node, tuple(sites), tuple(places))


def _marks(out: Text, line: Line) -> list[int]:
    found = [_node(out, line)]
    while line.kind == "name" and re.fullmatch(r"v\d+", line.token):
        found.append(_node(out, line))
    return found


def _says(line: Line) -> tuple[str, str, str, str]:
    kind, origin, text = line.name(), line.name(), str(line.value())
    why = str(line.value()) if line.accept("because") else ""
    line.expect("=")
    return kind, origin, text, why


def _guard(out: Text, text: str) -> None:
    line = Line(text)
    if line.kind == "number":  # a guard of G0: its number, its path, its condition
        if line.integer() != len(out.guards):
            raise Unreadable(f"guards are not in order: {text.strip()[:120]}")
        line.expect(":")
        says = _says(line)
        path = _node(out, line)
        line.expect("implies")
        nodes = {"path": path, "cond": _node(out, line)}
        out.guards.append(Guard(*says, line.rest(), nodes))
        return
    says = _says(line)
    nodes, unseen = {}, False
    while True:
        reading = line.name()
        if reading == "unseen":
            unseen = True
        elif reading in ("pinned", "adaptive", "mixed"):
            nodes[reading] = _node(out, line)
        else:
            raise Unreadable(f"no such reading: {text.strip()[:120]}")
        if not line.accept(","):
            break
    if "pinned" not in nodes:
        raise Unreadable(f"a guard without its reading: {text.strip()[:120]}")
    out.guards.append(Guard(*says, line.rest(), nodes, unseen))


def _assume(out: Text, text: str) -> None:
    line = Line(text)
    says = _says(line)
    nodes = {"real": _node(out, line)}
    out.assumes.append(Guard(*says, line.rest(), nodes))


def _site(out: Text, text: str) -> None:
    line = Line(text)
    if text.startswith("    "):
        if not out.sites:
            raise Unreadable("a mark without its site")
        node = _node(out, line)
        line.expect("if")
        path = _node(out, line)
        line.expect("after")
        out.sites[next(reversed(out.sites))].append(Mark(node, path, line.integer()))
        return
    name = line.name()
    if name in out.sites:
        raise Unreadable(f"two sites are named {name}")
    out.sites[name] = []


def _pin(out: Text, text: str) -> None:
    line = Line(text)
    if not text.startswith("    "):
        name = line.name()
        line.expect(":")
        kind = line.name()
        parameter = line.name() if line.accept("=") else None
        if kind not in ("pin", "free") or name in out.pins:
            raise Unreadable(f"no pin: {text.strip()[:120]}")
        out.pins[name] = Pin(kind == "free", parameter, line.rest())
        return
    if not out.pins:
        raise Unreadable("an entry without its pin")
    pin = out.pins[next(reversed(out.pins))]
    word = line.name()
    if word == "candidates":
        pin.candidates = line.domain()
        if line.accept("at"):
            line.expect("most")
            pin.exact = False
    elif word == "offered":
        pin.offered = line.value()
    elif word == "constant":
        pin.constant = line.value()
    elif word == "proof":
        pin.proof = str(line.value())
    elif word == "at":
        pin.at = {}
        while True:
            name = line.name()
            line.expect("=")
            pin.at[name] = line.value()
            if not line.accept(","):
                break
    else:
        raise Unreadable(f"no such entry of a pin: {text.strip()[:120]}")
    line.rest()


def _knob(out: Text, text: str) -> None:
    out.knobs.append(Line(text).name())


def _class(out: Text, text: str) -> None:
    line = Line(text)
    if not text.startswith("    "):
        name = line.name()
        line.expect(":")
        fields = [line.name()]
        while line.accept(","):
            fields.append(line.name())
        wrong = [f for f in (name, *fields) if f not in out.points]
        if wrong or name in out.classes or any(out.nodes[out.points[f].node].op != "mark"
                                               for f in fields):  # fmt: skip
            raise Unreadable(f"no bit class: {text.strip()[:120]}")
        out.classes[name] = BitClass(tuple(fields))
    elif not out.classes:
        raise Unreadable("an entry without its bit class")
    else:
        cls = out.classes[next(reversed(out.classes))]
        if line.accept("*"):
            cls.unnamed.append(line.name())
            return
        other = line.accept("&")
        name = line.name()
        line.expect("=")
        value = line.value()
        if other:
            cls.given[name] = value
        elif type(value) is not tuple or len(value) != len(cls.fields):
            raise Unreadable(f"no member of a bit class: {text.strip()[:120]}")
        else:
            cls.members.append((name, value))
    line.rest()


def _unknown(out: Text, text: str) -> None:
    raise Unreadable(f"in no known section: {text.strip()[:120]}")


_LINES: Final = {
    "head": _head,
    "graph": _graph,
    "points": _point,
    "guards": _guard,
    "assumes": _assume,
    "sites": _site,
    "pins": _pin,
    "knobs": _knob,
    "classes": _class,
    "": _unknown,
}
