"""Loops that add to a few rows beside their own are split into blocks of rows.

Blocks with even numbers touch no row in common, so threads run these first, and then those with odd
numbers.

    reduction i in 0 .. 400 {               serial parity in 0 .. 2 {
      d[i, ...] = d[i, ...] + ...             parallel i_block in 0 .. 8 {
      d[i + 1, ...] = ...            ->         reduction i in (2 * i_block + parity) * 25 .. {
    }                                             ...

The order of the terms of a sum changes. It does not depend on the number of threads.
"""

from __future__ import annotations

from msops._loops.analysis.boxes import Span
from msops._loops.analysis.costs import fixed_trips
from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import Expr, For, Stmt, Var
from msops._loops.ir.ranges import Ranges, nested_ranges, unwrapped_range
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    declared_in,
    loads,
    statements,
    stored_in,
    substitute,
    with_parts,
)
from msops._loops.to_c import cost
from msops._loops.to_c.facts.blocks import index
from msops._loops.to_c.facts.strides import coefficient

_MOST_BLOCKS = 32


def with_rows_apart(
    loop: For, scope: Scope, costs: cost.NativeCosts, names: Names
) -> tuple[Stmt, ...] | None:
    """Returns a loop that adds to rows beside its own in two sets of blocks; None for others."""
    trips = fixed_trips(loop)
    span = None if trips is None else _span(loop, scope)
    if trips is None or span is None:
        return None
    count = min(_MOST_BLOCKS, int(costs.loop(loop, scope) / cost.BLOCK_SECONDS))
    if count < 4:
        return None
    width = max(span, -(-trips // count))
    return _separated(loop, width, trips, names) if trips >= 4 * width else None


def _span(loop: For, scope: Scope) -> int | None:
    """Returns the number of rows beside its own that a loop writes; None if it is not fixed."""
    own = declared_in(loop.body)
    written = stored_in(loop.body) - own
    (inside,) = scope.inside(loop)
    ranges = dict(inside.ranges)
    for inner in (s for s in statements(loop.body) if isinstance(s, For)):
        ranges |= nested_ranges((inner,), ranges)
    reach: dict[str, list[tuple[Span | None, ...]]] = {name: [] for name in written}
    for access in accesses_in(loop.body):
        if access.buffer in reach:
            away = tuple(_offsets(index, loop.var, ranges) for index in access.indices)
            reach[access.buffer].append(away)
    spans = []
    for offsets in reach.values():
        axes = [[o for o in axis if o is not None] for axis in zip(*offsets, strict=True)]
        known = [
            max(high for _, high in axis) - min(low for low, _ in axis)
            for axis in axes
            if axis and len(axis) == len(offsets)
        ]
        if not known:
            return None
        spans.append(min(known))
    return max(spans, default=None)


def _separated(loop: For, width: int, trips: int, names: Names) -> tuple[Stmt, ...]:
    """Returns the loop over even and odd blocks."""
    pairs = -(-trips // (2 * width))
    parity, block = names.fresh("parity"), names.fresh(f"{loop.var}_block")
    number = index("add", index("mul", Var(block), integer(2)), Var(parity))
    begin = index("add", loop.begin, index("mul", number, integer(width)))
    end = index("min", index("add", begin, integer(width)), loop.end)
    part = with_parts(loop, begin=begin, end=end)
    blocks = For(block, integer(0), integer(pairs), (part,), "parallel", location=loop.location)
    return (For(parity, integer(0), integer(2), (blocks,), location=loop.location),)


def _offsets(expr: Expr, var: str, ranges: Ranges) -> Span | None:
    """Returns the least and the greatest c of an index that is var + c; None if not all are."""
    if coefficient(expr, var) != 1 or loads(expr):
        return None
    return unwrapped_range(substitute(expr, {var: integer(0)}), {**ranges, var: (0, 0)})
