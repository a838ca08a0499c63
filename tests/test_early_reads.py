"""A loop reads a scalar above its first assignment: it has the value of an earlier iteration."""

from __future__ import annotations

import collections
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from four_ways import assert_slopes_agree, assert_values_agree, forms_of
from kept_programs import program
from loop_ir import Spec, interpret
from loop_source import define, specialise
from quick_cases import one_in

from msops.errors import BuildError
from msops.ops import kernel

pytestmark = pytest.mark.usefixtures("as_users_compile")

# Names of the language, and those that are read above.
# ruff: noqa: F821, F841, SIM113

# No two elements are equal, so that maxima have derivatives.
X = np.random.default_rng(0).permutation(8).astype("float32") / 4 - 0.97


def differences(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0:
            y[i] = x[i] - prev
        prev = x[i]
    return y


def products(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] * prev if i != 0 else x[i]
        prev = x[i]
    return y


def second_differences(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i >= 2:
            y[i] = x[i] - 2 * last * last + before
        if i >= 1:
            before = last
        last = x[i]
    return y


def from_behind(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0] - 1, -1, -1):
        if i == x.shape[0] - 1:
            y[i] = 1.0
        else:
            y[i] = x[i] * after
        after = x[i]
    return y


def in_copies(x):
    y = output_tensor(x.shape, x.dtype)
    for i in const_range(x.shape[0]):
        if i > 0:
            y[i] = x[i] * prev
        prev = x[i]
    return y


def in_copies_of_a_loop(x):
    y = output_tensor(x.shape, x.dtype)
    for k in const_range(2):
        for i in range(x.shape[0]):
            y[i] = y[i] + prev * x[i] if k > 0 or i > 0 else 0.0
            prev = x[i] + k
    return y


def in_nested_loops(x):
    y = output_tensor((3, x.shape[0]), x.dtype)
    for k in range(3):
        for i in range(x.shape[0]):
            if k > 0 or i > 0:
                y[k, i] = x[i] * prev
            prev = x[i]
    return y


def of_an_inner_loop(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0:
            y[i] = x[i] * last
        for j in range(2):
            last = x[i] * x[j]
    return y


def of_a_loop_before(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        t = x[i] * 2
        y[i] = t
    for i in range(x.shape[0]):
        y[i] = y[i] * t
        t = x[i]
    return y


def updated(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0:
            total += x[i] * x[i]
        else:
            total = 1
        y[i] = total
    return y


def index(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0:
            y[i] = x[before] * x[i]
        before = i
    return y


def counted(x):
    y = output_tensor(x.shape, x.dtype)
    count = 0
    for i in range(x.shape[0]):
        if count > 0:
            y[i] = x[i] * last
        if x[i] > 0.0:
            last = x[i]
            count += 1
    return y


def best_so_far(x):
    y = output_tensor(x.shape, x.dtype)
    at = -1
    for i in range(x.shape[0]):
        if at >= 0 and x[i] < best:
            y[i] = (best - x[i]) * best
        else:
            best = x[i]
            at = i
    return y


def until_a_break(x):
    y = output_tensor(x.shape, x.dtype)
    i = 0
    while i < x.shape[0] and x[i] < 1.5:
        if i > 0:
            if prev > 0.6:
                break
            y[i] = x[i] * prev
        prev = x[i]
        i += 1
    return y


def one_after_the_other(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 1:
            y[i] = c * x[i]
        if i > 0:
            c = b * 2
        b = a + 1 if i > 0 else 0
        a = x[i]
    return y


def as_a_tuple(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0:
            y[i] = high * low * x[i]
        low, high = min(x[i], 0.3), max(x[i], 0.3)
    return y


def typed_by_another(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0:
            y[i] = exp(s * s)
        if i == 0:
            s = 1
        if i > 0:
            s = prev
        prev = x[i]
    return y


def smoothed(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        m = x[i] if i == 0 else m * 0.75 + x[i] * x[i]
        y[i] = m
    return y


def by_a_state(x):
    y = output_tensor(x.shape, x.dtype)
    state = 0
    for i in range(x.shape[0]):
        if state == 0:
            if x[i] > 0.5:
                state = 1
                start = x[i]
        elif state == 1:
            y[i] = start * x[i]
            if x[i] < -0.5:
                state = 2
                stop = x[i]
        else:
            y[i] = start * stop
            if x[i] > 0.0:
                state = 0
    return y


def weighted(v):
    s = 0.0
    for k in range(3):
        if k > 0:
            s += old * v
        old = v + float64(k)
    return s


def in_a_helper(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x.dtype.type(weighted(float64(x[i])))
    return y


EARLY = [
    differences, products, second_differences, from_behind, in_copies, in_copies_of_a_loop,
    in_nested_loops, of_an_inner_loop, of_a_loop_before, updated, index, counted, best_so_far,
    until_a_break, one_after_the_other, as_a_tuple, typed_by_another, smoothed, by_a_state,
    in_a_helper,
]  # fmt: skip


@pytest.mark.parametrize("func", EARLY, ids=lambda func: func.__name__)
def test_all_forms_have_the_value_of_python(func: Callable[..., Any]) -> None:
    assert_values_agree(func, X)


@pytest.mark.parametrize("func", one_in(3, EARLY), ids=lambda func: func.__name__)
def test_gradients_are_those_of_python(func: Callable[..., Any]) -> None:
    assert_slopes_agree(func, X)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint64"])
def test_the_scalar_has_the_type_of_what_it_is_assigned(dtype: str) -> None:
    assert_values_agree(products, np.array([3, 2, 7, 5], dtype))


def ups(x):
    y = output_tensor(x.shape, "int32")
    for i in range(x.shape[0]):
        if i > 0:
            y[i] = 1 if x[i] > 0.0 and not was else 0
        was = x[i] > 0.0
    return y


def test_a_bool_is_kept() -> None:
    assert_values_agree(ups, X)


def always(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = prev
        prev = x[i]
    return y


def one_too_early(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0:
            y[i] = before
        if i > 0:
            before = x[i]
    return y


def of_itself(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0:
            y[i] = count
        count = count + 1
    return y


def of_each_other(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0:
            y[i] = a
        a = b
        b = a
    return y


def after_a_loop_that_may_be_empty(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0:
            y[i] = t
        for j in range(i):
            t = x[j]
    return y


def in_the_first_copy(x):
    y = output_tensor(x.shape, x.dtype)
    for i in const_range(3):
        y[i] = prev
        prev = x[i]
    return y


def kept_in_a_call(v, i):
    w = r if i > 0 else v
    r = v
    return w


def of_an_earlier_call(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = kept_in_a_call(x[i], i)
    return y


def counted_without_a_value(x):
    y = output_tensor(x.shape, x.dtype)
    count = 0
    for i in range(x.shape[0]):
        if count > 0:
            y[i] = last
        if x[i] > 0.0:
            last = x[i]
        count += 1
    return y


def marked_later(x):
    y = output_tensor(x.shape, x.dtype)
    seen = False
    for i in range(x.shape[0]):
        if seen:
            y[i] = last
        if x[i] > 0.0:
            last = x[i]
            seen = True
        if i > 4:
            seen = True
    return y


REFUSED = {
    always: "y[i] = prev",
    one_too_early: "y[i] = before",
    of_itself: "y[i] = count",
    of_each_other: "y[i] = a",
    after_a_loop_that_may_be_empty: "y[i] = t",
    in_the_first_copy: "y[i] = prev",
    counted_without_a_value: "y[i] = last",
    marked_later: "y[i] = last",
    of_an_earlier_call: "w = r if i > 0 else v",
}


@pytest.mark.parametrize("func", REFUSED, ids=lambda func: func.__name__)
def test_a_read_without_a_value_is_refused(func: Callable[..., Any]) -> None:
    with pytest.raises(UnboundLocalError):
        kernel(func)(-np.ones(8, "float32"))
    for op in forms_of(func).values():
        with pytest.raises(BuildError, match="may be read before it is assigned") as info:
            op(-np.ones(8, "float32"))
        assert REFUSED[func] in str(info.value)


def of_another_type(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        if i > 0:
            y[i] = prev
        prev = x[i] + i
    return y


def test_what_is_wrong_below_is_said() -> None:
    with pytest.raises(BuildError, match="mismatch type") as info:
        forms_of(of_another_type)["xla"](X)
    assert "prev = x[i] + i" in str(info.value)


def test_a_deep_nest_is_decided_at_once() -> None:
    """Following three iterations of each of 12 loops would take weeks."""
    for guard in (" or ".join(f"i{n} > 0" for n in range(12)), "x[i0] > 0.0"):
        text = f"if {guard}:\n    y[i0] = t\nt = x[i0]"
        for n in reversed(range(12)):
            text = f"for i{n} in range(3):\n{textwrap.indent(text, '    ')}"
        text = textwrap.indent(f"y = output_tensor(x.shape, x.dtype)\n{text}\nreturn y", "    ")
        func = define(f"def k(x):\n{text}\n")
        if "or" in guard:
            specialise(func, Spec((3,), "float32"))
            continue
        with pytest.raises(BuildError, match="may be read"):
            specialise(func, Spec((3,), "float32"))


PARTS = [pytest.param(n, marks=pytest.mark.slow if n else ()) for n in range(40)]


@pytest.mark.parametrize("part", PARTS)
def test_random_programs_are_refused_or_have_the_value_of_python(part: int) -> None:
    """Of 250 programs about 65 have a value at each read; a few more have, and are refused."""
    found = collections.Counter[bool]()
    for seed in range(250 * part, 250 * (part + 1)):
        text = program(seed)
        try:
            meaning = specialise(define(text), Spec((4,), "float32"))
        except (BuildError, ValueError):
            found[False] += 1
            continue
        found[True] += 1
        numbers = np.random.default_rng(seed)
        for _ in range(8):
            x = numbers.normal(size=4).astype("float32")
            try:
                wanted = kernel(define(text))(x)
            except NameError as error:
                error.add_note(f"program({seed})\n{text}")
                raise
            (got,) = interpret(meaning, [x])
            np.testing.assert_allclose(got, wanted, 1e-5, 1e-5, err_msg=f"program({seed})\n{text}")
    assert found[True] > 50
