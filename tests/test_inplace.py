"""``Custom(inplace=)``: an output that takes over the buffer of an input."""
# Loop kernels use names that mean something only inside them.
# ruff: noqa: F821

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from aicpu_harness import info
from custom_ops import aot, first, loops, tbe

from msops import Custom, Tensor, errors, ops
from msops.testing import opcheck

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


AICPU_SOURCE = """
#include "inc/ms_cpu_kernel.h"
namespace { const char* kAddInto = "AddInto"; }
class AddInto : public aicpu::CpuKernel {
  uint32_t Compute(aicpu::CpuKernelContext &ctx) override {
    if (ctx.Input(0)->GetData() != ctx.Output(0)->GetData()) return 2;
    if (ctx.Input(1)->NumElements() != ctx.Output(0)->NumElements()) return 3;
    const auto *y = static_cast<float *>(ctx.Input(1)->GetData());
    auto *out = static_cast<float *>(ctx.Output(0)->GetData());
    for (int64_t i = 0; i < ctx.Output(0)->NumElements(); ++i) out[i] += y[i];
    return 0;
  }
};
REGISTER_MS_CPU_KERNEL(kAddInto, AddInto);
"""


@ops.kernel
def decay(x, y):
    """Each element keeps half of the one before it."""
    for i in range(1, x.shape[0]):
        x[i] = x[i - 1] * 0.5 + y[i]
    return x


def decay_in_numpy(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = x.copy()
    for i in range(1, len(out)):
        out[i] = out[i - 1] * np.float32(0.5) + y[i]
    return out


@pytest.fixture(scope="module")
def aicpu_add(tmp_path_factory: pytest.TempPathFactory) -> Custom:
    source = tmp_path_factory.mktemp("kernel") / "add_into.cc"
    source.write_text(AICPU_SOURCE)
    bprop = lambda x, y, out, dout: (dout, dout)  # noqa: E731
    options = {"func_type": "aicpu", "reg_info": info("AddInto", 2), "bprop": bprop}
    return Custom(str(source), first, first, inplace={0: 0}, **options)


@pytest.fixture(params=["aicpu", "native loops", "loops as operations"])
def any_op(request: pytest.FixtureRequest) -> tuple[Custom, Any]:
    """An op that works in place, and the same in numpy."""
    if request.param == "aicpu":
        return request.getfixturevalue("aicpu_add"), np.add
    lower = "native" if request.param == "native loops" else "xla"
    return loops(decay, lower, inplace={0: 0}), decay_in_numpy


def test_every_kernel_with_buffers_leaves_the_caller_his_input(any_op: tuple[Custom, Any]) -> None:
    op, in_numpy = any_op
    x, y = jnp.asarray(X[1]), jnp.asarray(Y)
    expected = in_numpy(X[1], Y)
    np.testing.assert_allclose(op(x, y), expected)
    np.testing.assert_allclose(jax.jit(lambda x: op(x, y) + x)(x), expected + X[1])
    np.testing.assert_array_equal(x, X[1])
    # The same array twice: what is written must not show through the other input.
    np.testing.assert_allclose(jax.jit(lambda x: op(x, x))(x), in_numpy(X[1], X[1]))
    rows = np.stack([in_numpy(row, Y) for row in X])
    np.testing.assert_allclose(jax.vmap(op, (0, None))(X, y), rows)
    rows = np.stack([in_numpy(X[1], row) for row in X])
    np.testing.assert_allclose(jax.jit(jax.vmap(op, (None, 0)))(x, X), rows)


def test_every_kernel_with_buffers_takes_a_donated_one(any_op: tuple[Custom, Any]) -> None:
    op, in_numpy = any_op
    step = jax.jit(lambda x, y: op(op(x, y), y), donate_argnums=0)
    x, y = jnp.linspace(1, 2, 1 << 16), jnp.linspace(0, 1, 1 << 16)
    expected = in_numpy(in_numpy(np.asarray(x), np.asarray(y)), np.asarray(y))
    address = x.unsafe_buffer_pointer()
    text = step.lower(x, y).compile().as_text()
    assert "input_output_alias={ {}: (0, {}, may-alias) }" in text
    if "custom-call(" in text:
        assert text.count("output_to_operand_aliasing={{}: (0, {})}") == 2
        assert " copy(" not in text
    result = step(x, y)
    assert x.is_deleted()
    assert result.unsafe_buffer_pointer() == address
    np.testing.assert_allclose(result, expected, rtol=1e-6)


def test_loops_that_work_in_place_are_differentiated() -> None:
    x, y = jnp.asarray(X[1]), jnp.asarray(Y)
    weights = jnp.arange(1.0, 5.0)
    slopes = [
        jax.grad(lambda x, y, op=op: (op(x, y) * weights).sum(), (0, 1))(x, y)
        for op in (loops(decay, "native", inplace={0: 0}), loops(decay, "native"))
    ]
    # d out[i] / d x[0] = 2**-i; y[0] and the rest of x are not read.
    np.testing.assert_allclose(slopes[0][0], [(weights * 0.5 ** np.arange(4)).sum(), 0, 0, 0])
    for with_it, without in zip(*slopes, strict=True):
        np.testing.assert_allclose(with_it, without)


def test_kernels_that_work_in_place_pass_opcheck(aicpu_add: Custom) -> None:
    for op in (loops(decay, "native", inplace={0: 0}), aicpu_add):
        report = opcheck(op, X[1], Y, skip=["gradient", "refusals"])
        assert report.ok, report


def doubled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = 2.0 * x[i]
    return y


@pytest.mark.parametrize("lower", ["xla", "native"])
def test_loops_that_return_an_array_of_their_own_say_how_to_work_in_place(lower: str) -> None:
    with pytest.raises(errors.ArgumentValueError) as caught:
        loops(doubled, lower, inplace={0: 0})(X[0])
    assert str(caught.value) == (
        "Custom 'doubled' on CPU: inplace names output 0 and parameter 'x'; the kernel returns "
        "'y' there, an array of its own.\nHave the loops write to 'x' and return it."
    )


def test_kernels_without_buffers_of_their_own_refuse_it() -> None:
    said = "option inplace is for func_type 'aicpu' or .*; this op is 'tbe'"
    with pytest.raises(errors.ArgumentValueError, match=said):
        tbe(lambda te, x, y: te.vadd(x, y), inplace={0: 0})
