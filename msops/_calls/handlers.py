"""The C++ side: its module, its custom call targets, and the libraries that it knows by content.

Handlers are registered with XLA when a call is first lowered for a platform.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from msops import _jax_seam as seam
from msops import _toolchain
from msops.errors import BuildError, MsopsError


def open_library(library: _toolchain.Library, platform: str, who: str) -> None:
    """Opens a library where the handlers of `platform` can run, so that errors come out now."""
    remember_library(library, who)
    if register_targets(platform):
        with reported(BuildError, who, f"{library.name} cannot be opened", _missing_symbol):
            native_module().open_library(library.hash)


def _missing_symbol(problem: str) -> str | None:
    """Returns what to do about a name that no library defines, if that is the problem."""
    found = re.search(r"undefined symbol: (\w+)", problem)
    if found is None:
        return None
    return (
        f"Name what defines {found[1]}: build=msops.Build(libraries=[...]) for a library, "
        "sources=[...] for further sources; a library that is given has to be linked with it."
    )


_known: set[str] = set()


def remember_library(library: _toolchain.Library, who: str) -> None:
    """Makes the library known to the handlers, which open it, by its hash."""
    _toolchain.check_opening(library, who)
    native_module().register_library(
        library.hash,
        os.fsencode(library.path),
        os.fsencode(library.origin or ""),
        library.old_string_abi,
    )
    _known.add(library.hash)


def is_known(content: str) -> bool:
    """Returns whether the handlers know a library, by its hash."""
    return content in _known


def register_targets(platform: str) -> bool:
    """Registers msops's targets for a platform, once; returns whether XLA has them now."""
    if platform not in _served and seam.register_custom_calls(platform, registrations()):
        _served.add(platform)
    return platform in _served


_served: set[str] = set()
"""JAX's names of the platforms that have the targets."""


@functools.cache
def registrations() -> list[dict[str, Any]]:
    """Returns what the C++ module has for XLA: targets of custom calls and types, a row each."""
    rows: list[dict[str, Any]] = native_module().registrations()
    return rows


@functools.cache
def native_module() -> ModuleType:
    """Returns the C++ module; imported at first use, as `import msops` must be quick."""
    try:
        return importlib.import_module("msops._native")
    except ImportError as error:
        raise BuildError.explained(
            "msops",
            f"its C++ module does not load: {error}",
            "Build it: pip install . in the checkout (make setup), with the Python you run.",
        ) from error


@contextlib.contextmanager
def reported(
    family: type[MsopsError],
    who: str,
    problem: str,
    advise: Callable[[str], str | None] = lambda _: None,
) -> Iterator[None]:
    """Turns an error of the C++ module into one of `family`, with the op's name.

    Args:
      family: the class of the error.
      who: the op that it names.
      problem: what failed.
      advise: returns what to do, given the text of the C++ module's error; None if it knows nothing
        better than to see the source.
    """
    try:
        yield
    except RuntimeError as error:
        remedy = advise(str(error)) or "See the library's source."
        raise family.explained(who, problem, remedy, [str(error)]) from error
