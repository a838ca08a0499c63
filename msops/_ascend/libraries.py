"""Operators of two more libraries of Ascend: Transformer Boost (ATB) and signal processing (SiP).

ATB names an operator by the type of its parameters; here a function gets the tensors as a list,
then the parameters. SiP's transforms do not divide by the number of entries, in either direction.

Source: ``atb/infer_op_params.h`` and ``fft_api.h`` of CANN 8.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.activations import fast_gelu, swiglu
from msops._ascend.aclnn.caches import store_tokens
from msops._ascend.aclnn.dtypes import floating, in_float32
from msops._ascend.aclnn.kinds import Bool, Float, Int, Tensor, Tensors, read_signature
from msops._ascend.aclnn.normalization import rms_norm
from msops._ascend.aclnn.operator import AclnnOp
from msops._ascend.aclnn.refusal import Refused
from msops._ascend.aclnn.rotary import rotary_embedding
from msops.errors import BackendError

_Function = TypeVar("_Function", bound=Callable[..., Any])
_OPERATORS: dict[str, Callable[..., Any]] = {}


def _operator(name: str) -> Callable[[_Function], _Function]:
    def enter(function: _Function) -> _Function:
        _OPERATORS[name] = function
        return function

    return enter


def lookup_library(name: str, who: str) -> AclnnOp:
    """Returns an operator: the type of ATB's parameters, or a function of SiP.

    Raises:
      BackendError: there is no such operator; in MindSpore it is a RuntimeError, too.
    """
    function = _OPERATORS.get(name)
    if function is None:
        raise BackendError.explained(
            who, f"msops has no operator {name!r}", f"It has {', '.join(sorted(_OPERATORS))}."
        )
    return AclnnOp(name, function, read_signature(function), who)


def _require(tensors: list[jax.Array], *names: str) -> None:
    if len(tensors) != len(names):
        raise Refused(f"expected inputs {', '.join(names)}; got {len(tensors)}", "Pass these.")


_ACTIVATIONS: dict[int, Callable[[jax.Array, float, int, int], jax.Array]] = {
    1: lambda x, *_: jax.nn.relu(x),
    2: lambda x, _scale, _dim, mode: jax.nn.gelu(x, approximate=mode == 0),
    3: lambda x, *_: fast_gelu(x),
    4: lambda x, scale, *_: x * jax.nn.sigmoid(scale * x),
    5: lambda x, *_: jnp.log(x),
    6: lambda x, _scale, dim, _mode: swiglu(x, dim),
    8: lambda x, *_: jax.nn.sigmoid(x),
}


@_operator("atb::infer::ActivationParam")
def activate(
    tensors: Tensors, activation_type: Int, scale: Float, dim: Int, gelu_mode: Int
) -> Tensor:
    """An activation: relu, GELU by tanh (0) or erf (1), fast GELU, swish, log, SwiGLU, sigmoid."""
    _require(tensors, "x")
    if activation_type not in _ACTIVATIONS or gelu_mode not in (0, 1):
        raise Refused(
            f"expected activationType {', '.join(map(str, _ACTIVATIONS))}; got {activation_type}",
            "Gradients come from jax.grad.",
        )
    x = floating(tensors[0])
    if activation_type == 6 and not -x.ndim <= dim < x.ndim:
        raise Refused(f"expected dim below {x.ndim}; got {dim}", "Count from 0, or back from -1.")
    return _ACTIVATIONS[activation_type](in_float32(x), scale, dim, gelu_mode).astype(x.dtype)


@_operator("atb::infer::RopeParam")
def rotate(tensors: Tensors, rotary_coeff: Int, cos_format: Int) -> tuple[Tensor, Tensor]:
    """Rotary embedding of queries and keys.

    Args:
      tensors: query and key [tokens, heads * D], cos and sin [tokens, D], and lengths of sequences,
        which have no effect: a token has its own row of cos and sin.
      rotary_coeff: 2: pairs are in halves of D; 4: in halves of its halves; D or D / 2: side by
        side.
      cos_format: must be 0.
    """
    _require(tensors, "query", "key", "cos", "sin", "seqLen")
    query, key, cos, sin, _ = tensors
    size = cos.shape[-1] if cos.ndim else 0
    mode = {size: 1, size // 2: 1, 2: 0, 4: 2}.get(rotary_coeff)
    if mode is None or cos_format or not size or cos.ndim != 2 or cos.shape != sin.shape:
        raise Refused(
            f"expected cos and sin [tokens, D], rotaryCoeff 2, 4, D or D / 2, and cosFormat 0; got "
            f"{cos.shape}, {sin.shape}, {rotary_coeff} and {cos_format}",
            "2 is for pairs in halves.",
        )
    return _rotate(query, cos, sin, mode), _rotate(key, cos, sin, mode)


def _rotate(x: jax.Array, cos: jax.Array, sin: jax.Array, mode: int) -> jax.Array:
    tokens, size = cos.shape
    if x.ndim not in (2, 3) or x.shape[0] != tokens or math.prod(x.shape[1:]) % size:
        raise Refused(f"expected [{tokens}, n * {size}]; got {x.shape}", "A row is a token.")
    heads = x.reshape(tokens, -1, size)
    return rotary_embedding(heads, cos[:, None], sin[:, None], mode).reshape(x.shape)


@_operator("atb::infer::RmsNormParam")
def normalize(
    tensors: Tensors,
    layer_type: Int,
    epsilon: Float,
    pre_epsilon: Float,
    is_gemma: Bool,
    is_plain: Bool,
) -> list[Tensor]:
    """`RmsNorm` of x with gamma (layer type 1), or of ``x + residual``, returned too (2)."""
    if layer_type not in (1, 2) or not is_plain:
        raise Refused(
            f"expected layerType 1 (NORM) or 2 (PRENORM), and neither quantType, rstd nor hasBias; "
            f"got layerType {layer_type}",
            "Quantise with operators of their own.",
        )
    names = ("x", "gamma") if layer_type == 1 else ("x", "residual", "gamma")
    _require(tensors, *names)
    x, gamma = tensors[0], in_float32(tensors[-1])
    if layer_type == 1:
        return [rms_norm(x, gamma + 1 if is_gemma else gamma, epsilon)[0]]
    total = in_float32(x) + in_float32(tensors[1])
    return [part.astype(x.dtype) for part in (rms_norm(total, gamma, pre_epsilon)[0], total)]


@_operator("atb::infer::ReshapeAndCacheParam")
def store(tensors: Tensors, compress_type: Int, kv_cache_cfg: Int) -> list[Tensor]:
    """Tokens [n, heads, D] of keys and values in the slots of caches [blocks, size, heads, D].

    Args:
      tensors: key, value, their caches, slots; with `kv_cache_cfg` 1 key, its cache, slots.
      compress_type: must be 0.
      kv_cache_cfg: 0, or 1: there are no values.
    """
    if compress_type or kv_cache_cfg not in (0, 1):
        raise Refused(
            f"expected compressType 0 and kvCacheCfg 0 or 1; got {compress_type}, {kv_cache_cfg}",
            "Compressed caches and those in Ascend's layout are not supported.",
        )
    names = ("key", "value", "keyCache", "valueCache") if not kv_cache_cfg else ("key", "keyCache")
    _require(tensors, *names, "slotMapping")
    *parts, slots = tensors
    half = len(parts) // 2
    return [
        store_tokens(cache, slots, tokens)
        for tokens, cache in zip(parts[:half], parts[half:], strict=True)
    ]


@_operator("atb::infer::SelfAttentionParam")
def attend(
    tensors: Tensors,
    calc_type: Int,
    mask_type: Int,
    head_num: Int,
    kv_head_num: Int,
    scale: Float,
    is_plain: Bool,
) -> Tensor:
    """Attention of sequences that lie one behind the other (calcType PA_ENCODER).

    Args:
      tensors: query [tokens, heads * D], key and value [tokens, key heads * D], or with an axis of
        heads; with `mask_type` 1 a mask [length, length] that is added; lengths of the sequences.
      calc_type: must be 3.
      mask_type: 0 or 1.
      head_num, kv_head_num: how many heads query and key have; 0 for the key: as many.
      scale: the factor of the products.
      is_plain: whether nothing else is asked for.

    The scores of all tokens are one matrix. Tokens behind the last sequence are 0.
    """
    if calc_type != 3 or mask_type not in (0, 1) or head_num < 1 or not is_plain:
        raise Refused(
            f"expected calcType 3 (PA_ENCODER), maskType 0 or 1, headNum above 0, and no clamp, "
            f"quantType, cache or window; got calcType {calc_type}, maskType {mask_type}, headNum "
            f"{head_num}",
            "Use aclnnFlashAttentionScore for others.",
        )
    _require(tensors, "query", "key", "value", *(["mask"] if mask_type else []), "seqLen")
    query, key, value, *mask, lengths = tensors
    shared = kv_head_num or head_num
    tokens = query.shape[0] if query.ndim else 0
    q, k, v = (
        in_float32(_heads(x, count, tokens))
        for x, count in ((query, head_num), (key, shared), (value, shared))
    )
    if head_num % shared or q.shape[-1] != k.shape[-1]:
        raise Refused(f"heads {head_num} and {shared} do not fit: {q.shape}, {k.shape}", "Reshape.")
    k, v = (jnp.repeat(x, head_num // shared, axis=1) for x in (k, v))
    ends = jnp.cumsum(lengths.reshape(-1))
    place = jnp.arange(tokens)
    sequence = jnp.searchsorted(ends, place, side="right")
    scores = scale * jnp.einsum("qhd,khd->hqk", q, k, precision="highest")
    if mask:
        position = place - jnp.concatenate([jnp.zeros(1, ends.dtype), ends])[sequence]
        table = in_float32(mask[0])
        if table.ndim != 2:
            raise Refused(f"expected a mask [length, length]; got {table.shape}", "Take one.")
        at = table.at[position[:, None], position]
        scores = scores + at.get(mode="fill", fill_value=np.nan, wrap_negative_indices=False)
    hidden = sequence[:, None] != sequence
    shares = jax.nn.softmax(jnp.where(hidden, -jnp.inf, scores), axis=-1)
    out = jnp.einsum("hqk,khd->qhd", shares, v, precision="highest")
    out = jnp.where((place < ends[-1])[:, None, None], out, 0)
    return out.reshape(*query.shape[:-1], -1).astype(query.dtype)


def _heads(x: jax.Array, count: int, tokens: int) -> jax.Array:
    if x.ndim not in (2, 3) or x.shape[0] != tokens or math.prod(x.shape[1:]) % count:
        raise Refused(f"expected [{tokens}, {count} * D]; got {x.shape}", "A row is a token.")
    return x.reshape(tokens, count, -1)


def _transform(kind: int) -> Callable[..., jax.Array]:
    def run(
        x: Tensor, size_x: Int, size_y: Int, fft_type: Int, direction: Int, batch: Int, dim: Int
    ) -> Tensor:
        """A Fourier transform of `batch` rows of `size_x`, or matrices of `size_x` by `size_y`."""
        sizes = (size_x, size_y) if size_y else (size_x,)
        if fft_type != kind or direction not in (16, 17) or min(*sizes, batch) < 1 or dim != 16:
            raise Refused(
                f"expected fftType {kind:#x}, sizes and a batch above 0, and dimType HORIZONTAL; "
                f"got {fft_type:#x}, {sizes}, {batch} and {dim:#x}",
                "Transpose the tensor for a transform of columns.",
            )
        entries = (*sizes[:-1], sizes[-1] // 2 + 1) if kind == 17 else sizes
        if x.size != batch * math.prod(entries):
            raise Refused(f"expected {batch} times {entries} entries; got {x.shape}", "Reshape it.")
        rows = x.reshape(batch, *entries)
        axes = tuple(range(1, rows.ndim))
        is_forward = direction == 16
        if kind == 17:
            rows = jnp.conj(rows) if is_forward else rows
            y = jnp.fft.irfftn(rows, sizes, axes, norm="forward")
        elif kind == 18:
            y = jnp.fft.rfftn(rows.real, axes=axes)
            y = y if is_forward else jnp.conj(y)
        elif is_forward:
            y = jnp.fft.fftn(rows, axes=axes)
        else:
            y = jnp.fft.ifftn(rows, axes=axes, norm="forward")
        shape = x.shape if kind == 16 else (*x.shape[:-1], y.shape[-1])
        return y.reshape(shape)

    return run


for _name, _kind in (("C2C", 16), ("C2R", 17), ("R2C", 18)):
    _OPERATORS[f"asdFftExec{_name}"] = _transform(_kind)
