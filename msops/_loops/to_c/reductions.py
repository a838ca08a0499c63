"""Keeps the sums of an innermost reduction in variables, which vector registers can hold.

    reduction j in 0 .. 8 {               local sum: float32[] {
      s[i] = s[i] + a[i, j]        ->       sum[] = s[i]
    }                                       reduction j in 0 .. 8 { sum[] = sum[] + a[i, j] }
                                            s[i] = sum[] }

float16 and bfloat16 are summed in float32 and rounded once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

from msops._loops.analysis.updates import Update, sum_of
from msops._loops.ir.intrinsics import is_float
from msops._loops.ir.nodes import Binary, Buffer, Cast, Expr, For, If, Load, Local, Stmt, Store, Var
from msops._loops.ir.walk import (
    bodies,
    expressions,
    map_bodies,
    own_expressions,
    statements,
)

NARROW = ("float16", "bfloat16")
"""Floats that are added up in float32."""


@dataclass(frozen=True)
class Accumulators:
    """A loop rewritten.

    Attributes:
      buffers: the new scalars.
      before: what fills them.
      loop: the loop, updating them.
      after: what writes them back.
      operations: the operation of each.
    """

    buffers: tuple[Buffer, ...]
    before: tuple[Stmt, ...]
    loop: For
    after: tuple[Stmt, ...]
    operations: tuple[str, ...]

    @property
    def is_extremum(self) -> bool:
        """It is one minimum or maximum of floats: compilers leave those alone."""
        return len(self.buffers) == 1 and self._is_extremum(0)

    def _is_extremum(self, position: int) -> bool:
        dtype = self.buffers[position].dtype
        return is_float(dtype) and self.operations[position] in ("min", "max")

    @property
    def clauses(self) -> tuple[tuple[str, str], ...]:
        """What OpenMP must be told: sign and name of each sum or product of floats.

        Integers need no leave to be reassociated. None at all if a minimum or maximum stands
        beside them, which has no sign.
        """
        if any(map(self._is_extremum, range(len(self.buffers)))):
            return ()
        return tuple(
            ("*" if op == "mul" else "+", buffer.name)
            for op, buffer in zip(self.operations, self.buffers, strict=True)
            if is_float(buffer.dtype)
        )


def accumulate(loop: For, prefix: str) -> Accumulators | None:
    """Returns an innermost reduction with its updates of fixed elements done in scalars.

    The elements are read before the loop and written after it, which the caller must not do where
    the loop has no iteration.

    Args:
      loop: a loop of kind "reduction" without loops inside.
      prefix: begins the names of the scalars.

    Returns:
      None if an update's element changes in the loop, or something else reads it there.
    """
    found: dict[tuple[str, tuple[Expr, ...]], Update] = {}
    for store, is_guarded in _stores(loop.body, False):
        update = sum_of(store)
        if update is None or not _is_fixed(store, loop):
            continue
        # An element that only a condition proves to be there must not be touched without it.
        if is_guarded and update.target.indices:
            return None
        known = found.setdefault((store.buffer, store.indices), update)
        if known.op != update.op:
            return None
    if not found or not _are_alone(loop, found):
        return None
    buffers = {
        key: Buffer(f"{prefix}{number}", (), _sum_dtype(update.target.dtype))
        for number, (key, update) in enumerate(found.items())
    }

    def replace(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(_updated(stmt, buffers) or map_bodies(stmt, replace) for stmt in body)

    before, after = [], []
    for key, update in found.items():
        scalar, target = Load(buffers[key].name, (), buffers[key].dtype), update.target
        before.append(Store(scalar.buffer, (), _cast(target, scalar.dtype)))
        after.append(Store(target.buffer, target.indices, _cast(scalar, target.dtype)))
    return Accumulators(
        tuple(buffers.values()),
        tuple(before),
        dataclasses.replace(loop, body=replace(loop.body)),
        tuple(after),
        tuple(update.op for update in found.values()),
    )


def _stores(body: tuple[Stmt, ...], is_guarded: bool) -> Iterator[tuple[Store, bool]]:
    """Yields the stores in a body, and whether a condition stands around each."""
    for stmt in body:
        if isinstance(stmt, Store):
            yield stmt, is_guarded
        for inner in bodies(stmt):
            yield from _stores(inner, is_guarded or isinstance(stmt, If))


def _is_fixed(store: Store, loop: For) -> bool:
    """Tells whether a store writes the same element in every iteration."""
    inner = [stmt for stmt in statements(loop.body) if isinstance(stmt, Local)]
    written = {stmt.buffer for stmt in statements(loop.body) if isinstance(stmt, Store)}
    moving = written | {stmt.buffer.name for stmt in inner}
    return store.buffer not in {stmt.buffer.name for stmt in inner} and not any(
        part == Var(loop.var) or (isinstance(part, Load) and part.buffer in moving)
        for index in store.indices
        for part in expressions(index)
    )


def _are_alone(loop: For, found: dict[tuple[str, tuple[Expr, ...]], Update]) -> bool:
    """Tells whether nothing but the updates touches their elements in the loop."""
    if len(loop.body) == 1 and isinstance(loop.body[0], Store):
        # Else it would not be a reduction.
        return True
    ours = {name for name, _ in found}
    if len({(name, update.op) for (name, _), update in found.items()}) > len(ours):
        return False
    for stmt in statements(loop.body):
        if isinstance(stmt, Store) and stmt.buffer in ours:
            update = sum_of(stmt)
            if update is None or (stmt.buffer, stmt.indices) not in found:
                return False
            parts: tuple[Expr, ...] = (update.term,)
        else:
            parts = own_expressions(stmt)
        if any(
            isinstance(load, Load) and load.buffer in ours
            for part in parts
            for load in expressions(part)
        ):
            return False
    return True


def _updated(stmt: Stmt, buffers: dict[tuple[str, tuple[Expr, ...]], Buffer]) -> Store | None:
    """Returns an update of a fixed element as the update of its scalar."""
    if not isinstance(stmt, Store) or (stmt.buffer, stmt.indices) not in buffers:
        return None
    update = sum_of(stmt)
    assert update is not None
    scalar = buffers[stmt.buffer, stmt.indices]
    op = "sub" if update.is_negated else update.op
    dtype = scalar.dtype
    value = Binary(op, Load(scalar.name, (), dtype), _cast(update.term, dtype), dtype)
    return Store(scalar.name, (), value, location=stmt.location)


def _sum_dtype(dtype: str) -> str:
    return "float32" if dtype in NARROW else dtype


def _cast(expr: Expr, dtype: str) -> Expr:
    return expr if expr.dtype == dtype else Cast(expr, dtype)
