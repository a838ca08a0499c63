"""`jax_debug_nans` and `jax_debug_infs`: FloatingPointError, which names the op."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import aicpu, aot, first, multiply, tbe
from extension_modules import extension
from quick_cases import in_turn
from support_table import HANDLER

import msops
from msops import Custom, Tensor, ops
from msops.nn import Cell

X = jnp.array([1.0, -1.0, 4.0])
LOGARITHM = """
#include <cmath>
#include <cstdint>
extern "C" int Log(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  for (int64_t i = 0; i < shapes[0][0]; ++i) {
    static_cast<float *>(params[1])[i] = std::log(static_cast<float *>(params[0])[i]);
  }
  return 0;
}
"""
CALLS: list[Any] = []


def host_log(x: Any) -> Any:
    CALLS.append(x.shape)
    with np.errstate(all="ignore"):
        return np.log(x)


def loop_log(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = log(x[i])  # noqa: F821
    return y


def quotient(x: Any, out: Any, dout: Any) -> Any:
    return (dout / x,)


def loop(lower: str) -> Any:
    return Custom(loop_log, func_type="akg", compile_attrs={"lower": lower})


def of_product(op: Custom) -> Callable[..., Any]:
    """Returns a function whose NaN is the op's: infinity times 0."""
    return lambda x: op(jnp.where(x < 0, jnp.inf, x), jnp.where(x < 0, 0, jnp.ones_like(x)))


def make(kind: str, folder: Path) -> Callable[..., Any]:
    if kind == "a C++ function":
        source = folder / "logarithm.cc"
        source.write_text(LOGARITHM)
        return Custom(f"{source}:Log", first, first, bprop=quotient)
    if kind == "an extension":
        runners = extension("runners")
        # The square root is of JAX, the NaN of the kernel: -inf + inf.
        return lambda x: runners.axpy(jnp.where(x < 0, -jnp.inf, x), jnp.where(x < 0, jnp.inf, x))
    return KINDS[kind]()


KINDS: dict[str, Callable[[], Any]] = {
    "a Python function": lambda: Custom(host_log, first, first, bprop=quotient),
    "without a gradient": lambda: Custom(host_log, first, first),
    "with forward mode": lambda: Custom(host_log, first, first, bprop=quotient, forward=True),
    "a callback": lambda: Custom(host_log, first, first, compile_attrs={"lower": "callback"}),
    "with an effect": lambda: Custom(host_log, first, first, stateful=True),
    "a loop as operations": lambda: loop("xla"),
    "a loop as C": lambda: loop("native"),
    "a loop": lambda: Custom(loop_log, func_type="akg"),
    "a hybrid kernel": lambda: of_product(Custom(ops.kernel(multiply), func_type="hybrid")),
    "a TBE kernel": lambda: of_product(tbe(lambda te, x, y: te.vmul(x, y))),
    "an AICPU kernel": lambda: of_product(aicpu("Mul")),
    "an operator of Ascend": lambda: Custom("aclnnLog", first, first, "aot"),
    "a handler of XLA": lambda: of_product(Custom(HANDLER, first, first, "ffi")),
    "a copy to the host": lambda: of_product(aot("Multiply", host=True)),
}

NAMES = {
    "an extension": "Runner 'Axpy'",
    "a hybrid kernel": "Custom 'multiply'",
    "a TBE kernel": "Custom 'entry'",
    "an AICPU kernel": "Custom 'multiply.cc'",
    "a handler of XLA": "Custom 'MultiplyHandler'",
    "a copy to the host": "Custom 'Multiply'",
}

USES: dict[str, Callable[[Any], Any]] = {
    "eager": lambda op: op(X),
    "jit": jax.jit(lambda op: op(X), static_argnums=0),
    "jit of several": lambda op: jax.jit(lambda x: jnp.sin(op(x + 0) + 1))(X),
    "vmap": lambda op: jax.vmap(op)(X[None]),
    "jit of vmap": lambda op: jax.jit(jax.vmap(op))(X[None]),
    "without jit": lambda op: without_jit(lambda: op(X)),
}


def without_jit(function: Callable[[], Any]) -> Any:
    with jax.disable_jit():
        return function()


@pytest.fixture(params=["jax_debug_nans"], autouse=True)
def finds_nans(request: Any) -> Iterator[None]:
    # JAX looks at no result of a program that it has called before in a thread that has left
    # `jax.debug_nans(False)`, as its own code does.
    jax.clear_caches()
    jax.config.update(request.param, True)
    yield
    jax.config.update(request.param, False)


@pytest.mark.parametrize(("kind", "use"), in_turn([*KINDS, "a C++ function", "an extension"], USES))
def test_a_nan_ends_in_an_error_that_names_the_op(kind: str, use: str, tmp_path: Path) -> None:
    op = make(kind, tmp_path)
    np.testing.assert_allclose(op(jnp.abs(X)), op(jnp.abs(X)))
    jax.clear_caches()
    name = NAMES.get(kind, "Custom '.*[lL]og'")
    for _ in range(2):
        with pytest.raises(FloatingPointError, match=name):
            USES[use](op)


@pytest.mark.parametrize("kind", ["a Python function", "with forward mode", "a loop"])
@pytest.mark.parametrize(
    "differentiate",
    [
        lambda op: jax.grad(lambda x: op(x).sum())(X),
        lambda op: jax.jit(jax.value_and_grad(lambda x: op(x).sum()))(X),
    ],
)
def test_a_nan_of_a_differentiated_op_names_it(
    kind: str, differentiate: Callable[[Any], Any], tmp_path: Path
) -> None:
    op = make(kind, tmp_path)
    with pytest.raises(FloatingPointError, match=r"Custom '.*log'"):
        differentiate(op)


def test_a_nan_of_a_derivative_alone() -> None:
    def size(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821
        for i in range(x.shape[0]):
            y[i] = sqrt(x[i] * x[i])  # noqa: F821
        return y

    op = Custom(size, func_type="akg")
    for gradient in (jax.grad(lambda x: op(x).sum()), jax.jit(jax.grad(lambda x: op(x).sum()))):
        with pytest.raises(FloatingPointError):
            gradient(jnp.zeros(3))


def test_a_nan_does_not_run_the_function_again() -> None:
    op = Custom(host_log, first, first, stateful=True)
    for wanted in (1, 1):
        CALLS.clear()
        with pytest.raises(FloatingPointError):
            op(X)
        assert len(CALLS) == wanted


class OfCell(Cell):
    def __init__(self) -> None:
        super().__init__()
        self.op = Custom(host_log, first, first)

    def construct(self, x: Any) -> Any:
        return self.op(x)


def test_on_tensors() -> None:
    x = Tensor(np.asarray(X))
    cell = OfCell()
    for call in (cell.op, cell, msops.jit(cell)):
        with pytest.raises(FloatingPointError, match="Custom 'host_log'"):
            call(x)


@pytest.mark.parametrize("finds_nans", ["jax_debug_infs"], indirect=True)
def test_infinities() -> None:
    op = Custom(host_log, first, first)
    with pytest.raises(FloatingPointError, match="jax_debug_infs forbids"):
        op(jnp.zeros(3))
    np.testing.assert_array_equal(op(jnp.full(3, jnp.nan)), np.full(3, np.nan))
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="jax_debug_nans or"):
        op(X)
    alone = Custom(lambda: np.float32(np.inf), (), np.float32)
    with pytest.raises(FloatingPointError, match="jax_debug_infs forbids"):
        alone()
