"""Long reductions become sums of partial ones, which threads can take.

    reduction i in 0 .. 4096 {              parallel i_block in 0 .. 16 {
      s[] = s[] + a[i]                        local part: float32[] {
    }                             ->            reduction i in 256 * i_block .. {
                                                  part[] = part[] + a[i]
                                                }
                                                parts[i_block] = part[]
                                            }}
                                            reduction j in 0 .. 16 { s[] = s[] + parts[j] }

The number of parts depends on the kernel alone, so that a sum has the same bits however many
threads there are.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping

from msops._loops.analysis.costs import fixed_trips
from msops._loops.analysis.updates import update_of
from msops._loops.ir.building import integer
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    Binary,
    BinaryOp,
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
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import dtype_range
from msops._loops.ir.walk import Scope, accesses_in, buffers_of, rewrite_loops, statements
from msops._loops.passes.simplify import simplify
from msops._loops.to_c import cost
from msops._loops.to_c.blocks import in_blocks, with_buffer
from msops._loops.to_c.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.strides import step

_MOST_PARTS = 16
# Clearing and adding up the parts may take this share of the reduction.
_SHARE = 0.25


def split_reductions(kernel: Kernel) -> Kernel:
    """Returns the kernel with long reductions outside of parallel loops in parts."""
    return _SplittingReductions(kernel).kernel()


class _SplittingReductions:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._names = Names(kernel)
        self._costs = cost.NativeCosts(kernel)
        self._parts: list[Buffer] = []

    @functools.cached_property
    def _buffers(self) -> dict[str, Buffer]:
        return buffers_of(self._kernel)

    @functools.cached_property
    def _shared(self) -> Mapping[str, Buffer]:
        return Scope.of(self._kernel).buffers

    def kernel(self) -> Kernel:
        """Returns the kernel, with the buffers of the parts."""
        split = rewrite_loops(self._kernel, self._loop, "reduction")
        if not self._parts:
            return self._kernel
        buffers = (*self._kernel.buffers, *self._parts)
        return simplify(dataclasses.replace(split, buffers=buffers))

    def _loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        update = None if scope.is_parallel else self._update(loop)
        count = self._count(loop, update[0], scope) if update else 0
        return self._split(loop, *update, count) if update and count >= 2 else None

    # Whether.

    def _update(self, loop: For) -> tuple[Buffer, BinaryOp] | None:
        """Returns the buffer that all of a reduction updates, and how; None if that is not all."""
        stores = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store)]
        updates = [update_of(store) for store in stores]
        buffer = self._shared.get(stores[0].buffer) if stores else None
        if buffer is None or buffer.dtype in SUMMED_IN_FLOAT32:
            return None
        ops = {update.op for update in updates if update}
        if None in updates or len(ops) != 1 or {store.buffer for store in stores} != {buffer.name}:
            return None
        (op,) = ops
        if op not in ("add", "mul", "min", "max"):
            return None
        touched = [access for access in accesses_in(loop.body) if access.buffer == buffer.name]
        is_fixed = all(step(access, loop, self._buffers) == 0 for access in touched)
        # A store and a load for each update, and no load beside them.
        return (buffer, op) if is_fixed and len(touched) == 2 * len(stores) else None

    def _count(self, loop: For, buffer: Buffer, scope: Scope) -> int:
        """Returns in how many parts a reduction is worth being split."""
        trips = fixed_trips(loop)
        if trips is None:
            return 0
        seconds = self._costs.loop(loop, scope)
        per_part = 2 * math.prod(buffer.shape) * cost.SECONDS_PER_SCALAR
        return min(
            _MOST_PARTS, trips, int(seconds / cost.BLOCK_SECONDS), int(_SHARE * seconds / per_part)
        )

    # How.

    def _split(self, loop: For, buffer: Buffer, op: BinaryOp, count: int) -> tuple[Stmt, ...]:
        """Returns the loop over the parts, and the one that adds them up."""
        shape, dtype = buffer.shape, buffer.dtype
        part = Buffer(self._names.fresh(f"{buffer.name}_part"), shape, dtype)
        trips = fixed_trips(loop)
        assert trips is not None
        width = -(-trips // count)
        count = -(-trips // width)
        parts = Buffer(self._names.fresh(f"{buffer.name}_parts"), (count, *shape), dtype)
        self._parts.append(parts)
        neutral = _neutral(op, dtype)

        def inside(block: For, number: Var) -> tuple[Stmt, ...]:
            reduction = dataclasses.replace(
                block, body=with_buffer(block.body, buffer.name, part.name)
            )
            clear = self._nest(shape, lambda at: Store(part.name, at, neutral))
            keep = self._nest(
                shape, lambda at: Store(parts.name, (number, *at), Load(part.name, at, dtype))
            )
            return (Local(part, (clear, reduction, keep)),)

        def total(at: tuple[Expr, ...]) -> Store:
            last = Load(parts.name, (Var(block), *at), dtype)
            return Store(buffer.name, at, Binary(op, Load(buffer.name, at, dtype), last, dtype))

        blocks = in_blocks(loop, width, self._names, inside)
        block = self._names.fresh(f"{loop.var}_block")
        adding = For(block, integer(0), integer(count), (self._nest(shape, total),), "reduction")
        return (dataclasses.replace(blocks, kind="parallel"), adding)

    def _nest(self, shape: tuple[int, ...], store: Callable[[tuple[Expr, ...]], Store]) -> Stmt:
        """Returns a store for each element of an array."""
        axes = [self._names.fresh("element") for _ in shape]
        stmt: Stmt = store(tuple(map(Var, axes)))
        for axis, extent in zip(reversed(axes), reversed(shape), strict=True):
            stmt = For(axis, integer(0), integer(extent), (stmt,), "parallel")
        return stmt


def _neutral(op: BinaryOp, dtype: str) -> Const:
    """Returns what combines with any value to that value."""
    if op in ("add", "mul"):
        value: float = int(op == "mul")
    elif is_float(dtype):
        value = -math.inf if op == "max" else math.inf
    else:
        value = dtype_range(dtype)[0 if op == "max" else 1]
    return Const(float(value) if is_float(dtype) else int(value), dtype)
