"""Reductions over axes, and over segments of the first axis."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.tbe.casting import NUMBERS, cast_operands
from msops._ascend.tbe.operation import apply, check_same_shape, check_tensors, number_of
from msops._ascend.tbe.session import KernelTypeError
from msops._base.extremes import amax, amin
from msops._loops.frontends.tvm.tensor import Tensor
from msops._loops.frontends.tvm.tracing import build_error, call_error

_REDUCE: dict[str, Callable[..., jax.Array]] = {
    "reduce_max": amax,
    "reduce_min": amin,
    "reduce_prod": jnp.prod,
    "sum": jnp.sum,
}


def _reduce(name: str, spelled: str) -> Callable[..., Any]:
    def call(raw_tensor: Any, axis: Any, keepdims: bool = False) -> Tensor:
        (x,) = cast_operands(spelled, check_tensors(spelled, raw_tensor), NUMBERS)
        return _reduced(name, spelled, x, axis, keepdims)

    call.__name__ = call.__qualname__ = spelled
    call.__doc__ = (
        f"Returns {spelled} over `axis`, an int or a list of ints, negative from the end."
    )
    return call


def _reduced(name: str, spelled: str, x: Tensor, axis: Any, keepdims: Any) -> Tensor:
    axes = _axes(spelled, axis, len(x.shape))
    if not axes:
        return x
    kept = [1 if i in axes else int(n) for i, n in enumerate(x.shape) if keepdims or i not in axes]
    # TBE has no tensors without dimensions. (AKG of MindSpore 2.0.0 leaves a last dimension of 1
    # whenever the last axis is reduced; MindSpore's MinMaxUpdatePerChannel would not run so.)
    shape = kept or [1]
    rule = functools.partial(_run, function=_REDUCE[name], axes=axes, shape=tuple(shape))
    return apply(spelled, rule, [x], shape, x.dtype, f"axis={list(axes)}")


def _run(
    x: jax.Array, function: Callable[..., jax.Array], axes: tuple[int, ...], shape: tuple[int, ...]
) -> jax.Array:
    # float16 is summed up in float32, as the Ascend's vector unit does; integers keep their width.
    wide = x.astype(jnp.float32) if x.dtype == jnp.float16 else x
    return function(wide, axis=axes).astype(x.dtype).reshape(shape)


def _axes(name: str, axis: Any, rank: int) -> tuple[int, ...]:
    given = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    axes = []
    for one in given:
        try:
            index = one.__index__()
        except AttributeError:
            raise call_error(
                KernelTypeError,
                name,
                f"expected axis to be an int or a list of ints; got {axis!r}",
                "Pass for example [2, 3].",
            ) from None
        if not -rank <= index < rank:
            raise build_error(
                name,
                f"wrong axis: expected -{rank} to {rank - 1}; got {index}",
                "Name an axis that the tensor has.",
            )
        axes.append(index % rank)
    return tuple(sorted(set(axes)))


def tuple_sum(input_tensor_list: Any, axis: Any, keepdims: bool = False) -> tuple[Tensor, ...]:
    """Sums several tensors of one shape over the same axes.

    Args:
      input_tensor_list: the tensors.
      axis: an int or a list of ints.
      keepdims: whether the axes stay, with extent 1.

    Returns:
      One tensor per tensor given.
    """
    if not isinstance(input_tensor_list, (list, tuple)) or not input_tensor_list:
        raise call_error(
            KernelTypeError,
            "tuple_sum",
            f"expected a list of tensors; got {type(input_tensor_list).__name__}",
            "Pass [x, y].",
        )
    tensors = check_tensors("tuple_sum", *input_tensor_list)
    check_same_shape("tuple_sum", *tensors)
    cast = [cast_operands("tuple_sum", [tensor], NUMBERS)[0] for tensor in tensors]
    return tuple(_reduced("sum", "tuple_sum", x, axis, keepdims) for x in cast)


def _segment_prod(x: jax.Array, ids: jax.Array, count: int) -> jax.Array:
    """Returns products by segment; unlike `jax.ops.segment_prod` it has a derivative."""
    rows = ids.reshape(-1, *[1] * (x.ndim - 1))
    one = jnp.ones((), x.dtype)
    product = lambda segment: jnp.prod(jnp.where(rows == segment, x, one), 0, dtype=x.dtype)  # noqa: E731
    return jax.vmap(product)(jnp.arange(count, dtype=ids.dtype))


_SEGMENT: dict[str, Callable[..., jax.Array]] = {
    "max": jax.ops.segment_max,
    "mean": jax.ops.segment_sum,
    "min": jax.ops.segment_min,
    "prod": _segment_prod,
    "sum": jax.ops.segment_sum,
}
_SEGMENTED = (*NUMBERS, "int8", "uint8")


def _unsorted_segment(kind: str) -> Callable[..., Any]:
    name = f"unsorted_segment_{kind}"

    def call(tensor: Any, segment_ids: Any, num_segments: Any, init_value: Any = 0) -> Tensor:
        (x,) = check_tensors(name, tensor)
        (x,) = (x,) if x.dtype in _SEGMENTED else cast_operands(name, [x], _SEGMENTED)
        ids = _segment_ids(name, segment_ids, int(x.shape[0]), int(num_segments))
        start = number_of(name, init_value, x.dtype)
        inputs = [x, ids] if isinstance(ids, Tensor) else [x]
        fixed = None if isinstance(ids, Tensor) else ids
        rule = functools.partial(
            _run_segments, kind=kind, fixed=fixed, count=int(num_segments), start=start
        )
        shape = (int(num_segments), *x.shape[1:])
        return apply(name, rule, inputs, shape, x.dtype, f"{num_segments}, {start}")

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"Returns the {kind} of the rows of each segment; `init_value` where a segment is empty."
    )
    return call


def _segment_ids(name: str, given: Any, rows: int, count: int) -> Any:
    if isinstance(given, Tensor):
        if len(given.shape) == 1 and int(given.shape[0]) == rows and given.dtype == "int32":
            return given
        problem = f"got {given.dtype}{list(map(int, given.shape))}"
    else:
        ids = [int(one) for one in given] if isinstance(given, (list, tuple)) else []
        if len(ids) == rows and max(ids, default=0) < count:
            return tuple(ids)
        problem = f"got {given!r}"
    raise build_error(
        name,
        f"expected segment_ids to have one int32 below num_segments ({count}) for each of the "
        f"{rows} rows; {problem}",
        "Rows with a negative id belong to no segment.",
    )


def _run_segments(
    x: jax.Array, *ids: jax.Array, kind: str, fixed: Sequence[int] | None, count: int, start: Any
) -> jax.Array:
    # Rows with an id out of range belong to no segment, in JAX as in TBE.
    given = ids[0] if fixed is None else jnp.asarray(np.asarray(fixed, np.int32))
    result = _SEGMENT[kind](x, given, count)
    sizes = jax.ops.segment_sum(jnp.ones_like(given), given, count)
    sizes = sizes.reshape(count, *[1] * (x.ndim - 1))
    if kind == "mean":
        least = jnp.maximum(sizes, 1).astype(x.dtype)
        floats = jnp.issubdtype(x.dtype, jnp.floating)
        result = result / least if floats else result // least
    return jnp.where(sizes > 0, result, jnp.asarray(start, x.dtype)).astype(x.dtype)


NAMES: dict[str, Callable[..., Any]] = {
    **{name: _reduce(name, name) for name in _REDUCE},
    "reduce_sum": _reduce("sum", "reduce_sum"),
    "tuple_sum": tuple_sum,
    **{f"unsorted_segment_{kind}": _unsorted_segment(kind) for kind in _SEGMENT},
}
