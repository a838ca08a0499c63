"""`opcheck` draws numbers at which kernels go wrong: exact ones, fractions, zeros, large ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_opcheck import check_one

from msops import Custom, cpp, pyfunc, source
from msops.lang import float32, output_tensor
from msops.ops import CustomRegOp, DataType
from msops.testing import exponentials

X = np.array([0.1, 0.6, 0.3, 0.9, 0.45], np.float32)
HEAD = """
#include "custom_aot_extra.h"
#include <cmath>
#include <string>
#include <vector>
extern "C" int Kernel(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                      void *stream, void *extra) {
  if (nparam < 2 || std::string(dtypes[0]) != "DTYPE") return 1;
  int64_t n = 1;
  for (int i = 0; i < ndims[0]; ++i) n *= shapes[0][i];
  BODY
  return 0;
}
"""


def kernel(body: str, dtype: str = "float32", **options: Any) -> Any:
    text = HEAD.replace("BODY", body).replace("DTYPE", dtype)
    return cpp(source(text, "Kernel"), **({"out": lambda x, *_: x} | options))


HISTOGRAM = """
  auto *attributes = static_cast<AotExtra *>(extra);
  const int64_t bins = attributes->Attr<int64_t>("bins");
  const float high = attributes->Attr<float>("high");
  const float *x = static_cast<const float *>(params[0]);
  int32_t *y = static_cast<int32_t *>(params[1]);
  for (int64_t b = 0; b < bins; ++b) y[b] = 0;
  for (int64_t i = 0; i < n; ++i)
    if (x[i] >= 0 && x[i] < LIMIT) ++y[std::min(static_cast<int64_t>(x[i] / high * bins), LAST)];
"""


@pytest.mark.parametrize(("last", "verdict"), [("bins", "failed"), ("bins - 1", "passed")])
def test_a_number_equal_to_an_attribute_is_tried(last: str, verdict: str) -> None:
    def out(x: Any, bins: int, high: float) -> Any:
        if bins < 1:
            raise ValueError("expected bins")
        return jax.ShapeDtypeStruct((bins,), jnp.int32)

    op = kernel(
        "#define LIMIT high * 1.0001f\n#define LAST (" + last + ")\n" + HISTOGRAM,
        out=out,
        attrs={"bins": 4, "high": 3.0},
    )
    finding = check_one(op, "values", X)
    assert finding.verdict == verdict, finding
    if verdict == "failed":
        assert finding.details[0].startswith("numbers of attributes, and 1: "), finding


SCALE = """
  const KIND by = static_cast<AotExtra *>(extra)->Attr<float>("by");
  const float *x = static_cast<const float *>(params[0]);
  float *y = static_cast<float *>(params[1]);
  for (int64_t i = 0; i < n; ++i) y[i] = by * x[i] * x[i];
"""


@pytest.mark.parametrize(("kind", "verdict"), [("int", "failed"), ("float", "passed")])
def test_a_whole_attribute_of_floats_is_a_fraction_too(kind: str, verdict: str) -> None:
    op = kernel(
        SCALE.replace("KIND", kind),
        out=lambda x, by: x,
        attrs={"by": 2.0},
        bprop=lambda x, by, out, dout: (2 * by * x * dout,),
    )
    finding = check_one(op, "gradient", X)
    assert finding.verdict == verdict, finding
    if verdict == "failed":
        assert finding.details[0].startswith("by=1.25: "), finding


HALVE = """
  const INTEGER *x = static_cast<const INTEGER *>(params[0]);
  INTEGER *y = static_cast<INTEGER *>(params[1]);
  for (int64_t i = 0; i < n; ++i) y[i] = RESULT;
