"""`opcheck`'s gradient check tries numbers, sizes, ranks and attributes that it was not given."""

from __future__ import annotations

import locale
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import aot, first
from quick_cases import one_in
from test_opcheck import check_one

from msops import Custom, cpp, pyfunc, source
from msops.testing import Finding

X = np.linspace(1, 2, 4, dtype=np.float32)
POWER = """
#include "custom_aot_extra.h"
#include <cmath>
extern "C" int Power(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                     void *stream, void *extra) {
  if (nparam != 2 || std::string(dtypes[0]) != "float32") return 1;
  int64_t size = 1;
  for (int i = 0; i < ndims[0]; ++i) size *= shapes[0][i];
  const double p = static_cast<double>(static_cast<AotExtra *>(extra)->Attr<int64_t>("p"));
  ONLY
  for (int64_t i = 0; i < size; ++i)
    static_cast<float *>(params[1])[i] = std::pow(static_cast<const float *>(params[0])[i], p);
  return 0;
}
"""


def gradient_of(op: Custom, *args: Any) -> Finding:
    return check_one(op, "gradient", *args)


def cube(rule: Any) -> Custom:
    """Returns x**3 with a rule for d/dx."""
    return Custom(lambda x: x**3, first, first, bprop=lambda x, out, dout: (rule(x) * dout,))


WRONG = {
    "negative": lambda x: 3 * x * jnp.abs(x),
    "large": lambda x: 3 * jnp.minimum(x, 30.0) ** 2,
    "very large": lambda x: 3 * jnp.minimum(x, 5000.0) ** 2,
    "small": lambda x: 3 * jnp.where((x > 0) & (x < 0.1), 0.1, x) ** 2,
    "zero": lambda x: 3 * x**3 / x,
    "size 1": lambda x: 3 * x**2 * (x.size != 1),
    "257 elements": lambda x: 3 * x**2 * (x.size < 65),
    "4 -> 8193": lambda x: 3 * x**2 * (x.size < 1000),
    "rank 1 -> 2": lambda x: 3 * x**2 * (x.ndim == 1),
    "rank 1 -> 0": lambda x: 3 * x**2 * (x.ndim > 0),
    "second order": lambda x: 3 * jax.lax.stop_gradient(x) * x,
}


@pytest.mark.parametrize("point", one_in(2, WRONG))
def test_a_gradient_that_is_wrong_elsewhere_is_found_there(point: str) -> None:
    finding = gradient_of(cube(WRONG[point]), X)
    assert finding.verdict == "failed", finding
    assert finding.details[0].startswith(f"{point}: input 0, "), finding


def test_a_rule_is_differentiated_by_its_cotangents() -> None:
    op = Custom(
        lambda x: x**3,
        first,
        first,
        bprop=lambda x, out, dout: (3 * x**2 * jax.lax.stop_gradient(dout),),
    )
    finding = gradient_of(op, X)
    assert finding.verdict == "failed", finding
    assert finding.details[0].startswith("second order: input 0, "), finding


@pytest.mark.parametrize(
    ("point", "rule"),
    [
        ("rank 1 -> 2: the rule", lambda x, dout: jnp.einsum("i,i->i", 2 * x, dout)),
        ("rank 1 -> 2: the rule", lambda x, dout: 2 * x * (dout if x.ndim == 1 else _filled(dout))),
    ],
    ids=["of one rank", "traced for one rank"],
)
def test_a_rule_that_fails_for_another_rank_is_found(point: str, rule: Any) -> None:
    op = Custom(np.square, first, first, bprop=lambda x, out, dout: (rule(x, dout),))
    finding = gradient_of(op, X)
    assert finding.verdict == "failed", finding
    assert any(line.startswith(point) for line in finding.details), finding


def _filled(array: Any) -> Any:
    return np.where(np.asarray(array) == 0, 0, array)


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("huge: input 0, ", lambda x, y, out: (x / jnp.sqrt(x * x + y * y), y / out)),
        ("", lambda x, y, out: (x / out, y / out)),
    ],
)
def test_a_gradient_that_overflows_is_found(name: str, rule: Any) -> None:
    def bprop(x: Any, y: Any, out: Any, dout: Any) -> Any:
        return tuple(dout * jnp.where(out == 0, 0, slope) for slope in rule(x, y, out))

    finding = gradient_of(Custom(np.hypot, first, first, bprop=bprop), X, 2 * X)
    assert finding.verdict == ("failed" if name else "passed"), finding
    assert not name or finding.details[0].startswith(name), finding


def of_columns(x: Any) -> Any:
    if len(x.shape) != 2 or not x.shape[0]:
        raise ValueError("expected a matrix with rows")
    return jax.ShapeDtypeStruct(x.shape[1:], x.dtype)


