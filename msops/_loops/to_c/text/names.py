"""C identifiers for the names of a kernel."""

from __future__ import annotations

from msops._loops.ir.formulas import is_name
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.names import declared_names
from msops._loops.ir.nodes import Kernel

LIBRARY = {
    row.c or name: row.arity
    for name, row in FUNCTIONS.items()
    if row.domain != "integer" and is_name(row.c or name)
} | {"pow": 2, "copysign": 2}
"""Number of arguments of each C function on double; the functions on float end in f."""

_KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while asm typeof
    bool catch class delete explicit export false friend mutable namespace new operator private
    protected public template this throw true try typeid typename using virtual constexpr nullptr
    and or not xor bitand bitor compl alignas alignof noexcept decltype static_assert requires
    main memcpy memset aligned_alloc free linux unix
"""

_RESERVED = frozenset(_KEYWORDS.split()) | frozenset(
    f"{name}{suffix}" for name in LIBRARY for suffix in ("", "f")
)


def library_name(function: str) -> str:
    """Returns the name in the C library of a function of the IR, or of `pow`."""
    row = FUNCTIONS.get(function)
    return (row.c if row else "") or function


def plain_name(name: str) -> str:
    """Returns an identifier of Python in letters that C has."""
    return "".join(c if c.isascii() else f"u{ord(c):x}" for c in name)


def choose_names(kernel: Kernel, reserved: frozenset[str]) -> dict[str, str]:
    """Returns an identifier for each name that a kernel declares: the same where C allows it.

    Names that start with ``ms_`` or an underscore, or end in ``_t``, are the printers' own.

    Args:
      kernel: the kernel.
      reserved: words that the dialect needs beside those of C and C++.
    """
    taken = set(_RESERVED | reserved)
    chosen: dict[str, str] = {}
    for name in dict.fromkeys(declared_names(kernel)):
        plain = plain_name(name)
        if plain.startswith(("ms_", "_")):
            plain = f"v{plain}"
        while plain in taken or plain.endswith("_t"):
            plain += "_"
        taken.add(plain)
        chosen[name] = plain
    return chosen
