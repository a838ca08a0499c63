"""Calls of AICPU kernels, through a custom call of their own.

As with aot kernels (library_call.py), a program names the library by its content hash alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from msops import _jax_seam as seam
from msops._calls.library_call import ffi_value, open_library
from msops._toolchain import Library

TARGET = "msops_aicpu"


@dataclasses.dataclass(frozen=True)
class AicpuCall:
    """One call of a kernel.

    Attributes:
      op: name of the op, for the messages of the handler.
      kernel: the name the kernel is registered under.
      library: the library, by content.
      attributes: every attribute by name.
      reentrant: False serialises all calls into the library.
      dynamic_outputs: whether the last output takes the true shapes of the others.
      aliases: pairs of an input and the output that takes over its buffer.
    """

    op: str
    kernel: str
    library: Library
    attributes: tuple[tuple[str, Any], ...]
    reentrant: bool
    dynamic_outputs: bool
    aliases: tuple[tuple[int, int], ...] = ()

    @property
    def kernel_name(self) -> str:
        """What messages call the kernel."""
        return self.kernel


def lower_aicpu_call(
    call: AicpuCall,
    inputs: Sequence[jax.ShapeDtypeStruct],
    outputs: Sequence[jax.ShapeDtypeStruct],
    has_side_effect: bool,
    who: str,
    ctx: Any,
    operands: Sequence[Any],
) -> Sequence[Any]:
    """Lowers an equation to the custom call, which the CPU alone has.

    Args:
      call: what to call.
      inputs: shapes and dtypes of the operands.
      outputs: shapes and dtypes of the results.
      has_side_effect: whether XLA may neither merge nor drop the call.
      who: the op and where it runs, for messages.
      ctx: JAX's lowering context.
      operands: the operands' values in the program.

    Raises:
      BuildError: the library cannot be opened in this process.
    """
    open_library(call.library, "cpu", who)
    arrays = (*inputs, *outputs)
    attributes = {
        "op": call.op,
        "type": call.kernel,
        "library": call.library.hash,
        "library_name": call.library.name,
        "inputs": np.int64(len(inputs)),
        **seam.frame_attributes(arrays),
        "attributes": {name: ffi_value(value) for name, value in call.attributes},
        "reentrant": call.reentrant,
        "dynamic_outputs": call.dynamic_outputs,
    }
    return seam.custom_call(ctx, operands, TARGET, attributes, has_side_effect, call.aliases)
