"""Custom calls of XLA: registering their targets, and calling them."""

from __future__ import annotations

import functools
import pathlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.ffi
import numpy as np
from jax._src import core
from jax._src import xla_bridge as _xla_bridge
from jax._src.callback import OrderedIOEffect
from jax._src.interpreters import mlir
from jaxlib import xla_client as _xla_client
from jaxlib.mlir import ir

from msops._jax_seam.lowering import Lowering, OneDevice, device_count
from msops._jax_seam.sub_byte import BITS, call_on_bytes

# What XLA calls a platform when a custom call target is registered.
_XLA_PLATFORM = {"cpu": "cpu", "cuda": "CUDA", "rocm": "ROCM"}


_OPEN = -1
"""FrameCheck::kOpen of frame_check.h."""


def custom_call(
    lowering: Lowering,
    operands: Sequence[Any],
    target: str,
    attributes: Mapping[str, Any],
    has_side_effect: bool,
    aliases: Sequence[tuple[int, int]] = (),
    keeps: Any = None,
    calls_python: bool = False,
) -> Sequence[Any]:
    """Lowers an equation to one XLA custom call with typed attributes, row-major operands.

    Elements narrower than a byte are unpacked before the call, and packed behind it.

    Args:
      lowering: the equation.
      operands: the operands' values in the program.
      target: what XLA knows the handlers by.
      attributes: what is called; the frame's own are added.
      has_side_effect: whether XLA may neither merge nor drop the call.
      aliases: pairs of an operand and the result that takes over its buffer.
      keeps: an object that lives as long as what is compiled.
      calls_python: whether the handlers call `keeps`.
    """
    if calls_python:
        hold_host_function(lowering, keeps)
    elif keeps is not None:
        lowering.context.module_context.add_keepalive(keeps)
    rule = jax.ffi.ffi_lowering(
        target, has_side_effect=has_side_effect, operand_output_aliases=dict(aliases)
    )
    call = functools.partial(rule, **attributes, **_frame_attributes(lowering))
    tokens = lowering.context.tokens_in
    if len(tokens):
        # JAX has an order of its own for ordered debugging callbacks.
        kinds = sorted(tokens.effects(), key=lambda kind: not isinstance(kind, OrderedIOEffect))
        results, token = _call_behind(lowering, call, tokens.get(kinds[0]), operands)
        lowering.context.set_tokens_out(tokens.update_tokens(mlir.TokenSet({kinds[0]: token})))
        return results
    if has_side_effect and _may_keep_order(lowering):
        # Of this block of the program; JAX drops the dictionary when the program is lowered.
        known = lowering.context.module_context.cached_primitive_lowerings
        key = ("msops: the last effect", ir.InsertionPoint.current.block)
        token = known.get(key) or mlir.create_token()
        results, known[key] = _call_behind(lowering, call, token, operands)
        return results
    return _call_by_width(lowering, call, operands)


def _may_keep_order(lowering: Lowering) -> bool:
    """Returns whether effects may keep the order of a block that nobody asked for."""
    return lowering.platform == "cpu" and not lowering.is_exported and device_count(lowering) == 1


def _call_behind(
    lowering: Lowering, call: Callable[..., Sequence[Any]], token: Any, operands: Sequence[Any]
) -> tuple[Sequence[Any], Any]:
    """Lowers a call that runs after the one that gave a token; returns its results and token."""
    tokens: list[Any] = []
    in_order = functools.partial(_call_in_order, call, token, tokens)
    results = _call_by_width(lowering, in_order, operands)
    return results, tokens[0]


def _call_in_order(
    call: Callable[..., Sequence[Any]],
    token: Any,
    tokens: list[Any],
    context: Any,
    *operands: Any,
) -> Sequence[Any]:
    """Calls a rule with a token behind the operands; notes the one that it gives."""
    avals_in = [*context.avals_in, core.abstract_token]
    avals_out = [*context.avals_out, core.abstract_token]
    *results, last = call(context.replace(avals_in=avals_in, avals_out=avals_out), *operands, token)
    tokens.append(last)
    return results


