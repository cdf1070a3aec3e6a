"""Statements: libcst nodes to `ast` nodes."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence

import libcst as cst

from selc.frontend.syntax_expr import BINARY, DEL, STORE
from selc.frontend.syntax_match import Patterns

_AUGMENTED: dict[type[cst.CSTNode], ast.operator] = {
    getattr(cst, kind.__name__ + "Assign"): operator for kind, operator in BINARY.items()
}


class Statements(Patterns):
    """Every statement form."""

    __slots__ = ()

    def suite(self, body: Sequence[cst.BaseStatement | cst.BaseSmallStatement]) -> list[ast.stmt]:
        """Translate the statements of a module or a block."""
        result: list[ast.stmt] = []
        for node in body:
            if isinstance(node, cst.SimpleStatementLine):
                result.extend(self.suite(node.body))
                continue
            handler = _HANDLERS.get(type(node))
            if handler is None:
                raise self.refuse("this statement is newer Python syntax than selc reads")
            result.append(handler(self, node))
            if isinstance(node, cst.BaseSmallStatement):
                self.skip(";")
        return result

    def block(self, node: cst.BaseSuite) -> list[ast.stmt]:
        """Translate `:` and the block after it."""
        self.take(":")
        if isinstance(node, cst.IndentedBlock | cst.SimpleStatementSuite):
            return self.suite(node.body)
        raise self.refuse("this block is not understood")

    def _expr(self, node: cst.Expr) -> ast.stmt:
        first = self.i
        return self.at(ast.Expr(self.expr(node.value)), first)

    def _assign(self, node: cst.Assign) -> ast.stmt:
        first = self.i
        targets = []
        for target in node.targets:
            targets.append(self.expr(target.target, STORE))
            self.take("=")
        return self.at(ast.Assign(targets, self.expr(node.value), None), first)

    def _augmented(self, node: cst.AugAssign) -> ast.stmt:
        first = self.i
        target = self.expr(node.target, STORE)
        assert isinstance(target, ast.Name | ast.Attribute | ast.Subscript)
        operator = _AUGMENTED[type(node.operator)]
        self.i += 1
        return self.at(ast.AugAssign(target, operator, self.expr(node.value)), first)

    def _annotated(self, node: cst.AnnAssign) -> ast.stmt:
        first = self.i
        simple = isinstance(node.target, cst.Name) and not node.target.lpar
        target = self.expr(node.target, STORE)
        assert isinstance(target, ast.Name | ast.Attribute | ast.Subscript)
        self.take(":")
        annotation = self.expr(node.annotation.annotation)
        value = None
        if node.value is not None:
            self.take("=")
            value = self.expr(node.value)
        return self.at(ast.AnnAssign(target, annotation, value, int(simple)), first)

    def _word(self, node: cst.Pass | cst.Break | cst.Continue) -> ast.stmt:
        statement = _WORDS[self.text[self.i]]()
        self.i += 1
        return self.at(statement, self.i - 1)

    def _return(self, node: cst.Return) -> ast.stmt:
        first = self.i
        self.take("return")
        value = self.expr(node.value) if node.value is not None else None
        return self.at(ast.Return(value), first)

    def _raise(self, node: cst.Raise) -> ast.stmt:
        first = self.i
        self.take("raise")
        error = self.expr(node.exc) if node.exc is not None else None
        cause = None
        if node.cause is not None:
            self.take("from")
            cause = self.expr(node.cause.item)
        return self.at(ast.Raise(error, cause), first)

    def _assert(self, node: cst.Assert) -> ast.stmt:
        first = self.i
        self.take("assert")
        test = self.expr(node.test)
        message = None
        if node.msg is not None:
            self.take(",")
            message = self.expr(node.msg)
        return self.at(ast.Assert(test, message), first)

    def _delete(self, node: cst.Del) -> ast.stmt:
        first = self.i
        self.take("del")
        if isinstance(node.target, cst.Tuple) and not node.target.lpar:
            targets = self._elements(node.target.elements, DEL)
        else:
            targets = [self.expr(node.target, DEL)]
        return self.at(ast.Delete(targets), first)

    def _scope(self, node: cst.Global | cst.Nonlocal) -> ast.stmt:
        first = self.i
        kind = ast.Global if isinstance(node, cst.Global) else ast.Nonlocal
        self.i += 1
        names = []
        for _ in node.names:
            names.append(self.name())
            self.skip(",")
        return self.at(kind(names), first)

    def _import(self, node: cst.Import) -> ast.stmt:
        first = self.i
        self.take("import")
        return self.at(ast.Import(self._aliases(node.names)), first)

    def _import_from(self, node: cst.ImportFrom) -> ast.stmt:
        first = self.i
        self.take("from")
        while self.text[self.i] in (".", "..."):
            self.i += 1
        module = self.dotted() if node.module is not None else None
        self.take("import")
        if isinstance(node.names, cst.ImportStar):
            self.take("*")
            names = [self.at(ast.alias("*", None), self.i - 1)]
        else:
            parenthesized = self.skip("(")
            names = self._aliases(node.names)
            if parenthesized:
                self.take(")")
        return self.at(ast.ImportFrom(module, names, len(node.relative)), first)

    def _aliases(self, given: Sequence[cst.ImportAlias]) -> list[ast.alias]:
        aliases = []
        for alias in given:
            first = self.i
            name = self.dotted()
            alias_name = None
            if alias.asname is not None:
                self.take("as")
                alias_name = self.name()
            aliases.append(self.at(ast.alias(name, alias_name), first))
            self.skip(",")
        return aliases

    def _decorators(self, given: Sequence[cst.Decorator]) -> list[ast.expr]:
        decorators = []
        for decorator in given:
            self.take("@")
            decorators.append(self.expr(decorator.decorator))
        return decorators

    def _no_type_parameters(self, node: cst.FunctionDef | cst.ClassDef) -> None:
        if node.type_parameters is not None:
            raise self.refuse(
                "type parameters in brackets (Python 3.12) are not supported",
                help_text="Declare the type variables with TypeVar before the definition.",
            )

    def _function(self, node: cst.FunctionDef) -> ast.stmt:
        decorators = self._decorators(node.decorators)
        first = self.i
        is_async = self.skip("async")
        self.take("def")
        name = self.name()
        self._no_type_parameters(node)
        self.take("(")
        params = self.parameters(node.params)
        self.take(")")
        returns = None
        if node.returns is not None:
            self.take("->")
            returns = self.expr(node.returns.annotation)
        body = self.block(node.body)
        kind = ast.AsyncFunctionDef if is_async else ast.FunctionDef
        return self.at(_plain(kind(name, params, body, decorators, returns, None)), first)

    def _class_def(self, node: cst.ClassDef) -> ast.stmt:
        decorators = self._decorators(node.decorators)
        first = self.i
        self.take("class")
        name = self.name()
        self._no_type_parameters(node)
        bases: list[ast.expr] = []
        keywords: list[ast.keyword] = []
        if self.text[self.i] == "(":
            bases, keywords = self.arguments([*node.bases, *node.keywords])
        body = self.block(node.body)
        return self.at(_plain(ast.ClassDef(name, bases, keywords, body, decorators)), first)

    def _if(self, node: cst.If) -> ast.stmt:
        first = self.i
        self.i += 1  # `if` or `elif`
        test = self.expr(node.test)
        body = self.block(node.body)
        orelse: list[ast.stmt] = []
        if isinstance(node.orelse, cst.If):
            orelse = [self._if(node.orelse)]
        else:
            orelse = self._else(node.orelse)
        return self.at(ast.If(test, body, orelse), first)

    def _else(self, node: cst.Else | cst.Finally | None) -> list[ast.stmt]:
        if node is None:
            return []
        self.i += 1  # `else` or `finally`
        return self.block(node.body)

    def _while(self, node: cst.While) -> ast.stmt:
        first = self.i
        self.take("while")
        test = self.expr(node.test)
        body = self.block(node.body)
        return self.at(ast.While(test, body, self._else(node.orelse)), first)

    def _for(self, node: cst.For) -> ast.stmt:
        first = self.i
        kind = ast.AsyncFor if self.skip("async") else ast.For
        self.take("for")
        target = self.expr(node.target, STORE)
        self.take("in")
        source = self.expr(node.iter)
        body = self.block(node.body)
        return self.at(kind(target, source, body, self._else(node.orelse), None), first)

    def _with(self, node: cst.With) -> ast.stmt:
        first = self.i
        kind = ast.AsyncWith if self.skip("async") else ast.With
        self.take("with")
        parenthesized = isinstance(node.lpar, cst.LeftParen)
        if parenthesized:
            self.take("(")
        items = []
        for item in node.items:
            context = self.expr(item.item)
            target = None
            if item.asname is not None:
                self.take("as")
                target = self.expr(item.asname.name, STORE)
            items.append(ast.withitem(context, target))
            self.skip(",")
        if parenthesized:
            self.take(")")
        return self.at(kind(items, self.block(node.body), None), first)

    def _try(self, node: cst.Try | cst.TryStar) -> ast.stmt:
        first = self.i
        self.take("try")
        body = self.block(node.body)
        handlers: list[ast.ExceptHandler] = []
        for handler in node.handlers:
            start = self.i
            self.take("except")
            self.skip("*")
            error = None
            if handler.type is not None:
                if isinstance(handler.type, cst.Tuple) and not handler.type.lpar:
                    raise self.refuse(
                        "several exception types need parentheses",
                        help_text="Write `except (A, B):`.",
                    )
                error = self.expr(handler.type)
            name = None
            if handler.name is not None:
                self.take("as")
                name = self.name()
            caught = ast.ExceptHandler(error, name, self.block(handler.body))
            handlers.append(self.at(caught, start))
        orelse = self._else(node.orelse)
        final = self._else(node.finalbody)
        kind = ast.TryStar if isinstance(node, cst.TryStar) else ast.Try
        return self.at(kind(body, handlers, orelse, final), first)

    def _match(self, node: cst.Match) -> ast.stmt:
        first = self.i
        self.take("match")
        subject = self.expr(node.subject)
        self.take(":")
        cases = []
        for case in node.cases:
            self.take("case")
            pattern = self.pattern(case.pattern)
            guard = None
            if case.guard is not None:
                self.take("if")
                guard = self.expr(case.guard)
            cases.append(ast.match_case(pattern, guard, self.block(case.body)))
        return self.at(ast.Match(subject, cases), first)


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_WORDS: dict[str, type[ast.stmt]] = {
    "pass": ast.Pass,
    "break": ast.Break,
    "continue": ast.Continue,
}


def _plain(node: _Definition) -> _Definition:
    """Give a definition the empty list of type parameters that newer hosts expect."""
    if sys.version_info >= (3, 12):
        node.type_params = []
    return node


_HANDLERS: dict[type[cst.CSTNode], Callable[..., ast.stmt]] = {
    cst.Expr: Statements._expr,
    cst.Assign: Statements._assign,
    cst.AugAssign: Statements._augmented,
    cst.AnnAssign: Statements._annotated,
    cst.Pass: Statements._word,
    cst.Break: Statements._word,
    cst.Continue: Statements._word,
    cst.Return: Statements._return,
    cst.Raise: Statements._raise,
    cst.Assert: Statements._assert,
    cst.Del: Statements._delete,
    cst.Global: Statements._scope,
    cst.Nonlocal: Statements._scope,
    cst.Import: Statements._import,
    cst.ImportFrom: Statements._import_from,
    cst.FunctionDef: Statements._function,
    cst.ClassDef: Statements._class_def,
    cst.If: Statements._if,
    cst.While: Statements._while,
    cst.For: Statements._for,
    cst.With: Statements._with,
    cst.Try: Statements._try,
    cst.TryStar: Statements._try,
    cst.Match: Statements._match,
}
