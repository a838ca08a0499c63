"""A loop over all elements of an array becomes nested loops over its axes.

    serial t in 0 .. 6000 {                     serial t_row in 0 .. 60 {
      y[t // 100, t % 100] = x[t]         ->      serial t_column in 0 .. 100 {
    }                                               y[t_row, t_column] = x[t_row * 100 + t_column]

Threads of a GPU are numbered in a row, so kernels that were CUDA code look like this. Quotients and
remainders are no affine indices: nobody could prove that the iterations are independent, or that
they are neighbours in memory. The order of the iterations stays.
"""

from __future__ import annotations

from msops._loops.analysis.costs import fixed_span
from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Binary, Const, Expr, For, If, Kernel, Stmt, Var
from msops._loops.ir.walk import (
    expressions,
    own_expressions,
    rewrite_all,
    rewrite_statements,
    statements,
    variables,
    with_body,
    with_parts,
)

_LONG_ROW = 16
"""Iterations of an inner loop that are worth vectors of their own. A loop with shorter rows stays
as it is if its number is an index, too, whose elements are neighbours."""


def nest_flat_loops(kernel: Kernel) -> Kernel:
    """Returns the kernel with such loops nested, as deep as their numbers have parts."""
    names = Names(kernel)

    def nested(loop: For) -> tuple[Stmt, ...]:
        return (_nested(loop, _LONG_ROW, names),)

    return with_body(kernel, rewrite_statements(kernel.body, nested, For))


def _nested(loop: For, shortest: int, names: Names) -> For:
    """Returns a loop as nested loops; `shortest` is the least length of a row if it is an index."""
    found = _rows_and_width(loop, shortest)
    if found is None:
        return loop
    rows, width = found
    row, column = Var(names.fresh(f"{loop.var}_row")), Var(names.fresh(f"{loop.var}_column"))

    def part(expr: Expr) -> Expr:
        divisor = _divisor(expr, loop.var)
        if divisor is None:
            return expr
        assert isinstance(expr, Binary)
        if divisor == width:
            return row if expr.op == "floordiv" else column
        of_row = binary(expr.op, row, integer(divisor // width))
        return of_row if expr.op == "floordiv" else _number(of_row, width, column)

    def whole(expr: Expr) -> Expr:
        return _number(row, width, column) if expr == Var(loop.var) else expr

    body = rewrite_all(rewrite_all(loop.body, part), whole)
    inner = with_parts(loop, var=column.name, end=integer(width), body=body)
    outer = with_parts(loop, var=row.name, end=integer(rows), body=(_guarded(inner, loop),))
    return _nested(outer, 1, names)


def _guarded(inner: For, loop: For) -> Stmt:
    """Returns the loop over a row, under the condition that all of a loop is under.

    Nothing can change a condition that does not hold. After a `break` no row is looked at.
    """
    match loop.body:
        case (If(condition=condition, otherwise=()) as guard,):
            if loop.var not in variables(condition):
                return with_parts(guard, then=(inner,))
    return inner


def _rows_and_width(loop: For, shortest: int) -> tuple[int, int] | None:
    """Returns how many rows a loop runs over, and their length; None if there are no rows."""
    span = fixed_span(loop)
    if span is None or span[0] != 0:
        return None
    parts = [
        part
        for stmt in statements(loop.body)
        for own in own_expressions(stmt)
        for part in expressions(own)
    ]
    divisors = [divisor for part in parts if (divisor := _divisor(part, loop.var))]
    if not divisors:
        return None
    width = min(divisors)
    if not 1 < width < span[1] or any(number % width for number in (span[1], *divisors)):
        return None
    is_index = parts.count(Var(loop.var)) > len(divisors)
    return None if is_index and width < shortest else (span[1] // width, width)


def _divisor(expr: Expr, var: str) -> int | None:
    """Returns by what an expression divides a variable, for the quotient or the remainder."""
    match expr:
        case Binary(op="floordiv" | "mod", left=Var(name=name), right=Const(value=by)):
            return int(by) if name == var and by > 0 else None
    return None


def _number(row: Expr, width: int, column: Expr) -> Expr:
    return binary("add", binary("mul", row, integer(width)), column)
