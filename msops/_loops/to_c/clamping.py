"""Neighbours at distances that are data, the nearest ones past a border, are loaded as neighbours.

    parallel x in 0 .. 1000 {                       parallel x in 0 .. 1000 {
      y[x] = z[min(max(x + d[k], 0), 999)]            first[] = z[0]
    }                                                 last[] = z[999]
                                                      at[] = x + d[k]
                                             ->       near[] = (at[] < 0 ? first[] : last[])
                                                      if ((0 <= at[]) && (at[] < 1000)) {
                                                        near[] = z[at[]]
                                                      }
                                                      y[x] = near[]
                                                    }

Compilers gather elements at clamped positions one by one. Between the borders neighbouring
iterations read neighbouring elements, of which `exact_indices` makes vectors under a mask. Beyond
them each row has two elements. Distances that are numbers are split from the borders by
`partitioning`.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from msops._base import processor
from msops._loops.analysis.affine import INDEX_DTYPES
from msops._loops.ir.building import binary, integer
from msops._loops.ir.elements import exists
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Select,
    Stmt,
    Store,
)
from msops._loops.ir.sizes import itemsize
from msops._loops.ir.walk import (
    A,
    Scope,
    buffers_of,
    declared_in,
    is_innermost,
    loads,
    loads_in,
    map_accesses,
    rewrite_loops,
    statements,
    stored_in,
    variables,
    with_parts,
    within_locals,
)
from msops._loops.to_c.moving import moving_index


def load_clamped_neighbours(kernel: Kernel) -> Kernel:
    """Returns the kernel with such elements of its innermost parallel loops in variables."""
    indices = (index for load in loads_in(kernel.body) for index in load.indices)
    if not processor.has_gathers() or not any(map(loads, indices)):
        return kernel
    names, buffers = Names(kernel), buffers_of(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        if not is_innermost(loop):
            return None
        (inside,) = scope.inside(loop)
        found = _clamped_in(loop, inside, buffers)
        if not found:
            return None
        near = {load: Buffer(names.fresh("near"), (), load.dtype) for load in found}

        def instead(access: A) -> A:
            held = near.get(access) if isinstance(access, Load) else None
            return access if held is None else replace(access, buffer=held.name, indices=())

        body = map_accesses(loop.body, instead)
        for load, position in found.items():
            size = buffers[load.buffer].shape[-1]
            body = _nearest(load, position, near[load], names, size, body)
        return (with_parts(loop, body=body),)

    return rewrite_loops(kernel, change, "parallel")


def _clamped_in(loop: For, inside: Scope, buffers: Mapping[str, Buffer]) -> dict[Load, Expr]:
    """Returns the loads of a loop whose last index moves with it, clamped, with that position."""
    changing = stored_in(loop.body) | declared_in(loop.body)
    # A branch may be there to read fewer elements.
    branches = [stmt for stmt in statements(loop.body) if isinstance(stmt, If)]
    some = {load for stmt in branches for load in loads_in((*stmt.then, *stmt.otherwise))}
    found: dict[Load, Expr] = {}
    for load in loads_in(loop.body):
        if load in some or not load.indices or load.buffer in changing:
            continue
        *outer, last = load.indices
        position = _clamped(last, buffers[load.buffer].shape[-1])
        if (
            position is not None
            and _moves_by_data(position, loop, changing)
            and itemsize(load.dtype) >= processor.LEAST_GATHERED_BYTES
            and all(_is_fixed(index, loop, changing) for index in outer)
            and exists(load, inside.ranges, buffers)
        ):
            found[load] = position
    return found


def _clamped(index: Expr, size: int) -> Expr | None:
    """Returns the position of which an index is the nearest one of an axis; None for others."""
    match index:
        # Into a narrower dtype an index could wrap.
        case Cast(operand=operand, dtype=dtype) if dtype in INDEX_DTYPES:
            return _clamped(operand, size)
        case Binary("min", Binary("max", position, Const(value=0)), Const(value=last)):
            return position if last == size - 1 else None
        case Binary("max", Binary("min", position, Const(value=last)), Const(value=0)):
            return position if last == size - 1 else None
    return None


def _moves_by_data(position: Expr, loop: For, changing: Set[str]) -> bool:
    """Returns whether a position is a loop's variable plus data that the loop does not change."""
    moving = moving_index(position, loop.var, changing)
    return moving is not None and moving.factor == 1 and bool(loads(moving.rest))


def _is_fixed(index: Expr, loop: For, changing: Set[str]) -> bool:
    return loop.var not in variables(index) and changing.isdisjoint(
        load.buffer for load in loads(index)
    )


def _nearest(
    load: Load, position: Expr, near: Buffer, names: Names, size: int, body: tuple[Stmt, ...]
) -> tuple[Stmt, ...]:
    """Returns statements around which a variable holds the element nearest to a position."""
    at = Buffer(names.fresh("at"), (), position.dtype)
    first, last = (Buffer(names.fresh(name), (), load.dtype) for name in ("first", "last"))
    here, zero, end = Load(at.name, (), at.dtype), Const(0, at.dtype), Const(size, at.dtype)
    *outer, _ = load.indices

    def element(index: Expr) -> Load:
        return with_parts(load, indices=(*outer, index))

    low, high = (Load(buffer.name, (), load.dtype) for buffer in (first, last))
    beyond = Select(binary("lt", here, zero), low, high, load.dtype)
    is_inside = binary("land", binary("le", zero, here), binary("lt", here, end))
    # Before a loop that does not change them, the elements at the borders are read once.
    return within_locals(
        (first, last, at, near),
        (
            Store(first.name, (), element(integer(0))),
            Store(last.name, (), element(integer(size - 1))),
            Store(at.name, (), position),
            Store(near.name, (), beyond),
            If(is_inside, (Store(near.name, (), element(here)),)),
            *body,
        ),
    )
