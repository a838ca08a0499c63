"""Loops around padded windows are split where parts of a window begin to lie outside.

    parallel i in 0 .. 48 {                    reduction p in 1 .. 3 { s[0] = s[0] + ... }
      reduction p in 0 .. 3 {            ->    parallel i in 1 .. 47 {
        if (i + p >= 1 && i + p <= 48)           reduction p in 0 .. 3 { s[i] = s[i] + ... }
          s[i] = s[i] + a[i + p - 1]           }
                                               reduction p in 0 .. 2 { s[47] = s[47] + ... }

A convolution that keeps the size of its image tests in each term whether the image has the element.
Here each piece sums the part of the window that lies inside, without a test, and `products` makes
tiles of it: a convolution over 16 channels takes a fifteenth of the time. The same windows with
their tests in the bounds, ``range(max(i - 1, 0), min(i + 2, 48))``, are counted from zero. Short
sums with conditions stay: `windows` writes them out, and `partitioning` splits those.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

from msops._loops.analysis.boxes import Span
from msops._loops.analysis.costs import fixed_span, fixed_trips
from msops._loops.ir.algebra import binary, element_of, integer
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import Binary, Const, Expr, For, Kernel, Stmt, Store
from msops._loops.ir.operators import COMPARISONS
from msops._loops.ir.ranges import Ranges, loop_range, nested_ranges
from msops._loops.ir.walk import (
    Scope,
    bodies,
    expressions,
    own_expressions,
    rewrite_inner_loops,
    rewrite_loops,
    rewrite_statements,
    statements,
    substitute,
    variables,
    with_body,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import difference, sides_of
from msops._loops.to_c.facts.blocks import from_zero
from msops._loops.to_c.ranges.partitioning import ends_of, within

_MOST_AT_BORDER = 1 / 3
"""Largest share of the positions whose windows are not whole: 2 of 7 may be at the border."""
_MOST_PIECES = 5
"""Of a loop that is split."""
_MOST_STATEMENTS = 40
"""Of a loop that is split along a window."""
_MOST_STATEMENTS_AROUND = 22
"""Of one around windows: two such loops around 3 by 3 elements make nine copies."""
_MOST_AROUND_BOUNDS = 32
"""Of one around windows whose bounds test for the border: whole windows are written out."""
_FEWEST_TERMS = 32
"""Of sums whose conditions are looked at."""
_MOST_POSITIONS = 16
"""Of one side of a window; longer rows share elements, as in tiles of attention."""
_MOST_CASES = 32
"""Values that the other variables of a condition may have."""

_TESTS = (*COMPARISONS, "min", "max")
"""What tells positions apart."""


def partition_windows(kernel: Kernel) -> Kernel:
    """Returns the kernel with loops split where parts of windows begin to lie outside."""
    own = (expr for stmt in statements(kernel.body) for expr in own_expressions(stmt))
    parts = (part for expr in own for part in expressions(expr))
    if not any(isinstance(part, Binary) and part.op in _TESTS for part in parts):
        return kernel
    around = rewrite_loops(kernel, _around_windows, "parallel")
    positions = rewrite_loops(around, _over_positions, "reduction")
    if positions is kernel:
        return kernel
    along = rewrite_loops(simplify(unique_names(positions)), _along_window, "reduction")
    counted = simplify(
        rewrite_loops(simplify(unique_names(along)), _from_zero, "reduction", "serial")
    )
    # Where its term was zero, what is left of a sum is no update.
    return simplify(with_body(counted, rewrite_statements(counted.body, _unless_idle, Store)))


def _unless_idle(store: Store) -> tuple[Stmt, ...]:
    return () if store.value == element_of(store) else (store,)


def _from_zero(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    """Returns a loop over the positions of a window, counted from zero."""
    counted = from_zero(loop, scope.ranges)
    trips = fixed_trips(counted)
    if isinstance(loop.begin, Const) or trips is None or trips > _MOST_POSITIONS:
        return None
    return (rewrite_inner_loops(counted, scope, _from_zero, "reduction", "serial"),)


def _around_windows(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    """Returns the pieces of a loop around long sums over windows; None if it stays."""
    pieces = _nests(loop, scope)
    return None if pieces == (loop,) else pieces


def _nests(loop: For, scope: Scope) -> tuple[For, ...]:
    """Returns the pieces of a parallel loop, and of the loops directly inside, as nests."""
    pieces = [within(loop, span) for span in _spans(loop, scope)] or [loop]
    nests: list[For] = []
    for piece in pieces:
        match piece.body:
            case (For(kind="parallel") as inner,):
                (inside,) = scope.inside(piece)
                nests += [with_parts(piece, body=(nest,)) for nest in _nests(inner, inside)]
            case _:
                nests.append(rewrite_inner_loops(piece, scope, _around_windows, "parallel"))
    return tuple(nests)


def _spans(loop: For, scope: Scope) -> list[Span]:
    """Returns the pieces of a loop around long sums over windows; none if it stays."""
    span = fixed_span(loop)
    if span is None or not fixed_trips(loop):
        return []
    count = len(statements(loop.body))
    if count > _MOST_AROUND_BOUNDS:
        return []
    own = {loop.var: (span[0], span[1] - 1)}
    is_long = (
        count <= _MOST_STATEMENTS_AROUND
        and _longest_sum(loop.body, {**scope.ranges, **own}) >= _FEWEST_TERMS
    )
    points = {
        point
        # Windows are written out only if their bounds are fixed.
        for tests, inner in _tests(loop.body, own, is_long=is_long)
        for point in _cuts(tests, loop, inner)
    }
    pieces = _pieces(loop, points)
    longest = max(last - first for first, last in pieces)
    return pieces if longest >= (1 - _MOST_AT_BORDER) * (span[1] - span[0]) else []


def _longest_sum(body: tuple[Stmt, ...], ranges: Ranges) -> int:
    """Returns the terms of the longest sum in a body."""
    longest = 1
    for stmt in body:
        inside, trips = ranges, 1
        if isinstance(stmt, For):
            first, last = loop_range(stmt, ranges)
            inside = {**ranges, stmt.var: (first, last)}
            trips = last - first + 1 if stmt.kind == "reduction" else 1
        terms = (_longest_sum(part, inside) for part in bodies(stmt))
        longest = max(longest, trips * max(terms, default=1))
    return longest


def _over_positions(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    """Returns the pieces of a sum over the positions of windows, if most windows are whole.

    Such are the gradients of a filter: each of its elements has a sum over the image.
    """
    pieces = _along_window(loop, scope)
    if pieces is None:
        return None
    trips = [fixed_trips(piece) or 0 for piece in pieces]
    return pieces if max(trips) >= (1 - _MOST_AT_BORDER) * sum(trips) else None


def _along_window(loop: For, scope: Scope) -> tuple[For, ...] | None:
    """Returns the pieces of a loop along one side of a window; None if it stays."""
    if not fixed_trips(loop) or len(statements(loop.body)) > _MOST_STATEMENTS:
        return None
    tests = _tests(loop.body, scope.ranges)
    points = {point for same, ranges in tests for point in _cuts(same, loop, ranges)}
    pieces = _pieces(loop, points)
    if len(pieces) == 1:
        return None
    return tuple(
        rewrite_inner_loops(within(loop, piece), scope, _along_window, "reduction")
        for piece in pieces
    )


def _tests(
    body: tuple[Stmt, ...], ranges: Ranges, *, is_long: bool = True
) -> Iterator[tuple[tuple[Expr, ...], Ranges]]:
    """Yields each comparison in a body, and each in a bound, with the ranges of reductions.

    For an extreme in a bound there are two: where both sides are the same, either may be taken.

    Args:
      body: the body.
      ranges: the ranges of the variables around it.
      is_long: whether comparisons outside of bounds count, too.
    """
    for stmt in body:
        inside = ranges
        if isinstance(stmt, For) and stmt.kind == "reduction":
            inside = nested_ranges((stmt,), ranges)
        is_short = isinstance(stmt, For) and _most_trips(stmt, ranges) <= _MOST_POSITIONS
        for part in (part for own in own_expressions(stmt) for part in expressions(own)):
            match part:
                case Binary(op="lt" | "le" | "gt" | "ge" | "eq") if is_long:
                    yield (part,), ranges
                case Binary(op="min" | "max", left=left, right=right) if is_short:
                    yield (binary("le", left, right), binary("lt", left, right)), ranges
        for inner in bodies(stmt):
            yield from _tests(inner, inside, is_long=is_long)


def _most_trips(loop: For, ranges: Ranges) -> float:
    """Returns the most iterations that a loop between extremes can have, as far as is known."""
    begins, ends = sides_of("max", loop.begin, ranges), sides_of("min", loop.end, ranges)
    found = (difference(end, begin, ranges) for begin in begins for end in ends)
    return min(trips[1] if trips else math.inf for trips in found)


def _cuts(tests: tuple[Expr, ...], loop: For, others: Ranges) -> Iterator[int]:
    """Yields where one of some comparisons changes along a loop, the one nearest to its ends.

    Args:
      tests: comparisons of the same values.
      loop: the loop, which has a fixed span.
      others: the ranges of other variables, each of whose values is looked at. Nothing is found if
        another variable is compared, or if there are many cases.
    """
    span = fixed_span(loop)
    compared = variables(tests[0])
    names = sorted(compared - {loop.var})
    if span is None or loop.var not in compared or not others.keys() >= set(names):
        return
    first, end = span
    values = [range(others[name][0], others[name][1] + 1) for name in names]
    if math.prod(map(len, values)) > _MOST_CASES:
        return
    for case in itertools.product(*values):
        known = dict(zip(names, map(integer, case), strict=True))
        ends = (
            ends_of(substitute(t, known), loop.var, {loop.var: (first, end - 1)}) for t in tests
        )
        yield from min(ends, key=lambda cuts: sum(min(cut - first, end - cut) for cut in cuts))


def _pieces(loop: For, points: Iterable[int]) -> list[Span]:
    """Returns the pieces of a loop between points; the whole loop if there are many."""
    span = fixed_span(loop)
    assert span is not None
    pieces = list(itertools.pairwise(sorted({*span, *points})))
    return pieces if len(pieces) <= _MOST_PIECES else [span]
