"""The table of func_types: a new one is one file and one row."""

from __future__ import annotations

from msops._backends.aot import AotBackend
from msops._backends.pyfunc import PyfuncBackend
from msops._operator import Backend

BACKENDS: dict[str, Backend] = {
    backend.func_type: backend for backend in (AotBackend(), PyfuncBackend())
}
