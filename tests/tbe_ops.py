"""Makes tbe ops of small kernels, for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from msops import Custom
from msops.ops import CustomRegOp


def op_info(
    inputs: int | Sequence[str],
    outputs: int = 1,
    rows: Sequence[Sequence[tuple[str, str]]] | None = None,
    attributes: Sequence[tuple[str, str, str]] = (),
) -> dict[str, Any]:
    """Returns op info for Ascend.

    Args:
      inputs: how many, or the kind of each.
      outputs: how many.
      rows: (dtype, format) of all of them; None accepts everything.
      attributes: name, param_type, value_type of each.
    """
    kinds = ["required"] * inputs if isinstance(inputs, int) else inputs
    builder = CustomRegOp("kernel")
    for index, kind in enumerate(kinds):
        builder.input(index, f"x{index}", kind)
    for index in range(outputs):
        builder.output(index, f"y{index}")
    for attribute in attributes:
        builder.attr(*attribute)
    for row in rows or [[("", "")] * (len(kinds) + outputs)]:
        builder.dtype_format(*row)
    return builder.target("Ascend").get_op_info()


def kernel_of(compute: Callable[..., Any], inputs: int, outputs: int = 1) -> Callable[..., None]:
    """Returns the entry function of a kernel.

    Args:
      compute: from `te.lang.cce` and the placeholders to the result, or a list of them.
      inputs: how many.
      outputs: how many.
    """

    def entry(*args: Any, kernel_name: str) -> None:
        import te.lang.cce
        from te import tvm
        from topi import generic

        data = [
            tvm.placeholder(x.get("shape"), name=x.get("name"), dtype=x.get("dtype"))
            for x in args[:inputs]
        ]
        result = compute(te.lang.cce, *data)
        results = list(result) if isinstance(result, (list, tuple)) else [result]
        with tvm.target.cce():
            schedule = generic.auto_schedule(results)
        config = {"name": kernel_name, "tensor_list": [*data, *results]}
        te.lang.cce.cce_build_code(schedule, config)

    return entry


def run(compute: Callable[..., Any], *arrays: Any, like: Any = None, several: bool = False) -> Any:
    """Returns what a kernel computes.

    Args:
      compute: see `kernel_of`.
      *arrays: the inputs.
      like: the result's shape and dtype, as an array or a list of them; None: as the first input.
      several: whether there are several results.
    """
    likes = like if several else [arrays[0] if like is None else like]
    op = Custom(
        kernel_of(compute, len(arrays), len(likes)),
        tuple(list(one.shape) for one in likes) if several else list(likes[0].shape),
        tuple(one.dtype for one in likes) if several else likes[0].dtype,
        func_type="tbe",
        reg_info=op_info(len(arrays), len(likes)),
    )
    got = op(*(jnp.asarray(array) for array in arrays))
    return [np.asarray(one) for one in got] if several else np.asarray(got)


def convolved(x: Any, w: Any, stride: int, pad: int, dilation: int) -> np.ndarray:
    """Returns a convolution, element by element."""
    x = np.pad(x, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    reach = [dilation * (size - 1) + 1 for size in w.shape[2:]]
    sizes = [(size - r) // stride + 1 for size, r in zip(x.shape[2:], reach, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes))
    for i in range(sizes[0]):
        for j in range(sizes[1]):
            window = x[
                :,
                :,
                i * stride : i * stride + reach[0] : dilation,
                j * stride : j * stride + reach[1] : dilation,
            ]
            out[:, :, i, j] = np.einsum("nchw,ochw->no", window, w)
    return out
