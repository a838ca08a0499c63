"""Memory between pages that can be neither read nor written:

    guard | canaries | the buffer | canaries | guard

Which end lies at a guard is the run's placement. Outputs and workspaces are poisoned; so a byte
that keeps the poison of two runs with unlike poisons has never been written.
"""

from __future__ import annotations

import ctypes
import mmap

from msops.testing.child.libc import LIBC

_PAGE = mmap.PAGESIZE
# Wide enough for an index that is off by a row of a large array, or that 32 bits do not hold;
# address space costs nothing. Where that is limited, less has to do.
_GUARDS = (1 << 32, 4096 * _PAGE)
_PROT_NONE = 0


class TooLargeError(MemoryError):
    """A machine has no memory for a buffer, of a size for which there are addresses."""


class GuardedBuffer:
    """Memory between two guards.

    Args:
      size: bytes of the buffer.
      placement: "front" (the buffer begins at a guard), "back" (it ends at a guard, but for what
        its alignment leaves), "odd 64" or "odd 16" (likewise, but it begins at an odd multiple of
        so many bytes).
      alignment: of the start in bytes, for "back".
      is_far: whether, for "front" and "back", a page of canaries lies before that guard.
      fill: the value of canary bytes.
    """

    def __init__(self, size: int, placement: str, alignment: int, is_far: bool, fill: int):
        # One page more than the buffer needs, for canaries on the side without a guard.
        self._body_size = -(-size // _PAGE) * _PAGE + _PAGE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        for guard in _GUARDS:
            self._mapped = 2 * guard + self._body_size
            base = LIBC.mmap(None, self._mapped, _PROT_NONE, flags, -1, 0)
            if base not in (None, ctypes.c_void_p(-1).value):
                break
        else:
            raise MemoryError(f"no address space for a buffer of {size} bytes")
        self._base, self._body = base, base + guard
        if LIBC.mprotect(self._body, self._body_size, mmap.PROT_READ | mmap.PROT_WRITE):
            raise TooLargeError(f"no memory for a buffer of {size} bytes")
        ctypes.memset(self._body, fill, self._body_size)
        self.size, self._fill = size, fill
        end = self._body + self._body_size
        room = _PAGE if is_far else 0
        self.address = {
            "front": self._body + room,
            "back": (end - room - size) // alignment * alignment,
            "odd 64": (end - size - 64) // 128 * 128 + 64,
            "odd 16": (end - size - 16) // 32 * 32 + 16,
        }[placement]
        self.slack = end - self.address - size

    def damage(self) -> tuple[int, int, int, int] | None:
        """Returns the size, and of bad canaries first and last offset from the start, and count."""
        head = self.address - self._body
        body = ctypes.string_at(self._body, self._body_size)
        canary = bytes([self._fill])
        around = body[:head], body[head + self.size :]
        if all(part.count(canary) == len(part) for part in around):
            return None
        offsets = [index - head for index, byte in enumerate(around[0]) if byte != self._fill]
        offsets += [self.size + i for i, byte in enumerate(around[1]) if byte != self._fill]
        return self.size, offsets[0], offsets[-1], len(offsets)

    def lock(self) -> None:
        """Makes the buffer one that can only be read."""
        LIBC.mprotect(self._body, self._body_size, mmap.PROT_READ)

    def free(self) -> None:
        """Gives the memory back."""
        LIBC.munmap(self._base, self._mapped)


class HeapBuffer:
    """Memory of malloc, whose ends the address sanitizer watches."""

    slack = 0

    def __init__(self, size: int):
        self.size = size
        self.address = LIBC.malloc(size)

    def damage(self) -> None:
        """Returns None: the sanitizer says what it saw itself."""

    def free(self) -> None:
        """Gives the memory back."""
        LIBC.free(self.address)
