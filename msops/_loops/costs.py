"""A rough count of the operations that statements run, to decide what is worth a thread."""

from __future__ import annotations

from msops._loops.ir import Binary, Call, Expr, For, If, Load, Local, Stmt, Store
from msops._loops.ranges import Range, loop_range, range_of
from msops._loops.walk import expressions, own_expressions

_FUNCTION_COST = 8.0


def cost_of(body: tuple[Stmt, ...], ranges: dict[str, Range]) -> float:
    """Returns about how many operations one run of a body takes.

    Args:
      body: the statements.
      ranges: of the variables of the loops around them.
    """
    total = 0.0
    for stmt in body:
        own = sum(_expression_cost(expr) for expr in own_expressions(stmt))
        match stmt:
            case Store():
                total += own + 1
            case For():
                inner = ranges | {stmt.var: loop_range(stmt, ranges)}
                total += own + mean_trips(stmt, ranges) * (1 + cost_of(stmt.body, inner))
            case If(then=then, otherwise=otherwise):
                total += own + max(cost_of(then, ranges), cost_of(otherwise, ranges))
            case Local(body=inner_body):
                total += 1 + cost_of(inner_body, ranges)
    return total


def mean_trips(loop: For, ranges: dict[str, Range]) -> float:
    """Returns about how many iterations a loop runs; half of the square for a triangle."""
    begin, end = range_of(loop.begin, ranges), range_of(loop.end, ranges)
    return max(0.0, (end[0] + end[1] - begin[0] - begin[1]) / 2)


def _expression_cost(expr: Expr) -> float:
    total = 0.0
    for part in expressions(expr):
        match part:
            case Call():
                total += _FUNCTION_COST
            case Binary() | Load():
                total += 1
    return total
