"""`opcheck` gives an op lists of other lengths: of arrays, and of numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from test_opcheck import check_one

from msops import pyfunc
from msops.ops import CustomRegOp, DataType

X = np.array([0.5, -1.0, 2.0], np.float32)


def polynomial(x: np.ndarray, c: Sequence[float] = (1.0, -2.0, 0.5)) -> np.ndarray:
    y = np.zeros_like(x)
    for factor in reversed(c):
        y = y * x + x.dtype.type(factor)
    return y


def slope_of_three(x: Any, c: Sequence[float], out: Any, dout: Any) -> Any:
    return (dout * (c[1] + 2 * c[2] * x),)


def slope_of_all(x: Any, c: Sequence[float], out: Any, dout: Any) -> Any:
    return (dout * (sum(k * a * x ** (k - 1) for k, a in enumerate(c) if k) + jnp.zeros_like(x)),)


def scaled(x: np.ndarray, c: Sequence[float] = (1.0, -2.0, 0.5)) -> np.ndarray:
    return x * x.dtype.type(c[0]) + x.dtype.type(c[1])


def slope_of_scaled(x: Any, c: Sequence[float], out: Any, dout: Any) -> Any:
    factor, _, _ = c
    return (dout * factor,)


@pytest.mark.parametrize(
    ("function", "rule", "verdict"),
    [
        (polynomial, slope_of_three, "failed"),
        (polynomial, slope_of_all, "passed"),
        # It takes no notice of more: the length is fixed.
        (scaled, slope_of_scaled, "passed"),
    ],
)
def test_a_gradient_is_compared_for_lists_of_another_length(
    function: Callable[..., Any], rule: Callable[..., Any], verdict: str
) -> None:
    op = pyfunc(function, out=lambda x, c: x, bprop=rule, attrs={"c": (1.0, -2.0, 0.5)})
    finding = check_one(op, "gradient", X)
    assert finding.verdict == verdict, finding
    if verdict == "failed":
        assert finding.details[0].startswith("c=(1.0, -2.0, 0.5, 2.0): "), finding


def of_lists(function: Callable[..., Any], bprop: Callable[..., Any] | None = None) -> Any:
    info = (
        CustomRegOp("Terms")
        .input(0, "terms", "dynamic")
        .output(0, "y")
        .dtype_format(DataType.F32_Default, DataType.F32_Default)
        .target("CPU")
        .get_op_info()
    )
    return pyfunc(function, out=lambda terms: terms[0], bprop=bprop, reg_info=info)


def of_two(terms: Sequence[np.ndarray]) -> np.ndarray:
    return sum((term * np.float32(0.5) for term in terms[1:2]), terms[0] * np.float32(0.5))


def of_all(terms: Sequence[np.ndarray]) -> np.ndarray:
    return sum((term * np.float32(0.5) for term in terms[1:]), terms[0] * np.float32(0.5))


def of_pairs(terms: Sequence[np.ndarray]) -> np.ndarray:
    return sum(terms[i] * terms[i + 1] for i in range(0, len(terms) - 1, 2))


def of_ends(terms: Sequence[np.ndarray]) -> np.ndarray:
    return terms[0] - terms[-1]


def counting(terms: Sequence[np.ndarray]) -> np.ndarray:
    counting.calls += 1  # type: ignore[attr-defined]
    return of_all(terms) + np.float32(counting.calls * (len(terms) > 2))  # type: ignore[attr-defined]


counting.calls = 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (of_two, "a list of 3: its last array changes no result"),
        (counting, "a list of 3: two calls: output 0"),
        (of_all, ""),
        (of_pairs, ""),
        (of_ends, ""),
        (lambda terms: terms[0] + 1, ""),  # the others may be for their number alone
    ],
)
def test_lists_of_arrays_of_other_lengths_are_tried(
    function: Callable[..., Any], said: str
) -> None:
    finding = check_one(of_lists(function), "sizes", [X, 2 * X])
    assert finding.verdict == ("failed" if said else "passed"), finding
    assert not said or finding.details[0].startswith(said), finding


@pytest.mark.parametrize(
    ("slope", "verdict"),
    [(lambda count: 1 / count, "failed"), (lambda count: 0.5, "passed")],
)
def test_a_gradient_is_compared_for_longer_lists_of_arrays(
    slope: Callable[[int], float], verdict: str
) -> None:
    op = of_lists(of_all, lambda terms, out, dout: ([dout * slope(len(terms))] * len(terms),))
    finding = check_one(op, "gradient", [X, 2 * X])
    assert finding.verdict == verdict, finding
    if verdict == "failed":
        assert finding.details[0].startswith("a list of 3: "), finding
