"""Calls of generated CUDA code: compiled by NVRTC, launched through XLA's custom call.

As with libraries (library_call.py), a program names the code by its content hash alone. It also
holds what to launch, as plain numbers that launch_plan.h describes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from msops import _jax_seam as seam
from msops import _toolchain
from msops._calls.handlers import native_module
from msops._loops.to_cuda import ClearBuffer, CopyBuffer, CudaSource, DeviceStep, Launch
from msops._op.process_call import Bound, ProcessCall

TARGET = "msops_loops_cuda"
"""Of calls without temporaries in device memory; XLA may record them in CUDA graphs."""

SCRATCH_TARGET = "msops_loops_cuda_scratch"
"""Of calls with such temporaries."""


# Between texts in one attribute.
_SEPARATOR = "\x1f"


@dataclasses.dataclass(frozen=True)
class CudaCall(ProcessCall):
    """One call of generated CUDA code.

    Attributes:
      op: name of the op, for the messages of the handler.
      name: what files and the compiler's messages call the code.
      source: the code, and what to launch.
      aliases: pairs of an input and the output that takes over its buffer.
    """

    op: str
    name: str
    source: CudaSource
    aliases: tuple[tuple[int, int], ...] = ()

    @property
    def target(self) -> str:
        """The handlers, by whether the call has temporaries."""
        return SCRATCH_TARGET if self.source.workspaces else TARGET

    def bind(self, lowering: seam.Lowering, who: str) -> Bound:
        """Compiles the code unless the cache has it; programs name it by content.

        Works without a GPU if ``MSOPS_CUDA_ARCH`` says what to compile for.

        Raises:
          BuildError: the code cannot be compiled here.
        """
        cubins = _toolchain.build_cubins(self.source.text, self.name, who)
        for cubin in cubins:
            native_module().register_cubin(cubin.hash, cubin.content)
        # One for each architecture.
        identity = ",".join(cubin.hash for cubin in cubins)
        return Bound({"cubins": identity, **_plan_attributes(self.source)}, identity)


def _plan_attributes(source: CudaSource) -> dict[str, Any]:
    """Returns the attributes that say what to launch, on which memory."""
    functions = tuple(launch.function for launch in source.launches)
    temporaries = tuple(workspace.name for workspace in source.workspaces)
    buffers = (*source.inputs, *source.outputs, *temporaries)
    words = _words(
        source.steps,
        {name: position for position, name in enumerate(functions)},
        {name: position for position, name in enumerate(buffers)},
    )
    return {
        "functions": ",".join(functions),
        "plan": np.array(list(words), np.int64),
        "workspaces": np.array([w.size_bytes for w in source.workspaces], np.int64),
        "checks": _SEPARATOR.join(source.checks),
    }


def _words(
    steps: tuple[DeviceStep, ...],
    functions: Mapping[str, int],
    buffers: Mapping[str, int],
) -> Iterator[int]:
    """Yields the numbers of a launch plan; launch_plan.h has their meaning."""
    for step in steps:
        match step:
            case ClearBuffer(buffer=buffer, size_bytes=size_bytes):
                yield from (0, buffers[buffer], size_bytes)
            case CopyBuffer(to=to, source=source, size_bytes=size_bytes):
                yield from (1, buffers[to], buffers[source], size_bytes)
            case Launch(function=function, blocks=blocks, threads=threads, arguments=arguments):
                yield from (2, functions[function], blocks, threads, len(arguments))
                yield from (buffers[name] for name in arguments)
