"""Boxes of positions in an array: along each axis the first, and the one after the last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""The first position along an axis, and the one after the last."""

Box: TypeAlias = tuple[Span, ...]


def hull(boxes: Sequence[Box]) -> Box:
    """Returns the smallest box around some boxes."""
    axes = zip(*boxes, strict=True)
    return tuple((min(low for low, _ in axis), max(high for _, high in axis)) for axis in axes)


def common(boxes: Sequence[Box]) -> Box:
    """Returns the box that is in all of some boxes."""
    axes = zip(*boxes, strict=True)
    return tuple((max(low for low, _ in axis), min(high for _, high in axis)) for axis in axes)


def size(box: Box) -> int:
    """Returns how many positions a box has."""
    return math.prod(max(0, high - low) for low, high in box)
