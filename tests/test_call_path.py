"""The way of a first call is short: how often it moves from one file to another."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from call_trace import count_moves, files_of, trace_call

import msops

X = jnp.array([1.0, 2.0])


def op_of(kernel: Callable[..., Any]) -> msops.Custom:
    return msops.Custom(kernel, lambda x: x, lambda x: x)


# Newer versions of JAX look up the compiled function once more. Five moves are of nesting.py.
MOST = 44 if jax.__version_info__ < (0, 11) else 48


@pytest.mark.parametrize(
    ("way", "kernel"),
    [(jax.jit, lambda x: np.sinh(x)), (lambda op: op, lambda x: np.cosh(x))],
    ids=["jit", "eager"],
)
def test_the_first_call_of_a_python_function_moves_seldom(
    way: Callable[[Any], Any], kernel: Callable[..., Any]
) -> None:
    op_of(np.tanh)(X)  # registers the handlers of the process
    # How often jax.jit hashes the op, and compares it with those that it knows, depends on them.
    looked_up = {"Custom.__eq__", "Custom.__hash__"}
    steps = [s for s in trace_call(way(op_of(kernel)), X) if s.function not in looked_up]
    assert count_moves(steps) <= MOST, "\n".join(files_of(steps))
    assert "_calls/python_call.py" in files_of(steps)


# At first there were 898 and 819 moves, with 8 passes to C. There are 46 passes now, and each adds
# two to eight moves: it has a file of its own, and calls the walker. Estimates look at more, too,
# array operations are compared with what XLA would rewrite, each statement may read a scalar whose
# type is not known yet, five files print vectors, and operations hide from XLA what it would
# rewrite.
@pytest.mark.parametrize(("form", "most"), [("xla", 518), ("native", 781)])
def test_the_first_call_of_a_loop_kernel_moves_seldom(form: str, most: int) -> None:
    # Compiling is no part of the way: a child leaves the kernel's library in the build cache.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(call_first, (form,))
    op_of_form(triple, form)(X)
    op = op_of_form(FIRST_CALLED[form], form)
    steps = trace_call(op, X)
    factor = {"xla": 4.0, "native": 2.0}[form]
    np.testing.assert_array_equal(op(X), factor * X)
    assert count_moves(steps) <= most, "\n".join(files_of(steps))
    assert "_loops/passes/simplify.py" in files_of(steps)


def op_of_form(kernel: Callable[..., Any], form: str) -> msops.Custom:
    return msops.Custom(kernel, func_type="akg", compile_attrs={"lower": form})


def call_first(form: str) -> None:
    op_of_form(FIRST_CALLED[form], form)(X)


def double(x: Any) -> Any:
    y = output_tensor(x.shape, x.dtype)  # type: ignore[name-defined]  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = 2.0 * x[i]
    return y


def triple(x: Any) -> Any:
    y = output_tensor(x.shape, x.dtype)  # type: ignore[name-defined]  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = 3.0 * x[i]
    return y


def quadruple(x: Any) -> Any:
    y = output_tensor(x.shape, x.dtype)  # type: ignore[name-defined]  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = 4.0 * x[i]
    return y


# Forms of equal kernels share what is made of them, so each form has a kernel of its own.
FIRST_CALLED = {"xla": quadruple, "native": double}
