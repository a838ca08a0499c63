"""Short inner loops become statements, so that a compiler vectorises the loop around them.

parallel j in 0 .. 64 {                       parallel j in 0 .. 64 {
  reduction k in 0 .. 2 {                       b[j] = max(b[j], a[2 * j])
    b[j] = max(b[j], a[2 * j + k])      ->      b[j] = max(b[j], a[2 * j + 1])

A loop over four neighbours inside of another short one stays: it fills a vector itself.
"""

from __future__ import annotations

from msops._loops.analysis.costs import fixed_span, fixed_trips
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import For, Kernel, Local, Stmt, Store
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    iterations,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.strides import stride

_MOST_TRIPS = 4
_MOST_STATEMENTS = 40
"""Statements of all iterations. A loop around 36 took 0.2 of the time in vectors, around 72 1.3."""
_MOST_OF_NESTS = 16
"""Statements of nested loops. Products of 3 x 3 matrices, 27, took 1.2 of the time."""
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
    is_innermost = not any(map(_is_loop, statements(loop.body)))
    loop = rewrite_inner_loops(loop, scope, _unrolled)
    span = fixed_span(loop)
    assert span is not None
    inner = statements(loop.body)
    if _fills_a_vector(loop, scope):
        return (loop,)
    most = _MOST_STATEMENTS if is_innermost else _MOST_OF_NESTS
    if any(map(_is_loop, inner)) or len(inner) * (span[1] - span[0]) > most:
        return (loop,)
    return iterations(loop, span)


def _fills_a_vector(loop: For, scope: Scope) -> bool:
    """Returns whether a loop stores neighbours, and the one around it is no longer.

    Then its iterations, not those of the loop around it, are the lanes of vectors.
    """
    inner, own = statements(loop.body), declared_in(loop.body)
    stores = [part for part in inner if isinstance(part, Store) and part.buffer not in own]
    return (
        loop.kind == "parallel"
        and fixed_trips(loop) == _LANES
        and _is_short(scope.loops[-1])
        and all(isinstance(part, Local | Store) for part in inner)
        and all(stride(store, loop.var, scope.buffers) == 1 for store in stores)
    )


def _is_loop(stmt: Stmt) -> bool:
    return isinstance(stmt, For)


def _is_short(loop: For) -> bool:
    trips = fixed_trips(loop)
    return trips is not None and trips <= _MOST_TRIPS
