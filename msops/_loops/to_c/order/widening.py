"""Sums in variables get an element for each position, so that vectors run over the positions.

    parallel j in 0 .. 512 {                    local s: float32[512] {
      local s: float32[] {                        parallel j in 0 .. 512 { s[j] = b[j] }
        s[] = b[j]                                reduction k in 0 .. 128 {
        reduction k in 0 .. 128 {                   parallel j_1 in 0 .. 512 {
          s[] = s[] + h[k] * u[k, j]     ->           s[j_1] = s[j_1] + h[k] * u[k, j_1]
        }                                         } }
        g[j] = s[]                                parallel j_2 in 0 .. 512 { g[j_2] = s[j_2] }
      }                                         }
    }

The loop over `k` would jump through `u`, and each of its additions waits for the one before. Each
sum in a variable keeps its order. A local array gets the positions as its last axis. The loop over
positions may be a reduction, as in gradients, since the order of sums over positions is free. The
same is done if rows of such sums go into tiles of registers, see products.py: long sums, such as
those of a convolution, then no longer wait for their own additions. Compilers call this scalar
expansion (R. Allen, K. Kennedy, "Optimizing Compilers for Modern Architectures", 5.3). The loop
over positions is then split and moved inwards as in exchange.py.

A product with a symmetric matrix of which half is stored has two sums over that triangle: over its
rows, and over its columns. The loop over the columns is then turned by itself, so that both sums
read the triangle row by row.

Rows of such a product may be columns of what it stores. Their sums, too, get an element for each
row, so that rows that are side by side in memory are stored together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from msops._loops.analysis.costs import CACHE_BYTES, FIRST_CACHE_BYTES, fixed_trips, mean_trips
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, For, Kernel, Local, Stmt, Store, Var
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.walk import Scope, accesses_in, bodies, buffers_of, rewrite_loops, with_parts
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.facts.blocks import can_swap, in_blocks, in_even_blocks, index, with_index
from msops._loops.to_c.facts.bodies import without_locals
from msops._loops.to_c.facts.strides import stride
from msops._loops.to_c.order.exchange import sunk
from msops._loops.to_c.order.memory_order import is_better_inside
from msops._loops.to_c.order.products import is_row_of_product, products_of
from msops._loops.to_c.order.sums import FEWEST_WAITING, ROWS

_FEWEST_POSITIONS = 16
_FEWEST_IN_PRODUCT = 4
"""Positions of a row of a product; fewer fill no vector."""
_FEWEST_TERMS = 16
"""Terms of a sum; fewer are written out for each position, see windows.py."""
_BLOCK = 1024
"""Positions whose sums are kept together: they stay in the first-level cache."""
_BLOCKS = 4
"""Blocks of positions that threads may share, if they work on arrays."""
_ROWS = 8 * ROWS
"""Rows that are stored together, if all of them are too many: eight tiles."""
_MOST_BYTES = CACHE_BYTES // 4
"""Bytes of rows that are stored together: they stay in the second-level cache."""


def widen_sums(kernel: Kernel) -> Kernel:
    """Returns the kernel with the locals of loops expanded to arrays, where that helps vectors."""
    widened = rewrite_loops(kernel, Widening(kernel).loop, "parallel", "reduction")
    return kernel if widened is kernel else unique_names(simplify(widened))


class Widening:
    """Expands the locals of loops."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)
        self._buffers = buffers_of(kernel)

    def loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        inner, variables = without_locals(loop.body)
        # Flags say which iterations have ended early: such rows go into lanes, see lanes.py.
        if not variables or any(v.dtype in (*SUMMED_IN_FLOAT32, "bool") for v in variables):
            return None
        _, trips = difference(loop.end, loop.begin, scope.ranges) or (0, 0)
        if trips < _FEWEST_IN_PRODUCT:
            return None
        together = self._stored_together(with_parts(loop, body=inner), variables)
        if together and products_of(self._kernel, loop, scope, FEWEST_WAITING):
            return together
        (inside,) = scope.inside(loop)
        size = _positions(trips, variables, is_shared=not scope.is_parallel)
        if size < min(trips, _FEWEST_POSITIONS):
            return None
        arrays = {v.name: dataclasses.replace(v, shape=(*v.shape, size)) for v in variables}
        flat = with_parts(loop, body=inner)
        buffers = {**self._buffers, **arrays}

        def widened(block: For, size: int) -> tuple[Stmt, ...]:
            body = sunk(in_arrays(block, arrays), self._names)
            for v in variables:
                array = dataclasses.replace(v, shape=(*v.shape, size))
                body = (Local(array, body, location=loop.location),)
            return body

        is_long = size >= _FEWEST_POSITIONS and mean_trips(loop, scope.ranges) >= _FEWEST_POSITIONS
        is_crossed = is_long and any(
            isinstance(stmt, For)
            and can_swap(loop, stmt)
            and mean_trips(stmt, inside.ranges) >= _FEWEST_TERMS
            for stmt in inner
        )
        whole = in_arrays(flat, arrays)
        if not (is_crossed and is_better_inside(whole, buffers, may_sum=True)) and not (
            size == trips
            and is_row_of_product(self._kernel, widened(flat, size), scope, FEWEST_WAITING)
        ):
            return None

        def block(part: For, length: int, _: Scope) -> tuple[Stmt, ...]:
            return widened(part, length)

        return in_even_blocks(flat, scope, (_FEWEST_POSITIONS, size), self._names, block)

    def _stored_together(self, rows: For, own: Sequence[Buffer]) -> tuple[Stmt, ...] | None:
        """Returns rows whose sums are stored when all are complete; None if that gains nothing.

        One by one, each row would touch as many lines of memory as it has columns. If these are a
        power of 2 apart, few of them stay in a cache until the next row.

        Args:
          rows: the loop over rows, whose sums are vectors.
          own: the locals of a row.
        """
        names = {buffer.name for buffer in own}
        *sums, last = rows.body
        if not sums or not isinstance(last, For) or not can_swap(rows, last):
            return None
        if rows.kind != "parallel" or last.kind != "parallel":
            return None
        stores = [access for access in accesses_in(last.body) if isinstance(access, Store)]
        steps = [
            tuple(stride(store, part.var, self._buffers) for part in (rows, last))
            for store in stores
        ]
        if not all(step == 1 and other not in (0, 1) for step, other in steps):
            return None

        def together(block: For, size: int) -> tuple[Stmt, ...]:
            at = index("sub", Var(block.var), block.begin)
            *before, after = with_index(block.body, names, at)
            inner = with_parts(block, body=bodies(after)[0])
            run: tuple[Stmt, ...] = (with_parts(block, body=tuple(before)),)
            run += (with_parts(after, body=(inner,)),)
            for buffer in own:
                array = dataclasses.replace(buffer, shape=(size, *buffer.shape))
                run = (Local(array, run, location=rows.location),)
            return run

        trips = fixed_trips(rows)
        if trips is not None and trips * sum(map(size_bytes, own)) <= _MOST_BYTES:
            return together(rows, trips)
        return (in_blocks(rows, _ROWS, self._names, lambda block, _: together(block, _ROWS)),)


def _positions(trips: int, variables: Sequence[Buffer], *, is_shared: bool) -> int:
    """Returns the most positions that are computed together.

    Args:
      trips: the number of positions.
      variables: what each position has an element of.
      is_shared: threads may share blocks of positions.
    """
    size = trips if trips < 2 * _BLOCK else _BLOCK
    if any(variable.shape for variable in variables):
        # They stay in the second-level cache, beside the elements that the loop reads.
        each = max(1, sum(map(size_bytes, variables)))
        fitting = CACHE_BYTES // 2 // each
        size = min(size, fitting // _FEWEST_POSITIONS * _FEWEST_POSITIONS)
        if is_shared and trips * each > FIRST_CACHE_BYTES:
            size = min(size, max(_FEWEST_POSITIONS, trips // _BLOCKS))
    return size


def in_arrays(loop: For, arrays: Collection[str]) -> For:
    """Returns a loop with arrays in place of variables, with an element for each iteration."""
    at = index("sub", Var(loop.var), loop.begin)
    return with_parts(loop, body=with_index(loop.body, arrays, at, is_last=True))
