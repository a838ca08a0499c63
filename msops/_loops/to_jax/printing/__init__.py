"""Raised kernels as JAX functions: the one part of the loop compiler that imports JAX.

Modules: contractions, environment, evaluate, gathers, indices, kept_zeros, loads, operations,
recurrences, reductions, run, scatters, shields, sliding, stores, values, vector_steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from msops._base.dtypes import as_dtype
from msops._jax_seam import vary_alike
from msops._loops.ir.nodes import Buffer, Kernel, Local
from msops._loops.ir.walk import loads_in, statements
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.run import run
from msops._loops.to_jax.printing.values import Contents, Uniform, contents_array
from msops._loops.to_jax.raising.steps import Step


def build(kernel: Kernel, steps: Sequence[Step]) -> Callable[..., list[Any]]:
    """Returns the pure JAX function that a kernel is.

    Args:
      kernel: any legal one; what is not distributed runs as loops over scalars.
      steps: the array operations that it is, see `raise_kernel`.

    Returns:
      A function of one array per parameter, of its shape and dtype, that returns a list with one
      array per result. It works under every transformation of JAX; 64-bit dtypes need
      `jax.enable_x64` around it.
    """
    local = [stmt.buffer for stmt in statements(kernel.body) if isinstance(stmt, Local)]
    zeros = {buffer.name: _zero(buffer) for buffer in (*kernel.buffers, *local)}
    read = frozenset(load.buffer for load in loads_in(kernel.body))

    def function(*arrays: Any) -> list[Any]:
        inputs = vary_alike(arrays)
        contents: dict[str, Contents] = {
            buffer.name: lax.convert_element_type(array, as_dtype(buffer.dtype).dtype)
            for buffer, array in zip(kernel.parameters, inputs, strict=True)
        }
        env = run(steps, Environment({**zeros, **contents}, inputs=inputs, read=read))
        return [contents_array(env.contents[name]) for name in kernel.results]

    return function


def _zero(buffer: Buffer) -> Uniform:
    return Uniform(np.zeros((), as_dtype(buffer.dtype).dtype)[()], buffer.shape)
