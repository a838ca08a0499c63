"""Calls of aclnn operators, and what numpy says they return.

A case is inputs in aclnn's order and a function of them in numpy alone. Every operator of msops has
one or more; test_aclnn.py runs them eagerly and compiled.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

RNG = np.random.default_rng(7)


@dataclasses.dataclass(frozen=True)
class Case:
    """One call: `expected` gives an array or a tuple of arrays, whose shapes are declared."""

    name: str
    inputs: tuple[Any, ...]
    expected: Callable[..., Any]
    tolerance: float = 2e-6

    def __str__(self) -> str:
        return self.name


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.normal(size=shape).astype(dtype)


def positive(*shape: int) -> np.ndarray:
    return RNG.uniform(0.2, 3, size=shape).astype(np.float32)


def unit(*shape: int) -> np.ndarray:
    return RNG.uniform(-0.9, 0.9, size=shape).astype(np.float32)


def integers(low: int, high: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
    return RNG.integers(low, high, size=shape).astype(dtype)


X, Y = normal(3, 4), normal(4)
N, J = integers(-9, 9, 3, 4), integers(1, 5, 4)
B = normal(3, 4) > 0
ROWS = integers(0, 3, 2, 4)

_erf = np.vectorize(math.erf, otypes=[float])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x.astype(float)))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(x.astype(float)))


def _gelu_tanh(x: np.ndarray) -> np.ndarray:
    x = x.astype(float)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _gelu_erf(x: np.ndarray) -> np.ndarray:
    return x.astype(float) * 0.5 * (1 + _erf(x.astype(float) / np.sqrt(2)))


def _derivative(function: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    step = 1e-5
    x = x.astype(float)
    return (function(x + step) - function(x - step)) / (2 * step)


def _softmax(x: np.ndarray, dim: int) -> np.ndarray:
    e = np.exp(x.astype(float) - x.max(axis=dim, keepdims=True))
    return e / e.sum(axis=dim, keepdims=True)


def arithmetic() -> Iterator[Case]:
    yield Case("Add", (X, Y, 2), lambda x, y, a: x + a * y)
    yield Case("Add", (N, J, 3), lambda x, y, a: x + a * y)
    yield Case("Add", (N, X, 0.5), lambda x, y, a: x + np.float32(a) * y)
    yield Case("Add", (X, Y), lambda x, y: x + y)
    yield Case("Add", (B, B, 1), lambda x, y, _: x | y)
    yield Case("Adds", (X, 2.5, 2), lambda x, y, a: x + np.float32(a * y))
    yield Case("Adds", (N, 3, 2), lambda x, y, a: x + a * y)
    yield Case("Sub", (X, Y, 2), lambda x, y, a: x - a * y)
    yield Case("Subs", (X, 2.5, 2), lambda x, y, a: x - np.float32(a * y))
    yield Case("Mul", (X, Y), lambda x, y: x * y)
    yield Case("Mul", (N, X), lambda x, y: (x * y).astype(np.float32))
    yield Case("Muls", (X, 1.5), lambda x, y: x * np.float32(y))
    yield Case("Muls", (N, 1.5), lambda x, y: (x * y).astype(np.float32))
    yield Case("Div", (X, Y), lambda x, y: x / y)
    yield Case("Div", (N, J), lambda x, y: (x / y).astype(np.float32))
    yield Case("Divs", (N, 4), lambda x, y: (x / y).astype(np.float32))
    for mode, function in ((0, np.divide), (1, lambda x, y: np.trunc(x / y)), (2, np.floor_divide)):
        yield Case("DivMod", (X, Y, mode), lambda x, y, _, f=function: f(x, y))
        yield Case("DivMods", (X, 0.7, mode), lambda x, y, _, f=function: f(x, np.float32(y)))
    yield Case("DivMod", (N, J, 1), lambda x, y, _: np.trunc(x / y).astype(np.int32))
    yield Case("FloorDivide", (N, J), np.floor_divide)
    yield Case("FloorDivides", (N, -4), np.floor_divide)
    yield Case("RemainderTensorTensor", (N, -J), np.mod)
    yield Case("RemainderTensorScalar", (N, -4), np.mod)
    yield Case("RemainderScalarTensor", (7, -J), np.mod)
    yield Case("FmodTensor", (N, -J), np.fmod)
    yield Case("FmodScalar", (N, -4), np.fmod)
    power = positive(3, 4)
    yield Case("PowTensorTensor", (power, Y), np.power, 1e-5)
    yield Case("PowTensorScalar", (X, 3), lambda x, y: x**y, 1e-5)
    yield Case("PowTensorScalar", (power, 1.5), lambda x, y: x ** np.float32(y), 1e-5)
    yield Case("PowTensorScalar", (N, 2), lambda x, y: x**y)
    yield Case("PowScalarTensor", (2.0, Y), lambda x, y: np.float32(x) ** y, 1e-5)
    yield Case("Maximum", (X, Y), np.maximum)
    yield Case("Minimum", (N, J), np.minimum)
    yield Case("Atan2", (X, Y), np.arctan2)
    yield Case("Addcmul", (X, X, Y, 0.5), lambda x, a, b, v: x + np.float32(v) * a * b)
    yield Case("Addcdiv", (X, X, Y, 0.5), lambda x, a, b, v: x + np.float32(v) * a / b, 1e-5)
    yield Case("Lerp", (X, Y, unit(4)), lambda x, y, w: x + w * (y - x))
    yield Case("Lerps", (X, Y, 0.25), lambda x, y, w: x + np.float32(w) * (y - x))
    yield Case("Clamp", (X, -0.5, 0.5), np.clip)
    yield Case("Clamp", (X, None, 0.5), lambda x, _, high: np.minimum(x, np.float32(high)))
    yield Case("Clamp", (N, -2, 3), np.clip)
    yield Case("ClampTensor", (X, Y, None), lambda x, low, _: np.maximum(x, low))
    yield Case("ClampTensor", (X, Y - 1, Y + 1), np.clip)
    yield Case("AddCustom", (X, X), np.add)
    yield Case("SubCustom", (X, X * 2), np.subtract)


def comparisons() -> Iterator[Case]:
    near = N.copy()
    near[0] = J
    table = {
        "Eq": np.equal,
        "Ne": np.not_equal,
        "Gt": np.greater,
        "Ge": np.greater_equal,
        "Lt": np.less,
        "Le": np.less_equal,
    }
    for name, function in table.items():
        yield Case(f"{name}Tensor", (near, J), function)
        yield Case(f"{name}Scalar", (near, int(near[1, 1])), function)
        yield Case(f"{name}Scalar", (near, 0.5), function)
    for name, function in (
        ("BitwiseAnd", np.bitwise_and),
        ("BitwiseOr", np.bitwise_or),
        ("BitwiseXor", np.bitwise_xor),
    ):
        yield Case(f"{name}Tensor", (N, J), function)
        yield Case(f"{name}Scalar", (N, 6), function)
    yield Case("BitwiseNot", (N,), np.bitwise_not)
    for name, function in (
        ("LogicalAnd", np.logical_and),
        ("LogicalOr", np.logical_or),
        ("LogicalXor", np.logical_xor),
    ):
        yield Case(name, (N % 2, B), function)
    yield Case("LogicalNot", (N % 2,), np.logical_not)
    yield Case("SWhere", (B, X, Y), np.where)
    yield Case("SWhere", (B, N, X), lambda c, x, y: np.where(c, x, y).astype(np.float32))
    odd = np.array([1, np.inf, -np.inf, np.nan], np.float32)
    yield Case("IsFinite", (odd,), np.isfinite)
    yield Case("IsInf", (odd,), np.isinf)
    yield Case("AllFinite", (odd,), lambda x: np.array(True))
    yield Case("AllFinite", (X,), lambda x: np.array(False))
    yield Case("AllFinite", ([X, odd],), lambda x: np.array(True))


def unary() -> Iterator[Case]:
    for name in ("exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh"):
        yield Case(name.capitalize(), (X,), lambda x, f=name: getattr(np, f)(x), 1e-5)
    for name in ("log", "log2", "log10", "log1p", "sqrt", "reciprocal"):
        yield Case(name.capitalize(), (positive(5),), lambda x, f=name: getattr(np, f)(x), 1e-5)
    yield Case("Exp", (N,), lambda x: np.exp(x).astype(np.float32), 1e-5)
    yield Case("Rsqrt", (positive(5),), lambda x: 1 / np.sqrt(x), 1e-5)
    for name, inverse in (("Asin", np.arcsin), ("Acos", np.arccos), ("Atan", np.arctan)):
        yield Case(name, (unit(5),), inverse, 1e-5)
    yield Case("Asinh", (X,), np.arcsinh, 1e-5)
    yield Case("Acosh", (positive(5) + 1,), np.arccosh, 1e-5)
    yield Case("Atanh", (unit(5),), np.arctanh, 1e-5)
    yield Case("Erf", (X,), lambda x: _erf(x), 1e-5)
    yield Case("Erfc", (X,), lambda x: 1 - _erf(x), 1e-5)
    inner = unit(5)
    yield Case("Erfinv", (_erf(inner).astype(np.float32),), lambda x, y=inner: y, 1e-4)
    for name, function in (
        ("Abs", np.abs),
        ("Neg", np.negative),
        ("Sign", np.sign),
        ("Ceil", np.ceil),
        ("Floor", np.floor),
        ("Round", np.round),
        ("Trunc", np.trunc),
    ):
        yield Case(name, (X * 3,), function)
    yield Case("Abs", (N,), np.abs)
    yield Case("Round", (np.array([0.5, 1.5, 2.5, -0.5], np.float32),), np.round)
    yield Case("RoundDecimals", (X, 2), np.round, 1e-5)
    yield Case("Cast", (X * 5, 34), lambda x, _: x.astype(np.int32))  # TypeId of Int32
    yield Case("Cast", (X, 1), lambda x, _: x.astype(np.float16))  # ACL_FLOAT16
    yield Case("Cast", (N, "float32"), lambda x, _: x.astype(np.float32))


def activations() -> Iterator[Case]:
    x = normal(4, 6)
    yield Case("Relu", (x,), lambda x: np.maximum(x, 0))
    yield Case("Sigmoid", (x,), _sigmoid, 1e-5)
    yield Case("Gelu", (x,), _gelu_tanh, 1e-5)
    yield Case("GeluV2", (x, 0), lambda x, _: _gelu_erf(x), 1e-5)
    yield Case("GeluV2", (x, 1), lambda x, _: _gelu_tanh(x), 1e-5)
    yield Case("Silu", (x,), lambda x: x * _sigmoid(x), 1e-5)
    yield Case("Swish", (x, 1.5), lambda x, b: x * _sigmoid(b * x), 1e-5)
    yield Case("Swish", (x, None), lambda x, _: x * _sigmoid(x), 1e-5)
    yield Case("SwiGlu", (x, -1), lambda x, _: x[:, :3] * _sigmoid(x[:, :3]) * x[:, 3:], 1e-5)
    yield Case("LeakyRelu", (x, 0.1), lambda x, s: np.where(x > 0, x, s * x), 1e-5)
    yield Case(
        "Elu",
        (x, 1.5, 1.2, 0.7),
        lambda x, a, s, i: s * np.where(x > 0, x, a * (np.exp(i * x) - 1)),
        1e-5,
    )
    yield Case("Softplus", (x, 2.0, 20.0), lambda x, b, _: _softplus(b * x) / b, 1e-5)
    yield Case(
        "Softplus",
        (x, 2.0, 1.0),
        lambda x, b, t: np.where(b * x > t, x, _softplus(b * x) / b),
        1e-5,
    )
    yield Case("Hardtanh", (x, -0.5, 0.7), np.clip)
    yield Case("Hardsigmoid", (4 * x,), lambda x: np.clip(x / 6 + 0.5, 0, 1), 1e-5)
    yield Case("Hardswish", (4 * x,), lambda x: x * np.clip(x / 6 + 0.5, 0, 1), 1e-5)
    yield Case("Mish", (x,), lambda x: x * np.tanh(_softplus(x)), 1e-5)
    yield Case("Threshold", (x, 0.3, -7.0), lambda x, t, v: np.where(x > t, x, v))
    kept = RNG.random((3, 7)) < 0.5
    bits = np.packbits(kept.ravel(), bitorder="little")
    packed = np.concatenate([bits, np.full(16 - len(bits), 255, np.uint8)])
    z = normal(3, 7)
    yield Case("DropoutDoMask", (z, packed, 0.2), lambda x, m, p: np.where(kept, x / (1 - p), 0))
    yield Case("DropoutDoMask", (z, kept, 0.2), lambda x, m, p: np.where(m, x / (1 - p), 0))


def reductions() -> Iterator[Case]:
    x = normal(2, 3, 4)
    half = normal(64, dtype=np.float16)
    yield Case("ReduceSum", (x, [1], True, None), lambda x, *_: x.sum(1, keepdims=True), 1e-5)
    yield Case("Mean", (x, [1], True, None), lambda x, *_: x.mean(1, keepdims=True), 1e-5)
    for dims, keep in (((0,), False), ((1, -1), True), ((), False), (None, True)):
        over = tuple(dims) if dims else None
        yield Case(
            "ReduceSum",
            (x, dims, keep, 43),
            lambda x, d, k, t, over=over: x.sum(over, keepdims=k),
            1e-5,
        )
        yield Case(
            "Mean", (x, dims, keep, 0), lambda x, d, k, t, over=over: x.mean(over, keepdims=k), 1e-5
        )
        yield Case(
            "MeanV2",
            (x, dims, keep, False),
            lambda x, d, k, t, over=over: x.mean(over, keepdims=k),
            1e-5,
        )
        yield Case("Amax", (x, dims, keep), lambda x, d, k, over=over: x.max(over, keepdims=k))
        yield Case("Amin", (x, dims, keep), lambda x, d, k, over=over: x.min(over, keepdims=k))
        yield Case("All", (x > -1, dims, keep), lambda x, d, k, over=over: x.all(over, keepdims=k))
        yield Case("Any", (x > 1, dims, keep), lambda x, d, k, over=over: x.any(over, keepdims=k))
        yield Case(
            "Std",
            (x, dims, 1, keep),
            lambda x, d, c, k, over=over: x.std(over, ddof=c, keepdims=k),
            1e-5,
        )
        yield Case(
            "VarCorrection",
            (x, dims, 1, keep),
            lambda x, d, c, k, over=over: x.var(over, ddof=c, keepdims=k),
            1e-5,
        )
    yield Case("ReduceSum", (N, [0], False, None), lambda x, *_: x.sum(0, dtype=np.int32))
    yield Case("ReduceSum", (N, [0], False, "float32"), lambda x, *_: x.sum(0).astype(np.float32))
    yield Case(
        "ReduceSum",
        (half, [0], False, 42),
        lambda x, *_: np.sum(x.astype(float)).astype(np.float16),
        1e-3,
    )
    yield Case("MeanV2", (x, [], False, True), lambda x, *_: x)
    yield Case("Var", (x, [1], True, False), lambda x, *_: x.var(1, ddof=1), 1e-5)
    yield Case("Var", (x, [1], False, False), lambda x, *_: x.var(1), 1e-5)
    yield Case("Max", (x,), np.max)
    yield Case("Min", (x,), np.min)
    yield Case("ProdDim", (x, 1, True, None), lambda x, *_: x.prod(1, keepdims=True), 1e-5)
    yield Case("Prod", (x, "float32"), lambda x, _: x.prod(), 1e-5)
    for p in (None, 1, 2.0, 3, 0, np.inf, -np.inf):
        yield Case(
            "Norm",
            (X, p, [1], False),
            lambda x, p, *_: np.linalg.norm(x, 2 if p is None else p, axis=1),
            1e-5,
        )
    yield Case(
        "LogSumExp", (x, [0, 2], True), lambda x, *_: np.log(np.exp(x).sum((0, 2), keepdims=True))
    )


def ordering() -> Iterator[Case]:
    x = RNG.permutation(24).reshape(4, 6).astype(np.float32)
    tied = integers(0, 3, 4, 6)
    yield Case("Cumsum", (x, 0, None), lambda x, *_: np.cumsum(x, 0))
    yield Case("Sort", (x, True, 1, False), lambda x, *_: (np.sort(x), np.argsort(x)))
    for dim in (0, -1):
        for keep in (False, True):
            yield Case("ArgMax", (tied, dim, keep), lambda x, d, k: x.argmax(d, keepdims=k))
            yield Case("ArgMin", (tied, dim, keep), lambda x, d, k: x.argmin(d, keepdims=k))
            yield Case(
                "MaxDim",
                (x, dim, keep),
                lambda x, d, k: (x.max(d, keepdims=k), x.argmax(d, keepdims=k)),
            )
            yield Case(
                "MinDim",
                (x, dim, keep),
                lambda x, d, k: (x.min(d, keepdims=k), x.argmin(d, keepdims=k)),
            )
        yield Case(
            "Sort",
            (tied, True, dim, False),
            lambda x, s, d, _: (np.sort(x, d), np.argsort(x, d, kind="stable")),
        )
        yield Case(
            "Sort",
            (tied, True, dim, True),
            lambda x, s, d, _: (-np.sort(-x, d), np.argsort(-x, d, kind="stable")),
        )
        yield Case("Argsort", (x, dim, True), lambda x, d, _: np.argsort(-x, d))
        yield Case("Cumsum", (x, dim, "float32"), lambda x, d, _: np.cumsum(x, d))
        yield Case(
            "CumsumV2",
            (x, dim, False, True),
            lambda x, d, *_: np.flip(np.cumsum(np.flip(x, d), d), d),
        )
        yield Case("CumsumV2", (x, dim, True, False), lambda x, d, *_: np.cumsum(x, d) - x)
        yield Case(
            "Topk",
            (x, 3, dim, True, True),
            lambda x, k, d, *_: tuple(
                np.take(a, range(k), d) for a in (-np.sort(-x, d), np.argsort(-x, d))
            ),
        )
        yield Case(
            "Topk",
            (x, 2, dim, False, True),
            lambda x, k, d, *_: tuple(
                np.take(a, range(k), d) for a in (np.sort(x, d), np.argsort(x, d))
            ),
        )


def shapes() -> Iterator[Case]:
    x = normal(2, 3, 4)
    yield Case("Expand", (normal(3, 1), [2, -1, 4]), lambda x, s: np.broadcast_to(x, (2, 3, 4)))
    yield Case("Flatten", (x, 1), lambda x, _: x.reshape(2, 12))
    yield Case("Flatten", (x, 0), lambda x, _: x.reshape(1, 24))
    yield Case("Permute", (x, [2, 0, -2]), lambda x, d: np.transpose(x, (2, 0, 1)))
    yield Case("Cat", ([X, X], 0), np.concatenate)
    yield Case("Cat", ([X, N], -1), lambda t, d: np.concatenate(t, d).astype(np.float32))
    yield Case("Cat", ([np.zeros(0, np.float32), X], 0), lambda t, d: t[1])
    yield Case("Stack", ([X, X + 1], -1), np.stack)
    yield Case("SplitTensor", (x, 3, 2), lambda x, *_: (x[..., :3], x[..., 3:]))
    yield Case("SplitWithSize", (x, [1, 2, 1], -1), lambda x, *_: np.split(x, [1, 3], -1))
    yield Case("Slice", (x, 2, -3, 9, 2), lambda x, *_: x[:, :, -3:9:2])
    yield Case("SliceV2", (x, [1, 0], [2, 4], [0, 2], [1, 3]), lambda x, *_: x[1:2, :, 0:4:3])
    yield Case("Repeat", (Y, [3, 2]), np.tile)
    yield Case("RepeatInterleaveIntWithDim", (X, 2, 1, 8), lambda x, n, d, _: np.repeat(x, n, d))
    yield Case("Flip", (x, [0, -1]), np.flip)
    yield Case("Roll", (x, [1, -2], [0, 2]), np.roll)
    yield Case("Roll", (x, [5], []), lambda x, s, _: np.roll(x, 5))
    yield Case("Tril", (x, 1), np.tril)
    yield Case("Triu", (x, -1), np.triu)
    yield Case(
        "ConstantPadNd",
        (x, [1, 2, 0, 3], 7),
        lambda x, *_: np.pad(x, [(0, 0), (0, 3), (1, 2)], constant_values=7),
    )
    yield Case("ConstantPadNd", (x, [-1, 0], 0), lambda x, *_: x[:, :, 1:])


def indexing() -> Iterator[Case]:
    x = normal(3, 4, 5)
    rows, columns = integers(0, 3, 2, 6), integers(-4, 4, 6)
    yield Case("Index", (x, [rows]), lambda x, i: x[i[0]])
    yield Case("Index", (x, [rows, columns]), lambda x, i: x[i[0], i[1]])
    yield Case("Index", (x, [None, columns]), lambda x, i: x[:, i[1]])
    yield Case("Index", (x, [rows, None, columns]), lambda x, i: x[i[0], :, i[2]])
    yield Case("IndexSelect", (x, 1, np.array([3, 0, 3])), lambda x, d, i: np.take(x, i, d))
    yield Case("Embedding", (X, rows), lambda w, i: w[i])
    yield Case("Gather", (X, 0, ROWS), lambda x, d, i: np.take_along_axis(x, i, d))
    yield Case("Gather", (X, -1, ROWS), lambda x, d, i: np.take_along_axis(x[:2], i, 1))
    points = np.stack([integers(0, 3, 7), integers(-4, 4, 7)], -1)
    yield Case("GatherNd", (x, points, True), lambda x, p, _: x[p[:, 0], p[:, 1]])

    def scatter(x: np.ndarray, d: int, i: np.ndarray, src: np.ndarray, reduce: int) -> np.ndarray:
        out = x.copy()
        for place in np.ndindex(i.shape):
            to = (i[place], place[1]) if d == 0 else (place[0], i[place])
            out[to] = (src[place], out[to] + src[place], out[to] * src[place])[reduce]
        return out

    src = normal(3, 4)
    yield Case("ScatterAdd", (X, 0, ROWS, src), lambda x, d, i, s: scatter(x, d, i, s, 1), 1e-5)
    once = np.array([[0, 1, 2, 0], [1, 2, 0, 1]])
    for reduce in (0, 1, 2):
        yield Case("Scatter", (X, 0, once, src, reduce), scatter, 1e-5)
        yield Case(
            "ScatterValue",
            (X, 0, once, 2.5, reduce),
            lambda x, d, i, v, r: scatter(x, d, i, np.full(i.shape, v), r),
            1e-5,
        )

    def index_add(x: np.ndarray, d: int, i: np.ndarray, s: np.ndarray, a: float) -> np.ndarray:
        out = x.copy()
        np.add.at(out, (slice(None),) * d + (i,), np.float32(a) * s)
        return out

    yield Case("IndexAdd", (X, 1, np.array([1, 1, 0]), normal(3, 3), 0.5), index_add, 1e-5)
    yield Case("InplaceMaskedFillScalar", (X, B, 7.0), lambda x, m, v: np.where(m, v, x))
    yield Case("InplaceMaskedFillTensor", (X, B, np.float32(7)), lambda x, m, v: np.where(m, v, x))


def normalization() -> Iterator[Case]:
    x, y = normal(2, 3, 4), normal(2, 3, 4)
    yield Case("Softmax", (x, 1), _softmax, 1e-5)
    yield Case("LogSoftmax", (x, -1), lambda x, d: np.log(_softmax(x, d)), 1e-5)

    def layer_norm(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
        over = tuple(range(-len(shape), 0))
        mean = x.mean(over, keepdims=True)
        rstd = 1 / np.sqrt(x.var(over, keepdims=True) + eps)
        out = (x - mean) * rstd
        out = out if weight is None else out * weight
        return (out if bias is None else out + bias), mean, rstd

    yield Case("LayerNorm", (x, [4], normal(4), normal(4), 1e-3), layer_norm, 1e-5)
    yield Case("LayerNorm", (x, [3, 4], None, None, 1e-3), layer_norm, 1e-5)
    yield Case("LayerNorm", (x, [4], normal(4), None, 1e-3), lambda *a: layer_norm(*a)[:1], 1e-5)

    def rms_norm(x: Any, gamma: Any, eps: float) -> Any:
        over = tuple(range(-gamma.ndim, 0))
        rstd = 1 / np.sqrt((x**2).mean(over, keepdims=True) + eps)
        return x * rstd * gamma, rstd

    yield Case("RmsNorm", (x, normal(4), 1e-3), rms_norm, 1e-5)
    yield Case("RmsNorm", (x, normal(3, 4), 1e-3), rms_norm, 1e-5)
    yield Case(
        "AddRmsNorm",
        (x, y, normal(4), 1e-3),
        lambda a, b, g, e: (*rms_norm(a + b, g, e), a + b),
        1e-5,
    )

    def group_norm(
        x: Any, gamma: Any, beta: Any, n: int, c: int, s: int, g: int, eps: float
    ) -> Any:
        parts = x.reshape(n, g, -1)
        mean, rstd = parts.mean(2), 1 / np.sqrt(parts.var(2) + eps)
        out = ((parts - mean[..., None]) * rstd[..., None]).reshape(n, c, s)
        return (out * gamma[:, None] + beta[:, None]).reshape(x.shape), mean, rstd

    z = normal(2, 6, 2, 3)
    yield Case("GroupNorm", (z, normal(6), normal(6), 2, 6, 6, 3, 1e-3), group_norm, 1e-5)

    def batch_norm(
        x: Any, weight: Any, bias: Any, mean: Any, var: Any, training: bool, m: float, eps: float
    ) -> Any:
        over, count = (0, *range(2, x.ndim)), x.size // x.shape[1]
        new_mean, new_var = mean, var
        if training:
            new_mean = (1 - m) * mean + m * x.mean(over)
            new_var = (1 - m) * var + m * x.var(over) * count / (count - 1)
            mean, var = x.mean(over), x.var(over)
        shape = (1, -1) + (1,) * (x.ndim - 2)
        rstd = 1 / np.sqrt(var + eps)
        out = (x - mean.reshape(shape)) * rstd.reshape(shape)
        out = out * weight.reshape(shape) + bias.reshape(shape)
        return out, mean, rstd, new_mean, new_var

    running = (normal(6), positive(6))
    for training in (True, False):
        scale = (normal(6), normal(6))
        yield Case("BatchNorm", (z, *scale, *running, training, 0.1, 1e-3), batch_norm, 1e-5)


def products() -> Iterator[Case]:
    a, b = normal(3, 4), normal(4, 5)
    batch = (normal(2, 3, 4), normal(2, 4, 5))
    for name in ("Matmul", "Mm"):
        yield Case(name, (a, b, 0), lambda x, y, _: x @ y, 1e-5)
        yield Case(name, (a, b), lambda x, y: x @ y, 1e-5)
    yield Case("Matmul", (normal(2, 3, 4), b, 1), lambda x, y, _: x @ y, 1e-5)
    yield Case("Matmul", (a, Y, 1), lambda x, y, _: x @ y, 1e-5)
    yield Case("BatchMatMul", (*batch, 0), lambda x, y, _: x @ y, 1e-5)
    yield Case(
        "Addmm", (normal(5), a, b, 0.5, 2.0, 0), lambda c, x, y, p, q, _: p * c + q * (x @ y), 1e-5
    )
    yield Case(
        "Addmm",
        (np.full(5, np.nan, np.float32), a, b, 0, 2.0, 0),
        lambda c, x, y, p, q, _: q * (x @ y),
        1e-5,
    )
    yield Case(
        "Baddbmm",
        (normal(2, 3, 5), *batch, 0.5, 2, 0),
        lambda c, x, y, p, q, _: p * c + q * (x @ y),
        1e-5,
    )
    yield Case(
        "Addmv", (normal(3), a, Y, 2.0, 0.5, 0), lambda c, x, y, q, p, _: p * c + q * (x @ y), 1e-5
    )
    yield Case("Mv", (a, Y, 0), lambda x, y, _: x @ y, 1e-5)
    yield Case("Dot", (Y, Y), np.dot, 1e-5)


def creation() -> Iterator[Case]:
    yield Case("InplaceFillScalar", (X, 3), lambda x, v: np.full_like(x, v))
    yield Case("InplaceFillTensor", (X, np.int32(3)), lambda x, v: np.full_like(x, v))
    yield Case("InplaceZero", (X,), np.zeros_like)
    yield Case("InplaceOne", (N,), np.ones_like)
    yield Case("InplaceCopy", (X, J), lambda x, y: np.broadcast_to(y, x.shape).astype(x.dtype))
    yield Case("Arange", (1, 10, 3), lambda *a: np.arange(*a).astype(np.int32))
    yield Case("Arange", (0.5, -2.0, -0.5), lambda *a: np.arange(*a).astype(np.float32))
    yield Case("Linspace", (-1, 2, 7), lambda *a: np.linspace(*a).astype(np.float32))
    yield Case("Eye", (2, 3), lambda n, m: np.eye(n, m, dtype=np.float32))
    classes = np.array([[0, 2], [1, 5]], np.int32)
    on, off = np.float32(9), np.float32(-1)
    yield Case(
        "OneHot",
        (classes, 3, on, off, -1),
        lambda c, n, *_: np.where(c[..., None] == range(n), 9.0, -1),
    )
    yield Case(
        "OneHot",
        (classes, 3, on, off, 0),
        lambda c, n, *_: np.where(c == np.arange(n)[:, None, None], 9.0, -1),
    )


def _pool(
    x: np.ndarray,
    window: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int],
    ceil_mode: bool,
    reduce: Callable[[np.ndarray, int], float],
    dilation: int = 1,
) -> np.ndarray:
    """Pools window by window; `reduce` gets the entries and the size with padding."""
    sizes = x.shape[-2:]
    reach = [(w - 1) * dilation + 1 for w in window]
    counts = []
    for n in (0, 1):
        space = sizes[n] + 2 * pads[n] - reach[n]
        count = (-(-space // strides[n]) if ceil_mode else space // strides[n]) + 1
        if ceil_mode and (count - 1) * strides[n] >= sizes[n] + pads[n]:
            count -= 1
        counts.append(count)
    out = np.zeros((*x.shape[:-2], *counts), x.dtype)
    for place in np.ndindex(out.shape):
        picked, padded = [], 1
        spans = []
        for n in (0, 1):
            start = place[-2 + n] * strides[n] - pads[n]
            span = range(start, start + reach[n], dilation)
            padded *= len([k for k in span if k < sizes[n] + pads[n]])
            spans.append([k for k in span if 0 <= k < sizes[n]])
        picked = x[place[:-2]][np.ix_(*spans)]
        out[place] = reduce(picked, padded)
    return out


def pooling() -> Iterator[Case]:
    x = normal(1, 2, 5, 6)

    def average(
        x: Any,
        window: Any,
        strides: Any,
        pads: Any,
        ceil: bool,
        include: bool,
        divisor: int,
        _: int,
    ) -> np.ndarray:
        def reduce(picked: np.ndarray, padded: int) -> float:
            return picked.sum() / (divisor or (padded if include else picked.size))

        return _pool(x, window, strides or window, pads, ceil, reduce)

    for ceil in (False, True):
        for include in (False, True):
            for divisor in (0, 3):
                options = (ceil, include, divisor, 0)
                yield Case("AvgPool2d", (x, [2, 3], [2, 2], [1, 1], *options), average, 1e-5)
    yield Case("AvgPool2d", (x[0], [2, 2], [], [0, 0], False, True, 0, 0), average, 1e-5)
    for ceil_mode in (0, 1):
        yield Case(
            "MaxPool",
            (x, [3, 2], [2, 3], 0, [1, 0, 1, 0], [1, 1], ceil_mode),
            lambda x, w, s, a, p, d, c: _pool(x, w, s, p[:2], bool(c), lambda v, _: v.max()),
        )
    yield Case(
        "MaxPool",
        (x, [2, 2], [1, 1], 0, [0, 0], [2, 2], 0),
        lambda x, w, s, a, p, d, c: _pool(x, w, s, p, False, lambda v, _: v.max(), 2),
    )


def _attend(value: Any, shapes: Any, starts: Any, locations: Any, weights: Any) -> np.ndarray:
    batch, _, heads, channels = value.shape
    _, queries, _, levels, points, _ = locations.shape
    out = np.zeros((batch, queries, heads, channels))
    for b, q, h, level, p in np.ndindex(batch, queries, heads, levels, points):
        height, width = shapes[level]
        grid = value[b, starts[level] : starts[level] + height * width, h].reshape(
            height, width, channels
        )
        x, y = locations[b, q, h, level, p] * (width, height) - 0.5
        for row in (math.floor(y), math.floor(y) + 1):
            for column in (math.floor(x), math.floor(x) + 1):
                if 0 <= row < height and 0 <= column < width:
                    share = (1 - abs(y - row)) * (1 - abs(x - column))
                    out[b, q, h] += weights[b, q, h, level, p] * share * grid[row, column]
    return out.reshape(batch, queries, heads * channels)


def _attend_grad(
    value: Any, shapes: Any, starts: Any, locations: Any, weights: Any, dy: Any
) -> Any:
    """Central differences in float64 of the sum of dy times the output."""
    arguments = [value.astype(float), locations.astype(float), weights.astype(float)]
    gradients = []
    for n, argument in enumerate(arguments):
        gradient = np.zeros_like(argument)
        for place in np.ndindex(argument.shape):
            ends = []
            for step in (1e-6, -1e-6):
                moved = list(arguments)
                moved[n] = argument.copy()
                moved[n][place] += step
                ends.append((_attend(moved[0], shapes, starts, moved[1], moved[2]) * dy).sum())
            gradient[place] = (ends[0] - ends[1]) / 2e-6
        gradients.append(gradient.astype(np.float32))
    return tuple(gradients)


def attention() -> Iterator[Case]:
    shapes, starts = np.array([[3, 2], [2, 2]], np.int32), np.array([0, 6], np.int32)
    value = normal(1, 10, 2, 2)
    # Some samples lie outside of their map.
    locations = RNG.uniform(-0.2, 1.2, (1, 2, 2, 2, 2, 2)).astype(np.float32)
    weights = positive(1, 2, 2, 2, 2)
    inputs = (value, shapes, starts, locations, weights)
    for name in ("MultiScaleDeformableAttn", "MultiScaleDeformableAttnFunction"):
        yield Case(name, inputs, _attend, 1e-5)
    for name in ("MultiScaleDeformableAttnGrad", "MultiScaleDeformableAttentionGrad"):
        yield Case(name, (*inputs, normal(1, 2, 4)), _attend_grad, 1e-4)


def backward() -> Iterator[Case]:
    x, dy = normal(2, 3, 4), normal(2, 3, 4)
    tanh, sigmoid = np.tanh(x), _sigmoid(x).astype(np.float32)
    yield Case("SigmoidBackward", (dy, sigmoid), lambda dy, y: dy * _derivative(_sigmoid, x), 1e-5)
    yield Case("TanhBackward", (dy, tanh), lambda dy, y: dy * _derivative(np.tanh, x), 1e-5)
    yield Case("GeluBackward", (dy, x), lambda dy, x: dy * _derivative(_gelu_tanh, x), 1e-5)
    yield Case(
        "SiluBackward", (dy, x), lambda dy, x: dy * _derivative(lambda v: v * _sigmoid(v), x), 1e-5
    )
    yield Case("ThresholdBackward", (dy, x, 0.2), lambda dy, x, t: np.where(x > t, dy, 0))
    for is_result in (False, True):
        yield Case(
            "LeakyReluBackward",
            (dy, x, 0.1, is_result),
            lambda dy, x, s, _: dy * np.where(x > 0, 1, s),
            1e-5,
        )
    y = _softmax(x, 1).astype(np.float32)

    def pull_back(function: Callable[[Any], Any], at: Any, dy: Any) -> np.ndarray:
        """Central differences of the sum of dy times the function."""
        out = np.zeros(at.shape)
        for place in np.ndindex(at.shape):
            step = np.zeros(at.shape)
            step[place] = 1e-6
            high, low = function(at.astype(float) + step), function(at.astype(float) - step)
            out[place] = ((high - low) * dy).sum() / 2e-6
        return out

    yield Case(
        "SoftmaxBackward",
        (dy, y, 1),
        lambda dy, y, d: pull_back(lambda v: _softmax(v, d), x, dy),
        1e-5,
    )
    yield Case(
        "LogSoftmaxBackward",
        (dy, np.log(y), 1),
        lambda dy, y, d: pull_back(lambda v: np.log(_softmax(v, d)), x, dy),
        1e-5,
    )
    weight, bias = normal(4), normal(4)

    def norm(x: Any, w: Any, b: Any) -> Any:
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3) * w + b

    mean = x.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
    yield Case(
        "LayerNormBackward",
        (dy, x, [4], mean, rstd, weight, bias, [True, True, True]),
        lambda dy, x, *_: (
            pull_back(lambda v: norm(v, weight, bias), x, dy),
            pull_back(lambda v: norm(x, v, bias), weight, dy),
            pull_back(lambda v: norm(x, weight, v), bias, dy),
        ),
        1e-4,
    )


def corners() -> Iterator[Case]:
    """What CANN's headers and sources say of corners."""
    dropped = np.zeros(16, np.uint8)
    yield Case("DropoutDoMask", (X, dropped, 0.0), lambda x, *_: x)
    square = np.full((4, 4), 0b01010101, np.uint8)
    yield Case(
        "DropoutDoMask", (X, square, 0.5), lambda x, *_: np.where(np.arange(4) % 2 == 0, 2 * x, 0)
    )
    short = normal(1000).astype(ml_dtypes.bfloat16)
    yield Case(
        "Muls",
        (short, 0.1),
        lambda x, _: (x.astype(np.float32) * np.float32(0.1)).astype(ml_dtypes.bfloat16),
    )
    for name in ("Std", "VarCorrection"):
        for correction in (4, 5):
            yield Case(name, (X, [1], correction, False), lambda x, *_: np.full(3, np.inf))
        yield Case(name, (X[:, :1], [1], 1, False), lambda x, *_: np.full(3, np.nan))
    none, rows = np.zeros(0, np.int64), np.array([2, 0])
    yield Case("Index", (X, [none, rows]), lambda x, _: x[:, [2, 0]])
    yield Case("Gather", (X, 1, np.array([[-1, 0], [-4, 3], [1, -2]])), np_gather)
    yield Case("Abs", (B,), lambda x: x)
    yield Case("Addmv", (J[:3], N, J, 2, 3, 0), lambda s, m, v, a, b, _: 3 * s + 2 * (m @ v))
    yield Case("Addmv", (B[:, 0], B, B[0], True, True, 0), lambda s, m, v, *_: s | (m @ v))
    bytes_of = integers(0, 9, 5, dtype=np.int8)
    yield Case("Dot", (bytes_of, bytes_of), lambda x, y: np.array((x * y).sum(), np.int8))
    yield Case("Clamp", (N, 1.7, 3.2), lambda x, *_: np.clip(x, 1, 3))
    yield Case("Clamp", (N, None, 1e30), lambda x, *_: x)
    yield Case("Clamp", (N, 0.5, None), lambda x, *_: np.maximum(x.astype(np.float32), 0.5))
    one = np.array(3.5, np.float32)
    yield Case("IndexSelect", (one, 0, np.array([0])), lambda x, *_: x)
    yield Case("Softmax", (one, 0), lambda x, _: np.ones_like(x))
    yield Case("LogSoftmax", (one, -1), lambda x, _: np.zeros_like(x))
    yield Case("Mean", (J, [0], False, np.dtype(np.int32)), lambda x, *_: np.int32(x.mean()))
    yield Case("MeanV2", (N, [1], False, False), lambda x, *_: np.trunc(x.mean(1)).astype(int))
    tens = np.array([5, 15, 25, -5, -15, 149, -151, 0], np.int32)
    yield Case("RoundDecimals", (tens, -1), np.round)
    yield Case("RoundDecimals", (tens, -2), np.round)
    yield Case("RoundDecimals", (tens, 2), lambda x, _: x)
    # A result without axes fills an output of one entry.
    yield Case("Max", (X,), lambda x: x.max().reshape(1))
    yield Case("ReduceSum", (X, None, False, None), lambda x, *_: x.sum().reshape(1), 1e-5)
    yield Case("ArgMin", (Y, 0, False), lambda x, *_: np.argmin(x).reshape(1))
    yield Case("AllFinite", ([X, Y],), lambda _: np.array([False]))
    batch, channel = normal(4, 3), positive(3)
    yield Case(
        "BatchNorm",
        (batch, channel, None, None, None, True, 0.1, 1e-5),
        lambda x, w, *_: (
            (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5) * w,
            x.mean(0),
            1 / np.sqrt(x.var(0) + 1e-5),
        ),
        1e-5,
    )


def np_gather(x: np.ndarray, dim: int, index: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, index % x.shape[dim], dim)


FAMILIES = (
    arithmetic,
    comparisons,
    unary,
    activations,
    reductions,
    ordering,
    shapes,
    indexing,
    normalization,
    products,
    creation,
    pooling,
    attention,
    backward,
    corners,
)
CASES = [case for family in FAMILIES for case in family()]
