"""Printing of the code that one thread runs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from msops._loops.ir.nodes import Buffer, Local
from msops._loops.to_c.text import Statements, Values, bare, indented
from msops._loops.to_cuda.grid import Grid

THREAD_BYTES = 1024
"""The largest array that a thread keeps to itself; of others a workspace has one per thread."""


class ThreadCode(Statements):
    """Prints what one thread does.

    Attributes:
      slots: arrays of which each thread of the launch has one in a workspace, by the name of the
        pointer to the first.
    """

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self._numbers = itertools.count()
        self.slots: dict[str, Buffer] = {}

    def in_local(self, stmt: Local) -> list[str]:
        """Returns the lines of a block with an array of a thread's own; a workspace has many."""
        if stmt.storage != "workspace":
            return super().in_local(stmt)
        buffer = stmt.buffer
        self.values.declare(buffer)
        number, count = next(self._numbers), math.prod(buffer.shape)
        name, kind = self.values.names[buffer.name], self.values.storage_type(buffer.dtype)
        slots, index = f"ms_slots{number}", f"ms_i{number}"
        self.slots[slots] = buffer
        lines = [f"{kind}* const {name} = {slots} + ms_thread * {count};"]
        if buffer.name not in self.values.overwritten:
            head = f"for (int64_t {index} = 0; {index} < {count}; ++{index})"
            lines.append(f"{head} {name}[{index}] = 0;")
        return [*lines, *self.block(stmt.body)]

    def points(self, grid: Grid) -> list[str]:
        """Returns the loop in which the threads of a launch share out the points of a grid."""
        self.values.ranges.update(grid.ranges)
        # Division is quick in 32 bits only. A number may be beyond the last point by as many as
        # there are threads.
        kind = "uint32_t" if grid.count < 1 << 31 else "uint64_t"
        body = self.block(grid.body)
        condition = " && ".join(self._bounds(grid))
        if condition:
            body = [f"if ({condition}) {{", *indented(body), "}"]
        first = f"({kind})blockIdx.x * blockDim.x + threadIdx.x"
        step = f"({kind})gridDim.x * blockDim.x"
        return [
            f"for ({kind} ms_point = {first}; ms_point < {grid.count}; ms_point += {step}) {{",
            *indented([*self._variables(grid), *body]),
            "}",
        ]

    def _variables(self, grid: Grid) -> list[str]:
        """Returns the definitions of a grid's variables at a point."""
        lines = []
        stride = grid.count
        for position, axis in enumerate(grid.axes):
            stride //= axis.size
            text = "ms_point" if stride == 1 else f"ms_point / {stride}"
            text = f"{text} % {axis.size}" if position > 0 else text
            start = f" + ({axis.first})" if axis.first else ""
            lines.append(
                f"const int64_t {self.values.names[axis.loop.var]} = (int64_t)({text}){start};"
            )
        return lines

    def _bounds(self, grid: Grid) -> Iterator[str]:
        """Yields the conditions under which a point is an iteration of its loops."""
        for axis in grid.axes:
            if not axis.is_exact:
                var = self.values.names[axis.loop.var]
                yield f"{self.values.index(axis.loop.begin)} <= {var}"
                yield f"{var} < {bare(self.values.index(axis.loop.end))}"
