"""Gives each local a buffer of the whole kernel, with a dimension per loop around it.

    parallel i in 2 .. 10 {          buffer t: float32[8]
      local t: float32[] {     ->    parallel i in 2 .. 10 {
        t[] = a[i]                     t[i - 2] = a[i]

Each iteration has an element of its own, zero at the start as a local is. A loop of unknown length
gets no dimension, nor do the outermost ones if the buffer would be too large: their iterations
share an element, which is set to zero in each, and so must be run in order.
"""

from __future__ import annotations

import dataclasses
import math

from msops._loops.analysis.ranges import Range, Ranges, is_known, loop_range
from msops._loops.ir.intrinsics import is_float
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    Buffer,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Local,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.walk import map_bodies, map_expressions, rewrite

ELEMENT_LIMIT = 1 << 27
"""Elements an expanded local may have: what would be swapped out is better run in order."""


def expand_locals(kernel: Kernel) -> Kernel:
    """Returns the kernel without locals."""
    expansion = _Expansion(Names(kernel), [], {})
    body = expansion.body(kernel.body, {})
    return dataclasses.replace(kernel, buffers=(*kernel.buffers, *expansion.buffers), body=body)


@dataclasses.dataclass(frozen=True)
class _Expansion:
    """What is known so far: the new buffers, and the first indices of each expanded local."""

    names: Names
    buffers: list[Buffer]
    prefixes: dict[str, tuple[Expr, ...]]

    def body(self, body: tuple[Stmt, ...], ranges: Ranges) -> tuple[Stmt, ...]:
        return tuple(part for stmt in body for part in self.parts(stmt, ranges))

    def parts(self, stmt: Stmt, ranges: Ranges) -> tuple[Stmt, ...]:
        if isinstance(stmt, Local):
            return (*self.declared(stmt, ranges), *self.body(stmt.body, ranges))
        stmt = map_expressions(stmt, lambda expr: rewrite(expr, self.load))
        if isinstance(stmt, Store) and stmt.buffer in self.prefixes:
            stmt = dataclasses.replace(stmt, indices=(*self.prefixes[stmt.buffer], *stmt.indices))
        if isinstance(stmt, For):
            ranges = {**ranges, stmt.var: loop_range(stmt, ranges)}
        return (map_bodies(stmt, lambda body: self.body(body, ranges)),)

    def load(self, part: Expr) -> Expr:
        if isinstance(part, Load) and part.buffer in self.prefixes:
            return dataclasses.replace(part, indices=(*self.prefixes[part.buffer], *part.indices))
        return part

    def declared(self, local: Local, ranges: Ranges) -> tuple[Stmt, ...]:
        """Declares the buffer of a local; returns what sets it to zero where it is shared."""
        buffer = local.buffer
        expanded = {var: limits for var, limits in ranges.items() if is_known(limits)}
        while expanded and math.prod((*map(_extent, expanded.values()), *buffer.shape)) > (
            ELEMENT_LIMIT
        ):
            del expanded[next(iter(expanded))]
        prefix = tuple(_from(var, low) for var, (low, _) in expanded.items())
        shape = (*map(_extent, expanded.values()), *buffer.shape)
        self.buffers.append(dataclasses.replace(buffer, shape=shape))
        self.prefixes[buffer.name] = prefix
        return () if len(expanded) == len(ranges) else (self.cleared(local, prefix),)

    def cleared(self, local: Local, prefix: tuple[Expr, ...]) -> Stmt:
        """Returns what sets the elements of a local in one iteration to zero."""
        buffer = local.buffer
        axes = [self.names.fresh(f"{buffer.name}_axis") for _ in buffer.shape]
        number = float if is_float(buffer.dtype) else bool if buffer.dtype == "bool" else int
        zero = Const(number(0), buffer.dtype)
        place = (*prefix, *map(Var, axes))
        stmt: Stmt = Store(buffer.name, place, zero, location=local.location)
        for axis, size in zip(reversed(axes), reversed(buffer.shape), strict=True):
            begin, end = Const(0, INDEX_DTYPE), Const(size, INDEX_DTYPE)
            stmt = For(axis, begin, end, (stmt,), location=local.location)
        return stmt


def _extent(limits: Range) -> int:
    low, high = limits
    return max(high - low + 1, 0)


def _from(var: str, low: int) -> Expr:
    if low == 0:
        return Var(var)
    return Binary("sub", Var(var), Const(low, INDEX_DTYPE), INDEX_DTYPE)
