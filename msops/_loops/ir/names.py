"""Fresh names for loops and buffers that passes add."""

from __future__ import annotations

import itertools

from msops._loops.ir.nodes import For, Kernel, Local
from msops._loops.ir.walk import statements


class Names:
    """The names in use in a kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._used = {buffer.name for buffer in (*kernel.parameters, *kernel.buffers)}
        for stmt in statements(kernel.body):
            if isinstance(stmt, For):
                self._used.add(stmt.var)
            elif isinstance(stmt, Local):
                self._used.add(stmt.buffer.name)

    def fresh(self, base: str) -> str:
        """Returns `base`, numbered if it is in use, and takes it."""
        candidates = itertools.chain((base,), (f"{base}_{n}" for n in itertools.count(1)))
        name = next(name for name in candidates if name not in self._used)
        self._used.add(name)
        return name
