"""Expressions of an innermost loop in the lanes of vectors: one value for each of some iterations.

    b[i] = a[i] > 0.0 ? sqrt(a[i]) : x[0]       (a > 0.0f) ? ms_sqrt(a) : ms_all<V>(x[0])
                                                where a is *(const M*)&a[i], and i the first lane's

A vector is a value of gcc's vector types, which clang has, too; operators and choices work on them
in C++. A condition is a vector of integers as wide as what it was computed from: -1 where it holds,
0 where not. What no vector does is done lane by lane. Elements that a condition guards are read
where it holds.
"""

from __future__ import annotations

from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import (
    Binary,
    Cast,
    Const,
    Expr,
    FunctionCall,
    Load,
    Select,
    Unary,
    Var,
    Within,
)
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import dtype_range
from msops._loops.to_c.printing.lane_conditions import LaneConditions
from msops._loops.to_c.printing.vector_types import UnprintableError, bytes_of
from msops._loops.to_c.text import bare
from msops._loops.to_c.text.operations import quotient_template
from msops._loops.to_c.text.syntax import ROUNDED, SIGNS, computed


class LaneValues(LaneConditions):
    """Prints the expressions of a loop for several iterations at once."""

    def value(self, expr: Expr) -> str:
        """Returns a vector of numbers."""
        if self.is_uniform(expr):
            number = self.values.value(expr)
            kind = self.values.value_type(expr.dtype)
            number = number if is_float(expr.dtype) else f"({kind}){number}"
            return self.everywhere(number, expr.dtype)
        match expr:
            case Var():
                return self._numbers()
            case Load():
                return self._load(expr)
            case Unary():
                return self._unary(expr)
            case Binary():
                return self.rounded(self._binary(expr), expr.dtype)
            case FunctionCall():
                return self.rounded(self._call(expr), expr.dtype)
            case Cast():
                return self._cast(expr)
            case Select():
                return self._select(expr)
            case Within(operand=operand):
                return self.value(operand)
        raise UnprintableError

    def _numbers(self) -> str:
        first = self.values.names[self._var]
        lanes = ", ".join(map(str, range(self.lanes)))
        return f"((int32_t){first} + {self.value_type('int32')}{{{lanes}}})"

    def _unary(self, expr: Unary) -> str:
        kind = self.value_type(expr.dtype)
        if expr.op == "neg" and not is_float(expr.dtype):
            unsigned = self.unsigned(expr.dtype)
            return f"({kind})(0 - ({unsigned}){self.value(expr.operand)})"
        if expr.op == "bits":
            return f"({kind}){self.value(expr.operand)}"
        sign = {"neg": "-", "invert": "~"}[expr.op]
        return f"({sign}{self.value(expr.operand)})"

    def _binary(self, expr: Binary) -> str:
        op, dtype = expr.op, computed(expr.dtype)
        if op not in SIGNS:
            return self.float_operation(expr) if is_float(dtype) else self.integer_operation(expr)
        if op in ("add", "sub", "mul") and not is_float(dtype):
            return self.joined(op, dtype, self.value(expr.left), self.value(expr.right))
        return f"({self._operand(expr.left)} {SIGNS[op]} {self._operand(expr.right)})"

    def quotient_form(self, expr: Binary) -> tuple[str, Expr]:
        """Returns how a division or a remainder of integers is computed, and by what."""
        form, by = self.values.quotient_form(expr)
        # The divisor of a lane that is off may be 0.
        return form if isinstance(by, Const) else quotient_template(expr.op, expr.dtype), by

    def _select(self, expr: Select) -> str:
        match expr.condition:
            case Binary(op="lt" | "gt" as op, left=one, right=other) if is_float(expr.dtype) and (
                one == expr.then and other == expr.otherwise
            ):
                choice = "least" if op == "lt" else "greatest"
                return self.applied(
                    choice, computed(expr.dtype), self.value(one), self.value(other)
                )
        width = bytes_of(expr.dtype)
        condition = self.condition(expr.condition, width)
        with self.where(condition, width):
            then = self._operand(expr.then)
        with self.where(f"(~{condition})", width):
            otherwise = self._operand(expr.otherwise)
        if self.is_uniform(expr.then) and self.is_uniform(expr.otherwise):
            then = self.value(expr.then)
        return f"({condition} ? {then} : {otherwise})"

    def _cast(self, expr: Cast) -> str:
        operand, dtype = expr.operand, expr.dtype
        source = computed(operand.dtype)
        if dtype in ROUNDED:
            if source == "float64":
                raise UnprintableError
            value = self.value(Cast(operand, "float32"))
            return value if dtype == operand.dtype else self.rounded(value, dtype)
        if source == "bool":
            one = f"({self.condition(operand, bytes_of(dtype))} & 1)"
            integers = f"int{8 * bytes_of(dtype)}"
            return one if dtype == integers else self.converted(one, integers, dtype)
        text = self.value(operand)
        if source == dtype:
            return text
        if not is_float(source) or is_float(dtype):
            return self.converted(text, source, dtype)
        whole = f"int{8 * bytes_of(source)}"
        if whole != dtype and bytes_of(source) <= bytes_of(dtype):
            raise UnprintableError
        saturate = self.helper("saturate", whole, **self.values.edges(source, whole))
        text = f"{saturate}({bare(text)})"
        if whole == dtype:
            return text
        low, high = (self.values.constant(x, whole) for x in dtype_range(dtype))
        words = {"source": whole, "S": self.value_type(whole), "low": low, "high": high}
        return f"{self.helper('nearest', dtype, **words)}({text})"

    def _call(self, call: FunctionCall) -> str:
        dtype = computed(call.args[0].dtype)
        args = tuple(map(self.value, call.args))
        if not is_float(dtype):
            return self.applied(f"{call.function}__integer", dtype, *args)
        row = FUNCTIONS[call.function]
        is_own = dtype == "float32" and row.c_float32
        if self._on and row.safe and not row.is_instruction and not is_own:
            # The library computes what is out of the domain lane by lane.
            on, kind = self.on(bytes_of(dtype)), self.value_type(dtype)
            safe = (self.values.constant(value, dtype) for value in row.safe)
            args = tuple(
                f"({on} ? {a} : {kind}{{}} + {b})" for a, b in zip(args, safe, strict=True)
            )
        return self.math(call.function, args, dtype)
