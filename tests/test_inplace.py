"""``Custom(inplace=)``: an output that takes over the buffer of an input."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import aot, first

from msops import Custom, Tensor, errors, ops

X = np.arange(12.0, dtype=np.float32).reshape(3, 4)
Y = np.arange(4, dtype=np.float32) / 2


def add_into(**options: Any) -> Custom:
    """out += y in x's buffer; the kernel fails where it is another."""
    return aot("AddInto", inplace={0: 0}, bprop=lambda x, y, out, dout: (dout, dout), **options)


def test_an_input_that_is_still_needed_is_copied_first() -> None:
    op, x = add_into(), jnp.asarray(X[0])
    np.testing.assert_array_equal(op(x, Y), X[0] + Y)
    np.testing.assert_array_equal(jax.jit(lambda x: op(x, Y) + x)(x), 2 * X[0] + Y)
    np.testing.assert_array_equal(op(x, Y), X[0] + Y)
    np.testing.assert_array_equal(x, X[0])


def test_a_donated_buffer_becomes_the_output() -> None:
    op = add_into()
    step = jax.jit(lambda x, y: op(op(x, y), y), donate_argnums=0)
    x = jnp.zeros(1 << 16, jnp.float32) + 1
    address = x.unsafe_buffer_pointer()
    result = step(x, jnp.full(1 << 16, 2, jnp.float32))
    np.testing.assert_array_equal(result, np.full(1 << 16, 5, np.float32))
    assert x.is_deleted()
    assert result.unsafe_buffer_pointer() == address
    text = step.lower(result, result).compile().as_text()
    assert "output_to_operand_aliasing={{}: (0, {})}" in text
    assert " copy(" not in text


def test_gradients_see_the_input_as_it_was() -> None:
    op = aot(
        "AddInto", inplace={0: 0}, forward=True, bprop=lambda x, y, out, dout: (x * dout, dout)
    )
    x = jnp.asarray(X[1])
    loss = lambda x: (op(op(x, Y), Y) * x).sum()  # noqa: E731
    # The rule is not the derivative: it shows which x it is given.
    expected = X[1] * X[1] * (X[1] + Y) + X[1] + 2 * Y
    np.testing.assert_allclose(jax.grad(loss)(x), expected)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(x), expected)
    tangent = jax.jvp(lambda x: op(x, Y), (x,), (x,))[1]
    np.testing.assert_allclose(tangent, X[1] * X[1])


@pytest.mark.parametrize("vmap", ["sequential", "expand_dims", "broadcast_all"])
def test_batches(vmap: str) -> None:
    op = add_into(vmap=vmap)
    np.testing.assert_array_equal(jax.vmap(op, (0, None))(X, Y), X + Y)
    np.testing.assert_array_equal(jax.vmap(op)(X, X), 2 * X)
    np.testing.assert_array_equal(jax.jit(jax.vmap(op, (None, 0)))(Y, X), X + Y)
    loop = functools.partial(jax.lax.fori_loop, 0, 5, lambda _, x: op(x, Y))
    np.testing.assert_array_equal(jax.jit(loop)(jnp.asarray(X[0])), X[0] + 5 * Y)


@pytest.mark.parametrize(
    ("inplace", "problem"),
    [
        ({1: 0}, "inplace names output 1 and input 0; the call has 1 output(s) and the inputs (x"),
        ({0: 2}, "inplace names output 0 and input 2; the call has 1 output(s) and the inputs (x"),
        ({0: 1}, "inplace expected input 1 and output 0 of one shape and dtype; got float32[1] an"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(inplace: Any, problem: str) -> None:
    with pytest.raises(errors.ArgumentValueError) as caught:
        aot("AddInto", inplace=inplace)(X[0], Y[:1])
    assert f"Custom 'AddInto' on CPU: {problem}" in str(caught.value)


@pytest.mark.parametrize(
    ("inplace", "family", "problem"),
    [
        (0, errors.ArgumentTypeError, "expected a dict from output to input numbers for inplace"),
        ({0: -1}, errors.ArgumentTypeError, "expected a dict from output to input numbers"),
        ({0: True}, errors.ArgumentTypeError, "expected a dict from output to input numbers"),
        ({0: 1, 1: 1}, errors.ArgumentValueError, "expected inplace to name each input once"),
    ],
)
def test_a_wrong_option_is_refused(inplace: Any, family: type, problem: str) -> None:
    with pytest.raises(family, match=problem):
        aot("AddInto", inplace=inplace)


def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x += y
    return x


@pytest.mark.parametrize("attrs", [None, {"lower": "callback"}])
def test_a_function_writes_to_its_input(attrs: Any) -> None:
    op = Custom(add, first, first, inplace={0: 0}, compile_attrs=attrs)
    x = jnp.asarray(X[0])
    np.testing.assert_array_equal(op(x, Y), X[0] + Y)
    np.testing.assert_array_equal(jax.jit(lambda x: op(op(x, Y), Y) + x)(x), 2 * X[0] + 2 * Y)
    np.testing.assert_array_equal(x, X[0])
    np.testing.assert_array_equal(jax.vmap(op, (0, None))(X, Y), X + Y)
    tensor = Tensor(X[0])
    np.testing.assert_array_equal(op(tensor, Tensor(Y)).asnumpy(), X[0] + Y)
    np.testing.assert_array_equal(tensor.asnumpy(), X[0])
    # Without inplace the input is read-only.
    with pytest.raises(errors.KernelError, match="read-only"):
        Custom(add, first, first, compile_attrs=attrs)(x, Y)


def test_a_function_gets_a_donated_buffer() -> None:
    seen = []

    def shift(x: np.ndarray, out: np.ndarray) -> None:
        seen.append((x.ctypes.data, out.ctypes.data))
        out[1:] = x[:-1].copy()

    step = jax.jit(Custom(shift, first, first, inplace={0: 0}), donate_argnums=0)
    x = jnp.arange(1 << 16, dtype=jnp.float32) + 1
    address = x.unsafe_buffer_pointer()
    result = step(x)
    assert seen == [(address, address)]
    assert result.unsafe_buffer_pointer() == address
    np.testing.assert_array_equal(result[:3], [1, 1, 2])


def test_kernels_without_buffers_of_their_own_refuse_it() -> None:
    with pytest.raises(errors.ArgumentValueError, match="option inplace is for func_type 'aot' or"):
        Custom(ops.kernel(lambda x: x), inplace={0: 0})
