"""The operators of the MindSpore face, as functions of arrays: one table over jax.numpy.

Arguments are arrays or Python scalars; `msops._face.tensor` lifts the functions to Tensors. Results
have the dtype MindSpore gives them. Between arrays that is JAX's lattice (the two agree wherever
MindSpore defines a result: tests/test_face_oracle.py).
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._base import extremes
from msops._base.dtypes import as_dtype
from msops._face import array_arithmetic as arithmetic
from msops._face.array_arithmetic import binary, kind_of
from msops._face.axes import Axis, axes_of, axis_of
from msops._face.tensor_data import first_outside, inside
from msops.errors import ArgumentTypeError, ArgumentValueError, KernelError

Array = Any


def _floating(x: Array) -> Array:
    """`x` as MindSpore's float functions take it: integers become Float32, not Float64."""
    x = x if hasattr(x, "dtype") else jnp.asarray(x)
    return x if kind_of(x.dtype) > 1 else x.astype(np.float32)


def unary_float(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Returns `function`, which has float results, for inputs of every dtype."""

    def call(x: Array) -> Array:
        return function(_floating(x))

    call.__name__ = call.__qualname__ = getattr(function, "__name__", "unary")
    return call


def reduction(function: Callable[..., Array]) -> Callable[..., Array]:
    """Returns a numpy reduction with MindSpore's signature."""

    name = getattr(function, "__name__", "reduction").removeprefix("_")

    def call(x: Array, axis: Axis = None, keep_dims: bool = False) -> Array:
        return function(x, axis=axes_of(x, axis, f"ops.{name}"), keepdims=keep_dims)

    call.__name__ = call.__qualname__ = name
    return call


def started(
    best: Callable[[Array, Array], Array], x: Array, initial: Any, where: Any, who: str
) -> Array:
    """`x` with no entry worse than `initial`, which stands where `where` does not hold.

    Raises:
      ArgumentTypeError: `where` is neither a bool nor a Tensor of them, or `initial` no number.
      ArgumentValueError: there is a mask, but no `initial`.
    """
    if initial is not None:
        if isinstance(initial, (str, tuple, list)) or jnp.ndim(initial):
            raise ArgumentTypeError.explained(
                who, f"expected a number as initial; got {initial!r}", "Pass one number."
            )
        initial = jnp.asarray(initial).astype(x.dtype)
        x = best(x, initial)
    if where is None or where is True:
        return x
    if str(getattr(where, "dtype", type(where).__name__)) != "bool":
        raise ArgumentTypeError.explained(
            who, f"expected a bool or a Bool Tensor as where; got {where!r}", "Compare: x > 0."
        )
    if initial is None:
        raise ArgumentValueError.explained(
            who, "expected initial beside where; got none", "Pass initial=, which masked ones are."
        )
    return jnp.where(jnp.broadcast_to(where, x.shape), x, initial)


def _extreme(
    reduce: Callable[..., Array], best: Callable[[Array, Array], Array]
) -> Callable[..., Array]:
    def call(
        x: Array,
        axis: Axis = None,
        keep_dims: bool = False,
        *,
        initial: Any = None,
        where: Any = None,
    ) -> Array:
        who = f"ops.{reduce.__name__}"
        x = started(best, x, initial, where, who)
        return reduce(x, axis=axes_of(x, axis, who), keepdims=keep_dims)

    call.__name__ = call.__qualname__ = reduce.__name__
    return call


def _mean(x: Array, axis: Axis, keepdims: bool) -> Array:
    return jnp.mean(x, axis=axis, keepdims=keepdims).astype(x.dtype)


def sum_dtype(dtype: np.dtype) -> Any:
    """The dtype that sums and products of `dtype` have: integers are counted in Int64.

    Those of UInt16, UInt32 and UInt64 keep their dtype.
    """
    if dtype.kind == "u" and dtype.itemsize > 1:
        return dtype
    return jax.dtypes.canonicalize_dtype(np.int64) if kind_of(dtype) < 2 else None


def sum(x: Array, axis: Axis = None, keep_dims: bool = False, dtype: Any = None) -> Array:
    """Sum of the entries, which are cast to `dtype` first if it is given."""
    x = x if dtype is None else cast(x, dtype)
    counted = sum_dtype(x.dtype) if dtype is None else x.dtype
    return jnp.sum(x, axis=axes_of(x, axis, "ops.sum"), keepdims=keep_dims, dtype=counted)


def prod(x: Array, axis: Axis = None, keep_dims: bool = False, dtype: Any = None) -> Array:
    """Product of the entries, which are cast to `dtype` first if it is given."""
    x = x if dtype is None else cast(x, dtype)
    counted = sum_dtype(x.dtype) if dtype is None else x.dtype
    return jnp.prod(x, axis=axes_of(x, axis, "ops.prod"), keepdims=keep_dims, dtype=counted)


def reduce_prod(x: Array, axis: Axis = None, keep_dims: bool = False) -> Array:
    """Product in the dtype of `x` (``ReduceProd``)."""
    return jnp.prod(x, axis=axes_of(x, axis, "ops.ReduceProd"), keepdims=keep_dims, dtype=x.dtype)


def cumsum(x: Array, axis: int | None = None, dtype: Any = None) -> Array:
    """Sums of the entries so far along `axis`: those of narrow integers in Int32."""
    if dtype is not None:
        chosen = as_dtype(dtype).dtype
    else:
        is_narrow = kind_of(x.dtype) < 2 and x.dtype.name in ("bool", "int8", "int16", "uint8")
        chosen = np.dtype(np.int32) if is_narrow else x.dtype
    return jnp.cumsum(x, axis=axis, dtype=chosen)


def relu(x: Array) -> Array:
    """`x` where it is greater than 0, else 0; Bool stays as it is."""
    return x if kind_of(jnp.result_type(x)) == 0 else jax.nn.relu(x)


def reduce_sum(x: Array, axis: Axis = None, keep_dims: bool = False) -> Array:
    """Sum in the dtype of `x` (``ReduceSum``), where `sum` counts booleans."""
    return jnp.sum(x, axis=axes_of(x, axis, "ops.ReduceSum"), keepdims=keep_dims, dtype=x.dtype)


def cast(x: Array, dtype: Any) -> Array:
    """`x` in another dtype."""
    return jnp.asarray(x).astype(as_dtype(dtype).dtype)


def reshape(x: Array, shape: Any) -> Array:
    """`x` in another shape; one extent may be -1."""
    return jnp.reshape(x, shape)


def transpose(x: Array, perm: Sequence[int]) -> Array:
    """`x` with its axes in the order `perm`."""
    return jnp.transpose(x, tuple(perm))


def matmul(x: Array, y: Array, transpose_a: bool = False, transpose_b: bool = False) -> Array:
    """Matrix product, of `x` and `y` or of their transposes in the last two axes."""
    x = jnp.swapaxes(x, -1, -2) if transpose_a else x
    y = jnp.swapaxes(y, -1, -2) if transpose_b else y
    return jnp.matmul(x, y)


def expand_dims(x: Array, axis: int) -> Array:
    """`x` with an axis of extent one before `axis`."""
    return jnp.expand_dims(x, axis)


def squeeze(x: Array, axis: Axis = None) -> Array:
    """`x` without its axes of extent one; of those given, others stay."""
    axes = axes_of(x, axis, "ops.squeeze")
    if axes is None:
        return jnp.squeeze(x)
    chosen = (axes,) if isinstance(axes, builtins.int) else axes
    return jnp.squeeze(x, axis=tuple(entry for entry in chosen if x.shape[entry] == 1))


def broadcast_to(x: Array, shape: Sequence[int]) -> Array:
    """`x` repeated to a shape; an extent -1 is that of `x`.

    Raises:
      ArgumentValueError: an extent -1 stands before the axes of `x`.
    """
    before = len(shape) - x.ndim
    if builtins.any(extent == -1 for extent in shape[: builtins.max(before, 0)]):
        raise ArgumentValueError.explained(
            "ops.broadcast_to",
            f"expected -1 only for the axes of an array of shape {tuple(x.shape)}; got "
            f"{tuple(shape)}",
            "Write the extents of new axes.",
        )
    extents = [
        x.shape[n - before] if extent == -1 and n >= before else extent
        for n, extent in enumerate(shape)
    ]
    return jnp.broadcast_to(x, extents)


def concat(tensors: Sequence[Array], axis: int = 0) -> Array:
    """The arrays joined along an axis they have."""
    if hasattr(tensors, "shape"):
        raise ArgumentTypeError.explained(
            "ops.concat", "expected a tuple or list of tensors; got one", "Write (x, y)."
        )
    return jnp.concatenate(tuple(tensors), axis=axis)


def addn(x: Sequence[Array]) -> Array:
    """The sum of arrays of one shape and dtype."""
    if not isinstance(x, (tuple, list)) or not builtins.all(hasattr(entry, "shape") for entry in x):
        raise ArgumentTypeError.explained(
            "ops.addn", "expected a tuple or list of tensors", "Wrap numbers: Tensor(...)."
        )
    if not x:
        raise ArgumentValueError.explained("ops.addn", "expected tensors; got none", "Give one.")
    first, *rest = x
    for other in rest:
        kind = ArgumentValueError if other.shape != first.shape else ArgumentTypeError
        if (other.shape, other.dtype) != (first.shape, first.dtype):
            raise kind.explained(
                "ops.addn",
                f"expected tensors of {first.dtype}{list(first.shape)}; got "
                f"{other.dtype}{list(other.shape)}",
                "Give all of them one shape and dtype.",
            )
    return functools.reduce(arithmetic.add, rest, first)


def stack(tensors: Any, axis: int = 0) -> Array:
    """The arrays joined along a new axis; one by itself gets the axis."""
    return jnp.stack((tensors,) if hasattr(tensors, "shape") else tuple(tensors), axis=axis)


def split(x: Array, split_size_or_sections: Any, axis: int = 0) -> tuple[Array, ...]:
    """Pieces of `x` along `axis`, of a given length or of given lengths.

    Raises:
      ArgumentTypeError: the lengths are not integers.
      ArgumentValueError: they do not add up to the extent, or the length is below 1.
    """
    axis = axis_of(x, axis, "ops.split")
    if not isinstance(split_size_or_sections, (builtins.int, tuple, list)):
        raise ArgumentTypeError.explained(
            "ops.split",
            f"expected a length or lengths; got {split_size_or_sections!r}",
            "Pass an int, or a tuple of int.",
        )
    if isinstance(split_size_or_sections, builtins.int):
        length, fits = split_size_or_sections, split_size_or_sections > 0
        edges = list(range(length, x.shape[axis], length)) if fits else []
    else:
        edges = [0, *(builtins.int(edge) for edge in np.cumsum(split_size_or_sections))]
        fits, edges = edges[-1] == x.shape[axis], edges[1:-1]
    if not fits:
        raise ArgumentValueError.explained(
            "ops.split",
            f"expected a length of 1 or more, or lengths that add up to {x.shape[axis]}, the "
            f"extent of axis {axis}; got {split_size_or_sections}",
            "Name every piece.",
        )
    return tuple(jnp.split(x, edges, axis=axis))


def gather(x: Array, indices: Array, axis: int, batch_dims: int = 0) -> Array:
    """Slices of `x` along `axis` at `indices`, which have the first `batch_dims` axes of `x`.

    Raises:
      ArgumentValueError: they have other axes there.
      KernelError: an index is out of range. A compiled program raises it when it runs on one CPU;
        elsewhere the slice becomes NaN, or the dtype's least integer.
    """
    axis = axis_of(x, axis, "ops.gather")
    outside = first_outside(indices, x.shape[axis])
    if outside is not None:
        raise KernelError.explained(
            "ops.gather",
            f"expected indices from {-x.shape[axis]} to {x.shape[axis] - 1} along axis {axis}; "
            f"got {outside}",
            "Fix the index, or take a larger array.",
        )
    indices = inside(indices, x.shape[axis], "ops.gather", f" along axis {axis}")
    shared = batch_dims if batch_dims >= 0 else batch_dims + jnp.ndim(indices)
    if not shared:
        return jnp.take(x, indices, axis=axis)
    if not 0 <= shared <= axis or x.shape[:shared] != jnp.shape(indices)[:shared]:
        raise ArgumentValueError.explained(
            "ops.gather",
            f"expected indices with the first axes of an array of shape {tuple(x.shape)}, up to "
            f"axis {axis}; got shape {jnp.shape(indices)} and batch_dims {batch_dims}",
            "Pass 0, or as many axes as both share.",
        )
    take: Callable[..., Array] = functools.partial(jnp.take, axis=axis - shared)
    for _ in range(shared):
        take = jax.vmap(take)
    return take(x, indices)


def softmax(x: Array, axis: int = -1, dtype: Any = None) -> Array:
    """Exponentials along `axis`, scaled to sum one, of `x` in `dtype` if it is given."""
    x = x if dtype is None else cast(x, dtype)
    return jax.nn.softmax(x, axis=axis)


def slice(x: Array, begin: Sequence[int], size: Sequence[int]) -> Array:
    """The part of `x` of extents `size` that starts at `begin`; an extent -1 takes what is left.

    Raises:
      ArgumentValueError: the part is not inside of `x`.
    """
    ends = [
        extent if length == -1 else start + length
        for start, length, extent in zip(begin, size, x.shape, strict=True)
    ]
    if not builtins.all(0 <= b <= e <= n for b, e, n in zip(begin, ends, x.shape, strict=True)):
        raise ArgumentValueError.explained(
            "ops.slice",
            f"expected a part of an array of shape {tuple(x.shape)}; got begin {tuple(begin)} "
            f"and size {tuple(size)}",
            "Begin at 0 or later, and end at the array's end at the latest.",
        )
    return jax.lax.slice(x, tuple(begin), tuple(ends))


def pad(x: Array, paddings: Sequence[Sequence[int]]) -> Array:
    """`x` with zeros around it: (before, after) for each axis, as ``ops.Pad`` takes them.

    Raises:
      ArgumentValueError: a padding is negative.
    """
    if builtins.any(count < 0 for pair in paddings for count in pair):
        raise ArgumentValueError.explained(
            "ops.Pad",
            f"expected paddings of 0 or more; got {tuple(map(tuple, paddings))}",
            "Take a part of the array by ops.slice.",
        )
    return jnp.pad(x, tuple(map(tuple, paddings)))


def sort(x: Array, axis: int = -1, descending: bool = False) -> tuple[Array, Array]:
    """Entries in order along `axis`, and their indices, Int32; equal entries keep their order."""
    indices = jnp.argsort(x, axis=axis, descending=descending, stable=True)
    return jnp.take_along_axis(x, indices, axis=axis), indices.astype(np.int32)


def topk(
    x: Array,
    k: int,
    dim: int | None = None,
    largest: bool = True,
    sorted: bool = True,
) -> tuple[Array, Array]:
    """The `k` greatest (or smallest) entries along `dim`, in order, and their indices, Int32.

    Raises:
      ArgumentValueError: `k` is less than 0, or more than there are.
    """
    axis = axis_of(x, -1 if dim is None else dim, "ops.topk")
    if not 0 <= k <= x.shape[axis]:
        raise ArgumentValueError.explained(
            "ops.topk",
            f"expected k from 0 to {x.shape[axis]}, the extent of axis {axis}; got {k}",
            "Ask for as many entries as there are, at most.",
        )
    values, indices = sort(x, axis, descending=largest)
    first = jax.lax.slice_in_dim
    return first(values, 0, k, axis=axis), first(indices, 0, k, axis=axis)


def flatten(x: Array, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Array:
    """`x` with its axes from `start_dim` to `end_dim` joined to one, in row or column order.

    Raises:
      ArgumentValueError: `x` has no such axes, or they are in the other order.
    """
    x = jnp.transpose(x) if order == "F" else x
    if x.ndim < 2:
        return jnp.reshape(x, (-1,))
    first, last = (axis + x.ndim if axis < 0 else axis for axis in (start_dim, end_dim))
    if not 0 <= first <= last < x.ndim:
        raise ArgumentValueError.explained(
            "ops.flatten",
            f"expected start_dim and end_dim to be axes of an array of shape "
            f"{tuple(x.shape)}, in that order; got {start_dim} and {end_dim}",
            f"Count axes from 0 to {x.ndim - 1}, or from the end by -1 to {-x.ndim}.",
        )
    joined = math.prod(x.shape[first : last + 1])
    return jnp.reshape(x, (*x.shape[:first], joined, *x.shape[last + 1 :]))


def var(x: Array, axis: Axis = None, ddof: int = 0, keepdims: bool = False) -> Array:
    """Variance: the sum of squared distances from the mean, over the count less `ddof`.

    As in MindSpore, that may be 0 or less.
    """
    x, axes = _floating(x), axes_of(x, axis, "ops.var")
    spread = jnp.var(x, axis=axes, keepdims=keepdims)
    count = x.size // builtins.max(spread.size, 1)
    if 0 < ddof < count:
        spread = jnp.var(x, axis=axes, ddof=ddof, keepdims=keepdims)
    elif ddof:
        # jax.numpy has NaN.
        spread = spread * count / jnp.asarray(count - ddof, spread.dtype)
    return spread.astype(x.dtype)


def count_nonzero(
    x: Array, axis: Axis = None, keep_dims: bool = False, dtype: Any = np.int32
) -> Array:
    """How many entries are not zero."""
    count = jnp.count_nonzero(x, axis=axes_of(x, axis, "ops.count_nonzero"), keepdims=keep_dims)
    return count.astype(as_dtype(dtype).dtype)


def _place_of(x: Array, axis: int | None, who: str) -> int | None:
    is_all = axis is None or (x.ndim == 0 and axis in (0, -1))
    return None if is_all else axis_of(x, axis, who)


def argmax(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the first greatest entry, Int64; among all entries it is a number."""
    place = _place_of(x, axis, "ops.argmax")
    return jnp.argmax(x, axis=place, keepdims=keepdims and place is not None).astype(np.int64)


def argmin(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """Index of the first smallest entry, Int32, but of one number Int64, which `argmax` always has.

    Source: MindSpore 2.10.0, mindspore/ops/function/math_func.py, argmin.
    """
    place = _place_of(x, axis, "ops.argmin")
    return jnp.argmin(x, axis=place, keepdims=keepdims and place is not None).astype(
        np.int32 if x.ndim else np.int64
    )


def div(x: Array, y: Array, rounding_mode: str | None = None) -> Array:
    """Quotient; by "floor" or "trunc" a whole number, in the dtype of the operands.

    Raises:
      ArgumentValueError: `rounding_mode` is another.
    """
    modes: dict[str | None, Callable[[Array, Array], Array]] = {
        None: arithmetic.div,
        "floor": arithmetic.floor_div,
        "trunc": arithmetic.truncated_div,
    }
    if rounding_mode not in modes:
        raise ArgumentValueError.explained(
            "ops.div",
            f'expected rounding_mode "floor", "trunc" or None; got {rounding_mode!r}',
            "None gives the quotient itself.",
        )
    return modes[rounding_mode](x, y)


def full_like(x: Array, fill_value: Any, dtype: Any = None) -> Array:
    """An array of one value in the shape of `x`."""
    return jnp.full_like(x, fill_value, dtype=None if dtype is None else as_dtype(dtype).dtype)


def zeros_like(x: Array, dtype: Any = None) -> Array:
    """Zeros in the shape of `x`."""
    return full_like(x, 0, dtype)


def ones_like(x: Array, dtype: Any = None) -> Array:
    """Ones in the shape of `x`."""
    return full_like(x, 1, dtype)


abs = arithmetic.abs
add = arithmetic.add
clip = arithmetic.clip
clip_by_value = arithmetic.clip_by_value
floor_div = arithmetic.floor_div
maximum = arithmetic.maximum
minimum = arithmetic.minimum
mod = arithmetic.mod
mul = arithmetic.mul
pow = arithmetic.pow
real_div = arithmetic.real_div
select = arithmetic.select
sub = arithmetic.sub
truncated_mod = arithmetic.truncated_mod
equal = binary(jnp.equal)
not_equal = binary(jnp.not_equal)
less = binary(jnp.less)
less_equal = binary(jnp.less_equal)
greater = binary(jnp.greater)
greater_equal = binary(jnp.greater_equal)
bitwise_and = binary(jnp.bitwise_and)
bitwise_or = binary(jnp.bitwise_or)
bitwise_xor = binary(jnp.bitwise_xor)
logical_and = jnp.logical_and
logical_or = jnp.logical_or
logical_not = jnp.logical_not
neg = jnp.negative
sign = jnp.sign
square = jnp.square
floor = jnp.floor
ceil = jnp.ceil
round = jnp.round
isnan = jnp.isnan
isfinite = jnp.isfinite
stop_gradient = jax.lax.stop_gradient
tile = jnp.tile
exp = unary_float(jnp.exp)
log = unary_float(jnp.log)
log1p = unary_float(jnp.log1p)
expm1 = unary_float(jnp.expm1)
sqrt = unary_float(jnp.sqrt)
rsqrt = unary_float(jax.lax.rsqrt)
reciprocal = unary_float(jnp.reciprocal)
sin = unary_float(jnp.sin)
cos = unary_float(jnp.cos)
tan = unary_float(jnp.tan)
sinh = unary_float(jnp.sinh)
cosh = unary_float(jnp.cosh)
tanh = unary_float(jnp.tanh)
erf = unary_float(jax.lax.erf)
sigmoid = unary_float(jax.nn.sigmoid)
mean = reduction(_mean)
amax = _extreme(extremes.amax, jnp.maximum)
amin = _extreme(extremes.amin, jnp.minimum)
all = reduction(jnp.all)
any = reduction(jnp.any)
