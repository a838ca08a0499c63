"""Every function of topi as a row: a call of it, what numpy says, and inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from loop_ir import TVM_MODULES as MODULES
from numpy.random import Generator

topi, tvm = MODULES["topi"], MODULES["tvm"]
nn = topi.nn

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """A call of a topi function.

    Attributes:
      name: of the function, with what is special about the call.
      call: from tensors to the result, a tensor or several.
      expected: the same of numpy arrays.
      shapes: of the inputs.
      dtypes: dtype of all inputs, one run for each; a tuple is one dtype per input.
      values: makes an input from a generator and a shape.
    """

    name: str
    call: Callable[..., Any]
    expected: Callable[..., Any]
    shapes: tuple[Shape, ...]
    dtypes: tuple[Any, ...]
    values: Callable[[Generator, Shape], np.ndarray]

    @property
    def function(self) -> str:
        """The name of the function alone."""
        return self.name.partition(" ")[0]


FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int32", "int64", "uint8")
NUMBERS = (*FLOATS, *INTEGERS)


def _any(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.uniform(-3, 3, shape)


def _whole(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.integers(-9, 10, shape)


def _natural(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.integers(0, 10, shape)


def _positive(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.uniform(0.5, 3, shape)


def _unit(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.uniform(-0.9, 0.9, shape)


def _nonzero(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.integers(1, 9, shape) * rng.choice([-1, 1], shape)


def _special(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.choice([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan], shape)


def _halves(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.integers(-9, 10, shape) / 2


def _bits(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.integers(0, 2, shape)


def _round_away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


_UNARY: dict[str, tuple[Any, Any, Any]] = {
    "abs": (np.abs, NUMBERS, _whole),
    "acos": (np.arccos, FLOATS, _unit),
    "acosh": (lambda x: np.arccosh(x), FLOATS, lambda r, s: 1 + _positive(r, s)),
    "asin": (np.arcsin, FLOATS, _unit),
    "asinh": (np.arcsinh, FLOATS, _any),
    "atan": (np.arctan, FLOATS, _any),
    "atanh": (np.arctanh, FLOATS, _unit),
    "ceil": (np.ceil, FLOATS, _any),
    "cos": (np.cos, FLOATS, _any),
    "cosh": (np.cosh, FLOATS, _any),
    "erf": (np.vectorize(math.erf, otypes=[np.float64]), FLOATS, _any),
    "exp": (np.exp, FLOATS, _any),
    "exp10": (lambda x: np.power(10.0, x), FLOATS, _any),
    "exp2": (np.exp2, FLOATS, _any),
    "expm1": (np.expm1, FLOATS, _any),
    "floor": (np.floor, FLOATS, _any),
    "identity": (np.array, NUMBERS, _whole),
    "isfinite": (np.isfinite, FLOATS, _special),
    "isinf": (np.isinf, FLOATS, _special),
    "isnan": (np.isnan, FLOATS, _special),
    "log": (np.log, FLOATS, _positive),
    "log10": (np.log10, FLOATS, _positive),
    "log1p": (np.log1p, FLOATS, _positive),
    "log2": (np.log2, FLOATS, _positive),
    "nearbyint": (np.rint, FLOATS, _halves),
    "negative": (np.negative, NUMBERS, _whole),
    "popcount": (
        np.vectorize(lambda x: int(x).bit_count(), otypes=[np.int64]),
        ("int32", "int64"),
        _natural,
    ),
    "round": (_round_away, FLOATS, _halves),
    "rsqrt": (lambda x: 1 / np.sqrt(x), FLOATS, _positive),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), FLOATS, _any),
    "sign": (np.sign, NUMBERS, _whole),
    "sin": (np.sin, FLOATS, _any),
    "sinh": (np.sinh, FLOATS, _any),
    "sqrt": (np.sqrt, FLOATS, _positive),
    "tan": (np.tan, FLOATS, _unit),
    "tanh": (np.tanh, FLOATS, _any),
    "trunc": (np.trunc, FLOATS, _any),
}

_BINARY: dict[str, tuple[Any, Any, Any]] = {
    "add": (np.add, NUMBERS, _whole),
    "bitwise_and": (np.bitwise_and, INTEGERS, _whole),
    "bitwise_or": (np.bitwise_or, INTEGERS, _whole),
    "bitwise_xor": (np.bitwise_xor, INTEGERS, _whole),
    "divide": (np.divide, FLOATS, _nonzero),
    "equal": (np.equal, NUMBERS, _bits),
    "floor_divide": (np.floor_divide, NUMBERS, _nonzero),
    "floor_mod": (np.mod, NUMBERS, _nonzero),
    "greater": (np.greater, NUMBERS, _whole),
    "greater_equal": (np.greater_equal, NUMBERS, _bits),
    "left_shift": (np.left_shift, ("int32", "int64"), lambda r, s: r.integers(0, 7, s)),
    "less": (np.less, NUMBERS, _whole),
    "less_equal": (np.less_equal, NUMBERS, _bits),
    "logical_and": (np.logical_and, ("bool", "int32"), _bits),
    "logical_or": (np.logical_or, ("bool", "int32"), _bits),
    "logical_xor": (np.logical_xor, ("bool", "int32"), _bits),
    "maximum": (np.maximum, (*NUMBERS, "bfloat16"), _whole),
    "minimum": (np.minimum, NUMBERS, _whole),
    "mod": (np.fmod, NUMBERS, _nonzero),
    "multiply": (np.multiply, NUMBERS, _whole),
    "not_equal": (np.not_equal, NUMBERS, _bits),
    "power": (np.power, ("float32", "float64"), _positive),
    "right_shift": (np.right_shift, ("int32", "int64"), lambda r, s: r.integers(0, 7, s)),
    "subtract": (np.subtract, NUMBERS, _whole),
}


def _pool(x: np.ndarray, kind: str, kernel: Any, stride: Any, padding: Any, layout: str = "NCHW",
          ceil_mode: bool = False, count_include_pad: bool = True) -> np.ndarray:  # fmt: skip
    axes = [layout.index("H"), layout.index("W")]
    window, steps, pads = [1] * 4, [1] * 4, [(0, 0)] * 4
    for place, axis in enumerate(axes):
        window[axis], steps[axis] = kernel[place], stride[place]
        after = padding[place + 2] + (stride[place] - 1 if ceil_mode else 0)
        pads[axis] = (padding[place], after)

    def over(array: np.ndarray, start: float, combine: Any) -> np.ndarray:
        return np.asarray(jax.lax.reduce_window(array, start, combine, window, steps, pads))

    if kind == "max":
        return over(x, -np.inf, jax.lax.max)
    whole = np.ones_like(x)
    counts = over(whole, 0.0, jax.lax.add) if not count_include_pad else math.prod(kernel)
    return over(x, 0.0, jax.lax.add) / np.maximum(counts, 1)


def _row(
    name: str,
    call: Callable[..., Any],
    expected: Callable[..., Any],
    *shapes: Shape,
    dtypes: tuple[Any, ...] = ("float32",),
    values: Any = _any,
) -> Row:
    return Row(name, call, expected, shapes, dtypes, values)


def _reference(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a reduction of numpy with topi's result shape: (1,) for all axes."""

    def apply(x: np.ndarray, axis: Any = None, keepdims: bool = False) -> np.ndarray:
        return np.atleast_1d(function(x, axis=axis, keepdims=keepdims))

    return apply


