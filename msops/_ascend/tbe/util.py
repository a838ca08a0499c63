"""`topi.cce.util`, as kernels import it: checks of their arguments, and helpers for shapes."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msops._ascend.tbe.session import KernelTypeError
from msops._loops.frontends.tvm.tracing import build_error, call_error

VERSION_CLOUD = "cloud"
VERSION_MINI = "mini"

_MOST_ELEMENTS = 2**31
_LONGEST_NAME = 200


def check_kernel_name(kernel_name: Any) -> None:
    """Checks that the name is an identifier of at most 200 characters."""
    if not isinstance(kernel_name, str):
        raise _wrong_type("check_kernel_name", "a str", kernel_name)
    if len(kernel_name) > _LONGEST_NAME or not re.fullmatch(r"[A-Za-z_]\w*", kernel_name, re.ASCII):
        raise build_error(
            "check_kernel_name",
            "kernel_name can only contain letters, numbers and underscores, and begin with no "
            f"number, in at most {_LONGEST_NAME} characters; got {kernel_name!r}",
            "Leave the name to msops.",
        )


def check_input_type(*types: Any, **kw_types: Any) -> Callable[..., Any]:
    """Returns a decorator that checks the types of a function's arguments.

    Args:
      *types: a type, or a tuple of types, per positional parameter.
      **kw_types: the same by name.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        names = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        expected = dict(zip(names, types, strict=False)) | kw_types

        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if len(args) + len(kwargs) > len(types) + len(kw_types):
                raise call_error(
                    KernelTypeError,
                    function.__name__,
                    f"expected at most {len(types) + len(kw_types)} arguments, as check_input_type "
                    f"lists; got {len(args) + len(kwargs)}",
                    "List one type for each parameter of the kernel.",
                )
            for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
                wanted = expected.get(name, object)
                if not isinstance(value, wanted):
                    raise call_error(
                        KernelTypeError,
                        function.__name__,
                        f"input type error: expected {_type_names(wanted)} for {name!r}; "
                        f"got {value!r} ({type(value).__name__})",
                        "Correct the op info's attributes, or the types in check_input_type.",
                    )
            return function(*args, **kwargs)

        return checked

    return decorate


def check_shape_rule(
    shape: Any,
    min_dim: int | None = None,
    max_dim: int | None = None,
    max_shape_num: int | None = None,
) -> None:
    """Checks that a shape is a sequence of positive ints.

    Args:
      shape: the shape.
      min_dim: the fewest dimensions it may have; None is 1.
      max_dim: the most; None is 8.
      max_shape_num: the largest extent; None is 2**31.
    """
    least, most = (1 if min_dim is None else min_dim), (8 if max_dim is None else max_dim)
    largest = _MOST_ELEMENTS if max_shape_num is None else max_shape_num
    extents = _extents("check_shape_rule", shape)
    if not least <= len(extents) <= most:
        raise build_error(
            "check_shape_rule",
            f"The ndim of input shape must be more than {least - 1}, less than {most + 1}, actual "
            f"input ndim is {len(extents)}: {tuple(extents)}",
            "The kernel is not made for such tensors.",
        )
    for extent in extents:
        if not 0 < extent <= largest:
            raise build_error(
                "check_shape_rule",
                f"The type of axis value must be positive int and value in (0,{largest}], actual "
                f"value is {extent} in {tuple(extents)}",
                "The kernel is not made for such tensors.",
            )


def check_dtype_rule(dtype: Any, check_list: Any, param_name: str = "") -> None:
    """Checks that a dtype is one of a list."""
    if dtype not in check_list:
        raise build_error(
            "check_dtype_rule",
            f"The data type{f' of {param_name}' if param_name else ''} is not supported, supported "
            f"list: {', '.join(check_list)}; got {dtype}",
            "Register only dtypes that the kernel takes.",
        )


def check_shape_size(shape: Any, limit: int = _MOST_ELEMENTS) -> int:
    """Returns the number of elements, which must be less than a limit."""
    size = math.prod(_extents("check_shape_size", shape))
    if size >= limit:
        raise build_error(
            "check_shape_size",
            f"The shape size for tensor must be less than {limit}; got {size}",
            "The kernel is not made for such tensors.",
        )
    return size


def check_tensor_shape_size(shape: Any) -> int:
    """Returns the number of elements, which must be less than 2**31."""
    return check_shape_size(shape)


def check_reduce_shape_rule(shape: Any) -> None:
    """Checks the number of elements of a tensor that is reduced."""
    check_shape_size(shape)


def check_quantize_type_and_shape(*args: Any, **kwargs: Any) -> None:
    """Accepts what it is given: quantised convolutions are the Ascend's alone."""


