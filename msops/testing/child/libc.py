"""The C library, and the types of what is called in it."""

from __future__ import annotations

import ctypes

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
LIBC.malloc.restype = ctypes.c_void_p
LIBC.malloc.argtypes = [ctypes.c_size_t]
LIBC.free.argtypes = [ctypes.c_void_p]
LIBC.setlocale.restype = ctypes.c_char_p
LIBC.setlocale.argtypes = [ctypes.c_int, ctypes.c_char_p]
LIBC.initstate.restype = ctypes.c_void_p
LIBC.initstate.argtypes = [ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t]
LIBC.setstate.argtypes = [ctypes.c_void_p]
LIBC.seed48.restype = ctypes.POINTER(ctypes.c_ushort * 3)
LIBM = ctypes.CDLL("libm.so.6")