def _reduction_rows() -> list[Row]:
    table: dict[str, tuple[Any, Any, Any]] = {
        "sum": (np.sum, ("float32", "int32", "int64"), _whole),
        "prod": (np.prod, ("float32", "int32"), lambda r, s: r.choice([-1, 1, 2], s)),
        "max": (np.max, NUMBERS, _whole),
        "min": (np.min, NUMBERS, _whole),
        "all": (np.all, ("bool", "int32"), lambda r, s: r.random(s) < 0.8),
        "any": (np.any, ("bool", "int32"), lambda r, s: r.random(s) < 0.2),
    }
    rows = []
    for name, (function, dtypes, values) in table.items():
        for axis in (None, 1, -1, (0, 2)):
            for keepdims in (False, True):
                rows.append(
                    _row(
                        f"{name} {axis} {keepdims}",
                        lambda x, n=name, a=axis, k=keepdims: getattr(topi, n)(x, a, k),
                        lambda x, f=function, a=axis, k=keepdims: _reference(f)(x, a, k),
                        (3, 4, 2),
                        dtypes=dtypes,
                        values=values,
                    )
                )
    for name in ("argmax", "argmin"):
        for axis in (None, 1, -1):
            rows.append(
                _row(
                    f"{name} {axis}",
                    lambda x, n=name, a=axis: getattr(topi, n)(x, a),
                    lambda x, n=name, a=axis: np.atleast_1d(getattr(np, n)(x, a)).astype(np.int32),
                    (3, 4, 2),
                    dtypes=("float32", "int32"),
                    values=_bits,
                )
            )
    rows.append(
        _row(
            "argmax pair keepdims",
            lambda x: topi.argmax(x, (0, 2), True),
            lambda x: x.transpose(1, 0, 2).reshape(4, 6).argmax(1).reshape(1, 4, 1),
            (3, 4, 2),
        )
    )
    return rows


