"""The greatest and least elements of arrays, NaN if one is: every reduction of msops by max or min.

XLA hands reductions of floats to YNNPACK on a CPU, from some 4,096 elements on. Its max and min
drop a NaN, but for 16-bit floats with the right sign. It gets every form that XLA can write as a
reduction, as windows that do not overlap or that cover an axis, if `maximum` or `minimum` combines
two elements. So what combines here is something else:

- of windows, `-min(-a, -b)`, which XLA's own code computes as fast for small windows.
- along one axis, but the last, integers in the order of the floats, a NaN beyond all others.
- along several, but the last, the plain extreme, and beside it whether there is a NaN, and of which
  signs the numbers are: YNNPACK gives either one of 0 and -0. XLA's own code is slow over several
  axes.
- along the last axis a second result, whether a NaN has been seen, which makes XLA's code fast.

None of them but windows has a combination of its own that devices would have to share: XLA on a CPU
has extremes and sums alone for that. 16-bit floats are compared in float32 where not as integers.

A slope goes to the elements that equal the extreme, in equal shares. None equals a NaN: an extreme
that is NaN has the slope 0 in loop kernels. `amax` and `amin` give NaN to all elements there, as
`jax.numpy` does.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = Any
Axes = int | Sequence[int] | None
Window = tuple[tuple[Any, ...], ...]

_PLAIN: dict[str, Callable[[Array, Array], Array]] = {"max": lax.max, "min": lax.min}
_PLAIN_REDUCTIONS = {"max": lax.reduce_max, "min": lax.reduce_min}
_MIRRORED = {"max": lax.min, "min": lax.max}


def amax(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """Returns what `jax.numpy.max` does, NaN if an element is."""
    return _as_in_numpy(jnp.max, "max", _hashable(axis), keepdims, x)


def amin(x: Array, axis: Axes = None, keepdims: bool = False) -> Array:
    """Returns what `jax.numpy.min` does, NaN if an element is."""
    return _as_in_numpy(jnp.min, "min", _hashable(axis), keepdims, x)


def _hashable(axis: Axes) -> int | tuple[int, ...] | None:
    return tuple(axis) if isinstance(axis, Sequence) else axis


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3), inline=True)
def _as_in_numpy(
    plain: Callable[..., Array],
    op: str,
    axis: int | tuple[int, ...] | None,
    keepdims: bool,
    x: Array,
) -> Array:
    plain = functools.partial(plain, axis=axis, keepdims=keepdims)
    # What is wrong with the arguments is for jax.numpy to say.
    shape = jax.eval_shape(plain, x).shape
    if not _is_float(x):
        return plain(x)
    axes = range(x.ndim) if axis is None else np.atleast_1d(axis) % x.ndim
    return lax.reshape(reduce_extreme(op, x, tuple(map(int, axes)), has_nan_slope=True), shape)


def reduce_numbers(op: str, x: Array, axes: Sequence[int]) -> Array:
    """Returns the extremes of floats of which none is NaN; of 0 and -0 either one."""
    return _reduced(op, tuple(axes), None, x)


def reduce_extreme(op: str, x: Array, axes: Sequence[int], has_nan_slope: bool = False) -> Array:
    """Returns what `lax.reduce_max` or `lax.reduce_min` does, NaN if an element is.

    Args:
      op: "max" or "min".
      x: what is reduced.
      axes: the axes.
      has_nan_slope: whether the slope of a NaN is NaN, and not 0.
    """
    if not axes or not _is_float(x):
        return _PLAIN_REDUCTIONS[op](x, axes)
    return _reduced(op, tuple(axes), has_nan_slope, x)


def window_extreme(
    op: str,
    x: Array,
    lengths: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    dilations: Sequence[int],
) -> Array:
    """Returns the extremes of windows, NaN if an element is; see `lax.reduce_window`."""
    window = (tuple(lengths), tuple(strides), tuple(padding), tuple(dilations))
    if not _is_float(x):
        return _plain_windows(op, window, _PLAIN[op], x)
    return _in_float32(functools.partial(_of_windows, op, window), x)


def _is_float(x: Array) -> bool:
    return jnp.issubdtype(x.dtype, jnp.floating)


def _in_float32(extreme: Callable[[Array], Array], x: Array) -> Array:
    """Returns the extreme of floats that are widened to float32 if they are narrower."""
    wide = lax.convert_element_type(x, jnp.promote_types(x.dtype, np.float32))
    return lax.convert_element_type(extreme(wide), x.dtype)


def _worst(op: str, dtype: np.dtype) -> np.ndarray:
    """Returns what any element replaces."""
    if dtype.kind == "f":
        return np.asarray(-np.inf if op == "max" else np.inf, dtype)
    if dtype.kind == "b":
        return np.asarray(op == "min")
    limits = jnp.iinfo(dtype)
    return np.asarray(limits.min if op == "max" else limits.max, dtype)


def _combine(op: str) -> Callable[[Array, Array], Array]:
    """Returns the extreme of two, in words that XLA does not take for one operation."""
    mirrored = _MIRRORED[op]
    return lambda x, y: lax.neg(mirrored(lax.neg(x), lax.neg(y)))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1, 2))
def _reduced(op: str, axes: tuple[int, ...], has_nan_slope: bool | None, x: Array) -> Array:
    if has_nan_slope is None:
        return _PLAIN_REDUCTIONS[op](x, axes)
    if x.ndim - 1 in axes:
        return _in_float32(functools.partial(_beside_seen_nan, op, axes), x)
    return (_of_keys if len(axes) == 1 else _beside_nan)(op, axes, x)


def _beside_seen_nan(op: str, axes: tuple[int, ...], x: Array) -> Array:
    def combine(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array]:
        return _PLAIN[op](one[0], other[0]), lax.bitwise_or(one[1], other[1])

    starts = (_worst(op, x.dtype), np.False_)
    best, has_nan = lax.reduce((x, lax.ne(x, x)), starts, combine, axes)
    return lax.select(has_nan, lax.full_like(best, np.nan), best)


def _beside_nan(op: str, axes: tuple[int, ...], x: Array) -> Array:
    best = _PLAIN_REDUCTIONS[op](x, axes)
    # As numbers, since XLA's code for bools is slow: 2 for NaN, 1 for the sign that the extreme has
    # if one number has it.
    bits = lax.bitcast_convert_type(x, np.dtype(f"int{8 * x.dtype.itemsize}"))
    decides = (lax.ge if op == "max" else lax.lt)(bits, lax.full_like(bits, 0))
    ones = lax.convert_element_type(decides, np.int8)
    marks = lax.reduce_max(lax.select(lax.ne(x, x), lax.full_like(ones, 2), ones), axes)
    zero = lax.full_like(best, 0)
    has_sign = lax.eq(marks, lax.full_like(marks, 1))
    positive, negative = zero, lax.neg(zero)
    signed = lax.select(has_sign, *((positive, negative) if op == "max" else (negative, positive)))
    best = lax.select(lax.eq(best, zero), signed, best)
    return lax.select(lax.gt(marks, lax.full_like(marks, 1)), lax.full_like(best, np.nan), best)


def _of_keys(op: str, axes: tuple[int, ...], x: Array) -> Array:
    bits = lax.bitcast_convert_type(x, np.dtype(f"int{8 * x.dtype.itemsize}"))
    beyond = lax.full_like(bits, _worst("min" if op == "max" else "max", bits.dtype))
    keys = lax.select(lax.ne(x, x), beyond, _mirrored(bits))
    return lax.bitcast_convert_type(_mirrored(_PLAIN_REDUCTIONS[op](keys, axes)), x.dtype)


def _mirrored(bits: Array) -> Array:
    """Returns the bits of floats as integers in their order, or the bits of such integers.

    Of two negative floats the lesser one is the greater, taken as an integer.
    """
    is_negative = lax.shift_right_arithmetic(bits, lax.full_like(bits, bits.dtype.itemsize * 8 - 1))
    magnitude = lax.full_like(bits, jnp.iinfo(bits.dtype).max)
    return lax.bitwise_xor(bits, lax.bitwise_and(is_negative, magnitude))


@_reduced.defjvp
def _reduced_jvp(
    op: str,
    axes: tuple[int, ...],
    has_nan_slope: bool | None,
    primals: tuple[Array],
    tangents: tuple[Array],
) -> tuple[Array, Array]:
    found = _reduced(op, axes, has_nan_slope, *primals)
    # 16-bit floats count few ties.
    wide = jnp.promote_types(found.dtype, np.float32)
    x, slope, best = (lax.convert_element_type(a, wide) for a in (*primals, *tangents, found))
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    is_best = lax.eq(x, lax.broadcast_in_dim(best, x.shape, kept))
    ties = lax.reduce_sum(lax.convert_element_type(is_best, x.dtype), axes)
    ties = lax.max(ties, lax.full_like(ties, 1))
    if has_nan_slope:
        is_nan = lax.ne(best, best)
        is_best = lax.bitwise_or(is_best, lax.broadcast_in_dim(is_nan, x.shape, kept))
        ties = lax.select(is_nan, best, ties)
    chosen = lax.select(is_best, slope, lax.full_like(slope, 0))
    of_best = lax.div(lax.reduce_sum(chosen, axes), ties)
    return found, lax.convert_element_type(of_best, found.dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _of_windows(op: str, window: Window, x: Array) -> Array:
    return _plain_windows(op, window, _combine(op), x)


@_of_windows.defjvp
def _of_windows_jvp(
    op: str, window: Window, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    best = _of_windows(op, window, *primals)
    # JAX knows the derivative of plain windows: the slope of each is that of one of its elements.
    plain = functools.partial(_plain_windows, op, window, _PLAIN[op])
    _, slope = jax.jvp(plain, primals, tangents)
    return best, lax.select(lax.ne(best, best), lax.full_like(slope, 0), slope)


def _plain_windows(
    op: str, window: Window, combine: Callable[[Array, Array], Array], x: Array
) -> Array:
    lengths, strides, padding, dilations = window
    start = _worst(op, x.dtype)
    return lax.reduce_window(
        x, start, combine, lengths, strides, padding, window_dilation=dilations
    )
