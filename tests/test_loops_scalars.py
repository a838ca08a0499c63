"""Single values of the loop IR against numpy, `math`, exact fractions and XLA."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_ir import (
    BINARY,
    DTYPES,
    FLOATS,
    FUNCTIONS,
    INTEGERS,
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    Kernel,
    Load,
    Store,
    Unary,
    Var,
    as_dtype,
    interpret,
    result_dtype,
    verify,
)
from quick_cases import one_in

import msops

pytestmark = pytest.mark.usefixtures("as_users_compile")


def evaluate(make: Callable[..., Expr], *arrays: np.ndarray) -> np.ndarray:
    """Runs an expression over the elements of 1-D arrays of one size, which it is made of."""
    size = arrays[0].size
    parameters = tuple(Buffer(f"p{n}", (size,), array.dtype.name) for n, array in enumerate(arrays))
    value = make(*(Load(p.name, (Var("i"),), p.dtype) for p in parameters))
    out = Buffer("out", (size,), value.dtype)
    loop = For(
        "i",
        Const(0, "int32"),
        Const(size, "int32"),
        (Store("out", (Var("i"),), value),),
        "parallel",
    )
    kernel = Kernel("evaluate", parameters, ("out",), (out,), (loop,))
    verify(kernel)
    return interpret(kernel, arrays)[0]


def integers(dtype: str) -> np.ndarray:
    """Returns small numbers and the ends of the range."""
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    some = {0, 1, 2, 3, 5, 7, low, low + 1, high - 1, high, high // 3, info.bits, info.bits - 1}
    some |= {-1, -2, -3, -7} if low else set()
    return np.array(sorted(some), dtype)


def floats(dtype: str) -> np.ndarray:
    """Returns numbers of every size, halves, both zeros, infinities and NaN."""
    limits = jnp.finfo(dtype)
    values = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 1 / 3, 0.1, -0.7, 1.0, -1.0, 3.0, -7.25]
    values += [1e-3, 100.3, -1234.5, math.inf, -math.inf, math.nan]
    values += [float(limits.max), float(limits.tiny), float(limits.min)]
    return np.array(values, as_dtype(dtype).dtype)


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns all pairs as two arrays."""
    left, right = np.meshgrid(values, values)
    return left.ravel(), right.ravel()


def wrapped(value: int, dtype: str) -> int:
    """Returns an integer modulo the range of a dtype."""
    bits = np.iinfo(dtype).bits
    return int(np.array(value % 2**bits, f"uint{bits}").view(dtype))


def truncated(value: Fraction) -> int:
    return math.trunc(value)


EXACT: dict[str, Callable[[int, int], int]] = {
    "truncdiv": lambda a, b: truncated(Fraction(a, b)) if b else 0,
    "truncmod": lambda a, b: a - b * truncated(Fraction(a, b)) if b else 0,
    "pow": lambda a, b: a**b if b >= 0 else truncated(Fraction(a) ** b) if a else 0,
}
NUMPY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "min": np.minimum,
    "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "shl": np.left_shift, "shr": np.right_shift, "eq": np.equal, "ne": np.not_equal,
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "land": np.logical_and, "lor": np.logical_or,
}  # fmt: skip


def binary(op: str) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: Binary(op, a, b, result_dtype(op, a.dtype))  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    "op", [op for op, row in BINARY.items() if row[1] in ("number", "integer")]
)
def test_operations_on_integers(op: str, dtype: str) -> None:
    left, right = pairs(integers(dtype))
    if op == "pow":  # keeps the exact powers small
        keep = np.abs(right.astype("float64")) < 40
        left, right = left[keep], right[keep]
    if op in EXACT:
        expected = [
            wrapped(EXACT[op](int(a), int(b)), dtype) for a, b in zip(left, right, strict=True)
        ]
    else:
        with np.errstate(all="ignore"):
            expected = NUMPY[op](left, right).tolist()
    assert evaluate(binary(op), left, right).tolist() == expected


def test_operations_on_integers_by_hand() -> None:
    """What numpy leaves to the machine."""
    low = np.array([-128], "int8")
    minus = np.array([-1], "int8")
    assert evaluate(binary("floordiv"), low, minus).tolist() == [-128]
    assert evaluate(binary("mod"), low, minus).tolist() == [0]
    assert evaluate(binary("truncdiv"), low, minus).tolist() == [-128]
    for zero in ("floordiv", "mod", "truncdiv", "truncmod"):
        assert evaluate(binary(zero), low, low * 0).tolist() == [0]
    for distance in (8, 9, 127, -1, -128):
        by = np.array([distance], "int8")
        assert evaluate(binary("shl"), minus, by).tolist() == [0]
        assert evaluate(binary("shr"), minus, by).tolist() == [-1]
        assert evaluate(binary("shr"), -minus, by).tolist() == [0]