def _gather_nd(x: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return x[tuple(indices)]


def _one_hot(x: np.ndarray) -> np.ndarray:
    return np.moveaxis(np.where(x[..., None] == np.arange(4), 2.0, -1.0), -1, 1)


def _sequence_mask(x: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    past = np.arange(x.shape[0])[:, None] >= lengths
    return np.where(past[..., None], -1.0, x)


def _places(*shape: int) -> Callable[[Generator, Shape], np.ndarray]:
    return lambda rng, s: rng.integers(-2, 6, s) if s == shape else rng.uniform(-3, 3, s)


def _inside(rng: Generator, shape: Shape) -> np.ndarray:
    return rng.integers(0, 3, shape)


_SHAPE_ROWS = [
    _row("broadcast_to", lambda x: topi.broadcast_to(x, (2, 4, 3)),
         lambda x: np.broadcast_to(x, (2, 4, 3)), (4, 1)),
    _row("cast int32", lambda x: topi.cast(x, "int32"), lambda x: x.astype(np.int32), (7,)),
    _row("cast float16", lambda x: topi.cast(x, "float16"), lambda x: x.astype(np.float16), (7,),
         dtypes=("float32", "int32")),
    _row("cast bool", lambda x: topi.cast(x, "bool"), lambda x: x != 0, (7,), values=_bits,
         dtypes=("float32", "int32")),
    _row("clip", lambda x: topi.clip(x, -1, 2), lambda x: np.clip(x, -1, 2), (4, 3),
         dtypes=("float16", "float32", "int32"), values=_whole),
    _row("concatenate 0", lambda x, y: topi.concatenate((x, y)),
         lambda x, y: np.concatenate((x, y)), (2, 3), (4, 3)),
    _row("concatenate -1", lambda x, y: topi.concatenate([x, y, x], -1),
         lambda x, y: np.concatenate((x, y, x), -1), (2, 3), (2, 1)),
    _row("elemwise_sum", lambda x, y, z: topi.elemwise_sum([x, y, z]),
         lambda x, y, z: x + y + z, (2, 3), (2, 3), (2, 3)),
    _row("expand_dims", lambda x: topi.expand_dims(x, -1), lambda x: x[..., None], (2, 3)),
    _row("expand_dims two", lambda x: topi.expand_dims(x, 1, 2),
         lambda x: x[:, None, None], (2, 3)),
    _row("expand_like", lambda x, y: topi.expand_like(x, y, [1]),
         lambda x, y: np.broadcast_to(x[:, None], y.shape), (2,), (2, 3)),
    _row("flip", lambda x: topi.flip(x, -1), lambda x: x[:, ::-1], (2, 3)),
    _row("repeat", lambda x: topi.repeat(x, 3, 1), lambda x: np.repeat(x, 3, 1), (2, 3)),
    _row("reshape", lambda x: topi.reshape(x, (4, 6)), lambda x: x.reshape(4, 6), (2, 3, 4)),
    _row("reshape groups", lambda x: topi.reshape(x, (6, 2, 2)),
         lambda x: x.reshape(6, 2, 2), (2, 3, 4)),
    _row("reshape ones", lambda x: topi.reshape(x, (1, 2, 1, 12, 1)),
         lambda x: x.reshape(1, 2, 1, 12, 1), (2, 1, 3, 4)),
    _row("reshape inferred", lambda x: topi.reshape(x, (3, -1)),
         lambda x: x.reshape(3, -1), (2, 3, 4)),
    _row("reshape to scalar", lambda x: topi.reshape(x, ()), lambda x: x.reshape(()), (1, 1)),
    _row("split sections", lambda x: topi.split(x, 3, 1),
         lambda x: tuple(np.split(x, 3, 1)), (2, 6)),
    _row("split indices", lambda x: topi.split(x, (1, 4)),
         lambda x: tuple(np.split(x, (1, 4))), (6, 2)),
    _row("squeeze", lambda x: topi.squeeze(x), np.squeeze, (1, 3, 1)),
    _row("squeeze one", lambda x: topi.squeeze(x, -1), lambda x: x.squeeze(-1), (1, 3, 1)),
    _row("stack", lambda x, y: topi.stack((x, y), -1),
         lambda x, y: np.stack((x, y), -1), (2, 3), (2, 3)),
    _row("strided_slice", lambda x: topi.strided_slice(x, [1, -1], [4, -4], [2, -1]),
         lambda x: x[1:4:2, -1:-4:-1], (5, 4)),
    _row("strided_slice short", lambda x: topi.strided_slice(x, [1], [9]),
         lambda x: x[1:9], (3, 2)),
    _row("tile", lambda x: topi.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)), (2, 3)),
    _row("tile one", lambda x: topi.tile(x, 2), lambda x: np.tile(x, 2), (2, 3)),
    _row("transpose", lambda x: topi.transpose(x), np.transpose, (2, 3, 4)),
    _row("transpose axes", lambda x: topi.transpose(x, (1, -1, 0)),
         lambda x: np.transpose(x, (1, 2, 0)), (2, 3, 4)),
]  # fmt: skip

