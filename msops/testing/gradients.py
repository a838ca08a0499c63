"""Gradients against finite differences.

For a cotangent c and a direction v, reverse mode says <vjp(c), v>, forward mode <c, jvp(v)>, and
central differences <c, f(x + h v) - f(x - h v)> / 2h. Their error is h^2 |f'''| / 6 from the curve
and eps |f| / h from rounding, which h = eps^(1/3) balances (Nocedal and Wright, Numerical
Optimization, 8.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops.errors import GradientTypeError
from msops.testing.guarded import show
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject
from msops.testing.tolerances import disagreements

_DIRECTIONS = 4
# Relative to the size of the terms, by dtype; a wrong gradient is off by far more.
_TOLERANCES = {"float64": 1e-5, "float32": 2e-2}


def check_gradient(subject: Subject) -> Finding:
    """Checks both modes, where the op has them, along random directions, one input at a time."""
    check = "gradient"
    inputs = [i for i, array in enumerate(subject.flat) if array.dtype in _REAL]
    if not inputs or not any(
        jnp.issubdtype(s.dtype, jnp.floating) for s in subject.outputs().structs
    ):
        return skipped(check, "no input, or no output, is float32 or float64")
    try:
        with jax.enable_x64(True):
            flat, precision = _widened(subject)
        # A rule may make arrays of JAX's own dtypes, jnp.zeros(1), which x64 widens.
        with jax.enable_x64(any(array.dtype.name in _WIDE for array in flat)):
            lines = [line for i in inputs for line in _compare(subject, flat, i, precision)]
    except GradientTypeError as error:
        if subject.has_rule:
            raise
        return skipped(check, str(error).splitlines()[0])
    if lines:
        return failed(
            check,
            f"it differs from finite differences in {precision}",
            lines,
            "Fix the bprop, or the jvp rule; if the inputs lie at a kink (of relu, max), check it "
            "elsewhere.",
        )
    return passed(check, f"as finite differences in {precision}, {_DIRECTIONS} directions an input")


_REAL = (np.float32, np.float64)
_WIDE = ("float64", "int64", "uint64", "complex128")


def _widened(subject: Subject) -> tuple[tuple[np.ndarray, ...], str]:
    """Returns the inputs in float64 if the op computes the same there, else as they are."""
    wide = tuple(x.astype(np.float64) if x.dtype in _REAL else x for x in subject.flat)
    try:
        jax.jit(subject.apply).lower(*wide)
        if subject.stands([wide]):
            results = [
                result.astype(own.dtype)
                for result, own in zip(subject.run(wide), subject.run(), strict=True)
            ]
            is_wide = all(s.dtype != np.float32 for s in subject.outputs(wide).structs)
            if is_wide and not disagreements(subject.run(), results):
                return wide, "float64"
    except GradientTypeError:
        raise
    except Exception:  # it does not take float64
        pass
    return subject.flat, "float32"


def _compare(
    subject: Subject, flat: Sequence[np.ndarray], position: int, precision: str
) -> list[str]:
    """Reports along which directions of one input the two derivatives differ."""
    rng = np.random.default_rng(position)
    point = flat[position]

    def of_input(x: jax.Array) -> list[jax.Array]:
        arguments = [jnp.asarray(array) for array in flat]
        arguments[position] = x
        results = subject.apply(*arguments)
        return [r for r in results if jnp.issubdtype(r.dtype, jnp.floating)]

    results, pull_back = jax.vjp(of_input, jnp.asarray(point))
    step = float(np.finfo(precision).eps) ** (1 / 3) * max(1.0, float(np.abs(point).max(initial=0)))
    lines = []
    for number in range(_DIRECTIONS):
        weights = [rng.normal(size=r.shape).astype(r.dtype) for r in results]
        direction = rng.choice([-1.0, 1.0], point.shape).astype(point.dtype)
        (gradient,) = pull_back([jnp.asarray(w) for w in weights])
        terms_of_mode = {"": np.asarray(gradient, np.float64) * direction}
        pushed = _push_forward(of_input, point, direction)
        if pushed is not None:
            products = [w * np.asarray(t, np.float64) for w, t in zip(weights, pushed, strict=True)]
            terms_of_mode[" forward"] = np.concatenate([np.ravel(x) for x in products])
        ahead, behind = (of_input(jnp.asarray(point + s * direction)) for s in (step, -step))
        terms = [
            w.astype(np.float64) * (np.asarray(a, np.float64) - np.asarray(b, np.float64))
            for w, a, b in zip(weights, ahead, behind, strict=True)
        ]
        measured = sum(term.sum() for term in terms) / (2 * step)
        size = sum(np.abs(term).sum() for term in terms) / (2 * step)
        for mode, derived in terms_of_mode.items():
            scale = size + np.abs(derived).sum()
            allowed = _TOLERANCES[precision] * scale
            # Not >: a NaN is a difference.
            if not abs(derived.sum() - measured) <= allowed:
                lines.append(
                    f"input {position}, {show(point)}, direction {number}{mode}: "
                    f"{derived.sum():.6g} instead of {measured:.6g}, within {allowed:.2g}"
                )
    return lines


def _push_forward(
    function: Callable[[Any], list[jax.Array]], point: np.ndarray, direction: np.ndarray
) -> list[jax.Array] | None:
    """Returns the directional derivative by forward mode; None where the op has none."""
    try:
        return jax.jvp(function, (jnp.asarray(point),), (jnp.asarray(direction),))[1]
    except GradientTypeError:
        return None
