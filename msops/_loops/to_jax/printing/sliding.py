"""Convolutions, and reductions over sliding windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jax import lax

from msops._base.extremes import window_extreme
from msops._loops.to_jax.printing.contractions import precision
from msops._loops.to_jax.printing.environment import Environment
from msops._loops.to_jax.printing.evaluate import evaluate
from msops._loops.to_jax.printing.reductions import FOUND_BY, reduce_value, with_signs, zero_keys
from msops._loops.to_jax.printing.values import Array, Value, in_float32
from msops._loops.to_jax.raising.steps import Convolve, Pool
from msops._loops.to_jax.raising.windows import Window


def convolve(
    step: Convolve, image: Value, kernel: Value, env: Environment, wide: Environment
) -> Value:
    """Returns a convolution.

    Args:
      step: the convolution.
      image: the factor that slides, over `wide`.
      kernel: the other factor.
      env: of the nest.
      wide: the same with the windows' own axes.
    """
    taps = [window.tap for window in step.windows]
    outputs = [window.output for window in step.windows]
    slides = [window.axis for window in step.windows]
    over = set(step.over)
    image = reduce_value("add", image, _only(image, kernel, over - set(taps)), wide)
    kernel = reduce_value("add", kernel, _only(kernel, image, over - set(taps)), env)
    shared = [a for a in env.order if a in image.axes and a in kernel.axes]
    groups = [axis for axis in shared if axis not in over]
    features = [axis for axis in shared if axis in over]
    batch = [axis for axis in image.axes if axis not in {*shared, *slides}]
    filters = [axis for axis in kernel.axes if axis not in {*shared, *taps}]
    extents = {**env.extents, **wide.extents}

    def flat(value: Value, *parts: Sequence[str]) -> Array:
        array = value.spread([axis for part in parts for axis in part], extents)
        return lax.reshape(array, [math.prod(extents[a] for a in part) for part in parts])

    lhs = flat(image, batch, [*groups, *features], *([axis] for axis in slides))
    rhs = flat(kernel, [*groups, *filters], features, *([axis] for axis in taps))
    backwards = [2 + i for i, window in enumerate(step.windows) if window.dilation < 0]
    result = _conv(
        lhs, lax.rev(rhs, backwards) if backwards else rhs, step.windows,
        math.prod(extents[axis] for axis in groups),
    )  # fmt: skip
    axes = (*batch, *groups, *filters, *outputs)
    result = lax.reshape(result, [extents[axis] for axis in axes])
    value = Value(result, axes)
    return env.apply(lax.neg, value) if step.is_negated else value


def _only(value: Value, other: Value, over: set[str]) -> list[str]:
    return [axis for axis in value.axes if axis in over and axis not in other.axes]


def _conv(lhs: Array, rhs: Array, windows: Sequence[Window], groups: int) -> Array:
    convolution = partial(
        lax.conv_general_dilated,
        window_strides=[window.stride for window in windows],
        padding=[(0, 0)] * len(windows),
        rhs_dilation=[abs(window.dilation) for window in windows],
        feature_group_count=groups,
        precision=precision(),
    )
    return in_float32(convolution, lhs, rhs)


def pool(step: Pool, env: Environment, widened: Callable[[Environment], Environment]) -> Value:
    """Returns a reduction over sliding windows.

    Args:
      step: the reduction.
      env: of the nest.
      widened: returns such an environment with the windows' own axes.
    """
    wide = widened(env)
    best = _pooled(step, step.stored_op, evaluate(step.value, wide), env, wide)
    if not step.keeps:
        return best
    slides = {window.tap: window.axis for window in step.windows}
    along = [slides.get(axis, axis) for axis in step.over]

    def keys(inner: Environment) -> Value:
        # Here once more, or XLA would keep all values for the case that this runs.
        wide = widened(inner)
        found = zero_keys(evaluate(step.value, wide), along, step.keeps, wide)
        return _pooled(step, FOUND_BY[step.keeps], found, inner, wide)

    return with_signs(best, keys, step.nest.iterations, env)


def _pooled(step: Pool, op: str, value: Value, env: Environment, wide: Environment) -> Value:
    taps = {window.tap for window in step.windows}
    value = reduce_value(op, value, [a for a in step.over if a not in taps], wide)
    by_axis = {window.axis: window for window in step.windows}
    lengths = [env.extents[by_axis[a].tap] if a in by_axis else 1 for a in value.axes]
    strides = [by_axis[a].stride if a in by_axis else 1 for a in value.axes]
    dilations = [by_axis[a].dilation if a in by_axis else 1 for a in value.axes]
    array = _reduce_window(op, value.array, lengths, strides, dilations)
    axes = tuple(by_axis[a].output if a in by_axis else a for a in value.axes)
    return Value(array, axes)


def _reduce_window(
    op: str, array: Array, lengths: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> Array:
    if op != "add":
        op = op.rpartition(" ")[2]
        return window_extreme(op, array, lengths, strides, [(0, 0)] * array.ndim, dilations)
    zero = np.zeros((), array.dtype)
    return lax.reduce_window(
        array, zero, lax.add, tuple(lengths), tuple(strides), "VALID",
        window_dilation=tuple(dilations),
    )  # fmt: skip
