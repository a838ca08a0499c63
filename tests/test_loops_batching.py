"""Kernels mapped over a leading axis: the text, and the results example by example."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from loop_ir import For, batched, interpret, kernel_text, mark_loops, parse_kernel, verify
from loop_strategies import Case, inputs_of, kernels
from random_examples import examples


def test_results_and_mapped_parameters_get_an_axis() -> None:
    kernel = parse_kernel(
        """kernel scaled(a: float32[4], w: float32[4]) -> (y) {
          buffer y: float32[4]
          serial i in 0 .. 4 {
            y[i] = a[i] * w[i]
          }
        }"""
    )
    expected = """kernel scaled(a: float32[8, 4], w: float32[4]) -> (y) {
  buffer y: float32[8, 4]
  parallel n in 0 .. 8 {
    serial i in 0 .. 4 {
      y[n, i] = a[n, i] * w[i]
    }
  }
}"""
    assert kernel_text(batched(kernel, 8, (True, False))) == expected


def test_temporaries_are_private_and_shared_parameters_written_are_copied() -> None:
    kernel = parse_kernel(
        """kernel shifted(a: float32[4], t: float32[4]) -> (y, a) {
          buffer y: float32[]
          buffer sum: float32[4]
          serial n in 1 .. 4 {
            t[n] = t[n - 1] + a[n]
            sum[n] = t[n]
            a[n] = sum[n]
          }
          y[] = sum[3]
        }"""
    )
    expected = """kernel shifted(a: float32[4], t: float32[2, 4]) -> (y, a_copy) {
  buffer a_copy: float32[2, 4]
  buffer y: float32[2]
  parallel n_1 in 0 .. 2 {
    local sum: float32[4] {
      parallel e in 0 .. 4 {
        a_copy[n_1, e] = a[e]
      }
      serial n in 1 .. 4 {
        t[n_1, n] = t[n_1, n - 1] + a_copy[n_1, n]
        sum[n] = t[n_1, n]
        a_copy[n_1, n] = sum[n]
      }
      y[n_1] = sum[3]
    }
  }
}"""
    assert kernel_text(batched(kernel, 2, (False, True))) == expected


def test_parameter_returned_as_it_is_becomes_a_batch() -> None:
    kernel = parse_kernel("kernel same(a: float32[3]) -> (a) { }")
    mapped = batched(kernel, 2, (False,))
    verify(mapped)
    (result,) = interpret(mapped, [np.arange(3, dtype="float32")])
    np.testing.assert_array_equal(result, np.tile(np.arange(3, dtype="float32"), (2, 1)))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(kernels(), st.data())
def test_every_example_is_what_the_kernel_computes(case: Case, data: st.DataObject) -> None:
    kernel = case.kernel
    size = data.draw(st.integers(1, 3))
    which = tuple(data.draw(st.booleans()) for _ in kernel.parameters)
    mapped = batched(kernel, size, which)
    verify(mapped)
    examples = [inputs_of(kernel, seed) for seed in range(size)]
    inputs = [
        np.stack([example[position] for example in examples]) if is_batched else shared
        for position, (is_batched, shared) in enumerate(zip(which, case.inputs, strict=True))
    ]
    results = interpret(mapped, inputs)
    for n, example in enumerate(examples):
        one = [e if is_batched else shared
               for is_batched, e, shared in zip(which, example, case.inputs, strict=True)]  # fmt: skip  # noqa: E501
        for result, expected in zip(results, interpret(kernel, one), strict=True):
            np.testing.assert_array_equal(result[n], expected)


def test_outer_loop_is_found_parallel_over_a_recurrence() -> None:
    kernel = parse_kernel(
        """kernel running(a: float32[9]) -> (a) {
          serial i in 1 .. 9 {
            a[i] = a[i - 1] * a[i]
          }
        }"""
    )
    (outer,) = mark_loops(batched(kernel, 4, (True,))).body
    assert isinstance(outer, For)
    assert outer.kind == "parallel"
    (inner,) = outer.body
    assert isinstance(inner, For)
    assert inner.kind == "serial"


def test_number_of_flags_must_be_that_of_parameters() -> None:
    kernel = parse_kernel("kernel same(a: float32[3]) -> (a) { }")
    with pytest.raises(ValueError, match="zip"):
        batched(kernel, 2, (True, True))
