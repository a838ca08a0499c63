"""Which dimensions of an op's arrays may be divided: ``Custom(sharding=)`` and ``batch_dims=``.

A rule names dimensions as `numpy.einsum` does, "b i, i -> b i": those of one name are equally long
and go together, so that a device with some of `b` needs no other part of any array. A name that is
missing in an output means a sum, or for whatever else needs all of it; it is never divided.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msops._jax_seam.division import Dimensions, Names, shared_names
from msops.errors import ArgumentTypeError, ArgumentValueError

_NAME = re.compile(r"[A-Za-z]\w*")
_EXAMPLE = 'Write sharding="i j, j -> i j": a name per dimension, a comma between arrays.'


@dataclasses.dataclass(frozen=True)
class ShardingRule:
    """The dimensions of an op's arrays, as its author names them.

    Attributes:
      inputs: per flat input a name for each dimension.
      outputs: likewise.
      batch_dims: instead of names, the number of leading dimensions that all arrays share.
      summed: of a derivative, the names along which its kernel may be divided: an output that
        lacks one of them is the sum over its parts. None of a kernel itself.
    """

    inputs: tuple[Names, ...] = ()
    outputs: tuple[Names, ...] = ()
    batch_dims: int = 0
    summed: frozenset[str] | None = None

    def __str__(self) -> str:
        if self.batch_dims:
            return f"batch_dims={self.batch_dims}"
        inputs, outputs = (", ".join(map(" ".join, side)) for side in (self.inputs, self.outputs))
        return f'sharding="{inputs} -> {outputs}"'

    def name_dimensions(
        self,
        inputs: Sequence[tuple[int, ...]],
        outputs: Sequence[tuple[int, ...]],
        who: str,
    ) -> Dimensions:
        """Returns the rule for arrays of these shapes.

        Raises:
          ArgumentValueError: they are not the arrays that the rule is about.
        """
        if self.batch_dims:
            named = [
                list(self._name_batch(side, shapes, who))
                for side, shapes in (("input", inputs), ("output", outputs))
            ]
        else:
            named = [
                list(_matched(side, names, shapes, self, who))
                for side, names, shapes in (
                    ("input", self.inputs, inputs),
                    ("output", self.outputs, outputs),
                )
            ]
        sizes: dict[str, tuple[int, str]] = {}
        for side, arrays, shapes in zip(("input", "output"), named, (inputs, outputs), strict=True):
            for index, (names, shape) in enumerate(zip(arrays, shapes, strict=True)):
                for axis, (name, size) in enumerate(zip(names, shape, strict=True)):
                    here = f"dimension {axis} of {side} {index}"
                    known, first = sizes.setdefault(name, (size, here))
                    if known != size:
                        raise ArgumentValueError.explained(
                            who,
                            f"its rule {self} expected {first} and {here} equally long; got "
                            f"{known} and {size}",
                            "Give dimensions names of their own where they are not divided "
                            "together.",
                        )
        lengths = tuple((name, size) for name, (size, _) in sizes.items())
        return Dimensions(tuple(named[0]), tuple(named[1]), lengths, self.summed)

    def adjoint(self, floats: Sequence[int], wanted: Sequence[int]) -> ShardingRule:
        """Returns the rule of the kernel's reverse-mode derivative.

        With y = f(x, w) independent along a name, each part of y depends on its part of x alone,
        and so does the gradient of x; that of a w without the name is the sum over all parts. Along
        any other name, as k of "i k -> i", a gradient needs all of x, as y does.

        Args:
          floats: the outputs that have cotangents, which follow the inputs.
          wanted: the inputs whose gradients are returned.
        """
        if self.batch_dims:
            return self
        return ShardingRule(
            (*self.inputs, *(self.outputs[index] for index in floats)),
            tuple(self.inputs[index] for index in wanted),
            summed=shared_names(self.inputs, self.outputs, self.summed),
        )

    def _name_batch(
        self, side: str, shapes: Sequence[tuple[int, ...]], who: str
    ) -> Iterator[Names]:
        for index, shape in enumerate(shapes):
            if len(shape) < self.batch_dims:
                raise ArgumentValueError.explained(
                    who,
                    f"its rule {self} expected at least {self.batch_dims} dimension(s) of each "
                    f"array; {side} {index} has shape {shape}",
                    'Say which arrays have the batch by a rule: sharding="b i, i -> b i".',
                )
            batch = (f"batch{axis}" for axis in range(self.batch_dims))
            rest = (f"{side}{index}_{axis}" for axis in range(self.batch_dims, len(shape)))
            yield (*batch, *rest)


def _matched(
    side: str,
    arrays: Sequence[Names],
    shapes: Sequence[tuple[int, ...]],
    rule: ShardingRule,
    who: str,
) -> Sequence[Names]:
    """Returns the names, if they are those of arrays of such shapes."""
    own = [len(names) for names in arrays]
    ranks = [len(shape) for shape in shapes]
    if own != ranks:
        raise ArgumentValueError.explained(
            who,
            f"its rule {rule} expected {len(own)} {side}(s) of rank(s) {_listed(own)}; got "
            f"{len(ranks)} of rank(s) {_listed(ranks)}",
            _EXAMPLE,
        )
    return arrays


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def read_rule(sharding: Any, batch_dims: Any, who: str) -> ShardingRule | None:
    """Returns what ``Custom(sharding=)`` or ``Custom(batch_dims=)`` says; None if neither does.

    Raises:
      ArgumentTypeError, ArgumentValueError: it is no rule.
    """
    if type(batch_dims) is not int or batch_dims < 0:
        raise ArgumentTypeError.explained(
            who,
            f"expected batch_dims an int, at least 0; got {batch_dims!r}",
            "Pass the number of leading dimensions that every array has.",
        )
    if sharding is None:
        return ShardingRule(batch_dims=batch_dims) if batch_dims else None
    if not isinstance(sharding, str):
        raise ArgumentTypeError.explained(
            who, f"expected a str for sharding; got {sharding!r}", _EXAMPLE
        )
    if batch_dims:
        raise ArgumentValueError.explained(
            who,
            "sharding and batch_dims are both given",
            "batch_dims is the short form for leading dimensions: leave one out.",
        )
    sides = sharding.split("->")
    if len(sides) != 2:
        raise ArgumentValueError.explained(
            who, f"expected one -> in sharding; got {sharding!r}", _EXAMPLE
        )
    inputs, outputs = (
        tuple(_read_names(part, sharding, who) for part in side.split(",")) for side in sides
    )
    return ShardingRule(inputs, outputs)


def _read_names(text: str, sharding: str, who: str) -> Names:
    names = tuple(text.split())
    wrong = [name for name in names if not _NAME.fullmatch(name)]
    if wrong or len(set(names)) < len(names):
        problem = f"the name {wrong[0]!r}" if wrong else f"a name twice in {text.strip()!r}"
        raise ArgumentValueError.explained(
            who,
            "expected in sharding names of letters, digits and _, each once per array; got "
            f"{problem} of {sharding!r}",
            _EXAMPLE,
        )
    return names
