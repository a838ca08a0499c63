"""Where the buffers of a kernel are on the device, and what they hold before its body runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from msops._loops.ir.nodes import Kernel
from msops._loops.ir.operators import size_bytes
from msops._loops.to_c.printing.storage import place_buffers
from msops._loops.to_cuda.steps import ClearBuffer, CopyBuffer, DeviceStep, Workspace


@dataclass(frozen=True)
class Memory:
    """The buffers of a kernel in device memory.

    Attributes:
      inputs: names for the caller's inputs; one that is written has a name of its own, as its
        copy has the parameter's.
      outputs: names for the caller's outputs.
      workspaces: what else is needed.
      before: steps that come before the body's.
      after: steps that come after them.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    workspaces: tuple[Workspace, ...]
    before: tuple[DeviceStep, ...]
    after: tuple[DeviceStep, ...]


def arrange_memory(kernel: Kernel, overwritten: Collection[str]) -> Memory:
    """Decides where a kernel's parameters and buffers are.

    Args:
      kernel: the kernel.
      overwritten: names of buffers of which the body writes each element before it reads it.
    """
    storage = place_buffers(kernel, overwritten)
    sizes = {p.buffer.name: size_bytes(p.buffer) for p in storage.placements}
    copied = [p.buffer.name for p in storage.placements if p.start == "copy"]
    cleared = [p.buffer.name for p in storage.placements if p.start == "zero"]
    # No name of a kernel has an at sign.
    inputs = tuple(f"{p.name}@input" if p.name in copied else p.name for p in kernel.parameters)
    outputs = list(kernel.results)
    for position, _, _ in storage.repeats:
        outputs[position - len(inputs)] += f"@{position - len(inputs)}"
    copies = [CopyBuffer(name, f"{name}@input", sizes[name]) for name in copied]
    repeats = [
        CopyBuffer(outputs[to - len(inputs)], outputs[source - len(inputs)], size)
        for to, source, size in storage.repeats
    ]
    clears = [ClearBuffer(name, sizes[name]) for name in cleared]
    rest = [*copied, *(buffer.name for buffer in kernel.buffers)]
    return Memory(
        inputs,
        tuple(outputs),
        tuple(Workspace(name, sizes[name]) for name in rest if name not in outputs),
        (*(c for c in copies if c.size_bytes), *(c for c in clears if c.size_bytes)),
        tuple(step for step in repeats if step.size_bytes),
    )
