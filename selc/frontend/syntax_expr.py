"""Expressions: libcst nodes to `ast` nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import libcst as cst

from selc.frontend.syntax_literals import number_value
from selc.frontend.syntax_reader import Reader

LOAD, STORE, DEL = ast.Load(), ast.Store(), ast.Del()
_SINGLETONS = {"True": True, "False": False, "None": None}
BINARY: dict[type[cst.CSTNode], ast.operator] = {
    cst.Add: ast.Add(),
    cst.Subtract: ast.Sub(),
    cst.Multiply: ast.Mult(),
    cst.Divide: ast.Div(),
    cst.FloorDivide: ast.FloorDiv(),
    cst.Modulo: ast.Mod(),
    cst.Power: ast.Pow(),
    cst.MatrixMultiply: ast.MatMult(),
    cst.LeftShift: ast.LShift(),
    cst.RightShift: ast.RShift(),
    cst.BitAnd: ast.BitAnd(),
    cst.BitOr: ast.BitOr(),
    cst.BitXor: ast.BitXor(),
}
_UNARY: dict[type[cst.CSTNode], ast.unaryop] = {
    cst.Minus: ast.USub(),
    cst.Plus: ast.UAdd(),
    cst.Not: ast.Not(),
    cst.BitInvert: ast.Invert(),
}
_COMPARE: dict[type[cst.CSTNode], ast.cmpop] = {
    cst.Equal: ast.Eq(),
    cst.NotEqual: ast.NotEq(),
    cst.LessThan: ast.Lt(),
    cst.LessThanEqual: ast.LtE(),
    cst.GreaterThan: ast.Gt(),
    cst.GreaterThanEqual: ast.GtE(),
    cst.In: ast.In(),
    cst.NotIn: ast.NotIn(),
    cst.Is: ast.Is(),
    cst.IsNot: ast.IsNot(),
}
_AND, _OR = ast.And(), ast.Or()


class Expressions(Reader):
    """Every expression form; `ctx` is what the surrounding statement does with the value."""

    __slots__ = ()

    def expr(self, node: cst.BaseExpression, ctx: ast.expr_context = LOAD) -> ast.expr:
        """Translate one expression with the parentheses around it."""
        kind = type(node)
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise self.refuse(f"{_words(kind)} is newer Python syntax than selc reads")
        parens = len(node.lpar)
        for _ in range(parens):
            self.take("(")
        inner = self.i - 1
        result = handler(self, node, ctx)
        for level in range(parens):
            self.take(")")
            if level == 0 and (kind is cst.Tuple or kind is cst.GeneratorExp):
                self.at(result, inner)
        return result

    def _name(self, node: cst.Name, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        name = self.name()
        if self.text[first] != node.value:
            raise self.refuse(f"{self.text[first]!r} is no Python name", first)
        if name in _SINGLETONS:
            return self.at(ast.Constant(_SINGLETONS[name], None), first)
        return self.at(ast.Name(name, ctx), first)

    def _ellipsis(self, node: cst.Ellipsis, ctx: ast.expr_context) -> ast.expr:
        self.take("...")
        return self.at(ast.Constant(..., None), self.i - 1)

    def _number(
        self, node: cst.Integer | cst.Float | cst.Imaginary, ctx: ast.expr_context
    ) -> ast.expr:
        try:
            value = number_value(node.value)
        except ValueError:
            raise self.refuse("this number has too many digits") from None
        self.take(node.value)
        return self.at(ast.Constant(value, None), self.i - 1)

    def _attribute(self, node: cst.Attribute, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        value = self.expr(node.value)
        self.take(".")
        return self.at(ast.Attribute(value, self.name(), ctx), first)

    def _call(self, node: cst.Call, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        func = self.expr(node.func)
        args, keywords = self.arguments(node.args)
        return self.at(ast.Call(func, args, keywords), first)

    def arguments(self, given: Sequence[cst.Arg]) -> tuple[list[ast.expr], list[ast.keyword]]:
        """The parenthesized arguments of a call or the bases of a class."""
        opening = self.i
        self.take("(")
        args: list[ast.expr] = []
        keywords: list[ast.keyword] = []
        for arg in given:
            first = self.i
            if arg.star == "**":
                self.take("**")
                keywords.append(self.at(ast.keyword(None, self.expr(arg.value)), first))
            elif arg.star == "*":
                self.take("*")
                args.append(self.at(ast.Starred(self.expr(arg.value), LOAD), first))
            elif arg.keyword is not None:
                keywords.append(self._keyword(arg.value, keywords))
            else:
                args.append(self.expr(arg.value))
            self.skip(",")
        self.take(")")
        if len(given) == 1 and args and not given[0].star:
            only = given[0].value
            if isinstance(only, cst.GeneratorExp) and not only.lpar:
                self.at(args[0], opening)  # the parentheses of the call are those of the generator
        return args, keywords

    def _keyword(self, value: cst.BaseExpression, seen: list[ast.keyword]) -> ast.keyword:
        first = self.i
        name = self.name()
        if any(other.arg == name for other in seen):
            raise self.refuse(f"the keyword argument '{name}' is given twice", first)
        self.take("=")
        return self.at(ast.keyword(name, self.expr(value)), first)

    def _subscript(self, node: cst.Subscript, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        value = self.expr(node.value)
        self.take("[")
        start = self.i
        parts: list[ast.expr] = []
        comma = False
        for element in node.slice:
            parts.append(self._slice(element.slice))
            comma = self.skip(",")
        if len(parts) == 1 and not comma and not isinstance(parts[0], ast.Starred):
            index = parts[0]
        else:
            index = self.at(ast.Tuple(parts, LOAD), start)
        self.take("]")
        return self.at(ast.Subscript(value, index, ctx), first)

    def _slice(self, node: cst.BaseSlice) -> ast.expr:
        first = self.i
        if isinstance(node, cst.Index):
            if node.star is not None:
                self.take("*")
                return self.at(ast.Starred(self.expr(node.value), LOAD), first)
            return self.expr(node.value)
        if not isinstance(node, cst.Slice):
            raise self.refuse("this subscript is not understood")
        lower = self.expr(node.lower) if node.lower is not None else None
        self.take(":")
        upper = self.expr(node.upper) if node.upper is not None else None
        step = None
        if self.skip(":") and node.step is not None:
            step = self.expr(node.step)
        return self.at(ast.Slice(lower, upper, step), first)

    def _binary(self, node: cst.BinaryOperation, ctx: ast.expr_context) -> ast.expr:
        chain = [node]
        while isinstance(left := chain[-1].left, cst.BinaryOperation) and not left.lpar:
            chain.append(left)
        first = self.i
        result = self.expr(chain[-1].left)
        for link in reversed(chain):
            self.i += 1
            right = self.expr(link.right)
            result = self.at(ast.BinOp(result, BINARY[type(link.operator)], right), first)
        return result

    def _boolean(self, node: cst.BooleanOperation, ctx: ast.expr_context) -> ast.expr:
        kind = type(node.operator)
        chain = [node]
        while isinstance(left := chain[-1].left, cst.BooleanOperation):
            if left.lpar or type(left.operator) is not kind:
                break
            chain.append(left)
        first = self.i
        values = [self.expr(chain[-1].left)]
        for link in reversed(chain):
            self.take("and" if kind is cst.And else "or")
            values.append(self.expr(link.right))
        return self.at(ast.BoolOp(_AND if kind is cst.And else _OR, values), first)

    def _unary(self, node: cst.UnaryOperation, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        self.i += 1
        operand = self.expr(node.expression)
        return self.at(ast.UnaryOp(_UNARY[type(node.operator)], operand), first)

    def _comparison(self, node: cst.Comparison, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        left = self.expr(node.left)
        operators: list[ast.cmpop] = []
        right: list[ast.expr] = []
        for target in node.comparisons:
            kind = type(target.operator)
            self.i += 2 if kind in (cst.NotIn, cst.IsNot) else 1
            operators.append(_COMPARE[kind])
            right.append(self.expr(target.comparator))
        return self.at(ast.Compare(left, operators, right), first)

    def _if_exp(self, node: cst.IfExp, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        body = self.expr(node.body)
        self.take("if")
        test = self.expr(node.test)
        self.take("else")
        return self.at(ast.IfExp(test, body, self.expr(node.orelse)), first)

    def _lambda(self, node: cst.Lambda, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        self.take("lambda")
        params = self.parameters(node.params)
        self.take(":")
        return self.at(ast.Lambda(params, self.expr(node.body)), first)

    def parameters(self, node: cst.Parameters) -> ast.arguments:
        """The parameters of a function or a lambda, without parentheses."""
        defaults: list[ast.expr] = []
        keyword_defaults: list[ast.expr | None] = []
        posonly = [self._param(param, defaults) for param in node.posonly_params]
        if posonly:
            self.take("/")
            self.skip(",")
        plain = [self._param(param, defaults) for param in node.params]
        vararg = None
        if isinstance(node.star_arg, cst.Param):
            self.take("*")
            vararg = self._param(node.star_arg, defaults)
        elif isinstance(node.star_arg, cst.ParamStar):
            self.take("*")
            self.take(",")
        keyword_only = []
        for param in node.kwonly_params:
            own: list[ast.expr] = []
            keyword_only.append(self._param(param, own))
            keyword_defaults.append(own[0] if own else None)
        kwarg = None
        if node.star_kwarg is not None:
            self.take("**")
            kwarg = self._param(node.star_kwarg, defaults)
        return ast.arguments(
            posonly, plain, vararg, keyword_only, keyword_defaults, kwarg, defaults
        )

    def _param(self, node: cst.Param, defaults: list[ast.expr]) -> ast.arg:
        first = self.i
        name = self.name()
        annotation = None
        if node.annotation is not None:
            self.take(":")
            annotation = self.expr(node.annotation.annotation)
        result = self.at(ast.arg(name, annotation, None), first)
        if node.default is not None:
            self.take("=")
            defaults.append(self.expr(node.default))
        self.skip(",")
        return result

    def _await(self, node: cst.Await, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        self.take("await")
        return self.at(ast.Await(self.expr(node.expression)), first)

    def _yield(self, node: cst.Yield, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        self.take("yield")
        if isinstance(node.value, cst.From):
            self.take("from")
            return self.at(ast.YieldFrom(self.expr(node.value.item)), first)
        value = self.expr(node.value) if node.value is not None else None
        return self.at(ast.Yield(value), first)

    def _walrus(self, node: cst.NamedExpr, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        target = self.at(ast.Name(self.name(), STORE), first)
        self.take(":=")
        return self.at(ast.NamedExpr(target, self.expr(node.value)), first)

    def _starred(self, node: cst.StarredElement, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        self.take("*")
        return self.at(ast.Starred(self.expr(node.value, ctx), ctx), first)

    def _elements(
        self, elements: Sequence[cst.BaseElement], ctx: ast.expr_context
    ) -> list[ast.expr]:
        result = []
        for element in elements:
            if isinstance(element, cst.StarredElement):
                result.append(self.expr(element, ctx))
            else:
                result.append(self.expr(element.value, ctx))
            self.skip(",")
        return result

    def _tuple(self, node: cst.Tuple, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        elements = self._elements(node.elements, ctx)
        result = ast.Tuple(elements, ctx)
        return self.at(result, first) if elements else result

    def _list(self, node: cst.List, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        self.take("[")
        elements = self._elements(node.elements, ctx)
        self.take("]")
        return self.at(ast.List(elements, ctx), first)

    def _set(self, node: cst.Set, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        self.take("{")
        elements = self._elements(node.elements, ctx)
        self.take("}")
        return self.at(ast.Set(elements), first)

    def _dict(self, node: cst.Dict, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        self.take("{")
        keys: list[ast.expr | None] = []
        values: list[ast.expr] = []
        for element in node.elements:
            if isinstance(element, cst.DictElement):
                keys.append(self.expr(element.key))
                self.take(":")
            else:
                self.take("**")
                keys.append(None)
            values.append(self.expr(element.value))
            self.skip(",")
        self.take("}")
        return self.at(ast.Dict(keys, values), first)

    def _element(self, node: cst.BaseExpression) -> ast.expr:
        """What a comprehension collects."""
        if isinstance(node, cst.StarredElement):
            raise self.refuse("unpacking in a comprehension is newer Python syntax than selc reads")
        return self.expr(node)

    def _list_comp(self, node: cst.ListComp, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        self.take("[")
        element = self._element(node.elt)
        loops = self._loops(node.for_in)
        self.take("]")
        return self.at(ast.ListComp(element, loops), first)

    def _set_comp(self, node: cst.SetComp, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        self.take("{")
        element = self._element(node.elt)
        loops = self._loops(node.for_in)
        self.take("}")
        return self.at(ast.SetComp(element, loops), first)

    def _dict_comp(self, node: cst.DictComp, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        self.take("{")
        key = self.expr(node.key)
        self.take(":")
        value = self.expr(node.value)
        loops = self._loops(node.for_in)
        self.take("}")
        return self.at(ast.DictComp(key, value, loops), first)

    def _generator(self, node: cst.GeneratorExp, ctx: ast.expr_context) -> ast.expr:
        first = self.i
        element = self._element(node.elt)
        return self.at(ast.GeneratorExp(element, self._loops(node.for_in)), first)

    def _loops(self, node: cst.CompFor) -> list[ast.comprehension]:
        loops: list[ast.comprehension] = []
        loop: cst.CompFor | None = node
        while loop is not None:
            is_async = self.skip("async")
            self.take("for")
            target = self.expr(loop.target, STORE)
            self.take("in")
            source = self.expr(loop.iter)
            tests = []
            for condition in loop.ifs:
                self.take("if")
                tests.append(self.expr(condition.test))
            loops.append(ast.comprehension(target, source, tests, int(is_async)))
            loop = loop.inner_for_in
        return loops

    def _string(
        self,
        node: cst.SimpleString | cst.ConcatenatedString | cst.FormattedString,
        ctx: ast.expr_context,
    ) -> ast.expr:
        from selc.frontend.syntax_strings import string  # the two need each other

        return string(self, node)


def _words(kind: type[cst.CSTNode]) -> str:
    """The class name of a node as words: `TemplatedString` -> `a templated string`."""
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in kind.__name__).strip()
    return f"a {words}"


_Handler = Callable[..., ast.expr]
_HANDLERS: dict[type[cst.CSTNode], _Handler] = {
    cst.Name: Expressions._name,
    cst.Ellipsis: Expressions._ellipsis,
    cst.Integer: Expressions._number,
    cst.Float: Expressions._number,
    cst.Imaginary: Expressions._number,
    cst.Attribute: Expressions._attribute,
    cst.Call: Expressions._call,
    cst.Subscript: Expressions._subscript,
    cst.BinaryOperation: Expressions._binary,
    cst.BooleanOperation: Expressions._boolean,
    cst.UnaryOperation: Expressions._unary,
    cst.Comparison: Expressions._comparison,
    cst.IfExp: Expressions._if_exp,
    cst.Lambda: Expressions._lambda,
    cst.Await: Expressions._await,
    cst.Yield: Expressions._yield,
    cst.NamedExpr: Expressions._walrus,
    cst.StarredElement: Expressions._starred,
    cst.Tuple: Expressions._tuple,
    cst.List: Expressions._list,
    cst.Set: Expressions._set,
    cst.Dict: Expressions._dict,
    cst.ListComp: Expressions._list_comp,
    cst.SetComp: Expressions._set_comp,
    cst.DictComp: Expressions._dict_comp,
    cst.GeneratorExp: Expressions._generator,
    cst.SimpleString: Expressions._string,
    cst.ConcatenatedString: Expressions._string,
    cst.FormattedString: Expressions._string,
}