def test_a_gradient_that_is_right_for_squares_alone_is_found() -> None:
    op = pyfunc(
        lambda x: x.mean(0, dtype=x.dtype),
        out=of_columns,
        bprop=lambda x, out, dout: (jnp.broadcast_to(dout / x.shape[1], x.shape),),
    )
    finding = gradient_of(op, np.linspace(1, 2, 9, dtype=np.float32).reshape(3, 3))
    assert finding.verdict == "failed", finding
    assert finding.details[0].startswith("input 0 [4, 3]: input 0, "), finding


def test_a_right_gradient_passes_at_all_points() -> None:
    finding = gradient_of(cube(lambda x: 3 * x**2), X)
    assert finding.verdict == "passed", finding
    # Eight kinds of values, three of sizes, three of ranks.
    assert finding.summary.endswith("; 15 other points, second order")


def test_a_gradient_that_would_fill_memory_is_not_compared_for_many_elements() -> None:
    sizes = []

    def rule(x: Any, out: Any, dout: Any) -> Any:
        sizes.append(x.size)
        slopes = jnp.eye(x.size) * 2 * x.reshape(-1)
        return ((slopes @ dout.reshape(-1)).reshape(x.shape),)

    finding = gradient_of(Custom(np.square, first, first, bprop=rule), X)
    assert finding.verdict == "passed", finding
    assert finding.summary.endswith("; 13 other points, second order")  # and none is long
    assert max(sizes) > 8192


def power(only: str, slope: Any) -> Custom:
    return cpp(
        source(POWER.replace("ONLY", only), "Power"),
        out=lambda x: x,
        attrs={"p": 2},
        bprop=lambda x, p, out, dout: (slope(x, p) * dout, None),
    )


@pytest.mark.parametrize(
    ("only", "slope", "verdict"),
    [
        pytest.param("", lambda x, p: p * x ** (p - 1), "passed", marks=pytest.mark.slow),
        ("", lambda x, p: 2 * x, "failed"),
        # The kernel takes one value of its attribute, and refuses others.
        ("if (p != 2) return 3;", lambda x, p: 2 * x, "passed"),
    ],
)
def test_a_gradient_is_compared_for_other_values_of_attributes(
    only: str, slope: Any, verdict: str
) -> None:
    finding = gradient_of(power(only, slope), X)
    assert finding.verdict == verdict, finding
    if verdict == "failed":
        assert finding.details[0].startswith("p=3: input 0, float32[4]")


@pytest.mark.parametrize(
    ("is_above", "verdict"),
    [
        (lambda x, out: out > 0, "failed"),  # of a negative slope, they are those below
        (lambda x, out: x > 0, "passed"),
    ],
)
def test_a_gradient_is_compared_for_a_negative_attribute(is_above: Any, verdict: str) -> None:
    op = pyfunc(
        lambda x, slope: np.where(x > 0, x, slope * x).astype(x.dtype),
        out=lambda x, slope: x,
        attrs={"slope": 0.25},
        bprop=lambda x, slope, out, dout: (jnp.where(is_above(x, out), 1, slope) * dout,),
    )
    finding = gradient_of(op, X * np.float32([1, -1, 1, -1]))
    assert finding.verdict == verdict, finding
    if verdict == "failed":
        assert finding.details[0].startswith("slope=-1.25: input 0")


# What is not smooth, or has no gradient beyond some numbers, is no fault.
HARMLESS = {
    "log": (np.log, jnp.log),
    "sqrt": (np.sqrt, jnp.sqrt),
    "relu": (lambda x: np.maximum(x, 0), jax.nn.relu),
    "abs": (np.abs, jnp.abs),
    "sign": (np.sign, jnp.sign),
    "floor": (np.floor, jnp.floor),
    "short waves": (lambda x: np.sin(30 * x), lambda x: jnp.sin(30 * x)),
    "exp": (np.exp, jnp.exp),
    "arcsin": (lambda x: np.arcsin(x / 3), lambda x: jnp.arcsin(x / 3)),
    "a pole": (lambda x: 1 / x, lambda x: 1 / x),
    "sort": (np.sort, jnp.sort),
    "norm": (
        lambda x: x / np.sqrt((x * x).sum()).astype(x.dtype),
        lambda x: x / jnp.sqrt((x * x).sum()),
    ),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", one_in(8, HARMLESS))
@pytest.mark.parametrize("is_narrow", [False, True])
def test_kinks_poles_and_ends_of_a_domain_are_no_faults(name: str, is_narrow: bool) -> None:
    function, same = HARMLESS[name]

    def kernel(x: np.ndarray) -> np.ndarray:
        if is_narrow and x.dtype != np.float32:
            raise TypeError("expected float32")
        return function(x)

    op = Custom(kernel, first, first, bprop=lambda x, out, dout: jax.vjp(same, x)[1](dout))
    finding = gradient_of(op, X + np.float32(0.03))
    assert finding.verdict == "passed", finding


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (lambda x, out, dout: (2 * np.asarray(x) * dout,), "jit: TracerArrayConversionError: "),
        (lambda x, out, dout: (2 * x * dout if x[0] > 0 else dout,), "jit: TracerBoolConversion"),
    ],
    ids=["NumPy", "if"],
)
def test_a_rule_that_cannot_be_traced_is_found(rule: Any, said: str) -> None:
    finding = gradient_of(Custom(np.square, first, first, bprop=rule), X)
    assert finding.verdict == "failed", finding
    assert finding.details[0].startswith(said)