"""


@pytest.mark.parametrize(
    ("dtype", "result", "said"),
    [
        ("int32", "(int32_t)std::floor(x[i] * 0.5f)", "float32"),
        ("int64", "(int64_t)std::floor(x[i] * 0.5)", "float64"),
        ("int32", "x[i] >> 1", ""),
        ("int32", "x[i] / 256 * 256", ""),
        ("int32", "(int32_t)((uint32_t)x[i] << 9)", ""),
        ("int32", "x[i] < 65536 ? x[i] : 1 << 28", ""),
        ("int64", "(int64_t)std::floor(x[i] * 0.5L)", ""),
    ],
)
def test_large_integers_that_go_by_way_of_floats_are_found(
    dtype: str, result: str, said: str
) -> None:
    op = kernel(HALVE.replace("INTEGER", f"{dtype}_t").replace("RESULT", result), dtype)
    with jax.enable_x64(dtype == "int64"):
        finding = check_one(op, "values", np.array([5, -3, 2], dtype))
    assert finding.verdict == ("failed" if said else "passed"), finding
    assert not said or f"all results are those of {said}, rounded" in finding.details[0], finding


def eliminated(a: np.ndarray, b: np.ndarray, pivots: bool = False) -> np.ndarray:
    """Solves by elimination."""
    if a.ndim != 2 or a.shape[0] != a.shape[1] or b.shape != a.shape[:1]:
        raise ValueError("expected a square matrix")
    a, b = a.copy(), b.copy()
    for k in range(len(b)):
        if pivots:
            best = k + int(np.argmax(np.abs(a[k:, k])))
            a[[k, best]], b[[k, best]] = a[[best, k]], b[[best, k]]
        for i in range(k + 1, len(b)):
            factor = a[i, k] / a[k, k]
            a[i] -= factor * a[k]
            b[i] -= factor * b[k]
    for k in reversed(range(len(b))):
        b[k] = (b[k] - a[k, k + 1 :] @ b[k + 1 :]) / a[k, k]
    return b


MATRIX = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 5]], np.float32)


def with_pivots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return eliminated(a, b, True)


@pytest.mark.parametrize(("function", "verdict"), [(eliminated, "failed"), (with_pivots, "passed")])
def test_a_division_by_a_zero_that_is_nothing_special_is_found(
    function: Callable[..., Any], verdict: str
) -> None:
    op = pyfunc(function, out=lambda a, b: b)
    finding = check_one(op, "values", MATRIX, np.array([0.5, 3, 2], np.float32))
    assert finding.verdict == verdict, finding
    if verdict == "failed":
        assert finding.details[0].startswith("a leading 0 of input 0: output 0: "), finding


@pytest.mark.parametrize(
    "function",
    [
        np.reciprocal,
        np.log,
        lambda x: np.log(np.abs(x)),
        lambda x: np.log(np.abs(x)).sum(keepdims=True) + 0 * x,
        lambda x: x * np.log(x),
        lambda x: x / np.sqrt(x),
        np.sign,
        lambda x: x / np.abs(x),
        lambda x: x[::-1] / x,
        lambda x: np.abs(x) ** np.float32(-0.1),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_pole_and_the_end_of_a_domain_are_no_faults(function: Callable[..., Any]) -> None:
    finding = check_one(pyfunc(function, out=lambda x: x), "values", np.resize(X, 60))
    assert finding.verdict == "passed", finding


MIDPOINT = """
  const DTYPE *a = (const DTYPE *)params[0], *b = (const DTYPE *)params[1];
  for (int64_t i = 0; i < n; ++i) static_cast<DTYPE *>(params[2])[i] = FORMULA;
