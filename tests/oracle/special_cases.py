"""Expressions over Tensors, and the special values that they get: dtype by dtype.

`x` and `y` are Tensors, `ops` and `ms` are MindSpore's. Arrays of bfloat16 are given as float32.
"""

import numpy as np

INF, NAN = float("inf"), float("nan")
_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 7.0, -7.0, INF, -INF, NAN]
_FEW = [0.0, -0.0, 1.0, -2.5, 7.0, INF, -INF, NAN]
_ROWS = [
    *([NAN, 1, 2], [1, NAN, 2], [1, 2, NAN], [2, 2, 1], [0.0, -0.0, 0.0], [-0.0, 0.0, -0.0]),
    *([INF, -INF, 1], [INF, INF, 1], [-INF, -1, 0], [-1, -1, -1]),
]
FLOATS = ("float32", "float16", "float64", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
DTYPES = (*FLOATS, *INTEGERS, "bool")


def _integers(dtype):
    limits = np.iinfo(dtype)
    near = [0, 1, 2, 7] if limits.min == 0 else [0, 1, -1, 2, -7]
    return [*near, limits.max, limits.min] if limits.min else [*near, limits.max]


def _values(dtype):
    if dtype in FLOATS:
        return _FLOATS if dtype == "float32" else _FEW
    return [False, True] if dtype == "bool" else _integers(dtype)


def _rows(dtype):
    if dtype in FLOATS:
        return _ROWS
    if dtype == "bool":
        return [[False, True], [True, True], [False, False]]
    limits = np.iinfo(dtype)
    return [[2, 2, 1], [limits.max, 1, limits.max], [limits.min, limits.min, 0], [0, 0, 0]]


def _numpy(dtype):
    return "float32" if dtype == "bfloat16" else dtype


def inputs(kind, dtype):
    """Returns the arrays `x` and `y` of a kind."""
    data = np.array(_values(dtype), _numpy(dtype))
    if kind == "pairs":
        return [grid.reshape(-1) for grid in np.meshgrid(data, data)]
    if kind == "rows":
        return [np.array(_rows(dtype), _numpy(dtype))] * 2
    if kind == "number":
        return [data[2 % len(data)], data[0]]
    if kind == "nothing":
        return [np.zeros((2, 0), _numpy(dtype))] * 2
    return [data] * 2


_UNARY = (
    "abs ceil cos cosh erf exp expm1 floor isfinite isnan log log1p logical_not neg reciprocal "
    "relu round rsqrt sigmoid sign sin sinh sqrt square tan tanh zeros_like ones_like"
)
_BINARY = (
    "add sub mul div floor_div floor_mod pow maximum minimum equal not_equal less less_equal "
    "greater greater_equal logical_and logical_or bitwise_and bitwise_or bitwise_xor"
)
_UNARY_FORMS = """
    -x; ~x; abs(x); x.abs(); x.round(); x.sign(); x.square(); x.sigmoid(); x.isnan()
    x + 1; 2 - x; x * 2; 300 * x; x / 0; 1 / x; x // 0; x // 2; 7 // x; x % 0; x % 3; 7 % x
    x ** 0; x ** 2; x ** -1; 2 ** x; x + 1.5; 0.5 * x; x % 1.5; x // 0.5; x ** 0.5
    x + True; x == 0; x < 1.5; x >= 2
    x.int(); x.bool(); x.float(); x.half(); x.long(); x.astype(ms.int8); x.astype(ms.uint8)
    ops.cast(x, ms.int16); ops.cast(x, ms.int64); ops.cast(x, ms.float64)
    ops.clamp(x, -0.5, 1.5); ops.clamp(x, 0, 1); x.clamp(1, 0); ops.clamp(x, 1); x.clip(None, 1)
    ops.clip_by_value(x, ms.Tensor(-1, x.dtype), ms.Tensor(1, x.dtype))
    ops.where(x > 0, x, 0); ops.where(x > 0, 1.5, x); ops.where(x == x, x, x * 2)
    ops.full_like(x, 2.5); ops.softmax(x); ops.argmax(x); ops.argmin(x); x.argmax(); x.cumsum(0)
    ops.sort(x)[0]; ops.sort(x)[1]; ops.topk(x, 2)[0]; ops.topk(x, 2)[1]
"""
_BINARY_FORMS = """
    x + y; x - y; x * y; x / y; x // y; x % y; x ** y; x & y; x | y; x ^ y
    x == y; x != y; x < y; x <= y; x > y; x >= y; ops.Mod()(x, y); ops.RealDiv()(x, y)
    ops.where(x > y, x, y); x.maximum(y); x.minimum(y); ops.clamp(x, y, y); x.pow(y)
"""
_REDUCTIONS = """
    ops.amax(x); ops.amin(x); ops.amax(x, 1); ops.amin(x, 1); ops.sum(x); ops.sum(x, 1)
    ops.prod(x); ops.prod(x, 1); ops.mean(x); ops.mean(x, 1); ops.all(x, 1); ops.any(x, 1)
    ops.ReduceMax()(x, 1); ops.ReduceMin()(x, 1); ops.ReduceSum()(x, 1); ops.ReduceMean()(x, 1)
    ops.ReduceProd()(x, 1); x.max(); x.min(); x.max(axis=1); x.min(axis=1); x.sum(); x.sum(1)
    x.mean(1); x.prod(1); x.all(); x.any(1); x.std(); x.var(1); ops.var(x, 1)
    ops.argmax(x, 1); ops.argmin(x, 1); x.argmax(1); x.argmin(1); ops.count_nonzero(x, 1)
    ops.softmax(x, 1); ops.sort(x, 1)[0]; ops.sort(x, 1)[1]; ops.sort(x, 1, True)[0]
    ops.sort(x, 1, True)[1]; ops.topk(x, 2)[0]; ops.topk(x, 2)[1]
    ops.topk(x, 2, largest=False)[0]; ops.topk(x, 2, largest=False)[1]; x.cumsum(1)
"""
_OF_ALL = """
    ops.amax(x); ops.amin(x); ops.sum(x); ops.prod(x); ops.mean(x); ops.all(x); ops.any(x)
    x.max(); x.min(); x.sum(); x.mean(); x.std(); x.var(); x.argmax(); ops.count_nonzero(x)
"""


def _listed(text):
    return [part.strip() for line in text.split("\n") for part in line.split(";") if part.strip()]


_FUNCTIONS = [f"ops.{name}(x)" for name in _UNARY.split()]
_FUNCTIONS_OF_TWO = [f"ops.{name}(x, y)" for name in _BINARY.split()]
EXPRESSIONS = {
    "values": [*_FUNCTIONS, *_listed(_UNARY_FORMS)],
    "pairs": [*_FUNCTIONS_OF_TWO, *_listed(_BINARY_FORMS)],
    "rows": _listed(_REDUCTIONS),
    "number": [*_FUNCTIONS, *_FUNCTIONS_OF_TWO, *_listed(_OF_ALL)],
    "nothing": [*_FUNCTIONS, *_FUNCTIONS_OF_TWO, *_listed(_REDUCTIONS)],
}
"""What is computed of each kind of inputs."""


def slopes(kind, dtype, text):
    """Returns the names of the Tensors in which an expression has gradients."""
    if dtype not in FLOATS or kind not in ("values", "pairs", "rows"):
        return ""
    return "xy" if kind == "pairs" else "x"


def has_graph(kind, dtype):
    """Returns whether GRAPH_MODE is recorded where it differs."""
    return dtype in ("float32", "int32") and kind in ("values", "pairs", "rows")
