"""`akg.utils`: the checks that AKG kernels call on their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from msops._loops.frontends.tvm.tensor import Tensor
from msops._loops.frontends.tvm.tracing import type_error, wrong_type, wrong_value

CCE, CUDA, CPU, LLVM = "cce", "cuda", "cpu", "llvm"


class DtypeForDavinci:
    """Groups of dtypes, for `ops_dtype_check`."""

    BOOL = ("bool",)
    FLOAT16 = ("float16",)
    FLOAT32 = ("float32",)
    INT8 = ("int8",)
    INT16 = ("int16",)
    INT32 = ("int32",)
    INT64 = ("int64",)
    UINT8 = ("uint8",)
    UINT16 = ("uint16",)
    UINT32 = ("uint32",)
    UINT64 = ("uint64",)
    ALL_INT = ("int8", "int16", "int32", "int64")
    ALL_UINT = ("uint8", "uint16", "uint32", "uint64")
    ALL_FLOAT = ("float16", "float32")
    ALL_TYPES = ("bool", *ALL_INT, *ALL_UINT, *ALL_FLOAT)


def get_shape(data: Any) -> list[int]:
    """Returns the shape of a tensor, or a shape itself, as a list of ints."""
    shape = data.shape if isinstance(data, Tensor) else data
    return [int(extent) for extent in shape]


def check_shape(tensor: Any, length: int | None = None, tensor_name: str = "") -> None:
    """Checks that a shape holds positive extents, `length` of them if that is given."""
    shape = get_shape(tensor)
    if min(shape, default=1) <= 0 or (length is not None and len(shape) != length):
        wanted = "positive extents" if length is None else f"{length} positive extents"
        raise wrong_value(
            f"expected a shape of {wanted} for {tensor_name or 'the tensor'}; got {shape}",
            "Call the kernel with another shape.",
        )


def elemwise_shape_check(shape_a: Any, shape_b: Any) -> None:
    """Checks that two shapes are equal."""
    _check_equal(get_shape(shape_a), get_shape(shape_b))


def elemwise_dtype_check(dtype_a: Any, dtype_b: Any, supported_type: Any = None) -> None:
    """Checks that two dtypes are equal, and among those given."""
    _check_equal(str(dtype_a).lower(), str(dtype_b).lower())
    if supported_type is not None:
        ops_dtype_check(dtype_a, supported_type)


def _check_equal(left: Any, right: Any) -> None:
    if left != right:
        raise wrong_value(
            f"expected the same of both; got {left} and {right}",
            "Call the kernel with inputs that agree.",
        )


def ops_dtype_check(dtype: Any, args: Any) -> None:
    """Checks that a dtype, or each of several, is among dtypes or groups of them."""
    known = set(_flat(args))
    for each in dtype if isinstance(dtype, (list, tuple)) else (dtype,):
        if str(each).lower() not in known:
            raise wrong_type(
                f"expected one of {', '.join(sorted(known))}; got {each}",
                "Cast the input, or widen the check.",
            )


def _flat(args: Any) -> list[str]:
    if isinstance(args, str):
        return [args]
    return [name for part in args for name in _flat(part)]


def auto_broadcast_check(shape_a: Any, shape_b: Any) -> None:
    """Checks that two shapes can be broadcast together."""
    left, right = get_shape(shape_a), get_shape(shape_b)
    for x, y in zip(reversed(left), reversed(right), strict=False):
        if x != y and 1 not in (x, y):
            raise wrong_value(
                f"the shapes {left} and {right} cannot be broadcast together",
                "Aligned at their last dimensions, extents must be equal or 1.",
            )


def reduce_axis_check(reduce_shape: Any, reduce_axis: Any) -> None:
    """Checks that axes belong to a shape."""
    ndim = len(get_shape(reduce_shape))
    axes: Sequence[Any] = reduce_axis if isinstance(reduce_axis, (list, tuple)) else (reduce_axis,)
    for axis in axes:
        if axis is not None and not -ndim <= axis < ndim:
            raise wrong_value(
                f"expected axes in [{-ndim}, {ndim}); got {axis}",
                f"The tensor has {ndim} dimensions.",
            )


def broadcast_check(ori_shape: Any, dst_shape: Any) -> None:
    """Checks that a tensor of the first shape can be broadcast to the second."""
    given, wanted = get_shape(ori_shape), get_shape(dst_shape)
    aligned = [1] * (len(wanted) - len(given)) + given
    if len(given) > len(wanted) or any(
        x not in (1, y) for x, y in zip(aligned, wanted, strict=True)
    ):
        raise wrong_value(
            f"the shape {given} cannot be broadcast to {wanted}",
            "Aligned at their last dimensions, extents must be equal, or the first's 1.",
        )


def axis_check(shape_len: int, axis: Any) -> Any:
    """Returns axes of so many dimensions counted from 0: one, or a sorted list without doubles."""
    reduce_axis_check([1] * shape_len, axis)
    if isinstance(axis, int):
        return axis % shape_len
    return sorted({each % shape_len for each in axis})


def refine_reduce_axis(input_shape: Any, axis: Any) -> list[int]:
    """Returns the axes of a reduction counted from 0, the last one first; None means all."""
    ndim = len(get_shape(input_shape))
    axes = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    reduce_axis_check(input_shape, list(axes))
    return sorted((each % ndim for each in axes), reverse=True)


def is_valid_reduce_axis(tensor: Any, reduce_axis: Any) -> bool:
    """Returns whether none of the reduced extents is 1."""
    shape = get_shape(tensor)
    axes = (reduce_axis,) if isinstance(reduce_axis, int) else reduce_axis
    return all(shape[axis] != 1 for axis in axes)


def check_equal(arg_name1: str, arg_name2: str, arg1: Any, arg2: Any) -> None:
    """Checks that two values are equal."""
    if arg1 != arg2:
        raise wrong_value(
            f"expected {arg_name1} to be equal to {arg_name2}; got {arg1} and {arg2}",
            "Call the kernel with inputs that agree.",
        )


def check_greater(arg_name1: str, arg_name2: str, arg1: Any, arg2: Any) -> None:
    """Checks that the first value is greater than the second."""
    if not arg1 > arg2:
        raise wrong_value(
            f"expected {arg_name1} to be greater than {arg_name2}; got {arg1} and {arg2}",
            "Call the kernel with other values.",
        )


def check_value_on_integer(
    arg_name: str, arg_value: Any, low: Any = None, high: Any = None
) -> None:
    """Checks that a value is an int, at least `low` and less than `high`."""
    is_int = isinstance(arg_value, int) and not isinstance(arg_value, bool)
    if not is_int or (low and arg_value < low) or (high and arg_value >= high):
        raise wrong_value(
            f"expected {arg_name} to be an int in [{low}, {high}); got {arg_value!r}",
            "Call the kernel with another value.",
        )


def check_int_list(array: Any, array_name: str) -> None:
    """Checks that all values of a list are ints."""
    for number in array:
        if not isinstance(number, int):
            raise wrong_type(
                f"expected ints in {array_name}; got {number!r} ({type(number).__name__})",
                "Pass ints.",
            )


def check_shape_length_equal(tensor_name: str, tensor_shape: Any, shape_length: Any) -> None:
    """Checks that a shape has as many dimensions as given, or one of several numbers of them."""
    lengths = shape_length if isinstance(shape_length, (list, tuple)) else (shape_length,)
    if len(tensor_shape) not in lengths:
        raise wrong_value(
            f"expected {tensor_name} to have {' or '.join(map(str, lengths))} dimensions; got "
            f"{len(tensor_shape)}",
            "Call the kernel with another shape.",
        )


_BACKENDS = {CCE: "Ascend", CUDA: "GPU", LLVM: "CPU"}


def get_backend(target_: str) -> str:
    """Returns what AKG calls the machine of a target such as ``"cuda -mcpu=sm_80"``."""
    return _BACKENDS.get(target_.split()[0], "UNKNOWN")


def check_supported_target(target: str) -> None:
    """Checks that a target is one of AKG's."""
    if get_backend(target) == "UNKNOWN":
        raise wrong_value(
            f"expected a target of {', '.join(_BACKENDS)}; got {target!r}",
            "Pass one of them; the op runs where its arrays are.",
        )


