"""The place of each buffer of a kernel in generated code, and its content before the body runs.

Inputs, outputs and workspaces come as pointers, in this order, as MindSpore's aot kernels get them.
A parameter that is written, or returned, is copied first, unless the result has its buffer. The
workspaces of local arrays come after these.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from msops._loops.ir.nodes import Buffer, Kernel, Store
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.walk import statements


@dataclass(frozen=True)
class Placement:
    """The place of one buffer of the kernel.

    Attributes:
      buffer: the buffer.
      position: the position of its pointer among the function's parameters.
      start: its content before the body runs: "given" is there already, "copy" is a copy of the
        parameter at `source`, "zero" is zeros, "any" may be anything.
      source: the position of the parameter that is copied.
    """

    buffer: Buffer
    position: int
    start: Literal["given", "copy", "zero", "any"]
    source: int = -1


@dataclass(frozen=True)
class Storage:
    """All placements of a kernel.

    Attributes:
      placements: one per parameter and buffer that the body may name.
      workspaces: sizes in bytes.
      repeats: outputs that equal an earlier one: (position, the earlier one's, size in bytes).
    """

    placements: tuple[Placement, ...]
    workspaces: tuple[int, ...]
    repeats: tuple[tuple[int, int, int], ...]


def place_buffers(kernel: Kernel, overwritten: Collection[str]) -> Storage:
    """Returns the placements of the buffers of a kernel.

    Args:
      kernel: the kernel.
      overwritten: names of buffers that need not be zero at the start.
    """
    inputs = len(kernel.parameters)
    written = {stmt.buffer for stmt in statements(kernel.body) if isinstance(stmt, Store)}
    outputs: dict[str, int] = {}
    repeats = []
    for position, name in enumerate(kernel.results, inputs):
        if name in outputs:
            repeats.append((position, outputs[name], size_bytes(kernel.buffer(name))))
        else:
            outputs[name] = position
    workspaces: list[int] = []

    def find(buffer: Buffer) -> int:
        if buffer.name in outputs:
            return outputs[buffer.name]
        workspaces.append(size_bytes(buffer))
        return inputs + len(kernel.results) + len(workspaces) - 1

    placements = []
    for source, buffer in enumerate(kernel.parameters):
        if buffer.name in written or buffer.name in outputs:
            placements.append(Placement(buffer, find(buffer), "copy", source))
        else:
            placements.append(Placement(buffer, source, "given"))
    for buffer in kernel.buffers:
        start: Literal["any", "zero"] = "any" if buffer.name in overwritten else "zero"
        placements.append(Placement(buffer, find(buffer), start))
    return Storage(tuple(placements), tuple(workspaces), tuple(repeats))
