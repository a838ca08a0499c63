"""Sums that are computed in tiles of registers, and the sizes of the tiles."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from msops._base import processor
from msops._base.dtypes import as_dtype
from msops._loops.analysis.costs import mean_trips
from msops._loops.analysis.updates import Update
from msops._loops.ir.nodes import INDEX_DTYPE, For, Store
from msops._loops.ir.ranges import Ranges, dtype_range, range_of
from msops._loops.ir.walk import variables
from msops._loops.passes.simplify_expressions import difference

ROWS = 6
"""Rows of a tile of vectors."""
VECTORS = 2
"""Vectors of each row of a tile. The sums of all rows take 12 of 16 registers; two more hold
factors of all rows, and two hold factors of one row. Four rows of three vectors would take one
register too many: 73 instead of 98 GFLOP/s in one thread of an EPYC, as gcc 12 compiles them. Of
the 32 registers of AVX-512 more rows gain little: 12 reach 266 GFLOP/s, 6 reach 257. Where 6 rows
leave a rest and 8 do not, 8 take 0.87 to 0.98 of the time, and the code is shorter: gcc compiles
attention over 200 rows in 0.34 s instead of 0.54. Tiles of 5 rows take 1.04 of the time."""
FEWEST_WAITING = 16
"""Terms of a sum that goes into tiles instead of being written out at each position. Written out,
its additions wait for each other: at 16 terms a tile is 1.1 times as fast, at 40 twice."""


@dataclass(frozen=True)
class Sum:
    """A nest of the sums of a row in the body of a loop.

    Attributes:
      nest: its loops, outermost first. The last one goes over the row, the others over terms.
      store: its store.
      update: the update that the store is.
      ranges: the ranges of the variables of these loops and of the loops around them.
      rows: the number of rows in a tile.
    """

    nest: tuple[For, ...]
    store: Store
    update: Update
    ranges: Ranges
    rows: int

    @property
    def reductions(self) -> tuple[For, ...]:
        """The loops over terms."""
        return self.nest[:-1]

    @property
    def firsts(self) -> tuple[int, ...]:
        """The first iteration of each loop over terms, of any row."""
        return tuple(range_of(loop.begin, self.ranges)[0] for loop in self.reductions)

    @property
    def first_column(self) -> int:
        """The first element of any row."""
        return range_of(self.nest[-1].begin, self.ranges)[0]

    @property
    def column_extent(self) -> int:
        """The elements from the first to the last of any row."""
        return range_of(self.nest[-1].end, self.ranges)[1] - self.first_column

    @property
    def extents(self) -> tuple[int, ...]:
        """The iterations of each loop over terms, from the first to the last of any row."""
        lasts = (range_of(loop.end, self.ranges)[1] for loop in self.reductions)
        return tuple(last - first for first, last in zip(self.firsts, lasts, strict=True))

    @property
    def terms(self) -> float:
        """The estimated number of terms."""
        return math.prod(mean_trips(part, self.ranges) for part in self.reductions)

    @property
    def lanes(self) -> int:
        """Elements in a register: of the widest vectors that a row fills."""
        lanes = processor.vector_bytes() // self._itemsize
        least = processor.LEAST_VECTOR_BYTES // self._itemsize
        while lanes > max(least, self.mean_columns):
            lanes //= 2
        return lanes

    @property
    def width(self) -> int:
        """Elements of a row in a tile."""
        return min(VECTORS, max(1, int(self.mean_columns) // self.lanes)) * self.lanes

    @functools.cached_property
    def mean_columns(self) -> float:
        """The estimated number of elements of a row."""
        return mean_trips(self.nest[-1], self.ranges)

    @property
    def columns(self) -> int:
        """The greatest number of elements that the sum of a row may have."""
        span = difference(self.nest[-1].end, self.nest[-1].begin, self.ranges)
        return max(0, span[1]) if span else dtype_range(INDEX_DTYPE)[1]

    @property
    def parts_bytes(self) -> int:
        """The bytes of the sums of a block."""
        return self.rows * self.columns * self._itemsize

    @property
    def _itemsize(self) -> int:
        return int(as_dtype(self.store.value.dtype).dtype.itemsize)

    @property
    def even_rows(self) -> tuple[int, ...]:
        """The numbers of rows of tiles that fit the registers and are fast, the best first."""
        return (ROWS, 8) if processor.vector_bytes() == 64 else (ROWS,)

    def trips(self, loop: For, rows: For) -> tuple[int, int | None]:
        """Returns the fewest and the most iterations of a loop of the nest that all rows have.

        Args:
          loop: the loop.
          rows: the loop over rows. If the bounds depend on its variable, the result is (0, None).
        """
        if rows.var in variables(loop.begin) | variables(loop.end):
            return 0, None
        return difference(loop.end, loop.begin, self.ranges) or (0, None)

    def common_tiles(self, rows: For) -> int:
        """Returns the number of whole tiles of each row, if that is a constant; else 0."""
        fewest, most = self.trips(self.nest[-1], rows)
        return fewest // self.width if fewest == most else 0

    def last_width(self, rows: For) -> int | None:
        """Returns how many elements the last tile of a row has, which no whole tile has.

        The tile also computes some elements of the one before again.

        Returns:
          0 if there is no such tile; None if a row may be too short for it.
        """
        fewest, most = self.trips(self.nest[-1], rows)
        left = fewest % self.width if fewest == most else self.width - 1
        if left and fewest < self.width:
            return None
        return -(-left // self.lanes) * self.lanes
