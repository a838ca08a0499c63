"""Checks of a library before it is opened: would that terminate this process?

Opening runs the library's constructors. One that throws terminates the process, as no handler
outside of the dynamic linker can catch it. So a library that has any is first opened in a process
of its own.
"""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from pathlib import Path

from msops._toolchain.dependencies import check_dependencies
from msops._toolchain.libraries import Library
from msops.errors import BuildError

_LIMIT_S = 60
_CAME_BACK = 86
# The linker's own error is left to the real opening, which sees what this process has loaded.
_OPEN = f"""
import ctypes, os, sys
try:
    ctypes.CDLL(sys.argv[1], os.RTLD_NOW | os.RTLD_LOCAL)
except OSError:
    pass
os._exit({_CAME_BACK})
"""
_SHOWN_LINES = 4
_SHOWN_NAMES = 5
# Those of the standard library are the same in every build.
_OF_STANDARD_LIBRARY = re.compile(r"_Z(?:GV)?Z?(?:NK?)?(?:S[a-z]|9__gnu_cxx)")

_checked: set[Path] = set()
_definers: dict[tuple[Path, str], Path] = {}


def check_opening(library: Library, who: str) -> None:
    """Raises if opening a library would end this process; warns if it would keep old values.

    Args:
      library: what is about to be opened.
      who: the op that messages name.

    Raises:
      BuildError: one of its constructors throws, crashes, exits or does not end; or the process
        has another library of a dependency's name.
    """
    check_dependencies(library.dependencies, library.name, who)
    if library.path in _checked:
        return
    if library.has_constructors:
        open_in_child(library.path, library.name, who)
    _warn_of_kept_values(library, who)
    _checked.add(library.path)


def open_in_child(path: Path, name: str, who: str) -> None:
    """Opens a library in a process of its own.

    Raises:
      BuildError: that process did not come back from opening it.
    """
    if not sys.executable:
        return
    try:
        done = subprocess.run(
            (sys.executable, "-I", "-S", "-c", _OPEN, path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        problem, lines = f"does not end within {_LIMIT_S} s", []
    else:
        if done.returncode == _CAME_BACK:
            return
        problem, lines = "terminates the process", done.stderr.splitlines()[-_SHOWN_LINES:]
    raise BuildError.explained(
        who,
        f"opening {name} runs the constructors of its global objects, which {problem}",
        "Do what may fail in the kernel or in its Init instead, or catch the exception.",
        lines,
    )


def _warn_of_kept_values(library: Library, who: str) -> None:
    """Warns if the dynamic linker gives a rebuilt library variables of the one before."""
    if library.origin is None:
        return
    kept = [
        name
        for name in sorted(library.unique)
        if not _OF_STANDARD_LIBRARY.match(name)
        and _definers.setdefault((library.origin, name), library.path) != library.path
    ]
    if kept:
        more = len(kept) - _SHOWN_NAMES
        shown = ", ".join(kept[:_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")
        warnings.warn(
            f"{who}: {library.origin} was rebuilt, but variables keep the values that they have in "
            f"this process: {shown}. They are of the kind STB_GNU_UNIQUE, one per process. Build "
            "the library with -fno-gnu-unique, or start Python again.",
            stacklevel=2,
        )
