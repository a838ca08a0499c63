"""Methods and operators of Tensor: one table of functions of arrays, with method signatures.

`msops._face.tensor` attaches every row to the class. A row is here only where a method's signature
differs from the function of `msops._face.array_math`.

Source: MindSpore 2.7.2, mindspore/common/tensor.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._base import extremes
from msops._base.dtypes import as_dtype
from msops._face import array_math as m
from msops._face.argument_names import ARGUMENTS, named
from msops._face.array_arithmetic import kind_of, typed
from msops._face.axes import Axis, axes_of, axis_of
from msops._face.tensor_data import as_array
from msops.errors import ArgumentTypeError, ArgumentValueError

Array = Any


def _listed(values: tuple[Any, ...]) -> Any:
    """Extents or axes given one by one, or as one tuple or list."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        return tuple(values[0])
    return values


def _reshape(x: Array, *shape: Any) -> Array:
    return jnp.reshape(x, _listed(shape))


def _transpose(x: Array, *axes: Any) -> Array:
    # Two numbers are axes to swap, even if they are all that there are.
    if len(axes) == 2:
        return _swapaxes(x, *axes)
    return _permute(x, *axes)


def _permute(x: Array, *axes: Any) -> Array:
    return jnp.transpose(x, _listed(axes) if axes else None)


def _swapaxes(x: Array, axis0: int, axis1: int) -> Array:
    both = {axis0, axis1}
    if x.ndim == 0 and both <= {0, -1}:
        return x
    places = (axis_of(x, axis, "Tensor.swapaxes") for axis in (axis0, axis1))
    return jnp.swapaxes(x, *places)


def _broadcast_to(x: Array, *shape: Any) -> Array:
    return m.broadcast_to(x, _listed(shape))


def _expand_as(x: Array, other: Array) -> Array:
    return jnp.broadcast_to(x, other.shape)


def _ravel(x: Array) -> Array:
    return jnp.reshape(x, -1)


def _flatten(
    x: Array, *first: Any, order: str = "C", start_dim: int = 0, end_dim: int = -1
) -> Array:
    # By position MindSpore takes an order, or the first and the last axis.
    if first and isinstance(first[0], str):
        (order,) = first
    elif first:
        start_dim, end_dim = (*first, end_dim) if len(first) == 1 else first
    return m.flatten(x, order, start_dim=start_dim, end_dim=end_dim)


