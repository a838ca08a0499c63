"""Operations of Ascend's matrix unit: products of matrices and convolutions.

Operands are plain (ND matrices, NCHW images) or in Ascend's blocks, as the kernel laid them out.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from msops._ascend.tbe.formats import from_format, to_format
from msops._ascend.tbe.operation import apply, check_tensors
from msops._ascend.tbe.session import KernelTypeError
from msops._loops.frontends.tvm.dtypes import as_dtype
from msops._loops.frontends.tvm.tensor import Tensor
from msops._loops.frontends.tvm.tracing import call_error
from msops.errors import BuildError

# By format of an operand, and whether it is transposed: the axes of its blocks, as rows (block,
# within) and columns (block, within) of the matrix that enters the product.
_BLOCKS = {
    ("a", "fractal", False): (0, 2, 1, 3),
    ("a", "fractal", True): (1, 3, 0, 2),
    ("b", "fractal", False): (0, 3, 1, 2),
    ("b", "fractal", True): (1, 2, 0, 3),
    # The blocks of FRACTAL_NZ are stored by columns, which TBE takes for transposed.
    ("a", "FRACTAL_NZ", True): (1, 2, 0, 3),
    ("a", "FRACTAL_NZ", False): (0, 3, 1, 2),
    ("b", "FRACTAL_NZ", True): (1, 2, 0, 3),
    ("b", "FRACTAL_NZ", False): (0, 3, 1, 2),
}


def matmul(
    tensor_a: Any,
    tensor_b: Any,
    trans_a: bool = False,
    trans_b: bool = False,
    format_a: str = "ND",
    format_b: str = "ND",
    alpha_num: float = 1.0,
    beta_num: float = 1.0,
    dst_dtype: Any = None,
    tensor_bias: Any = None,
    **options: Any,
) -> Tensor:
    """Returns ``alpha * a @ b + beta * bias``.

    Args:
      tensor_a: (..., M, K), or (..., K, M) with `trans_a`; in blocks it has four dimensions.
      tensor_b: (..., K, N), or (..., N, K) with `trans_b`; likewise.
      trans_a: whether `tensor_a` is transposed.
      trans_b: whether `tensor_b` is.
      format_a: "ND", "fractal" or "FRACTAL_NZ".
      format_b: likewise.
      alpha_num: a number.
      beta_num: a number.
      dst_dtype: dtype of the result; None is that of the operands, int32 for 8-bit integers.
      tensor_bias: (N,), or the shape of the result.
      **options: further settings of Ascend's compiler, not used.

    Returns:
      (..., M, N); in FRACTAL_NZ, (N1, M1, 16, 16), if an operand is in blocks.
    """
    a, b = check_tensors("matmul", tensor_a, tensor_b)
    if a.dtype != b.dtype:
        raise _refused(f"dtype must be the same: got {a.dtype} and {b.dtype}", "Cast one of them.")
    rows, inner = _matrix_shape("a", a, format_a, trans_a)
    inner_b, columns = _matrix_shape("b", b, format_b, trans_b)
    if inner != inner_b:
        raise _refused(
            f"reduce axis not same: a is {rows} by {inner}, b is {inner_b} by {columns}",
            "Correct the shapes, or trans_a and trans_b.",
        )
    lead = tuple(a.shape[:-2]) if format_a == "ND" else ()
    if format_b == "ND" and format_a == "ND" and tuple(b.shape[:-2]) != lead:
        raise _refused(
            f"batch axes must be the same: got {lead} and {tuple(b.shape[:-2])}",
            "Broadcast the smaller one first.",
        )
    is_blocked = format_a != "ND" or format_b != "ND"
    shape = (columns // 16, rows // 16, 16, 16) if is_blocked else (*lead, rows, columns)
    is_small = a.dtype in ("int8", "uint8")
    dtype = as_dtype(dst_dtype or ("int32" if is_small else a.dtype))
    bias = [] if tensor_bias is None else [_bias(tensor_bias, rows, columns, shape)]
    rule = functools.partial(
        _multiply,
        order_a=(format_a, trans_a),
        order_b=(format_b, trans_b),
        scales=(alpha_num, beta_num),
        dtype=dtype,
        is_blocked=is_blocked,
    )
    spelled = ", ".join(name for name, on in (("trans_a", trans_a), ("trans_b", trans_b)) if on)
    return apply("matmul", rule, [a, b, *bias], shape, dtype, spelled)


def _matrix_shape(role: str, x: Tensor, format: str, transposed: bool) -> tuple[int, int]:
    shape = tuple(map(int, x.shape))
    if format == "ND":
        if len(shape) < 2:
            raise _refused(f"expected {role} with two dimensions or more; got {shape}", "Reshape.")
        rows, columns = shape[-2:]
        return (columns, rows) if transposed else (rows, columns)
    if (role, format, bool(transposed)) not in _BLOCKS:
        raise _refused(
            f"expected format_{role} to be 'ND', 'fractal' or 'FRACTAL_NZ'; got {format!r}",
            "Pass one of these.",
        )
    if len(shape) != 4:
        raise _refused(f"expected {role} in {format} with four dimensions; got {shape}", "Reshape.")
    order = _BLOCKS[role, format, bool(transposed)]
    split = [shape[axis] for axis in order]
    return split[0] * split[1], split[2] * split[3]


def _bias(value: Any, rows: int, columns: int, shape: Sequence[int]) -> Tensor:
    (bias,) = check_tensors("matmul", value)
    own = tuple(map(int, bias.shape))
    if own in ((columns,), tuple(shape), (rows, columns)):
        return bias
    raise _refused(
        f"expected a bias of shape ({columns},) or {tuple(shape)}; got {own}",
        "Give one number per column.",
    )


def _multiply(
    a: jax.Array,
    b: jax.Array,
    *bias: jax.Array,
    order_a: tuple[str, bool],
    order_b: tuple[str, bool],
    scales: tuple[float, float],
    dtype: str,
    is_blocked: bool,
) -> jax.Array:
    left, right = _as_matrix("a", a, *order_a), _as_matrix("b", b, *order_b)
    is_integer = jnp.issubdtype(a.dtype, jnp.integer)
    # The matrix unit adds up in 32 bits, whatever its operands.
    result = jnp.matmul(
        left, right, preferred_element_type=jnp.int32 if is_integer else jnp.float32
    )
    alpha, beta = scales
    result = result if alpha == 1 else result * jnp.asarray(alpha, result.dtype)
    for one in bias:
        plain = one if one.ndim < 4 or not is_blocked else _as_matrix("a", one, "FRACTAL_NZ", True)
        result = result + plain.astype(result.dtype) * jnp.asarray(beta, result.dtype)
    return (to_format(result, "FRACTAL_NZ") if is_blocked else result).astype(dtype)


def _as_matrix(role: str, x: jax.Array, format: str, transposed: bool) -> jax.Array:
    if format == "ND":
        return jnp.swapaxes(x, -1, -2) if transposed else x
    split = x.transpose(_BLOCKS[role, format, bool(transposed)])
    return split.reshape(split.shape[0] * split.shape[1], -1)


def conv(
    data: Any,
    weight: Any,
    para_dict: Any,
    optim_dict: Any = None,
    dsl_flag: bool = True,
) -> Tensor:
    """Returns the convolution of images with filters.

    Args:
      data: NCHW, or NC1HWC0.
      weight: (out, in, height, width), or FRACTAL_Z if `data` is NC1HWC0.
      para_dict: a dict: ``pad_h``, ``pad_w`` (or ``padu``, ``padd``, ``padl``, ``padr``, or
        ``pad``, all four), ``stride_h``, ``stride_w``, ``dilate_h``, ``dilate_w``; ``filter_h`` and
        ``filter_w`` for FRACTAL_Z; ``bias_tensor``, one number per output channel; ``res_dtype``.
      optim_dict: not used.
      dsl_flag: not used.

    Returns:
      NCHW; for NC1HWC0, (N, C1, height * width, C0), as TBE returns it.
    """
    x, w = check_tensors("conv", data, weight)
    if not isinstance(para_dict, Mapping):
        raise _refused(f"expected a dict of parameters; got {para_dict!r}", "", "conv")
    if x.dtype != w.dtype:
        raise _refused(f"dtype must be the same: got {x.dtype} and {w.dtype}", "Cast one.", "conv")
    is_blocked = len(x.shape) == 5
    if (len(x.shape), len(w.shape)) not in ((4, 4), (5, 4)):
        raise _refused(
            f"expected NCHW with filters of four dimensions, or NC1HWC0 with FRACTAL_Z; got "
            f"{tuple(map(int, x.shape))} and {tuple(map(int, w.shape))}",
            "Correct the placeholders' shapes.",
            "conv",
        )
    channels, filters = _conv_shapes(x, w, para_dict) if is_blocked else (x.shape, w.shape)
    n, c, h, wide = map(int, channels)
    out, c_in, filter_h, filter_w = map(int, filters)
    if c != c_in:
        raise _refused(f"data has {c} channels, the filters take {c_in}", "", "conv")
    pads, strides, dilations = _windows(para_dict)
    sizes = [
        (size + sum(pad) - dilation * (extent - 1) - 1) // stride + 1
        for size, extent, pad, stride, dilation in zip(
            (h, wide), (filter_h, filter_w), pads, strides, dilations, strict=True
        )
    ]
    if min(sizes) < 1:
        raise _refused(f"the filters are larger than the padded image: {h} by {wide}", "", "conv")
    dtype = as_dtype(para_dict.get("res_dtype") or x.dtype)
    bias = para_dict.get("bias_tensor")
    inputs = [x, w] if bias is None else [x, w, *check_tensors("conv", bias)]
    shape = (n, out // 16, sizes[0] * sizes[1], 16) if is_blocked else (n, out, *sizes)
    rule = functools.partial(
        _convolve,
        channels=(n, c, h, wide),
        filters=(out, c_in, filter_h, filter_w),
        windows=(pads, strides, dilations),
        dtype=dtype,
    )
    return apply("conv", rule, inputs, shape, dtype, f"strides={strides}, pads={pads}")


def _conv_shapes(
    x: Tensor, w: Tensor, parameters: Mapping[str, Any]
) -> tuple[Sequence[int], Sequence[int]]:
    """Returns the shapes that data in NC1HWC0 and filters in FRACTAL_Z have as NCHW."""
    n, c1, h, wide, c0 = map(int, x.shape)
    sizes = int(parameters.get("filter_h", 0)), int(parameters.get("filter_w", 0))
    blocks, out1, out0, block = map(int, w.shape)
    if block != c0 or blocks != c1 * sizes[0] * sizes[1]:
        raise _refused(
            f"FRACTAL_Z filters of shape {(blocks, out1, out0, block)} do not fit filter_h, "
            f"filter_w {sizes} and {c1 * c0} channels",
            "Give filter_h and filter_w in the dict.",
            "conv",
        )
    return (n, c1 * c0, h, wide), (out1 * out0, c1 * c0, *sizes)


def _windows(given: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    if "pad" in given:
        up, down, left, right = (int(one) for one in given["pad"])
    else:
        up = int(given.get("padu", given.get("pad_h", 0)))
        down = int(given.get("padd", given.get("pad_h", 0)))
        left = int(given.get("padl", given.get("pad_w", 0)))
        right = int(given.get("padr", given.get("pad_w", 0)))
    strides = int(given.get("stride_h", 1)), int(given.get("stride_w", 1))
    dilations = int(given.get("dilate_h", 1)), int(given.get("dilate_w", 1))
    if min(*strides, *dilations) < 1 or min(up, down, left, right) < 0:
        raise _refused("expected strides of at least 1 and pads of at least 0", "", "conv")
    return ((up, down), (left, right)), strides, dilations


def _convolve(
    x: jax.Array,
    w: jax.Array,
    *bias: jax.Array,
    channels: tuple[int, ...],
    filters: tuple[int, ...],
    windows: tuple[Any, Any, Any],
    dtype: str,
) -> jax.Array:
    pads, strides, dilations = windows
    is_blocked = x.ndim == 5
    if is_blocked:
        x = from_format(x, "NC1HWC0", channels)
        w = from_format(w, "FRACTAL_Z", filters)
    is_integer = jnp.issubdtype(x.dtype, jnp.integer)
    result = jax.lax.conv_general_dilated(
        x,
        w,
        strides,
        pads,
        rhs_dilation=dilations,
        dimension_numbers=("NCHW", "OIHW", "NCHW"),
        preferred_element_type=jnp.int32 if is_integer else None,
    )
    for one in bias:
        result = result + one.reshape(-1)[: filters[0]][None, :, None, None].astype(result.dtype)
    if is_blocked:
        blocks = to_format(result, "NC1HWC0")
        result = blocks.reshape(*blocks.shape[:2], -1, blocks.shape[-1])
    return result.astype(dtype)


def check_conv_shape(
    shape_in: Any, shape_w: Any, *further: Any, **options: Any
) -> tuple[list[int], list[int]]:
    """Returns the shapes of data (NCHW) and filters with channels filled up to whole blocks.

    Args:
      shape_in: shape of the data.
      shape_w: shape of the filters.
      *further: pads, strides and dtypes, which `conv` checks.
      **options: not used.
    """
    data, filters = [list(map(int, shape)) for shape in (shape_in, shape_w)]
    if len(data) != 4 or len(filters) != 4 or data[1] != filters[1]:
        raise _refused(
            f"expected NCHW data and filters with as many channels; got {data} and {filters}",
            "Correct the shapes.",
            "check_conv_shape",
        )
    data[1] = filters[1] = -(-data[1] // 16) * 16
    return data, filters


def _refused(problem: str, remedy: str, name: str = "matmul") -> BuildError:
    return call_error(KernelTypeError, name, problem, remedy or "Correct the call.")
