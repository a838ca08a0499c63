"""Variables of loops counted from the last iteration."""

from __future__ import annotations

from msops._loops.ir.algebra import add, integer, sub
from msops._loops.ir.nodes import Const, Expr, For, Var
from msops._loops.ir.walk import map_operands


def mirror(loop: For, var: str) -> Expr:
    """Returns the value that a loop has in the iteration of `var` counted from its end."""
    match loop.begin, loop.end:
        case Const(value=begin), Const(value=end):
            total: Expr = integer(int(begin) + int(end) - 1)
        case _:
            total = sub(add(loop.begin, loop.end), integer(1))
    return sub(total, Var(var))


def turned(expr: Expr, back: Expr, var: Var) -> Expr:
    """Returns an expression with a variable in place of the same counted from the end."""
    # From the outside: what `3 - (3 - i)` becomes looks like a mirrored variable again.
    return var if expr == back else map_operands(expr, lambda part: turned(part, back, var))
