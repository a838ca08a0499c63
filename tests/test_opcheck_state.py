"""`opcheck` looks for what calls keep: for each other, at once, and for good."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from test_opcheck import check_one

from msops import cpp, pyfunc, source
from msops.testing import opcheck

X = np.array([0.5, 1.5, 2.0, 1.0, 3.0], np.float32)
HEAD = """
#include "custom_aot_extra.h"
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>
STATE
extern "C" int Taper(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                     void *stream, void *extra) {
  if (nparam != 2 || std::string(dtypes[0]) != "float32" || ndims[0] != RANK) return 1;
  const int64_t n = shapes[0][0], m = ndims[0] > 1 ? shapes[0][1] : 1;
  const float *x = static_cast<const float *>(params[0]);
  float *y = static_cast<float *>(params[1]);
  BODY
  return 0;
}
"""


def taper(state: str, body: str, rank: int = 1) -> Any:
    text = HEAD.replace("STATE", state).replace("BODY", body).replace("RANK", str(rank))
    return cpp(source(text, "Taper"), out=lambda x: x)


ONE_TABLE = """
  if (static_cast<int64_t>(table.size()) != n) {
    table.assign(n, 0);
    for (int64_t i = 0; i < n; ++i) table[i] = std::cos(6.0f * i / n);
  }
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * table[i];
"""


@pytest.mark.parametrize(("where", "verdict"), [("static", "failed"), ("thread_local", "passed")])
def test_threads_have_inputs_of_unlike_sizes(where: str, verdict: str) -> None:
    op = taper(f"{where} std::vector<float> table;", ONE_TABLE)
    # On a busy machine the threads may take turns, and meet in none of their calls.
    x = np.linspace(1, 2, 64, dtype=np.float32)
    verdicts = {check_one(op, "two threads", x).verdict for _ in range(3)}
    assert verdicts <= {"passed", "failed"}
    assert ("failed" in verdicts) == (verdict == "failed")


TABLES = """
  static std::mutex guard;
  static std::map<KEY, std::vector<float>> tables;
  std::lock_guard<std::mutex> lock(guard);
  std::vector<float> &table = tables[OF];
  for (int64_t i = table.size() / m; i < n; ++i)
    for (int64_t j = 0; j < m; ++j) table.push_back(std::sin(i / std::pow(100.0f, float(j) / n)));
  for (int64_t i = 0; i < n * m; ++i) y[i] = x[i] + table[i];
"""


@pytest.mark.parametrize(
    ("key", "of", "verdict"),
    [("int64_t", "m", "failed"), ("std::pair<int64_t, int64_t>", "{n, m}", "passed")],
)
def test_sizes_are_tried_in_another_order(key: str, of: str, verdict: str) -> None:
    body = "if (n * m == 0) return 0;" + TABLES.replace("KEY", key).replace("OF", of)
    finding = check_one(taper("", body, 2), "sizes", np.outer(X, X[:4]))
    assert finding.verdict == verdict, finding
    assert verdict == "passed" or "after other sizes" in finding.details[0]


def with_window(key: Callable[..., Any]) -> Any:
    windows: dict[Any, Any] = {}

    def windowed(x: np.ndarray, *, sigma: float = 2.0) -> np.ndarray:
        n = x.shape[-1]
        if key(n, sigma) not in windows:
            windows[key(n, sigma)] = np.exp(-0.5 * (np.arange(n) / sigma) ** 2)
        return (x * windows[key(n, sigma)]).astype(x.dtype)

    def out(x: Any, sigma: float = 2.0) -> Any:
        if not (x.shape and sigma > 0):
            raise ValueError("expected an axis, and a positive sigma")
        return x

    return pyfunc(windowed, out=out)


def with_angles(cached: Callable[[Callable[[float], float]], Any]) -> Any:
    angle = cached(lambda number: math.atan2(number, -1.0))
    return pyfunc(
        lambda x: np.array([angle(float(v)) for v in x.ravel()], x.dtype).reshape(x.shape),
        out=lambda x: x,
    )


@pytest.mark.parametrize(
    ("op", "said"),
    [
        (with_window(lambda n, sigma: n), "sigma="),
        (with_window(lambda n, sigma: (n, sigma)), ""),
        (with_angles(lru_cache(64)), "-0: "),
        (with_angles(lambda function: function), ""),
    ],
    ids=["by size alone", "by size and width", "0 for -0", "nothing"],
)
def test_calls_are_made_in_both_orders_in_a_fresh_process(op: Any, said: str) -> None:
    finding = check_one(op, "repeatable", X)
    assert finding.verdict == ("failed" if said else "passed"), finding
    assert any(line.startswith(said) for line in finding.details) or not said, finding


def test_a_call_before_does_not_hide_what_calls_keep() -> None:
    op = with_window(lambda n, sigma: n)
    op(X)
    finding = check_one(op, "repeatable", X)
    assert finding.verdict == "failed", finding
    assert all("another size" in line for line in finding.details), finding


def test_an_op_of_which_nothing_is_inferred_is_a_line_of_the_report() -> None:
    def fails(x: Any) -> Any:
        raise ValueError("nothing is known")

    report = opcheck(pyfunc(lambda x: x, out=fails), X)
    assert [finding.check for finding in report.failures] == ["shapes and dtypes"], report


def test_a_function_that_waits_for_another_thread_is_no_fault() -> None:
    asked, answered = threading.Event(), threading.Event()

    def answer() -> None:
        while asked.wait():
            asked.clear()
            answered.set()

    threading.Thread(target=answer, daemon=True).start()

    def waits(x: np.ndarray) -> np.ndarray:
        asked.set()
        answered.wait()
        return x + 1

    report = opcheck(pyfunc(waits, out=lambda x: x), X)
    assert report["repeatable"].verdict == "passed", report


@pytest.mark.parametrize(("is_local", "verdict"), [(False, "failed"), (True, "passed")])
def test_a_function_on_threads_at_once_is_found(is_local: bool, verdict: str) -> None:
    held: Any = threading.local() if is_local else type("Held", (), {})()

    def root_of_exp(x: np.ndarray) -> np.ndarray:
        if getattr(held, "buffer", None) is None or held.buffer.shape != x.shape:
            held.buffer = np.empty_like(x)
        buffer = held.buffer
        np.exp(x, out=buffer)
        np.sqrt(buffer, out=buffer)
        return buffer.copy()

    x = np.linspace(0, 1, 2000, dtype=np.float32)
    op = pyfunc(root_of_exp, out=lambda x: x)
    verdicts = {check_one(op, "eager and jit", x).verdict for _ in range(3)}
    assert ("failed" in verdicts) == (verdict == "failed"), verdicts


@pytest.mark.parametrize(("most", "verdict"), [(1 << 20, "failed"), (1000, "passed")])
def test_memory_for_each_input_is_found(most: int, verdict: str) -> None:
    known: dict[bytes, np.ndarray] = {}

    def sort(x: np.ndarray) -> np.ndarray:
        if len(known) >= most:
            known.clear()
        return known.setdefault(x.tobytes(), np.sort(x, axis=None)).reshape(x.shape).copy()

    # What another thread frees meanwhile counts, too.
    op = pyfunc(sort, out=lambda x: x)
    found = [line for _ in range(3) for line in check_one(op, "many calls", X).details]
    assert any("each with other numbers" in line for line in found) == (verdict == "failed"), found