@pytest.mark.parametrize("op", ["land", "lor", "eq", "ne", "and", "or", "xor"])
def test_operations_on_bools(op: str) -> None:
    left, right = pairs(np.array([False, True]))
    assert evaluate(binary(op), left, right).tolist() == NUMPY[op](left, right).tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", [op for op, row in BINARY.items() if row[1] in ("number", "float")])
def test_operations_on_floats(op: str, dtype: str) -> None:
    left, right = pairs(floats(dtype))
    got = evaluate(binary(op), left, right)
    with np.errstate(all="ignore"):
        if dtype in ("float16", "bfloat16"):
            wide = NUMPY[op](left.astype("float32"), right.astype("float32"))
            expected = wide.astype(got.dtype)
        else:
            expected = NUMPY[op](left, right)
    if op == "pow":
        close(got, expected)
    else:
        same(got, expected)


def same(got: np.ndarray, expected: np.ndarray) -> None:
    """Checks that floats are equal, NaN to NaN, which numpy does not know of bfloat16."""
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got.astype("float64"), expected.astype("float64"))


def close(got: np.ndarray, expected: np.ndarray) -> None:
    """Checks that floats are equal up to two units in the last place."""
    eps = 2 * float(jnp.finfo(got.dtype).eps)
    tiny = float(jnp.finfo(got.dtype).tiny)
    np.testing.assert_allclose(got.astype("float64"), expected.astype("float64"), eps, tiny)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bits_are_rounded_after_each_operation(dtype: str) -> None:
    big = np.array([2.0 / float(jnp.finfo(dtype).eps)], as_dtype(dtype).dtype)

    def there_and_back(a: Expr) -> Expr:
        one = Const(1.0, dtype)
        return Binary("sub", Binary("add", a, one, dtype), a, dtype)

    assert evaluate(there_and_back, big).tolist() == [0.0]
    assert evaluate(there_and_back, big / big).tolist() == [1.0]


def half_up(x: float) -> float:
    return math.copysign(float(Decimal(abs(x)).quantize(Decimal(1), ROUND_HALF_UP)), x)


def sign(x: float) -> float:
    return x if math.isnan(x) else float((x > 0) - (x < 0))


REFERENCE: dict[str, Callable[..., float]] = {
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "exp10": lambda x: math.pow(10.0, x),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "floor": lambda x: float(math.floor(x)),
    "ceil": lambda x: float(math.ceil(x)),
    "trunc": lambda x: float(math.trunc(x)),
    "nearbyint": lambda x: float(round(x)),
    "round": half_up,
    "abs": abs,
    "sign": sign,
}
FLOAT_FUNCTIONS = [
    name for name, row in FUNCTIONS.items() if row.domain != "integer" and not row.to_bool
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FLOAT_FUNCTIONS)
def test_functions_of_floats(name: str, dtype: str) -> None:
    reference = REFERENCE.get(name) or getattr(math, name)
    usual = floats(dtype)
    usual = usual[np.isfinite(usual.astype("float64")) & (abs(usual.astype("float64")) < 1e4)]
    arguments = (usual,) if FUNCTIONS[name].arity == 1 else pairs(usual)
    keep, expected = [], []
    for number, row in enumerate(zip(*arguments, strict=True)):
        try:
            expected.append(reference(*map(float, row)))
            keep.append(number)
        except (ValueError, ZeroDivisionError, OverflowError):
            continue  # `math` raises where the IR gives NaN or an infinity; see below
    assert len(keep) > 3
    arguments = tuple(array[keep] for array in arguments)
    got = evaluate(lambda *args: FunctionCall(name, args, args[0].dtype), *arguments)
    with np.errstate(over="ignore"):
        close(got, np.array(expected).astype(got.dtype))


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("sqrt", -1.0, math.nan),
        ("log", 0.0, -math.inf),
        ("log", -1.0, math.nan),
        ("rsqrt", 0.0, math.inf),
        ("exp", 1e4, math.inf),
        ("exp", -math.inf, 0.0),
        ("atanh", 1.0, math.inf),
        ("acos", 2.0, math.nan),
        ("sigmoid", -1e5, 0.0),
        ("sigmoid", math.inf, 1.0),
        ("erf", -math.inf, -1.0),
        ("tanh", math.inf, 1.0),
        ("round", math.inf, math.inf),
        ("round", 0.49999999999999994, 0.0),
        ("round", -2.5, -3.0),
        ("nearbyint", 2.5, 2.0),
        ("floor", math.nan, math.nan),
        ("sign", math.nan, math.nan),
        ("sign", -0.0, 0.0),
    ],
)
def test_functions_at_their_edges(name: str, argument: float, expected: float) -> None:
    got = evaluate(lambda a: FunctionCall(name, (a,), "float64"), np.array([argument]))
    np.testing.assert_array_equal(got, [expected])


