"""The table of func_types, a folder each: how its kernels are read, built, inferred and lowered.

May import: `_ascend`, `_base`, `_calls`, `_jax_seam`, `_loops`, `_op`, `_op_info`, `_primitive`,
`_toolchain`.
Modules: aicpu, aot, loops, pyfunc, tbe.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Literal

from msops._op.backend import Backend

# Imported when an op first asks: a program pays for the kinds of kernels that it has.


def _aicpu() -> Backend:
    from msops._backends.aicpu.backend import AicpuBackend

    return AicpuBackend()


def _aot() -> Backend:
    from msops._backends.aot.backend import AotBackend

    return AotBackend()


def _loops(func_type: Literal["akg", "hybrid"]) -> Backend:
    from msops._backends.loops.backend import LoopBackend

    return LoopBackend(func_type)


def _pyfunc() -> Backend:
    from msops._backends.pyfunc.backend import PyfuncBackend

    return PyfuncBackend()


def _tbe() -> Backend:
    from msops._backends.tbe.backend import TbeBackend

    return TbeBackend()


BACKENDS: dict[str, Callable[[], Backend]] = {
    "aicpu": cache(_aicpu),
    "akg": cache(partial(_loops, "akg")),
    "aot": cache(_aot),
    "hybrid": cache(partial(_loops, "hybrid")),
    "pyfunc": cache(_pyfunc),
    "tbe": cache(_tbe),
}
