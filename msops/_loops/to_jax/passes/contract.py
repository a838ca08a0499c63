"""Drops dimensions of temporaries that only distinguish the iterations of a loop run in order.

    buffer t: float32[8, 4]                 buffer t: float32[4]
    serial k in 0 .. 8 {                    serial k in 0 .. 8 {
      parallel i in 0 .. 4 {                  parallel i in 0 .. 4 {
        t[k, i] = a[i]               ->         t[i] = a[i]
      }                                       }
      ...                                     ...

Locals are expanded over all loops around them before it is known which of these stay. No value may
pass from one iteration to another, and each element read must have been written in the same one.
"""

from __future__ import annotations

from msops._loops.analysis.polyhedral.accesses import analysis
from msops._loops.analysis.polyhedral.flow import Flow, flows
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.ir.nodes import Expr, Kernel
from msops._loops.ir.walk import loads, variables
from msops._loops.passes.privatise import keep_axes


def contract(kernel: Kernel) -> Kernel:
    """Returns the kernel with the smallest temporaries that serve."""
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
