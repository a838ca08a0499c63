"""Where the buffers of a kernel are on the device, and what they hold before its body runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from msops._loops.ir.nodes import Kernel, Store
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import statements
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


def place_buffers(kernel: Kernel, overwritten: Collection[str]) -> Memory:
    """Decides where a kernel's parameters and buffers are.

    Args:
      kernel: the kernel.
      overwritten: names of buffers of which the body writes each element before it reads it.
    """
    written = {stmt.buffer for stmt in statements(kernel.body) if isinstance(stmt, Store)}
    copied = [p.name for p in kernel.parameters if p.name in written or p.name in kernel.results]
    # No name of a kernel has an at sign.
    inputs = tuple(f"{p.name}@input" if p.name in copied else p.name for p in kernel.parameters)
    outputs = tuple(
        f"{name}@{position}" if name in kernel.results[:position] else name
        for position, name in enumerate(kernel.results)
    )
    sizes = {b.name: size_bytes(b) for b in (*kernel.parameters, *kernel.buffers)}
    copies = [CopyBuffer(name, f"{name}@input", sizes[name]) for name in copied]
    clears = [
        ClearBuffer(b.name, sizes[b.name]) for b in kernel.buffers if b.name not in overwritten
    ]
    repeats = [
        CopyBuffer(name, original, sizes[original])
        for name, original in zip(outputs, kernel.results, strict=True)
        if name != original
    ]
    rest = [*copied, *(buffer.name for buffer in kernel.buffers)]
    return Memory(
        inputs,
        outputs,
        tuple(Workspace(name, sizes[name]) for name in rest if name not in outputs),
        (*(c for c in copies if c.size_bytes), *(c for c in clears if c.size_bytes)),
        tuple(step for step in repeats if step.size_bytes),
    )
