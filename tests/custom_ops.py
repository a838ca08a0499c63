"""The ops that transformation tests run over: each with its meaning in numpy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from conftest import KERNELS

from msops import Custom
from msops.ops import CustomRegOp, DataType

FLOAT_OPS = KERNELS / "float_ops.cc"


def first(x: Any, *_: Any) -> Any:
    """Infers what the first input is."""
    return x


def aot(symbol: str, out_shape: Any = first, out_dtype: Any = first, **options: Any) -> Custom:
    """Returns an op over a kernel of float_ops.cc."""
    return Custom(f"{FLOAT_OPS}:{symbol}", out_shape, out_dtype, **options)


def multiply_bprop(x: Any, y: Any, out: Any, dout: Any) -> tuple[Any, ...]:
    return dout * y, dout * x


def scale_sum_info(**dtype_format: Any) -> dict[str, Any]:
    """Returns op info of ScaleSum: one input, one output, the attribute scale."""
    return (
        CustomRegOp("ScaleSum")
        .input(0, "x")
        .output(0, "y")
        .attr("scale", "required", "float")
        .dtype_format(DataType.F32_Default, DataType.F32_Default)
        .target("CPU")
        .get_op_info()
    )


@dataclasses.dataclass(frozen=True)
class Case:
    """One op, its inputs' shapes, and the same in numpy."""

    name: str
    make: Callable[[], Callable[..., Any]]
    shapes: tuple[tuple[int, ...], ...]
    numpy: Callable[..., Any]

    def inputs(self, seed: int = 0) -> list[Any]:
        rng = np.random.default_rng(seed)
        return [jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in self.shapes]


def _scale_sum() -> Callable[..., Any]:
    op = aot(
        "ScaleSum",
        lambda x, scale: x[:1],
        lambda x, scale: x,
        reg_info=scale_sum_info(),
        bprop=lambda x, scale, out, dout: (
            jnp.broadcast_to(dout[:, None] * scale, x.shape),
            None,
        ),
    )
    return lambda x: op(x, 2.5)


CASES = [
    Case(
        "aot",
        lambda: aot("Multiply", bprop=multiply_bprop),
        ((3, 4), (3, 4)),
        lambda x, y: x * y,
    ),
    Case(
        "aot_two_outputs",
        lambda: aot(
            "SumAndMax",
            lambda x, y: (x, y),
            lambda x, y: (x, y),
            bprop=lambda x, y, out, dout: (
                dout[0] + jnp.where(x > y, dout[1], 0),
                dout[0] + jnp.where(x > y, 0, dout[1]),
            ),
        ),
        ((5,), (5,)),
        lambda x, y: (x + y, np.maximum(x, y)),
    ),
    Case("aot_attribute_workspace", _scale_sum, ((2, 3),), lambda x: (2.5 * x).sum(1)),
    Case(
        "aot_list_input",
        lambda: (lambda op: lambda x, y: op([x, y]))(
            aot(
                "AddAll",
                lambda xs: xs[0],
                lambda xs: xs[0],
                bprop=lambda xs, out, dout: ([dout] * len(xs),),
            )
        ),
        ((4,), (4,)),
        lambda x, y: x + y,
    ),
    Case(
        "pyfunc",
        lambda: Custom(lambda x, y: x * y, first, first, bprop=multiply_bprop),
        ((3, 4), (3, 4)),
        lambda x, y: x * y,
    ),
    Case(
        "pyfunc_scalar_and_array",
        lambda: Custom(
            lambda x: (x.sum(), np.exp(x)),
            lambda x: ((), x),
            lambda x: (x, x),
            bprop=lambda x, out, dout: (dout[0] + dout[1] * out[1],),
        ),
        ((2, 3),),
        lambda x: (x.sum(), np.exp(x)),
    ),
]
