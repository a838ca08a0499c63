"""Integers of every width, at the edges of each: all forms, the interpreter and Python agree."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from loop_ir import INTEGERS, Spec, as_dtype, interpret, read_kernel
from loop_native import build_together, call, shipped
from loop_source import define
from quick_cases import case_of, one_in

from msops import Custom
from msops.errors import BuildError
from msops.ops import kernel

pytestmark = pytest.mark.usefixtures("as_users_compile")

# Names of the language.
# ruff: noqa: F821

numpy_warns = pytest.mark.filterwarnings("ignore:.*(overflow|divide by zero):RuntimeWarning")


def of_data(a, b, s):
    n = a.shape[0]
    y = output_tensor((29, n), a.dtype)
    for i in range(n):
        y[0, i] = a[i] // b[i]
        y[1, i] = a[i] % b[i]
        y[2, i] = ceil_div(a[i], b[i])
        y[3, i] = a[i] << b[i]
        y[4, i] = a[i] >> b[i]
        y[5, i] = min(a[i], b[i])
        y[6, i] = max(a[i], b[i])
        y[7, i] = power(a[i], b[i])
        y[8, i] = a[i] ** s[i]
        y[9, i] = a[i] ^ b[i] & ~s[i] | s[i]
        y[10, i] = a[i] * b[i] - s[i] + a[i]
        y[11, i] = abs(a[i])
        y[12, i] = sign(a[i])
        y[13, i] = -a[i]
        y[14, i] = popcount(a[i])
        y[15, i] = a[i] // 3
        y[16, i] = a[i] % 16
        y[17, i] = a[i] // 16
        y[18, i] = ceil_div(a[i], 7)
        y[19, i] = 7 // a[i]
        y[20, i] = 7 % a[i]
        y[21, i] = a[i] << 3
        y[22, i] = a[i] >> 3
        y[23, i] = a[i] << 70
        y[24, i] = a[i] >> 70
        y[25, i] = 1 << a[i]
        y[26, i] = a[i] ** 3
        y[27, i] = 2 ** s[i]
        y[28, i] = a[i] ** 0
    return y


def of_negative_constants(a):
    y = output_tensor((10, a.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        y[0, i] = a[i] // -3
        y[1, i] = a[i] % -3
        y[2, i] = a[i] // -1
        y[3, i] = a[i] % -1
        y[4, i] = ceil_div(a[i], -7)
        y[5, i] = a[i] << -1
        y[6, i] = a[i] >> -1
        y[7, i] = -7 // a[i]
        y[8, i] = -7 >> a[i]
        y[9, i] = (-1) ** (a[i] & 7)
    return y


def edges(dtype: str) -> list[int]:
    """Returns the limits of a dtype, widths of dtypes and small numbers."""
    least, most, bits = np.iinfo(dtype).min, np.iinfo(dtype).max, np.iinfo(dtype).bits
    numbers = {least, least + 1, least // 2, most // 2, most - 1, most, bits - 1, bits, 2 * bits}
    numbers |= {0, 1, 2, 3, 7, 16, -1, -2, -7, -bits}
    return sorted(number for number in numbers if least <= number <= most)


def agree(func: Callable[..., Any], *arrays: np.ndarray) -> None:
    """Compares a kernel that runs as Python with its other forms."""
    wanted = kernel(func)(*arrays)
    specs = [Spec(array.shape, str(array.dtype)) for array in arrays]
    meaning = read_kernel(func, "akg", "k").specialise(specs, {}, "k")
    results = {"interpreter": interpret(meaning, list(arrays))[0]}
    for form in ("xla", "native"):
        results[form] = Custom(func, func_type="akg", compile_attrs={"lower": form})(*arrays)
    for form, got in results.items():
        np.testing.assert_array_equal(np.asarray(got), wanted, f"{form}, {wanted.dtype}")


@numpy_warns
@pytest.mark.parametrize("dtype", one_in(2, INTEGERS, first=1))
def test_operators_and_helpers_at_the_edges_of_integers(dtype: str) -> None:
    numbers = edges(dtype)
    a, b = (
        np.array(part, dtype) for part in zip(*itertools.product(numbers, repeat=2), strict=True)
    )
    with jax.enable_x64(True):
        agree(of_data, a, b, b & np.array(63, dtype))
        if numbers[0] < 0:
            agree(of_negative_constants, np.array(numbers, dtype))


def comparisons(a, b):
    n = a.shape[0]
    y = output_tensor((14, n), "bool")
    for i in range(n):
        y[0, i] = a[i] < b[i]
        y[1, i] = a[i] <= b[i]
        y[2, i] = a[i] > b[i]
        y[3, i] = a[i] >= b[i]
        y[4, i] = a[i] == b[i]
        y[5, i] = a[i] != b[i]
        y[6, i] = a[i] < -2
        y[7, i] = a[i] >= -2
        y[8, i] = a[i] > -1 > b[i]
        y[9, i] = b[i] <= -3
        y[10, i] = a[i] == -1
        y[11, i] = b[i] != -1
        y[12, i] = a[i] > i - 1
        y[13, i] = i - 1 == b[i]
    return y


QUICK_PAIRS = [("int8", "uint8"), ("uint32", "int32"), ("int64", "uint64"), ("uint64", "int16")]
PAIRS = [
    case_of(one, other, quick=(one, other) in QUICK_PAIRS)
    for one, other in itertools.permutations(INTEGERS, 2)
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_integers_of_two_dtypes_compare_by_their_values(one: str, other: str) -> None:
    pairs = zip(*itertools.product(edges(one), edges(other)), strict=True)
    with jax.enable_x64(True):
        agree(comparisons, *map(np.array, pairs, (one, other)))


def updated_scalars(a):
    y = output_tensor((4,), "float64")
    total = 0
    product = 1
    mixed = 5
    for i in range(a.shape[0]):
        total += a[i]
        product *= a[i]
        mixed ^= a[i]
    y[0] = float64(total)
    y[1] = float64(product)
    y[2] = float64(mixed)
    quotient = 100
    quotient //= a[0]
    y[3] = float64(quotient)
    return y


@numpy_warns
@pytest.mark.parametrize("dtype", INTEGERS)
def test_an_updated_scalar_has_the_dtype_of_what_it_meets(dtype: str) -> None:
    most = np.iinfo(dtype).max
    with jax.enable_x64(True):
        agree(updated_scalars, np.array([most // 2 + 5, 3, most - 2], dtype))


@numpy_warns
@pytest.mark.parametrize("dtype", [dtype for dtype in INTEGERS if dtype != "int32"])
def test_constants_of_a_width_wrap(dtype: str) -> None:
    most, bits = int(np.iinfo(dtype).max), np.iinfo(dtype).bits

    def k(a):
        y = output_tensor((9,), a.dtype)
        y[0] = a[0] + a.dtype.type(most) * a.dtype.type(5)
        y[1] = a[0] + (a.dtype.type(most) + a.dtype.type(1))
        y[2] = a[0] + (a.dtype.type(most) << 2)
        y[3] = a[0] + -a.dtype.type(5)
        y[4] = a[0] + ~a.dtype.type(5)
        y[5] = a[0] + (a.dtype.type(1) << bits)
        y[6] = a[0] + a.dtype.type(3) ** 41
        y[7] = a[0] + (a.dtype.type(5) - 6)
        y[8] = a[0] + (1 if a.dtype.type(most) + 1 > a.dtype.type(1) else 2)
        return y

    with jax.enable_x64(True):
        agree(k, np.array([6], dtype))


@numpy_warns
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_an_integer_beyond_int64_is_a_float_of_any_dtype(dtype: str) -> None:
    """ml_dtypes' bfloat16 takes none of Python's."""

    def k(a):
        y = output_tensor((3,), a.dtype)
        y[0] = a.dtype.type(uint64(18446744073709551614))
        y[1] = a[0] * a.dtype.type(uint64(9223372036854775808))
        y[2] = a.dtype.type(int64(-9223372036854775807))
        return y

    numbers = [2.0**64, 2.0**63, -(2.0**63)] if dtype != "float16" else [np.inf, np.inf, -np.inf]
    a = np.array([1], as_dtype(dtype).dtype)
    with jax.enable_x64(True):
        agree(k, a)
        np.testing.assert_array_equal(np.asarray(kernel(k)(a)).astype("float64"), numbers)


@numpy_warns
def test_a_constant_that_int32_has_not_wraps_where_it_is_converted() -> None:
    def k(a):
        y = output_tensor(a.shape, a.dtype)
        y[0] = a[0] + uint32(int32(-2147483648) << int32(15))
        y[1] = a[1] + uint32(int32(2147483647) * 3)
        y[2] = a[2] + uint32(int8(5000000000))
        return y

    agree(k, np.uint32([1, 2, 3]))


@numpy_warns
def test_the_least_int64_is_compared_as_a_signed_number(tmp_path: Path) -> None:
    """C takes its digits for an unsigned number, above all others."""

    def k(a):
        y = output_tensor((3,), "int64")
        largest, at = a[0], int32(0)
        for i in range(0, 8, 2):
            found = int64(i) - int64(-9223372036854775808)
            if found > largest:
                largest = found
                at = int32(i)
        y[0], y[1], y[2] = largest, int64(at), 0
        for i in reduce(3):
            y[2] += largest & a[i]
        return y

    a = np.int64([5, 6, 7])
    with jax.enable_x64(True):
        agree(k, a)
    # clang computes with the unsigned number, of which gcc warns.
    printed = shipped(read_kernel(k, "akg", "k").specialise([Spec((3,), "int64")], {}, "k"), 0)
    library = build_together(tmp_path, [printed[1]])
    np.testing.assert_array_equal(call(library, *printed, [a])[0], [5, 0, 14])


def test_a_constant_that_no_type_has_is_refused() -> None:
    def too_large(a):
        y = output_tensor(a.shape, a.dtype)
        y[0] = a[0] + 18446744073709551615 * 5
        return y

    with pytest.raises(BuildError, match="the constant 92233720368547758075 is no int32"):
        Custom(too_large, func_type="akg")(np.int32([1]))

    def of_a_function(a):
        y = output_tensor(a.shape, a.dtype)
        y[0] = abs(-1 + -2147483648)
        return y

    with pytest.raises(BuildError, match="the constant -2147483649 is no int32"):
        Custom(of_a_function, func_type="akg")(np.int32([1]))

    huge = 10**400

    def too_long(a):
        y = output_tensor(a.shape, a.dtype)
        y[0] = a[0] + float32(huge)
        return y

    with pytest.raises(BuildError, match=r"the constant 'float32\(huge\)' has more than 64 bits"):
        Custom(too_long, func_type="akg")(np.float32([1]))


def test_a_whole_bfloat16_constant_may_be_beyond_int32() -> None:
    def k(a):
        y = output_tensor(a.shape, a.dtype)
        y[0] = a[0] + float32(bfloat16(3000000000))
        return y

    agree(k, np.float32([1]))


@pytest.mark.parametrize("sign", ["//", "%", "**", "<<", ">>"])
def test_an_update_does_not_take_an_unsigned_number_for_a_negative_one(sign: str) -> None:
    function = define(f"""
        def k(x, w):
            y = output_tensor(x.shape, x.dtype)
            for i in range(x.shape[0]):
                y[i] = x[i]
                y[i] {sign}= w[i]
            return y
    """)
    op = Custom(function, func_type="akg")
    with pytest.raises(BuildError, match=r"the operands of .* are int8 and uint8"):
        op(np.int8([-128]), np.uint8([250]))
    wide, narrow = np.int16([-128, 100, 7]), np.uint8([25, 7, 2])
    with np.errstate(over="ignore"):
        wanted = [eval(f"x {sign} w") for x, w in zip(wide, np.int16(narrow), strict=True)]
    np.testing.assert_array_equal(op(wide, narrow), wanted)
