"""The steps of a kernel on the device, as values, and where its buffers are between them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TypeAlias

from msops._loops.ir.nodes import Kernel
from msops._loops.ir.operators import size_bytes
from msops._loops.to_c.printing.storage import place_buffers


@dataclass(frozen=True)
class ClearBuffer:
    """Sets a buffer's bytes to zero."""

    buffer: str
    size_bytes: int


@dataclass(frozen=True)
class CopyBuffer:
    """Copies a buffer's bytes."""

    to: str
    source: str
    size_bytes: int


@dataclass(frozen=True)
class Launch:
    """Runs a function on a grid of blocks of threads.

    Attributes:
      function: its name in the text.
      blocks: number of blocks.
      threads: number of threads of a block.
      arguments: names of buffers, passed as pointers.
    """

    function: str
    blocks: int
    threads: int
    arguments: tuple[str, ...]


DeviceStep: TypeAlias = ClearBuffer | CopyBuffer | Launch


@dataclass(frozen=True)
class Workspace:
    """A temporary in device memory."""

    name: str
    size_bytes: int


@dataclass(frozen=True)
class CudaSource:
    """A kernel as CUDA C.

    Attributes:
      text: the code, without includes.
      steps: what is run, in order.
      inputs: names of the buffers that the caller passes, in the order of the kernel's parameters.
      outputs: likewise for its results.
      workspaces: what the caller provides beside them, contents undefined.
      checks: what is wrong if the int32 in the workspace "ms_failed" is 1, 2, ... at the end; that
        workspace is the last one, and there is none without checks.
    """

    text: str
    steps: tuple[DeviceStep, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    workspaces: tuple[Workspace, ...]
    checks: tuple[str, ...]

    @property
    def launches(self) -> tuple[Launch, ...]:
        """The launches among the steps."""
        return tuple(step for step in self.steps if isinstance(step, Launch))


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
