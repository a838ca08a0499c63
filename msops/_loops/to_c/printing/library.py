"""Declarations of the C library for generated C, instead of its headers.

A compiler would read the headers for a fifth of a build's time, and the build cache would have to
check them, too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from msops._loops.to_c.text.names import LIBRARY

_TYPES = "\n".join(
    f"typedef __{sign.upper()}INT{bits}_TYPE__ {sign}int{bits}_t;"
    for bits in (8, 16, 32, 64)
    for sign in ("", "u")
)
# gcc makes calls of loops that copy, so that this is declared in any case. A name without a version
# is bound to the oldest one that the C library has: of memcpy, but not of memmove, that is one for
# any processor, which takes 1.3 to 2.3 of the time.
_COPY = (
    'extern "C" void* memcpy(void* to, const void* from, __SIZE_TYPE__ size) __asm__("memmove");'
)
_MEMORY = {
    "memset": "void* memset(void* to, int byte, __SIZE_TYPE__ size);",
    "aligned_alloc": "void* aligned_alloc(__SIZE_TYPE__ alignment, __SIZE_TYPE__ size);",
    "free": "void free(void* memory);",
    "madvise": "int madvise(void* memory, __SIZE_TYPE__ size, int advice);",
}


def _prototypes() -> dict[str, str]:
    """Returns the declaration of each function by its name."""
    found = dict(_MEMORY)
    for name, arity in LIBRARY.items():
        for suffix, kind in (("", "double"), ("f", "float")):
            arguments = ", ".join([kind] * arity)
            found[f"{name}{suffix}"] = f"{kind} {name}{suffix}({arguments});"
    return found


_PROTOTYPES = _prototypes()

# A processor without such an instruction calls fmaf.
_MATHEMATICAL = frozenset(
    f"{prefix}{name}{suffix}"
    for prefix in ("", "__builtin_")
    for name in (*LIBRARY, "fma")
    for suffix in ("", "f")
)
_BETWEEN_WORDS = {code: " " for code in range(128) if not re.match(r"\w", chr(code))}


def words_in(text: str) -> dict[str, None]:
    """Returns the words of C code, each once, in order; no variable is named as a function is."""
    return dict.fromkeys(text.translate(_BETWEEN_WORDS).split())


def declarations(words: Collection[str]) -> str:
    """Returns the types of <stdint.h>, and declarations of the functions among words of C code."""
    functions = [_PROTOTYPES[word] for word in words if word in _PROTOTYPES]
    # For __GLIBC_PREREQ.
    headers = ["#include <features.h>"] if "__GLIBC_PREREQ" in words else []
    return "\n".join(
        (*headers, _TYPES, _COPY, *(f'extern "C" {function}' for function in functions))
    )


def libraries_of(words: Iterable[str]) -> tuple[str, ...]:
    """Returns the names of the libraries that words of C code call, beside the C library."""
    return () if _MATHEMATICAL.isdisjoint(words) else ("m",)