def _call_by_width(
    lowering: Lowering, call: Callable[..., Sequence[Any]], operands: Sequence[Any]
) -> Sequence[Any]:
    if any(aval.dtype.name in BITS for aval in (*lowering.inputs, *lowering.outputs)):
        return call_on_bytes(lowering, call, operands)
    return call(lowering.context, *operands)


def hold_host_function(lowering: Lowering, function: Any) -> None:
    """Has the program that is being lowered hold a Python function that it calls.

    Such programs run in the thread that calls them, as soon as their inputs are there, and do not
    take up a thread of XLA's: a function that itself calls JAX would wait for one. JAX before 0.12
    does not keep them on disk. `nesting` finds the function among what the program keeps alive.
    """
    axes = lowering.context.module_context.axis_context
    if isinstance(axes, OneDevice):
        axes.held.append(function)
    else:
        lowering.context.module_context.add_host_callback(function)
        lowering.context.module_context.add_keepalive(function)


def _frame_attributes(lowering: Lowering) -> dict[str, Any]:
    """Returns the attributes by which handlers know their frame: CallFrame of call_frame.h.

    They are what the call was lowered for: the handler checks its frame against them. A size that
    is no number (such as a symbolic one of `jax.export`) is left open: the first frame sets it.
    """
    arrays = (*lowering.inputs, *lowering.outputs)
    dims = [dim if isinstance(dim, int) else _OPEN for array in arrays for dim in array.shape]
    return {
        "operands": np.int64(len(lowering.inputs)),
        "ranks": np.array([len(array.shape) for array in arrays], np.int64),
        "dims": np.array(dims, np.int64),
        "dtypes": ",".join([array.dtype.name for array in arrays]),
    }


_registered: set[tuple[str, str]] = set()


_registration_lock = threading.Lock()


def register_custom_calls(platform: str, rows: Iterable[Mapping[str, Any]]) -> bool:
    """Registers the custom call types and targets of `rows` with XLA, once per process.

    Args:
      platform: JAX's platform name.
      rows: dicts with ``kind`` ("type" or "target"), ``name``, ``platform`` (XLA's name) and
        ``capsules`` (stage or id to PyCapsule), types before the targets that use them.

    Returns:
      Whether XLA has them now. False when the platform's backend has not started: XLA would queue
      them and flush targets before types, and the backend's start would fail.
    """
    xla_platform = _XLA_PLATFORM[platform]
    with _registration_lock:
        if platform == "cpu":
            # The CPU client installs these two at its start and tolerates finding them. Doing it
            # here lets types and targets register at any time without starting a backend.
            _xla_client.register_custom_call_handler(
                "cpu", _xla_client._xla.register_custom_call_target
            )
            _xla_client.register_custom_type_handler("cpu", _xla_client._xla.register_custom_type)
        elif platform not in _started_platforms():
            return False
        for row in rows:
            key = (row["name"], row["platform"])
            if row["platform"] != xla_platform or key in _registered:
                continue
            if row["kind"] == "type":
                jax.ffi.register_ffi_type(row["name"], row["capsules"], platform=xla_platform)
            else:
                jax.ffi.register_ffi_target(row["name"], row["capsules"], platform=xla_platform)
            _registered.add(key)
        return True


def _started_platforms() -> set[str]:
    """Returns JAX's names of the platforms whose backend runs; starts none."""
    return set(_xla_bridge.backends()) if _xla_bridge.backends_are_initialized() else set()


def ffi_headers() -> str:
    """Returns the folder of the headers of XLA's FFI that jaxlib has."""
    return jax.ffi.include_dir()


def ffi_version() -> tuple[int, int]:
    """Returns the version of XLA's FFI that jaxlib has, as its header says."""
    header = pathlib.Path(ffi_headers(), "xla", "ffi", "api", "c_api.h").read_text()
    major, minor = (
        int(number) for number in re.findall(r"#define XLA_FFI_API_M(?:AJOR|INOR) (\d+)", header)
    )
    return major, minor
