"""Loops in blocks: one loop over blocks of iterations, and one over the iterations of a block.

A group is a block that is always whole: the iterations that fill none have a loop of their own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection

from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    BinaryOp,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    Local,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import result_dtype
from msops._loops.ir.ranges import Ranges, range_of
from msops._loops.ir.walk import (
    A,
    Scope,
    expressions,
    map_accesses,
    map_bodies,
    rewrite_all,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify_expressions import difference, simplified


def in_blocks(
    loop: For, width: int, names: Names, inside: Callable[[For, Var], tuple[Stmt, ...]]
) -> For:
    """Returns the loop over the blocks of a loop.

    Args:
      loop: a loop of any kind; the loop over blocks has the same kind.
      width: iterations of a block; the last block may have fewer.
      names: the names of the kernel.
      inside: returns the body of a block from the loop over its iterations, and its number.
    """
    block = names.fresh(f"{loop.var}_block")
    begin = index("add", loop.begin, index("mul", Var(block), integer(width)))
    end = index("add", begin, integer(width))
    trips = fixed_trips(loop)
    if trips is None:
        span = index("add", index("sub", loop.end, loop.begin), integer(width - 1))
        count: Expr = index("floordiv", span, integer(width))
    else:
        count = integer(-(-trips // width))
    if trips is None or trips % width:
        end = index("min", end, loop.end)
    body = inside(dataclasses.replace(loop, begin=begin, end=end), Var(block))
    return For(block, integer(0), count, body, loop.kind, location=loop.location)


def in_even_blocks(
    loop: For,
    scope: Scope,
    limits: tuple[int, int],
    names: Names,
    inside: Callable[[For, int, Scope], tuple[Stmt, ...]],
) -> tuple[Stmt, ...] | None:
    """Returns the loop over blocks of about the same size; None if their body is empty.

    All blocks are whole if that makes them little smaller. A single block is the loop itself.

    Args:
      loop: a loop; the difference of its bounds is known.
      scope: the scope around it.
      limits: the fewest iterations of a block, and the most. A few more are better than too few.
      names: the names of the kernel.
      inside: returns the body of a block from the loop over its iterations, the greatest number of
        these, and the scope of the body.
    """
    (_, trips), (fewest, most) = difference(loop.end, loop.begin, scope.ranges) or (0, 0), limits
    count = min(-(-trips // most), max(1, trips // fewest))
    counts = range(count, min(2 * count, trips // fewest + 1))
    count = next((n for n in counts if trips % n == 0), count)
    size = -(-trips // count)
    if count == 1:
        return inside(loop, size, scope) or None

    def body(block: For, number: Var) -> tuple[Stmt, ...]:
        (around,) = scope.inside(For(number.name, integer(0), integer(count), ()))
        return inside(block, size, around)

    blocks = in_blocks(loop, size, names, body)
    return (blocks,) if blocks.body else None


def in_groups(
    loop: For, size: int, var: str, ranges: Ranges, inside: Callable[[Expr], tuple[Stmt, ...]]
) -> tuple[Stmt, ...]:
    """Returns the loop over whole groups of a loop's iterations, and the loop over the rest.

    Args:
      loop: a loop of any kind; the loop over groups has the same kind.
      size: iterations of a group.
      var: the variable of the loop over groups.
      ranges: the ranges of the variables around the loop.
      inside: returns the body of a group from its first iteration.
    """
    trips = fixed_trips(loop)
    if trips is None:
        span: Expr = index("sub", loop.end, loop.begin)
        if range_of(span, ranges)[0] < 0:
            span = index("max", span, integer(0))
        count: Expr = index("floordiv", span, integer(size))
        whole: Expr = index("mul", count, integer(size))
    else:
        count, whole = integer(trips // size), integer(trips // size * size)
    body = inside(index("add", loop.begin, index("mul", Var(var), integer(size))))
    groups = For(var, integer(0), count, body, loop.kind, location=loop.location)
    if trips is not None and trips % size == 0:
        return (groups,)
    return (groups, with_parts(loop, begin=index("add", loop.begin, whole)))


def from_zero(loop: For, ranges: Ranges) -> For:
    """Returns a loop that counts from zero, so that its length may be a constant.

    Args:
      loop: the loop.
      ranges: the ranges of the variables around it.
    """
    if loop.begin == integer(0):
        return loop
    end = simplified(index("sub", loop.end, loop.begin), ranges)
    body = with_value(loop.body, loop.var, index("add", loop.begin, Var(loop.var)))
    return with_parts(loop, begin=integer(0), end=end, body=body)


def if_it_runs(loop: For, around: tuple[Stmt, ...], ranges: Ranges) -> tuple[Stmt, ...]:
    """Returns statements around a loop, under a condition unless the loop surely runs.

    Args:
      loop: the loop.
      around: the loop, with statements before and after it that touch its elements.
      ranges: the ranges of the variables around the loop.
    """
    if range_of(loop.begin, ranges)[1] < range_of(loop.end, ranges)[0]:
        return around
    dtype = result_dtype("lt", INDEX_DTYPE)
    return (If(Binary("lt", loop.begin, loop.end, dtype), around, location=loop.location),)


def is_alike(expr: Expr, loop: For) -> bool:
    """Returns whether a value is surely the same in all iterations of a loop.

    Args:
      expr: the value, in the loop.
      loop: the loop; those inside run side by side.
    """
    return not any(part == Var(loop.var) or isinstance(part, Load) for part in expressions(expr))


def can_swap(outer: For, inner: For) -> bool:
    """Returns whether the bounds of a loop are the same in all iterations of one around it."""
    return is_alike(inner.begin, outer) and is_alike(inner.end, outer)


def index(op: BinaryOp, left: Expr, right: Expr) -> Expr:
    """Returns an operation on indices; the addition of 0 is left out."""
    match op, left, right:
        case "add", Const(value=0), _:
            return right
        case "add", _, Const(value=0):
            return left
    return Binary(op, left, right, INDEX_DTYPE)


def with_index(
    body: tuple[Stmt, ...], buffers: Collection[str], at: Expr, *, is_last: bool = False
) -> tuple[Stmt, ...]:
    """Returns a body in which some buffers have a further index.

    Args:
      body: the body.
      buffers: their names.
      at: the index.
      is_last: whether it is the last one; else it is the first.
    """

    def element(access: A) -> A:
        if access.buffer not in buffers:
            return access
        indices = (*access.indices, at) if is_last else (at, *access.indices)
        return dataclasses.replace(access, indices=indices)

    return map_accesses(body, element)


def with_buffer(body: tuple[Stmt, ...], name: str, new: str) -> tuple[Stmt, ...]:
    """Returns a body with another name for a buffer, also where the body declares it."""

    def expression(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.buffer == name:
            return dataclasses.replace(expr, buffer=new)
        return expr

    def change(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(map_bodies(statement(stmt), change) for stmt in stmts)

    def statement(stmt: Stmt) -> Stmt:
        match stmt:
            case Store(buffer=buffer) if buffer == name:
                return dataclasses.replace(stmt, buffer=new)
            case Local(buffer=Buffer(name=buffer)) if buffer == name:
                return dataclasses.replace(stmt, buffer=dataclasses.replace(stmt.buffer, name=new))
        return stmt

    return change(rewrite_all(body, expression))
