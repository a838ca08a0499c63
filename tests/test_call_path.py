"""The way of a first call is short: how often it moves from one file to another."""

from __future__ import annotations

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


@pytest.mark.parametrize(
    ("way", "kernel", "most"),
    [(jax.jit, lambda x: np.sinh(x), 41), (lambda op: op, lambda x: np.cosh(x), 45)],
    ids=["jit", "eager"],
)
def test_the_first_call_of_a_python_function_moves_seldom(
    way: Callable[[Any], Any], kernel: Callable[..., Any], most: int
) -> None:
    op_of(np.tanh)(X)  # registers the handlers of the process
    steps = trace_call(way(op_of(kernel)), X)
    assert count_moves(steps) <= most, "\n".join(files_of(steps))
    assert "_calls/python_call.py" in files_of(steps)