def check_input_type(*types: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Returns a decorator that checks the types of positional arguments.

    Args:
      *types: per argument, a type or a tuple of types; None is the type of None.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def checked(*args: Any, **options: Any) -> Any:
            for position, (arg, wanted) in enumerate(zip(args, types, strict=False)):
                if not isinstance(arg, _as_types(wanted)):
                    raise type_error(
                        function.__name__,
                        f"argument {position} has a wrong type, {type(arg).__name__}",
                        f"Expected {wanted}.",
                    )
            return function(*args, **options)

        return checked

    return decorate


def _as_types(wanted: Any) -> tuple[type, ...]:
    given = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
    return tuple(type(None) if each is None else each for each in given)


def product_is_mini() -> bool:
    """Returns whether the target is Ascend 310, whose vector units know less; it is not."""
    return False


def is_symbolic_tiling(op_name: Any = None) -> bool:
    """Returns whether AKG tiles an operator for symbolic shapes; shapes are known here."""
    return False


def get_runtime_mode() -> str:
    """Returns where AKG runs an operator it tests; here the op runs as it is called."""
    return "rpc"


BLOCKS = {"BLOCK_IN": 16, "BLOCK_OUT": 16, "BLOCK_REDUCE": 16, "BLOCK_INT8": 32}
"""Extents of the matrix unit's tiles, which the formats of Ascend have as dimensions."""

KERNEL_EXEC: dict[str, Any] = {
    **BLOCKS,
    "get_runtime_mode": get_runtime_mode,
    "is_symbolic_tiling": is_symbolic_tiling,
    "product_is_mini": product_is_mini,
}
"""The contents of `akg.utils.kernel_exec`."""

FORMAT_TRANSFORM: dict[str, Any] = {
    "get_shape": get_shape,
    "refine_reduce_axis": refine_reduce_axis,
}
"""The contents of `akg.utils.format_transform`."""

CONSTANTS: dict[str, Any] = {
    # The key under which a kernel's attributes say that results share the memory of inputs.
    "BINDS": "binds",
    "CCE": CCE,
    "CPU": CPU,
    "CUDA": CUDA,
    "LLVM": LLVM,
}
"""The contents of `akg.utils` beside the functions and classes of this module."""
