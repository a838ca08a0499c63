"""`opcheck` gives an op other values of its attributes than those it was called with."""

from __future__ import annotations

import sys
from typing import Any

import jax
import numpy as np
import pytest
from test_opcheck import check_one

from msops import cpp, pyfunc, source
from msops.testing import Finding

X = np.linspace(1, 2, 4, dtype=np.float32)
KERNEL = """
#include "custom_aot_extra.h"
extern "C" int Kernel(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                      void *stream, void *extra) {
  if (nparam != 2 || std::string(dtypes[0]) != "float32") return 1;
  int64_t n = 1;
  for (int i = 0; i < ndims[0]; ++i) n *= shapes[0][i];
  const float *x = static_cast<const float *>(params[0]);
  float *y = static_cast<float *>(params[1]);
  const auto &attributes = *static_cast<AotExtra *>(extra);
  BODY
  return 0;
}
"""
SUM = """
  const bool exclusive = attributes.Attr<bool>("exclusive");
  float sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!exclusive) sum += x[i];
    if (FIRST) y[i] = sum;
    if (exclusive) sum += x[i];
  }
"""
SCALE = """
  const float by = attributes.Attr<float>("by");
  for (int64_t i = 0; i < n; ++i) y[i] = LAST ? 0 : by * x[i];
"""
PLACE = """
  const int64_t place = attributes.Attr<int64_t>("place");
  for (int64_t i = 0; i < n; ++i) y[i] = i == place ? 0 : x[i];
"""
BEFORE = """
  const int64_t by = attributes.Attr<int64_t>("by");
  for (int64_t i = 0; i < n; ++i) y[i] = i < 1 ? 0 : x[i - by];
"""
LAST_FEW = """
  const int64_t count = attributes.Attr<int64_t>("count");
  if (count < 1) return 3;
  float sum = 0;
  for (int64_t i = n - count; i < n; ++i) sum += x[i];
  for (int64_t i = 0; i < n; ++i) y[i] = sum;
"""


def values_of(op: Any) -> Finding:
    return check_one(op, "values", X)


def of_body(body: str, **attrs: Any) -> Finding:
    return values_of(
        cpp(source(KERNEL.replace("BODY", body), "Kernel"), out=lambda x: x, attrs=attrs)
    )


@pytest.mark.parametrize(
    ("body", "attrs", "said"),
    [
        (SUM.replace("FIRST", "i || !exclusive"), {"exclusive": False}, "exclusive=True: the inp"),
        (SCALE.replace("LAST", "by < 0 && i == n - 1"), {"by": 2.0}, "by=-3.0: larger odd: place"),
        (BEFORE, {"by": 1}, "by=2: SIGSEGV: read before input 0"),
    ],
)
def test_what_a_kernel_does_wrong_for_another_value_is_found(
    body: str, attrs: dict[str, Any], said: str
) -> None:
    finding = of_body(body, **attrs)
    assert finding.verdict == "failed", finding
    assert finding.details[0].startswith(said), finding


@pytest.mark.parametrize(
    ("body", "attrs"),
    [
        (SUM.replace("FIRST", "true"), {"exclusive": False}),
        (SCALE.replace("LAST", "false"), {"by": 2.0}),
        (PLACE, {"place": 0}),
        # It reads before its input for more than there are, which a larger array has.
        (LAST_FEW, {"count": 4}),
    ],
    ids=["a flag", "a factor", "a place", "a count"],
)
def test_what_a_value_means_is_no_fault(body: str, attrs: dict[str, Any]) -> None:
    finding = of_body(body, **attrs)
    assert finding.verdict == "passed", finding


def test_a_python_function_meets_other_values() -> None:
    calls = []

    def counts(x: np.ndarray, train: bool = False) -> np.ndarray:
        calls.append(train)
        return x + np.float32(train * len(calls))

    finding = values_of(pyfunc(counts, out=lambda x, train: x, attrs={"train": False}))
    assert finding.verdict == "failed", finding
    assert finding.details[0].startswith("train=True: the inputs given: two calls: output 0")


