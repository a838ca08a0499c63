"""Short inner loops become statements, so that a compiler vectorises the loop around them.

parallel j in 0 .. 64 {                       parallel j in 0 .. 64 {
  reduction k in 0 .. 2 {                       b[j] = max(b[j], a[2 * j])
    b[j] = max(b[j], a[2 * j + k])      ->      b[j] = max(b[j], a[2 * j + 1])

A loop over four neighbours inside of another short one stays: it fills a vector itself.
"""

from __future__ import annotations

from msops._loops.analysis.costs import fixed_span, fixed_trips
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import Binary, For, Kernel, Local, Stmt, Store
from msops._loops.ir.walk import (
    Scope,
    expressions,
    iterations,
    loads,
    own_expressions,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    variables,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.strides import stride

_MOST_TRIPS = 4
_MOST_STATEMENTS = 16
_MOST_DECIDED = 40
"""Statements of iterations that decide conditions or remainders. Of a condition one side is left; a
remainder, as of the corner (i + 1) % 3 of a triangle, becomes a number."""
_LANES = 4
"""Elements of a vector of float32 on every processor; of float64 with AVX."""


def unroll_short_loops(kernel: Kernel) -> Kernel:
    """Returns the kernel with short innermost loops inside of others unrolled."""
    unrolled = rewrite_loops(kernel, _unrolled)
    return kernel if unrolled is kernel else unique_names(simplify(unrolled))


def _unrolled(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    """Returns the statements that replace a loop; None to look inside of it."""
    if all(map(_is_short, scope.loops)) or not _is_short(loop):
        return None
    loop = rewrite_inner_loops(loop, scope, _unrolled)
    span = fixed_span(loop)
    assert span is not None
    inner = statements(loop.body)
    if _fills_a_vector(loop, scope):
        return (loop,)
    decides = _decides(loop)
    if any(isinstance(part, For) or (isinstance(part, Local) and not decides) for part in inner):
        return (loop,)
    most = _MOST_DECIDED if decides else _MOST_STATEMENTS
    if len(inner) * (span[1] - span[0]) > most:
        return (loop,)
    return iterations(loop, span)


def _decides(loop: For) -> bool:
    """Returns whether each iteration of a loop decides a condition or remainder in it."""
    parts = (
        part
        for s in statements(loop.body)
        for own in own_expressions(s)
        for part in expressions(own)
    )
    decided = [
        part
        for part in parts
        if part.dtype == "bool" or (isinstance(part, Binary) and part.op in ("mod", "floordiv"))
    ]
    return any(variables(part) == {loop.var} and not loads(part) for part in decided)


def _fills_a_vector(loop: For, scope: Scope) -> bool:
    """Returns whether a loop stores neighbours, and the one around it is no longer.

    Then its iterations, not those of the loop around it, are the lanes of vectors.
    """
    stores = [part for part in loop.body if isinstance(part, Store)]
    return (
        loop.kind == "parallel"
        and fixed_trips(loop) == _LANES
        and _is_short(scope.loops[-1])
        and len(stores) == len(loop.body)
        and all(stride(store, loop.var, scope.buffers) == 1 for store in stores)
    )


def _is_short(loop: For) -> bool:
    trips = fixed_trips(loop)
    return trips is not None and trips <= _MOST_TRIPS
