"""How arrays are divided over devices, and how those of one call are divided alike.

XLA says of each array into how many parts each of its dimensions is cut, and which devices hold
each part. A call can run where every device's parts belong together, so one array leads and the
others follow.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from msops._jax_seam.division import Dimensions, DivisionPlan, Names, Tiling


@dataclasses.dataclass(frozen=True)
class Gathered:
    """A dimension of an input that is divided where it must not be.

    Attributes:
      array: number of the flat input.
      axis: of its dimensions.
      over: what it is divided over, as text.
    """

    array: int
    axis: int
    over: str

    def __str__(self) -> str:
        return f"input {self.array}, dimension {self.axis}, is divided over {self.over}"


def plan(dimensions: Dimensions, found: Sequence[Tiling]) -> DivisionPlan:
    """Returns how each device computes its part of the outputs from its parts of the inputs.

    Args:
      dimensions: of the call's arrays.
      found: the tilings that XLA found for the inputs, then the outputs. The array that is in the
        most parts leads, as far as its dimensions are independent and divided evenly.
    """
    kept = [
        _kept(dimensions, names, tiling)
        for names, tiling in zip(dimensions.arrays, found, strict=True)
    ]
    parts = [
        math.prod(tiling.tiles[axis] for axis in axes.values())
        for axes, tiling in zip(kept, found, strict=True)
    ]
    first = parts.index(max(parts))
    leader, axes = found[first], kept[first]
    return DivisionPlan(
        [_follow(leader, axes, names) for names in dimensions.arrays],
        parts[first],
        [_groups(leader, axes, names) for names in dimensions.outputs],
    )


def find_gathered(dimensions: Dimensions, found: Sequence[Tiling]) -> list[Gathered]:
    """Returns the dimensions of the inputs of which each device gets more than the part it has.

    They must not be divided, or another array leads.

    Args:
      dimensions: of the call's arrays.
      found: as `plan` gets them.
    """
    gathered = []
    planned = plan(dimensions, found).tilings
    for index, names in enumerate(dimensions.inputs):
        free = _kept(dimensions, names, found[index])
        shape = dimensions.shape(names)
        counts = zip(names, shape, found[index].tiles, planned[index].tiles, strict=True)
        for axis, (name, size, have, get) in enumerate(counts):
            if have > get:
                reason = ""
                if name in free:
                    reason = ", unlike the array in the most parts"
                elif name in dimensions.independent:
                    reason = f", a number that does not divide its size, {size}"
                gathered.append(Gathered(index, axis, f"{have} devices{reason}"))
    return gathered


def _kept(dimensions: Dimensions, names: Names, tiling: Tiling) -> dict[str, int]:
    """Returns the dimensions, by name and number, that stay divided as they are."""
    shape = dimensions.shape(names)
    return {
        name: axis
        for axis, (name, size, tiles) in enumerate(zip(names, shape, tiling.tiles, strict=True))
        if tiles > 1 and name in dimensions.independent and size % tiles == 0
    }


def _follow(leader: Tiling, kept: dict[str, int], names: Names) -> Tiling:
    """Returns the tiling by which each device has what belongs to its part of the leader."""
    front = [kept[name] for name in names if name in kept]
    rest = [axis for axis in range(leader.devices.ndim - 1) if axis not in front]
    tiles = tuple(leader.tiles[kept[name]] if name in kept else 1 for name in names)
    devices = leader.devices.transpose(*front, *rest, leader.devices.ndim - 1)
    return Tiling(tiles, devices.reshape(*tiles, -1, leader.devices.shape[-1]))


def _groups(leader: Tiling, kept: dict[str, int], names: Names) -> np.ndarray | None:
    """Returns the devices, a row per group, whose results of such an output are to be added."""
    lacking = [axis for name, axis in kept.items() if name not in names]
    if not lacking:
        return None
    rest = [axis for axis in range(leader.devices.ndim) if axis not in lacking]
    size = math.prod(leader.tiles[axis] for axis in lacking)
    return leader.devices.transpose(*rest, *lacking).reshape(-1, size)
