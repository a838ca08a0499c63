"""`kernel`: marks a function as written in the Hybrid DSL, and lets it run on numpy arrays."""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import types
import warnings
from collections.abc import Callable
from typing import Any

import jax

from msops.errors import ArgumentTypeError

_WHO = "kernel"


def kernel(
    fn: Callable[..., Any] | None = None,
    reg_info: str | dict[str, Any] | tuple[Any, ...] | None = None,
    compile_attrs: dict[str, Any] | None = None,
) -> Any:
    """Marks a function as a Hybrid DSL kernel, for ``Custom(func)`` with func_type "hybrid".

    Corresponds to ``mindspore.ops.kernel``; `msops.kernel` makes a function an op instead. The
    function can also be called, with numpy arrays. Then its body runs as Python, stores
    and conversions follow numpy, and an in-place kernel writes into its argument. The names of the
    language are only visible in that call; unlike in MindSpore, your globals do not change.

    Args:
      fn: the function; None when the decorator is written with arguments.
      reg_info: op info of the operator.
      compile_attrs: settings for the compiler by name; ``{"lower": "xla"}`` or ``"native"`` sets
        what the loops become. MindSpore's own settings are kept and have no effect.

    Returns:
      The decorated function, or a decorator if `fn` is None. It has the attributes
      ``ms_kernel_flag``, ``compile_attrs`` (JSON text) and, if given, ``reg_info``.

    Raises:
      ArgumentTypeError: `compile_attrs` is not a dict with str keys and JSON values, `reg_info` is
        not a str, dict or tuple, or `fn` is not a function.

    Example:
      >>> import numpy as np, msops
      >>> @msops.ops.kernel
      ... def double(a):
      ...     c = output_tensor(a.shape, a.dtype)
      ...     for i in range(a.shape[0]):
      ...         c[i] = 2.0 * a[i]
      ...     return c
      >>> double(np.arange(3.0, dtype=np.float32))
      array([0., 2., 4.], dtype=float32)

    Source: MindSpore 2.7.2, ``mindspore.ops.kernel``.
    """
    attrs = _attrs_text({} if compile_attrs is None else compile_attrs)
    if reg_info is not None and not isinstance(reg_info, (str, dict, tuple)):
        raise ArgumentTypeError.explained(
            _WHO,
            "the input 'reg_info' of @kernel should be one of str, dict and tuple; got a "
            f"{type(reg_info).__name__}",
            "Pass CustomRegOp(...).get_op_info(), or a tuple of them.",
        )

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        inner = inspect.unwrap(func)
        if not isinstance(inner, types.FunctionType):
            raise ArgumentTypeError.explained(
                _WHO,
                f"expected a function to decorate; got {type(func).__name__}",
                "Write @kernel above a def.",
            )

        @functools.wraps(func)
        def run(*args: Any, **kwargs: Any) -> Any:
            _refuse_tracers(inner.__name__, (*args, *kwargs.values()))
            return _with_intrinsics(inner, {})(*args, **kwargs)

        marks = {"ms_kernel_flag": True, "compile_attrs": attrs}
        run.__dict__.update(marks if reg_info is None else marks | {"reg_info": reg_info})
        return run

    return decorate if fn is None else decorate(fn)


def ms_kernel(
    fn: Callable[..., Any] | None = None,
    reg_info: str | dict[str, Any] | tuple[Any, ...] | None = None,
    compile_attrs: dict[str, Any] | None = None,
) -> Any:
    """Deprecated alias of `kernel`, with its arguments.

    Source: MindSpore 2.7.2, ``mindspore.ops.ms_kernel``.
    """
    return _deprecated("ms_kernel", fn, reg_info, compile_attrs)


def ms_hybrid(
    fn: Any = None, reg_info: Any = None, compile_attrs: dict[str, Any] | None = None
) -> Any:
    """Deprecated alias of `kernel`, with its arguments: its name before MindSpore 1.8.

    Source: MindSpore 1.7, ``mindspore.ops.ms_hybrid``.
    """
    return _deprecated("ms_hybrid", fn, reg_info, compile_attrs)


def _deprecated(name: str, fn: Any, reg_info: Any, compile_attrs: dict[str, Any] | None) -> Any:
    warnings.warn(
        f"'{name}' is deprecated from version 1.8, use 'kernel' instead.",
        DeprecationWarning,
        stacklevel=3,
    )
    return kernel(fn, reg_info, compile_attrs)


def _refuse_tracers(name: str, args: tuple[Any, ...]) -> None:
    if any(isinstance(arg, jax.core.Tracer) for arg in args):
        raise ArgumentTypeError.explained(
            f"kernel '{name}'",
            "expected numpy arrays; got an array that JAX traces, so the function was called "
            "within jax.jit, jax.grad or another transformation",
            f"Make an op of it once, op = msops.Custom({name}), and call op there.",
        )


def _with_intrinsics(
    function: types.FunctionType, copies: dict[types.FunctionType, types.FunctionType]
) -> types.FunctionType:
    """Returns the function with the language's names among its globals as they are now.

    So are the helper functions that it calls; `copies` has those that were met before.
    """
    # Their table takes time to import, which programs that call no kernel as Python would pay.
    from msops._custom.language import INTRINSICS

    def helper(name: str, value: Any) -> Any:
        is_helper = isinstance(value, types.FunctionType) and not hasattr(value, "ms_kernel_flag")
        return _with_intrinsics(value, copies) if is_helper and name not in INTRINSICS else value

    if function in copies:
        return copies[function]
    code = function.__code__
    names = dict(function.__globals__)
    cells = tuple(types.CellType() for _ in code.co_freevars)
    copies[function] = bound = types.FunctionType(
        code, names, function.__name__, function.__defaults__, cells
    )
    bound.__kwdefaults__ = function.__kwdefaults__
    names |= INTRINSICS
    names |= {name: helper(name, names[name]) for name in code.co_names if name in names}
    for name, cell, own in zip(code.co_freevars, cells, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not assigned yet
            cell.cell_contents = helper(name, own.cell_contents)
    return bound


def _attrs_text(compile_attrs: Any) -> str:
    """Returns settings as JSON text, the form in which a function carries them."""
    if not isinstance(compile_attrs, dict):
        raise ArgumentTypeError.explained(
            _WHO,
            "the input 'compile_attrs' of @kernel must be a dict; got a "
            f"{type(compile_attrs).__name__}",
            'Pass compile_attrs={"lower": "native"}, for example.',
        )
    for key in compile_attrs:
        if not isinstance(key, str):
            raise ArgumentTypeError.explained(
                _WHO,
                f"the key of 'compile_attrs' of @kernel must be a str; got {key!r}, a "
                f"{type(key).__name__}",
                "Name settings by strings.",
            )
    try:
        return json.dumps(compile_attrs)
    except TypeError as error:
        raise ArgumentTypeError.explained(
            _WHO,
            f"the values of 'compile_attrs' of @kernel must be JSON values: {error}",
            "Pass numbers, strings, bools, and lists or dicts of them.",
        ) from None
