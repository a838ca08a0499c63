"""Moves a temporary into the loops in which it is used, where no value passes between iterations.

    buffer row: float32[8]                  serial i in 0 .. 4 {
    serial i in 0 .. 4 {                      local row: float32[8] {
      serial j in 0 .. 8 {                      serial j in 0 .. 8 {
        row[j] = a[i, j]             ->           row[j] = a[i, j]
      }                                         }
      ...                                       ...

Each element read must have been written in the same iteration. Iterations then do not share memory,
and the loop may be parallel.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msops._loops.ir import Buffer, For, Kernel, Local, Stmt
from msops._loops.walk import map_bodies

if TYPE_CHECKING:
    from msops._loops.polyhedral.flow import Flow


def privatise(kernel: Kernel) -> Kernel:
    """Returns the kernel with temporaries as locals of the innermost loops they can live in."""
    # At the first compile, not with `import msops`.
    from msops._loops.polyhedral.flow import flows
    from msops._loops.polyhedral.library import TooComplex, analysis

    try:
        with analysis() as context:
            homes = {
                name: loop
                for name, flow in flows(kernel, context).items()
                if name not in kernel.results and (loop := _innermost_loop(flow)) is not None
            }
    except TooComplex:
        return kernel
    moved: dict[str, list[Buffer]] = {}
    for buffer in kernel.buffers:
        if buffer.name in homes:
            moved.setdefault(homes[buffer.name], []).append(buffer)
    kept = tuple(buffer for buffer in kernel.buffers if buffer.name not in homes)
    return dataclasses.replace(kernel, buffers=kept, body=_moved(kernel.body, homes, moved))
