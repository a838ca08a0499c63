"""bprop: what it receives, what it may return, and each way to get it wrong."""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import aot, first, multiply_bprop, scale_sum_info
from jax.test_util import check_grads

from msops import Custom, errors

X = jnp.array([1.0, 2.0, 4.0])


def pyfunc(bprop: Any, function: Any = np.square, **options: Any) -> Custom:
    return Custom(function, first, first, bprop=bprop, **options)


def test_bprop_gets_inputs_output_and_dout() -> None:
    seen = []

    def bprop(x: Any, out: Any, dout: Any) -> Any:
        seen.append((np.asarray(x), np.asarray(out), np.asarray(dout)))
        return (2 * x * dout,)

    op = pyfunc(bprop)
    _, pull = jax.vjp(op, X)
    pull(jnp.array([1.0, 10.0, 100.0]))
    ((x, out, dout),) = seen
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(out, X**2)
    np.testing.assert_array_equal(dout, [1.0, 10.0, 100.0])


def test_bprop_may_use_out() -> None:
    op = Custom(np.exp, first, first, bprop=lambda x, out, dout: (out * dout,))
    np.testing.assert_allclose(jax.grad(lambda x: op(x).sum())(X), np.exp(X), rtol=1e-6)


def test_gradients_of_gradients_through_out_and_other_ops() -> None:
    with jax.enable_x64(True):
        x = jnp.array([0.3, -0.7, 1.1])
        exp = Custom(np.exp, first, first, bprop=lambda x, out, dout: (out * dout,))
        multiply = Custom(
            np.multiply,
            first,
            first,
            bprop=lambda x, y, out, dout: (multiply(dout, y), multiply(dout, x)),
        )
        check_grads(lambda x: multiply(exp(x), multiply(x, x)), (x,), order=3, modes=["rev"])
        third = jax.grad(jax.grad(jax.grad(lambda x: multiply(x, multiply(x, x)))))
        assert jax.jit(third)(2.0) == 6.0


def test_gradient_of_gradient_of_an_op_with_two_outputs() -> None:
    op = Custom(
        lambda x: (x**2, x**3),
        lambda x: (x, x),
        lambda x: (x, x),
        bprop=lambda x, out, dout: (2 * x * dout[0] + 3 * out[0] * dout[1],),
    )
    second = jax.jit(jax.grad(lambda x: jax.grad(lambda z: sum(op(z)).sum())(x).sum()))
    np.testing.assert_allclose(second(X), 2 + 6 * X, rtol=1e-6)


def test_dout_of_unused_and_of_integer_outputs_is_zeros() -> None:
    seen = []

    def bprop(x: Any, out: Any, dout: Any) -> Any:
        seen.append([(d.shape, str(d.dtype), bool(jnp.any(d))) for d in dout])
        return (dout[0],)

    op = Custom(
        lambda x: (x, 2 * x, x.astype(np.int32)),
        lambda x: (x, x, x),
        lambda x: (x, x, np.int32),
        bprop=bprop,
    )
    jax.vjp(lambda x: op(x)[0], X)[1](jnp.ones(3))
    assert seen == [[((3,), "float32", True), ((3,), "float32", False), ((3,), "int32", False)]]


def test_none_means_zero() -> None:
    op = aot("Multiply", bprop=lambda x, y, out, dout: (None, dout * x))
    dx, dy = jax.grad(lambda x, y: op(x, y).sum(), (0, 1))(X, 3 * X)
    np.testing.assert_array_equal(dx, np.zeros(3))
    np.testing.assert_array_equal(dy, X)


def test_integer_inputs_get_no_gradient() -> None:
    index = jnp.array([2, 0])
    take = Custom(
        lambda x, i: x[i],
        lambda x, i: i,
        lambda x, i: x,
        bprop=lambda x, i, out, dout: (jnp.zeros_like(x).at[i].add(dout), jnp.zeros_like(i)),
    )
    np.testing.assert_array_equal(jax.grad(lambda x: take(x, index).sum())(X), [1.0, 0.0, 1.0])
    none = jax.grad(lambda i: take(X, i).sum(), allow_int=True)(index)
    assert none.dtype == jax.dtypes.float0


@pytest.mark.parametrize("of_scale", [(0.0,), (None,), ()])
def test_entries_for_attributes_are_ignored_and_may_be_left_out(of_scale: tuple[Any, ...]) -> None:
    seen = []

    def bprop(x: Any, scale: Any, out: Any, dout: Any) -> Any:
        seen.append(scale)
        return jnp.broadcast_to(dout[:, None] * scale, x.shape), *of_scale

    op = aot(
        "ScaleSum",
        lambda x, scale: x[:1],
        first,
        bprop=bprop,
        reg_info=scale_sum_info(),
    )
    got = jax.grad(lambda x: op(x, 3.0).sum())(jnp.ones((2, 3)))
    np.testing.assert_array_equal(got, np.full((2, 3), 3.0))
    assert seen == [3.0]


