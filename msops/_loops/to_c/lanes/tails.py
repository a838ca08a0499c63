"""Short loops run in whole vectors: the last one has some of the iterations before it again.

    parallel j in 0 .. 60 {             serial k in 0 .. 4 {
      b[j] = f(a, j)             ->       parallel j in min(k * 16, 44) .. min(k * 16, 44) + 16 {
    }                                       b[j] = f(a, j)
                                          }
                                        }

A compiler fills whole vectors, and then perhaps a vector of half the size. The iterations that are
left run one by one, each in the time of a whole vector. It also writes the body three times, which
takes it long. Iterations that read nothing of what the loop stores may run twice.
"""

from __future__ import annotations

import functools

from msops._base import processor
from msops._loops.analysis.costs import fixed_span
from msops._loops.ir.building import integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import For, Kernel, Stmt, Store, Var
from msops._loops.ir.sizes import itemsize
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    declared_in,
    is_innermost,
    loads_in,
    rewrite_loops,
    statements,
    stored_in,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c.facts.blocks import index
from msops._loops.to_c.facts.reordering import gcc_confuses_elements
from msops._loops.to_c.facts.work import work

_OVERHEAD = 2
"""Operations that it takes to find the first iteration of a vector, and the elements there."""
_MANY_OPERATIONS = 64
"""Operations of an iteration beside which these are nothing; that it is written once saves time of
a compiler."""
_MOST_AGAIN = 1 / 8
"""The part of the iterations that may run again, in case that a compiler finds no vectors."""


def fill_last_vectors(kernel: Kernel) -> Kernel:
    """Returns the kernel with such loops in vectors."""
    names = Names(kernel)
    buffers = functools.cache(lambda: buffers_of(kernel))

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        vectors = _in_whole_vectors(loop, names)
        if vectors is None or gcc_confuses_elements(loop, scope, buffers()):
            return None
        return vectors

    filled = rewrite_loops(kernel, change, "parallel")
    return kernel if filled is kernel else simplify(filled)


def _in_whole_vectors(loop: For, names: Names) -> tuple[Stmt, ...] | None:
    """Returns what replaces a loop; None if it stays."""
    span = fixed_span(loop)
    if span is None or loop.grain or not is_innermost(loop) or not _may_run_again(loop):
        return None
    lanes = _lanes(loop)
    begin, end = span
    whole, left = divmod(end - begin, lanes)
    if not whole or not left or lanes - left > _MOST_AGAIN * (end - begin):
        return None
    # Compilers run half a vector of the rest in a vector of half the size.
    halves, alone = divmod(left, lanes // 2)
    operations = work(statements(loop.body))
    saved = (halves + alone - 1) * operations
    if saved <= _OVERHEAD * (whole + 1) and operations < _MANY_OPERATIONS:
        return None
    block = names.fresh(f"{loop.var}_block")
    first = index("add", integer(begin), index("mul", Var(block), integer(lanes)))
    first = index("min", first, integer(end - lanes))
    # A compiler would unroll a loop without a mark before it looks for vectors.
    end_of_vector = index("add", first, integer(lanes))
    vector = with_parts(loop, begin=first, end=end_of_vector, vector="simd")
    return (For(block, integer(0), integer(whole + 1), (vector,), location=loop.location),)


def _may_run_again(loop: For) -> bool:
    """Returns whether no iteration reads what the loop stores."""
    changed = stored_in(loop.body) - declared_in(loop.body)
    return changed.isdisjoint(load.buffer for load in loads_in(loop.body))


def _lanes(loop: For) -> int:
    """Returns the elements of a vector; 1 if a loop has elements of several sizes."""
    dtypes = {load.dtype for load in loads_in(loop.body)}
    dtypes |= {stmt.value.dtype for stmt in statements(loop.body) if isinstance(stmt, Store)}
    sizes = {itemsize(dtype) for dtype in dtypes}
    return processor.vector_bytes() // sizes.pop() if len(sizes) == 1 else 1
