"""Quantized products, and numbers to integers of a scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.activations import fast_gelu
from msops._ascend.aclnn.dtypes import in_float32, kind_of
from msops._ascend.aclnn.kinds import Bool, DType, Int, Tensor, Tensors
from msops._ascend.aclnn.outputs import Outputs, declared
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.shapes import one_axis
from msops._ascend.aclnn.table import aclnn


def to_integers(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """Returns numbers rounded, halves to even, and kept in the range of a dtype."""
    info = jnp.iinfo(dtype)
    # Of the floats below 2**31 the greatest is not the greatest int32, but casts do not wrap.
    return jnp.clip(jnp.round(x), info.min, info.max).astype(dtype)


@aclnn("Quantize")
def quantize(
    x: Tensor, scales: Tensor, zero_points: Tensor | None, dtype: DType, axis: Int
) -> Tensor:
    """``round(x / scales) + zero_points`` in the range of an integer dtype, halves to even.

    Args:
      x: the tensor.
      scales: one number, or one per entry along `axis`.
      zero_points: the same, or None for 0.
      dtype: that of the result: int8, uint8 or int32.
      axis: the axis.
    """
    if kind_of(dtype) != 1:
        raise Refused(f"expected an integer dtype; got {dtype}", "Pass Int8.")
    wide = in_float32(x)
    steps = jnp.round(wide / _along(in_float32(scales), wide, axis, "scales"))
    if zero_points is not None:
        steps = steps + _along(zero_points.astype(wide.dtype), wide, axis, "zeroPoints")
    return to_integers(steps, dtype)


def _along(values: jax.Array, x: jax.Array, axis: int, name: str) -> jax.Array:
    """Returns one number, or one per entry along an axis, as it broadcasts against x."""
    if values.size == 1:
        return values.reshape(())
    position = one_axis(axis, x)
    if values.shape != (x.shape[position],):
        raise Refused(
            f"expected {name} of shape (1,) or ({x.shape[position]},); got {values.shape}",
            "One per entry along the axis.",
        )
    return values.reshape([-1 if n == position else 1 for n in range(x.ndim)])


def _scale_of(scale: jax.Array) -> jax.Array:
    """Returns scales in Float32; 64-bit integers hold its bits (``aclnnTransQuantParamV2``)."""
    if kind_of(scale.dtype) != 1:
        return in_float32(scale)
    return jax.lax.bitcast_convert_type((scale & 0xFFFFFFFF).astype(np.uint32), np.float32)


def _integer_product(x: jax.Array, y: jax.Array) -> jax.Array:
    """Returns the product of matrices: integers exactly in Int32, floats in Float32."""
    if kind_of(x.dtype) == 1 and kind_of(y.dtype) == 1:
        return jnp.matmul(x, y, preferred_element_type=np.int32)
    return jnp.matmul(in_float32(x), in_float32(y), precision="highest")


@aclnn("QuantMatmulV5")
def quant_matmul(
    x1: Tensor,
    x2: Tensor,
    x1_scale: Tensor | None,
    x2_scale: Tensor | None,
    y_scale: Tensor | None,
    x1_offset: Tensor | None,
    x2_offset: Tensor | None,
    y_offset: Tensor | None,
    bias: Tensor | None,
    transpose_x1: Bool,
    transpose_x2: Bool,
    group_size: Int,
    *,
    outputs: Outputs,
) -> Tensor:
    """``(x1 @ x2 + bias) * x2_scale * x1_scale``, or plus `bias` at the end if that is a float.

    The order of the parameters was checked with no published prototype.

    Args:
      x1, x2: [..., M, K] and [..., K, N], Int8; or the transposes, see below.
      x1_scale: [M], one per row, or None.
      x2_scale: [N] or [1], one per column; Float32, BFloat16, or Float32 as bits of a 64-bit
        integer. None for an Int32 output.
      y_scale, x1_offset, y_offset: must be None.
      x2_offset: [N] or [1], added to an Int8 output before it is rounded, or None.
      bias: [N]; Int32 is added to the product, a float to the scaled one.
      transpose_x1, transpose_x2: whether the last two axes are exchanged first.
      group_size: must be 0: a scale holds for all of K.
      outputs: the declared output, Int8, Int32 or a float.
    """
    if group_size or not (y_scale is None and x1_offset is None and y_offset is None):
        raise Refused(
            "expected groupSize 0, and no yScale, x1Offset and yOffset; got one",
            "Scales of groups are not supported.",
        )
    dtype = np.dtype(np.float32 if outputs is None else declared(outputs).dtype)
    x1 = x1.swapaxes(-1, -2) if transpose_x1 else x1
    x2 = x2.swapaxes(-1, -2) if transpose_x2 else x2
    product = _integer_product(x1, x2)
    is_inner = bias is not None and kind_of(bias.dtype) == 1
    if bias is not None and is_inner:
        product = product + bias
    if dtype == np.int32:
        if any(one is not None for one in (x1_scale, x2_scale, x2_offset)):
            raise Refused("an Int32 output has no scales; got some", "Declare a float output.")
        return product
    scaled = in_float32(product)
    if x2_scale is not None:
        scaled = scaled * _scale_of(x2_scale)
    if x1_scale is not None:
        scaled = scaled * in_float32(x1_scale).reshape(-1, 1)
    if bias is not None and not is_inner:
        scaled = scaled + in_float32(bias)
    if dtype != np.int8:
        return scaled
    offset = 0 if x2_offset is None else in_float32(x2_offset)
    return to_integers(scaled + offset, dtype)


@aclnn("QuantMatmulV4")
def quant_matmul_v4(
    x1: Tensor,
    x2: Tensor,
    scale: Tensor,
    offset: Tensor | None,
    pertoken_scale: Tensor | None,
    bias: Tensor | None,
    transpose_x1: Bool,
    transpose_x2: Bool,
    *,
    outputs: Outputs,
) -> Tensor:
    """`QuantMatmulV5` with a scale of the columns, `offset` for an Int8 output, and one of rows."""
    return quant_matmul(
        *(x1, x2, pertoken_scale, scale, None, None, offset, None, bias),
        *(transpose_x1, transpose_x2, 0),
        outputs=outputs,
    )


_ACTIVATIONS: dict[int, Callable[[jax.Array], jax.Array]] = {
    0: lambda x: x,
    1: jax.nn.relu,
    2: lambda x: jax.nn.gelu(x, approximate=True),
    4: fast_gelu,
    5: jax.nn.silu,
}


@aclnn("GroupedMatmulV4")
def grouped_matmul(
    x: Tensors,
    weight: Tensors,
    bias: Tensors | None,
    scale: Tensors | None,
    offset: Tensors | None,
    antiquant_scale: Tensors | None,
    antiquant_offset: Tensors | None,
    per_token_scale: Tensors | None,
    group_list: Tensor | None,
    activation_input: Tensors | None,
    activation_quant_scale: Tensors | None,
    activation_quant_offset: Tensors | None,
    split_item: Int,
    group_type: Int,
    group_list_type: Int,
    act_type: Int,
) -> list[Tensor]:
    """Products of matrices in groups, as the experts of a mixture need them.

    The parameters have the order of the primitive ``GroupedMatmulV4`` of MindSpore 2.7.2.

    Args:
      x: with `group_type` -1 a matrix [M, K] per group; with 0 one [M, K] whose rows are those of
        the groups, one behind the other.
      weight: a matrix [K, N] per group, or one [groups, K, N].
      bias: [N] per group, or one [groups, N], or None.
      scale: factors of the columns in the same form, or None.
      per_token_scale: one [M] of factors of the rows, or None.
      group_list: for type 0 the row behind the last of each group (`group_list_type` 0), or how
        many rows each has (1).
      offset, antiquant_scale, antiquant_offset, activation_input, activation_quant_scale,
      activation_quant_offset: must be None or empty.
      split_item: 0 and 1: a result per group; 2 and 3: one for all.
      group_type: -1 or 0.
      group_list_type: see `group_list`.
      act_type: what is applied: 0 nothing, 1 relu, 2 gelu by tanh, 4 fast gelu, 5 silu.

    Returns:
      [M, N] per group, or one for all. Rows behind the last group are 0.
    """
    absent = (
        *(offset, antiquant_scale, antiquant_offset),
        *(activation_input, activation_quant_scale, activation_quant_offset),
    )
    if any(absent) or act_type not in _ACTIVATIONS or group_type not in (-1, 0):
        raise Refused(
            "expected groupType -1 or 0, actType 0, 1, 2, 4 or 5, and neither offsets, antiquant "
            f"nor activation tensors; got groupType {group_type}, actType {act_type}",
            "Leave the others out.",
        )
    groups = _pieces(weight, 3)
    shifts, factors = _pieces(bias or (), 2), _pieces(scale or (), 2)
    if any(given and len(given) != len(groups) for given in (shifts, factors)):
        raise Refused(f"expected a bias and a scale for each of {len(groups)} groups", "Add them.")
    rows = per_token_scale[0] if per_token_scale else None
    if group_type == -1:
        if len(x) != len(groups) or rows is not None:
            raise Refused(
                f"expected a matrix per weight, and no perTokenScale; got {len(x)} for "
                f"{len(groups)}",
                "With one matrix pass groupType 0.",
            )
        results = [
            _finish(_integer_product(one, w), shifts[n : n + 1], factors[n : n + 1], None, act_type)
            for n, (one, w) in enumerate(zip(x, groups, strict=True))
        ]
        return [jnp.concatenate(results)] if split_item in (2, 3) else results
    if len(x) != 1 or group_list is None or group_list.shape != (len(groups),):
        raise Refused(
            f"expected one matrix and a groupList of {len(groups)}; got {len(x)} and "
            f"{None if group_list is None else group_list.shape}",
            "groupList has a number per weight.",
        )
    ends = group_list if group_list_type == 0 else jnp.cumsum(group_list)
    return [_by_rows(x[0], groups, shifts, factors, rows, ends, act_type)]


def _pieces(tensors: Sequence[jax.Array], rank: int) -> list[jax.Array]:
    """Returns a tensor per group: those of a list, or those along the first axis of one."""
    if len(tensors) == 1 and tensors[0].ndim == rank:
        return list(tensors[0])
    return list(tensors)


def _by_rows(
    x: jax.Array,
    groups: Sequence[jax.Array],
    shifts: Sequence[jax.Array],
    factors: Sequence[jax.Array],
    rows: jax.Array | None,
    ends: jax.Array,
    act_type: int,
) -> jax.Array:
    """Returns the product of each row with the weight of the group that it lies in."""
    row = jnp.arange(x.shape[0])[:, None]
    total, start = jnp.zeros((), np.float32), jnp.zeros((), ends.dtype)
    for n, w in enumerate(groups):
        y = _finish(_integer_product(x, w), shifts[n : n + 1], factors[n : n + 1], rows, act_type)
        total = jnp.where((row >= start) & (row < ends[n]), y, total)
        start = ends[n]
    return total


def _finish(
    product: jax.Array,
    shift: Sequence[jax.Array],
    factor: Sequence[jax.Array],
    rows: jax.Array | None,
    act_type: int,
) -> jax.Array:
    """Returns a product with its bias, scales and activation, in Float32."""
    is_inner = bool(shift) and kind_of(shift[0].dtype) == 1
    y = in_float32(product + shift[0] if is_inner else product)
    y = y * _scale_of(factor[0]) if factor else y
    y = y if rows is None else y * in_float32(rows).reshape(-1, 1)
    y = y + in_float32(shift[0]) if shift and not is_inner else y
    return _ACTIVATIONS[act_type](y)
