"""Random numbers from a seed and an offset.

They come from JAX's counter-based generator (Threefry), keyed by both: equal seeds and offsets give
equal numbers in every process, which are not those that an Ascend draws.

Source: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import kind_of
from msops._ascend.aclnn.kinds import DType, Float, Int, Ints, Tensor, UpdatedTensor
from msops._ascend.aclnn.outputs import Outputs, require_shape
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.table import aclnn

_WORD = 2**32


def _key(seed: int, offset: int) -> jax.Array:
    """Returns a key made of both numbers, all of whose 64 bits count."""
    words = [n % 2**64 for n in (seed, offset)]
    key = jax.random.wrap_key_data(
        jnp.array([words[0] // _WORD, words[0] % _WORD], jnp.uint32), impl="threefry2x32"
    )
    for word in (words[1] // _WORD, words[1] % _WORD):
        key = jax.random.fold_in(key, np.uint32(word))
    return key


def _float_dtype(x: jax.Array) -> np.dtype:
    return x.dtype if kind_of(x.dtype) == 2 else np.dtype(np.float32)


@aclnn("InplaceUniform")
def uniform(self_ref: UpdatedTensor, low: Float, high: Float, seed: Int, offset: Int) -> Tensor:
    """Numbers from `low` to below `high`, all equally likely."""
    if not low <= high:
        raise Refused(f"expected from <= to; got {low} and {high}", "Exchange them.")
    dtype = _float_dtype(self_ref)
    drawn = jax.random.uniform(_key(seed, offset), self_ref.shape, dtype, low, high)
    return drawn.astype(self_ref.dtype)


@aclnn("InplaceNormal")
def normal(self_ref: UpdatedTensor, mean: Float, std: Float, seed: Int, offset: Int) -> Tensor:
    """Normally distributed numbers."""
    if std < 0:
        raise Refused(f"expected a standard deviation of 0 or more; got {std}", "Negate it.")
    dtype = _float_dtype(self_ref)
    drawn = jax.random.normal(_key(seed, offset), self_ref.shape, dtype)
    return (mean + std * drawn).astype(self_ref.dtype)


@aclnn("InplaceRandom")
def random(self_ref: UpdatedTensor, low: Int, high: Int, seed: Int, offset: Int) -> Tensor:
    """Whole numbers from `low` to below `high`, all equally likely."""
    if not low < high:
        raise Refused(f"expected from < to; got {low} and {high}", "Exchange them.")
    dtype = jax.dtypes.canonicalize_dtype(np.int64)
    info = np.iinfo(dtype)
    if low < info.min or high - 1 > info.max:
        raise Refused(
            f"expected numbers that {dtype} holds; got {low} and {high}",
            "64-bit types need msops.Tensors or jax_enable_x64.",
        )
    drawn = jax.random.randint(_key(seed, offset), self_ref.shape, low, high, dtype)
    return drawn.astype(self_ref.dtype)


@aclnn("DropoutGenMaskV2")
def dropout_gen_mask(
    shape: Ints,
    prob: Float,
    seed: Int,
    offset: Int,
    prob_dtype: DType,
    *,
    outputs: Outputs,
) -> Tensor:
    """A mask for ``aclnnDropoutDoMask``: a bit is set with probability ``1 - prob``.

    Args:
      shape: that of the tensor to be masked.
      prob: the probability that an entry is dropped.
      seed, offset: what the bits are drawn from.
      prob_dtype: has no effect here.
      outputs: the declared output.

    Returns:
      uint8, one bit per entry, lowest first, padded to a multiple of 16 bytes with zeros.
    """
    if not 0 <= prob <= 1 or any(size < 0 for size in shape):
        raise Refused(
            f"expected prob between 0 and 1 and a shape; got {prob} and {list(shape)}",
            "It is the part dropped.",
        )
    size = math.prod(shape)
    size_bytes = -(-size // 128) * 16
    require_shape((size_bytes,), outputs)
    drawn = jax.random.uniform(_key(seed, offset), (size,), jnp.float32)
    return jnp.packbits(jnp.pad(drawn >= prob, (0, size_bytes * 8 - size)), bitorder="little")
