"""The boundary of the backward sweep: cotangents of results in, gradients of parameters out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from msops._loops.gradient.contributions import adjoint_dtype
from msops._loops.gradient.tree import Tree
from msops._loops.ir.algebra import add, cast
from msops._loops.ir.names import Names, over_box
from msops._loops.ir.nodes import Buffer, Expr, Load, Stmt, Store
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import buffers_of


@dataclass(frozen=True)
class Boundary:
    """The buffers of an adjoint kernel that hold derivatives.

    Attributes:
      adjoints: the adjoint of each active buffer. That of a result is the cotangent itself, which
        the kernel then works on as on any parameter it writes, unless sums need a wider dtype.
      cotangents: the parameters added, one per float result.
      gradients: the results, one per parameter wanted.
      before: brings the cotangents into the adjoints.
      after: brings the adjoints into the gradients.
    """

    adjoints: dict[str, Buffer]
    cotangents: tuple[Buffer, ...]
    gradients: tuple[Buffer, ...]
    before: tuple[Stmt, ...]
    after: tuple[Stmt, ...]

    def top_adjoints(self, tree: Tree) -> list[Buffer]:
        """Returns the adjoints that belong to the whole kernel."""
        inner = tree.locals()
        return [adjoint for name, adjoint in self.adjoints.items() if name not in inner]


def make_boundary(tree: Tree, wanted: Sequence[Buffer], active: Set[str], names: Names) -> Boundary:
    """Returns the boundary for the gradients of some parameters.

    Args:
      tree: the kernel.
      wanted: the parameters.
      active: the buffers that derivatives pass through.
      names: gives names.
    """
    adjoints: dict[str, Buffer] = {}
    cotangents: list[Buffer] = []
    before: list[Stmt] = []
    for result in tree.kernel.outputs:
        if not is_float(result.dtype):
            continue
        cotangent = Buffer(names.fresh(f"d_{result.name}"), result.shape, result.dtype)
        cotangents.append(cotangent)
        if result.name not in active:
            continue
        if result.name not in adjoints and adjoint_dtype(result.dtype) == result.dtype:
            adjoints[result.name] = cotangent
            continue
        if result.name not in adjoints:
            adjoints[result.name] = _adjoint_of(result, names)
        before.append(_sum_into(adjoints[result.name], cotangent, names))
    for buffer in buffers_of(tree.kernel).values():
        if buffer.name in active and buffer.name not in adjoints:
            adjoints[buffer.name] = _adjoint_of(buffer, names)
    gradients: list[Buffer] = []
    after: list[Stmt] = []
    for parameter in wanted:
        total = adjoints.get(parameter.name)
        if total is None or total.dtype != parameter.dtype:
            name = names.fresh(f"d_{parameter.name}")
            gradient = dataclasses.replace(parameter, name=name)
            after += [] if total is None else [_sum_into(gradient, total, names)]
        else:
            gradient = total
        gradients.append(gradient)
    return Boundary(adjoints, tuple(cotangents), tuple(gradients), tuple(before), tuple(after))


def over(
    buffer: Buffer, fresh: Callable[[str], str], make: Callable[[tuple[Expr, ...]], Stmt]
) -> Stmt:
    """Returns loops over all elements of a buffer around what is made for their indices."""
    spans = [(0, size) for size in buffer.shape]
    return over_box(spans, ["e"] * len(spans), fresh, make)


def _sum_into(target: Buffer, source: Buffer, names: Names) -> Stmt:
    """Returns loops that add a buffer to another one."""

    def make(at: tuple[Expr, ...]) -> Stmt:
        value = cast(_at(source, at), target.dtype)
        return Store(target.name, at, add(_at(target, at), value))

    return over(target, names.fresh, make)


def _adjoint_of(buffer: Buffer, names: Names) -> Buffer:
    dtype = adjoint_dtype(buffer.dtype)
    suffix = "" if dtype == buffer.dtype else "_sum"
    return Buffer(names.fresh(f"d_{buffer.name}{suffix}"), buffer.shape, dtype)


def _at(buffer: Buffer, indices: tuple[Expr, ...]) -> Load:
    return Load(buffer.name, indices, buffer.dtype)
