"""`tvm.compute`: a tensor by a formula for its elements, or several at once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from msops._loops.frontends.tvm.arithmetic import union_of
from msops._loops.frontends.tvm.expr import IterVar, ScalarExpr, as_expr
from msops._loops.frontends.tvm.reduce import ReduceExpr, Reduction
from msops._loops.frontends.tvm.tensor import Operation, Shape, Tensor, as_shape, by_age
from msops._loops.frontends.tvm.tracing import author_location, fresh_key, type_error, value_error
from msops._loops.ir.algebra import integer
from msops._loops.ir.nodes import Buffer, Expr, For, If, Load, Local, Location, Select, Stmt, Store
from msops._loops.ir.walk import loads


@dataclass(frozen=True, eq=False, kw_only=True)
class ComputeOp(Operation):
    """Tensors of one shape, by formulas.

    Attributes:
      axis: the variables of their dimensions.
      body: the formula of each; results of one reduction, or none.
    """

    axis: tuple[IterVar, ...]
    body: tuple[ScalarExpr, ...]

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes of the reduction."""
        reduction = _reduction(self.body)
        return () if reduction is None else reduction.axes

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """The tensors the formulas read."""
        return tuple(by_age(union_of(self.body)))

    def lowered(self) -> tuple[Stmt, ...]:
        """Returns a nest over the elements."""
        where = tuple(axis.node for axis in self.axis)
        elements = [
            Load(key, where, dtype) for key, dtype in zip(self.keys, self.dtypes, strict=True)
        ]
        reduction = _reduction(self.body)
        if reduction is None:
            inner = assign(elements, [expr.node for expr in self.body], self.location)
        else:
            inner = self._reduced(reduction, elements)
        return nest(self.axis, inner, self.location)

    def _reduced(self, reduction: Reduction, elements: Sequence[Load]) -> tuple[Stmt, ...]:
        start = assign(elements, [expr.node for expr in reduction.starts], self.location)
        old = tuple(ScalarExpr(element) for element in elements)
        # All old values are read before any new one is written, as in later TVM; that of MindSpore
        # 2.0.0 reads for the second value what it has just written for the first.
        following = reduction.combine(old, reduction.values)
        update = assign(elements, [expr.node for expr in following], self.location)
        if reduction.condition is not None:
            update = (If(reduction.condition.node, update, location=self.location),)
        return (*start, *nest(reduction.axes, update, self.location))


def nest(
    axes: Sequence[IterVar], body: tuple[Stmt, ...], location: Location | None
) -> tuple[Stmt, ...]:
    """Returns statements inside one loop per axis, the first outermost."""
    for axis in reversed(axes):
        assert axis.extent is not None
        begin, end = axis.begin, axis.begin + axis.extent
        body = (For(axis.key, integer(begin), integer(end), body, location=location),)
    return body


def _reduction(body: Sequence[ScalarExpr]) -> Reduction | None:
    first = body[0]
    return first.reduction if isinstance(first, ReduceExpr) else None


def compute(
    shape: Any,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Any = None,
) -> Any:
    """Returns a tensor, or one per formula if `fcompute` returns several.

    Args:
      shape: shape of the result.
      fcompute: from the index variables, one per dimension, to the element: an expression, a
        number, a reduction, or a tuple of these.
      name: its name in the loop IR.
      tag: kept, not used.
      attrs: kept, not used.
    """
    extents = as_shape("tvm.compute", shape)
    axis = _axes(extents, fcompute, name)
    result = fcompute(*axis)
    is_tuple = isinstance(result, (tuple, list))
    body = _formulas(result if is_tuple else (result,), name)
    shown: Sequence[int] = range(len(body))
    reduction = _reduction(body)
    if reduction is not None and len(body) < len(reduction.values):
        # What is reduced together is computed together, though only a part is shown.
        shown = [expr.value_index for expr in body if isinstance(expr, ReduceExpr)]
        body = tuple(ReduceExpr(reduction, index) for index in range(len(reduction.values)))
    op = ComputeOp(
        name,
        (extents,) * len(body),
        tuple(expr.dtype for expr in body),
        tuple(fresh_key(name) for _ in body),
        tag=tag,
        attrs=dict(attrs or {}),
        location=author_location(),
        axis=axis,
        body=body,
    )
    outputs = tuple(map(op.output, shown))
    return outputs if is_tuple else outputs[0]


def _formulas(results: Sequence[Any], name: str) -> tuple[ScalarExpr, ...]:
    if not results or any(result is None for result in results):
        raise type_error(
            f"tvm.compute {name!r}",
            "expected a value of the function; got None",
            "Return the element: lambda i: x(i) + 1.0.",
        )
    body = tuple(as_expr(result) for result in results)
    reductions = {id(_reduction((expr,))) for expr in body}
    if len(reductions) > 1:
        raise value_error(
            f"tvm.compute {name!r}",
            "expected results of one reduction, or of none",
            "Give each reduction its own tvm.compute, or reduce a tuple by one tvm.comm_reducer.",
        )
    return body


def _axes(extents: Shape, fcompute: Callable[..., Any], name: str) -> tuple[IterVar, ...]:
    """Returns an axis per dimension, named as the function's parameters are."""
    parameters = inspect.signature(fcompute).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum(p.default is p.empty for p in named)
    is_open = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(extents) < needed or (len(extents) > len(named) and not is_open):
        raise value_error(
            f"tvm.compute {name!r}",
            f"fcompute does not match the dimensions: it takes {needed} indices, the shape "
            f"{tuple(map(int, extents))} has {len(extents)}",
            "Take one index per dimension, or all of them as *indices.",
        )
    names = [p.name for p in named] + [f"i{n}" for n in range(len(named), len(extents))]
    return tuple(
        IterVar(axis, 0, int(extent)) for axis, extent in zip(names, extents, strict=False)
    )


def assign(
    targets: Sequence[Load], values: Sequence[Expr], location: Location | None
) -> tuple[Stmt, ...]:
    """Returns statements after which each target holds its value, all read before any is written.

    Values that are all chosen by one condition become an `If`: that is how argmax is written as a
    loop, and how passes know it.

    Args:
      targets: the elements.
      values: what each gets.
      location: where in the author's source.
    """
    chosen = [value for value in values if isinstance(value, Select)]
    if len(values) > 1 and len(chosen) == len(values):
        condition = chosen[0].condition
        if all(value.condition == condition for value in chosen):
            then = assign(targets, [value.then for value in chosen], location)
            otherwise = assign(targets, [value.otherwise for value in chosen], location)
            if then or otherwise:
                return (If(condition, then, otherwise, location=location),)
            return ()
    pairs = [(x, y) for x, y in zip(targets, values, strict=True) if x != y]
    return _stored(pairs, location)


def _stored(pairs: Sequence[tuple[Load, Expr]], location: Location | None) -> tuple[Stmt, ...]:
    if not pairs:
        return ()
    (target, value), *rest = pairs
    store = Store(target.buffer, target.indices, value, location=location)
    is_read_later = any(load.buffer == target.buffer for _, other in rest for load in loads(other))
    if not is_read_later:
        return (store, *_stored(rest, location))
    held = Buffer(fresh_key(target.buffer.partition(".")[0]), (), target.dtype)
    return (
        Local(
            held,
            (
                Store(held.name, (), value, location=location),
                *_stored(rest, location),
                Store(
                    target.buffer,
                    target.indices,
                    Load(held.name, (), held.dtype),
                    location=location,
                ),
            ),
            location=location,
        ),
    )
