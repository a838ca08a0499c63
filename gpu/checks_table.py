"""The operators that `make gpu` runs on a GPU, each with its meaning in numpy.

`tests/test_gpu_lowering.py` lowers the same table for CUDA on machines that have no GPU. A new
check is one row of `CHECKS`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from msops import Custom
from msops.ops import CustomRegOp, DataType

KERNELS = Path(__file__).resolve().parent / "kernels"


@dataclasses.dataclass(frozen=True)
class Check:
    """One operator on a GPU.

    Attributes:
      name: what the row says.
      make: returns a function of arrays that uses the operator.
      inputs: returns its inputs from a random generator.
      numpy: the same function in numpy; returns an array or a tuple of them.
      source: base name of the kernel's source; empty for a Python function.
      symbols: the kernels its program calls on the device.
      tolerance: the largest error allowed, relative to the largest value.
    """

    name: str
    make: Callable[[], Callable[..., Any]]
    inputs: Callable[[np.random.Generator], tuple[np.ndarray, ...]]
    numpy: Callable[..., Any]
    source: str
    symbols: tuple[str, ...]
    tolerance: float = 1e-6


def _first(x: Any, *_: Any) -> Any:
    """Infers what the first input is."""
    return x


def _kernel(source: str, symbol: str, out_shape: Any, out_dtype: Any, **options: Any) -> Custom:
    return Custom(f"{KERNELS / source}:{symbol}", out_shape, out_dtype, **options)


def _floats(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: rng.normal(size=shape).astype(np.float32)


def _inputs(*makers: Callable[[np.random.Generator], np.ndarray]) -> Callable[..., Any]:
    return lambda rng: tuple(maker(rng) for maker in makers)


def _soft_sign() -> Custom:
    info = CustomRegOp("SoftSign").input(0, "x").output(0, "y").target("Ascend").get_op_info()
    source = str(KERNELS / "soft_sign.cc")
    return Custom(source, _first, _first, func_type="aicpu", reg_info=info)


def _square_with_gradient() -> Callable[..., Any]:
    gradient = _kernel("square.cu", "SquareGrad", _first, _first)
    square = _kernel(
        "square.cu", "Square", _first, _first, bprop=lambda x, out, dout: (gradient(x, dout),)
    )

    def apply(x: Any, dy: Any) -> Any:
        y, pullback = jax.vjp(square, x)
        return y, pullback(dy)[0]

    return apply


def _row_normalise() -> Callable[..., Any]:
    info = (
        CustomRegOp("RowNormalise")
        .input(0, "x")
        .output(0, "y")
        .attr("scale", "required", "float")
        .attr("epsilon", "optional", "float", default_value="1e-6")
        .dtype_format(DataType.F32_Default, DataType.F32_Default)
        .target("GPU")
        .get_op_info()
    )
    op = _kernel("row_normalise.cu", "RowNormalise", _first, _first, reg_info=info)
    return lambda x: op(x, 2.5)


def _normalised(x: np.ndarray) -> np.ndarray:
    mean_square = np.mean(np.square(x, dtype=np.float64), axis=1, keepdims=True)
    return (2.5 * x / np.sqrt(mean_square + 1e-6)).astype(np.float32)


CHECKS = (
    Check(
        "add",
        lambda: _kernel("add.cu", "Add", _first, _first),
        _inputs(_floats(1024, 1024), _floats(1024, 1024)),
        lambda x, y: x + y,
        "add.cu",
        ("Add",),
    ),
    Check(
        "square, aot bprop",
        _square_with_gradient,
        _inputs(_floats(1024, 1024), _floats(1024, 1024)),
        lambda x, dy: (x * x, 2 * x * dy),
        "square.cu",
        ("Square", "SquareGrad"),
    ),
    Check(
        "three outputs",
        lambda: _kernel(
            "row_statistics.cu",
            "RowStatistics",
            lambda x: (x[:1], x[:1], x[:1]),
            (np.float32, np.float32, np.int32),
        ),
        _inputs(_floats(1024, 1000)),
        lambda x: (
            x.mean(1, dtype=np.float64).astype(np.float32),
            x.max(1),
            x.argmax(1).astype(np.int32),
        ),
        "row_statistics.cu",
        ("RowStatistics",),
    ),
    Check(
        "gather by int64 index",
        lambda: _kernel(
            "gather.cu",
            "Gather",
            lambda table, index: (index[0], table[1]),
            _first,
        ),
        _inputs(_floats(5000, 64), lambda rng: rng.integers(0, 5000, 20000, dtype=np.int64)),
        lambda table, index: table[index],
        "gather.cu",
        ("Gather",),
        tolerance=0.0,
    ),
    Check(
        "float16 with float32",
        lambda: _kernel("mixed_axpy.cu", "MixedAxpy", lambda w, x, y: x, lambda w, x, y: x),
        _inputs(
            lambda rng: rng.normal(size=(1024, 1024)).astype(np.float16),
            _floats(1024, 1024),
            _floats(1024, 1024),
        ),
        lambda w, x, y: w.astype(np.float32) * x + y,
        "mixed_axpy.cu",
        ("MixedAxpy",),
    ),
    Check(
        "attributes with workspace",
        _row_normalise,
        _inputs(_floats(1000, 1024)),
        _normalised,
        "row_normalise.cu",
        ("RowNormalise",),
        tolerance=1e-5,
    ),
    Check(
        "no elements",
        lambda: _kernel("add.cu", "Add", _first, _first),
        _inputs(_floats(0, 3), _floats(0, 3)),
        lambda x, y: x + y,
        "add.cu",
        ("Add",),
    ),
    Check(
        "pyfunc",
        lambda: Custom(np.sort, _first, _first),
        _inputs(_floats(1000)),
        np.sort,
        "",
        (),
        tolerance=0.0,
    ),
    Check(
        "host kernel, host=True",
        lambda: _kernel("host_clip.cc", "HostClip", _first, _first, host=True),
        _inputs(_floats(1024, 1024)),
        lambda x: np.maximum(x, 0),
        "host_clip.cc",
        (),
        tolerance=0.0,
    ),
    Check(
        "aicpu kernel",
        _soft_sign,
        _inputs(_floats(1024, 1024)),
        lambda x: x / (1 + np.abs(x)),
        "soft_sign.cc",
        (),
        tolerance=0.0,
    ),
)
