"""The last iterations of a short loop run in a whole vector, too, with some of those before again.

    parallel j in 0 .. 60 {             parallel j in 0 .. 48 { b[j] = f(a, j) }
      b[j] = f(a, j)             ->     parallel j_1 in 44 .. 60 { b[j_1] = f(a, j_1) }
    }

A compiler fills whole vectors, and then perhaps a vector of half the size. The iterations that are
left run one by one, each in the time of a whole vector. Iterations that read nothing of what the
loop stores may run twice.
"""

from __future__ import annotations

from msops._base import processor
from msops._loops.analysis.costs import arithmetic, fixed_span
from msops._loops.ir.building import integer
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import For, Kernel, Stmt, Store
from msops._loops.ir.operators import is_float
from msops._loops.ir.sizes import itemsize
from msops._loops.ir.walk import (
    Scope,
    declared_in,
    is_innermost,
    loads_in,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
)
from msops._loops.passes.simplify import simplify

_FEWEST_OPERATIONS = 8
"""Operations of an iteration; with fewer, the rest costs little beside the loop itself."""
_MOST_STATEMENTS = 64
"""Statements that are worth a second copy."""
_MOST_AGAIN = 1 / 8
"""The part of the iterations that may run again, in case that a compiler finds no vectors."""


def fill_last_vectors(kernel: Kernel) -> Kernel:
    """Returns the kernel with such loops in two."""
    filled = rewrite_loops(kernel, _in_whole_vectors, "parallel")
    return kernel if filled is kernel else simplify(unique_names(filled))


def _in_whole_vectors(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    """Returns what replaces a loop; None if it stays."""
    span = fixed_span(loop)
    inside = statements(loop.body)
    if span is None or not is_innermost(loop) or len(inside) > _MOST_STATEMENTS:
        return None
    values = [stmt.value for stmt in inside if isinstance(stmt, Store)]
    if sum(map(arithmetic, values)) < _FEWEST_OPERATIONS or not _may_run_again(loop):
        return None
    lanes = _lanes(loop)
    begin, end = span
    left = (end - begin) % lanes
    # Compilers run half a vector of the rest in a vector of half the size.
    alone = left % max(1, lanes // 2)
    if alone < 2 or lanes - left > _MOST_AGAIN * (end - begin):
        return None
    return (
        with_parts(loop, end=integer(end - left)),
        with_parts(loop, begin=integer(end - lanes)),
    )


def _may_run_again(loop: For) -> bool:
    """Returns whether no iteration reads what the loop stores."""
    changed = stored_in(loop.body) - declared_in(loop.body)
    return changed.isdisjoint(load.buffer for load in loads_in(loop.body))


def _lanes(loop: For) -> int:
    """Returns the elements of a vector; 1 if a loop has elements of several sizes."""
    dtypes = {load.dtype for load in loads_in(loop.body)}
    dtypes |= {stmt.value.dtype for stmt in statements(loop.body) if isinstance(stmt, Store)}
    sizes = {itemsize(dtype) for dtype in dtypes}
    if len(sizes) != 1 or not all(map(is_float, dtypes)):
        return 1
    return processor.vector_bytes() // sizes.pop()
