"""Moves a temporary into the loops in which it is used, where no value passes between iterations.

    buffer row: float32[8]                  serial i in 0 .. 4 {
    serial i in 0 .. 4 {                      local row: float32[8] {
      serial j in 0 .. 8 {                      serial j in 0 .. 8 {
        row[j] = a[i, j]             ->           row[j] = a[i, j]
      }                                         }
      ...                                       ...

Each element read must have been written in the same iteration. Iterations then do not share memory,
and the loop may be parallel. Dimensions in which each iteration uses one element only are dropped:
an author's temporary of one element per iteration becomes a variable.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msops._loops.analysis.polyhedral.accesses import analysis
from msops._loops.analysis.polyhedral.flow import Flow, flows
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.ir.nodes import Buffer, Expr, For, Kernel, Local, Stmt
from msops._loops.ir.ranges import Ranges, is_within, range_of
from msops._loops.ir.walk import (
    A,
    accesses_in,
    accesses_of,
    loads,
    map_accesses,
    rewrite_statements,
    variables,
    visit,
    with_parts,
)


def privatise(kernel: Kernel) -> Kernel:
    """Returns the kernel with temporaries as locals of the innermost loops they can live in."""
    return _with_fewest_axes(_moved(kernel))


def _moved(kernel: Kernel) -> Kernel:
    """Returns the kernel with temporaries in these loops, as large as they were."""
    # Dependences take longer than all else here.
    if not _has_lower_homes(kernel):
        return kernel
    try:
        with analysis(kernel) as accesses:
            homes = {
                name: (flow.declared, loop)
                for name, flow in flows(kernel, accesses).items()
                if name not in kernel.results and (loop := _innermost_loop(flow)) is not None
            }
    except TooComplex:
        return kernel
    moved: dict[str, list[Buffer]] = {}
    for buffer, loop in homes.values():
        moved.setdefault(loop, []).append(buffer)

    def move_out(local: Local) -> tuple[Stmt, ...]:
        return local.body if local.buffer.name in homes else (local,)

    def move_in(loop: For) -> tuple[Stmt, ...]:
        for buffer in moved.get(loop.var, ()):
            local = Local(buffer, loop.body, location=loop.location)
            loop = dataclasses.replace(loop, body=(local,))
        return (loop,)

    if not homes:
        return kernel
    kept = tuple(buffer for buffer in kernel.buffers if buffer.name not in homes)
    outside = rewrite_statements(kernel.body, move_out, Local)
    body = rewrite_statements(outside, move_in, For)
    return with_parts(kernel, buffers=kept, body=body)


def _has_lower_homes(kernel: Kernel) -> bool:
    """Returns whether all accesses of a temporary are in a loop below the one that it lives in."""
    outer = {*kernel.results, *(buffer.name for buffer in kernel.parameters)}
    common: dict[str, tuple[str, ...]] = {}
    homes: dict[str, int] = {}
    for stmt, scope in visit(kernel):
        loops = tuple(loop.var for loop in scope.loops)
        for name in {access.buffer for access in accesses_of(stmt)} - outer:
            known = common.get(name, loops)
            same = itertools.takewhile(
                lambda pair: pair[0] == pair[1], zip(known, loops, strict=False)
            )
            common[name] = tuple(var for var, _ in same)
            homes[name] = scope.depths.get(name, 0)
    return any(len(loops) > homes[name] for name, loops in common.items())


def _innermost_loop(flow: Flow) -> str | None:
    """Returns the innermost loop whose iterations can each have a buffer of their own."""
    every = (*flow.reads, *flow.writes)
    if not flow.reads or not flow.writes:
        return None
    loops = [loop.var for loop in every[0].loops]
    for access in every[1:]:
        common = zip(loops, access.loops, strict=False)
        loops = [var for var, loop in common if var == loop.var]
    for depth in range(len(loops), every[0].private_loops, -1):
        if flow.is_covered(together=depth):
            return loops[depth - 1]
    return None


def _with_fewest_axes(kernel: Kernel) -> Kernel:
    """Returns the kernel with locals of the dimensions they need."""
    used: dict[str, set[tuple[Expr, ...]]] = defaultdict(set)
    for access in accesses_in(kernel.body):
        used[access.buffer].add(access.indices)
    kept = {
        stmt.buffer.name: [
            axis
            for axis, size in enumerate(stmt.buffer.shape)
            if not _is_one_element(
                {indices[axis] for indices in used[stmt.buffer.name]}, size, scope.ranges
            )
        ]
        for stmt, scope in visit(kernel)
        if isinstance(stmt, Local)
    }
    return keep_axes(kernel, kept)


def _is_one_element(indices: set[Expr], size: int, ranges: Ranges) -> bool:
    """Returns whether an index is the same, and in range, wherever a local is used."""
    if len(indices) != 1:
        return False
    (index,) = indices
    # What is read from memory may change, and other variables are those of loops inside.
    is_fixed = variables(index) <= set(ranges) and not loads(index)
    return is_fixed and is_within(range_of(index, ranges), (0, size - 1))


T = TypeVar("T")


def keep_axes(kernel: Kernel, kept: Mapping[str, Sequence[int]]) -> Kernel:
    """Returns the kernel in which some buffers and locals have only some of their dimensions.

    Args:
      kernel: any kernel.
      kept: the axes that stay, by the name of the buffer.
    """

    def chosen(items: tuple[T, ...], name: str) -> tuple[T, ...]:
        return tuple(items[axis] for axis in kept[name]) if name in kept else items

    def declared(buffer: Buffer) -> Buffer:
        return with_parts(buffer, shape=chosen(buffer.shape, buffer.name))

    def accessed(access: A, /) -> A:
        return with_parts(access, indices=chosen(access.indices, access.buffer))

    def local(stmt: Local) -> tuple[Stmt, ...]:
        return (with_parts(stmt, buffer=declared(stmt.buffer)),)

    if not kept:
        return kernel
    return with_parts(
        kernel,
        buffers=tuple(map(declared, kernel.buffers)),
        body=rewrite_statements(map_accesses(kernel.body, accessed), local, Local),
    )
