"""The ops that transformation tests run over: each with its meaning in numpy."""
# Loop kernels use names that mean something only inside them.
# ruff: noqa: F821

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from aicpu_cases import UNOPTIMISED
from conftest import KERNELS, ROOT
from tbe_ops import kernel_of, op_info

from msops import Custom, ops
from msops.ops import CustomRegOp, DataType

FLOAT_OPS = KERNELS / "float_ops.cc"


def first(x: Any, *_: Any) -> Any:
    """Infers what the first input is."""
    return x


def aot(symbol: str, out_shape: Any = first, out_dtype: Any = first, **options: Any) -> Custom:
    """Returns an op over a kernel of float_ops.cc."""
    return Custom(f"{FLOAT_OPS}:{symbol}", out_shape, out_dtype, **options)


def aicpu(kernel: str, out_shape: Any = first, out_dtype: Any = first, **options: Any) -> Custom:
    """Returns an op over a kernel of two inputs in aicpu_kernels/multiply.cc."""
    info = CustomRegOp(kernel).input(0, "x").input(1, "y").output(0, "z").target("Ascend")
    return Custom(
        str(ROOT / "tests" / "aicpu_kernels" / "multiply.cc"),
        out_shape,
        out_dtype,
        func_type="aicpu",
        reg_info=info.get_op_info(),
        build=UNOPTIMISED,
        **options,
    )


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


def matmul(a, b):
    c = output_tensor((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            c[i, j] = 0.0
            for k in range(a.shape[1]):
                c[i, j] = c[i, j] + a[i, k] * b[k, j]
    return c


def solve_lower(a, b):
    """Each row waits for those before it; the diagonal is taken for ones."""
    x = output_tensor(b.shape, b.dtype)
    for i in range(b.shape[0]):
        x[i] = b[i]
        for k in range(i):
            x[i] = x[i] - a[i, k] * x[k]
    return x


@ops.kernel
def sum_and_max(x, y):
    s = output_tensor(x.shape, x.dtype)
    m = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        s[i] = x[i] + y[i]
        m[i] = max(x[i], y[i])
    return s, m


def horner(x, at):
    y = output_tensor((1,), x.dtype)
    y[0] = 0.0
    for i in range(x.shape[0]):
        y[0] = y[0] * at + x[i]
    return y


def multiply(x, y):
    z = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        z[i] = x[i] * y[i]
    return z


def loops(kernel: Callable[..., Any], lower: str | None = None, **options: Any) -> Custom:
    """Returns an op over a loop kernel, which infers and differentiates itself."""
    func_type = "hybrid" if hasattr(kernel, "ms_kernel_flag") else "akg"
    attrs = None if lower is None else {"lower": lower}
    return Custom(kernel, func_type=func_type, compile_attrs=attrs, **options)


def tbe(
    compute: Callable[..., Any],
    outputs: int = 1,
    out_shape: Any = first,
    out_dtype: Any = first,
    **options: Any,
) -> Custom:
    """Returns an op over a TBE kernel of two inputs."""
    kernel = kernel_of(compute, 2, outputs)
    info = op_info(2, outputs)
    return Custom(kernel, out_shape, out_dtype, func_type="tbe", reg_info=info, **options)


@dataclasses.dataclass(frozen=True)
class Case:
    """One op, its inputs' shapes, and the same in numpy."""

    name: str
    make: Callable[[], Callable[..., Any]]
    shapes: tuple[tuple[int, ...], ...]
    numpy: Callable[..., Any]
    has_bprop: bool = True

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


def _horner() -> Callable[..., Any]:
    info = (
        CustomRegOp("horner")
        .input(0, "x")
        .output(0, "y")
        .attr("at", "required", "float")
        .dtype_format(DataType.F32_Default, DataType.F32_Default)
        .target("CPU")
        .get_op_info()
    )
    op = loops(horner, reg_info=info)
    return lambda x: op(x, 1.5)


def _solve_lower_in_numpy(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.linalg.solve(np.tril(a, -1) + np.eye(len(a)), b).astype(b.dtype)


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
        "aicpu",
        lambda: aicpu("Mul", bprop=multiply_bprop),
        ((3, 4), (3, 4)),
        lambda x, y: x * y,
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
    Case(
        "akg_raised",
        lambda: loops(matmul, "xla"),
        ((3, 4), (4, 2)),
        lambda a, b: a @ b,
        has_bprop=False,
    ),
    Case(
        "akg_native",
        lambda: loops(solve_lower, "native"),
        ((4, 4), (4,)),
        _solve_lower_in_numpy,
        has_bprop=False,
    ),
    Case(
        "hybrid_two_outputs",
        lambda: loops(sum_and_max),
        ((5,), (5,)),
        lambda x, y: (x + y, np.maximum(x, y)),
        has_bprop=False,
    ),
    Case(
        "hybrid_two_outputs_native",
        lambda: loops(sum_and_max, "native"),
        ((5,), (5,)),
        lambda x, y: (x + y, np.maximum(x, y)),
        has_bprop=False,
    ),
    Case(
        "akg_attribute",
        _horner,
        ((4,),),
        lambda x: (x * 1.5 ** np.arange(len(x))[::-1]).sum(keepdims=True).astype(x.dtype),
        has_bprop=False,
    ),
    Case(
        "akg_bprop",
        lambda: loops(multiply, bprop=multiply_bprop),
        ((5,), (5,)),
        lambda x, y: x * y,
    ),
    Case(
        "tbe",
        lambda: tbe(lambda te, x, y: te.vmul(te.vexp(x), y)),
        ((3, 4), (3, 4)),
        lambda x, y: np.exp(x) * y,
        has_bprop=False,
    ),
    Case(
        "tbe_two_outputs",
        lambda: tbe(
            lambda te, x, y: (te.vadd(x, y), te.sum(te.vmul(x, y), 1, True)),
            2,
            lambda x, y: (x, [x[0], 1]),
            lambda x, y: (x, y),
        ),
        ((3, 4), (3, 4)),
        lambda x, y: (x + y, (x * y).sum(1, keepdims=True)),
        has_bprop=False,
    ),
    Case(
        "tbe_bprop",
        lambda: tbe(lambda te, x, y: te.vmul(x, y), bprop=multiply_bprop),
        ((5,), (5,)),
        lambda x, y: x * y,
    ),
]
