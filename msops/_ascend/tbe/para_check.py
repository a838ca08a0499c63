"""`tbe.common.utils.para_check`, as kernels import it: checks by the kind of each parameter."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from msops._ascend.tbe import util
from msops._ascend.tbe.session import KernelTypeError
from msops._loops.frontends.tvm.tracing import call_error

_TENSORS = ("INPUT", "OUTPUT")
_PRESENCES = ("REQUIRED", "OPTION", "DYNAMIC")
_SCALARS: dict[str, Any] = {
    "INT": int,
    "FLOAT": (float, int),
    "STR": str,
    "BOOL": bool,
    "TYPE": str,
    "LIST": (list, tuple),
}
_ELEMENTS: dict[str, Any] = {
    "INT": int,
    "FLOAT": (float, int),
    "BOOL": bool,
    "STR": str,
    "LIST_INT": (list, tuple),
}
KERNEL_NAME = "kernel_name"

_CONSTANTS = {
    **{f"{presence}_{kind}": f"{presence}_{kind}" for presence in _PRESENCES for kind in _TENSORS},
    **{
        f"{presence}_ATTR_{kind}": f"{presence}_ATTR_{kind}"
        for presence in _PRESENCES[:2]
        for kind in [*_SCALARS, *(f"LIST_{element}" for element in _ELEMENTS)]
    },
    "KERNEL_NAME": KERNEL_NAME,
}


def check_op_params(*kinds: Any) -> Callable[..., Any]:
    """Returns a decorator that checks each argument of an entry function.

    Args:
      *kinds: one constant of this module per parameter, such as `REQUIRED_INPUT`.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(function).parameters)

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            given = dict(zip(names, args, strict=False)) | kwargs
            for name, kind in zip(names, kinds, strict=False):
                if name in given:
                    _check(function.__name__, name, kind, given[name])
            return function(*args, **kwargs)

        return checked

    return decorate


def _check(who: str, name: str, kind: str, value: Any) -> None:
    presence, _, rest = kind.partition("_")
    if kind == KERNEL_NAME:
        util.check_kernel_name(value)
    elif rest in _TENSORS:
        if presence == "DYNAMIC":
            if not isinstance(value, (list, tuple)) or not value:
                raise _refuse(who, name, "a list of tensors", value)
        elif value is None and presence == "OPTION":
            return
        for one in value if presence == "DYNAMIC" else [value]:
            _check_tensor(who, name, one)
    elif value is not None or presence == "REQUIRED":
        _check_attribute(who, name, rest.removeprefix("ATTR_"), value)


def _check_tensor(who: str, name: str, value: Any) -> None:
    if not isinstance(value, dict) or not {"shape", "dtype"} <= value.keys():
        raise _refuse(who, name, "a dict with shape and dtype", value)


def _check_attribute(who: str, name: str, kind: str, value: Any) -> None:
    scalar, _, element = kind.partition("_")
    if not isinstance(value, _SCALARS[scalar]) or (scalar == "INT" and isinstance(value, bool)):
        raise _refuse(who, name, kind.lower(), value)
    if element and not all(isinstance(one, _ELEMENTS[element]) for one in value):
        raise _refuse(who, name, kind.lower(), value)


def _refuse(who: str, name: str, expected: str, value: Any) -> KernelTypeError:
    return call_error(
        KernelTypeError,
        who,
        f"expected {expected} for {name!r}; got {value!r} ({type(value).__name__})",
        "Correct the op info, or the constant in check_op_params.",
    )


def check_dtype(dtype: Any, check_list: Any = None, param_name: str = "") -> None:
    """Checks that a dtype is one of a list.

    Args:
      dtype: text, in any case.
      check_list: the dtypes; None is all of TBE's.
      param_name: the parameter, for messages.
    """
    if not isinstance(dtype, str):
        raise _refuse("check_dtype", param_name or "dtype", "a str", dtype)
    known = ("bool", "int8", "uint8", "int16", "uint16", "int32", "float16", "float32")
    util.check_dtype_rule(dtype.lower(), known if check_list is None else check_list, param_name)


def check_shape(
    shape: Any,
    min_dim: int = 0,
    max_dim: int = 8,
    min_rank: int = 0,
    max_rank: int = 8,
    min_size: int = 1,
    max_size: int = 2**31 - 1,
    param_name: str = "",
) -> None:
    """Checks the rank and the number of elements of a shape.

    Args:
      shape: the shape.
      min_dim: not used: extents are at least 1 here.
      max_dim: not used.
      min_rank: the fewest dimensions.
      max_rank: the most.
      min_size: the fewest elements.
      max_size: the most.
      param_name: the parameter, for messages.
    """
    util.check_shape_rule(shape, min_rank, max_rank)
    size = util.check_shape_size(shape, max_size + 1)
    if size < min_size:
        raise _refuse("check_shape", param_name or "shape", f"at least {min_size} elements", shape)


def check_format(data_format: Any, check_list: Any = None, param_name: str = "") -> None:
    """Checks that a format is one of a list; None is every format."""
    if check_list is not None and data_format not in check_list:
        raise _refuse("check_format", param_name or "format", f"one of {check_list}", data_format)


NAMES: dict[str, Any] = {
    **_CONSTANTS,
    "SHAPE_SIZE_LIMIT": 2**31 - 1,
    "check_dtype": check_dtype,
    "check_dtype_rule": util.check_dtype_rule,
    "check_format": check_format,
    "check_input_type": util.check_input_type,
    "check_kernel_name": util.check_kernel_name,
    "check_op_params": check_op_params,
    "check_shape": check_shape,
    "check_shape_rule": util.check_shape_rule,
    "check_shape_size": util.check_shape_size,
    "check_tensor_shape_size": util.check_tensor_shape_size,
}
"""The names of the module."""