def test_a_batch_for_another_value_is_compared() -> None:
    def turned(x: np.ndarray, by: int = 1) -> np.ndarray:
        return np.roll(x, by, -1 if by == 1 else None) if x.ndim else x

    op = pyfunc(turned, out=lambda x, by: x, attrs={"by": 1}, vmap="expand_dims")
    finding = values_of(op)
    assert finding.verdict == "failed", finding
    assert finding.details[0].startswith("by=2: all inputs mapped")


def test_a_result_of_another_shape_than_out_says_for_another_value() -> None:
    op = pyfunc(
        lambda x, count=2: np.repeat(x, 2),
        out=lambda x, count: jax.ShapeDtypeStruct((x.size * count,), x.dtype),
        attrs={"count": 2},
    )
    finding = values_of(op)
    assert finding.verdict == "failed", finding


@pytest.mark.parametrize(("axis", "verdict"), [(1, "failed"), (-1, "passed")])
def test_a_rule_of_batches_is_compared_at_other_ranks(axis: int, verdict: str) -> None:
    def out(x: Any) -> Any:
        if not x.shape:
            raise ValueError("an axis is needed")
        return x

    op = pyfunc(lambda x: np.sort(x, axis=-1), out=out)
    op.def_vmap(lambda axis_size, in_batched, x: (jax.numpy.sort(x, axis=axis), True))
    finding = check_one(op, "vmap", X)
    assert finding.verdict == verdict, finding
    if verdict == "failed":
        assert finding.details[0].startswith("rank 1 -> 2: all inputs mapped: "), finding


def test_a_setting_of_jax_that_a_function_leaves_is_found() -> None:
    def wide(x: np.ndarray) -> np.ndarray:
        sys.modules.pop("colorsys", None)
        import colorsys  # noqa: F401 - what a module sets is no excuse

        jax.config.update("jax_enable_x64", True)
        return x + 1

    def wide_inside(x: np.ndarray) -> np.ndarray:
        with jax.enable_x64(True):
            return x + 1

    was_wide = jax.config.jax_enable_x64
    try:
        finding = check_one(pyfunc(wide, out=lambda x: x), "many calls", X)
    finally:
        jax.config.update("jax_enable_x64", was_wide)
    assert finding.verdict == "failed", finding
    assert finding.details[0].startswith("JAX's jax_enable_x64: "), finding
    assert check_one(pyfunc(wide_inside, out=lambda x: x), "many calls", X).verdict == "passed"


LAG = """
#include "custom_aot_extra.h"
#include <algorithm>
#include <cstring>
#include <string>
extern "C" int Lag(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                   void *stream, void *extra) {
  if (nparam != 2 || ndims[0] != 1 || std::string(dtypes[0]) != "float32") return 1;
  const int64_t n = shapes[0][0];
  const int64_t lag = std::clamp(static_cast<AotExtra *>(extra)->Attr<int64_t>("lag"), -n, n);
  const float *x = static_cast<const float *>(params[0]);
  float *y = static_cast<float *>(params[1]);
  if (lag < 0 && MOVES) {
    std::memmove(y - lag, x, (n + lag) * sizeof(float));
    std::fill(y, y - lag, 0.0f);
    return 0;
  }
  for (int64_t i = 0; i < n; ++i) y[i] = i + lag >= 0 && i + lag < n ? x[i + lag] : 0;
  return 0;
}
"""


@pytest.mark.parametrize(("moves", "verdict"), [("false", "failed"), ("true", "passed")])
def test_other_values_give_the_same_in_the_memory_of_an_input(moves: str, verdict: str) -> None:
    op = cpp(
        source(LAG.replace("MOVES", moves), "Lag"),
        out=lambda x, lag: x,
        attrs={"lag": 1},
        inplace={0: 0},
    )
    finding = check_one(op, "values", np.arange(1, 7, dtype=np.float32))
    assert finding.verdict == verdict, finding
    assert verdict == "passed" or finding.details[0].startswith(
        "lag=-1: in the memory of its input: "
    ), finding
