"""Gives each local a buffer of the whole kernel, with a dimension per loop around it.

    parallel i in 2 .. 10 {          buffer t: float32[8]
      local t: float32[] {     ->    parallel i in 2 .. 10 {
        t[] = a[i]                     t[i - 2] = a[i]

Each iteration has an element of its own, zero at the start as a local is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from msops._loops.errors import NotRaised
from msops._loops.ir import (
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
from msops._loops.ranges import Range, Ranges, loop_range
from msops._loops.walk import map_bodies, map_expressions, rewrite

ELEMENT_LIMIT = 1 << 27
"""Elements an expanded local may have: what would be swapped out is better run in order."""


def expand_locals(kernel: Kernel) -> Kernel:
    """Returns the kernel without locals.

    Raises:
      NotRaised: the number of iterations around a local is unknown or too large.
    """
    expansion = _Expansion([], {})
    body = expansion.body(kernel.body, {})
    return dataclasses.replace(kernel, buffers=(*kernel.buffers, *expansion.buffers), body=body)


@dataclasses.dataclass(frozen=True)
class _Expansion:
    """What is known so far: the new buffers, and the first indices of each expanded local."""

    buffers: list[Buffer]
    prefixes: dict[str, tuple[Expr, ...]]

    def body(self, body: tuple[Stmt, ...], ranges: Ranges) -> tuple[Stmt, ...]:
        return tuple(part for stmt in body for part in self.parts(stmt, ranges))

    def parts(self, stmt: Stmt, ranges: Ranges) -> tuple[Stmt, ...]:
        if isinstance(stmt, Local):
            self.declare(stmt, ranges)
            return self.body(stmt.body, ranges)
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

    def declare(self, local: Local, ranges: Mapping[str, Range]) -> None:
        extents = tuple(max(high - low + 1, 0) for low, high in ranges.values())
        shape = (*extents, *local.buffer.shape)
        if math.prod(shape) > ELEMENT_LIMIT:
            raise NotRaised(
                f"{local.buffer.name} would need an element for each iteration of the loops "
                f"around it, {list(shape)}",
                local.location,
            )
        self.buffers.append(dataclasses.replace(local.buffer, shape=shape))
        self.prefixes[local.buffer.name] = tuple(
            _from(var, low) for var, (low, _) in ranges.items()
        )


def _from(var: str, low: int) -> Expr:
    if low == 0:
        return Var(var)
    return Binary("sub", Var(var), Const(low, INDEX_DTYPE), INDEX_DTYPE)