_INDEX_ROWS = [
    _row("take flat", lambda x, i: topi.take(x, i),
         lambda x, i: np.take(x, i, mode="clip"), (2, 2), (5,),
         dtypes=(("float32", "int32"), ("int32", "int64")), values=_places(5)),
    _row("take clip", lambda x, i: topi.take(x, i, -1),
         lambda x, i: np.take(x, i, -1, mode="clip"), (2, 3), (5, 2),
         dtypes=(("float32", "int32"),), values=_places(5, 2)),
    _row("take wrap", lambda x, i: topi.take(x, i, 0, "wrap"),
         lambda x, i: np.take(x, i, 0, mode="wrap"), (3, 2), (5,),
         dtypes=(("float32", "int32"),), values=_places(5)),
    _row("take fast", lambda x, i: topi.take(x, i, 0, mode="fast"),
         lambda x, i: x[i], (3, 2), (4,), dtypes=(("float32", "int32"),), values=_inside),
    _row("gather_nd", lambda x, i: topi.gather_nd(x, i), _gather_nd, (3, 3, 2), (2, 5),
         dtypes=(("float32", "int32"),), values=_inside),
    _row("one_hot", lambda x: topi.one_hot(x, 2.0, tvm.const(-1.0), 4, 1, "float32"), _one_hot,
         (2, 3), dtypes=("int32",), values=_inside),
    _row("sequence_mask", lambda x, n: topi.sequence_mask(x, n, -1.0), _sequence_mask,
         (4, 3, 2), (3,), dtypes=(("float32", "int32"),), values=_inside),
    _row("where", lambda c, x, y: topi.where(c, x, y), np.where, (2, 3), (2, 3), (2, 3),
         dtypes=(("bool", "float32", "float32"), ("int32", "int32", "int32")), values=_bits),
    _row("where numbers", lambda c, x: topi.where(c, x, 0.5),
         lambda c, x: np.where(c != 0, x, np.float32(0.5)), (2, 3), (2, 3),
         dtypes=("float32", ("float16", "float32")), values=_bits),
    _row("where broadcast", lambda c, x: topi.where(c, x, 0.5),
         lambda c, x: np.where(c, x, np.float32(0.5)), (1, 3), (2, 1),
         dtypes=(("bool", "float32"),), values=_bits),
    _row("where rows", lambda c, x, y: topi.where(c, x, y),
         lambda c, x, y: np.where(c[:, None], x, y), (3,), (3, 3), (3, 3),
         dtypes=(("bool", "float32", "float32"),), values=_bits),
]  # fmt: skip

