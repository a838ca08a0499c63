"""Programs that another process exported: what they may call, and what finds it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable
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
        raise ArgumentValueError.explained(
            "msops.register_ffi_targets",
            f"expected platform 'cpu', 'cuda' or 'rocm'; got {platform!r}",
            "Pass the platform the program was lowered for.",
        )
    allow_modules(modules)
    serve_functions()
    searched = []
    for folder in config.library_path():
        cubins, libraries = _toolchain.index_cubins(folder), _toolchain.index(folder)
        found = f"it holds {len(libraries)} *.so and {len(cubins)} *.cubin"
        searched.append(f"looked in {folder}: {found if folder.is_dir() else 'no such folder'}")
        for content, code in cubins.items():
            native_module().register_cubin(content, code)
        for content, path in libraries.items():
            if is_known(content):
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
                searched.append(f"refused {path}: {error}")
    searched = searched or ["MSOPS_LIBRARY_PATH is not set, or empty"]
    # To index a cache of a thousand libraries takes a second, which most processes need not pay.
    searched.append(
        "not looked in this machine's cache, which `msops cache ls` lists; MSOPS_LIBRARY_PATH may "
        "name the folder there that has the hash as its name"
    )
    native_module().note_search(searched)
    return register_targets(platform)
