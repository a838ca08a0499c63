"""Conditions in the lanes of vectors.

A condition is a vector of integers as wide as what it was computed from: -1 where it holds, 0 where
not.
"""

from __future__ import annotations

from msops._loops.ir.algebra import negation
from msops._loops.ir.nodes import Binary, Cast, Expr, FunctionCall, Load, Select, Unary
from msops._loops.ir.operators import COMPARISONS, is_float
from msops._loops.to_c.printing.lane_elements import LaneElements
from msops._loops.to_c.printing.vector_types import UnprintableError, bytes_of
from msops._loops.to_c.text.arithmetic import WHOLE
from msops._loops.to_c.text.syntax import SIGNS

_SIMPLE = ("float32", "float64", "int32", "int64")
"""Dtypes of which a number may stand beside a vector."""


class LaneConditions(LaneElements):
    """Prints the conditions of a loop for several iterations at once."""

    def condition(self, expr: Expr, width: int) -> str:
        """Returns a vector of integers of some bytes: -1 where a condition holds, else 0."""
        text, own = self._condition(expr)
        return self.widened(text, own, width)

    def width(self, expr: Expr) -> int:
        """Returns the bytes of the elements in which a condition is computed."""
        return self._condition(expr)[1]

    def _condition(self, expr: Expr) -> tuple[str, int]:
        if self.is_uniform(expr):
            return self.mask_everywhere(self.values.value(expr), 4), 4
        match expr:
            case Binary(op=op, left=left, right=right) if op in COMPARISONS:
                if left.dtype == "bool":
                    differ = Binary("xor", left, right, "bool")
                    return self._condition(Unary("not", differ, "bool") if op == "eq" else differ)
                sides = self._operand(left), self._operand(right)
                return f"({sides[0]} {SIGNS[op]} {sides[1]})", bytes_of(left.dtype)
            case Binary(op="land" | "lor" | "and" | "or" | "xor" as op, left=left, right=right):
                one, width = self._condition(left)
                if op in ("land", "lor"):
                    with self.where(one if op == "land" else f"(~{one})", width):
                        other, own = self._condition(right)
                else:
                    other, own = self._condition(right)
                most = max(width, own)
                sides = self.widened(one, width, most), self.widened(other, own, most)
                return f"({sides[0]} {WHOLE.get(op) or SIGNS[op]} {sides[1]})", most
            case Unary(op="not", operand=operand):
                text, width = self._condition(operand)
                return f"(~{text})", width
            case Load(buffer=name) if name in self.variables:
                return self.values.names[name], self.bool_bytes
            case Load():
                return f"({self._load(expr)} != 0)", 1
            case Select(condition=test, then=then, otherwise=otherwise):
                chosen = Binary("land", test, then, "bool")
                other_one = Binary("land", negation(test), otherwise, "bool")
                return self._condition(Binary("lor", chosen, other_one, "bool"))
            case Cast(operand=operand):
                return f"({self.value(operand)} != 0)", bytes_of(operand.dtype)
            case FunctionCall(args=(operand,)):
                return self.value(expr), bytes_of(operand.dtype)
        raise UnprintableError

    def _operand(self, expr: Expr) -> str:
        """Returns a value as a vector, or as a number beside which C takes a vector."""
        if expr.dtype in _SIMPLE and self.is_uniform(expr):
            kind = self.values.value_type(expr.dtype)
            text = self.values.value(expr)
            return text if is_float(expr.dtype) else f"({kind}){text}"
        return self.value(expr)
