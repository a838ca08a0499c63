"""How a call is divided over devices, as the seam hands it to XLA and gets it back.

Dimensions of one name are equally long and divided together. XLA reports for each array into how
many parts each of its dimensions is cut, and which devices hold each part.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

Names = tuple[str, ...]


def shared_names(
    inputs: Sequence[Names], outputs: Sequence[Names], summed: frozenset[str] | None = None
) -> frozenset[str]:
    """Returns the names that are in some input, and in each output that is no sum over them."""
    if not outputs:
        return frozenset()
    in_inputs = frozenset(name for names in inputs for name in names)
    if summed is not None:
        return in_inputs & summed
    return in_inputs.intersection(*outputs)


@dataclasses.dataclass(frozen=True)
class Dimensions:
    """The names of the dimensions of a call's arrays.

    Attributes:
      inputs: per flat input a name for each dimension.
      outputs: likewise.
      sizes: the length of each name.
      summed: of a derivative, the names along which its kernel may be divided: an output that
        lacks one of them is the sum over its parts. None of a kernel itself.
    """

    inputs: tuple[Names, ...]
    outputs: tuple[Names, ...]
    sizes: tuple[tuple[str, int], ...]
    summed: frozenset[str] | None = None

    @functools.cached_property
    def independent(self) -> frozenset[str]:
        """The names along which arrays may be divided."""
        return shared_names(self.inputs, self.outputs, self.summed)

    @property
    def arrays(self) -> tuple[Names, ...]:
        """The names of the inputs, then of the outputs."""
        return self.inputs + self.outputs

    def shape(self, names: Names) -> tuple[int, ...]:
        """Returns the lengths of names."""
        sizes = dict(self.sizes)
        return tuple(sizes[name] for name in names)

    def with_axis(self, size: int, extents: Sequence[int | None]) -> Dimensions:
        """Returns the names of the same arrays with one more leading axis, which may be divided.

        Args:
          size: its length in the outputs.
          extents: its length in each input, `size` or 1; None where an input has no such axis.
        """
        name = f"axis {len(self.sizes)}"
        sizes = {**dict(self.sizes), name: size}
        inputs = []
        for index, (names, extent) in enumerate(zip(self.inputs, extents, strict=True)):
            # What has one entry for all is no part of a division.
            front = name if extent == size else f"{name} of input {index}"
            inputs.append(names if extent is None else (front, *names))
            if extent is not None:
                sizes[front] = extent
        outputs = tuple((name, *names) for names in self.outputs)
        summed = None if self.summed is None else self.summed | {name}
        return Dimensions(tuple(inputs), outputs, tuple(sizes.items()), summed)


@dataclasses.dataclass(frozen=True)
class Tiling:
    """A division of an array.

    Attributes:
      tiles: the number of parts along each dimension.
      devices: the numbers of the devices that hold each part: shape (*tiles, copies, groups). A
        group is what `jax.shard_map` runs a program for, if it maps over other axes.
    """

    tiles: tuple[int, ...]
    devices: np.ndarray

    def part(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Returns the shape of a part of an array of a shape that is divided evenly."""
        return tuple(size // tiles for size, tiles in zip(shape, self.tiles, strict=True))


def undivided(rank: int, devices: np.ndarray) -> Tiling:
    """Returns the tiling by which each of `devices`, (copies, groups), has the whole array."""
    return Tiling((1,) * rank, devices.reshape(*(1,) * rank, *devices.shape))


@dataclasses.dataclass(frozen=True)
class DivisionPlan:
    """How devices compute a call in parts.

    Attributes:
      tilings: of the inputs, then of the outputs.
      parts: into how many the call is divided; where devices are more, some compute the same.
      sums: per output the groups of devices, a row each, over which it is summed; None if it is
        complete on each.
    """

    tilings: list[Tiling]
    parts: int
    sums: list[np.ndarray | None]
