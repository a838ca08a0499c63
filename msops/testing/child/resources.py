"""What a kernel may take of its process, and should give back."""

from __future__ import annotations

import contextlib
import ctypes
import os

from msops.testing.child.libc import LIBC

TYPE_CHECKING = False  # as type checkers know it, without the import of typing
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PAGES = "pages of address space"
_HEAP = "bytes of the heap"
# By one call. glibc's smallest chunk has 32 bytes; Python itself keeps some bytes now and then.
_LEAST_GROWTH = {_HEAP: 16}


def process_resources() -> dict[str, int]:
    """Returns what a kernel may take of its process, and should give back."""
    resources = {
        name: len(os.listdir(f"/proc/self/{folder}"))
        for name, folder in (("open files", "fd"), ("threads", "task"))
    }
    with contextlib.suppress(OSError), open("/proc/self/timers") as timers:
        resources["timers"] = sum(line.startswith("ID:") for line in timers)
    key = ctypes.c_uint()
    if not LIBC.pthread_key_create(ctypes.byref(key), None):  # the first that is free
        resources["keys of data of threads"] = key.value
        LIBC.pthread_key_delete(key)
    with open("/proc/self/statm") as sizes:
        resources[_PAGES] = int(sizes.read().split()[0])
    if hasattr(LIBC, "mallinfo2"):
        LIBC.mallinfo2.restype = _Heap
        heap = LIBC.mallinfo2()
        resources[_HEAP] = heap.uordblks + heap.hblkhd
    return resources


def growth_lines(growth: Sequence[Mapping[str, int]], half: int, calls: int) -> list[str]:
    """Reports what grew by each call, and so in both halves of them; a cache that fills does not.

    Memory of the heap takes pages, so pages are named only where it did not grow.
    """
    grown = {
        name: sum(part[name] for part in growth)
        for name in (growth[0] if len(growth) == 2 else ())
        if all(part[name] >= half * _LEAST_GROWTH.get(name, 1) for part in growth)
    }
    if len(grown) > 1:
        grown.pop(_PAGES, None)
    return [f"{name}: {count} more after {calls} calls" for name, count in grown.items()]


class _Heap(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )
