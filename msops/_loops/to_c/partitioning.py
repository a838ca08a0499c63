"""Parallel loops are split into the few iterations at a border and the many between.

    parallel j in 0 .. 500 {                parallel j in 0 .. 1 { b[j] = 0.0 + a[j + 1] }
      b[j] = (0 <= (j - 1) ? a[j - 1] : 0.0)
             + (j + 1 < 500 ? ...)     ->   parallel j in 1 .. 499 { b[j] = a[j - 1] + a[j + 1] }
    }
                                            parallel j in 499 .. 500 { b[j] = a[j - 1] + 0.0 }

A stencil that tests for the border of its image, or wraps around it, does so at every element.
Between the first and the last few iterations each test is decided, and is left out: the loop then
runs in plain vectors. Loops inside are split in the iterations between. Halide calls this loop
partitioning (`src/PartitionLoops.cpp`), and the iterations between the steady state.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

from msops._loops.analysis.affine import INDEX_DTYPES, Affine, affine
from msops._loops.analysis.boxes import Span
from msops._loops.analysis.costs import fixed_span
from msops._loops.ir.building import integer
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import Binary, Const, Expr, For, Kernel, Stmt, Var
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

_FEWEST_TRIPS = 32
"""Of a loop that is split."""
_MOST_AT_BORDER = 1 / 4
"""The largest part of a loop's iterations that may be at a border."""
_MOST_STATEMENTS = 200
"""Of a loop that is split: each of them is there three times after."""
_MOST_QUOTIENTS = 3
"""The most values of a quotient that tell a border from a pattern."""


def partition_loops(kernel: Kernel) -> Kernel:
    """Returns the kernel with parallel loops split where conditions on their variables turn."""
    split = rewrite_loops(kernel, _partition, "parallel")
    return kernel if split.body == kernel.body else simplify(unique_names(split))


def _partition(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    """Returns what replaces a loop; None if it has no border."""
    span = fixed_span(loop)
    if span is None or span[1] - span[0] < _FEWEST_TRIPS:
        return None
    first, last = _steady(loop, span)
    if (first, last) == span or last - first < (1 - _MOST_AT_BORDER) * (span[1] - span[0]):
        return None
    between = with_parts(loop, begin=integer(first), end=integer(last))
    parts = (
        with_parts(loop, end=integer(first)),
        rewrite_inner_loops(between, scope, _partition, "parallel"),
        with_parts(loop, begin=integer(last)),
    )
    return tuple(part for part in parts if part.begin != part.end)


def _steady(loop: For, span: Span) -> Span:
    """Returns the longest run of iterations in which no condition on the variable turns."""
    inner = statements(loop.body)
    if len(inner) > _MOST_STATEMENTS:
        return span
    parts = {part for stmt in inner for own in own_expressions(stmt) for part in expressions(own)}
    if not is_innermost(loop):
        # The loops inside compute indices that do not change once.
        parts = {part for part in parts if part.dtype == "bool"}
    turns = {turn for part in parts for turn in _turns(part, loop.var, span)}
    begin, end = span
    points = sorted({begin, end, *(turn for turn in turns if begin < turn < end)})
    return max(itertools.pairwise(points), key=lambda run: run[1] - run[0])


def _turns(expr: Expr, var: str, span: Span) -> Iterator[int]:
    """Yields the iterations of a loop from which on an operation acts in another way."""
    if not isinstance(expr, Binary) or expr.left.dtype not in INDEX_DTYPES:
        return
    match expr:
        case Binary(op="floordiv" | "mod" | "truncdiv" | "truncmod", right=Const(value=value)):
            divisor = int(value)
            line = _line(affine(expr.left, {var}), var)
            if line is None or divisor <= 0:
                return
            slope, constant = line
            first, last = sorted((slope * x + constant) // divisor for x in (span[0], span[1] - 1))
            if last - first >= _MOST_QUOTIENTS:
                return
            for quotient in range(first + 1, last + 1):
                zero = Fraction(quotient * divisor - constant, slope)
                yield math.ceil(zero) if slope > 0 else math.floor(zero) + 1
        case Binary(op="lt" | "le" | "gt" | "ge" | "eq" | "ne" | "min" | "max"):
            left, right = affine(expr.left, {var}), affine(expr.right, {var})
            line = _line(left and right and left - right, var)
            if line is None:
                return
            slope, constant = line
            zero = Fraction(-constant, slope)
            is_past_zero = (expr.op in ("le", "gt")) == (slope > 0)
            if is_past_zero or expr.op in ("eq", "ne"):
                yield math.floor(zero) + 1
            if not is_past_zero or expr.op in ("eq", "ne"):
                yield math.ceil(zero)


def _line(function: Affine | None, var: str) -> tuple[int, int] | None:
    """Returns slope and constant of a function of one variable and nothing else."""
    if function is None or set(function.terms) != {Var(var)}:
        return None
    return function.terms[Var(var)], function.constant
