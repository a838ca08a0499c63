"""The C++ side: its module, its custom call targets, and the libraries that it knows by content.

Handlers are registered with XLA when a call is first lowered for a platform.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from msops import _jax_seam as seam
from msops import _toolchain
from msops.errors import BuildError, MsopsError, explain


def open_library(library: _toolchain.Library, platform: str, who: str) -> None:
    """Opens a library where the handlers of `platform` can run, so that errors come out now."""
    remember_library(library, who)
    if register_targets(platform):
        with reported(BuildError, who, f"{library.name} cannot be opened"):
            native_module().open_library(library.hash)


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
        raise BuildError(
            explain(
                "msops",
                f"its C++ module does not load: {error}",
                "Build it: pip install . in the checkout (make setup), with the Python you run.",
            )
        ) from error


@contextlib.contextmanager
def reported(family: type[MsopsError], who: str, problem: str) -> Iterator[None]:
    """Turns an error of the C++ module into one of `family`, with the op's name."""
    try:
        yield
    except RuntimeError as error:
        raise family(explain(who, problem, "See the library's source.", [str(error)])) from error
