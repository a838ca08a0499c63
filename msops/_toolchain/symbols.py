"""Facts from the names that a library exports and imports."""

from __future__ import annotations

import ctypes
import difflib
import re
from collections.abc import Iterable
from typing import Protocol

from msops.errors import BuildError

# One step of a linear reading of a mangled name: a counted identifier (whose letters mean nothing),
# the two-letter standard substitution, a numbered one, or any other letter.
_MANGLED_STEP = re.compile(r"(?P<count>\d+)|(?P<old_string>Ss)|S[0-9A-Z]*_|S[a-z]|.", re.DOTALL)
# In these a letter S belongs to an operator's or a table's own name: _ZlSR1As is f(A&, short).
_NAMES_ENDING_IN_S = re.compile(r"_Z(?:TS|aS|lS|rS)")

BIND_OWN_SYMBOLS = (
    "Link the library with -Wl,-Bsymbolic, make these names static or hidden, or name the source "
    "instead of the library."
)
"""Advice for names that `taken_names` finds."""


class Exporting(Protocol):
    """A library as far as its symbols matter."""

    @property
    def name(self) -> str:
        """Base name of the file it comes from."""

    @property
    def functions(self) -> frozenset[str]:
        """The names of the functions it exports."""


def uses_old_strings(imports: Iterable[str]) -> bool:
    """Returns whether a library was built with the ``std::string`` of before C++11.

    True iff one of the names it imports mentions that type. The Itanium C++ ABI abbreviates it, and
    nothing else, as the substitution ``Ss``; the newer one is spelled out as
    ``NSt7__cxx1112basic_string...``. The letters do not count inside an identifier, as the end of
    an operator's name followed by a ``short``, or in a name that is not C++'s.

    Source: Itanium C++ ABI, section 5.1.10 (compression); libstdc++ manual, "Dual ABI".
    """
    return any("Ss" in name and _mentions_old_string(name) for name in imports)


def _mentions_old_string(name: str) -> bool:
    """Reads one mangled name from left to right in search of the substitution."""
    if not name.startswith("_Z"):
        return False
    prefix = _NAMES_ENDING_IN_S.match(name)
    position = prefix.end() if prefix else 2
    while step := _MANGLED_STEP.match(name, position):
        if step["old_string"]:
            return True
        position = step.end() + int(step["count"] or 0)
    return False


def taken_names(preemptible: Iterable[str]) -> tuple[str, ...]:
    """Returns those of a library's preemptible names that this process defines elsewhere, sorted.

    The dynamic linker searches the program and the libraries it was started with (libc and libm are
    among them) before a library that is opened later. What such a library defines under one of
    their names is never called or read; theirs is.
    """
    program = ctypes.CDLL(None)
    # Names that C++ mangled are templates and inline functions, equal wherever they are defined.
    plain = (name for name in preemptible if not name.startswith("_Z") and name.isascii())
    return tuple(sorted(name for name in plain if hasattr(program, name)))


def near_names(symbol: str, exports: Iterable[str]) -> tuple[str, ...]:
    """Returns exported names that may be meant by a missing one, the likeliest first.

    Names that C++ mangled from `symbol` come first; then, at most three, those spelled like it.
    """
    exports = sorted(exports)
    mangled = [name for name in exports if is_mangled_from(symbol, name)]
    plain = [name for name in exports if not name.startswith("_")]
    lowered = {name.lower(): name for name in plain}
    alike = [lowered[name] for name in difflib.get_close_matches(symbol.lower(), lowered, n=3)]
    return (*mangled, *alike)


def require_symbol(library: Exporting, symbol: str, who: str, define: str = "") -> None:
    """Raises unless `library` exports a function `symbol`, saying which of its names may be meant.

    Args:
      library: what is searched.
      symbol: the function's name.
      who: for the message.
      define: advice for a function that extern "C" does not make a kernel.

    Raises:
      BuildError: it does not.
    """
    if symbol in library.functions:
        return
    near = near_names(symbol, library.functions)
    if near and is_mangled_from(symbol, near[0]):
        details = [f"{near[0]}  (the C++ name of {symbol})"]
        remedy = define or f'Declare {symbol} as extern "C".'
    elif near:
        details = list(near)
        remedy = "Name one of these, or check the spelling in the source."
    else:
        details = [name for name in sorted(library.functions) if not name.startswith("_")][:8]
        remedy = define or f'Define {symbol} as extern "C", neither static nor hidden.'
    problem = f"{library.name} exports no function {symbol}"
    if details:
        problem += ", but does export"
    raise BuildError.explained(who, problem, remedy, details)


def is_mangled_from(symbol: str, name: str) -> bool:
    """Returns whether C++ made `name` of a function called `symbol`, in a namespace or not."""
    counted = re.escape(f"{len(symbol)}{symbol}")
    return re.match(rf"_Z(?:N(?:\d+\w+)?|L)?{counted}", name) is not None