def test_fmod_has_the_sign_of_the_first_argument() -> None:
    left, right = np.array([-7.5, 7.5, 1.0]), np.array([2.0, -2.0, 0.0])
    got = evaluate(lambda a, b: FunctionCall("fmod", (a, b), "float64"), left, right)
    np.testing.assert_array_equal(got, [-1.5, 1.5, math.nan])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_functions_of_integers(dtype: str) -> None:
    values = integers(dtype)
    bits = np.iinfo(dtype).bits

    def apply(name: str) -> list[int]:
        return evaluate(lambda a: FunctionCall(name, (a,), dtype), values).tolist()

    assert apply("abs") == np.abs(values).tolist()
    assert apply("sign") == np.sign(values).tolist()
    assert apply("popcount") == [bin(int(v) % 2**bits).count("1") for v in values]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_tests_of_floats(name: str, dtype: str) -> None:
    values = floats(dtype)
    got = evaluate(lambda a: FunctionCall(name, (a,), "bool"), values)
    np.testing.assert_array_equal(got, getattr(np, name)(values))


@pytest.mark.parametrize("dtype", DTYPES)
def test_signs(dtype: str) -> None:
    def unary(op: str, values: np.ndarray) -> np.ndarray:
        return evaluate(lambda a: Unary(op, a, dtype), values)  # type: ignore[arg-type]

    if dtype == "bool":
        assert unary("not", np.array([False, True])).tolist() == [True, False]
    elif dtype in FLOATS:
        negated = unary("neg", floats(dtype))
        same(negated, -floats(dtype))
        np.testing.assert_array_equal(np.signbit(negated[:2]), [True, False])
    else:
        values = integers(dtype)
        assert unary("neg", values).tolist() == [wrapped(-int(v), dtype) for v in values]
        assert unary("invert", values).tolist() == (~values).tolist()


def samples(dtype: str) -> np.ndarray:
    if dtype == "bool":
        return np.array([False, True])
    return floats(dtype) if dtype in FLOATS else integers(dtype)


@functools.cache
def casts_by_xla(source: str) -> dict[str, np.ndarray]:
    """Returns the samples of a dtype in every dtype, by one program: each takes long to compile."""
    convert = lambda x: {to: jax.lax.convert_element_type(x, to) for to in DTYPES}  # noqa: E731
    with jax.enable_x64(True):
        return {to: np.asarray(x) for to, x in jax.jit(convert)(samples(source)).items()}


@pytest.mark.parametrize("target", one_in(2, DTYPES))
@pytest.mark.parametrize("source", DTYPES)
def test_casts_are_those_of_xla(source: str, target: str) -> None:
    values = samples(source)
    got = evaluate(lambda a: Cast(a, target), values)
    expected = casts_by_xla(source)[target]
    assert got.dtype == expected.dtype
    same(got, expected)


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (-2.9, "int8", -2),
        (300.0, "int8", 127),
        (-300.0, "int8", -128),
        (-1.0, "uint8", 0),
        (math.nan, "int32", 0),
        (math.inf, "int64", 2**63 - 1),
        (-math.inf, "uint16", 0),
        (2.0**63, "int64", 2**63 - 1),
        (math.nan, "bool", True),
        (-0.0, "bool", False),
    ],
)
def test_casts_by_hand(value: float, target: str, expected: Any) -> None:
    got = evaluate(lambda a: Cast(a, target), np.array([value]))
    assert got.tolist() == [expected]


def test_an_integer_of_64_bits_is_rounded_to_float32_once() -> None:
    # Just above the middle of two floats: rounding to float64 first would end in the middle.
    value = 2**60 + 2**36 + 1
    got = evaluate(lambda a: Cast(a, "float32"), np.array([value]))
    assert int(got[0]) == 2**60 + 2**37


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_constant_is_rounded_to_its_dtype(dtype: str) -> None:
    got = evaluate(lambda a: Binary("add", a, Const(0.1, dtype), dtype),
                   np.zeros(1, as_dtype(dtype).dtype))  # fmt: skip
    assert got[0] == np.array(0.1, as_dtype(dtype).dtype)


INF, NAN = math.inf, math.nan


def constants(x):
    y = output_tensor((6,), x.dtype)  # noqa: F821
    y[0] = bfloat16(INF)  # noqa: F821
    y[1] = float32(-INF)  # noqa: F821
    y[2] = float16(NAN)  # noqa: F821
    y[3] = bfloat16(NAN)  # noqa: F821
    y[4] = bfloat16(2**63)  # noqa: F821
    y[5] = float64(-(2**63))  # noqa: F821
    return y


@pytest.mark.parametrize("lower", ["xla", "native"])
def test_constants_keep_what_is_no_number_and_integers_beyond_int64(lower: str) -> None:
    op = msops.Custom(constants, func_type="akg", compile_attrs={"lower": lower})
    want = [INF, -INF, NAN, NAN, 2.0**63, -(2.0**63)]
    np.testing.assert_array_equal(op(np.ones(1, "float32")), np.float32(want))