"""


def of_images(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ((a + b) / 2).astype(a.dtype)


def of_wide_images(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ((a.astype(np.float64) + b) / 2).astype(a.dtype)


def added(a: np.ndarray, b: np.ndarray) -> np.ndarray:  # a sum may be too large
    return a + b


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
@pytest.mark.parametrize(
    ("function", "verdict"),
    [(of_images, "failed"), (of_wide_images, "passed"), (added, "passed")],
)
def test_large_integers_are_those_of_a_wider_dtype(
    function: Callable[..., Any], verdict: str, dtype: Any
) -> None:
    finding = check_one(
        pyfunc(function, out=lambda a, b: a),
        "values",
        np.array([4, 6, 2], dtype),
        np.array([2, 8, 6], dtype),
    )
    assert finding.verdict == verdict, finding
    assert verdict == "passed" or finding.details[0].startswith("large integers: "), finding


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(initial=-np.inf))
    return powers / powers.sum()


def of_positive_numbers(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(initial=0))
    return powers / powers.sum()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (softmax, ""),
        (of_positive_numbers, "inputs about -106: "),
        (lambda x: np.exp(x) / np.exp(x).sum(), "inputs about 90: "),
        (lambda x: np.log(np.exp(x) + 1), "inputs about 90: "),
        (lambda x: np.logaddexp(x, np.zeros_like(x)), ""),
        (np.exp, ""),
        (lambda x: np.sqrt(100 - x), ""),  # there it ends, in float64 too
    ],
)
def test_numbers_without_an_exponential_are_tried(function: Callable[..., Any], said: str) -> None:
    finding = check_one(pyfunc(function, out=lambda x: x), "values", X)
    assert finding.verdict == ("failed" if said else "passed"), finding
    assert not said or finding.details[0].startswith(said), finding


def test_one_process_tries_numbers_of_all_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, results_of = [], exponentials.results_of
    monkeypatch.setattr(
        exponentials, "results_of", lambda *given: calls.append(given) or results_of(*given)
    )
    op = kernel("for (int64_t i = 0; i < n; ++i) ((float *)params[1])[i] = 0;", "float32")
    assert check_one(op, "values", X).verdict == "passed"
    assert len(calls) == 1


def rows_of(*dtypes: str) -> Any:
    info = CustomRegOp("Op").input(0, "a").input(1, "b").output(0, "y").target("CPU")
    for name in dtypes:
        info = info.dtype_format(*[getattr(DataType, f"{name}_Default")] * 3)
    return info.get_op_info()


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum(a, b) - np.minimum(a, b)


def lengths(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sqrt(a * a + b * b)


def lengths_in_float32(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.hypot(a.astype(np.float32), b.astype(np.float32)).astype(a.dtype)


def normalised(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a / np.sqrt(np.mean(a * a) + 1) + 0 * b


def brighter(a: np.ndarray, b: np.ndarray) -> np.ndarray:  # 1, or white
    return (a > b) * a.dtype.type(1 if a.dtype == np.float32 else 255)


def inverted(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.dtype.type(1 if a.dtype == np.float32 else 255) - a + 0 * b


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("function", "row", "said"),
    [
        (lambda a, b: np.abs(a - b), "U8", "small whole numbers as uint8: "),
        (distances, "U8", ""),
        (lambda a, b: (a + b) // 2, "U16", "large whole numbers as uint16: "),
        (lambda a, b: a - b, "U8", ""),  # a result may be no number of the dtype
        (brighter, "U8", ""),
        (inverted, "U8", ""),
        (lengths, "F16", "large whole numbers as float16: "),
        (lengths_in_float32, "F16", ""),
        (normalised, "F16", "large whole numbers as float16: "),
        (lambda a, b: normalised(a.astype("f4"), b).astype(a.dtype), "F16", ""),
    ],
)
def test_rows_of_narrow_dtypes_have_the_results_of_others(
    function: Callable[..., Any], row: str, said: str
) -> None:
    op = pyfunc(function, out=lambda a, b: a, reg_info=rows_of("F32", row))
    finding = check_one(op, "values", np.append(X, X), np.append(X, X)[::-1])
    assert finding.verdict == ("failed" if said else "passed"), finding
    assert not said or finding.details[0].startswith(said), finding


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("function", "verdict"), [(lengths, "failed"), (lengths_in_float32, "passed")]
)
def test_the_dtype_given_has_the_results_of_a_wider_row(
    function: Callable[..., Any], verdict: str
) -> None:
    op = pyfunc(function, out=lambda a, b: a, reg_info=rows_of("F16", "F32"))
    x = np.append(X, X).astype("float16")
    finding = check_one(op, "values", x, x[::-1])
    assert finding.verdict == verdict, finding


def squares_of_differences(a, b):
    y = output_tensor((a.shape[0] // 4,), "float32")
    for i in range(a.shape[0] // 4):
        y[i] = 0.0
        for j in range(4):
            difference = float32(a[4 * i + j] - b[4 * i + j])
            y[i] += difference * difference
    return y


def squares_of_differences_of_floats(a, b):
    y = output_tensor((a.shape[0] // 4,), "float32")
    for i in range(a.shape[0] // 4):
        y[i] = 0.0
        for j in range(4):
            difference = float32(a[4 * i + j]) - float32(b[4 * i + j])
            y[i] += difference * difference
    return y


@pytest.mark.parametrize(
    ("function", "verdict"),
    [(squares_of_differences, "failed"), (squares_of_differences_of_floats, "skipped")],
)
def test_loops_that_are_operations_of_xla_have_rows_too(
    function: Callable[..., Any], verdict: str
) -> None:
    info = CustomRegOp("Op").input(0, "a").input(1, "b").output(0, "y").target("CPU")
    for dtype in (DataType.F32_Default, DataType.U8_Default):
        info = info.dtype_format(dtype, dtype, DataType.F32_Default)
    op = Custom(function, func_type="akg", reg_info=info.get_op_info())
    x = np.arange(16, dtype="float32")
    finding = check_one(op, "values", x, x[::-1])
    assert finding.verdict == verdict, finding


@pytest.mark.parametrize(("dtype", "verdict"), [("int16_t", "failed"), ("int32_t", "passed")])
def test_numbers_that_wrap_on_the_way_are_found_in_each_row(dtype: str, verdict: str) -> None:
    body = """
      const int16_t *a = static_cast<const int16_t *>(params[0]);
      const int16_t *b = static_cast<const int16_t *>(params[1]);
      float *y = static_cast<float *>(params[2]);
      for (int64_t i = 0; i < n; ++i) {
        const DTYPE difference = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
        y[i] = difference;
      }
    """
    op = kernel(
        body.replace("DTYPE", dtype),
        "int16",
        out=lambda a, b: jax.ShapeDtypeStruct(a.shape, jnp.float32),
        reg_info=CustomRegOp("Op")
        .input(0, "a")
        .input(1, "b")
        .output(0, "y")
        .dtype_format(*[DataType.I16_Default] * 2, DataType.F32_Default)
        .target("CPU")
        .get_op_info(),
    )
    finding = check_one(op, "values", np.arange(6, dtype=np.int16), np.ones(6, np.int16))
    assert finding.verdict == verdict, finding
    assert verdict == "passed" or "-65536 off" in finding.details[0], finding
