"""The amount of arithmetic in a row, for passes that put rows into the lanes of vectors."""

from __future__ import annotations

from collections.abc import Iterable

from msops._loops.analysis.costs import computed
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import Binary, Cast, Expr, FunctionCall, Select, Stmt, Store, Unary

LEAST_WORK = 4
"""Operations for each element that a row fetches; with fewer, vectors do not pay."""
_LONG = 8
"""Operations that take as long as a function, or as one of the operators below."""
_LONG_OPERATORS = ("div", "floordiv", "mod", "pow")


def work(inside: Iterable[Stmt]) -> int:
    """Returns about how many operations the statements of a row take."""
    parts = [part for s in inside if isinstance(s, Store) for part in computed(s.value)]
    return sum(map(_operations, parts))


def _operations(part: Expr) -> int:
    match part:
        case FunctionCall(function=function):
            return 1 if FUNCTIONS[function].is_instruction else _LONG
        case Binary(op=op):
            return _LONG if op in _LONG_OPERATORS else 1
    return int(isinstance(part, Cast | Select | Unary))
