"""`akg.utils`: the checks that AKG kernels call on their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from msops._loops.frontends.tvm.tensor import Tensor
from msops._loops.frontends.tvm.tracing import type_error, value_error

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
        raise value_error(
            "akg.utils.check_shape",
            f"expected a shape of {wanted} for {tensor_name or 'the tensor'}; got {shape}",
            "Call the kernel with another shape.",
        )


def elemwise_shape_check(shape_a: Any, shape_b: Any) -> None:
    """Checks that two shapes are equal."""
    _check_equal("elemwise_shape_check", get_shape(shape_a), get_shape(shape_b))


def elemwise_dtype_check(dtype_a: Any, dtype_b: Any, supported_type: Any = None) -> None:
    """Checks that two dtypes are equal, and among those given."""
    _check_equal("elemwise_dtype_check", str(dtype_a).lower(), str(dtype_b).lower())
    if supported_type is not None:
        ops_dtype_check(dtype_a, supported_type)


def _check_equal(name: str, left: Any, right: Any) -> None:
    if left != right:
        raise value_error(
            f"akg.utils.{name}",
            f"expected the same of both; got {left} and {right}",
            "Call the kernel with inputs that agree.",
        )


def ops_dtype_check(dtype: Any, args: Any) -> None:
    """Checks that a dtype, or each of several, is among dtypes or groups of them."""
    known = set(_flat(args))
    for each in dtype if isinstance(dtype, (list, tuple)) else (dtype,):
        if str(each).lower() not in known:
            raise type_error(
                "akg.utils.ops_dtype_check",
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
            raise value_error(
                "akg.utils.auto_broadcast_check",
                f"the shapes {left} and {right} cannot be broadcast together",
                "Aligned at their last dimensions, extents must be equal or 1.",
            )


def reduce_axis_check(reduce_shape: Any, reduce_axis: Any) -> None:
    """Checks that axes belong to a shape."""
    ndim = len(get_shape(reduce_shape))
    axes: Sequence[Any] = reduce_axis if isinstance(reduce_axis, (list, tuple)) else (reduce_axis,)
    for axis in axes:
        if axis is not None and not -ndim <= axis < ndim:
            raise value_error(
                "akg.utils.reduce_axis_check",
                f"expected axes in [{-ndim}, {ndim}); got {axis}",
                f"The tensor has {ndim} dimensions.",
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
"""What `akg.utils.kernel_exec` holds."""

NAMES: dict[str, Any] = {
    "CCE": CCE,
    "CPU": CPU,
    "CUDA": CUDA,
    "LLVM": LLVM,
    "DtypeForDavinci": DtypeForDavinci,
    **KERNEL_EXEC,
    "auto_broadcast_check": auto_broadcast_check,
    "check_input_type": check_input_type,
    "check_shape": check_shape,
    "elemwise_dtype_check": elemwise_dtype_check,
    "elemwise_shape_check": elemwise_shape_check,
    "get_shape": get_shape,
    "ops_dtype_check": ops_dtype_check,
    "reduce_axis_check": reduce_axis_check,
}
"""What `akg.utils` holds."""
