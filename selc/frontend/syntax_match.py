"""The patterns of `match` statements: libcst nodes to `ast` nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import libcst as cst

from selc.frontend.syntax_expr import Expressions

_SINGLETONS = {"True": True, "False": False, "None": None}


class Patterns(Expressions):
    """Every pattern form."""

    __slots__ = ()

    def pattern(self, node: cst.MatchPattern) -> ast.pattern:
        """Translate one pattern with the parentheses around it."""
        kind = type(node)
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise self.refuse("this pattern is not understood")
        if isinstance(node, cst.MatchValue | cst.MatchSingleton):
            return handler(self, node)
        parens = len(getattr(node, "lpar", ()))
        for _ in range(parens):
            self.take("(")
        inner = self.i - 1
        result = handler(self, node)
        for level in range(parens):
            self.take(")")
            if level == 0 and kind is cst.MatchTuple:
                self.at(result, inner)
        return result

    def _value(self, node: cst.MatchValue) -> ast.pattern:
        value = self.expr(node.value)
        return _placed_like(ast.MatchValue(value), value)

    def _singleton(self, node: cst.MatchSingleton) -> ast.pattern:
        value = self.expr(node.value)
        return _placed_like(ast.MatchSingleton(_SINGLETONS[node.value.value]), value)

    def _sequence(self, node: cst.MatchTuple | cst.MatchList) -> ast.pattern:
        first = self.i
        bracket = isinstance(node, cst.MatchList) and node.lbracket is not None
        if bracket:
            self.take("[")
        patterns = self._elements_of(node.patterns)
        if bracket:
            self.take("]")
        result = ast.MatchSequence(patterns)
        return self.at(result, first) if self.i > first else result

    def _elements_of(
        self, elements: Sequence[cst.MatchSequenceElement | cst.MatchOrElement | cst.MatchStar]
    ) -> list[ast.pattern]:
        patterns: list[ast.pattern] = []
        for element in elements:
            if isinstance(element, cst.MatchStar):
                first = self.i
                self.take("*")
                patterns.append(self.at(ast.MatchStar(self._capture()), first))
            elif isinstance(element, cst.MatchSequenceElement):
                patterns.append(self.pattern(element.value))
            self.skip(",")
        return patterns

    def _capture(self) -> str | None:
        name = self.name()
        return None if name == "_" else name

    def _mapping(self, node: cst.MatchMapping) -> ast.pattern:
        first = self.i
        self.take("{")
        keys: list[ast.expr] = []
        patterns: list[ast.pattern] = []
        for element in node.elements:
            keys.append(self.expr(element.key))
            self.take(":")
            patterns.append(self.pattern(element.pattern))
            self.skip(",")
        rest = None
        if node.rest is not None:
            self.take("**")
            rest = self.name()
            self.skip(",")
        self.take("}")
        return self.at(ast.MatchMapping(keys, patterns, rest), first)

    def _class(self, node: cst.MatchClass) -> ast.pattern:
        first = self.i
        cls = self.expr(node.cls)
        self.take("(")
        patterns = self._elements_of(node.patterns)
        names: list[str] = []
        values: list[ast.pattern] = []
        for element in node.kwds:
            names.append(self.name())
            self.take("=")
            values.append(self.pattern(element.pattern))
            self.skip(",")
        self.take(")")
        return self.at(ast.MatchClass(cls, patterns, names, values), first)

    def _as(self, node: cst.MatchAs) -> ast.pattern:
        first = self.i
        pattern = None
        if node.pattern is not None:
            pattern = self.pattern(node.pattern)
            self.take("as")
        return self.at(ast.MatchAs(pattern, self._capture()), first)

    def _or(self, node: cst.MatchOr) -> ast.pattern:
        first = self.i
        patterns = []
        for element in node.patterns:
            patterns.append(self.pattern(element.pattern))
            self.skip("|")
        return self.at(ast.MatchOr(patterns), first)


def _placed_like(pattern: ast.pattern, value: ast.expr) -> ast.pattern:
    """Give a pattern the place of the value in it (without the parentheses around)."""
    return ast.copy_location(pattern, value)


_HANDLERS: dict[type[cst.MatchPattern], Callable[..., ast.pattern]] = {
    cst.MatchValue: Patterns._value,
    cst.MatchSingleton: Patterns._singleton,
    cst.MatchTuple: Patterns._sequence,
    cst.MatchList: Patterns._sequence,
    cst.MatchMapping: Patterns._mapping,
    cst.MatchClass: Patterns._class,
    cst.MatchAs: Patterns._as,
    cst.MatchOr: Patterns._or,
}
