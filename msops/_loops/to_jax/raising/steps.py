"""What a raised kernel is made of: array operations, and the loops that must stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from msops._loops.ir.nodes import Const, Expr, For, If
from msops._loops.to_jax.raising.nests import Axis, Nest
from msops._loops.to_jax.raising.windows import Window


@dataclass(frozen=True)
class Map:
    """Stores a value computed element by element."""

    nest: Nest


@dataclass(frozen=True)
class Reduce:
    """Combines elements with the reduction over some axes of a value.

    Attributes:
      nest: what is stored where; its mask also says what is left out of the reduction.
      op: of `intrinsics.REDUCIBLE`.
      value: what is reduced.
      over: the axes that are reduced; without one, elements are combined with the value itself.
    """

    nest: Nest
    op: str
    value: Expr
    over: tuple[str, ...]


@dataclass(frozen=True)
class Contract:
    """Adds a sum of products, computed as matrix products.

    Attributes:
      nest: what is stored where.
      factors: the factors of the product.
      turned: the sign of the product is turned.
      over: the axes that are summed over.
      fallback: what to run instead if a factor is not finite; None if that makes no difference.
    """

    nest: Nest
    factors: tuple[Expr, ...]
    turned: bool
    over: tuple[str, ...]
    fallback: Reduce | None


@dataclass(frozen=True)
class Convolve:
    """Adds a convolution.

    Attributes:
      nest: what is stored where.
      image: the factor that slides, over the windows' axes.
      filter: the product of the factors without windows.
      turned: the sign of the product is turned.
      windows: the spatial dimensions.
      over: the axes that are summed over.
      fallback: what to run instead if a factor is not finite; None if that makes no difference.
    """

    nest: Nest
    image: Expr
    filter: Expr
    turned: bool
    windows: tuple[Window, ...]
    over: tuple[str, ...]
    fallback: Reduce | None


@dataclass(frozen=True)
class Pool:
    """Combines elements with a reduction over sliding windows.

    Attributes:
      nest: what is stored where.
      op: "add", "max" or "min".
      value: what is reduced, over the windows' axes.
      windows: the spatial dimensions.
      over: the axes that are reduced; those beside the windows' are reduced first.
    """

    nest: Nest
    op: str
    value: Expr
    windows: tuple[Window, ...]
    over: tuple[str, ...]


@dataclass(frozen=True)
class Accumulate:
    """Stores every partial result of a reduction along an axis: cumulative sums and the like.

    Attributes:
      nest: what is stored where, `axis` among its axes.
      op: "add", "mul", "min" or "max".
      value: what is accumulated.
      axis: the axis along which.
      initial: the element before the first, as an expression.
    """

    nest: Nest
    op: str
    value: Expr
    axis: str
    initial: Expr


@dataclass(frozen=True)
class Recur:
    """Stores h where h = coefficient * (h one before) + addend along an axis.

    Attributes:
      nest: what is stored where, `axis` among its axes.
      coefficient: what the element before is multiplied with.
      addend: what is added.
      axis: the axis along which.
      initial: the element before the first, as an expression.
    """

    nest: Nest
    coefficient: Expr
    addend: Expr
    axis: str
    initial: Expr


@dataclass(frozen=True)
class Loop:
    """Runs steps in order for each value of a variable.

    Attributes:
      loop: the loop as it was written.
      axis: the hull of its range; None if its bounds are only known when it runs.
      body: the steps.
    """

    loop: For
    axis: Axis | None
    body: tuple[Step, ...]

    @property
    def is_hull(self) -> bool:
        """Whether some iterations of the hull may not be the loop's."""
        bounds = (self.loop.begin, self.loop.end)
        return self.axis is not None and not all(isinstance(bound, Const) for bound in bounds)


@dataclass(frozen=True)
class Branch:
    """Runs one of two lists of steps."""

    branch: If
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...]


@dataclass(frozen=True)
class Clear:
    """Sets a buffer to zero."""

    buffer: str


VectorStep: TypeAlias = Map | Reduce | Contract | Convolve | Pool | Accumulate | Recur
Step: TypeAlias = VectorStep | Loop | Branch | Clear


def written(steps: tuple[Step, ...]) -> frozenset[str]:
    """Returns the buffers that steps store to and that outlive them."""
    names: set[str] = set()
    private: set[str] = set()
    for step in steps:
        match step:
            case Loop(body=body):
                names |= written(body)
            case Branch(then=then, otherwise=otherwise):
                names |= written(then) | written(otherwise)
            case Clear(buffer=buffer):
                private.add(buffer)
            case _:
                names.add(step.nest.store.buffer)
    return frozenset(names - private)
