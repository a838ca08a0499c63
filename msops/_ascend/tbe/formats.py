"""Ascend's data formats: the shape a tensor has in each, and the way there and back.

Sizes are padded with zeros up to whole blocks. C0, the number of channels in a block, is 16, and 32
for int8 and uint8; matrices have blocks of 16 by C0.

    format      from             shape
    NC1HWC0     NCHW             (N, C1, H, W, C0)
    C1HWNCoC0   NCHW             (C1, H, W, N, C0, C0), zero but for the diagonal of the blocks
    FRACTAL_Z   NCHW             (C1 H W, N1, 16, C0)
    FRACTAL_NZ  (..., M, N)      (..., N1, M1, 16, C0)
    NHWC, HWCN  NCHW             transposed
    NDC1HWC0    NCDHW            (N, D, C1, H, W, C0)
    FRACTAL_Z_3D  NCDHW          (D C1 H W, N1, 16, C0)
    NDHWC, DHWCN  NCDHW          transposed

A tensor of fewer than four dimensions counts as NCHW with ones: of one as C, of two as NC, of three
as NCH. Corresponds to ``trans.cc`` of MindSpore 2.0.0 (``TransShapeToDevice``, ``TransFormat``).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops._base.dtypes import as_dtype
from msops.errors import ArgumentTypeError, ArgumentValueError

Shape = tuple[int, ...]

PLAIN = ("", "DefaultFormat", "ND", "NCHW", "NCDHW")
"""Formats in which a tensor is as it is."""


@dataclass(frozen=True)
class _Layout:
    """How a format comes about: pad to whole blocks, split into them, transpose, join.

    Attributes:
      rank: the number of dimensions it starts from; None is two or more, the last two counting.
      blocks: by axis, what it is padded and split to: "C0", or a number.
      order: the axes after splitting, an axis that was split being two, in their new order.
      joined: how many leading axes of that become one.
    """

    rank: int | None
    blocks: dict[int, int | str]
    order: tuple[int, ...]
    joined: int = 1


_LAYOUTS = {
    "NC1HWC0": _Layout(4, {1: "C0"}, (0, 1, 3, 4, 2)),
    "FRACTAL_Z": _Layout(4, {0: 16, 1: "C0"}, (2, 4, 5, 0, 1, 3), 3),
    "FRACTAL_NZ": _Layout(None, {-2: 16, -1: "C0"}, (2, 0, 1, 3)),
    "NHWC": _Layout(4, {}, (0, 2, 3, 1)),
    "HWCN": _Layout(4, {}, (2, 3, 1, 0)),
    "NDC1HWC0": _Layout(5, {1: "C0"}, (0, 3, 1, 4, 5, 2)),
    "FRACTAL_Z_3D": _Layout(5, {0: 16, 1: "C0"}, (4, 2, 5, 6, 0, 1, 3), 4),
    "NDHWC": _Layout(5, {}, (0, 2, 3, 4, 1)),
    "DHWCN": _Layout(5, {}, (2, 3, 4, 1, 0)),
}
FORMATS = (*_LAYOUTS, "C1HWNCoC0")
"""Formats that change where elements are."""


def format_shape(shape: Sequence[int], format: str, dtype: str = "float32") -> Shape:
    """Returns the shape a tensor has in a format.

    Corresponds to ``trans::TransShapeToDevice`` of MindSpore 2.0.0.

    Args:
      shape: its shape.
      format: such as ``"NC1HWC0"``.
      dtype: its dtype's name; it decides the size of blocks.

    Raises:
      ArgumentTypeError: `shape` is no shape, or `dtype` no dtype.
      ArgumentValueError: an extent is negative, or the format is not known, or not for tensors of
        so many dimensions.

    Example:
      >>> from msops.tbe import format_shape
      >>> format_shape((2, 20, 5, 5), "NC1HWC0")
      (2, 2, 5, 5, 16)
    """
    return _Plan(shape, format, dtype, "format_shape").result


def to_format(x: jax.Array, format: str) -> jax.Array:
    """Returns a tensor as it lies in a format; what is added is zero.

    Args:
      x: the tensor, an array or, of ``msops.tbe``, a Tensor; the result is of the same kind.
      format: such as ``"NC1HWC0"``.

    Raises:
      ArgumentTypeError: `x` is no array.
      ArgumentValueError: the format is not known, or not for tensors of so many dimensions.

    Example:
      >>> import jax.numpy as jnp
      >>> from msops.tbe import to_format
      >>> to_format(jnp.ones((1, 3, 2, 2)), "NC1HWC0").shape
      (1, 1, 2, 2, 16)
    """
    _require_array(x, "to_format")
    if format == "C1HWNCoC0":
        return _to_diagonal(x)
    return _Plan(x.shape, format, x.dtype, "to_format").forward(x)


def from_format(y: jax.Array, format: str, shape: Sequence[int]) -> jax.Array:
    """Returns the tensor that lies in a format; what was added is dropped.

    Args:
      y: what `to_format` makes; the result is of the same kind, array or Tensor.
      format: such as ``"NC1HWC0"``.
      shape: the tensor's own shape.

    Raises:
      ArgumentTypeError: `y` is no array, or `shape` no shape.
      ArgumentValueError: the format is not known, or `y` does not have the shape it gives.

    Example:
      >>> import jax.numpy as jnp
      >>> from msops.tbe import from_format, to_format
      >>> x = jnp.arange(6.0).reshape(2, 3)
      >>> bool((from_format(to_format(x, "FRACTAL_NZ"), "FRACTAL_NZ", (2, 3)) == x).all())
      True
    """
    _require_array(y, "from_format")
    plan = _Plan(shape, format, y.dtype, "from_format")
    if tuple(y.shape) != plan.result:
        raise ArgumentValueError.explained(
            "from_format",
            f"expected shape {plan.result}, that of {plan.own} in {format}; got {tuple(y.shape)}",
            "Pass the tensor's own shape.",
        )
    if format == "C1HWNCoC0":
        return _from_diagonal(y, plan)
    return plan.backward(y)


class _Plan:
    """The steps of one conversion: shapes in between, for both ways."""

    def __init__(self, shape: Sequence[int], format: str, dtype: Any, who: str):
        self.own = _extents(shape, who)
        self.is_plain = format in PLAIN
        self.c0 = 32 if as_dtype(dtype).name in ("int8", "uint8") else 16
        if self.is_plain:
            self.result = self.own
            return
        layout = _LAYOUTS["NC1HWC0"] if format == "C1HWNCoC0" else _LAYOUTS.get(str(format))
        if layout is None:
            raise ArgumentValueError.explained(
                "data format",
                f"expected one of {', '.join((*PLAIN[1:], *FORMATS))}; got {format!r}",
                "Write the op info's rows with one of these.",
            )
        self.full = _with_all_axes(self.own, layout.rank, format)
        self.lead = 0 if layout.rank else len(self.full) - 2
        sizes = {
            axis % len(self.full): self.c0 if block == "C0" else int(block)
            for axis, block in layout.blocks.items()
        }
        self.padded = tuple(
            -(-size // sizes.get(axis, 1)) * sizes.get(axis, 1)
            for axis, size in enumerate(self.full)
        )
        self.split = tuple(
            part
            for axis, size in enumerate(self.padded)
            for part in ((size // sizes[axis], sizes[axis]) if axis in sizes else (size,))
        )
        self.order = (*range(self.lead), *(self.lead + axis for axis in layout.order))
        moved = tuple(self.split[axis] for axis in self.order)
        self.moved = moved
        self.result = (math.prod(moved[: layout.joined]), *moved[layout.joined :])
        if format == "C1HWNCoC0":
            n, c1, h, w, c0 = moved
            self.result = (c1, h, w, n, c0, c0)

    def forward(self, x: jax.Array) -> jax.Array:
        if self.is_plain:
            return x
        x = x.reshape(self.full)
        pads = [(0, size - own) for own, size in zip(self.full, self.padded, strict=True)]
        x = jnp.pad(x, pads) if any(after for _, after in pads) else x
        x = x.reshape(self.split).transpose(self.order)
        return x.reshape(self.result)

    def backward(self, y: jax.Array) -> jax.Array:
        if self.is_plain:
            return y
        back = sorted(range(len(self.order)), key=lambda axis: self.order[axis])
        x = y.reshape(self.moved).transpose(back).reshape(self.padded)
        return x[tuple(slice(size) for size in self.full)].reshape(self.own)


def _require_array(value: Any, who: str) -> None:
    if not isinstance(value, (jax.Array, np.ndarray)):
        raise ArgumentTypeError.explained(
            who,
            f"expected an array; got {type(value).__name__}",
            "Pass a Tensor, a jax.Array or a numpy array, e.g. jnp.asarray(x).",
        )


def _extents(shape: Any, who: str) -> Shape:
    try:
        extents = tuple(map(operator.index, shape))
    except TypeError:
        raise ArgumentTypeError.explained(
            who, f"expected a shape; got {shape!r}", "Pass a tuple of ints."
        ) from None
    if any(extent < 0 for extent in extents):
        raise ArgumentValueError.explained(
            who,
            f"expected extents of 0 or more; got shape {extents}",
            "Pass the shape the tensor has.",
        )
    return extents


def _with_all_axes(shape: Shape, rank: int | None, format: str) -> Shape:
    if rank is None:
        if len(shape) >= 2:
            return shape
        needed = "two dimensions or more"
    elif len(shape) == rank:
        return shape
    elif rank == 4 and len(shape) < 4:
        return {0: (1, 1, 1, 1), 1: (1, *shape, 1, 1), 2: (*shape, 1, 1), 3: (*shape, 1)}[
            len(shape)
        ]
    else:
        needed = f"{rank} dimensions" + (" at most" if rank == 4 else "")
    raise ArgumentValueError.explained(
        f"data format {format}",
        f"expected a tensor of {needed}; got shape {shape}",
        "Give the op info a row with DefaultFormat for this tensor.",
    )


def _to_diagonal(x: jax.Array) -> jax.Array:
    """Returns C1HWNCoC0: each channel of a block on the diagonal of a C0 by C0 matrix."""
    blocks = to_format(x, "NC1HWC0").transpose(1, 2, 3, 0, 4)
    return blocks[..., None] * jnp.eye(blocks.shape[-1], dtype=x.dtype)


def _from_diagonal(y: jax.Array, plan: _Plan) -> jax.Array:
    return plan.backward(jnp.diagonal(y, axis1=-2, axis2=-1).transpose(3, 0, 1, 2, 4))
