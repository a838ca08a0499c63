"""Whether the process keeps the memory of large results on the CPU, or returns it each time.

XLA allocates results with malloc. glibc maps each block above 32 MiB separately and unmaps it when
it is freed, so every large result consists of new pages, which the operating system zeroes one by
one. Settings of malloc keep such blocks in the heap, mapped.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from msops.errors import BackendError

# From malloc.h. Thresholds are ints there; -1 as a threshold means none.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_LARGEST = 2**31 - 1
_NEVER = -1
# Where glibc's own, moving thresholds end up in a process that uses large blocks.
_DEFAULT_MMAP = 32 * 2**20
_DEFAULT_TRIM = 64 * 2**20

_MADV_HUGEPAGE = 14
_HUGE_PAGE_BYTES = 2 * 2**20
_HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_RESERVED_BYTES = 2**30


def keep_large_blocks(who: str, is_kept: bool) -> None:
    """Makes malloc keep freed blocks of up to 2 GiB mapped, or return them to the system.

    Raises:
      BackendError: the C library has no such setting.
    """
    libc = ctypes.CDLL(None)
    mmap, trim = (_LARGEST, _NEVER) if is_kept else (_DEFAULT_MMAP, _DEFAULT_TRIM)
    mallopt = getattr(libc, "mallopt", None)
    if not (mallopt and mallopt(_M_MMAP_THRESHOLD, mmap) and mallopt(_M_TRIM_THRESHOLD, trim)):
        raise BackendError.explained(
            who,
            "the C library cannot set malloc's thresholds",
            "It is a feature of glibc; leave host_memory_pool out.",
        )
    if is_kept:
        _ask_for_huge_pages(libc)
    else:
        libc.malloc_trim(ctypes.c_size_t(0))


@functools.cache
def _ask_for_huge_pages(libc: ctypes.CDLL) -> None:
    """Requests huge pages for the next GiB of the heap, if the operating system grants them.

    A block of that size grows the heap without touching it. Later blocks use its addresses first.
    """
    if not _HUGE_PAGES.exists() or "[madvise]" not in _HUGE_PAGES.read_text():
        return
    libc.malloc.restype = ctypes.c_void_p
    block = libc.malloc(ctypes.c_size_t(_RESERVED_BYTES))
    if block is None:
        return
    begin = -(-block // _HUGE_PAGE_BYTES) * _HUGE_PAGE_BYTES
    size_bytes = _RESERVED_BYTES - _HUGE_PAGE_BYTES
    libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(size_bytes), _MADV_HUGEPAGE)
    libc.free(ctypes.c_void_p(block))
