"""Which exceptions operations raise."""

from __future__ import annotations

from selc.ir.absval import AbsVal
from selc.ir.op import Op
from selc.ir.value import Value

_EXCEPTIONS = {
    Op.FLOORDIV: "ZeroDivisionError",
    Op.MOD: "ZeroDivisionError",
    Op.TRUEDIV: "ZeroDivisionError",
    Op.INDEX: "IndexError",
    Op.LOOKUP: "KeyError",
}


def exception_of(op: Op, attr: Value, args: list[AbsVal]) -> str:
    """Which exception an operation raises when it fails, '' if that is not certain."""
    numeric = all(a.kinds <= {"int", "bool"} for a in args)
    if op in (Op.FLOORDIV, Op.MOD, Op.TRUEDIV) and numeric:
        return _EXCEPTIONS[op]
    if op is Op.INDEX and args[0].kinds <= {"tuple", "str"} and args[1].kinds <= {"int", "bool"}:
        return "IndexError"
    if op is Op.LOOKUP:
        return "KeyError"
    if op in (Op.MIN, Op.MAX) and args[0].kinds == {"tuple"}:
        return "ValueError"
    if op is Op.METHOD and attr == "index" and len(args) == 2:  # not there
        texts = args[0].kinds == args[1].kinds == {"str"}
        return "ValueError" if texts or args[0].kinds == {"tuple"} else ""
    return ""
