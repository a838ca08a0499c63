"""Axes as MindSpore's functions take them, checked: JAX raises IndexError for some, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msops.errors import ArgumentRuntimeError, ArgumentTypeError, ArgumentValueError

Array = Any
Axis = int | Sequence[int] | None


def axis_of(x: Array, axis: Any, who: str) -> int:
    """Returns the place of an axis of `x`, from 0 on.

    Raises:
      ArgumentTypeError: it is no int.
      ArgumentValueError: `x` has no such axis.
    """
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise ArgumentTypeError.explained(
            who, f"expected an int as axis; got {axis!r}", "Count axes from 0."
        )
    place = axis.__index__()
    if not -x.ndim <= place < x.ndim:
        raise ArgumentValueError.explained(
            who,
            f"expected an axis of an array of shape {tuple(x.shape)}; got {place}",
            f"Count axes from {-x.ndim} to {x.ndim - 1}."
            if x.ndim
            else "It has one entry and no axes.",
        )
    return place % x.ndim


def axes_of(x: Array, axis: Any, who: str) -> int | tuple[int, ...] | None:
    """Returns axes as JAX takes them: ``()`` is None, all; what has no axes has 0 and -1 as all.

    Raises:
      ArgumentTypeError, ArgumentValueError: one is no axis of `x`.
      ArgumentRuntimeError: one is there twice.
    """
    if axis is None:
        return None
    if not isinstance(axis, (tuple, list)):
        return None if x.ndim == 0 and axis in (0, -1) else axis_of(x, axis, who)
    if x.ndim == 0 and set(axis) <= {0, -1}:
        return None
    places = tuple(axis_of(x, entry, who) for entry in axis)
    if len(set(places)) < len(places):
        raise ArgumentRuntimeError.explained(
            who, f"expected each axis once; got {tuple(axis)}", "Name every axis once."
        )
    return places or None