_CREATION_ROWS = [
    _row("arange", lambda x: topi.arange(5, dtype="int32"),
         lambda x: np.arange(5, dtype=np.int32), (1,)),
    _row("arange step", lambda x: topi.arange(1.0, 5.0, 1.5),
         lambda x: np.arange(1.0, 5.0, 1.5), (1,)),
    _row("full", lambda x: topi.full((2, 3), "float16", 1.5), lambda x: np.full((2, 3), 1.5), (1,)),
    _row("full_like", lambda x: topi.full_like(x, 2), lambda x: np.full_like(x, 2), (2, 3),
         dtypes=("float32", "int8")),
    _row("ndarray_size", topi.ndarray_size, lambda x: np.array([6]), (2, 3)),
    _row("ones_like", topi.ones_like, np.ones_like, (2, 3)),
    _row("shape", topi.shape, lambda x: np.array([2, 3, 4]), (2, 3, 4)),
    _row("zeros_like", topi.zeros_like, np.zeros_like, (2, 3)),
    _row("reinterpret", lambda x: topi.reinterpret(x, "uint32"), lambda x: x.view(np.uint32),
         (5,), dtypes=("int32",), values=_whole),
    _row("logical_not", topi.logical_not, np.logical_not, (5,), dtypes=("bool",), values=_bits),
    _row("bitwise_not", topi.bitwise_not, np.invert, (5,), dtypes=INTEGERS, values=_natural),
    _row("divide integers", topi.divide, lambda x, y: np.trunc(x / y), (9,), (9,),
         dtypes=("int32",), values=_nonzero),
    _row("mod integers", topi.mod, np.fmod, (9,), (9,), dtypes=("int32",), values=_nonzero),
]  # fmt: skip

_PRODUCT_ROWS = [
    _row("matmul", topi.matmul, np.matmul, (3, 4), (4, 2), dtypes=("float32", "int32")),
    _row("matmul transposed", lambda a, b: topi.matmul(a, b, True, True),
         lambda a, b: a.T @ b.T, (4, 3), (2, 4)),
    _row("tensordot number", lambda a, b: topi.tensordot(a, b, 2),
         lambda a, b: np.tensordot(a, b, 2), (2, 3, 4), (3, 4, 2)),
    _row("tensordot axes", lambda a, b: topi.tensordot(a, b, ((2, 0), (1, -1))),
         lambda a, b: np.tensordot(a, b, ((2, 0), (1, 2))), (2, 3, 4), (5, 4, 2)),
]  # fmt: skip


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    exps = np.exp(x - x.max(axis, keepdims=True))
    return exps / exps.sum(axis, keepdims=True)


def _lrn(x: np.ndarray) -> np.ndarray:
    border = np.pad(x**2, ((0, 0), (1, 1), (0, 0)))
    total = border[:, :-2] + border[:, 1:-1] + border[:, 2:]
    return x / (2 + 0.5 / 3 * total) ** 0.75


def _dilate(x: np.ndarray) -> np.ndarray:
    out = np.zeros((3, 7), x.dtype)
    out[::2, ::3] = x
    return out


