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
from msops.errors import ArgumentValueError

Array = Any


def _listed(values: tuple[Any, ...]) -> Any:
    """Extents or axes given one by one, or as one tuple or list."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        return tuple(values[0])
    return values


def _reshape(x: Array, *shape: Any) -> Array:
    return jnp.reshape(x, _listed(shape))


def _transpose(x: Array, *axes: Any) -> Array:
    return jnp.transpose(x, _listed(axes) or None)


def _broadcast_to(x: Array, *shape: Any) -> Array:
    return jnp.broadcast_to(x, _listed(shape))


def _expand_as(x: Array, other: Array) -> Array:
    return jnp.broadcast_to(x, other.shape)


def _ravel(x: Array) -> Array:
    return jnp.reshape(x, -1)


def _flatten(x: Array, order: str = "C", *, start_dim: int = 0, end_dim: int = -1) -> Array:
    return m.flatten(x, order, start_dim=start_dim, end_dim=end_dim)


def _chunk(x: Array, chunks: int, dim: int = 0) -> tuple[Array, ...]:
    if chunks < 1 or not -x.ndim <= dim < x.ndim:
        raise ArgumentValueError.explained(
            "Tensor.chunk",
            f"expected chunks above 0 and an axis of shape {x.shape}; got {chunks} and {dim}",
            "1 is the whole.",
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


def _to_dtype(dtype: str) -> Callable[[Array], Array]:
    return lambda x: m.cast(x, dtype)


def _astype(x: Array, dtype: Any, copy: bool = True) -> Array:
    # Arrays are immutable, so a shared one is as good as a copy.
    return m.cast(x, dtype)


def _sum(x: Array, axis: m.Axis = None, dtype: Any = None, keepdims: bool = False) -> Array:
    dtype = m.sum_dtype(x.dtype) if dtype is None else as_dtype(dtype).dtype
    return jnp.sum(x, axis=m._axes(axis), dtype=dtype, keepdims=keepdims)


def _reduced(function: Callable[..., Array]) -> Callable[..., Array]:
    def method(x: Array, axis: m.Axis = None, keepdims: bool = False) -> Array:
        return function(x, axis, keepdims)

    return method


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


def _extreme(best: Callable[..., Array], index: Callable[..., Array]) -> Callable[..., Any]:
    def method(
        x: Array,
        *dim: int,
        axis: m.Axis = None,
        keepdims: bool = False,
    ) -> Any:
        # By position MindSpore 2.7.2 takes a dim and also returns where the entries are.
        if dim:
            where = index(x, axis=dim[0], keepdims=keepdims).astype(np.int64)
            return method(x, axis=dim[0], keepdims=keepdims), where
        if isinstance(axis, int) and jnp.issubdtype(x.dtype, jnp.floating):
            return _along(best, index, axis, keepdims, x)
        return best(x, axis=m._axes(axis), keepdims=keepdims)

    return method


def _spread(function: Callable[..., Array]) -> Callable[..., Array]:
    def method(x: Array, axis: m.Axis = None, ddof: int = 0, keepdims: bool = False) -> Array:
        return function(m._floating(x), axis=m._axes(axis), ddof=ddof, keepdims=keepdims)

    return method


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


# Methods that are the functions of `array_math` with the same name.
_OF_ARRAYS = """
    abs add argmax argmin cast ceil clip cos div erf exp expand_dims expm1 floor isfinite isnan
    log log1p logical_and logical_not logical_or matmul maximum minimum mul neg pow reciprocal
    rsqrt sigmoid sign sin split sqrt square squeeze sub tan tanh
"""

_IN_PLACE = "add clamp div exp fill floor log mul sigmoid sign sub tanh"

METHODS: dict[str, Callable[..., Any]] = {
    **{name: getattr(m, name) for name in _OF_ARRAYS.split()},
    "all": _reduced(m.all),
    "any": _reduced(m.any),
    "astype": _astype,
    "bool": _to_dtype("bool"),
    "broadcast_to": _broadcast_to,
    "chunk": _chunk,
    "clamp": m.clip,
    "contiguous": jnp.asarray,
    "cumsum": m.cumsum,
    "dim": jnp.ndim,
    "double": _to_dtype("float64"),
    "eq": m.equal,
    "expand_as": _expand_as,
    "fill": _fill,
    "flatten": _flatten,
    "float": _to_dtype("float32"),
    "ge": m.greater_equal,
    "gt": m.greater,
    "half": _to_dtype("float16"),
    "index_select": _index_select,
    "int": _to_dtype("int32"),
    "is_floating_point": _is_floating_point,
    "le": m.less_equal,
    "long": _to_dtype("int64"),
    "lt": m.less,
    "max": _extreme(extremes.amax, jnp.argmax),
    "mean": _reduced(m.mean),
    "min": _extreme(extremes.amin, jnp.argmin),
    "ne": m.not_equal,
    "numel": jnp.size,
    "permute": _transpose,
    "prod": _reduced(m.prod),
    "ravel": _ravel,
    "repeat": _repeat,
    "repeat_interleave": _repeat_interleave,
    "reshape": _reshape,
    "round": _round,
    "std": _spread(jnp.std),
    "sum": _sum,
    "swapaxes": jnp.swapaxes,
    "tile": jnp.tile,
    "to": m.cast,
    "transpose": _transpose,
    "unsqueeze": m.expand_dims,
    "var": _spread(jnp.var),
    "view": _reshape,
}

# With an underscore behind the name, these give the Tensor its result.
IN_PLACE: dict[str, Callable[..., Array]] = {
    **{name: METHODS[name] for name in _IN_PLACE.split()},
    "copy": _copy_of,
    "floor_divide": m.floor_div,
    "masked_fill": _masked_fill,
    "remainder": m.mod,
    "zero": jnp.zeros_like,
}

UNARY_OPERATORS: dict[str, Callable[[Array], Array]] = {
    "__abs__": m.abs,
    "__invert__": _invert,
    "__neg__": m.neg,
    "__pos__": jnp.positive,
    "__round__": jnp.round,
}

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
