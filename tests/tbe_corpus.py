"""The kernel files of `tests/tbe_kernels`, each with its meaning in numpy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
from tbe_ops import convolved

from msops import Custom

FOLDER = Path(__file__).resolve().parent / "tbe_kernels"
IDS = [1, 0, -1, 1, 3]


@dataclasses.dataclass(frozen=True)
class Case:
    """One kernel.

    Attributes:
      file: its file; the entry has its name unless `entry` is given.
      shapes: of the inputs; a list of shapes is a dynamic input.
      numpy: from inputs and attributes to the results, in float64.
      attributes: what follows the inputs.
      entry: the entry function.
      dtype: dtype of the inputs.
      results: dtypes of the results; None: as the inputs.
      positive: whether the inputs are.
      differentiable: whether differences of `numpy` tell its derivative.
    """

    file: str
    shapes: tuple[Any, ...]
    numpy: Callable[..., Any]
    attributes: tuple[Any, ...] = ()
    entry: str = ""
    dtype: str = "float32"
    results: tuple[str, ...] | None = None
    positive: bool = False
    differentiable: bool = True

    def __str__(self) -> str:
        return f"{self.entry or self.file}-{self.dtype}"

    def inputs(self, seed: int = 0) -> list[Any]:
        rng = np.random.default_rng(seed)

        def one(shape: Any) -> Any:
            if isinstance(shape, list):
                return [one(part) for part in shape]
            x = rng.normal(size=shape)
            return jnp.asarray(np.abs(x) + 0.5 if self.positive else x, self.dtype)

        return [one(shape) for shape in self.shapes]

    def expected(self, inputs: Any) -> list[np.ndarray]:
        wide = jax.tree.map(lambda x: np.asarray(x, "f8"), inputs)
        results = self.numpy(*wide, *self.attributes)
        return list(results) if isinstance(results, tuple) else [results]

    def check(self, results: Any, inputs: Any) -> None:
        """Holds results against numpy's."""
        for got, wanted in zip(jax.tree.leaves(results), self.expected(inputs), strict=True):
            assert got.shape == wanted.shape
            limit = 2e-2 if self.dtype == "float16" else 2e-5
            np.testing.assert_allclose(np.asarray(got, "f8"), wanted, rtol=limit, atol=limit)

    def op(self) -> Callable[..., Any]:
        likes = self.expected(self.inputs())
        shapes = tuple(list(like.shape) for like in likes)
        dtypes = tuple(jnp.dtype(d) for d in self.results or [self.dtype] * len(likes))
        op = Custom(
            f"{FOLDER / self.file}.py:{self.entry or self.file}",
            lambda *_: shapes if len(shapes) > 1 else shapes[0],
            lambda *_: dtypes if len(dtypes) > 1 else dtypes[0],
            func_type="tbe",
        )
        return lambda *inputs: op(*inputs, *self.attributes)


def wide(vector: np.ndarray) -> np.ndarray:
    return vector[:, None, None]


