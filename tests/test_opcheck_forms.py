"""`opcheck` compares the two forms of a loop kernel."""
# Loop kernels use names that mean something only inside them.
# ruff: noqa: F821

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import loops, multiply
from quick_cases import one_in
from test_opcheck import check_one

from msops import Custom
from msops.testing import Finding, form_runs, forms

X = np.linspace(-1, 2, 15, dtype=np.float32).reshape(3, 5)


def matrix_times(a, x):
    y = output_tensor((a.shape[0],), a.dtype)
    for i in range(a.shape[0]):
        y[i] = 0.0
        for j in range(a.shape[1]):
            y[i] = y[i] + a[i, j] * x[j]
    return y


def running_sum(x):
    y = output_tensor(x.shape, x.dtype)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] + x[i]
    return y


def running_product(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] if i == 0 else y[i - 1] * x[i]
    return y


def largest(x):
    y = output_tensor((1,), x.dtype)
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[0] = max(y[0], x[i])
    return y


def forms_of(op: Custom, *args: Any) -> Finding:
    return check_one(op, "forms agree", *args)


@pytest.mark.parametrize(
    ("op", "args", "sizes"),
    one_in(
        2,
        [
            (loops(multiply), (X[0], X[1]), "5 elements, 5121 elements"),
            (loops(multiply, "native"), (np.ones(9000, np.float32),) * 2, "2250 elements, 9000"),
            (loops(matrix_times), (X, X[0]), "15 elements, 7683 elements"),
            (loops(running_sum), (X[0],), "5 elements, 5121 elements"),
            # Where it overflows depends on the order of its factors.
            (
                loops(running_product),
                (np.float32([0.5, 3, 2, 0.7]),),
                "4 elements, 4097 elements",
            ),
        ],
    ),
)
def test_both_forms_agree_on_both_sides_of_4096_elements(
    op: Custom, args: tuple[np.ndarray, ...], sizes: str
) -> None:
    finding = forms_of(op, *args)
    assert finding.verdict == "passed", finding
    assert sizes in finding.summary


def test_a_form_with_other_results_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A NaN that is lost above 4,096 elements, as XLA's maximum on a CPU loses it."""

    def losing(*flat: Any) -> Any:
        product = np.asarray(flat[0]) * np.asarray(flat[1])
        is_lost = np.isnan(product) & (len(product) > 4096)
        return [np.where(is_lost, np.float32(0), product)]

    monkeypatch.setattr(forms, "as_operations", lambda *of: losing)
    finding = forms_of(loops(multiply), X[0], np.ones(5, np.float32))
    assert finding.verdict == "failed", finding
    (line,) = finding.details
    assert line.startswith("5121 elements, NaN and infinities: C instead of XLA: output 0, float32")


def test_a_form_with_another_gradient_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of equal elements has all of the slope, where loops share it."""

    def of_one(*flat: Any) -> Any:
        return [flat[0][jnp.argmax(flat[0])].reshape(1)]

    op, x = loops(largest), np.linspace(-1, 2, 24, dtype=np.float32)
    assert forms_of(op, x).verdict == "passed"
    monkeypatch.setattr(form_runs, "as_operations", lambda *of: of_one)
    finding = forms_of(op, x)
    assert finding.verdict == "failed", finding
    begin = "24 elements, gradients of equal elements: {} instead of XLA: output 0, float32[24]: 2"
    for way, line in zip(("C", "adjoint loops as XLA"), finding.details, strict=False):
        assert line.startswith(begin.format(way)), line


def test_what_is_no_loops_has_one_form() -> None:
    finding = forms_of(Custom(np.square, lambda x: x, lambda x: x), X)
    assert (finding.verdict, finding.summary) == ("skipped", "the kernel is no loops")


def unit_sine(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = sin(x[i]) / x[i]
    return y


def unit_sine_at_zero(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = sin(x[i]) / x[i] if x[i] != 0 else 1.0
    return y


def shares_of_positive(x):
    y = output_tensor(x.shape, x.dtype)
    most = allocate((1,), x.dtype)
    total = allocate((1,), x.dtype)
    most[0] = 0.0
    total[0] = 0.0
    for i in range(x.shape[0]):
        most[0] = max(most[0], x[i])
    for i in range(x.shape[0]):
        total[0] = total[0] + exp(x[i] - most[0])
    for i in range(x.shape[0]):
        y[i] = exp(x[i] - most[0]) / total[0]
    return y


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (unit_sine, "a leading 0 of input 0: "),
        (unit_sine_at_zero, ""),
        (shares_of_positive, "inputs about -"),
    ],
)
def test_numbers_of_loops_are_tried_too(function: Any, said: str) -> None:
    finding = check_one(loops(function), "values", X[0] + np.float32(0.3))
    assert finding.verdict == ("failed" if said else "skipped"), finding
    assert not said or finding.details[0].startswith(said), finding
