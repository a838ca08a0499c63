"""A scalar keeps the value of an earlier iteration, as in Python; without one it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from four_ways import assert_slopes_agree, assert_values_agree, forms_of
from quick_cases import one_in

from msops.errors import BuildError

pytestmark = pytest.mark.usefixtures("as_users_compile")

# Names of the language.
# ruff: noqa: F821

# No two elements are equal, so that maxima have derivatives.
X = np.random.default_rng(0).permutation(24).reshape(4, 6).astype("float32") / 4 - 1.97


def running_max(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if j == 0:
                m = x[i, 0]
            elif x[i, j] > m:
                m = x[i, j]
            y[i, j] = m * m
    return y


def running_max_from_behind(x):
    y = output_tensor(x.shape, x.dtype)
    for i, j in grid(x.shape):
        k = x.shape[1] - 1 - j
        if k == x.shape[1] - 1:
            m = x[i, k]
        m = max(m, x[i, k])
        y[i, k] = m * x[i, j]
    return y


def over_all_rows(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i == 0 and j == 0:
                total = 1.0
            total = total * 0.5 + x[i, j] * x[i, j]
            y[i, j] = total
    return y


def by_a_flag(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        is_first = True
        for j in range(x.shape[1]):
            if is_first:
                m = x[i, j]
                is_first = False
            elif x[i, j] < m:
                m = x[i, j]
            y[i, j] = m * m
    return y


def in_a_while(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        j = 0
        while j < x.shape[1]:
            if j == 0:
                m = x[i, 0]
            elif x[i, j] > m:
                m = x[i, j]
            y[i, j] = m * m
            j += 1
    return y


def until_a_break(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if j == 0:
                m = x[i, 0]
            elif x[i, j] > m:
                m = x[i, j]
            if m > 2.6:
                break
            y[i, j] = m * m
    return y


def two_names(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if j == 0:
                last = 1.0
                before = 0.5
            y[i, j] = last * x[i, j] + before
            before = last
            last = x[i, j] * x[i, j]
    return y


def every_third(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if j % 3 == 0:
                base = x[i, j] * x[i, j]
            y[i, j] = base + x[i, j]
    return y


def same_condition(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 0.0:
                t = x[i, j] * x[i, j]
            y[i, j] = t if x[i, j] > 0.0 and j > 2 else 0.0
            if x[i, j] > 0.0:
                y[i, j] += t
    return y


def larger(v, most):
    if v > most + 0.1:
        r = v * v
    elif v > 0.0:
        r = v
    else:
        r = most
    return r


def in_a_helper(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if j == 0:
                m = x[i, 0]
            m = larger(x[i, j], m) * 0.5
            y[i, j] = m
    return y


def in_another_copy(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in const_range(x.shape[1]):
            if j == 0:
                m = x[i, 0]
            elif x[i, j] > m:
                m = x[i, j]
            y[i, j] = m * m
    return y


def in_copies_of_a_loop(x):
    y = output_tensor(x.shape, x.dtype)
    for i in const_range(x.shape[0]):
        for j in range(x.shape[1]):
            if i == 0 and j == 0:
                total = 1.0
            total = total * 0.5 + x[i, j] * x[i, j]
            y[i, j] = total
    return y


def by_a_counter(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        count = 0
        for j in range(x.shape[1]):
            if x[i, j] > 0.0:
                last = x[i, j]
                count += 1
            if count > 0:
                y[i, j] = last * x[i, j]
    return y


def by_a_state(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        state = 0
        for j in range(x.shape[1]):
            if state == 0:
                if x[i, j] > 0.0:
                    start = x[i, j]
                    state = 1
            elif state == 1:
                y[i, j] = x[i, j] * start
                if x[i, j] < 0.0:
                    state = 2
            else:
                y[i, j] = start
                state = 0
    return y


def of_another_loop(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if i == 0 and j == 0:
                t = 1.0
            y[i, j] = t * x[i, j]
        t = x[i, 0] * x[i, 1]
    return y


def after_a_loop(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if j == 0:
                m = x[i, 0]
            elif x[i, j] > m:
                m = x[i, j]
        for j in range(x.shape[1]):
            y[i, j] = x[i, j] * m
    y[0, 0] += m
    return y


def after_loops_that_surely_run(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(i + 1):
            for k in range(max(j - 1, 0), x.shape[1], 2):
                t = x[i, j] * x[j, k]
        y[i, i] = t
    j = 0
    while j < 3:
        t = x[j, 1] * t
        last = t
        j += 1
    for i, k in grid((2, 3)):
        y[i, k] += last
    return y


def of_the_last_loop_that_ran(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(2):
        t = x[i, 0] * 2.0
    for i in range(int32(x[0, 0] > 10.0)):
        t = x[i, 1]
    t += 1.0
    for i in range(x.shape[0]):
        for j in range(int32(x[i, 0] > 0.0)):
            t = x[i, j] * 3.0
        y[i, 0] = t * t
    return y


def last_power(v):
    for k in range(1, 4):
        power = v * v if k == 2 else v
    return power * v


def after_a_loop_in_a_helper(x):
    y = output_tensor(x.shape, x.dtype)
    for i, j in grid(x.shape):
        y[i, j] = last_power(x[i, j])
    return y


def found_before_a_break(x):
    y = output_tensor(x.shape, x.dtype)
    found = False
    for i in range(x.shape[0]):
        if x[i, 0] > 0.2:
            at = i
            found = True
            break
    if found:
        y[0, 0] = x[at, 1] * x[at, 0]
    return y


KEPT = [
    running_max, running_max_from_behind, over_all_rows, by_a_flag, in_a_while, until_a_break,
    two_names, every_third, same_condition, in_a_helper, in_another_copy, in_copies_of_a_loop,
    by_a_counter, by_a_state, of_another_loop, after_a_loop, after_loops_that_surely_run,
    of_the_last_loop_that_ran, after_a_loop_in_a_helper, found_before_a_break,
]  # fmt: skip


@pytest.mark.parametrize("func", KEPT, ids=lambda func: func.__name__)
def test_all_forms_have_the_value_of_python(func: Callable[..., Any]) -> None:
    assert_values_agree(func, X)


@pytest.mark.parametrize("func", one_in(2, KEPT), ids=lambda func: func.__name__)
def test_gradients_are_those_of_python(func: Callable[..., Any]) -> None:
    assert_slopes_agree(func, X)


def on_one_branch(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            t = x[i] * 2.0
        y[i] = t
    return y


def without_a_loop(x):
    y = output_tensor((1,), x.dtype)
    if x[0] > 0.0:
        t = x[0]
    y[0] = t
    return y


def on_two_of_three_branches(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 1.0:
            t = 1.0
        elif x[i] < -1.0:
            t = -1.0
        y[i] = t * x[i]
    return y


def in_the_second_iteration(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i == 1:
            t = x[i]
        y[i] = t
    return y


def under_a_condition_that_changed(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            t = x[i]
        x[i] += 1.0
        if x[i] > 0.0:
            y[i] = t
    return y


def after_a_loop_that_may_be_empty(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(int32(x[i])):
            if i == 0:
                t = x[j]
            y[i] = t
    return y


def some(v):
    if v > 0.0:
        r = v
    return r + 0.0


def of_a_helper(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = some(x[i])
    return y


def updated(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            t = 0.0
        t += x[i]
        y[i] = t
    return y


def before_one_copy(x):
    y = output_tensor(x.shape, x.dtype)
    for i in const_range(3):
        if i == 1:
            t = x[i]
        y[i] = t
    return y


def if_first(v, is_first):
    if is_first:
        r = v
    return r + 0.0


def of_another_call(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = if_first(x[i], i == 0)
    return y


def after_a_loop_that_data_end(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(int32(x[0]) % 3):
        t = x[i]
    y[0] = t
    return y


def after_a_loop_over_nothing(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0] - 3):
        t = x[i]
    y[0] = t
    return y


def after_an_inner_loop_that_first_runs_not(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        for j in range(i):
            t = x[j]
        y[i] = t
    return y


def after_a_break(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if x[i] > 0.2:
            break
        t = x[i]
    y[0] = t
    return y


REFUSED = {
    on_one_branch: "y[i] = t",
    without_a_loop: "y[0] = t",
    on_two_of_three_branches: "y[i] = t * x[i]",
    in_the_second_iteration: "y[i] = t",
    under_a_condition_that_changed: "y[i] = t",
    after_a_loop_that_may_be_empty: "y[i] = t",
    of_a_helper: "return r + 0.0",
    updated: "t += x[i]",
    before_one_copy: "y[i] = t",
    of_another_call: "return r + 0.0",
    after_a_loop_that_data_end: "y[0] = t",
    after_a_loop_over_nothing: "y[0] = t",
    after_an_inner_loop_that_first_runs_not: "y[i] = t",
    after_a_break: "y[0] = t",
}


@pytest.mark.parametrize("func", REFUSED, ids=lambda func: func.__name__)
def test_a_path_without_a_value_is_refused(func: Callable[..., Any]) -> None:
    for op in forms_of(func).values():
        with pytest.raises(BuildError, match="is assigned") as info:
            op(np.float32([1, -1, 3]))
        assert REFUSED[func] in str(info.value)


def names_a_loop_elsewhere(x):
    y = output_tensor(x.shape, x.dtype)
    for k in range(2):
        for i in range(x.shape[0]):
            if k == 0 and i == 0:
                t = 1.0
            y[i] = t
        for t in range(3):
            y[t] += 1.0
    return y


def test_a_kept_scalar_has_a_name_of_its_own() -> None:
    """Python's `t` is the last value of the loop's variable in the second iteration over k."""
    for op in forms_of(names_a_loop_elsewhere).values():
        with pytest.raises(BuildError, match="Use another name there"):
            op(np.float32([1, -1, 3]))