def normalised(x: Any, mean: Any, variance: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    scale = gamma / np.sqrt(variance + epsilon)
    return wide(scale) * (x - wide(mean)) + wide(beta)


def layer_norm(x: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta, mean, variance


def ema_range(x: Any, low: Any, high: Any, decay: float) -> Any:
    # 20 channels fill two blocks of 16: the zeros of the padding are in the range.
    return (
        np.minimum(decay * low + (1 - decay) * min(x.min(), 0), 0),
        np.maximum(decay * high + (1 - decay) * max(x.max(), 0), 0),
    )


def levels(x: Any, scale: Any, bits: int, narrow: bool) -> Any:
    high = 2 ** (bits - 1) - 1
    clipped = np.clip(x / wide(scale), -high if narrow else -high - 1, high)
    return np.floor(clipped + 0.5) * wide(scale)


def segment_rows(x: Any, ids: Any) -> Any:
    ids = np.array(ids)
    means = [x[ids == i].mean(0) if (ids == i).any() else np.zeros(x.shape[1]) for i in range(4)]
    return np.stack([*means, x.max(0)])


def momentum(w: Any, speed: Any, slope: Any, rate: float, decay: float = 0.0) -> Any:
    speed = 0.9 * speed + slope + decay * w
    return w - rate * speed, speed


IMAGE = (2, 20, 3, 2)
CHANNEL = (20,)
CASES = [
    Case("add3", ((3, 4),) * 3, lambda a, b, c: a + b + c),
    Case("add3", ((3, 4),) * 3, lambda a, b, c: a + b + c, dtype="int32", differentiable=False),
    Case("square_bias", ((3, 1, 4),), lambda x, bias: (x * x, x * x + bias), (2.0,)),
    Case("square_bias", ((3, 1, 4),), lambda x: (x * x, x * x + 1)),
    Case("bn_infer", (IMAGE, *[CHANNEL] * 4), normalised, (0.01,), positive=True),
    Case("bn_infer", (IMAGE, *[CHANNEL] * 4), normalised, (0.01,), dtype="float16", positive=True),
    Case("quantize_levels", (IMAGE, CHANNEL), levels, (3, True), positive=True),
    Case("ema_range", (IMAGE, (1,), (1,)), ema_range, (0.75,)),
    Case("channel_moments", (IMAGE,), lambda x: (x.sum((0, 2, 3)), (x * x).sum((0, 2, 3)))),
    Case("bessel", ((5, 1, 7),), lambda x: scipy.special.i0e(x), entry="bessel_i0e"),
    Case("bessel", ((5, 1, 7),), lambda x: scipy.special.i1e(x), entry="bessel_i1e"),
    Case("bessel_y1", ((5, 1, 7),), lambda x: scipy.special.y1(x), positive=True),
    Case("bessel_y1", ((5, 7),), lambda x: scipy.special.y1(x), dtype="float16", positive=True),
    Case("softmax", ((3, 5, 4),), lambda x, axis: scipy.special.softmax(x, axis), (1,)),
    Case("softmax", ((3, 5),), lambda x: scipy.special.softmax(x, -1)),
    Case("layer_norm", ((4, 6), (6,), (6,)), layer_norm, (1e-3,)),
    Case("add_n", ([(3, 4)] * 3,), lambda xs: sum(xs)),
    Case("add_n", ([(3, 4)] * 2, (4,)), lambda xs, bias: sum(xs) + bias),
    Case(
        "hard_shrink",
        ((3, 8),),
        lambda x, limit: (np.where(np.abs(x) > limit, x, 0), (np.abs(x) > limit).sum(-1)),
        (0.5,),
        results=("float32", "int32"),
    ),
    Case("segment_rows", ((5, 3),), segment_rows, (IDS,)),
    Case("dense", ((3, 5), (4, 5), (4,)), lambda x, w, b, s: leaky(x @ w.T + b, s), (0.1,)),
    Case("dense", ((3, 5), (4, 5)), lambda x, w, s: leaky(x @ w.T, s), (0.1,)),
    Case(
        "conv_layer",
        ((2, 3, 6, 5), (4, 3, 3, 2)),
        lambda x, w, stride, pad: convolved(x, w, stride, pad, 1),
        (2, 1),
    ),
    Case(
        "conv_layer",
        ((2, 3, 6, 5), (4, 3, 3, 2)),
        lambda x, w, stride, pad: convolved(x, w, stride, pad, 1),
        (1, 1),
        dtype="float16",
    ),
    Case(
        "blocked_product",
        ((20, 33), (33, 17)),
        lambda a, b: a @ b,
        dtype="float16",
        results=("float32",),
    ),
    Case(
        "row_norm",
        ((4, 6), (6,)),
        lambda x, w: np.tanh(w * x / np.sqrt((x * x).sum(1, keepdims=True) + 1e-6)),
    ),
    Case("momentum", ((3, 4),) * 3, momentum, (0.1, 0.01)),
]


def leaky(x: Any, slope: float) -> Any:
    return np.where(x >= 0, x, slope * x)
