"""Rows that each read all rows before them run in blocks, so that those are read once for a block.

    serial i in 0 .. 512 {                   serial i_block in 0 .. 32 {
      serial j in 0 .. i {                     serial j in 0 .. 16 * i_block {
        a[i, j] = ... a[j, k] ...                serial i in 16 * i_block .. 16 * i_block + 16 {
      }                                  ->        a[i, j] = ... a[j, k] ...
      a[i, i] = ...                              }
    }                                          }
                                               serial i in 16 * i_block .. 16 * i_block + 16 {
                                                 serial j in 16 * i_block .. i { ... }
                                                 a[i, i] = ...
                                               }

Row after row, a factorisation fetches the whole triangle above each row from the second cache, or
from memory. A row of that triangle stays in the first cache while the rows of a block read it. This
is right if each iteration writes its own row alone, and reads no row after it. The rows of a block
then do not need each other for what they take from the rows before the block. LAPACK's `potrf` and
`getrf` work by blocks for the same reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from msops._loops.analysis.affine import affine
from msops._loops.analysis.costs import FIRST_CACHE_BYTES, fixed_trips
from msops._loops.ir.building import integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Expr, For, Kernel, Load, Stmt, Store, Var
from msops._loops.ir.ranges import is_within, range_of
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import (
    AccessSite,
    Scope,
    declared_in,
    is_innermost,
    loads,
    loads_in,
    rewrite_loops,
    statements,
    stored_in,
    substitute,
    variables,
    visit_accesses,
    with_parts,
)
from msops._loops.passes.simplify import simplify
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c.facts.blocks import in_blocks, index, is_alike

_ROWS = 16
"""Of a block. Measured of Cholesky's factorisation of 500 rows, on one processor: beside loops row
by row, blocks of 8 rows take 0.81 of the time, of 16 rows 0.74, of 32 rows 0.83."""
_FEWEST_BLOCKS = 4


def block_triangles(kernel: Kernel) -> Kernel:
    """Returns the kernel with such loops over rows in blocks."""
    names = Names(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        trips = fixed_trips(loop)
        if trips is None or trips < _FEWEST_BLOCKS * _ROWS:
            return None
        match loop.body:
            case (For(kind="serial") as columns, *_) if not is_innermost(columns):
                triangle = _Triangle(loop, columns, scope, names)
                if triangle.is_worth_it() and triangle.can_run_in_blocks():
                    return (triangle.in_blocks(),)
        return None

    changed = rewrite_loops(kernel, change, "serial")
    return kernel if changed == kernel else simplify(unique_names(changed, names))


class _Triangle:
    """A loop over rows that begins with a loop over the columns before them.

    Attributes:
      rows: the loop over rows.
      columns: the loop over columns, the first statement of a row.
      scope: the scope around.
    """

    def __init__(self, rows: For, columns: For, scope: Scope, names: Names) -> None:
        self.rows = rows
        self.columns = columns
        self.scope = scope
        self._names = names

    def in_blocks(self) -> For:
        """Returns the loop over blocks of rows."""

        def inside(block: For, _: Var) -> tuple[Stmt, ...]:
            end = self._of_row(self.columns.end, block.begin)
            common = with_parts(block, kind="parallel", body=self.columns.body)
            own = with_parts(self.columns, begin=index("max", self.columns.begin, end))
            return (
                with_parts(self.columns, end=end, body=(common,)),
                with_parts(block, body=(own, *self.rows.body[1:])),
            )

        return in_blocks(self.rows, _ROWS, self._names, inside)

    def can_run_in_blocks(self) -> bool:
        """Returns whether rows write only themselves, and read no row after them."""
        if loads(self.columns.end) or not is_alike(self.columns.begin, self.rows):
            return False
        sites = visit_accesses(Kernel("rows", (), (), (), (self.rows,)))
        written = stored_in(self.rows.body) - declared_in(self.rows.body)
        axes = {name: self._axis(name, sites) for name in written}
        around = self.scope.inside(self.rows)[0].ranges
        reads: list[tuple[Expr, tuple[For, ...]]] = []
        for access, _, _, scope, _ in sites:
            if access.buffer not in written:
                continue
            axis = axes[access.buffer]
            if axis is None:
                return False
            row, (_, *inner) = access.indices[axis], scope.loops
            ranges = {**scope.ranges, **around}
            # An index out of range is that of another row.
            if not is_within(range_of(row, ranges), (0, self._length(access.buffer, axis) - 1)):
                return False
            if row != Var(self.rows.var):
                reads.append((row, tuple(inner)))
        # Each row of a block by itself: quotients of its number are then exact.
        return all(self._are_before(reads, place) for place in range(_ROWS))

    def _are_before(self, reads: Sequence[tuple[Expr, tuple[For, ...]]], place: int) -> bool:
        """Returns whether a row of each block reads no row after it.

        In the columns before its block, it must read rows before the block alone.

        Args:
          reads: the numbers of the rows read, each with the loops of a row that are around it.
          place: the number of the row in its block.
        """
        block = Var(self._names.fresh("block"))
        trips = fixed_trips(self.rows)
        assert trips is not None
        ranges = {**self.scope.ranges, block.name: (0, (trips - 1) // _ROWS)}

        def is_at_most(value: Expr, limit: Expr) -> bool:
            span = difference(value, limit, ranges)
            return span is not None and span[1] <= 0

        first = index("add", self.rows.begin, index("mul", block, integer(_ROWS)))
        row = index("add", first, integer(place))
        end = self._of_row(self.columns.end, first)
        if not is_at_most(end, self._of_row(self.columns.end, row)):
            return False
        common = with_parts(self.columns, end=end)
        for read, loops in reads:
            limits = [(loops, row)]
            if loops and loops[0].var == self.columns.var:
                limits.append(((common, *loops[1:]), index("sub", first, integer(1))))
            for around, limit in limits:
                greatest = _greatest(read, around)
                if greatest is None or not is_at_most(self._of_row(greatest, row), limit):
                    return False
        return True

    def _of_row(self, expr: Expr, row: Expr) -> Expr:
        return substitute(expr, {self.rows.var: row})

    def _length(self, name: str, axis: int) -> int:
        return self.scope.buffers[name].shape[axis]

    def _axis(self, name: str, sites: Sequence[AccessSite]) -> int | None:
        """Returns the axis of an array along which all stores go to the row of the iteration."""
        stores = [
            site.access.indices
            for site in sites
            if isinstance(site.access, Store) and site.access.buffer == name
        ]
        axes = (
            a for a in range(len(stores[0])) if all(at[a] == Var(self.rows.var) for at in stores)
        )
        return next(axes, None)

    def is_worth_it(self) -> bool:
        """Returns whether all rows read the same rows, of more than the first cache holds."""
        inside = {part.var for part in statements(self.columns.body) if isinstance(part, For)}

        def is_shared(access: Load) -> bool:
            at = {name for index in access.indices for name in variables(index)}
            return self.rows.var not in at and not inside.isdisjoint(at)

        return any(
            access.buffer in self.scope.buffers
            and size_bytes(self.scope.buffers[access.buffer]) > FIRST_CACHE_BYTES
            and len(access.indices) > 1
            and is_shared(access)
            for access in loads_in(self.columns.body)
        )


def _greatest(expr: Expr, loops: Sequence[For]) -> Expr | None:
    """Returns the greatest value of an index in any iteration of loops, if it is affine in them."""
    for loop in reversed(loops):
        if loop.var not in variables(expr):
            continue
        function = affine(expr, {loop.var})
        if function is None:
            return None
        ((_, step),) = function.along
        last = index("sub", loop.end, integer(1))
        expr = substitute(expr, {loop.var: last if step > 0 else loop.begin})
    return expr
