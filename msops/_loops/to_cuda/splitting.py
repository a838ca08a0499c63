"""A long sum into one element, as sums of many blocks and the sum of those.

    reduction i in 0 .. 1000000 { s[] = s[] + a[i] }

becomes, with a temporary p of 256 elements,

    parallel b in 0 .. 256 {
      p[b] = 0.0
      reduction i in b * 3907 .. min((b + 1) * 3907, 1000000) { p[b] = p[b] + a[i] }
    }
    reduction c in 0 .. 256 { s[] = s[] + p[c] }
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from msops._loops.analysis.ranges import Ranges
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    BinaryOp,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    Stmt,
    Store,
    Var,
)
from msops._loops.to_cuda import costs
from msops._loops.to_cuda.accumulations import accumulation_of, identity
from msops._loops.to_cuda.axes import box_of

BLOCKS = 256
# So that the bounds of the shares, which may lie beyond the loop's end, are int32.
_GREATEST_END = 1 << 30


@dataclass(frozen=True)
class Pieces:
    """The two sums.

    Attributes:
      partial: the temporary between them.
      body: what replaces the loop.
    """

    partial: Buffer
    body: tuple[Stmt, ...]


def is_worth_splitting(loop: For, ranges: Ranges) -> bool:
    """Tells whether a reduction loop can be split, and one block would need long for it."""
    accumulation = accumulation_of(loop)
    if accumulation is None or not accumulation.is_reduction:
        return False
    # The element is read at the end, even if no term was added to it: it must be there.
    if not accumulation.is_certain and accumulation.store.indices:
        return False
    box = box_of(loop, ("reduction",), ranges)
    cut = _bounds(_widest(accumulation.loops))
    fits = cut[1] - cut[0] > 1 and cut[1] < _GREATEST_END
    return box is not None and box.count >= costs.LEAST_SPLIT and fits


def split(loop: For, names: Names) -> Pieces:
    """Returns the pieces of a loop that is worth splitting."""
    accumulation = accumulation_of(loop)
    assert accumulation is not None
    update, store = accumulation.update, accumulation.store
    dtype = update.target.dtype
    cut = _widest(accumulation.loops)
    blocks = min(BLOCKS, _length(cut))
    partial = Buffer(names.fresh(f"{store.buffer}_partial"), (blocks,), dtype)
    block, piece = names.fresh("block"), names.fresh("piece")

    element = Load(partial.name, (Var(block),), dtype)
    op: BinaryOp = "sub" if update.is_negated else update.op
    inner = Store(
        partial.name,
        (Var(block),),
        Binary(op, element, update.term, dtype),
        location=store.location,
    )
    nest = _rebuilt(loop, store, inner, cut, block, blocks)
    start = Store(partial.name, (Var(block),), identity(update.op, dtype))
    combined = Binary(update.op, update.target, Load(partial.name, (Var(piece),), dtype), dtype)
    last = dataclasses.replace(store, value=combined)
    first_sums = For(block, _index(0), _index(blocks), (start, nest), kind="parallel")
    their_sum = For(piece, _index(0), _index(blocks), (last,), kind="reduction")
    return Pieces(partial, (first_sums, their_sum))


def _rebuilt(stmt: Stmt, old: Store, new: Store, cut: For, block: str, blocks: int) -> Stmt:
    """Returns the nest of one block: with its store, and its share of the loop `cut`."""
    if stmt is old:
        return new
    if isinstance(stmt, If):
        (inner,) = stmt.then
        return dataclasses.replace(stmt, then=(_rebuilt(inner, old, new, cut, block, blocks),))
    assert isinstance(stmt, For)
    (inner,) = stmt.body
    body = (_rebuilt(inner, old, new, cut, block, blocks),)
    if stmt is not cut:
        return dataclasses.replace(stmt, body=body)
    begin, end = _bounds(stmt)
    chunk = -(-(end - begin) // blocks)
    first = _sum(_product(Var(block), chunk), begin)
    last = Binary("min", _sum(first, chunk), _index(end), INDEX_DTYPE)
    return dataclasses.replace(stmt, begin=first, end=last, body=body)


def _bounds(loop: For) -> tuple[int, int]:
    """Returns constant bounds; an empty range for others, which are not cut."""
    if isinstance(loop.begin, Const) and isinstance(loop.end, Const):
        return int(loop.begin.value), int(loop.end.value)
    return 0, 0


def _length(loop: For) -> int:
    begin, end = _bounds(loop)
    return end - begin


def _widest(loops: tuple[For, ...]) -> For:
    return max(loops, key=_length)


def _index(value: int) -> Expr:
    return Const(value, INDEX_DTYPE)


def _sum(left: Expr, right: int) -> Expr:
    return Binary("add", left, _index(right), INDEX_DTYPE)


def _product(left: Expr, right: int) -> Expr:
    return Binary("mul", left, _index(right), INDEX_DTYPE)
