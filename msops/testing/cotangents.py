"""A rule for gradients at cotangents that finite differences do not give it: zeros, large, NaN.

A gradient is linear in its cotangents. Where their sizes, signs and zeros do not come in, a rule
that divides by one, clips it, or takes its magnitude is as right as another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from msops.testing.finite_differences import floats_of
from msops.testing.subject import Subject
from msops.testing.tolerances import close, largest

Arrays: TypeAlias = list[np.ndarray]

# The square of a number that is so much larger, or smaller, is none of float32.
_FACTOR = 2.0**66
_LARGE = "large cotangents"
_FREED = 128
"""Pieces of memory of a size that are freed before a call."""


def nonlinear_lines(subject: Subject, real: Sequence[int]) -> list[str]:
    """Reports for which cotangents the gradient is not linear in them."""
    pull_back, cotangents = rule_of(subject, real)
    own = pull_back(cotangents)
    lines: list[str] = []
    for name, pulled, expected in _cases(pull_back, cotangents, own):
        try:
            lines += _unlike(name, real, own, pulled(), expected)
        except Exception as error:
            first = str(error).splitlines()[:1]
            lines.append(": ".join([name, type(error).__name__, *first]))
    return lines


def rule_of(
    subject: Subject, real: Sequence[int]
) -> tuple[Callable[[Sequence[np.ndarray]], Arrays], Arrays]:
    """Returns the gradient at the inputs as a function of cotangents, and some of these."""

    def of_real(*inputs: jax.Array) -> list[jax.Array]:
        arguments = [jnp.asarray(array) for array in subject.flat]
        for index, x in zip(real, inputs, strict=True):
            arguments[index] = x
        return floats_of(subject.apply(*arguments))

    results, linear = jax.vjp(of_real, *(jnp.asarray(subject.flat[i]) for i in real))

    def pull_back(cotangents: Sequence[np.ndarray]) -> Arrays:
        given = [jnp.array(c) for c in cotangents]
        _leave_numbers([subject.flat[index] for index in real])
        gradients = linear(given)
        return [np.array(gradient) for gradient in gradients]

    rng = np.random.default_rng(0)
    signs = [rng.choice([-1.0, 1.0], r.shape) * rng.uniform(0.5, 1.5, r.shape) for r in results]
    return pull_back, [np.asarray(s, r.dtype) for s, r in zip(signs, results, strict=True)]


def _leave_numbers(arrays: Sequence[np.ndarray]) -> None:
    """Frees memory that is not 0, for what a rule does not write: all that is free of a size."""
    sizes = {array.nbytes + more for array in arrays for more in range(0, 192, 16)}
    _ = [np.full(size, 77, np.uint8) for size in sizes for _ in range(_FREED)]


def _cases(
    pull_back: Callable[[Sequence[np.ndarray]], Arrays], cotangents: Arrays, own: Arrays
) -> Iterator[tuple[str, Callable[[], Arrays], Arrays]]:
    """Yields what is tried, in words; what comes of it, and what should."""

    def scaled(factor: float) -> Arrays:
        return [np.asarray(c * c.dtype.type(factor), c.dtype) for c in cotangents]

    def divided(factor: float) -> Callable[[], Arrays]:
        return lambda: [np.asarray(g / g.dtype.type(factor)) for g in pull_back(scaled(factor))]

    def of_parts() -> Arrays:
        parts = [
            pull_back([np.where(_places(c) % 2 == part, c, 0) for c in cotangents])
            for part in (0, 1)
        ]
        return [np.asarray(even + odd) for even, odd in zip(*parts, strict=True)]

    yield "cotangents of 0", lambda: pull_back(scaled(0.0)), [np.zeros_like(g) for g in own]
    yield "cotangents of which each second is 0, and the others", of_parts, own
    if all(array.dtype in (np.float32, np.float64) for array in (*cotangents, *own)):
        yield _LARGE, divided(_FACTOR), own
        yield "small cotangents", divided(1 / _FACTOR), own
    lost = [np.full_like(g, np.nan) for g in own]
    yield "cotangents of NaN", lambda: pull_back(scaled(np.nan)), lost


def _places(array: np.ndarray) -> np.ndarray:
    return np.arange(array.size).reshape(array.shape)


def _unlike(
    name: str, real: Sequence[int], own: Arrays, got: Arrays, expected: Arrays
) -> Iterator[str]:
    """Yields where gradients are not as they should be, but where the slope is 0 or not finite."""
    for position, slope, gradient, right in zip(real, own, got, expected, strict=True):
        counts = np.isfinite(slope) & ((slope != 0) | np.isfinite(right))
        if name == _LARGE:  # what overflows on the way says nothing of the rule
            counts &= np.isfinite(gradient)
        apart = counts & ~close(right, gradient, largest(slope))
        elements = np.flatnonzero(apart)
        if elements.size:
            first = np.unravel_index(elements[0], right.shape)
            yield (
                f"{name}: gradient of input {position}: {elements.size} of {apart.size} elements "
                f"are not linear, the first [{', '.join(str(int(i)) for i in first)}]: "
                f"{gradient[first]:g} instead of {right[first]:g}"
            )
