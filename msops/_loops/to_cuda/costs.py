"""Limits and estimates that decide how loops are mapped to threads and blocks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from msops._loops.analysis.ranges import Ranges, loop_range
from msops._loops.ir.nodes import Binary, Expr, For, If, Local, Stmt, Store, Var
from msops._loops.ir.walk import expressions, loads, own_expressions, statements
from msops._loops.to_cuda.accumulations import accumulation_of
from msops._loops.to_cuda.axes import Box, box_of

# A nest is shared out among the threads of a block from this many iterations on.
LEAST_SHARED = 32
# A loop in order runs on the host, around launches, if this many iterations inside it can run at
# once: a launch takes about as long as a block of 1024 threads needs for them.
LEAST_LAUNCHED = 4096
# A sum into one element is split over blocks from this many terms on.
LEAST_SPLIT = 1 << 15
# A thread keeps arrays up to this size to itself; a block shares arrays up to that, in all: of the
# 48 KiB that every GPU gives a block without asking, the sums of blocks need some, too.
THREAD_BYTES = 1024
SHARED_BYTES = 24 << 10

# Threads that keep a large GPU busy. Uncoalesced accesses of a warp cost this much more.
_BUSY_THREADS = 1 << 16
_UNCOALESCED = 8
_UNKNOWN_WIDTH = 32


def width(body: Iterable[Stmt], ranges: Ranges) -> int:
    """Returns the iterations of the widest nest that the threads of a block can share.

    Such nests are parallel loops, and accumulations over reduction loops.
    """
    return max((_width_of(stmt, ranges) for stmt in body), default=1)


def own_width(loop: For, ranges: Ranges) -> int:
    """Returns the iterations of the nest that a loop is the outermost of; 1 if it is not shared."""
    if loop.kind == "serial" or (loop.kind == "reduction" and accumulation_of(loop) is None):
        return 1
    box = box_of(loop, (loop.kind,), ranges)
    return box.count if box else _UNKNOWN_WIDTH


def _width_of(stmt: Stmt, ranges: Ranges) -> int:
    match stmt:
        case For(body=inner, var=var):
            inside = dict(ranges) | {var: loop_range(stmt, ranges)}
            return max(own_width(stmt, ranges), width(inner, inside))
        case If(then=then, otherwise=otherwise):
            return max(width(then, ranges), width(otherwise, ranges))
        case Local(body=inner):
            return width(inner, ranges)
    return 1


def points(body: Iterable[Stmt], ranges: Ranges) -> int:
    """Returns the iterations in a body that can run at once: those of parallel nests, in all."""
    total = 0
    for stmt in body:
        match stmt:
            case For(body=inner):
                low, high = loop_range(stmt, ranges)
                inside = points(inner, dict(ranges) | {stmt.var: (low, high)})
                count = max(0, high - low + 1)
                total += inside if stmt.kind == "serial" else count * max(1, inside)
            case If(then=then, otherwise=otherwise):
                total += points((*then, *otherwise), ranges)
            case Local(body=inner):
                total += points(inner, ranges)
    return total


def is_shared_out(stmt: Stmt, ranges: Ranges) -> bool:
    """Tells whether the threads of a block share out a nest in a statement."""
    return width((stmt,), ranges) >= LEAST_SHARED


def prefers_blocks(box: Box, ranges: Ranges) -> bool:
    """Tells whether the points of a box are better run by a block each than by a thread each.

    A block shares out the widest nest inside. What counts is how many threads have work, and
    whether neighbours among them read neighbouring elements.
    """
    inside = box.ranges(ranges)
    wide = min(width(box.body, inside), 256)
    if wide < LEAST_SHARED:
        return False
    by_thread = min(box.count, _BUSY_THREADS)
    by_block = min(box.count * wide, _BUSY_THREADS)
    if is_coalesced(box.body, ordered(box).fastest.loop.var):
        by_thread *= _UNCOALESCED
    if all(is_coalesced(box.body, var) for var in _shared_variables(box.body)):
        by_block *= _UNCOALESCED
    # Blocks wait for their slowest thread at each step, which is worth it for a clear gain only.
    return by_block > 2 * by_thread


def _shared_variables(body: tuple[Stmt, ...]) -> list[str]:
    """Returns the innermost variable of each nest that the threads of a block share."""
    return [
        loop.var
        for loop in statements(body)
        if isinstance(loop, For)
        and loop.kind != "serial"
        and not any(isinstance(inner, For) for inner in loop.body)
    ]


def ordered(box: Box) -> Box:
    """Returns the box with its points numbered so that neighbours access neighbours."""
    for position in reversed(box.order):
        if is_coalesced(box.body, box.axes[position].loop.var):
            others = (other for other in box.order if other != position)
            return dataclasses.replace(box, order=(*others, position))
    return box


def is_coalesced(body: tuple[Stmt, ...], var: str) -> bool:
    """Tells whether most accesses that depend on a variable move by one element with it."""
    near = far = 0
    for indices in _accesses(body):
        depends = [_depends(index, var) for index in indices]
        if any(depends):
            moves_by_one = not any(depends[:-1]) and _moves_by_one(indices[-1], var)
            near, far = near + moves_by_one, far + (not moves_by_one)
    return near >= max(far, 1)


def _accesses(body: tuple[Stmt, ...]) -> Iterator[tuple[Expr, ...]]:
    for stmt in statements(body):
        if isinstance(stmt, Store):
            yield stmt.indices
        for expr in own_expressions(stmt):
            yield from (load.indices for load in loads(expr))


def _depends(expr: Expr, var: str) -> bool:
    return any(isinstance(part, Var) and part.name == var for part in expressions(expr))


def _moves_by_one(index: Expr, var: str) -> bool:
    match index:
        case Var(name=name):
            return name == var
        case Binary(op="add", left=left, right=right):
            return _depends(left, var) != _depends(right, var) and (
                _moves_by_one(left, var) or _moves_by_one(right, var)
            )
        case Binary(op="sub", left=left, right=right):
            return not _depends(right, var) and _moves_by_one(left, var)
    return False
