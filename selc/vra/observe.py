"""What the unpinned program shows at each point: values of sites, and whether it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from selc.ir.evaluate import compile_nodes
from selc.ir.graph import Node
from selc.ir.op import Op
from selc.ir.program import Mark, Program, Site
from selc.ir.value import UNDEF
from selc.vra.enumerate import Row
from selc.vra.view import View

Observer = Callable[[list[Row]], list[Row]]


def prefix(view: View, program: Program, site: Site) -> list[Node]:
    """The conditions of all guards that stand before some mark of the site."""
    count = max((m.guards_before for m in site.marks), default=0)
    return [n for n in view.holds[:count] if n is not None]


def own(view: View, site: Site) -> int:
    """The inputs that the site's marks read themselves."""
    return view.mask([n for m in site.marks for n in (m.node, m.path)])


def needed(view: View, site: Site) -> int:
    """The inputs that tell the site's value: its own, and those of guards between its marks.

    A guard between two marks decides which of them is the last one reached.
    """
    counts = [m.guards_before for m in site.marks]
    between = view.holds[min(counts, default=0) : max(counts, default=0)]
    return own(view, site) | view.mask([n for n in between if n is not None])


class _Text:
    def __init__(self) -> None:
        self.roots: list[Node] = []
        self.slots: dict[int, str] = {}
        self.lines: list[str] = []
        self.flags: dict[int, str] = {0: "True"}

    def root(self, node: Node) -> str:
        if node.id not in self.slots:
            self.slots[node.id] = f"r{len(self.roots)}"
            self.roots.append(node)
        return self.slots[node.id]

    def holds(self, node: Node) -> str:
        if node.is_const:
            return "True" if node.attr is True else "False"
        return f"{self.root(node)} is True"

    def alive(self, guards: Sequence[Node | None], count: int) -> str:
        """The name of the flag that says whether the first `count` guards hold."""
        name, start = "True", 0
        for k in range(count, 0, -1):
            if k in self.flags:
                name, start = self.flags[k], k
                break
        for k in range(start, count):
            node = guards[k]
            if node is not None:
                test = f"{self.root(node)} is True"
                self.lines.append(f"a{k + 1} = {test if name == 'True' else f'{name} and {test}'}")
                name = f"a{k + 1}"
            self.flags[k + 1] = name
        return name


def where_reached(view: View, mark: Mark) -> Node:
    """The mark's value, computed only on its path."""
    g = view.graph
    return g.fold(Op.SELECT, mark.path, mark.node, g.add(Op.FAIL))


def observer(
    view: View,
    marks: Sequence[Sequence[Mark]],
    values: Sequence[Node],
    names: Sequence[str],
    guards: Sequence[Node | None],
) -> Observer:
    """A function from points over `names` to rows of what is seen there.

    A row holds, for each list of marks, the value of the last one reached (`UNDEF`: none), then the
    plain value of each node of `values`, then whether all of `guards` hold.
    """
    text = _Text()
    for group in sorted({m.guards_before for ms in marks for m in ms}):
        text.alive(guards, group)
    shown = []
    for group_marks in marks:
        out = "_u"
        for m in group_marks:
            tests = [
                t for t in (text.alive(guards, m.guards_before), text.holds(m.path)) if t != "True"
            ]
            value = text.root(where_reached(view, m))
            out = f"({value} if {' and '.join(tests)} else {out})" if tests else value
        shown.append(out)
    shown += [text.root(v) for v in values]
    shown.append(text.alive(guards, len(guards)))
    view.extend()
    function = compile_nodes(view.graph, text.roots, names, view.facts)
    unpack = f"({', '.join(f'r{k}' for k in range(len(text.roots)))},) = " if text.roots else ""
    source = (
        "def observe(rows):\n    out = []\n    for row in rows:\n"
        f"        {unpack}f(*row)\n"
        + "".join(f"        {line}\n" for line in text.lines)
        + f"        out.append(({', '.join(shown)},))\n    return out\n"
    )
    namespace: dict[str, object] = {"f": function, "_u": UNDEF}
    exec(compile(source, "<sites>", "exec"), namespace)  # noqa: S102  # text made from the graph alone
    result = namespace["observe"]
    assert callable(result)
    return result
