"""Gradients against finite differences.

For a cotangent c and a direction v, reverse mode says <vjp(c), v>, forward mode <c, jvp(v)>, and
central differences <c, f(x + h v) - f(x - h v)> / 2h. Their error is h^2 |f'''| / 6 from the curve
and eps |f| / h from rounding, which h = eps^(1/3) balances (Nocedal and Wright, Numerical
Optimization, 8.1). Several steps are extrapolated to h = 0, and how far they agree says how exact
that is (Ridders, Accurate computation of F'(x), 1982; Numerical Recipes, 5.7).
"""

from __future__ import annotations

import itertools
import math
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
# Relative to the size of the terms, by dtype.
_TOLERANCES = {"float64": 1e-5, "float32": 2e-3}
# Factors of the step that balances both errors. A kink shows least in the smallest.
_STEPS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
# How many eps of its largest result one kernel may be off. Differences divide that by the step, so
# that it is less than what two lowerings of an op may differ by in tolerances.py.
_UNITS = 16


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
            found = [_compare(subject, flat, i, precision) for i in inputs]
    except GradientTypeError as error:
        if subject.has_rule:
            raise
        return skipped(check, str(error).splitlines()[0])
    lines = [line for reported, _ in found for line in reported]
    if not any(measured for _, measured in found):
        return skipped(check, "results beside the inputs are not finite")
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
) -> tuple[list[str], int]:
    """Reports along which directions of one input derivatives differ; counts those measured."""
    rng = np.random.default_rng(position)
    point = flat[position]

    def of_input(x: jax.Array) -> list[jax.Array]:
        arguments = [jnp.asarray(array) for array in flat]
        arguments[position] = x
        results = subject.apply(*arguments)
        return [r for r in results if jnp.issubdtype(r.dtype, jnp.floating)]

    results, pull_back = jax.vjp(of_input, jnp.asarray(point))
    unit = max(float(jnp.finfo(dtype).eps) for dtype in (point.dtype, *(r.dtype for r in results)))
    balanced = unit ** (1 / 3)
    # Steps are relative to an element, or to what the array has on average: 1 may be far off.
    sizes_of_point = np.abs(point)[np.isfinite(point)]
    average = float(sizes_of_point.mean()) if sizes_of_point.size else 0.0
    reach = np.maximum(np.abs(point), average or 1)
    lines = []
    compared = 0
    for number in range(_DIRECTIONS):
        weights = [rng.normal(size=r.shape).astype(r.dtype) for r in results]
        (gradient,) = (np.asarray(g, np.float64) for g in pull_back([*map(jnp.asarray, weights)]))
        signs = rng.choice([-1.0, 1.0], point.shape)
        if number % 2:  # no two terms cancel: a gradient that is off by a factor shows
            signs = np.where(gradient > 0, 1.0, np.where(gradient < 0, -1.0, signs))
        direction = (signs * reach).astype(point.dtype)
        terms_of_mode = {"": gradient * direction}
        pushed = _push_forward(of_input, point, direction)
        if pushed is not None:
            terms_of_mode[" forward"] = _products(weights, pushed)
        slopes = []
        for step in (balanced * factor for factor in _STEPS):
            moved = [(point + s * direction).astype(point.dtype) for s in (step, -step)]
            ahead, behind = (_products(weights, of_input(jnp.asarray(x))) for x in moved)
            slopes.append(float((ahead - behind).sum()) / (2 * step))
        limit = _extrapolated(slopes)
        if limit is None:
            continue
        measured, error = limit
        compared += 1
        sizes = [np.linalg.norm(w) * _largest(r) for w, r in zip(weights, results, strict=True)]
        rounding = _UNITS * unit * float(np.linalg.norm(sizes)) / balanced
        for mode, terms in terms_of_mode.items():
            derived = terms.sum()
            scale = max(np.abs(terms).sum(), abs(measured))
            part = _TOLERANCES[precision] * scale
            # Twice, as the error is itself an estimate.
            allowed = part + 2 * error + rounding
            # Not >: a NaN is a difference.
            if not (
                abs(derived - measured) <= allowed
                or any(abs(derived - slope) <= part for slope in slopes)
            ):
                lines.append(
                    f"input {position}, {show(point)}, direction {number}{mode}: {derived:.6g} "
                    f"instead of {measured:.6g}, more than {allowed:.2g} apart"
                )
    return lines, compared


def _products(weights: Sequence[np.ndarray], results: Sequence[Any]) -> np.ndarray:
    """Returns each weight times its result, of all arrays in one."""
    products = [
        w.astype(np.float64) * np.asarray(r, np.float64)
        for w, r in zip(weights, results, strict=True)
    ]
    return np.concatenate([np.ravel(product) for product in products])


def _largest(array: Any) -> float:
    """Returns the largest finite absolute value in an array."""
    sizes = np.abs(np.asarray(array, np.float64))
    return float(sizes[np.isfinite(sizes)].max(initial=0))


def _extrapolated(slopes: Sequence[float]) -> tuple[float, float] | None:
    """Returns the limit of slopes, at steps each half of that before, and how exact it is.

    The first steps may leave the domain of the function; then they do not count. One that is left
    does not show how exact it is: None. At a kink slopes differ at every step, although a limit may
    look exact by chance.
    """
    inside = list(itertools.dropwhile(lambda slope: not math.isfinite(slope), slopes))
    if len(inside) < 2:
        return None
    best, error = math.nan, math.inf
    above: list[float] = []
    for slope in inside:
        row = [slope]
        for order, older in enumerate(above, 1):
            row.append((4**order * row[-1] - older) / (4**order - 1))
            off = max(abs(row[-1] - row[-2]), abs(row[-1] - older))
            if off < error:
                best, error = row[-1], off
        above = row
    return best, max(error, float(np.median(np.abs(np.diff(inside)))))


def _push_forward(
    function: Callable[[Any], list[jax.Array]], point: np.ndarray, direction: np.ndarray
) -> list[jax.Array] | None:
    """Returns the directional derivative by forward mode; None where the op has none."""
    try:
        return jax.jvp(function, (jnp.asarray(point),), (jnp.asarray(direction),))[1]
    except GradientTypeError:
        return None
