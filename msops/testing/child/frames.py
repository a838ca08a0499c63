"""The memory of a call, and calls on it."""

from __future__ import annotations

import ctypes

from msops.testing.child.buffers import GuardedBuffer, HeapBuffer

TYPE_CHECKING = False  # as type checkers know it, without the import of typing
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class ChildFrame:
    """The memory of one call: inputs, poisoned outputs, poisoned workspaces."""

    def __init__(self, kernel: Any, job: Mapping[str, Any], inputs: Sequence[bytes]):
        self._kernel, self._inputs, self._has_aliases = kernel, inputs, bool(job["aliases"])
        self.buffers: list[Any] = []

        def add(size: int) -> Any:
            index, placement, far = len(self.buffers), job["placement"], job["far"]
            # Unlike in every buffer: a kernel may copy canaries of one over those of another.
            fill = job["poison"] ^ 0x3C ^ (0x11 * index & 0xFF)
            is_far = far is None or index in far
            self.buffers.append(
                HeapBuffer(size)
                if placement == "heap"
                else GuardedBuffer(size, placement, job["alignment"], is_far, fill)
            )
            return self.buffers[-1]

        for data in inputs:
            buffer = add(len(data))
            ctypes.memmove(buffer.address, data, len(data))
            if job["locked"]:
                buffer.lock()
        # An output that is an input's has no buffer of its own.
        holders = {output: index for index, output in job["aliases"]}
        for index, size in enumerate([*job["outputs"], *kernel.workspace_sizes]):
            if index in holders and job["apart"]:
                ctypes.memmove(add(size).address, inputs[holders[index]], size)
            elif index in holders:
                self.buffers.append(self.buffers[holders[index]])
            else:
                ctypes.memset(add(size).address, job["poison"], size)
        self._outputs = self.buffers[len(inputs) :][: len(job["outputs"])]

    def run(self) -> dict[str, Any]:
        """Calls the kernel; returns what that did to the memory."""
        error = None
        try:
            self.repeat(1)
        except RuntimeError as raised:
            error = str(raised)
        return {
            "error": error,
            "damage": [buffer.damage() for buffer in self.buffers],
            "changed": [
                None
                if self.buffers.count(buffer) > 1
                else first_difference(data, ctypes.string_at(buffer.address, buffer.size))
                for buffer, data in zip(self.buffers, self._inputs, strict=False)
            ],
            "outputs": [ctypes.string_at(buffer.address, buffer.size) for buffer in self._outputs],
            "slack": max((buffer.slack for buffer in self.buffers), default=0),
        }

    def repeat(self, calls: int, expected: Sequence[bytes] = ()) -> int:
        """Calls the kernel so often; returns after how many calls an output was unlike.

        Outputs are poisoned before each; but none that is an input, too.
        """
        addresses = [buffer.address for buffer in self.buffers]
        compared = () if self._has_aliases else expected
        first = len(self._inputs)
        return self._kernel.run(addresses, calls, list(enumerate(compared, first)))

    def free(self) -> None:
        """Gives the memory back."""
        for buffer in dict.fromkeys(self.buffers):
            buffer.free()


def first_difference(left: bytes, right: bytes) -> int | None:
    """Returns where two texts of one length differ first."""
    if left == right:
        return None
    return next(i for i, (a, b) in enumerate(zip(left, right, strict=True)) if a != b)
