"""The steps of a raised kernel: array operations, and the loops that must stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msops._loops.ir.nodes import Const, Expr, For, If, Load
from msops._loops.ir.operators import is_float
from msops._loops.to_jax.raising.nests import Axis, Nest
from msops._loops.to_jax.raising.windows import Window


@dataclass(frozen=True)
class Map:
    """Stores a value computed element by element."""

    nest: Nest


class Combining:
    """Anything that combines elements with others."""

    op: str
    keeps: str

    @property
    def stored_op(self) -> str:
        """What combines a result with the old elements."""
        return f"{self.keeps} {self.op}".lstrip()


@dataclass(frozen=True)
class Reduce(Combining):
    """Combines elements with the reduction over some axes of a value.

    Attributes:
      nest: what is stored where; its mask also says what is left out of the reduction.
      op: of `operators.REDUCIBLE`.
      value: what is reduced.
      over: the axes that are reduced; without one, elements are combined with the value itself.
      keeps: which one of equal extremes stays, see `Update`; the value is not NaN then.
    """

    nest: Nest
    op: str
    value: Expr
    over: tuple[str, ...]
    keeps: str = ""


@dataclass(frozen=True)
class Product:
    """Adds a sum of products.

    Attributes:
      nest: what is stored where.
      is_negated: the sum is subtracted instead.
      over: the axes that are summed over.
      fallback: what to run instead if a factor is not finite; None if that makes no difference.
    """

    nest: Nest
    is_negated: bool
    over: tuple[str, ...]
    fallback: Reduce | None


@dataclass(frozen=True)
class Contract(Product):
    """A product that is computed as matrix products of its `factors`."""

    factors: tuple[Expr, ...]


@dataclass(frozen=True)
class Convolve(Product):
    """A product that is a convolution.

    Attributes:
      image: the factor that slides, over the windows' axes.
      filter: the product of the factors without windows.
      windows: the spatial dimensions.
    """

    image: Expr
    filter: Expr
    windows: tuple[Window, ...]


@dataclass(frozen=True)
class Pool(Combining):
    """Combines elements with a reduction over sliding windows.

    Attributes:
      nest: what is stored where.
      op: "add", "max" or "min".
      value: what is reduced, over the windows' axes.
      windows: the spatial dimensions.
      over: the axes that are reduced; those beside the windows' are reduced first.
      keeps: which one of equal extremes stays, as of `Reduce`.
    """

    nest: Nest
    op: str
    value: Expr
    windows: tuple[Window, ...]
    over: tuple[str, ...]
    keeps: str


@dataclass(frozen=True)
class Scan:
    """Stores every element of a sequence along an axis, each made of the one before.

    Attributes:
      nest: what is stored where, `axis` among its axes.
      axis: the axis along which.
      initial: the element before the first.
    """

    nest: Nest
    axis: str
    initial: Expr


@dataclass(frozen=True)
class Accumulate(Scan, Combining):
    """A scan of partial results: h = op(h one before, value), op "add", "mul", "min" or "max".

    Attributes:
      keeps: which one of equal extremes stays, as of `Reduce`.
    """

    op: str
    value: Expr
    keeps: str = ""


@dataclass(frozen=True)
class Recur(Scan):
    """A linear recurrence: h = coefficient * (h one before) + addend.

    Attributes:
      value: the same as the kernel has it.
      before: the load of h one before in it.
      coefficient, addend: what the value is with its products distributed.
    """

    value: Expr
    before: Load
    coefficient: Expr
    addend: Expr


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


def steps_in(steps: Sequence[Step]) -> Iterator[Step]:
    """Yields steps and those inside of them, the outer ones first."""
    for step in steps:
        yield step
        match step:
            case Loop(body=body):
                yield from steps_in(body)
            case Branch(then=then, otherwise=otherwise):
                yield from steps_in((*then, *otherwise))


def loops_in(steps: Sequence[Step]) -> list[Loop]:
    """Returns the loops that run in order among steps, the outer ones first."""
    return [step for step in steps_in(steps) if isinstance(step, Loop)]


def in_order(steps: Sequence[Step]) -> Iterator[tuple[str, int | None]]:
    """Yields what runs in an order: its variable, and how often; None if only data say that."""
    for step in steps_in(steps):
        match step:
            case Loop(loop=loop, axis=axis):
                yield loop.var, None if axis is None else axis.extent
            case Accumulate(nest=nest, axis=name) | Recur(nest=nest, axis=name):
                yield name, nest.extents[name]


def first_in_order(steps: Sequence[Step]) -> str:
    """Returns the variable of the first loop that runs in an order; empty if none does."""
    return next((var for var, _ in in_order(steps)), "")


def keep_extremes(steps: Sequence[Step]) -> bool:
    """Returns whether steps reduce floats to the greatest or least one, scatters among them."""
    return any(
        isinstance(step, Reduce | Pool)
        and step.op in ("min", "max")
        and bool(step.over or step.nest.reduced)
        and is_float(step.value.dtype)
        for step in steps_in(steps)
    )


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
