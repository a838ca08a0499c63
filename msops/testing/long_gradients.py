"""Gradients of many elements, in programs that are compiled whole.

A rule in blocks may be wrong beyond the first. Differences along a direction take two calls,
however many elements there are; but a rule may take memory that is quadratic in them.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops.testing.finite_differences import Comparison, compare, floats_of, real_inputs
from msops.testing.subject import Subject

# What a call of a Python function may take, of some dozens, and what a gradient may write and read.
_LONGEST_S, _MOST_BYTES = 0.1, 1e8


def at_many(subject: Subject, how: Comparison) -> tuple[list[str], int]:
    """Reports where derivatives differ on arrays of many elements; counts what was measured.

    Nothing is measured if the op does not take them, or if that takes too long.
    """
    subject.check_taken(subject.flat)
    start_s = time.process_time()
    if not subject.stands([subject.flat]) or time.process_time() - start_s > _LONGEST_S:
        return [], 0
    real = real_inputs(subject.flat)

    def pull_back(inputs: Sequence[Any], weights: list[Any]) -> Sequence[Any]:
        def of_real(*values: Any) -> list[Any]:
            arguments: list[Any] = [jnp.asarray(array) for array in subject.flat]
            for index, value in zip(real, values, strict=True):
                arguments[index] = value
            return floats_of(subject.apply(*arguments))

        return jax.vjp(of_real, *inputs)[1](weights)

    inputs = [subject.flat[i] for i in real]
    wanted = jax.eval_shape(floats_of, list(subject.outputs().structs))
    weights = [np.zeros(s.shape, s.dtype) for s in wanted]
    lowered = jax.jit(pull_back).lower(inputs, weights)
    if not _bytes_of(lowered) <= _MOST_BYTES:
        return [], 0
    program = lowered.compile()

    def gradient_of(number: int, weights: list[Any]) -> Sequence[Any]:
        return [program(inputs, weights)[number]]

    found = [
        compare(subject.apply, subject.flat, i, how, functools.partial(gradient_of, number))
        for number, i in enumerate(real)
    ]
    return [line for lines, _ in found for line in lines], sum(count for _, count in found)


def _bytes_of(lowered: Any) -> float:
    """Returns what a program writes and reads, by an estimate; NaN if there is none."""
    return float((lowered.cost_analysis() or {}).get("bytes accessed", np.nan))
