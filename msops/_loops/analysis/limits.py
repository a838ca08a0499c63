"""Arrays that no process can hold."""

from __future__ import annotations

from collections.abc import Iterator

from msops._loops.diagnostics import point
from msops._loops.ir.nodes import Buffer, Kernel, Local, Location
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import statements
from msops.errors import ArgumentValueError

_MOST_BYTES = 2**47
"""Bytes that a process can address. XLA terminates the process on sizes beyond 64 bits."""


def check_sizes(kernel: Kernel, who: str) -> None:
    """Raises ArgumentValueError if no process can hold an array of the kernel."""
    for buffer, location in _arrays(kernel):
        if size_bytes(buffer) > _MOST_BYTES:
            raise ArgumentValueError.explained(
                who,
                f"expected arrays of at most {_MOST_BYTES} bytes, all that a process can "
                f"address; got {size_bytes(buffer)} bytes for {buffer.name}, "
                f"{buffer.dtype}{list(buffer.shape)}",
                "Make it smaller.",
                point(location),
            )


def _arrays(kernel: Kernel) -> Iterator[tuple[Buffer, Location | None]]:
    for buffer in (*kernel.parameters, *kernel.buffers):
        yield buffer, None
    for stmt in statements(kernel.body):
        if isinstance(stmt, Local):
            yield stmt.buffer, stmt.location
