"""Whose code a kernel runs: that of its own library, or of another with functions of its names."""

from __future__ import annotations

from msops._toolchain import BIND_OWN_SYMBOLS, read_elf, taken_names
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject


def check_symbols(subject: Subject) -> Finding:
    """Checks that the library's uses of its own functions and variables are bound to them."""
    check = "own symbols"
    library = subject.library
    if library is None:
        return skipped(check, "the kernel is not in a library for the CPU")
    taken = taken_names(read_elf(library.path, str(subject)).preemptible)
    if taken:
        return failed(
            check,
            "of some names of the library, the program's or libc's definition is used instead",
            [f"{name}: {library.name} does not use its own" for name in taken],
            BIND_OWN_SYMBOLS,
        )
    return passed(check, "the library uses its own functions and variables")
