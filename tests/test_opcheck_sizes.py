"""`opcheck` gives inputs other sizes and ranks: one alone, and whole repetitions."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_opcheck import check_one

from msops import cpp, pyfunc, source

X = np.array([0.5, -1.5, 2.0, 4.0, 2.0, -2.0], np.float32)

SCALE = """
#include "custom_aot_extra.h"
#include <string>
extern "C" int Scale(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                     void *stream, void *extra) {
  const int rank = ndims[0];
  if (nparam != 3 || rank < 2 || ndims[1] != 1 || shapes[1][0] != shapes[0][rank - 1]) return 1;
  if (std::string(dtypes[0]) != "float32" || std::string(dtypes[1]) != "float32") return 2;
  int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= shapes[0][i];
  const float *x = static_cast<const float *>(params[0]);
  const float *w = static_cast<const float *>(params[1]);
  for (int64_t i = 0; i < n; ++i)
    static_cast<float *>(params[2])[i] = x[i] * w[i % shapes[0][AXIS]];
  return 0;
}
"""


@pytest.mark.parametrize(("axis", "verdict"), [("1", "failed"), ("rank - 1", "passed")])
def test_one_input_has_an_axis_more(axis: str, verdict: str) -> None:
    op = cpp(source(SCALE.replace("AXIS", axis), "Scale"), out=lambda x, w: x)
    finding = check_one(op, "sizes", X.reshape(2, 3), X[:3])
    assert finding.verdict == verdict, finding
    assert verdict == "passed" or "others as they are" in finding.details[0]


def flat(array: Any) -> Any:
    return array.reshape(-1, array.shape[-1])


@pytest.mark.parametrize(
    ("of_weights", "verdict"),
    [
        (lambda x, dout: x.T @ dout, "failed"),
        (lambda x, dout: flat(x).T @ flat(dout), "passed"),
    ],
)
def test_a_gradient_is_compared_where_one_input_has_an_axis_more(
    of_weights: Callable[[Any, Any], Any], verdict: str
) -> None:
    def out(x: Any, w: Any) -> Any:
        if len(x.shape) < 2 or len(w.shape) != 2 or x.shape[-1] != w.shape[0]:
            raise ValueError("expected rows and a matrix")
        return jax.ShapeDtypeStruct((*x.shape[:-1], w.shape[1]), x.dtype)

    op = pyfunc(
        lambda x, w: x @ w,
        out=out,
        bprop=lambda x, w, out, dout: (dout @ w.T, of_weights(x, dout)),
    )
    finding = check_one(op, "gradient", np.outer(X[:4], X[:3]), np.outer(X[:3], X[:2]))
    assert finding.verdict == verdict, finding
    assert verdict == "passed" or "of input 0 alone" in finding.details[0]


def shares(x: np.ndarray, dtype: Any) -> np.ndarray:
    below = np.searchsorted(np.sort(x), x, side="right").astype(dtype)
    return (below / max(x.size, 1)).astype(np.float32)


def mean(x: np.ndarray, dtype: Any) -> np.ndarray:
    return np.asarray(x.sum() / dtype(max(x.size, 1) % (1 << 8 * np.dtype(dtype).itemsize)))


def reversed_by(x: np.ndarray, dtype: Any) -> np.ndarray:
    return x[np.arange(x.size - 1, -1, -1).astype(dtype)]


def as_softmax(x: np.ndarray, dtype: Any) -> np.ndarray:
    powers = np.exp(x)
    return (powers / powers.sum()).astype(x.dtype)


def quantile(x: np.ndarray, dtype: Any) -> np.ndarray:
    return np.quantile(x, 0.3) if x.size else np.zeros(())


@pytest.mark.parametrize(
    ("function", "dtype", "verdict"),
    [
        (shares, np.int8, "failed"),
        (shares, np.int64, "passed"),
        (mean, np.uint16, "failed"),
        (mean, np.uint64, "passed"),
        (reversed_by, np.int16, "failed"),
        (reversed_by, np.int32, "passed"),
        (as_softmax, None, "passed"),
        (quantile, None, "passed"),
        (lambda x, dtype: np.sort(x), None, "passed"),
        (lambda x, dtype: np.cumsum(x, dtype=x.dtype), None, "passed"),
        (lambda x, dtype: np.linalg.norm(x), None, "passed"),
        (lambda x, dtype: np.std(x, ddof=1) if x.size > 1 else np.zeros(()), None, "passed"),
    ],
)
def test_inputs_are_repeated_whole(function: Callable[..., Any], dtype: Any, verdict: str) -> None:
    def out(x: Any) -> Any:
        if len(x.shape) != 1 or x.dtype != jnp.float32:
            raise TypeError("expected a vector of float32")
        return jax.ShapeDtypeStruct(() if is_scalar else x.shape, x.dtype)

    is_scalar = np.ndim(function(X, dtype)) == 0
    op = pyfunc(lambda x: np.asarray(function(x, dtype), x.dtype), out=out)
    finding = check_one(op, "sizes", X)
    assert finding.verdict == verdict, finding
    assert verdict == "passed" or "times is not as that of a few times" in finding.details[0]


def places(steps: int) -> Callable[..., Any]:
    def search(grid: np.ndarray, values: np.ndarray) -> np.ndarray:
        low, high = np.zeros(values.shape, np.int32), np.full(values.shape, grid.size, np.int32)
        for _ in range(steps if grid.size else 0):
            middle = (low + high) // 2
            is_below = (low < high) & (grid[np.minimum(middle, grid.size - 1)] < values)
            low, high = np.where(is_below, middle + 1, low), np.where(is_below, high, middle)
        return low

    return search


def peaks(bits: int) -> Callable[..., Any]:
    def keep(at: np.ndarray, score: np.ndarray) -> np.ndarray:
        order = np.arange(at.size)
        is_below = (score[:, None] < score) | ((score[:, None] == score) & (order[:, None] > order))
        gone = np.zeros(max(at.size, bits), bool)
        for place, near in enumerate((np.abs(at[:, None] - at) < 1) & is_below):
            gone[place % bits] |= near.any()
        return 1 - gone[order % bits].astype(np.int32)

    return keep


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (places(6), "failed"),
        (places(32), "passed"),
        (peaks(64), "failed"),
        (peaks(1 << 12), "passed"),
    ],
)
def test_numbers_that_rise_stay_in_order_and_copies_lie_apart(
    function: Callable[..., Any], verdict: str
) -> None:
    def out(x: Any, y: Any) -> Any:
        if len(x.shape) != 1 or len(y.shape) != 1:
            raise ValueError("expected vectors")
        if is_of_points and not x.shape == y.shape < (2000,):
            raise ValueError("expected two vectors that are as long, and not too long")
        return jax.ShapeDtypeStruct(y.shape, jnp.int32)

    x, y = np.float32([-1, 0, 0.5, 2, 4]), np.float32([0.25, -3, 4, 9])
    is_of_points = function.__name__ == "keep"
    finding = check_one(pyfunc(function, out=out), "sizes", x, x[::-1] if is_of_points else y)
    assert finding.verdict == verdict, finding
    assert verdict == "passed" or "is not as that of a few times" in finding.details[0]


def between(x: np.ndarray, y: np.ndarray, t: np.ndarray) -> np.ndarray:
    return x + t * (y - x)


def of_some(size: int, mapped: Any, x: Any, y: Any, t: Any) -> Any:
    return x + (t[:, None] if mapped[2] else t) * (y - x), True


def of_several(size: int, mapped: Any, x: Any, y: Any, t: Any) -> Any:
    return jnp.squeeze(of_some(size, mapped, x, y, t)[0]), True


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [(of_some, "passed"), (of_several, "failed")],
)
def test_a_rule_of_vmap_is_given_a_batch_of_1(rule: Any, verdict: str) -> None:
    op = pyfunc(between, out=lambda x, y, t: x)
    op.def_vmap(rule)
    finding = check_one(op, "vmap", X, 2 * X, np.float32(0.25))
    assert finding.verdict == verdict, finding


def first_axis(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.max(x, axis=0))


def kept_peaks(at: np.ndarray, score: np.ndarray) -> np.ndarray:
    keep = np.ones(at.shape, np.int32)
    for n in np.argsort(-score, kind="stable"):
        if keep[n]:
            keep[(np.abs(at - at[n]) < 1) & (np.arange(at.size) != n)] = 0
    return keep


def rows_or_zeros(table: np.ndarray, ids: np.ndarray) -> np.ndarray:
    known = (ids >= 0) & (ids < len(table))
    return np.where(known[..., None], table[np.where(known, ids, 0)], 0)


def means_of_windows(x: np.ndarray) -> np.ndarray:
    return np.lib.stride_tricks.sliding_window_view(x, 3)[::2].mean(-1, dtype=x.dtype)


ROWS = np.outer(X[:5], X[:4])
PEAKS = (np.float32([0, 0.4, 2, 2.9, 5]), np.float32([0.9, 0.8, 0.3, 0.7, 0.1]))
IDS = (np.outer(X[:6], X[:4]), np.int32([[0, 3, 5], [3, 8, 1]]))


@pytest.mark.parametrize(
    ("function", "inputs", "out"),
    [
        (first_axis, (ROWS,), lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype)),
        (kept_peaks, PEAKS, lambda at, score: jax.ShapeDtypeStruct(at.shape, jnp.int32)),
        (
            rows_or_zeros,
            IDS,
            lambda table, ids: jax.ShapeDtypeStruct((*ids.shape, *table.shape[1:]), table.dtype),
        ),
        (
            means_of_windows,
            (np.float32([1, 2, 4, -1, 0.5, 3, 8]),),
            lambda x: jax.ShapeDtypeStruct(((x.shape[0] - 1) // 2,), x.dtype),
        ),
    ],
    ids=["reduced first axis", "equal numbers", "index of longer axes", "as many results"],
)
def test_what_holds_for_the_size_given_alone_is_no_rule(
    function: Callable[..., Any], inputs: tuple[np.ndarray, ...], out: Callable[..., Any]
) -> None:
    def shapes(*arrays: Any) -> Any:
        least = 3 if function is means_of_windows else 1
        if any(
            a.dtype != i.dtype or not a.shape or a.shape[0] < least
            for a, i in zip(arrays, inputs, strict=True)
        ):
            raise TypeError("expected arrays as those given")
        if function in (kept_peaks, means_of_windows) and {len(a.shape) for a in arrays} != {1}:
            raise TypeError("expected vectors")
        if function is kept_peaks and arrays[0].shape != arrays[1].shape:
            raise TypeError("expected vectors of one length")
        return out(*arrays)

    finding = check_one(pyfunc(function, out=shapes), "sizes", *inputs)
    assert finding.verdict == "passed", finding


def swapped(x: np.ndarray) -> np.ndarray:
    y, half = np.zeros_like(x), len(x) // 2
    y[:half], y[len(x) - half :] = -x[::-1][:half], -x[::-1][len(x) - half :]
    return y


def swapped_with_the_middle(x: np.ndarray) -> np.ndarray:
    return -x[::-1]


def odd_part(x: np.ndarray) -> np.ndarray:  # the middle is a number less itself
    return x - x[::-1]


@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (swapped, "failed"),
        (swapped_with_the_middle, "passed"),
        (odd_part, "passed"),
    ],
)
def test_an_element_that_is_0_at_some_sizes_is_found(
    function: Callable[..., Any], verdict: str
) -> None:
    def out(x: Any) -> Any:
        if len(x.shape) != 1:
            raise ValueError("expected a vector")
        return x

    finding = check_one(pyfunc(function, out=out), "sizes", X)
    assert finding.verdict == verdict, finding
    assert verdict == "passed" or "whatever the inputs are" in finding.details[0], finding


def without_its_line(x: np.ndarray, is_lone: bool) -> np.ndarray:
    t = np.arange(len(x), dtype=x.dtype) - x.dtype.type((len(x) - 1) / 2)
    squares = (t * t).sum()
    slope = (t * x).sum() / (squares if squares or is_lone else 1)
    return x - x.mean() - slope * t


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("function", "verdict"),
    [
        (lambda x: without_its_line(x, True), "failed"),
        (lambda x: without_its_line(x, False), "passed"),
        (lambda x: (x - x.mean()) / x.std(), "passed"),  # of one number, that is none
    ],
)
def test_a_linear_function_of_one_number_is_a_number(
    function: Callable[..., Any], verdict: str
) -> None:
    def out(x: Any) -> Any:
        if len(x.shape) != 1:
            raise ValueError("expected a vector")
        return x

    finding = check_one(pyfunc(function, out=out), "sizes", X)
    assert finding.verdict == verdict, finding
    assert verdict == "passed" or finding.details[0].startswith("all 1: output 0: "), finding


LARGE_WORKSPACE = """
#include "custom_aot_extra.h"
extern "C" int LargeInit(int *ndims, int64_t **shapes, const char **dtypes, AotExtra *extra) {
  const size_t n = ndims[0] == 1 ? shapes[0][0] : 1;
  extra->SetWorkSpace({n > 100000 ? n * n * EACH : 8});
  return 0;
}
extern "C" int Large(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                     void *stream, void *extra) {
  if (ndims[0] != 1) return 1;
  for (int64_t i = 0; i < shapes[0][0]; ++i)
    static_cast<float *>(params[1])[i] = static_cast<float *>(params[0])[i];
  return 0;
}
"""


@pytest.mark.skipif(
    Path("/proc/sys/vm/overcommit_memory").read_text().strip() == "1",
    reason="the system promises memory that it does not have",
)
@pytest.mark.parametrize(("each", "verdict"), [("64", "passed"), ("(size_t(1) << 24)", "failed")])
def test_a_workspace_too_large_for_the_machine_is_no_fault(each: str, verdict: str) -> None:
    op = cpp(source(LARGE_WORKSPACE.replace("EACH", each), "Large"), out=lambda x: x)
    finding = check_one(op, "sizes", X)
    assert finding.verdict == verdict, finding
    assert verdict == "passed" or "196609: exited with status 1" in finding.details[0]


def test_the_streams_of_the_process_are_put_back() -> None:
    """A report that a function sends elsewhere would never be seen."""

    def silenced(x: np.ndarray) -> np.ndarray:
        sys.stdout = io.StringIO()
        return x + 1

    streams = sys.stdout, sys.stderr
    finding = check_one(pyfunc(silenced, out=lambda x: x), "sizes", X)
    assert (sys.stdout, sys.stderr) == streams
    assert finding.verdict == "failed", finding
    assert "sys.stdout" in "".join(finding.details), finding
