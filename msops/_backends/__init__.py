"""The table of func_types: a new one is one file and one row."""

from __future__ import annotations

from msops._backend import Backend
from msops._backends.aicpu import AicpuBackend
from msops._backends.aot import AotBackend
from msops._backends.loops import LoopBackend
from msops._backends.pyfunc import PyfuncBackend
from msops._backends.tbe import TbeBackend

BACKENDS: dict[str, Backend] = {
    backend.func_type: backend
    for backend in (
        AicpuBackend(),
        LoopBackend("akg"),
        AotBackend(),
        LoopBackend("hybrid"),
        PyfuncBackend(),
        TbeBackend(),
    )
}