def compare_tensor_dict_key(dict1: Any, dict2: Any, dict_key: str) -> None:
    """Checks that two tensors agree in one key of their descriptions."""
    for value in (dict1, dict2):
        if not isinstance(value, Mapping):
            raise _wrong_type("compare_tensor_dict_key", "a dict", value)
    first, second = dict1.get(dict_key), dict2.get(dict_key)
    if isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)):
        first, second = list(first), list(second)
    if first is None or first != second:
        raise build_error(
            "compare_tensor_dict_key",
            f"expected {dict_key!r} to be the same in both; got {first!r} and {second!r}",
            "Call the op with tensors that agree.",
        )


def shape_to_list(shape: Any) -> list[int]:
    """Returns a shape as a list of ints."""
    return [int(extent) for extent in shape]


def shape_refine(shape: Any, reduce_axis: Any = None, keep_dims: bool = True) -> Any:
    """Returns a shape without its ones; ``(1,)`` if it has nothing else.

    With `reduce_axis`, returns the shape and the axes as they are numbered in it.
    """
    extents = tuple(shape_to_list(shape))
    kept = [axis for axis, extent in enumerate(extents) if extent != 1]
    refined = tuple(extents[axis] for axis in kept) or (1,)
    if reduce_axis is None:
        return refined
    given = reduce_axis if isinstance(reduce_axis, (list, tuple)) else [reduce_axis]
    axes = {axis % len(extents) for axis in given}
    return refined, [n for n, axis in enumerate(kept) if axis in axes]


def produce_shapes(shape1: Any, shape2: Any) -> tuple[list[int], list[int], list[int]]:
    """Returns two shapes with ones in front up to one rank, and the shape they broadcast to."""
    first, second = shape_to_list(shape1), shape_to_list(shape2)
    rank = max(len(first), len(second))
    first = [1] * (rank - len(first)) + first
    second = [1] * (rank - len(second)) + second
    for one, other in zip(first, second, strict=True):
        if one != other and 1 not in (one, other):
            raise build_error(
                "produce_shapes",
                f"input shapes not match: {tuple(shape1)} and {tuple(shape2)}",
                "They must agree in every axis in which none of them is 1.",
            )
    result = [other if one == 1 else one for one, other in zip(first, second, strict=True)]
    return first, second, result


def scalar2tensor_one(shape: Any) -> Any:
    """Returns the shape, ``[1]`` for that of a scalar."""
    return shape if len(shape) else [1]


def axis_check(shape_len: int, axis: Any) -> Any:
    """Returns axes counted from the front, each once and in order; of one int, an int."""
    given = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    for one in given:
        if not isinstance(one, int) or not -shape_len <= one < shape_len:
            raise build_error(
                "axis_check",
                f"The axis value must be between [{-shape_len}, {shape_len - 1}], actual {one!r}",
                "Name axes that the tensor has.",
            )
    axes = sorted({one % shape_len for one in given})
    return axes if isinstance(axis, (list, tuple)) else axes[0]


def shape_simplify_with_broadcast(shape1: Any, shape2: Any) -> tuple[list[int], list[int]]:
    """Returns two shapes with neighbouring axes joined where both agree."""
    first, second, _ = produce_shapes(shape1, shape2)
    joined: list[list[int]] = []
    was_equal = False
    for one, other in zip(first, second, strict=True):
        if joined and was_equal and one == other:
            joined[-1] = [joined[-1][0] * one, joined[-1][1] * other]
        else:
            joined.append([one, other])
        was_equal = one == other
    return [one for one, _ in joined], [other for _, other in joined]


def get_product_version() -> str:
    """Returns "cloud": the tables of dtypes here are those of the Ascend 910."""
    return VERSION_CLOUD


def _extents(name: str, shape: Any) -> Sequence[int]:
    if not isinstance(shape, (list, tuple)):
        raise _wrong_type(name, "a list or tuple for the shape", shape)
    for extent in shape:
        if isinstance(extent, bool) or not isinstance(extent, int):
            raise _wrong_type(name, "ints in the shape", extent)
    return shape


def _wrong_type(name: str, expected: str, value: Any) -> KernelTypeError:
    return call_error(
        KernelTypeError,
        name,
        f"expected {expected}; got {value!r} ({type(value).__name__})",
        "Pass what the entry function was given.",
    )


def _type_names(wanted: Any) -> str:
    kinds = wanted if isinstance(wanted, tuple) else (wanted,)
    return " or ".join(kind.__name__ for kind in kinds)


NAMES: dict[str, Any] = {
    name: value
    for name, value in globals().items()
    if name.isupper() or (callable(value) and getattr(value, "__module__", "") == __name__)
    if not name.startswith("_")
}
"""The names of the module."""