def _chunk(x: Array, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    dim = axis_of(x, dim, "Tensor.chunk")
    if chunks < 1:
        raise ArgumentValueError.explained(
            "Tensor.chunk", f"expected chunks above 0; got {chunks}", "1 is the whole."
        )
    return m.split(x, -(-x.shape[dim] // chunks) or 1, dim)


def _index_select(x: Array, axis: int | None = None, index: Any = None, *, dim: Any = None) -> Any:
    return m.gather(x, index, dim if axis is None else axis)


def _repeat(x: Array, *repeats: Any) -> Array:
    counts = _listed(repeats)
    if len(counts) < x.ndim:
        raise ArgumentValueError.explained(
            "Tensor.repeat",
            f"expected {x.ndim} repeats or more, one per axis; got {counts}",
            "Pass 1 for an axis that stays; repeat_interleave repeats entries.",
        )
    return jnp.tile(x, counts)


def _repeat_interleave(x: Array, repeats: Any, dim: int | None = None) -> Array:
    if isinstance(repeats, int) and repeats < 1:
        raise ArgumentValueError.explained(
            "Tensor.repeat_interleave", f"expected repeats above 0; got {repeats}", "1 copies."
        )
    return jnp.repeat(x, repeats, axis=dim)


def _scaled(function: Callable[[Array, Array], Array], takes_lists: bool) -> Callable[..., Array]:
    """A sum or difference with `alpha` times the other operand, as ``Tensor.add`` takes it."""

    def method(x: Array, other: Any, *, alpha: Any = 1) -> Array:
        if isinstance(other, (list, tuple)) and takes_lists:
            other = as_array(other, as_dtype(x.dtype))
        if type(alpha) is int and alpha == 1:
            return function(x, other)
        dtype = function(x, other).dtype
        return function(x.astype(dtype), m.mul(_factor(alpha, dtype), other).astype(dtype))

    return method


def _factor(alpha: Any, dtype: np.dtype) -> Array:
    is_number = isinstance(alpha, (int, float, np.number)) and not isinstance(alpha, bool)
    if not (is_number or hasattr(alpha, "shape")) or kind_of(jnp.result_type(alpha)) > max(
        kind_of(dtype), 1
    ):
        raise ArgumentTypeError.explained(
            "Tensor.add",
            f"expected a number as alpha, an int beside integers; got {alpha!r}",
            "Multiply the other Tensor by it.",
        )
    # An array: a number of numpy would count as Python's.
    return jnp.asarray(alpha if hasattr(alpha, "shape") else typed(alpha, dtype)).astype(dtype)


def _to_dtype(dtype: str) -> Callable[[Array], Array]:
    return lambda x: m.cast(x, dtype)


def _astype(x: Array, dtype: Any, copy: bool = True) -> Array:
    # Arrays are immutable, so a shared one is as good as a copy.
    return m.cast(x, dtype)


def _sum(
    x: Array, axis: Axis = None, dtype: Any = None, keepdims: bool = False, initial: Any = None
) -> Array:
    # By position MindSpore takes a dtype, or whether to keep the axes.
    if isinstance(dtype, bool):
        dtype, keepdims = None, dtype
    total = m.sum(x, axis, keepdims, dtype)
    if initial is None:
        return total
    total = m.add(total, initial)
    return total if dtype is None or as_dtype(dtype).name != "bool" else total.astype(bool)


def _mean(x: Array, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> Array:
    return m.mean(x if dtype is None else m.cast(x, dtype), axis, keepdims)


def _tile(x: Array, *dims: Any) -> Array:
    return jnp.tile(x, _listed(dims))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2, 3))
def _along(
    best: Callable[..., Array], index: Callable[..., Array], dim: int, keepdims: bool, x: Array
) -> Array:
    return best(x, axis=dim, keepdims=keepdims)


@_along.defjvp
def _along_jvp(
    best: Callable[..., Array],
    index: Callable[..., Array],
    dim: int,
    keepdims: bool,
    primals: tuple[Array],
    tangents: tuple[Array],
) -> tuple[Array, Array]:
    (x,), (dx,) = primals, tangents
    # Of equal entries the first has the slope; those of all axes together share it.
    slope = jnp.take_along_axis(dx, index(x, axis=dim, keepdims=True), axis=dim)
    return best(x, axis=dim, keepdims=keepdims), slope if keepdims else jnp.squeeze(slope, dim)


def _extreme(
    best: Callable[..., Array], index: Callable[..., Array], of_two: Callable[..., Array], who: str
) -> Callable[..., Any]:
    def method(
        x: Array,
        dim: Axis = None,
        keepdim: bool | None = None,
        *,
        axis: Axis = None,
        keepdims: bool | None = None,
        initial: Any = None,
        where: Any = None,
        return_indices: bool = False,
    ) -> Any:
        # A dim that is an int asks for the places, too, unless other names say otherwise.
        has_others = not (keepdims is initial is where is None)
        is_pair = isinstance(dim, int) and not has_others
        axis = axis if dim is None else dim
        # Of all entries it is a number, whatever else there is, as in MindSpore 2.10.0,
        # mindspore/ops/function/array_func.py, max.
        kept = bool(keepdims or keepdim) and axis is not None
        if axis is not None:
            x = m.started(of_two, x, initial, where, who)
        if is_pair or (return_indices and isinstance(axis, int)):
            places = index(x, axes_of(x, axis, who), keepdims=kept).astype(np.int64)
            return value(x, axis, kept), places
        return value(x, axis, kept)

    def value(x: Array, axis: Axis, kept: bool) -> Array:
        axis = axes_of(x, axis, who)
        if isinstance(axis, int) and jnp.issubdtype(x.dtype, jnp.floating):
            return _along(best, index, axis, kept, x)
        return best(x, axis=axis, keepdims=kept)

    return method


def _std(x: Array, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Array:
    return jnp.sqrt(m.var(x, axis, ddof, keepdims))


def _round(x: Array, decimals: int = 0) -> Array:
    return jnp.round(x, decimals)


def _fill(x: Array, value: Any) -> Array:
    return m.full_like(x, value)


def _copy_of(x: Array, source: Array) -> Array:
    return jnp.broadcast_to(jnp.asarray(source).astype(x.dtype), x.shape)


def _masked_fill(x: Array, mask: Array, value: Any) -> Array:
    return jnp.where(mask, jnp.asarray(value).astype(x.dtype), x)


def _is_floating_point(x: Array) -> bool:
    return bool(jnp.issubdtype(x.dtype, jnp.floating))


def _invert(x: Array) -> Array:
    # MindSpore's ~ is LogicalNot, for integers too.
    return jnp.logical_not(x)


# Methods that are the functions of `array_math` with the same name, and names of their arguments.
_OF_ARRAYS = """
    abs argmax argmin cast ceil clip cos div erf exp expand_dims expm1
    floor isfinite isnan log log1p logical_and logical_not logical_or matmul maximum minimum mul neg
    pow reciprocal rsqrt sigmoid sign sin split sqrt square squeeze tan tanh
"""
_OF_REDUCTIONS = "input axis/dim keepdims/keepdim/keep_dims dtype"
_NAMES = {
    "argmax": _OF_REDUCTIONS,
    "argmin": _OF_REDUCTIONS,
    "matmul": "input tensor2",
    "split": "input split_size axis/dim",
}

_IN_PLACE = "clamp div exp fill floor log mul sigmoid sign tanh"

METHODS: dict[str, Callable[..., Any]] = {
    **{
        name: named(getattr(m, name), _NAMES.get(name, ARGUMENTS[name]))
        for name in _OF_ARRAYS.split()
    },
    "add": named(_scaled(m.add, True), "input other"),
    "all": named(m.all, _OF_REDUCTIONS),
    "any": named(m.any, _OF_REDUCTIONS),
    "astype": _astype,
    "bool": _to_dtype("bool"),
    "broadcast_to": named(_broadcast_to, "input shape"),
    "chunk": _chunk,
    "clamp": m.clip,
    "contiguous": jnp.asarray,
    "cumsum": named(m.cumsum, "input dim"),
    "dim": jnp.ndim,
    "double": _to_dtype("float64"),
    "eq": named(m.equal, "input other"),
    "expand_as": _expand_as,
    "fill": _fill,
    "flatten": _flatten,
    "float": _to_dtype("float32"),
    "ge": named(m.greater_equal, "input other"),
    "gt": named(m.greater, "input other"),
    "half": _to_dtype("float16"),
    "index_select": _index_select,
    "int": _to_dtype("int32"),
    "is_floating_point": _is_floating_point,
    "le": named(m.less_equal, "input other"),
    "long": _to_dtype("int64"),
    "lt": named(m.less, "input other"),
    "max": _extreme(extremes.amax, jnp.argmax, jnp.maximum, "Tensor.max"),
    "mean": named(_mean, _OF_REDUCTIONS),
    "min": _extreme(extremes.amin, jnp.argmin, jnp.minimum, "Tensor.min"),
    "ne": named(m.not_equal, "input other"),
    "numel": jnp.size,
    "permute": named(_permute, "input dims/axis"),
    "prod": named(m.prod, _OF_REDUCTIONS),
    "ravel": _ravel,
    "repeat": _repeat,
    "repeat_interleave": _repeat_interleave,
    "reshape": named(_reshape, "input shape"),
    "round": _round,
    "std": named(_std, "input axis/dim ddof/correction keepdims/keepdim"),
    "sub": named(_scaled(m.sub, True), "input other/y"),
    "sum": named(_sum, "input axis/dim dtype keepdims/keepdim"),
    "swapaxes": _swapaxes,
    "tile": named(_tile, "input dims/reps"),
    "to": m.cast,
    "transpose": named(_transpose, "input dim0/axes dim1"),
    "unsqueeze": named(m.expand_dims, "input dim"),
    "var": m.var,
    "view": named(_reshape, "input shape"),
}

# With an underscore behind the name, these give the Tensor its result.
IN_PLACE: dict[str, Callable[..., Array]] = {
    **{name: METHODS[name] for name in _IN_PLACE.split()},
    "add": named(_scaled(m.add, False), "input other"),
    "copy": _copy_of,
    "floor_divide": m.floor_div,
    "masked_fill": _masked_fill,
    "remainder": m.mod,
    "sub": named(_scaled(m.sub, False), "input other"),
    "zero": jnp.zeros_like,
}

UNARY_OPERATORS: dict[str, Callable[[Array], Array]] = {
    "__abs__": m.abs,
    "__invert__": _invert,
    "__neg__": m.neg,
    "__pos__": jnp.positive,
    "__round__": jnp.round,
}

OF_LISTS = ("add", "sub")
"""Operators and methods that take a list or tuple, in the dtype of the Tensor beside it."""

# Every row also gives the reflected operator.
ARITHMETIC_OPERATORS: dict[str, Callable[[Array, Array], Array]] = {
    "add": m.add,
    "and": m.bitwise_and,
    "floordiv": m.floor_div,
    "matmul": m.matmul,
    "mod": m.mod,
    "mul": m.mul,
    "or": m.bitwise_or,
    "pow": m.pow,
    "sub": m.sub,
    "truediv": m.div,
    "xor": m.bitwise_xor,
}

COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "__ge__": m.greater_equal,
    "__gt__": m.greater,
    "__le__": m.less_equal,
    "__lt__": m.less,
}
