"""Reports to the author of a kernel: findings of an analysis, and arrays that are too large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from msops._loops.ir.nodes import Buffer, Kernel, Local, Location
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.text import point
from msops._loops.ir.walk import statements
from msops.errors import ArgumentValueError


@dataclass(frozen=True)
class LoopFinding:
    """Something the author should know.

    Attributes:
      kind: "out of range" is an error; "unwritten" (a read of an element that nothing wrote) and
        "hint" (a scheduling keyword that cannot be honoured) are warnings.
      message: one sentence without its full stop.
      location: where in the source.
    """

    kind: Literal["out of range", "unwritten", "hint"]
    message: str
    location: Location | None


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
