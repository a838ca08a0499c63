"""Derivatives of a function of arrays, against central differences of it.

For a cotangent c and a direction v, reverse mode says <vjp(c), v>, forward mode <c, jvp(v)>, and
central differences <c, f(x + h v) - f(x - h v)> / 2h. Their error is h^2 |f'''| / 6 from the curve
and eps |f| / h from rounding, which h = eps^(1/3) balances (Nocedal and Wright, Numerical
Optimization, 8.1). Several steps are extrapolated to h = 0, and how far they agree says how exact
that is (Ridders, Accurate computation of F'(x), 1982; Numerical Recipes, 5.7).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from msops.errors import GradientTypeError
from msops.testing.guarded import show
from msops.testing.tolerances import largest

Function: TypeAlias = Callable[..., Sequence[Any]]
"""Takes and returns arrays; of what it returns only floats count."""
PullBack: TypeAlias = Callable[[list[Any]], Sequence[Any]]
"""Takes cotangents of floats, and returns one gradient."""

# Dtypes whose derivatives are compared; tolerances are relative to the size of the terms.
REAL = (np.float32, np.float64)
_TOLERANCES = {"float64": 1e-5, "float32": 2e-3}
# Factors of the step that balances both errors. A kink shows least in the smallest.
_STEPS = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
# How many eps of its largest result one kernel may be off. Differences divide that by the step, so
# that it is less than what two lowerings of an op may differ by in tolerances.py.
_UNITS = 16
# The slopes of both sides come closer with the step, to 1/32 of that at the largest; at a kink they
# do not.
_KINK = 0.25
# Which part of all elements the last ones are.
_PART = 64
# The error of a limit, as a part of it, up to which differences converge. Those of a wave much
# shorter than the step do not.
_CONVERGED = 0.1


@dataclasses.dataclass(frozen=True)
class Comparison:
    """How derivatives are compared at one point.

    Attributes:
      precision: that in which the function computes: "float64" or "float32".
      directions: along how many.
      of_parts: whether the second direction, and each second one, is of the last elements alone:
        what is wrong in a few of many elements is a small part of all terms.
      has_forward: whether forward mode is compared, too, where there is one.
      only_if_smooth: whether a direction is left out along which differences do not converge, or
        have other limits on both sides.
    """

    precision: str
    directions: int
    of_parts: bool = False
    has_forward: bool = True
    only_if_smooth: bool = False
    least_slope: float = 0.0


def compare(
    function: Function,
    flat: Sequence[np.ndarray],
    position: int,
    how: Comparison,
    pull_back: PullBack | None = None,
) -> tuple[list[str], int]:
    """Reports along which directions of one input derivatives differ; counts those measured.

    Args:
      function: what is differentiated.
      flat: its arrays.
      position: of the input.
      how: how many directions, and in which precision.
      pull_back: the gradient of that input for cotangents; None for what JAX finds.
    """
    rng = np.random.default_rng(position)
    own = flat[position]
    point = as_floats(own)

    def of_input(x: jax.Array) -> list[jax.Array]:
        arguments = [jnp.asarray(array) for array in flat]
        arguments[position] = jax.lax.complex(x[..., 0], x[..., 1]) if own is not point else x
        return floats_of(function(*arguments))

    if pull_back is None:
        results, pull_back = jax.vjp(of_input, jnp.asarray(point))
    else:
        results = of_input(jnp.asarray(point))
    unit = max(float(jnp.finfo(dtype).eps) for dtype in (point.dtype, *(r.dtype for r in results)))
    balanced = unit ** (1 / 3)
    # Steps are relative to an element, or to what the array has on average: 1 may be far off.
    reach = np.maximum(np.abs(point), average_size(point) or 1)
    lines = []
    compared = 0
    for number in range(how.directions):
        weights = random_like(results, rng)
        (gradient,) = (np.asarray(g, np.float64) for g in pull_back([*map(jnp.asarray, weights)]))
        signs = rng.choice([-1.0, 1.0], point.shape)
        if number % 2 or how.of_parts:  # no terms cancel: a gradient off by a factor shows
            signs = np.where(gradient > 0, 1.0, np.where(gradient < 0, -1.0, signs))
        if number % 2 and how.of_parts:
            signs.reshape(-1)[: -max(1, point.size // _PART)] = 0
        direction = (signs * reach).astype(point.dtype)
        terms_of_mode = {"": gradient * direction}
        pushed = _push_forward(of_input, point, direction) if how.has_forward else None
        if pushed is not None:
            terms_of_mode[" forward"] = _products(weights, pushed)
        slopes, gaps = _slopes(of_input, point, direction, weights, results, balanced)
        limit = _extrapolated(slopes)
        if limit is None:
            continue
        measured, error = limit
        if abs(measured) < how.least_slope * largest(direction):
            continue
        sizes = [
            np.linalg.norm(w) * largest(np.asarray(r))
            for w, r in zip(weights, results, strict=True)
        ]
        rounding = _UNITS * unit * math.hypot(*sizes) / balanced
        if not any(slopes):  # 1 + erf(x) ends before its slope does
            norms = math.hypot(*map(np.linalg.norm, weights))
            rounding = max(rounding, _UNITS * unit * norms * largest(direction))
        scales = [max(np.abs(terms).sum(), abs(measured)) for terms in terms_of_mode.values()]
        part_of_one = _TOLERANCES[how.precision]
        if how.only_if_smooth and (
            (error > max(rounding, _CONVERGED * abs(measured)) and not _come_closer(slopes))
            or _is_kink(gaps, part_of_one * abs(measured), rounding)
        ):
            continue
        compared += 1
        for (mode, terms), scale in zip(terms_of_mode.items(), scales, strict=True):
            derived = terms.sum()
            if how.least_slope and terms.any() and math.isfinite(derived):
                continue
            part = part_of_one * scale
            # Twice, as the error is itself an estimate.
            allowed = part + 2 * error + rounding
            # Not >: a NaN is a difference.
            if not (
                abs(derived - measured) <= allowed
                or any(abs(derived - slope) <= part for slope in slopes)
            ):
                lines.append(
                    f"input {position}, {show(own)}, direction {number}{mode}: {derived:.6g} "
                    f"instead of {measured:.6g}, more than {allowed:.2g} apart"
                )
    return lines, compared


def real_inputs(flat: Sequence[np.ndarray]) -> list[int]:
    """Returns which arrays have derivatives that are compared."""
    return [i for i, array in enumerate(flat) if array.dtype in REAL]


def complex_inputs(flat: Sequence[np.ndarray]) -> list[int]:
    """Returns which arrays are of complex numbers, whose parts have derivatives."""
    return [i for i, array in enumerate(flat) if np.iscomplexobj(array)]


def as_floats(array: np.ndarray) -> np.ndarray:
    """Returns complex numbers as pairs of their parts, and others as they are."""
    if not np.iscomplexobj(array):
        return array
    return np.stack([array.real, array.imag], -1)


def floats_of(results: Sequence[Any]) -> list[Any]:
    """Returns the results that have a derivative; of complex numbers pairs of their parts."""
    floats = []
    for result in results:
        if jnp.issubdtype(result.dtype, jnp.complexfloating):
            floats.append(jnp.stack([jnp.real(result), jnp.imag(result)], -1))
        elif jnp.issubdtype(result.dtype, jnp.floating):
            floats.append(result)
    return floats


def random_like(results: Sequence[Any], rng: np.random.Generator) -> list[np.ndarray]:
    """Returns random arrays of the shapes and dtypes of others."""
    # Without a shape, NumPy returns a number.
    return [np.asarray(rng.normal(size=r.shape), r.dtype) for r in results]


def average_size(array: np.ndarray) -> float:
    """Returns the average magnitude of the finite elements; 0 without any."""
    sizes = np.abs(array)[np.isfinite(array)]
    return float(sizes.mean()) if sizes.size else 0.0


def _slopes(
    of_input: Callable[[Any], list[jax.Array]],
    point: np.ndarray,
    direction: np.ndarray,
    weights: Sequence[np.ndarray],
    results: Sequence[Any],
    balanced: float,
) -> tuple[list[float], list[float]]:
    """Returns per step the slope of both sides, and how far the slopes of the sides are apart."""
    middle = _products(weights, results)
    slopes, gaps = [], []
    for step in (balanced * factor for factor in _STEPS):
        moved = [(point + s * direction).astype(point.dtype) for s in (step, -step)]
        ahead, behind = (_products(weights, of_input(jnp.asarray(x))) for x in moved)
        slopes.append(float((ahead - behind).sum()) / (2 * step))
        # Their norm: of many short waves the sum may be small by chance.
        gaps.append(float(np.linalg.norm(ahead - middle + (behind - middle))) / step)
    return slopes, gaps


def _come_closer(slopes: Sequence[float]) -> bool:
    """Returns whether slopes differ less the smaller the step."""
    apart = np.abs(np.diff([slope for slope in slopes if math.isfinite(slope)]))
    return bool(apart[-1] <= apart[0] / 2)


def _is_kink(gaps: Sequence[float], part: float, rounding: float) -> bool:
    """Returns whether the slopes of both sides stay apart however small the step.

    They come closer again and again, or further apart than rounding makes them, where a wave is
    much shorter than the step.

    Args:
      gaps: how far apart they are at each step.
      part: what does not matter.
      rounding: what rounding makes of them.
    """
    return not all(
        gap <= max(part + rounding, _KINK * gaps[0]) and gap <= max(rounding, gaps[0])
        for gap in gaps[-3:]
    )


def _products(weights: Sequence[np.ndarray], results: Sequence[Any]) -> np.ndarray:
    """Returns each weight times its result, of all arrays in one."""
    products = [
        w.astype(np.float64) * np.asarray(r, np.float64)
        for w, r in zip(weights, results, strict=True)
    ]
    return np.concatenate([np.ravel(product) for product in products])


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
