"""Reductions: axes, combiners, and `tvm.sum`, `tvm.min`, `tvm.max`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msops._loops.frontends.tvm.arithmetic import as_condition, binary, select, union_of
from msops._loops.frontends.tvm.expr import (
    ConstExpr,
    IterVar,
    ScalarExpr,
    Sources,
    as_expr,
    cast,
    const,
)
from msops._loops.frontends.tvm.intrin import ArgExtreme, max_value, min_value
from msops._loops.frontends.tvm.tracing import value_error, wrong_type
from msops._loops.ir.operators import is_float


@dataclass(frozen=True, eq=False)
class Reduction:
    """One or several values reduced together over axes.

    Attributes:
      combine: from the old and the new values to the next ones, each a tuple of expressions.
      starts: the values before the first combination.
      values: what is reduced.
      axes: over which it is reduced.
      condition: where it is reduced; None: everywhere.
    """

    combine: Callable[[tuple[ScalarExpr, ...], tuple[ScalarExpr, ...]], tuple[ScalarExpr, ...]]
    starts: tuple[ScalarExpr, ...]
    values: tuple[ScalarExpr, ...]
    axes: tuple[IterVar, ...]
    condition: ScalarExpr | None


class ReduceExpr(ScalarExpr):
    """A result of a reduction; only `compute` can use it.

    Attributes:
      reduction: the reduction.
      value_index: which of its values this is.
    """

    __slots__ = ("reduction", "value_index")

    def __init__(self, reduction: Reduction, value_index: int):
        self.reduction = reduction
        self.value_index = value_index

    @property
    def dtype(self) -> str:
        """The dtype, as text."""
        return self.reduction.values[self.value_index].dtype

    @property
    def node(self) -> Any:  # type: ignore[override]
        """Raises: a reduction is no operand."""
        raise value_error(
            "tvm reduction",
            "reductions are only allowed at the top level of compute",
            "Give the reduction its own tvm.compute and go on from the tensor it returns.",
        )

    @property
    def sources(self) -> Sources:  # type: ignore[override]
        """The tensors it reads."""
        parts = self.reduction
        guard = () if parts.condition is None else (parts.condition,)
        return union_of((*parts.starts, *parts.values, *guard))


def reduce_axis(dom: Any, name: str = "rv") -> IterVar:
    """Returns an axis to reduce over.

    Args:
      dom: first value and end (exclusive), ints.
      name: its name in the loop IR.
    """
    try:
        begin, end = (bound.__index__() for bound in dom)
    except (AttributeError, TypeError, ValueError):
        raise wrong_type(
            f"expected a pair of ints; got {dom!r}",
            "Pass (0, n).",
        ) from None
    return IterVar(name, begin, max(end - begin, 0))


def comm_reducer(
    fcombine: Callable[..., Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Callable[..., Any]:
    """Returns a reducer: ``reducer(expr, axis, where=None)``, or of operands, ``reducer(a, b)``.

    Args:
      fcombine: from two operands to their combination; of tuples to a tuple for a reducer of
        several values, such as the largest value and its index.
      fidentity: from the dtype (of each value) to what combines with x to x.
      name: for messages.
    """

    def reducer(expr: Any, axis: Any, where: Any = None, init: Any = None, *operands: Any) -> Any:
        axes = tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
        if all(isinstance(each, IterVar) and each.extent is not None for each in axes):
            return _reduced(fcombine, fidentity, f"tvm.{name}", expr, axes, where, init)
        result = fcombine(expr, axis)
        for operand in (where, init, *operands):
            result = result if operand is None else fcombine(result, operand)
        return result

    return reducer


def _reduced(
    fcombine: Callable[..., Any],
    fidentity: Callable[..., Any],
    name: str,
    expr: Any,
    axes: tuple[IterVar, ...],
    where: Any,
    init: Any,
) -> Any:
    is_tuple = isinstance(expr, (tuple, list))
    values = tuple(as_expr(value) for value in (expr if is_tuple else (expr,)))
    combined = None if is_tuple else fcombine(values[0], values[0])
    if isinstance(combined, ArgExtreme):
        extreme = argmax_of if combined.better == "gt" else argmin_of
        return extreme((cast(_position(axes), values[0].dtype), values[0]), axes, where)[0]
    dtypes = [value.dtype for value in values]

    def several(result: Any) -> tuple[ScalarExpr, ...]:
        parts = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(parts) != len(values):
            raise value_error(
                name,
                f"expected {len(values)} values of its combiner and identity; got {len(parts)}",
                "Both give one value for each that is reduced.",
            )
        return tuple(cast(as_expr(part), dtype) for part, dtype in zip(parts, dtypes, strict=True))

    def combine(old: tuple[ScalarExpr, ...], new: tuple[ScalarExpr, ...]) -> tuple[ScalarExpr, ...]:
        return several(fcombine(old, new) if is_tuple else fcombine(old[0], new[0]))

    reduction = Reduction(
        combine,
        several(fidentity(*dtypes) if init is None else init),
        values,
        axes,
        None if where is None else as_condition(name, where),
    )
    results = tuple(ReduceExpr(reduction, index) for index in range(len(values)))
    return results if is_tuple else results[0]


def _position(axes: tuple[IterVar, ...]) -> ScalarExpr:
    """Returns how many elements of the reduced ranges come before one."""
    position: ScalarExpr = const(0)
    for axis in axes:
        extent = binary("mul", position, axis.extent)
        position = binary("add", extent, binary("sub", axis, axis.begin))
    return position


# The true identities on floats are the infinities. TVM starts from the largest finite numbers,
# which shows only where a whole reduced range is infinite.
def lowest(dtype: str) -> ConstExpr:
    """Returns what is not above any number of a dtype."""
    return const(-math.inf if is_float(dtype) else min_value(dtype), dtype)


def highest(dtype: str) -> ConstExpr:
    """Returns what is not below any number of a dtype."""
    return const(math.inf if is_float(dtype) else max_value(dtype), dtype)


sum_of = comm_reducer(lambda x, y: binary("add", x, y), lambda dtype: const(0, dtype), "sum")
product_of = comm_reducer(lambda x, y: binary("mul", x, y), lambda dtype: const(1, dtype), "prod")
min_of = comm_reducer(lambda x, y: binary("min", x, y), highest, "min")
max_of = comm_reducer(lambda x, y: binary("max", x, y), lowest, "max")
all_along = comm_reducer(lambda x, y: binary("land", x, y), lambda _: const(True), "all")
any_along = comm_reducer(lambda x, y: binary("lor", x, y), lambda _: const(False), "any")


def _arg_reducer(better: Any, worst: Callable[[str], ConstExpr], name: str) -> Callable[..., Any]:
    """Returns a reducer of (index, value) to the first best value and its index."""

    def combine(old: Sequence[ScalarExpr], new: Sequence[ScalarExpr]) -> tuple[ScalarExpr, ...]:
        is_better = binary(better, new[1], old[1])
        return select(is_better, new[0], old[0]), select(is_better, new[1], old[1])

    # Index 0 rather than TVM's -1: right even where no value is better than the worst.
    return comm_reducer(combine, lambda index, value: (const(0, index), worst(value)), name)


argmax_of = _arg_reducer("gt", lowest, "argmax")
argmin_of = _arg_reducer("lt", highest, "argmin")