@pytest.mark.parametrize(
    ("gradients", "problem"),
    [
        ((), "expected 1 gradient(s), one per input (or 2, with a None per attribute); got 0."),
        ((1, 2, 3), "expected 1 gradient(s), one per input (or 2, with a None per attribute)"),
        (
            None,
            "expected a tuple of 1 gradient(s), one per input (or 2, with a None per attribute)",
        ),
    ],
)
def test_errors_count_the_inputs_apart_from_the_attributes(gradients: Any, problem: str) -> None:
    op = aot(
        "ScaleSum",
        lambda x, scale: x[:1],
        first,
        bprop=lambda x, scale, out, dout: gradients,
        reg_info=scale_sum_info(),
    )
    with pytest.raises(errors.GradientError, match=re.escape(problem)):
        jax.grad(lambda x: op(x, 3.0).sum())(jnp.ones((2, 3)))


def test_python_number_stands_for_a_scalar_gradient() -> None:
    op = Custom(np.square, (), np.float32, bprop=lambda x, out, dout: (7,))
    assert jax.grad(op)(2.0) == 7.0


@pytest.mark.parametrize(
    ("gradients", "family", "problem", "advice"),
    [
        (
            lambda x, y, dout: dout,
            errors.GradientTypeError,
            "expected a tuple of 2 gradient(s), one per input; got an array.",
            "Return a tuple even for one gradient: return (dx,).",
        ),
        (
            lambda x, y, dout: (dout,),
            errors.GradientValueError,
            "expected 2 gradient(s), one per input; got 1.",
            "Return None where there is no gradient.",
        ),
        (
            lambda x, y, dout: (dout, dout[:1]),
            errors.GradientValueError,
            "expected for input 1 a gradient of shape (3,) and dtype float32; got shape (1,) and "
            "dtype float32.",
            "Sum over broadcast axes and cast to that dtype, or return None where there is no "
            "gradient.",
        ),
        (
            lambda x, y, dout: (dout.astype(jnp.float16), dout),
            errors.GradientValueError,
            "expected for input 0 a gradient of shape (3,) and dtype float32; got shape (3,) and "
            "dtype float16.",
            "Sum over broadcast axes and cast to that dtype, or return None where there is no "
            "gradient.",
        ),
        (
            lambda x, y, dout: ("dx", dout),
            errors.GradientTypeError,
            "expected for input 0 an array of shape (3,) and dtype float32; got str.",
            "Return an array, or None where there is no gradient.",
        ),
    ],
)
def test_wrong_gradients_say_what_was_expected(
    gradients: Any, family: type[Exception], problem: str, advice: str
) -> None:
    op = aot("Multiply", bprop=lambda x, y, out, dout: gradients(x, y, dout))
    for transform in (jax.grad, lambda f: jax.jit(jax.grad(f))):
        with pytest.raises(family) as caught:
            transform(lambda x: op(x, x).sum())(X)
        text = str(caught.value)
        assert text.startswith(f"bprop of Custom 'Multiply': {problem}")
        assert text.endswith(f"\n{advice}")


def test_wrong_gradient_of_a_list_input_names_the_list() -> None:
    op = aot("AddAll", lambda xs: xs[0], lambda xs: xs[0], bprop=lambda xs, out, dout: ([dout],))
    with pytest.raises(errors.GradientValueError, match="expected for input 0 a list of 2 grad"):
        jax.grad(lambda x: op([x, x]).sum())(X)


def test_none_for_a_list_input_is_zero_for_all_of_it() -> None:
    op = aot("AddAll", lambda xs: xs[0], lambda xs: xs[0], bprop=lambda xs, out, dout: (None,))
    np.testing.assert_array_equal(jax.grad(lambda x: op([x, x]).sum())(X), np.zeros(3))


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: jax.jvp(f, (X,), (X,)),
        lambda f: jax.jacfwd(f)(X),
        lambda f: jax.linearize(f, X)[1](X),
        lambda f: jax.hessian(lambda x: f(x).sum())(X),
    ],
    ids=["jvp", "jacfwd", "linearize", "hessian"],
)
def test_bprop_gives_no_forward_mode(transform: Any) -> None:
    op = pyfunc(lambda x, out, dout: (2 * x * dout,))
    with pytest.raises(TypeError, match="forward mode"):
        transform(op)
    np.testing.assert_allclose(
        jax.jacrev(jax.grad(lambda x: op(x).sum()))(X), 2 * np.eye(3), rtol=1e-6
    )


