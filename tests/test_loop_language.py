"""What Python's users write without thinking works in a kernel, in every form and as Python."""

from __future__ import annotations

import enum
import functools
import itertools
import math
import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from loop_ir import Spec, Stages
from loop_source import specialise

import msops.lang as ml
from msops import Custom
from msops.errors import ArgumentTypeError, ArgumentValueError, BuildError
from msops.ops import kernel

# Names of the language, and helpers that only kernels see.
# ruff: noqa: F821

X = np.float32([3.0, 1.0, -2.0, 4.0, 0.5])


def everywhere(func: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """Returns what a kernel computes, which is the same in each form."""
    wanted = kernel(func)(*(array.copy() for array in arrays))
    for form in ("xla", "native"):
        got = Custom(func, func_type="akg", compile_attrs={"lower": form})(*arrays)
        np.testing.assert_allclose(np.asarray(got), wanted, 1e-6, err_msg=form)
    return np.asarray(wanted)


def clipped(value, most):
    if value > most:
        return most
    return value


def norm(a, start, eps=0.5):
    total = 0.0
    for k in range(start, a.shape[0]):
        if a[k] < 0.0:
            continue
        total += a[k] * a[k]
    return sqrt(total) + eps


def fill(a, value):
    for i in range(a.shape[0]):
        a[i] = value


def first_below(a, limit):
    for i in range(a.shape[0]):
        if a[i] < limit:
            return i, a[i]
    return -1, 0.0


def test_helpers_are_written_out() -> None:
    def k(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = clipped(x[i] * 2.0, most=3.0) + norm(x, i) + norm(x, eps=1.0, start=0)
        return y

    squares = np.where(X < 0, 0, X * X)
    want = np.minimum(2 * X, 3) + np.sqrt(squares[::-1].cumsum()[::-1]) + 1.5
    np.testing.assert_allclose(everywhere(k, X), want + np.sqrt(squares.sum()), 1e-6)


def test_a_helper_assigns_to_elements_and_returns_several_values() -> None:
    def k(x):
        y = output_tensor((3,), x.dtype)
        fill(y, 7.0)
        at, found = first_below(x, 0.0)
        nowhere, _ = first_below(x, -9.0)
        y[0], y[1] = float32(at), found
        y[-1] += float32(nowhere)
        return y

    assert everywhere(k, X).tolist() == [2.0, -2.0, 6.0]


def test_a_helper_runs_only_where_python_runs_it() -> None:
    def before(x, i):
        last = x[i - 1]
        return last * 2.0

    def k(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            # At i = 0 an access of x[-1] would be out of range.
            y[i] = before(x, i) if i > 0 else 0.0
            if i > 0 and before(x, i) > 3.0:
                y[i] = -1.0
        return y

    assert everywhere(k, X).tolist() == [0.0, -1.0, 2.0, -4.0, -1.0]


def test_the_gradient_goes_through_helpers_and_jumps() -> None:
    def k(x):
        y = output_tensor((1,), x.dtype)
        for i in range(x.shape[0]):
            if x[i] > 3.5:
                break
            y[0] += clipped(x[i], 2.0) * norm(x, i)
        return y

    def reference(x):
        parts = [jnp.sqrt(sum(jnp.where(v > 0, v * v, 0.0) for v in x[i:])) + 0.5 for i in range(3)]
        return sum(jnp.minimum(x[i], 2.0) * parts[i] for i in range(3))

    for form in ("xla", "native"):
        op = Custom(k, func_type="akg", compile_attrs={"lower": form})
        got = jax.grad(lambda x, op=op: op(x)[0])(jnp.asarray(X))
        np.testing.assert_allclose(got, jax.grad(reference)(jnp.asarray(X)), 1e-5)


def test_break_leaves_the_innermost_loop() -> None:
    def k(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            for j in range(i, x.shape[0]):
                if x[j] < 0.0:
                    break
                if j == 1:
                    continue
                y[i] += x[j]
        return y

    assert everywhere(k, X).tolist() == [3.0, 0.0, 0.0, 4.5, 0.5]


def test_shapes_are_compared() -> None:
    def k(x, w):
        assert x.shape == w.shape == (2, 3), "equal shapes"
        assert x.shape[1:] != (2,)
        assert x.shape[2:] == ()
        assert x.shape != (2,)
        y = output_tensor(x.shape, x.dtype)
        for i, j in grid(x.shape):
            y[i, j] = w[i, j] if (i, j) != (0, j * j) else (x[i, j] if (i, j) == (0, 1) else 5.0)
        return y

    x = np.float32([[1, 2, 3], [4, 5, 6]])
    assert everywhere(k, x, -x).tolist() == [[5.0, 2.0, -3.0], [-4.0, -5.0, -6.0]]
    for shape in ((3, 2), (2,), (2, 3, 1)):
        with pytest.raises(BuildError, match="assertion failed: equal shapes"):
            Custom(k, func_type="akg")(x, np.ones(shape, "float32"))


def test_tuples_have_no_order() -> None:
    def k(x):
        y = output_tensor(x.shape, x.dtype)
        y[0] = 1.0 if x.shape < (3, 4) else 2.0
        return y

    with pytest.raises(BuildError, match=r"'x.shape' is a tuple, where a number is needed"):
        Custom(k, func_type="akg")(X)


def test_while_counts_up_and_down() -> None:
    def k(x):
        y = output_tensor((4,), "int32")
        i = 0
        while i < x.shape[0] and x[i] > 0.0:
            i += 1
        y[0] = i
        j = x.shape[0] - 1
        while j >= 0:
            if x[j] < 0.0:
                break
            j = j - 1
        y[1] = j
        n = 7
        while n > 0:
            y[2] += n
            n -= 3
        y[3] = n
        return y

    assert everywhere(k, X).tolist() == [2, 2, 12, -2]


def up_to(limit):
    y = output_tensor((2,), "int32")
    i = 0
    while i <= limit[0]:
        y[0] += 1
        i += 1
    y[1] = i
    return y


def down_to(limit):
    y = output_tensor((2,), "int32")
    i = 5
    while limit[0] <= i:
        y[0] += 1
        i -= 2
    y[1] = i
    return y


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint32"])
def test_a_while_may_include_the_last_number_of_a_dtype(dtype: str) -> None:
    limits = np.iinfo(dtype)
    most = limits.max if dtype != "uint32" else 70
    assert everywhere(up_to, np.array([most], dtype)).tolist() == [most + 1] * 2
    count = (5 - limits.min) // 2 + 1
    assert everywhere(down_to, np.array([limits.min], dtype)).tolist() == [count, 5 - 2 * count]


def from_zero_up(x, limit):
    y = output_tensor((1,), "int32")
    i = 0
    while i <= limit[0]:
        if i >= x.shape[0]:
            break
        y[0] += x[i]
        i += 1
    return y


def from_the_last_down(x, limit):
    y = output_tensor((1,), "int32")
    i = x.shape[0] - 1
    while i >= limit[0]:
        if i < 0:
            break
        y[0] += x[i]
        i -= 1
    return y


def to_the_end(x, limit):
    y = output_tensor((1,), "int32")
    i = 2147483643
    while i <= limit[0]:
        if i < 2147483643:
            break
        y[0] += x[i - 2147483643]
        i += 1
    return y


def to_the_start(x, limit):
    y = output_tensor((1,), "int32")
    i = -2147483644
    while i >= limit[0]:
        if i > -2147483644:
            break
        y[0] += x[-2147483644 - i]
        i -= 1
    return y


LAST = np.iinfo(np.int32)


@pytest.mark.parametrize(
    ("func", "limit", "form"),
    [
        (from_zero_up, LAST.max, "native"),
        (from_the_last_down, LAST.min, "native"),
        # XLA's form runs all of the 2**31 iterations that follow a break, for half a minute.
        pytest.param(from_zero_up, LAST.max, "xla", marks=pytest.mark.slow),
        pytest.param(from_the_last_down, LAST.min, "xla", marks=pytest.mark.slow),
        *(
            (func, limit, form)
            for form in ("xla", "native")
            for func, limit in ((to_the_end, LAST.max), (to_the_start, LAST.min))
        ),
    ],
)
def test_a_while_may_include_the_last_int32(
    func: Callable[..., Any], limit: int, form: str
) -> None:
    x = np.arange(1, 6, dtype=np.int32)
    limits = np.array([limit], np.int32)
    assert kernel(func)(x.copy(), limits).tolist() == [15]
    op = Custom(func, func_type="akg", compile_attrs={"lower": form})
    assert op(x, limits).tolist() == [15]


def test_a_while_between_data_may_include_the_last_int32() -> None:
    def from_data(start, limit):
        y = output_tensor((3,), "int32")
        i = start[0]
        while i <= limit[0]:
            y[0] += 1
            i += 1
        j = start[1]
        while j <= limit[0]:
            y[1] += 1
            j += 3
        k = start[2]
        while k <= limit[0] and y[2] < 2:
            y[2] += 1
            k += 1
        return y

    most = LAST.max
    starts = np.array([most - 2, most - 6, most - 2], np.int32)
    for form in ("xla", "native"):
        op = Custom(from_data, func_type="akg", compile_attrs={"lower": form})
        assert op(starts, np.array([most], np.int32)).tolist() == [3, 3, 2]


@pytest.mark.parametrize("dtype", ["int64", "uint32", "uint64"])
def test_a_while_whose_counter_is_no_int32_needs_bounds_that_are(dtype: str) -> None:
    def from_data(a, y):
        i = a[0]
        while i < a[1]:
            i += 1
        y[0] = i
        return y

    def to_data(a, y):
        i = 0
        while i <= a[1] and y[1] < a[2]:
            i += 1
        y[0] = i
        return y

    def converted(a, y):
        i = int32(a[0])
        while i < a[1]:
            y[1] += 1
            i += 1
        j = 0
        while j < len(a):
            j += 1
        y[0] = j
        return y

    with jax.enable_x64(True):
        a = np.array([2, 9, 5], dtype)
        for func in (from_data, to_data):
            with pytest.raises(BuildError, match=f"'i' is {dtype}, and loops count in int32"):
                Custom(func, func_type="akg")(a, np.zeros(2, dtype))
        assert everywhere(converted, a, np.zeros(2, dtype)).tolist() == [3, 7]
        # The nearest int32 is as good for a limit that no int32 reaches.
        if dtype == "int64":
            a = np.array([2**31 - 4, -(2**40), 0], dtype)
            assert everywhere(converted, a, np.zeros(2, dtype)).tolist() == [3, 0]


def test_a_while_may_compare_what_is_ahead_of_its_counter() -> None:
    def k(x, n):
        y = output_tensor(x.shape, x.dtype)
        i = n[0]
        while i + 1 < x.shape[0] and x[i + 1] < x[i]:
            i += 1
        y[0] = x[i]
        j = n[0]
        while j + 3 <= n[1]:
            y[j] += 1.0
            j += 2
        m = n[1]
        while m - 2 >= 0:
            y[m] += 5.0
            m -= 1
        while len(x) > m + 1:
            y[m] -= 2.0
            m += 1
        return y

    # Python is the oracle.
    for n in itertools.product(range(len(X)), repeat=2):
        everywhere(k, X, np.array(n, "int32"))
    assert everywhere(k, X, np.array([1, 3], "int32")).tolist() == [-2.0, -2.0, 3.0, 3.0, 0.0]


def test_a_while_that_counts_is_a_loop_like_any_other() -> None:
    def k(x):
        i = 0
        while i < len(x):
            n = x.shape[0]
            x[i] = exp(x[i]) * float32(n)
            i += 1
        return x

    np.testing.assert_allclose(everywhere(k, X), np.exp(X) * 5, 1e-6)
    steps = Custom(k, func_type="akg").lower_text(X, stage="steps")
    assert "order-bound" not in steps


def test_a_while_starts_at_what_its_counter_was_set_to() -> None:
    """Unless a name in that has another value by then."""

    def k(x):
        y = output_tensor((6, x.shape[0]), "int32")
        j, own = 3, 1
        for i in range(x.shape[0]):
            from_loop = i
            while from_loop > 0 and x[from_loop - 1] < 3.0:
                y[0, from_loop] += from_loop * from_loop
                from_loop -= 1
            y[0, i] += 100 * from_loop
            other = j + i
            j = 2
            while other > 0:
                y[1, i] = y[1, i] * 3 + other
                other -= 1
            j = i
            own = own + i
            while own > 2:
                y[2, i] = y[2, i] * 3 + own
                own -= 2
            n = i + 2
            count = n
            while count > 0:
                n = n + 1
                y[3, i] += n * count
                count -= 1
            chosen = i
            if x[i] > 2.0:
                chosen = 3
            while chosen >= 0 and x[chosen] < 3.5:
                y[4, i] += chosen
                chosen -= 1
            y[5, i] = chosen
        return y

    everywhere(k, X)


def insertion_sort(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        v = x[i]
        k = i
        while k > 0 and y[k - 1] > v:
            y[k] = y[k - 1]
            k -= 1
        y[k] = v
    return y


def test_the_gradient_of_a_while_goes_back_step_by_step() -> None:
    x = np.random.default_rng(5).normal(size=40).astype("float32")
    np.testing.assert_array_equal(everywhere(insertion_sort, x), np.sort(x))
    weights = np.arange(40, dtype="float32")
    for form in ("xla", "native"):
        op = Custom(insertion_sort, func_type="akg", compile_attrs={"lower": form})
        slopes = jax.grad(lambda x, op=op: jnp.vdot(weights, op(x)))(x)
        np.testing.assert_array_equal(slopes, weights[np.argsort(np.argsort(x))])
    # The tape has what each step overwrites, not a copy of the array for each element.
    stages = Stages(specialise(insertion_sort, Spec(x.shape, "float32")), "Custom 'k'")
    tapes = {buffer.shape for buffer in stages.adjoint((0,)).buffers if "tape" in buffer.name}
    assert tapes == {(40,), (40, 39)}


def test_a_while_may_continue_after_its_step() -> None:
    def k(x):
        y = output_tensor((3,), x.dtype)
        i = -1
        while i < x.shape[0] - 1:
            i += 1
            if x[i] < 0.0:
                continue
            y[0] += x[i]
        j = 0
        while j < 4 and y[1] < 100.0:
            y[1] += x[j]
            j = j + 1
            for m in range(3):
                if m == 1:
                    continue
                y[1] += float32(m)
            if j == 2:
                continue
            y[2] += float32(j)
        return y

    assert everywhere(k, X).tolist() == [8.5, 14.0, 8.0]


def test_a_limit_that_a_helper_may_change_is_no_bound() -> None:
    def k(x, y):
        i = 0
        while i < y[0]:
            fill(a=y, value=2)
            i += 1
        return y

    with pytest.raises(ArgumentValueError, match="has no bound that can be read off it"):
        Custom(k, func_type="akg")


def test_a_kernel_returns_early() -> None:
    def k(x):
        y = output_tensor(x.shape, x.dtype)
        if x.shape[0] == 1:
            return y
        for i in range(x.shape[0]):
            if x[i] < 0.0:
                return y
            y[i] = x[i]
        y[0] = -1.0
        return y

    assert everywhere(k, X).tolist() == [3.0, 1.0, 0.0, 0.0, 0.0]
    assert everywhere(k, abs(X)).tolist() == [-1.0, 1.0, 2.0, 4.0, 0.5]
    assert everywhere(k, X[:1]).tolist() == [0.0]


def test_a_kernel_without_a_return_returns_the_inputs_that_it_assigns() -> None:
    def k(x, y):
        for i in range(len(x)):
            y[i] += x[i]
        fill(x, 2.0)

    got = Custom(k, func_type="akg")(X, X)
    assert [part.tolist() for part in got] == [[2.0] * 5, (X + X).tolist()]

    def nothing_assigned(x):
        n = len(x)  # noqa: F841

    with pytest.raises(ArgumentValueError, match="no valid return found in the function body"):
        Custom(nothing_assigned, func_type="akg")
    with pytest.raises(ArgumentValueError, match="no valid return found in the function body"):
        Custom(kernel(k))


def test_several_targets_and_variables() -> None:
    def k(x):
        y = output_tensor((2, 2), x.dtype)
        p = q = x[1] + 1.0
        q += 1.0
        y[1, 1] = y[0, 0] = p
        for i, j in grid((2, 2)):
            y[i, j] += q * float32(i + 1)
        return y

    assert everywhere(k, X).tolist() == [[5.0, 3.0], [6.0, 8.0]]


def grown(value):
    return ml.exp(value) + ml.float32(1)


def test_names_of_the_language_in_helpers_and_as_dtypes() -> None:
    def k(x):
        y = ml.output_tensor(x.shape, float32)
        t = allocate((1,), int32)
        for i in ml.parallel(x.shape[0]):
            y[i] = grown(x[i]) + float32(t[0])
        return y

    np.testing.assert_allclose(everywhere(k, X), np.exp(X) + 1, 1e-6)


def like(value, x):
    return x.dtype.type(value)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_conversions_to_the_dtype_of_a_tensor(dtype: str) -> None:
    def k(x, t):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = x[i] * x.dtype.type(t[i]) + like(i, x) - t.dtype.type(2) * like(t[i], x)
        return y

    x, t = np.arange(1, 5).astype(dtype), np.array([2, -1, 0, 3], dtype)
    with jax.enable_x64(True):
        assert everywhere(k, x, t).tolist() == (x * t + np.arange(4) - 2 * t).tolist()


class Mode(enum.IntEnum):
    FAST = 3


SETTINGS = types.SimpleNamespace(scale=np.float32(0.5), shape=(2, np.int64(3)))
DTYPE = np.float32
ZERO_DIM = np.array(2.0)


def test_constants_outside_the_kernel() -> None:
    def k(x):
        y = output_tensor(SETTINGS.shape, DTYPE)
        t = allocate((1,), jnp.float32)
        t[0] = math.pi
        y[1, 2] = x[0] * SETTINGS.scale + t[0] + ZERO_DIM
        y[0, 0] = float32(Mode.FAST)
        return y

    got = everywhere(k, X)
    assert got.shape == (2, 3)
    np.testing.assert_allclose([got[0, 0], got[1, 2]], [3.0, 3.5 + math.pi], 1e-6)


def test_an_op_is_another_one_when_its_constants_change() -> None:
    outside = types.SimpleNamespace(scale=2.0)

    def k(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = outside.scale * x[i]
        return y

    assert np.asarray(Custom(k, func_type="akg")(X))[0] == 6.0
    outside.scale = 3.0
    assert np.asarray(Custom(k, func_type="akg")(X))[0] == 9.0


def test_a_negative_constant_counts_from_the_end() -> None:
    def k(x):
        y = output_tensor((2, 2), x.dtype)
        y[-1, 0] = x[-2]
        y[0, -1] = x[x.shape[0] - 6]
        return y

    assert everywhere(k, X).tolist() == [[0.0, 0.5], [4.0, 0.0]]

    def beyond(x):
        x[-6] = 1.0
        return x

    with pytest.raises(ArgumentValueError, match=r"writes x\[-6\] of x: float32\[5\]"):
        Custom(beyond, func_type="akg")(X)


@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_an_input_of_another_rank(shape: tuple[int, ...]) -> None:
    def k(x):
        y = output_tensor((1,), x.dtype)
        y[0] = x[0]
        return y

    with pytest.raises(BuildError, match="The kernel expects 'x' of rank 1: call the op with such"):
        Custom(k, func_type="akg")(jnp.ones(shape))


def test_an_extent_that_an_input_does_not_have() -> None:
    def k(x):
        y = output_tensor((x.shape[1],), x.dtype)
        return y

    with pytest.raises(BuildError, match="The kernel expects 'x' of rank 2 or more: call the op"):
        Custom(k, func_type="akg")(jnp.float32(1.0))


@pytest.mark.parametrize("transform", [jax.jit, jax.grad, jax.vmap])
def test_the_plain_function_under_a_transformation(transform: Callable[..., Any]) -> None:
    @kernel
    def double(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = 2.0 * x[i]
        return y

    with pytest.raises(ArgumentTypeError) as error:
        transform(double)(jnp.ones(3))
    assert "Make an op of it once, op = msops.Custom(double), and call op there." in str(
        error.value
    )


def endless(n):
    return endless(n - 1) + 1


def sometimes(n):
    if n > 1:
        return n


def one_or_two(n):
    if n > 1:
        return n
    return n, n


def nothing(a):
    a[0] = 1.0


def wrong_inside(a):
    return a[0] + np.sum(a[0])


def reads_of_its_caller(a):
    return a[0] + y.shape[0]


partial = functools.partial(clipped, most=1.0)
scaled = lambda v: v * 2.0  # noqa: E731


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("y[0] = endless(3)", "'endless' calls itself"),
        ("y[0] = sometimes(3)", "'sometimes' returns a value in some cases only"),
        ("y[0] = one_or_two(3)", "'one_or_two' returns different numbers of values"),
        ("y[0] = nothing(y)", "'nothing' returns nothing"),
        ("y[0] = 1.0 + nothing(y)", "'nothing' assigns to elements of a tensor, and is called"),
        ("y[0] = clipped(x[0])", r"'clipped' has the parameters \(value, most\)"),
        ("y[0] = clipped(x[0], least=1.0)", r"'clipped' has the parameters \(value, most\)"),
        ("y[0] = wrong_inside(x)", "helper 'wrong_inside': 'np.sum' cannot be called"),
        ("y[0] = reads_of_its_caller(x)", "'reads_of_its_caller' reads 'y', a name of the kernel"),
        ("y[0] = like(1, x[0])", r"'x\[0\]' is no tensor and has no .dtype"),
        ("y[0] = partial(x[0])", "'partial' is a partial, which a kernel cannot call"),
        ("y[0] = scaled(x[0])", "expected a kernel that is a function made by def; got a lambda"),
    ],
)
def test_helpers_that_cannot_be_written_out(call: str, problem: str) -> None:
    from loop_source import define

    names = {name: value for name, value in globals().items() if name in call}
    text = f"def k(x):\n    y = output_tensor((1,), x.dtype)\n    {call}\n    return y\n"
    with pytest.raises((ArgumentTypeError, ArgumentValueError), match=problem):
        Custom(define(text, np=np, **names), func_type="akg")


def test_an_error_inside_a_helper_shows_the_helper() -> None:
    def k(x):
        y = output_tensor(x.shape, x.dtype)
        y[0] = norm(x, 0.5)
        return y

    with pytest.raises(BuildError) as error:
        Custom(k, func_type="akg")(X)
    assert "the bound of a loop is an integer" in str(error.value)


def test_the_same_name_in_a_helper_and_its_kernel() -> None:
    def shifted(v):
        t = v + 1.0
        v = t * 2.0
        return v + t

    def k(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            t = x[i]
            v = shifted(t)
            y[i] = v - t + shifted(shifted(0.0))
        return y

    np.testing.assert_allclose(everywhere(k, X), 3 * (X + 1) - X + 12, 1e-6)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint32"])
def test_a_quotient_is_rounded_up(dtype: str) -> None:
    def k(a, b):
        y = output_tensor((a.shape[0] + 2,), a.dtype)
        for i in range(a.shape[0]):
            y[i] = ceil_div(a[i], b[i])
        y[a.shape[0]] = ceil_div(a[0], 5)
        y[a.shape[0] + 1] = ceil_div(7, 2) + ceil_div(-7, 2) + ceil_div(7, -2) + ceil_div(-7, -2)
        return y

    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    numbers = {n for n in (most, most - 1, least, least + 1, 0, 1, 2, 5, 7, -1, -7) if n >= least}
    pairs = [(a, b) for a in sorted(numbers, reverse=True) for b in numbers if b]
    pairs = [(a, b) for a, b in pairs if -(-a // b) <= most]
    a, b = (np.array(part, dtype) for part in zip(*pairs, strict=True))
    wanted = [-(-one // other) for one, other in [*pairs, (most, 5)]] + [4 - 3 - 3 + 4]
    assert kernel(k)(a, b).tolist() == wanted
    for form in ("xla", "native"):
        got = Custom(k, func_type="akg", compile_attrs={"lower": form})(a, b)
        assert np.asarray(got).tolist() == wanted, form


@pytest.mark.parametrize("dtype", ["int8", "uint32", "float32"])
def test_an_extreme_of_an_element_and_a_number_has_the_type_of_the_element(dtype: str) -> None:
    def k(a):
        y = output_tensor((3, a.shape[0]), a.dtype)
        for i in range(a.shape[0]):
            y[0, i] = -max(a[i], 7)
            y[1, i] = max(100, a[i]) + 100
            y[2, i] = min(a[i], 3) * 2
        return y

    a = np.array([0, 5, 120], dtype)
    with np.errstate(over="ignore"):
        wanted = np.stack([-np.maximum(a, 7), np.maximum(a, 100) + 100, np.minimum(a, 3) * 2])
        np.testing.assert_array_equal(everywhere(k, a), wanted.astype(dtype))


@pytest.mark.parametrize("keyword", ["parallel", "vectorize"])
def test_a_promise_that_is_wrong_under_a_while_stays_serial(
    keyword: str, caplog: pytest.LogCaptureFixture
) -> None:
    def vectorized(b):
        z = output_tensor((1,), b.dtype)
        i = 0
        while i < 17 and b[0] > 0:
            for j in vectorize(8):
                z[i % 1] ^= b[j] if j <= 3 else z[0]
            z[0] += 1
            i += 1
        return z

    def parallelized(b):
        z = output_tensor((8,), b.dtype)
        i = 0
        while i < 6 and b[0] > 0:
            for j in parallel(8):
                z[i] = z[i] * 3 + b[j]
            i += 1
        return z

    func = vectorized if keyword == "vectorize" else parallelized
    everywhere(func, np.arange(1, 9, dtype=np.int32))
    assert any(f"loop j cannot be '{keyword}'" in record.message for record in caplog.records)


@pytest.mark.parametrize("keyword", ["parallel", "vectorize"])
def test_a_promise_is_wrong_where_a_break_or_a_scalar_makes_an_order(
    keyword: str, caplog: pytest.LogCaptureFixture
) -> None:
    def by_break(b):
        z = output_tensor((8,), b.dtype)
        for j in parallel(8):
            z[j] = b[j] + 1
            if b[j] > 3:
                break
        return z

    def by_scalar(b):
        z = output_tensor((8,), b.dtype)
        last = b[0]
        for j in vectorize(8):
            z[j] = b[j] - last
            if b[j] > 3:
                last = b[j]
        return z

    func = by_break if keyword == "parallel" else by_scalar
    everywhere(func, np.arange(1, 9, dtype=np.int32))
    assert any(f"loop j cannot be '{keyword}'" in record.message for record in caplog.records)
