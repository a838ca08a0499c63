"""Programs that another process exported: what they may call, and what finds it."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import jax
import jax.export

from msops import _toolchain
from msops._base import config
from msops._base.logging import warn_once
from msops._calls.exported_function import allow_modules
from msops._calls.handlers import (
    is_known,
    native_module,
    register_targets,
    registrations,
    remember_library,
)
from msops._calls.python_call import serve_functions
from msops.errors import ArgumentValueError, MsopsError

_log = logging.getLogger("msops.toolchain")


def export_checks() -> list[jax.export.DisabledSafetyCheck]:
    """Returns the checks that `jax.export` must leave out for programs with native kernels.

    It refuses custom calls that it does not know, unless ``disabled_checks`` names each of them:
    it cannot know whether the other process has the same call. There, `register_ffi_targets`
    provides it. What lives in one process, C++ runners and Python functions that no other process
    can import, is refused in any case.

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
    targets = {row["name"] for row in registrations() if row["kind"] == "target"}
    return [jax.export.DisabledSafetyCheck.custom_call(target) for target in sorted(targets)]


def register_ffi_targets(platform: str = "cpu", modules: Iterable[str | ModuleType] = ()) -> bool:
    """Registers msops's custom call targets, for programs that were lowered elsewhere.

    Ops register what they need when they are lowered. A program that comes from another process
    (`jax.export`, see `export_checks`) needs this call first. It also reads
    ``MSOPS_LIBRARY_PATH``, the folders in which it looks for the libraries of such programs by
    their content; what these do not have, the cache folder of this machine may. It starts no
    backend.

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
        raise ArgumentValueError.explained(
            "msops.register_ffi_targets",
            f"expected platform 'cpu', 'cuda' or 'rocm'; got {platform!r}",
            "Pass the platform the program was lowered for.",
        )
    allow_modules(modules)
    serve_functions()
    searched = [line for folder in config.library_path() for line in _search_folder(folder)]
    native_module().note_search(searched or ["MSOPS_LIBRARY_PATH is not set, or empty"])
    native_module().set_cache_finder(_search_cache)
    return register_targets(platform)


def _search_folder(folder: Path) -> list[str]:
    """Makes the code in a folder of MSOPS_LIBRARY_PATH known; returns lines for the message."""
    cubins, libraries = _toolchain.index_cubins(folder), _toolchain.index(folder)
    found = f"it holds {len(libraries)} *.so and {len(cubins)} *.cubin"
    lines = [f"looked in {folder}: {found if folder.is_dir() else 'no such folder'}"]
    for content, code in cubins.items():
        native_module().register_cubin(content, code)
    for content, path in libraries.items():
        if is_known(content):
            continue
        # One library that is damaged or not allowed must not keep the others from being found.
        try:
            _remember(path, f"MSOPS_LIBRARY_PATH {folder}")
        except MsopsError as error:
            warn_once(_log, str(error))
            lines.append(f"refused {path}: {error}")
    return lines


def _remember(path: Path, who: str) -> None:
    """Makes a library known, whichever std::string a program takes it to have."""
    library = _toolchain.resolve(path, who)
    other_abi = dataclasses.replace(
        library,
        hash=f"{library.hash}{_toolchain.OTHER_ABI}",
        old_string_abi=not library.old_string_abi,
    )
    remember_library(library, who)
    remember_library(other_abi, who)


def _search_cache(content: str) -> list[str]:
    """Makes code known that a program names by its hash, if the cache folder has it.

    Returns:
      Why not, for the message; no line if the code is known now.
    """
    digest = content.removesuffix(_toolchain.OTHER_ABI)
    # A program from elsewhere may say anything, a path say.
    if not re.fullmatch("[0-9a-f]{64}", digest):
        return ["not looked in this machine's cache: that is no SHA-256"]
    who = f"the cache folder {config.cache_dir()}"
    try:
        found = _toolchain.find_in_cache(digest, who)
        if found is None:
            return [f"looked in {who}"]
        if found.suffix == ".cubin":
            code = found.read_bytes()
            native_module().register_cubin(hashlib.sha256(code).hexdigest(), code)
        else:
            _remember(found, who)
    except (MsopsError, OSError) as error:
        return [f"refused what the cache has: {error}"]
    return []
