"""Arrays that are neither inputs nor results go on the stack, or into a workspace.

    buffer t: float32[8]                       local t: float32[8] {
    parallel i in 0 .. 8 {              ->       parallel i in 0 .. 8 {
      local u: float32[4096] { ... }               local u: float32[4096] @workspace { ... }
      ...                                          ...
    }                                            }
                                               }

As many of the smallest temporaries of the whole kernel as fit become locals around its body.
"""

from __future__ import annotations

import dataclasses

from msops._loops.ir.nodes import Kernel, Local, Stmt
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.walk import rewrite_statements, with_body, with_parts

_LOCAL_BYTES = 4096
"""Bytes of the largest array that a loop keeps on the stack; each level of loops may have some."""
_TEMPORARIES_BYTES = 8192
"""Bytes of the stack that all temporaries around the body of a kernel may take together."""


def place_locals(kernel: Kernel, most_bytes: int) -> Kernel:
    """Returns the kernel with its local arrays of more than `most_bytes` in workspaces."""

    def placed(local: Local) -> tuple[Stmt, ...]:
        is_large = size_bytes(local.buffer) > most_bytes
        return (with_parts(local, storage="workspace") if is_large else local,)

    return with_body(kernel, rewrite_statements(kernel.body, placed, Local))


def place_arrays(kernel: Kernel) -> Kernel:
    """Returns the kernel with its large local arrays in workspaces, small temporaries as locals."""
    kernel = place_locals(kernel, _LOCAL_BYTES)
    temporaries = [buffer for buffer in kernel.buffers if buffer.name not in kernel.results]
    small, left = set(), _TEMPORARIES_BYTES
    for buffer in sorted(temporaries, key=size_bytes):
        left -= size_bytes(buffer)
        if left >= 0:
            small.add(buffer)
    body = kernel.body
    for buffer in reversed(kernel.buffers):
        if buffer in small:
            body = (Local(buffer, body),)
    buffers = tuple(buffer for buffer in kernel.buffers if buffer not in small)
    return dataclasses.replace(kernel, buffers=buffers, body=body) if small else kernel
