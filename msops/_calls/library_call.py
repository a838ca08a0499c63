"""The FFI seam: one call form for everything that runs in a shared library.

A call names its library by content hash, base name and symbol, never by path or pointer (decision
13), so that equal programs are equal in every process and the persistent compilation cache and
`jax.export` can keep them. The path is found in the process: what it built or loaded, then
``MSOPS_LIBRARY_PATH``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

import jax
import jax.export
import numpy as np

from msops import _jax_seam as seam
from msops import _toolchain
from msops._base import config
from msops._base.dtypes import as_dtype
from msops._base.logging import warn_once
from msops.errors import ArgumentValueError, BuildError, KernelError, MsopsError, explain

AOT_TARGET = "msops_aot"

_log = logging.getLogger("msops.toolchain")


@dataclasses.dataclass(frozen=True)
class NativeCall:
    """One call into a library.

    Attributes:
      op: name of the op, for the messages of the handler.
      library: the library, by content.
      symbol: the function in it.
      attributes: every attribute by name.
      reentrant: False serialises all calls into the library.
      workspaces: sizes in bytes of memory that the function gets behind its outputs.
      aliases: pairs of an input and the output that takes over its buffer.
    """

    op: str
    library: _toolchain.Library
    symbol: str
    attributes: tuple[tuple[str, Any], ...]
    reentrant: bool
    workspaces: tuple[int, ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()

    @property
    def kernel_name(self) -> str:
        """What messages call the kernel."""
        return self.symbol


def lower_native_call(
    call: NativeCall,
    platform: str,
    inputs: Sequence[jax.ShapeDtypeStruct],
    outputs: Sequence[jax.ShapeDtypeStruct],
    has_side_effect: bool,
    who: str,
    ctx: Any,
    operands: Sequence[Any],
) -> Sequence[Any]:
    """Lowers an equation to the custom call.

    Args:
      call: what to call.
      platform: JAX's platform name.
      inputs: shapes and dtypes of the operands.
      outputs: shapes and dtypes of the results.
      has_side_effect: whether XLA may neither merge nor drop the call.
      who: the op and where it runs, for messages.
      ctx: JAX's lowering context.
      operands: the operands' values in the program.

    Raises:
      BuildError: the library cannot be opened in this process.
    """
    open_library(call.library, platform, who)
    arrays = (*inputs, *outputs)
    attributes = {
        "op": call.op,
        "library": call.library.hash,
        "library_name": call.library.name,
        "symbol": call.symbol,
        **seam.frame_attributes(arrays),
        "attributes": {name: ffi_value(value) for name, value in call.attributes},
        "reentrant": call.reentrant,
        "workspaces": np.array(call.workspaces, np.int64),
    }
    return seam.custom_call(ctx, operands, AOT_TARGET, attributes, has_side_effect, call.aliases)


def open_library(library: _toolchain.Library, platform: str, who: str) -> None:
    """Opens a library where the handlers of `platform` can run, so that errors come out now."""
    remember_library(library, who)
    if register_targets(platform):
        with _reported(BuildError, who, f"{library.name} cannot be opened"):
            native_module().open_library(library.hash)


def infer_shapes(
    call: NativeCall, inputs: Sequence[jax.ShapeDtypeStruct], multiple: bool, who: str
) -> list[Any]:
    """Returns what ``<symbol>InferShape`` answers: a shape, or a list of them if `multiple`."""
    shapes = [list(array.shape) for array in inputs]
    dtypes = [as_dtype(array.dtype).name for array in inputs]
    remember_library(call.library, who)
    with _reported(KernelError, who, f"{call.symbol}InferShape failed"):
        answer = native_module().infer_shape(
            call.library.hash, call.symbol, shapes, dtypes, dict(call.attributes), multiple
        )
    return answer if multiple else answer[0]


def infer_type_ids(
    call: NativeCall, inputs: Sequence[jax.ShapeDtypeStruct], multiple: bool, who: str
) -> list[int]:
    """Returns the TypeId numbers that ``<symbol>InferType`` answers, one per output."""
    type_ids = [as_dtype(array.dtype).type_id for array in inputs]
    remember_library(call.library, who)
    with _reported(KernelError, who, f"{call.symbol}InferType failed"):
        return native_module().infer_type(
            call.library.hash, call.symbol, type_ids, dict(call.attributes), multiple
        )


def export_checks() -> list[jax.export.DisabledSafetyCheck]:
    """Returns what `jax.export` has to be told to take programs with native kernels.

    It takes a program with custom calls of others only if each is named among its
    ``disabled_checks``, as it cannot know that the call will be found and mean the same elsewhere.
    That msops's do is what `register_ffi_targets` is for. Kernels that live in one process, pyfuncs
    and C++ runners, are refused all the same.

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


def register_ffi_targets(platform: str = "cpu") -> bool:
    """Registers msops's custom call targets, for programs that were lowered elsewhere.

    Ops register what they need when they are lowered. A program that comes from another process
    (`jax.export`, see `export_checks`) needs this call first. It also reads
    ``MSOPS_LIBRARY_PATH``, the folders in which the libraries of such programs are looked for by
    their content. It starts no backend.

    Args:
      platform: JAX's platform name: "cpu", "cuda" or "rocm".

    Returns:
      Whether XLA has the targets now; False on a GPU platform whose backend has not started:
      call again after the first JAX computation.

    Raises:
      ArgumentValueError: `platform` is none of the three.

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
        library.hash, str(library.path), str(library.origin or ""), library.old_string_abi
    )
    _remembered.add(library.hash)


def register_targets(platform: str) -> bool:
    """Registers msops's targets for a platform, once; returns whether XLA has them now."""
    return seam.register_custom_calls(platform, _registrations())


@functools.cache
def _registrations() -> list[dict[str, Any]]:
    return native_module().registrations()


@functools.cache
def native_module() -> ModuleType:
    """Returns the C++ module; imported at first use, as `import msops` must be quick."""
    try:
        from msops import _native
    except ImportError as error:
        raise BuildError(
            explain(
                "msops",
                f"its C++ module does not load: {error}",
                "Build it: pip install . in the checkout (make setup), with the Python you run.",
            )
        ) from error
    return _native


@contextlib.contextmanager
def _reported(family: type[MsopsError], who: str, problem: str) -> Iterator[None]:
    """Turns an error of the C++ module into one of `family`, with the op's name."""
    try:
        yield
    except RuntimeError as error:
        raise family(explain(who, problem, "See the library's source.", [str(error)])) from error


def ffi_value(value: Any) -> Any:
    """Returns an attribute as the FFI carries it; see ffi_attributes.cc for the other side."""
    if isinstance(value, float):
        return np.float64(value)
    if not isinstance(value, tuple):
        return value
    if all(isinstance(item, tuple) for item in value) and value:
        data = _number_array([item for row in value for item in row])
        if data is not None:
            return {"data": data, "splits": np.array([len(row) for row in value], np.int64)}
    array = _number_array(value)
    # Lists of text or bool have no getter in AotExtra; the kernel sees that they are there.
    return {str(i): ffi_value(item) for i, item in enumerate(value)} if array is None else array


def _number_array(values: Sequence[Any]) -> np.ndarray | None:
    kinds = {type(value) for value in values}
    if not kinds <= {int, float}:
        return None
    return np.array(values, np.float64 if float in kinds else np.int64)
