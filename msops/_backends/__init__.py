"""The table of func_types, a folder each: how its kernels are read, built, inferred and lowered.

To add a func_type, implement `Backend` (msops/_op/backend.py) in the module `backend` of a new
folder, with a function `make_backend`, and add a row to `BACKENDS`. Two bases do most of the work:
`TracedBackend`, beside `Backend`, for a kernel that is code of JAX, and `OpaqueBackend`
(msops/_calls/opaque.py) for one that a program calls.

May import: `_ascend`, `_base`, `_calls`, `_jax_seam`, `_loops`, `_op`, `_op_info`, `_primitive`,
`_toolchain`.
Modules: aicpu, aot, loops, pyfunc, tbe.
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

from msops._op.backend import Backend

# A row per func_type: the module that has `make_backend(func_type)`. It is imported at its first
# use, so a program loads only the backends that it uses.
BACKENDS = {
    "aicpu": "aicpu.backend",
    "akg": "loops.backend",
    "aot": "aot.backend",
    "ffi": "aot.handlers",
    "hybrid": "loops.backend",
    "pyfunc": "pyfunc.backend",
    "tbe": "tbe.backend",
}


@cache
def find_backend(func_type: str) -> Backend[Any, Any]:
    """Returns what serves a func_type of `BACKENDS`."""
    module = importlib.import_module(f"{__name__}.{BACKENDS[func_type]}")
    backend: Backend[Any, Any] = module.make_backend(func_type)
    return backend
