"""Tapes: buffers with an element for each iteration of the loops around what is saved.

A tape is dense over the bounding box of the iterations, so the backward sweep finds its entry by
the loop variables alone: no counter orders the iterations, and loops that were parallel stay so.
Its last axis is the one along which most of the arrays beside it are accessed, so that the same
order of loops suits all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from msops._loops.ir.algebra import integer, sub
from msops._loops.ir.nodes import Buffer, Expr, For, Load, Store, Var
from msops._loops.ir.ranges import nested_ranges
from msops._loops.ir.walk import accesses_in, variables


@dataclass(frozen=True)
class Tape:
    """Where the values at one point of a kernel are saved.

    Attributes:
      buffer: the tape.
      entry: shape and dtype of what is saved at a time.
      indices: the entry of an iteration, in terms of the loops around that point.
    """

    buffer: Buffer
    entry: Buffer
    indices: tuple[Expr, ...]

    def save(self, value: Load, rest: tuple[Expr, ...] = ()) -> Store:
        """Returns what writes a value, of an element if a whole array is saved."""
        return Store(self.buffer.name, (*self.indices, *rest), value)

    def saved(self, rest: tuple[Expr, ...] = ()) -> Load:
        """Returns the value saved."""
        return Load(self.buffer.name, (*self.indices, *rest), self.buffer.dtype)


def tape_for(name: str, entry: Buffer, loops: Sequence[For], around: Sequence[For]) -> Tape:
    """Returns a tape with an entry for each iteration of some loops.

    Args:
      name: of the tape.
      entry: shape and dtype of an entry.
      loops: those between where the tape is declared and where it is written, outermost first.
      around: all loops around where it is written.
    """
    ranges = nested_ranges(around, {})
    extents = tuple(max(0, ranges[loop.var][1] - ranges[loop.var][0] + 1) for loop in loops)
    indices = tuple(sub(Var(loop.var), integer(ranges[loop.var][0])) for loop in loops)
    return Tape(Buffer(name, (*extents, *entry.shape), entry.dtype), entry, indices)


def in_order_of_memory(loops: Sequence[For], innermost: Sequence[For]) -> list[For]:
    """Returns loops with the one last that moves most of what is accessed along its last axis.

    Args:
      loops: those of the axes of a tape.
      innermost: the loop around what is saved, if there is one.
    """
    last = Counter(
        name
        for access in accesses_in(tuple(stmt for loop in innermost for stmt in loop.body))
        if access.indices
        for name in variables(access.indices[-1])
    )
    most = max(loops, key=lambda loop: (last[loop.var], loop is loops[-1]), default=None)
    return [
        *(loop for loop in loops if loop is not most),
        *(loop for loop in loops if loop is most),
    ]
