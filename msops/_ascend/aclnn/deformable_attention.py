"""Multi-scale deformable attention.

Source: X. Zhu et al., "Deformable DETR", 2021; the layouts are those of its CUDA kernel, which
aclnn and MMCV share.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from msops._ascend.aclnn.kinds import Tensor
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn


@aclnn("MultiScaleDeformableAttn", "MultiScaleDeformableAttnFunction")
def attend(
    value: Tensor,
    spatial_shapes: Tensor,
    level_start_index: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
) -> Tensor:
    """Sums weighted samples of feature maps of several sizes.

    Args:
      value: [batch, keys, heads, channels]; the keys of all maps, one map after the other.
      spatial_shapes: [levels, 2], height and width of each map.
      level_start_index: [levels], the first key of each map.
      sampling_locations: [batch, queries, heads, levels, points, 2], x and y between 0 and 1.
      attention_weights: [batch, queries, heads, levels, points].

    Returns:
      [batch, queries, heads * channels].
    """
    _check(value, spatial_shapes, sampling_locations, attention_weights)
    batch, _, heads, channels = value.shape
    queries = sampling_locations.shape[1]
    sizes = spatial_shapes.astype(sampling_locations.dtype)[:, ::-1]
    # A location of 0 is the left edge of the first pixel, whose centre is at 0.
    position = sampling_locations * sizes[:, None] - 0.5
    corner = jnp.floor(position)
    fraction = position - corner
    total = jnp.zeros((batch, queries, heads, channels), value.dtype)
    for right in (0, 1):
        for below in (0, 1):
            part = jnp.where(jnp.array([right, below]) == 1, fraction, 1 - fraction)
            weight = attention_weights * part[..., 0] * part[..., 1]
            sample = _sample(
                value, spatial_shapes, level_start_index, corner + jnp.array([right, below])
            )
            total += jnp.sum(weight[..., None] * sample, axis=(3, 4)).astype(value.dtype)
    return total.reshape(batch, queries, heads * channels)


def _sample(value: jax.Array, shapes: jax.Array, starts: jax.Array, points: jax.Array) -> jax.Array:
    """Returns the entries of the maps at whole positions, 0 outside of a map."""
    height, width = (shapes[:, n].astype(jnp.int32)[:, None] for n in (0, 1))
    column, row = (points[..., n].astype(jnp.int32) for n in (0, 1))
    inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
    key = starts.astype(jnp.int32)[:, None] + row * width + column
    batches = jnp.arange(value.shape[0]).reshape(-1, 1, 1, 1, 1)
    heads = jnp.arange(value.shape[2]).reshape(1, 1, -1, 1, 1)
    entries = value[batches, jnp.where(inside, key, 0), heads]
    return jnp.where(inside[..., None], entries, 0)


def _check(value: jax.Array, shapes: jax.Array, locations: jax.Array, weights: jax.Array) -> None:
    fits = (
        value.ndim == 4
        and locations.ndim == 6
        and locations.shape[-1] == 2
        and weights.shape == locations.shape[:-1]
        and shapes.shape == (locations.shape[3], 2)
        and (locations.shape[0], locations.shape[2]) == (value.shape[0], value.shape[2])
    )
    if not fits:
        raise Refused(
            f"shapes {value.shape}, {shapes.shape}, {locations.shape} and {weights.shape} of "
            "value, spatial shapes, locations and weights do not fit",
            "They are [b, keys, heads, channels], [levels, 2], [b, queries, heads, levels, "
            "points, 2] and the same without the 2.",
        )


@aclnn("MultiScaleDeformableAttnGrad", "MultiScaleDeformableAttentionGrad")
def attend_grad(
    value: Tensor,
    spatial_shapes: Tensor,
    level_start_index: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    grad_output: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the gradients of `attend` for value, locations and weights."""

    def forward(value: jax.Array, locations: jax.Array, weights: jax.Array) -> jax.Array:
        return attend(value, spatial_shapes, level_start_index, locations, weights)

    output, pull_back = jax.vjp(forward, value, sampling_locations, attention_weights)
    return pull_back(grad_output.reshape(output.shape).astype(output.dtype))