def test_op_without_bprop_says_how_to_give_one() -> None:
    op = aot("Multiply")
    with pytest.raises(errors.GradientTypeError) as caught:
        jax.grad(lambda x: op(x, x).sum())(X)
    assert str(caught.value) == (
        "Custom 'Multiply': it is being differentiated, and has no bprop.\n"
        "Make it with one: bprop=lambda x, out, dout: (dx,), with one gradient per input, for "
        "reverse mode (jax.grad); or jvp=lambda primals, tangents, out: dout, a rule for both "
        "modes; or put jax.lax.stop_gradient around its inputs."
    )


def test_op_without_bprop_is_fine_where_nothing_is_differentiated() -> None:
    op = aot("Multiply")
    mask = jax.lax.stop_gradient
    got = jax.grad(lambda x: (op(mask(x), mask(x)) * x).sum())(X)
    np.testing.assert_array_equal(got, X**2)
    argmax = Custom(lambda x: np.argmax(x).astype(np.int32), (), np.int32)
    np.testing.assert_array_equal(jax.grad(lambda x: x[argmax(x)])(X), [0.0, 0.0, 1.0])


@pytest.mark.parametrize("rule", [lambda x, out: (out,), lambda x, y, z, out, dout: (out,)])
def test_bprop_of_wrong_arity_is_told_what_it_gets(rule: Any) -> None:
    with pytest.raises(errors.GradientTypeError) as caught:
        jax.grad(lambda x: pyfunc(rule)(x).sum())(X)
    assert "cannot take 1 input(s), out and dout.\nGive it one parameter per" in str(caught.value)


def test_complex_number_is_no_gradient_of_a_real_input() -> None:
    op = Custom(np.square, (), np.float32, bprop=lambda x, out, dout: (1j,))
    with pytest.raises(errors.GradientValueError, match="dtype float32; got shape"):
        jax.grad(op)(2.0)


def test_bprop_must_be_a_function() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="expected a function for bprop; got str"):
        Custom(np.sin, first, first, bprop="cos")


def test_error_in_bprop_reaches_the_caller_as_it_is() -> None:
    op = pyfunc(lambda x, out, dout: (undefined,))  # noqa: F821
    with pytest.raises(NameError, match="undefined"):
        jax.grad(lambda x: op(x).sum())(X)


def test_kernel_runs_the_gradient_kernel_only_in_backward() -> None:
    calls = []

    def gradient(x: Any, dout: Any) -> Any:
        calls.append("gradient")
        return 2 * x * dout

    backward = Custom(gradient, lambda x, dout: x, lambda x, dout: x)
    op = pyfunc(lambda x, out, dout: (backward(x, dout),))
    op(X)
    jax.jit(op)(X)
    assert calls == []
    np.testing.assert_array_equal(jax.grad(lambda x: op(x).sum())(X), 2 * X)
    assert calls == ["gradient"]


def test_multiply_bprop_of_the_table_is_right_in_double_precision() -> None:
    with jax.enable_x64(True):
        op = Custom(np.multiply, first, first, bprop=multiply_bprop)
        check_grads(op, (jnp.array([1.0, 2.0]), jnp.array([3.0, -1.0])), order=2, modes=["rev"])


@pytest.mark.parametrize("kernel", [np.negative, lambda x, *, alpha=1.0: alpha * x])
def test_a_bprop_whose_out_would_be_another_parameter_is_refused(kernel: Any) -> None:
    """Each has a default, so that Python itself would take the call."""

    bprop = lambda x, a=None, out=None, dout=None: (dout * out,)  # noqa: E731
    op = Custom(kernel, first, first, bprop=bprop)
    with pytest.raises(errors.GradientTypeError, match=r"a=None, out=None, dout=None. cannot"):
        jax.grad(lambda x: op(x).sum())(jnp.ones(2))


def test_a_bprop_may_have_more_defaults_and_inputs_called_out() -> None:
    scale = 3.0
    op = Custom(np.negative, first, first, bprop=lambda x, out, dout, s=scale: (s * dout,))
    np.testing.assert_array_equal(jax.grad(lambda x: op(x).sum())(jnp.ones(2)), [3, 3])
    gradient = Custom(
        lambda x, result, dout: x * dout,
        first,
        first,
        bprop=lambda x, out, dout, out2, dout2: (dout * dout2, None, x * dout2),
    )
    x = jnp.full(2, 5.0)
    np.testing.assert_array_equal(jax.grad(lambda x: gradient(x, x, 2 * x).sum())(x), [20, 20])
