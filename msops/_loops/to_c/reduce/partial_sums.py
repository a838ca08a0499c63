"""Long reductions become sums of partial ones, which threads can take, or blocks of rows.

    reduction i in 0 .. 4096 {              parallel i_block in 0 .. 16 {
      s[] = s[] + a[i]                        local part: float32[] {
    }                             ->            reduction i in 256 * i_block .. {
                                                  part[] = part[] + a[i]
                                                }
                                                parts[i_block] = part[]
                                            }}
                                            reduction j in 0 .. 16 { s[] = s[] + parts[j] }

The number of parts depends on the kernel alone, so that a sum has the same bits however many
threads there are. A loop may have several such sums, and may write rows of its own besides. The
gradient of a layer is an example: it adds up the contributions of all rows to a shared weight. So
is a histogram, whose bins are sums that data picks. Loops that add to a few rows beside their own
need no parts: see separating.py.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

from msops._loops.analysis.costs import FIRST_CACHE_BYTES, fixed_trips
from msops._loops.analysis.updates import update_of
from msops._loops.ir.algebra import integer
from msops._loops.ir.names import Names, over_box
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
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.scalars import identity
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    buffers_of,
    declared_in,
    has_bounds_of_data,
    loads,
    rewrite_loops,
    statements,
    stored_in,
)
from msops._loops.passes.simplify import simplify
from msops._loops.to_c import cost
from msops._loops.to_c.clean.reductions import SUMMED_IN_FLOAT32
from msops._loops.to_c.facts.blocks import in_blocks, with_buffer, with_index
from msops._loops.to_c.facts.strides import is_of_its_own, step
from msops._loops.to_c.reduce.separating import with_rows_apart

_MOST_PARTS = 16
_MOST_LARGE_PARTS = 4
"""Parts that are too large for locals. Clearing and adding up such a part takes longer than its
terms if these are few, as under a condition that seldom holds."""
_MOST_LOCAL_BYTES = FIRST_CACHE_BYTES
"""Of a part that is a local. A larger part is summed where it is kept, since copying it takes as
long as adding it up."""
# Clearing and adding up the parts may take this share of the reduction.
_SHARE = 0.25
_FEWEST_ROWS = 32
"""Rows of a part that each run in order: as many as lanes take, see lanes/lane_rows.py. All parts
have equally many, as lanes need a number that is known."""


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

    def kernel(self) -> Kernel:
        """Returns the kernel, with the buffers of the parts."""
        split = rewrite_loops(self._kernel, self._loop, "reduction")
        if split is self._kernel:
            return split
        buffers = (*self._kernel.buffers, *self._parts)
        return simplify(dataclasses.replace(split, buffers=buffers))

    def _loop(self, loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        """Returns what replaces a loop; None to look inside of it."""
        if scope.is_parallel:
            return None
        apart = with_rows_apart(loop, scope, self._costs, self._names)
        if apart is not None:
            return apart
        sums = self._sums(loop, scope)
        count = self._count(loop, list(sums), scope) if sums else 0
        return self._split(loop, sums, count) if count >= 2 else None

    # Legality.

    def _sums(self, loop: For, scope: Scope) -> dict[Buffer, BinaryOp]:
        """Returns the buffers that a reduction updates, and the operation for each.

        There are none if the reduction also writes other buffers. Locals, and elements that no two
        iterations share, do not count.
        """
        own = declared_in(loop.body)
        found: dict[Buffer, BinaryOp] = {}
        for name in sorted(stored_in(loop.body) - own):
            if is_of_its_own(name, loop):
                continue
            touched = [access for access in accesses_in(loop.body) if access.buffer == name]
            buffer, op = scope.buffers.get(name), self._operation(name, touched, loop)
            if buffer is None or buffer.dtype in SUMMED_IN_FLOAT32 or op is None:
                return {}
            found[buffer] = op
        return found

    def _operation(self, name: str, touched: Sequence[Load | Store], loop: For) -> BinaryOp | None:
        """Returns the operation of all updates of a buffer; None if it has other accesses."""
        stores = [stmt for stmt in statements(loop.body)
                  if isinstance(stmt, Store) and stmt.buffer == name]  # fmt: skip
        ops = {update.op if update else None for update in map(update_of, stores)}
        # Parts of what moves evenly with the loop would be mostly empty; of what data picks, not.
        is_shared = all(
            any(map(loads, access.indices)) or step(access, loop, self._buffers) == 0
            for access in touched
        )
        # A store and a load for each update, and no load beside them.
        if len(ops) != 1 or not is_shared or len(touched) != 2 * len(stores):
            return None
        (op,) = ops
        return op if op in ("add", "mul", "min", "max") else None

    def _count(self, loop: For, sums: Sequence[Buffer], scope: Scope) -> int:
        """Returns the number of parts into which a reduction is worth being split."""
        trips = fixed_trips(loop)
        if trips is None:
            return 0
        seconds = self._costs.loop(loop, scope)
        elements = max(1, sum(math.prod(buffer.shape) for buffer in sums))
        # A part is cleared, copied and added.
        streamed = 3 * sum(map(size_bytes, sums)) * cost.SECONDS_PER_STREAMED
        per_part = 2 * elements * cost.SECONDS_PER_SCALAR + streamed
        # The estimate for loops whose bounds are data may be far too long: an iteration around
        # them counts as one update.
        inner = [stmt for stmt in statements(loop.body) if isinstance(stmt, For)]
        is_open = any(map(has_bounds_of_data, inner))
        most = min(
            _MOST_PARTS if all(map(_is_local, sums)) else _MOST_LARGE_PARTS,
            int(_SHARE * trips / elements) if is_open else trips,
            int(seconds / cost.BLOCK_SECONDS),
            int(_SHARE * seconds / per_part),
        )
        if trips >= 2 * _FEWEST_ROWS and any(part.kind == "serial" for part in inner):
            most = min(most, trips // _FEWEST_ROWS)
            return next((count for count in range(most, 1, -1) if trips % count == 0), 0)
        # Two or four threads have as many parts each.
        return most - most % (4 if most >= 4 else 2)

    # Rewriting.

    def _split(self, loop: For, sums: dict[Buffer, BinaryOp], count: int) -> tuple[Stmt, ...]:
        """Returns the loop over the parts, and the ones that add them up."""
        trips = fixed_trips(loop)
        assert trips is not None
        width = -(-trips // count)
        count = -(-trips // width)
        part = {
            buffer: dataclasses.replace(buffer, name=self._names.fresh(f"{buffer.name}_part"))
            for buffer in sums
        }
        parts = {
            buffer: Buffer(
                self._names.fresh(f"{buffer.name}_parts"), (count, *buffer.shape), buffer.dtype
            )
            for buffer in sums
        }
        self._parts += parts.values()

        def inside(block: For, number: Var) -> tuple[Stmt, ...]:
            body = block.body
            for buffer in sums:
                if _is_local(buffer):
                    body = with_buffer(body, buffer.name, part[buffer].name)
                else:
                    name = parts[buffer].name
                    body = with_index(with_buffer(body, buffer.name, name), {name}, number)
            stmts: tuple[Stmt, ...] = (dataclasses.replace(block, body=body),)
            for buffer, op in sums.items():
                stmts = kept(buffer, op, number, stmts)
            return stmts

        def kept(
            buffer: Buffer, op: BinaryOp, number: Var, stmts: tuple[Stmt, ...]
        ) -> tuple[Stmt, ...]:
            start = Const(identity(op, buffer.dtype), buffer.dtype)
            local, all_parts = part[buffer].name, parts[buffer].name

            def store(value: Callable[[tuple[Expr, ...]], Expr]) -> Stmt:
                return self._nest(
                    buffer.shape, lambda at: Store(all_parts, (number, *at), value(at))
                )

            if not _is_local(buffer):
                return (store(lambda at: start), *stmts)
            clear = self._nest(buffer.shape, lambda at: Store(local, at, start))
            keep = store(lambda at: Load(local, at, buffer.dtype))
            return (Local(part[buffer], (clear, *stmts, keep)),)

        def added(buffer: Buffer, op: BinaryOp) -> Stmt:
            def total(at: tuple[Expr, ...]) -> Store:
                last = Load(parts[buffer].name, (Var(block), *at), buffer.dtype)
                so_far = Load(buffer.name, at, buffer.dtype)
                return Store(buffer.name, at, Binary(op, so_far, last, buffer.dtype))

            block = self._names.fresh(f"{loop.var}_block")
            nest = self._nest(buffer.shape, total)
            return For(block, integer(0), integer(count), (nest,), "reduction")

        blocks = in_blocks(loop, width, self._names, inside)
        adding = (added(buffer, op) for buffer, op in sums.items())
        return (dataclasses.replace(blocks, kind="parallel"), *adding)

    def _nest(self, shape: tuple[int, ...], store: Callable[[tuple[Expr, ...]], Store]) -> Stmt:
        """Returns a store for each element of an array."""
        spans = [(0, size) for size in shape]
        return over_box(spans, ["element"] * len(spans), self._names.fresh, store)


def _is_local(buffer: Buffer) -> bool:
    return size_bytes(buffer) <= _MOST_LOCAL_BYTES