_NN_ROWS = [
    _row("batch_matmul", nn.batch_matmul, lambda x, y: x @ y.transpose(0, 2, 1),
         (2, 3, 4), (2, 5, 4)),
    _row("batch_matmul broadcast", nn.batch_matmul, lambda x, y: x @ y.transpose(0, 2, 1),
         (1, 3, 4), (2, 5, 4)),
    _row("concatenate", lambda x, y: nn.concatenate((x, y), 1),
         lambda x, y: np.concatenate((x, y), 1), (2, 3), (2, 1)),
    _row("dense", nn.dense, lambda x, w, b: x @ w.T + b, (2, 3), (4, 3), (4,)),
    _row("dense wide", lambda x, w: nn.dense(x, w, out_dtype="float32"),
         lambda x, w: x.astype(np.float32) @ w.T, (2, 3), (4, 3), dtypes=("float16",)),
    _row("dilate", lambda x: nn.dilate(x, (2, 3)), _dilate, (2, 3)),
    _row("flatten", nn.flatten, lambda x: x.reshape(2, -1), (2, 3, 4)),
    _row("l2_normalize", lambda x: nn.l2_normalize(x, 1e-3, [1]),
         lambda x: x / np.sqrt(np.maximum((x**2).sum(1, keepdims=True), 1e-3)), (2, 3)),
    _row("leaky_relu", lambda x: nn.leaky_relu(x, 0.1), lambda x: np.where(x > 0, x, 0.1 * x),
         (2, 3), dtypes=("float32", "float64")),
    _row("log_softmax", nn.log_softmax, lambda x: np.log(_softmax(x, -1)), (2, 3)),
    _row("lrn", lambda x: nn.lrn(x, 3, alpha=0.5), _lrn, (2, 5, 3)),
    _row("mirror_pad symmetric", lambda x: nn.mirror_pad(x, (1, 2), (2, 0)),
         lambda x: np.pad(x, ((1, 2), (2, 0)), "symmetric"), (3, 4)),
    _row("mirror_pad reflect", lambda x: nn.mirror_pad(x, (1, 2), (2, 0), mode="REFLECT"),
         lambda x: np.pad(x, ((1, 2), (2, 0)), "reflect"), (3, 4)),
    _row("pad", lambda x: nn.pad(x, (1, 0), (0, 2), 9.0),
         lambda x: np.pad(x, ((1, 0), (0, 2)), constant_values=9), (2, 3),
         dtypes=("float32", "float16")),
    *(
        _row(f"pool {kind} {number}",
             lambda x, kind=kind, options=options: nn.pool(x, pool_type=kind, **options),
             lambda x, kind=kind, options=options: _pool(x, kind, **options), shape)
        for kind in ("max", "avg")
        for number, (shape, options) in enumerate([
            ((1, 2, 4, 6), {"kernel": (2, 2), "stride": (2, 3), "padding": (0, 0, 0, 0)}),
            ((2, 7, 5, 1), {"kernel": (3, 2), "stride": (2, 2), "padding": (1, 0, 2, 1),
                            "layout": "NHWC"}),
            ((1, 1, 5, 6), {"kernel": (2, 3), "stride": (2, 2), "padding": (1, 1, 0, 1),
                            "ceil_mode": True, "count_include_pad": False}),
        ])
    ),
    _row("prelu", nn.prelu, lambda x, s: np.where(x > 0, x, x * s[:, None]), (2, 3, 4), (3,)),
    _row("relu", nn.relu, lambda x: np.maximum(x, 0), (2, 3), dtypes=("float32", "int32")),
    _row("scale_shift_nchw", nn.scale_shift_nchw,
         lambda x, a, b: x * a[:, None, None] + b[:, None, None], (1, 3, 2, 2), (3,), (3,)),
    _row("scale_shift_nhwc", nn.scale_shift_nhwc,
         lambda x, a, b: x * a + b, (1, 2, 2, 3), (3,), (3,)),
    _row("softmax", nn.softmax, lambda x: _softmax(x, -1), (2, 3)),
    _row("softmax 0", lambda x: nn.softmax(x, axis=0), lambda x: _softmax(x, 0), (2, 3)),
    _row("strided_slice", lambda x: nn.strided_slice(x, [0, 1], [2, 3]),
         lambda x: x[0:2, 1:3], (2, 3)),
]  # fmt: skip

ROWS: tuple[Row, ...] = (
    *(
        _row(name, getattr(topi, name), expected, (2, 3), dtypes=dtypes, values=values)
        for name, (expected, dtypes, values) in _UNARY.items()
    ),
    *(
        _row(name, getattr(topi, name), expected, (2, 1, 3), (4, 1), dtypes=dtypes, values=values)
        for name, (expected, dtypes, values) in _BINARY.items()
    ),
    *_reduction_rows(),
    *_SHAPE_ROWS,
    *_INDEX_ROWS,
    *_CREATION_ROWS,
    *_PRODUCT_ROWS,
)
"""Rows of `topi`."""

NN_ROWS: tuple[Row, ...] = tuple(_NN_ROWS)
"""Rows of `topi.nn`."""