SLOPE = """
#include <clocale>
#include <cstdint>
#include <string>
extern "C" int Slope(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                     void *stream, void *extra) {
  SET
  int64_t size = 1;
  for (int i = 0; i < ndims[0]; ++i) size *= shapes[0][i];
  auto run = [&](auto kind) {
    using T = decltype(kind);
    auto **arrays = reinterpret_cast<T **>(params);
    for (int64_t i = 0; i < size; ++i) arrays[2][i] = 2 * arrays[0][i] * arrays[1][i];
  };
  if (std::string(dtypes[0]) != std::string(dtypes[1])) return 1;
  if (std::string(dtypes[0]) == "float64") return run(0.0), 0;
  return std::string(dtypes[0]) == "float32" ? (run(0.0f), 0) : 1;
}
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [('setlocale(LC_ALL, "C.UTF-8");', "the locale: "), ("", "")],
    ids=["set", "left"],
)
def test_a_kernel_of_a_rule_that_changes_the_process_is_found(line: str, said: str) -> None:
    before = locale.setlocale(locale.LC_ALL)
    slope = cpp(source(SLOPE.replace("SET", line), "Slope"), out=lambda x, dout: x)
    square = Custom(np.square, first, first, bprop=lambda x, out, dout: (slope(x, dout),))
    try:
        finding = gradient_of(square, X)
    finally:
        locale.setlocale(locale.LC_ALL, before)
    assert finding.verdict == ("failed" if said else "passed"), finding
    assert not said or finding.details[0].startswith(said), finding


def test_a_tail_that_ends_before_its_slope_is_no_fault() -> None:
    def kernel(x: np.ndarray) -> np.ndarray:
        of_each = [0.5 * value * (1 + math.erf(value / math.sqrt(2))) for value in x.flat]
        return np.asarray(of_each, x.dtype).reshape(x.shape)

    def rule(x: Any, out: Any, dout: Any) -> Any:
        return jax.vjp(lambda x: jax.nn.gelu(x, approximate=False), x)[1](dout)

    finding = gradient_of(Custom(kernel, first, first, bprop=rule), X * np.float32([1, 1, -1, 1]))
    assert finding.verdict == "passed", finding


def test_an_op_without_gradient_is_not_compared_elsewhere() -> None:
    assert gradient_of(aot("Multiply"), X, X).verdict == "skipped"


@pytest.mark.parametrize(("amplitude", "number"), [(0.5, 1), (0.25, 3), (0.25, 5), (-0.9, 3)])
def test_short_waves_on_a_slope_are_no_fault(amplitude: float, number: int) -> None:
    def out(x: Any) -> Any:
        if x.dtype != np.float32:
            raise TypeError("expected float32")
        return x

    op = pyfunc(
        lambda x: (x + amplitude * np.sin(number * x) / number).astype(x.dtype),
        out=out,
        bprop=lambda x, out, dout: (dout * (1 + amplitude * jnp.cos(number * x)),),
    )
    finding = check_one(op, "gradient", X + np.float32(0.03))
    assert finding.verdict == "passed", finding


def of_rows(x: Any, w: Any) -> Any:
    if (len(x.shape), len(w.shape)) != (2, 1):
        raise ValueError("expected rows, and a number for each")
    return x


@pytest.mark.parametrize(
    ("of_weights", "verdict"),
    [
        (lambda each, w: each[: w.shape[0]], "failed"),
        (lambda each, w: each.sum(keepdims=True) if w.shape[0] == 1 else each, "passed"),
        (lambda each, w: each, "passed"),  # NumPy takes one number, and nobody meant that
    ],
)
def test_a_gradient_is_compared_where_one_number_counts_for_many(
    of_weights: Callable[[Any, Any], Any], verdict: str
) -> None:
    op = pyfunc(
        lambda x, w: x * w[:, None],
        out=of_rows,
        bprop=lambda x, w, out, dout: (dout * w[:, None], of_weights((dout * x).sum(1), w)),
    )
    finding = check_one(op, "gradient", X.reshape(2, 2), X[:2])
    assert finding.verdict == verdict, finding
    assert verdict == "passed" or finding.details[0].startswith("input 1 [1]: "), finding
