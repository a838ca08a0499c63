"""The C++ side: its module, its custom call targets, and the libraries that it knows by content.

Handlers are registered with XLA when a call is first lowered for a platform.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import logging
import os
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import jax
import jax.export

from msops import _jax_seam as seam
from msops import _toolchain
from msops._base import config
from msops._base.logging import warn_once
from msops.errors import ArgumentValueError, BuildError, MsopsError, explain

_log = logging.getLogger("msops.toolchain")


def open_library(library: _toolchain.Library, platform: str, who: str) -> None:
    """Opens a library where the handlers of `platform` can run, so that errors come out now."""
    remember_library(library, who)
    if register_targets(platform):
        with reported(BuildError, who, f"{library.name} cannot be opened"):
            native_module().open_library(library.hash)


def export_checks() -> list[jax.export.DisabledSafetyCheck]:
    """Returns what `jax.export` has to be told to take programs with native kernels.

    It takes a program with custom calls of others only if each is named among its
    ``disabled_checks``, as it cannot know that the call will be found and mean the same elsewhere.
    That msops's do is what `register_ffi_targets` is for. What lives in one process, C++ runners
    and Python functions that no other process can import, is refused all the same.

    Example:
      >>> import jax, jax.numpy as jnp, msops
      >>> def double(x):
      ...     y = output_tensor(x.shape, x.dtype)
      ...     for i in range(x.shape[0]):
      ...         y[i] = 2.0 * x[i]
      ...     return y
      >>> op = msops.Custom(double, func_type="akg", compile_attrs={"lower": "native"})
      >>> export = jax.export.export(jax.jit(op), disabled_checks=msops.export_checks())
      >>> export(jnp.ones(2)).call(jnp.ones(2))
      Array([2., 2.], dtype=float32)
    """
    targets = {row["name"] for row in _registrations() if row["kind"] == "target"}
    return [jax.export.DisabledSafetyCheck.custom_call(target) for target in sorted(targets)]


def register_ffi_targets(platform: str = "cpu", modules: Iterable[str | ModuleType] = ()) -> bool:
    """Registers msops's custom call targets, for programs that were lowered elsewhere.

    Ops register what they need when they are lowered. A program that comes from another process
    (`jax.export`, see `export_checks`) needs this call first. It also reads
    ``MSOPS_LIBRARY_PATH``, the folders in which the libraries of such programs are looked for by
    their content. It starts no backend.

    A program may call Python functions of the modules that are named here, and of no others. The
    code of such a function must be what it was when the program was exported.

    Args:
      platform: JAX's platform name: "cpu", "cuda" or "rocm".
      modules: modules, or their names, which are imported here; those of earlier calls stay.

    Returns:
      Whether XLA has the targets now; False on a GPU platform whose backend has not started:
      call again after the first JAX computation.

    Raises:
      ArgumentValueError: `platform` is none of the three.
      ArgumentTypeError: `modules` has something else.

    Example:
      >>> import msops
      >>> msops.register_ffi_targets()
      True
    """
    if platform not in ("cpu", "cuda", "rocm"):
        raise ArgumentValueError(
            explain(
                "msops.register_ffi_targets",
                f"expected platform 'cpu', 'cuda' or 'rocm'; got {platform!r}",
                "Pass the platform the program was lowered for.",
            )
        )
    # Here, as these modules import this one.
    from msops._calls.exported_function import allow_modules
    from msops._calls.python_call import serve_exported

    allow_modules(modules)
    serve_exported()
    for folder in config.library_path():
        for content, code in _toolchain.index_cubins(folder).items():
            native_module().register_cubin(content, code)
        for content, path in _toolchain.index(folder).items():
            if content in _remembered:
                continue
            # One library that is damaged or not allowed must not keep the others from being found.
            try:
                who = f"MSOPS_LIBRARY_PATH {folder}"
                library = _toolchain.resolve(path, who)
                other_abi = dataclasses.replace(
                    library,
                    hash=f"{library.hash}{_toolchain.OTHER_ABI}",
                    old_string_abi=not library.old_string_abi,
                )
                remember_library(library, who)
                remember_library(other_abi, who)
            except MsopsError as error:
                warn_once(_log, str(error))
    return register_targets(platform)


_remembered: set[str] = set()


def remember_library(library: _toolchain.Library, who: str) -> None:
    """Makes the library known to the handlers, which open it, by its hash."""
    _toolchain.check_opening(library, who)
    native_module().register_library(
        library.hash,
        os.fsencode(library.path),
        os.fsencode(library.origin or ""),
        library.old_string_abi,
    )
    _remembered.add(library.hash)


def register_targets(platform: str) -> bool:
    """Registers msops's targets for a platform, once; returns whether XLA has them now."""
    if platform not in _served and seam.register_custom_calls(platform, _registrations()):
        _served.add(platform)
    return platform in _served


_served: set[str] = set()
"""JAX's names of the platforms that have the targets."""


@functools.cache
def _registrations() -> list[dict[str, Any]]:
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
