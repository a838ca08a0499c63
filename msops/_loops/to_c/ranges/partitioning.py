"""Loops are split into the few iterations at a border and the many between.

    parallel j in 0 .. 500 {            b[0] = a[0]
      b[j] = a[max(j - 1, 0)]     ->    parallel j in 1 .. 500 {
    }                                     b[j] = a[j - 1]
                                        }

A stencil that tests for the border of its image, or wraps around it, does so at every element.
Between the first and the last few iterations each test is decided and left out, and the loop runs
in plain vectors. There the loops inside are split too; at the borders they stay as they are. Where
a part of a row asks for the border and the rest does not, that part alone is there twice. Rows that
run in order are split for `carrying`: between the borders each iteration has one before it.
Halide calls this loop partitioning; the iterations between the borders are its steady state
(`PartitionLoops.cpp`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

from msops._loops.analysis.affine import INDEX_DTYPES
from msops._loops.analysis.boxes import Span
from msops._loops.analysis.conditions import inequalities, narrowed
from msops._loops.analysis.costs import fixed_span
from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import Binary, Const, Expr, For, If, Kernel, Local, Stmt, Var
from msops._loops.ir.operators import QUOTIENTS
from msops._loops.ir.ranges import Ranges, range_of
from msops._loops.ir.walk import (
    Scope,
    expressions,
    is_innermost,
    own_expressions,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    with_parts,
)
from msops._loops.passes.simplify import simplify

_FEWEST_TRIPS = 16
"""Of a loop that is split."""
_MOST_AT_BORDER = 2 / 5
"""The largest part of a loop's iterations that may be at a border: a gradient that adds to elements
a fifth of a row apart misses terms in two fifths, and took 2.5 of the time under conditions."""
_MOST_STATEMENTS = 200
"""Of a loop that is split: each is copied twice."""
_MOST_QUOTIENTS = 3
"""The most values of a quotient that tell a border from a pattern."""


def partition_loops(kernel: Kernel) -> Kernel:
    """Returns the kernel with parallel loops split where conditions on their variables change."""
    return _partitioned(kernel, rewrite_loops(kernel, _partition, "parallel"))


def partition_rows(kernel: Kernel) -> Kernel:
    """Returns the kernel with serial loops split at such points."""
    return _partitioned(kernel, rewrite_loops(kernel, _partition, "serial"))


def _partitioned(kernel: Kernel, split: Kernel) -> Kernel:
    return kernel if split.body == kernel.body else simplify(unique_names(split))


def _partition(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    """Returns what replaces a loop; None if it has no border."""
    between = _between(loop) if len(statements(loop.body)) <= _MOST_STATEMENTS else None
    if between is None:
        return None
    shared = None if is_innermost(loop) else _shared(loop, loop.body, scope, between)
    if shared is not None:
        return (with_parts(loop, body=shared),)
    inner = rewrite_inner_loops(within(loop, between), scope, _partition, loop.kind)
    return _beside(loop, between, (inner,))


def _shared(
    loop: For, body: tuple[Stmt, ...], scope: Scope, between: Span
) -> tuple[Stmt, ...] | None:
    """Returns a body that tests once whether it is at the border; None if all of it asks for that.

    Three loops would have the rest of the body three times, for the compiler to translate.
    """
    match body:
        case (Local() as local,):
            shared = _shared(loop, local.body, scope, between)
            return None if shared is None else (with_parts(local, body=shared),)
    asks = [bool(_changes(loop, (part,))) for part in body]
    if all(asks):
        return None
    variable, (first, last) = Var(loop.var), map(integer, between)
    is_between = binary("land", binary("ge", variable, first), binary("lt", variable, last))
    found: list[Stmt] = []
    for asks_for_it, part in zip(asks, body, strict=True):
        alone = with_parts(loop, body=(part,))
        inner = rewrite_inner_loops(alone, scope, _partition, loop.kind).body
        found += (If(is_between, inner, (part,)),) if asks_for_it else inner
    return tuple(found)


def _between(loop: For) -> Span | None:
    """Returns the iterations between the borders of a loop; None if there are no borders."""
    span = fixed_span(loop)
    if span is None or span[1] - span[0] < _FEWEST_TRIPS:
        return None
    first, last = _steady(loop, span)
    fewest = (1 - _MOST_AT_BORDER) * (span[1] - span[0])
    return (first, last) if (first, last) != span and last - first >= fewest else None


def within(loop: For, span: Span) -> For:
    """Returns a loop over some of its iterations."""
    return with_parts(loop, begin=integer(span[0]), end=integer(span[1]))


def _beside(loop: For, between: Span, inner: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Returns what is run for the iterations between the borders, and the loops at the borders."""
    before = with_parts(loop, end=integer(between[0]))
    after = with_parts(loop, begin=integer(between[1]))
    first, last = ((part,) if part.begin != part.end else () for part in (before, after))
    return (*first, *inner, *last)


def _steady(loop: For, span: Span) -> Span:
    """Returns the longest run of iterations in which no condition on the variable changes."""
    points = sorted({*span, *_changes(loop, loop.body)})
    return max(itertools.pairwise(points), key=lambda run: run[1] - run[0])


def _changes(loop: For, body: tuple[Stmt, ...]) -> set[int]:
    """Returns the iterations of a loop at which conditions in a part of its body change."""
    begin, end = fixed_span(loop) or (0, 0)
    inner = statements(body)
    parts = {part for stmt in inner for own in own_expressions(stmt) for part in expressions(own)}
    if not is_innermost(loop):
        # An index that is the same for a whole row is computed once: only tests are worth a split.
        parts = {part for part in parts if part.dtype == "bool"}
    ranges = {loop.var: (begin, end - 1)}
    conditions = {condition for part in parts for condition in _conditions(part, ranges)}
    points = {point for condition in conditions for point in ends_of(condition, loop.var, ranges)}
    return points - {begin, end}


def _conditions(expr: Expr, ranges: Ranges) -> Iterator[Expr]:
    """Yields the conditions that decide what an operation on integers does."""
    if not isinstance(expr, Binary) or expr.left.dtype not in INDEX_DTYPES:
        return
    match expr:
        case Binary(op="lt" | "le" | "gt" | "ge" | "eq"):
            yield expr
        case Binary(op="ne", left=left, right=right):
            yield binary("eq", left, right)
        case Binary(op="min" | "max", left=left, right=right):
            yield binary("le", left, right)
        case Binary(op=op, left=left, right=Const(value=value) as by) if (
            op in QUOTIENTS and value > 0
        ):
            divisor = int(value)
            least, greatest = (limit // divisor for limit in range_of(left, ranges))
            if greatest - least < _MOST_QUOTIENTS:
                for quotient in range(least + 1, greatest + 1):
                    yield binary("ge", left, dataclasses.replace(by, value=quotient * divisor))


def ends_of(condition: Expr, var: str, ranges: Ranges) -> Span:
    """Returns the first iteration in which a condition may hold, and the one after the last.

    Args:
      condition: a comparison of integers.
      var: the variable of the loop.
      ranges: the ranges of all variables of the condition.
    """
    first, last = narrowed(ranges, inequalities(condition, {var}, ranges) or ())[var]
    return (first, last + 1)
