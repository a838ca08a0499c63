"""The steps of a kernel on the device, as values that the CUDA printer returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


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
