"""C identifiers for the names of a kernel."""

from __future__ import annotations

from msops._loops.ir.nodes import For, Kernel, Local
from msops._loops.ir.walk import statements

LIBRARY = {
    "abs": "fabs",
    "nearbyint": "rint",
    **{
        name: name
        for name in (
            "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
            "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf",
            "floor", "ceil", "trunc", "round", "atan2", "fmod", "pow",
        )
    },
}  # fmt: skip
"""The C library's functions on double by the name of the IR's; those on float end in f."""

_KEYWORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while asm typeof
    bool catch class delete explicit export false friend mutable namespace new operator private
    protected public template this throw true try typeid typename using virtual constexpr nullptr
    and or not xor bitand bitor compl alignas alignof noexcept decltype static_assert requires
    main copysign copysignf memcpy memset aligned_alloc free linux unix
"""

_RESERVED = frozenset(_KEYWORDS.split()) | frozenset(
    f"{name}{suffix}" for name in LIBRARY.values() for suffix in ("", "f")
)


def plain_name(name: str) -> str:
    """Returns an identifier of Python in letters that C has."""
    return "".join(c if c.isascii() else f"u{ord(c):x}" for c in name)


def choose_names(kernel: Kernel, reserved: frozenset[str]) -> dict[str, str]:
    """Returns an identifier for each name that a kernel declares: the same where C allows it.

    Names that start with ``ms_`` or an underscore, or end in ``_t``, are the printers' own.

    Args:
      kernel: the kernel.
      reserved: what the dialect needs beside C's and C++'s words.
    """
    declared = [buffer.name for buffer in (*kernel.parameters, *kernel.buffers)]
    for stmt in statements(kernel.body):
        if isinstance(stmt, For):
            declared.append(stmt.var)
        elif isinstance(stmt, Local):
            declared.append(stmt.buffer.name)
    taken = set(_RESERVED | reserved)
    chosen: dict[str, str] = {}
    for name in dict.fromkeys(declared):
        plain = plain_name(name)
        if plain.startswith(("ms_", "_")):
            plain = f"v{plain}"
        while plain in taken or plain.endswith("_t"):
            plain += "_"
        taken.add(plain)
        chosen[name] = plain
    return chosen
