"""Where a statement runs: its loops and guards, as an isl set, and expressions over them.

The iterations of n loops are integer points of n dimensions. An expression is quasi-affine if it is
made of loop variables and constants by sums, multiples, division by positive constants, minima and
maxima, and cannot wrap. A condition that is not quasi-affine does not narrow the set, which is then
not exact: it holds the iterations that may run.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from msops._loops.analysis.polyhedral.library import isl
from msops._loops.analysis.ranges import Range, dtype_range, is_within, loop_range, unwrapped_range
from msops._loops.ir.intrinsics import COMPARISONS, INTEGERS
from msops._loops.ir.nodes import Binary, Cast, Const, Expr, For, Select, Unary, Var

_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}
_SETS = {op: getattr(isl.PwAff, f"{op}_set") for op in COMPARISONS}


@dataclass(frozen=True)
class Scope:
    """The iterations of some loops in which a place of the kernel is reached.

    Attributes:
      loops: the enclosing loops, outermost first.
      ranges: the interval of each loop variable.
      domain: the iterations, one dimension per loop.
      is_exact: the domain holds no iteration that does not reach the place.
    """

    loops: tuple[For, ...]
    ranges: dict[str, Range]
    domain: isl.Set
    is_exact: bool

    @staticmethod
    def outermost(context: isl.Context) -> Scope:
        """Returns the scope of statements outside all loops."""
        return Scope((), {}, isl.Set.universe(isl.Space.set_alloc(context, 0, 0)), True)

    def inside(self, loop: For) -> Scope:
        """Returns the scope of the body of a loop in this scope."""
        low, high = loop_range(loop, self.ranges)
        inner = dataclasses.replace(
            self,
            loops=(*self.loops, loop),
            ranges={**self.ranges, loop.var: (low, max(low, high))},
            domain=self.domain.add_dims(isl.dim_type.set, 1),
        )
        variable = inner.iterator(len(self.loops))
        domain, is_exact = inner.domain, self.is_exact
        begin, end = inner.expression(loop.begin), inner.expression(loop.end)
        if begin is not None:
            domain = domain.intersect(variable.ge_set(begin))
        if end is not None:
            domain = domain.intersect(variable.lt_set(end))
        is_exact = is_exact and begin is not None and end is not None
        return dataclasses.replace(inner, domain=domain, is_exact=is_exact)

    def where(self, condition: Expr, negated: bool = False) -> Scope:
        """Returns the part of this scope where a condition holds, or does not."""
        narrowed, is_exact = self._condition(condition, negated)
        domain = self.domain if narrowed is None else self.domain.intersect(narrowed)
        return dataclasses.replace(self, domain=domain, is_exact=self.is_exact and is_exact)

    def expression(self, expr: Expr, wraps: bool = False) -> isl.PwAff | None:
        """Returns an integer expression as isl's quasi-affine one, or None if it is none.

        Args:
          expr: the expression.
          wraps: it may wrap, which makes it costly.
        """
        exact = unwrapped_range(expr, self.ranges)
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
        """Returns what the last operation of an expression gives if it does not wrap."""
        match expr:
            case Const(value=value):
                return self.constant(int(value))
            case Var(name=name):
                return self.iterator([loop.var for loop in self.loops].index(name))
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
                return (None if holds else isl.Set.empty(self.domain.get_space())), True
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
                    return _SETS[_NEGATED[op] if negated else op](a, b), True
        return None, False

    def _space(self) -> isl.LocalSpace:
        return isl.LocalSpace.from_space(self.domain.get_space())

    def _value(self, value: float) -> isl.Val:
        # Through text, for there are numbers of 64 bits that no C long holds.
        return isl.Val.read_from_str(self.domain.get_ctx(), str(int(value)))
