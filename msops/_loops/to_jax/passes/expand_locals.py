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

from msops._loops.analysis.polyhedral.accesses import analysis
from msops._loops.analysis.polyhedral.flow import Flow, flows
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.ir.algebra import integer, sub
from msops._loops.ir.names import Names, over_box
from msops._loops.ir.nodes import Buffer, Const, Expr, Kernel, Local, Stmt, Store, Var
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import Range, Ranges, is_known
from msops._loops.ir.walk import (
    A,
    loads,
    map_accesses,
    rewrite_statements,
    variables,
    visit,
    with_parts,
)
from msops._loops.passes.privatise import keep_axes

ELEMENT_LIMIT = 1 << 27
"""Elements an expanded local may have: what would be swapped out is better run in order."""


def expand_locals(kernel: Kernel) -> Kernel:
    """Returns the kernel without locals."""
    names = Names(kernel)
    expanded: dict[str, _Expanded] = {
        stmt.buffer.name: _expanded(stmt, scope.ranges, names)
        for stmt, scope in visit(kernel)
        if isinstance(stmt, Local)
    }

    def moved(access: A, /) -> A:
        if access.buffer not in expanded:
            return access
        indices = (*expanded[access.buffer].prefix, *access.indices)
        return dataclasses.replace(access, indices=indices)

    def replaced(local: Local) -> tuple[Stmt, ...]:
        return (*expanded[local.buffer.name].clearing, *local.body)

    if not expanded:
        return kernel
    body = rewrite_statements(map_accesses(kernel.body, moved), replaced, Local)
    buffers = (*kernel.buffers, *(local.buffer for local in expanded.values()))
    return with_parts(kernel, buffers=buffers, body=body)


@dataclasses.dataclass(frozen=True)
class _Expanded:
    """A local as a buffer of the whole kernel.

    Attributes:
      buffer: the buffer.
      prefix: its first indices.
      clearing: what sets the elements of one iteration to zero, where iterations share them.
    """

    buffer: Buffer
    prefix: tuple[Expr, ...]
    clearing: tuple[Stmt, ...]


def _expanded(local: Local, ranges: Ranges, names: Names) -> _Expanded:
    buffer = local.buffer
    axes = {var: limits for var, limits in ranges.items() if is_known(limits)}
    while axes and math.prod((*map(_extent, axes.values()), *buffer.shape)) > ELEMENT_LIMIT:
        del axes[next(iter(axes))]
    prefix = tuple(sub(Var(var), integer(low)) for var, (low, _) in axes.items())
    shape = (*map(_extent, axes.values()), *buffer.shape)
    clearing = () if len(axes) == len(ranges) else (_cleared(local, prefix, names),)
    return _Expanded(dataclasses.replace(buffer, shape=shape), prefix, clearing)


def _cleared(local: Local, prefix: tuple[Expr, ...], names: Names) -> Stmt:
    """Returns what sets the elements of a local in one iteration to zero."""
    buffer = local.buffer
    number = float if is_float(buffer.dtype) else bool if buffer.dtype == "bool" else int
    zero = Const(number(0), buffer.dtype)
    spans = [(0, size) for size in buffer.shape]

    def element(at: tuple[Expr, ...]) -> Stmt:
        return Store(buffer.name, (*prefix, *at), zero, location=local.location)

    return over_box(spans, [f"{buffer.name}_axis"] * len(spans), names.fresh, element)


def _extent(limits: Range) -> int:
    low, high = limits
    return high - low + 1


def contract(kernel: Kernel) -> Kernel:
    """Returns the kernel with the smallest temporaries that serve.

        buffer t: float32[8, 4]                 buffer t: float32[4]
        serial k in 0 .. 8 {                    serial k in 0 .. 8 {
          parallel i in 0 .. 4 {                  parallel i in 0 .. 4 {
            t[k, i] = a[i]               ->         t[i] = a[i]

    Locals are expanded over all loops around them before it is known which of these are run in
    order. Dimensions that only distinguish their iterations go: no value may pass from one
    iteration to another, and each element read must have been written in the same one.
    """
    try:
        with analysis(kernel) as accesses:
            kept = {
                name: _kept_axes(flow)
                for name, flow in flows(kernel, accesses).items()
                if name not in kernel.results
            }
    except TooComplex:
        return kernel
    return keep_axes(kernel, kept)


def _kept_axes(flow: Flow) -> list[int]:
    """Returns the axes of a temporary that are needed."""
    every = (*flow.reads, *flow.writes)
    axes = range(len(flow.declared.shape))
    if not flow.reads or not flow.writes:
        return list(axes)
    kept = []
    for axis in axes:
        indices = {access.node.indices[axis] for access in every}
        depth = _fixed_at(indices.pop(), flow) if len(indices) == 1 else None
        if depth is None or not flow.is_covered(together=depth):
            kept.append(axis)
    return kept


def _fixed_at(index: Expr, flow: Flow) -> int | None:
    """Returns how many common serial loops there are once an index has one value, or None."""
    used = variables(index)
    if not used or loads(index):
        return None
    every = (*flow.reads, *flow.writes)
    for depth, loop in enumerate(every[0].loops, start=1):
        is_common = all(
            len(access.loops) >= depth and access.loops[depth - 1].var == loop.var
            for access in every
        )
        if not is_common or loop.kind != "serial":
            return None
        used -= {loop.var}
        if not used:
            return depth
    return None
