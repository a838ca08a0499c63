"""Short inner loops become statements, so that a compiler vectorises the loop around them.

parallel j in 0 .. 64 {                       parallel j in 0 .. 64 {
  reduction k in 0 .. 2 {                       b[j] = max(b[j], a[2 * j])
    b[j] = max(b[j], a[2 * j + k])      ->      b[j] = max(b[j], a[2 * j + 1])

A loop over four neighbours inside of another short one stays: it fills a vector itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TypeGuard

from msops._loops.analysis.costs import fixed_span, fixed_trips
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import For, If, Kernel, Local, Stmt, Store
from msops._loops.ir.walk import (
    Scope,
    bodies,
    declared_in,
    iterations,
    rewrite_inner_loops,
    rewrite_loops,
    statements,
    stored_in,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.facts.strides import stride

_MOST_TRIPS = 4
_MOST_STATEMENTS = 40
"""Statements of all iterations. A loop around 36 took 0.2 of the time in vectors, around 72 1.3."""
_MOST_OF_OTHERS = 16
"""Statements of nested loops, and of loops under conditions, without variables. Products of 3 x 3
matrices, 27, took 1.2 of the time, three blended colours under a condition 1.7."""
_LANES = 4
"""Elements of a vector of float32 on every processor; of float64 with AVX."""


def unroll_short_loops(kernel: Kernel) -> Kernel:
    """Returns the kernel with short innermost loops inside of others unrolled."""
    arrays = {buffer.name for buffer in (*kernel.parameters, *kernel.buffers)}
    guarded = frozenset(
        loop.var for loop in _guarded(kernel.body) if not arrays.isdisjoint(stored_in(loop.body))
    )
    unrolled = rewrite_loops(kernel, partial(_unrolled, guarded=guarded))
    return kernel if unrolled is kernel else unique_names(simplify(unrolled))


def _unrolled(loop: For, scope: Scope, guarded: frozenset[str]) -> tuple[Stmt, ...] | None:
    """Returns the statements that replace a loop; None to look inside of it.

    Args:
      loop: the loop.
      scope: the scope around it.
      guarded: the variables of loops that store to arrays of the kernel, and that are under a
        condition in the one around them.
    """
    if all(map(_is_short, scope.loops)) or not _is_short(loop):
        return None
    is_alone = loop.var not in guarded and not any(map(_is_loop, statements(loop.body)))
    loop = rewrite_inner_loops(loop, scope, partial(_unrolled, guarded=guarded))
    span = fixed_span(loop)
    assert span is not None
    inner = statements(loop.body)
    if _fills_a_vector(loop, scope):
        return (loop,)
    most = _MOST_STATEMENTS if is_alone else _MOST_OF_OTHERS
    if any(map(_is_loop, inner)) or len(inner) * (span[1] - span[0]) > most:
        return (loop,)
    if not is_alone and any(isinstance(part, Local) for part in inner):
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


def _guarded(body: tuple[Stmt, ...], *, is_guarded: bool = False) -> Iterator[For]:
    """Yields the loops that are under a condition in the loop around them."""
    for stmt in body:
        if isinstance(stmt, For) and is_guarded:
            yield stmt
        for inner in bodies(stmt):
            inside = isinstance(stmt, If) or (is_guarded and not isinstance(stmt, For))
            yield from _guarded(inner, is_guarded=inside)


def _is_loop(stmt: Stmt) -> TypeGuard[For]:
    return isinstance(stmt, For)


def _is_short(loop: For) -> bool:
    trips = fixed_trips(loop)
    return trips is not None and trips <= _MOST_TRIPS
