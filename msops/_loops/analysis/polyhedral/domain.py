"""The iterations in which a statement runs, as an isl set, and expressions over them.

The iterations of n loops are integer points of n dimensions. An expression is quasi-affine if it is
made of loop variables and constants by sums, multiples, division by positive constants, minima and
maxima, and cannot wrap. A condition that is not quasi-affine does not narrow the set, which is then
not exact: it holds the iterations that may run.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from msops._loops.analysis.boxes import Span
from msops._loops.analysis.costs import fixed_span
from msops._loops.analysis.polyhedral.library import isl
from msops._loops.ir.nodes import Binary, Cast, Const, Expr, For, If, Select, Unary, Var
from msops._loops.ir.operators import COMPARISONS, INTEGERS, NEGATED
from msops._loops.ir.ranges import Range, dtype_range, is_within, unwrapped_range
from msops._loops.ir.walk import Scope

_SETS = {op: getattr(isl.PwAff, f"{op}_set") for op in COMPARISONS}


@dataclass(frozen=True)
class Domain:
    """The iterations in which a statement or an expression is reached.

    Attributes:
      scope: the scope there.
      context: isl's.
      variables: those of the loops, outermost first.
      is_exact: whether every point is an iteration that gets there; else some may not.
      spans: the first and last iteration of each loop, if nothing else narrows the domain and each
        loop certainly runs; else None.
      narrowed: the iterations, if `spans` do not say them.
    """

    scope: Scope
    context: isl.Context
    variables: tuple[str, ...]
    is_exact: bool
    spans: Mapping[str, Range] | None
    narrowed: isl.Set | None

    @staticmethod
    def of(scope: Scope, context: isl.Context) -> Domain:
        """Returns the domain of the body of a kernel."""
        return Domain(scope, context, (), True, {}, None)

    @cached_property
    def points(self) -> isl.Set:
        """The iterations, one dimension per loop. Most accesses are understood without them."""
        if self.narrowed is not None:
            return self.narrowed
        return box(self.context, [(low, high + 1) for low, high in (self.spans or {}).values()])

    @cached_property
    def space(self) -> isl.Space:
        """The space of the iterations."""
        return isl.Space.set_alloc(self.context, 0, len(self.variables))

    def inside(self, scope: Scope) -> Domain:
        """Returns the domain of a scope directly inside this domain's."""
        match scope.path[len(self.scope.path) :]:
            case (For() as loop,):
                return self._iterated(loop, scope)
            case (If(condition=condition),):
                return dataclasses.replace(self.where(condition), scope=scope)
        return dataclasses.replace(self, scope=scope)

    def _iterated(self, loop: For, scope: Scope) -> Domain:
        span = fixed_span(loop)
        if self.spans is not None and span is not None and span[0] < span[1]:
            spans = {**self.spans, loop.var: (span[0], span[1] - 1)}
            return dataclasses.replace(self, scope=scope, variables=(*spans,), spans=spans)
        points = self.points.add_dims(isl.dim_type.set, 1)
        variables = (*self.variables, loop.var)
        inner = Domain(scope, self.context, variables, self.is_exact, None, points)
        variable = inner.iterator(len(self.variables))
        begin, end = inner.expression(loop.begin), inner.expression(loop.end)
        if begin is not None:
            points = points.intersect(variable.ge_set(begin))
        if end is not None:
            points = points.intersect(variable.lt_set(end))
        is_exact = self.is_exact and begin is not None and end is not None
        return dataclasses.replace(inner, narrowed=points, is_exact=is_exact)

    def where(self, condition: Expr, negated: bool = False) -> Domain:
        """Returns the part of this domain where a condition holds, or does not."""
        narrowed, is_exact = self._condition(condition, negated)
        points = self.points if narrowed is None else self.points.intersect(narrowed)
        is_exact = self.is_exact and is_exact
        return dataclasses.replace(self, spans=None, narrowed=points, is_exact=is_exact)

    def expression(self, expr: Expr, wraps: bool = False) -> isl.PwAff | None:
        """Returns an integer expression as a quasi-affine expression of isl; None if it is not one.

        Args:
          expr: the expression.
          wraps: it may wrap, which makes it costly.
        """
        match expr:
            case Const(value=number):
                return self.constant(int(number))
            case Var(name=name):
                return self.iterator(self.variables.index(name))
        exact = unwrapped_range(expr, self.scope.ranges)
        if exact is None:
            return None
        low, high = dtype_range(expr.dtype)
        if is_within(exact, (low, high)):
            return self._form(expr, wraps)
        value = self._form(expr, wraps) if wraps else None
        if value is None:
            return None
        size = self._value(high - low + 1)
        return value.sub(self.constant(low)).mod_val(size).add(self.constant(low))

    def _form(self, expr: Expr, wraps: bool) -> isl.PwAff | None:
        """Returns an expression as quasi-affine, as if its last operation never wrapped."""
        match expr:
            case Unary(op="neg", operand=operand):
                part = self.expression(operand, wraps)
                return None if part is None else part.neg()
            case Cast(operand=operand) if operand.dtype in INTEGERS:
                return self.expression(operand, wraps)
            case Binary():
                return self._binary(expr, wraps)
            case Select(condition=condition, then=then, otherwise=otherwise):
                chosen, is_exact = self._condition(condition, negated=False)
                first, second = (self.expression(part, wraps) for part in (then, otherwise))
                if not is_exact or chosen is None or first is None or second is None:
                    return None
                return first.intersect_domain(chosen).union_add(
                    second.intersect_domain(chosen.complement())
                )
        return None

    def constant(self, value: int) -> isl.PwAff:
        """Returns a number as an expression."""
        return isl.PwAff.from_aff(isl.Aff.val_on_domain(self._space(), self._value(value)))

    def iterator(self, depth: int) -> isl.PwAff:
        """Returns the variable of an enclosing loop as an expression."""
        return isl.PwAff.from_aff(isl.Aff.var_on_domain(self._space(), isl.dim_type.set, depth))

    def _binary(self, expr: Binary, wraps: bool) -> isl.PwAff | None:
        left, right = (self.expression(part, wraps) for part in (expr.left, expr.right))
        if left is None or right is None:
            return None
        match expr.op:
            case "add":
                return left.add(right)
            case "sub":
                return left.sub(right)
            case "min":
                return left.min(right)
            case "max":
                return left.max(right)
            case "mul" if isinstance(expr.right, Const):
                return left.scale_val(self._value(expr.right.value))
            case "mul" if isinstance(expr.left, Const):
                return right.scale_val(self._value(expr.left.value))
            # `unwrapped_range` answers for the truncating forms only where they floor.
            case "floordiv" | "truncdiv" if isinstance(expr.right, Const):
                return left.scale_down_val(self._value(expr.right.value)).floor()
            case "mod" | "truncmod" if isinstance(expr.right, Const):
                return left.mod_val(self._value(expr.right.value))
        return None

    def _condition(self, expr: Expr, negated: bool) -> tuple[isl.Set | None, bool]:
        """Returns where a condition may hold (None: everywhere), and whether that is exact."""
        match expr:
            case Const(value=value):
                holds = bool(value) != negated
                return (None if holds else isl.Set.empty(self.space)), True
            case Unary(op="not", operand=operand):
                return self._condition(operand, not negated)
            case Binary(op=("land" | "lor") as op, left=left, right=right):
                first, first_exact = self._condition(left, negated)
                second, second_exact = self._condition(right, negated)
                is_exact = first_exact and second_exact
                if (op == "land") != negated:
                    if first is None or second is None:
                        return (second if first is None else first), is_exact
                    return first.intersect(second), is_exact
                if first is None or second is None:
                    return None, is_exact
                return first.union(second), is_exact
            case Binary(op=op, left=left, right=right) if (
                op in COMPARISONS and left.dtype in INTEGERS
            ):
                a, b = self.expression(left), self.expression(right)
                if a is not None and b is not None:
                    return _SETS[NEGATED[op] if negated else op](a, b), True
        return None, False

    def _space(self) -> isl.LocalSpace:
        return isl.LocalSpace.from_space(self.space)

    def _value(self, value: float) -> isl.Val:
        # The value goes through text: some numbers of 64 bits fit no C long.
        return isl.Val.read_from_str(self.context, str(int(value)))


def box(context: isl.Context, spans: Sequence[Span]) -> isl.Set:
    """Returns the points of some spans, one of each dimension."""
    space = isl.Space.set_alloc(context, 0, len(spans))
    axes = isl.LocalSpace.from_space(space)
    points = isl.Set.universe(space)
    for axis, span in enumerate(spans):
        position = isl.PwAff.from_aff(isl.Aff.var_on_domain(axes, isl.dim_type.set, axis))
        first, end = (
            isl.PwAff.from_aff(isl.Aff.val_on_domain(axes, isl.Val.int_from_si(context, bound)))
            for bound in span
        )
        points = points.intersect(position.ge_set(first)).intersect(position.lt_set(end))
    return points
