"""Expressions of the loop IR in C's syntax: what C and CUDA C have in common.

A value of the IR is a C value of its dtype's type; float16 and bfloat16 are held in float, rounded
after each operation. Loop variables are int64_t, and so is index arithmetic where it cannot leave
int32.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template

from msops._loops.ir.formulas import is_name, uses
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
from msops._loops.ir.ranges import dtype_range, float_range, is_within
from msops._loops.to_c.text.arithmetic import Arithmetic
from msops._loops.to_c.text.syntax import ROUNDED, bare, computed, short_name, width


class Values(Arithmetic):
    """Prints the expressions of one kernel."""

    def value(self, expr: Expr) -> str:
        """Returns an expression as a C value of its dtype's type."""
        match expr:
            case Const(value=value, dtype=dtype):
                return self.constant(value, dtype)
            case Var(name=name):
                return f"(int32_t){self.names[name]}"
            case Load():
                return self._load(expr)
            case Unary():
                return self._unary(expr)
            case Binary():
                return self._binary(expr)
            case FunctionCall(function=function, args=args, dtype=dtype):
                return self._call(function, args, dtype)
            case Cast(operand=operand, dtype=dtype):
                return self._cast(operand, dtype)
            case Within(operand=Cast(operand=operand, dtype=dtype)) if is_float(operand.dtype):
                return self._integer("whole", operand, dtype)
            case Within(operand=operand):
                return self.value(operand)
            case Select():
                return self._select(expr)

    def _select(self, expr: Select) -> str:
        texts = [self.value(part) for part in (expr.condition, expr.then, expr.otherwise)]
        if all(map(self._is_cheap, (expr.then, expr.otherwise))):
            return f"{self.helper('select', expr.dtype)}({', '.join(map(bare, texts))})"
        return "({} ? {} : {})".format(*texts)

    def _call(self, function: str, args: tuple[Expr, ...], dtype: str) -> str:
        operand_dtype = args[0].dtype
        values = tuple(map(self.value, args))
        if not is_float(operand_dtype):
            return self._integer_call(function, values[0], dtype)
        text = self.math(function, values, computed(operand_dtype))
        return text if dtype == "bool" else self.rounded(text, dtype)

    def _integer_call(self, function: str, value: str, dtype: str) -> str:
        template = self._dialect.integer_form(FUNCTIONS[function])
        name = f"ms_{function}_{short_name(dtype)}"
        kind = self.value_type(dtype)
        text = Template(template).substitute(T=kind, U=f"uint{width(dtype)}_t")
        return self._function(name, kind, {"x": (kind, value)}, text)

    def math(self, function: str, args: tuple[str, ...], dtype: str) -> str:
        """Returns a function, or `pow`, of float32 or float64 values."""
        own = self._dialect.function(function, dtype, self.is_beside_vectors)
        if own is not None:
            return f"{self.symbol(own)}({', '.join(args)})"
        row = FUNCTIONS.get(function)
        form = (self._dialect.float_form(row) if row else "") or function
        if row is None or is_name(form):
            return f"{form}{'f' if dtype == 'float32' else ''}({', '.join(args)})"
        named = dict(zip(row.arguments, args, strict=True))
        if all(uses(form, name) == 1 for name in named):
            return self.formula(form, named, dtype)
        # An argument that is used twice is evaluated once.
        kind = self.value_type(dtype)
        return self._function(
            f"ms_{function}_{short_name(dtype)}",
            "int" if row.to_bool else kind,
            {name: (kind, text) for name, text in named.items()},
            bare(self.formula(form, {name: name for name in named}, dtype)),
        )

    def _function(
        self, name: str, result: str, arguments: Mapping[str, tuple[str, str]], value: str
    ) -> str:
        """Returns a call of a function that returns an expression of arguments.

        They are given by their names, each as its C type and its value.
        """
        declared = ", ".join(f"{kind} {argument}" for argument, (kind, _) in arguments.items())
        text = f"{self._dialect.inline} {result} {name}({declared}) {{\n  return {value};\n}}"
        self.helpers.setdefault(name, text)
        return f"{name}({', '.join(text for _, text in arguments.values())})"

    def _cast(self, operand: Expr, dtype: str) -> str:
        source, text = operand.dtype, self.value(operand)
        if source == dtype:
            return text
        if dtype == "bool":
            return f"({text} != 0)"
        if dtype in ROUNDED:
            if source == "float64":
                text = f"{self.helper('round_to_odd')}({text})"
            return self.rounded(text if is_float(source) else f"(float){text}", dtype)
        if is_float(source) and not is_float(dtype):
            low, high = dtype_range(dtype)
            is_inside = is_within(float_range(operand, self.ranges), (low + 1, high - 1))
            return self._integer("whole" if is_inside else "saturate", operand, dtype)
        return f"(({self.value_type(dtype)}){text})"

    def _integer(self, template: str, operand: Expr, dtype: str) -> str:
        """Returns a float as an integer, by a helper: "saturate", or "whole" of one in range."""
        source = computed(operand.dtype)
        words = {"S": self.value_type(source)} | self.edges(source, dtype)
        return f"{self.helper(template, dtype, source=source, **words)}({self.value(operand)})"

    def edges(self, source: str, dtype: str) -> dict[str, str]:
        """Returns what these helpers name of a float dtype and an integer dtype."""
        least, greatest = dtype_range(dtype)
        above, below = (self.constant(float(edge), source) for edge in (greatest + 1, least))
        return {"above": above, "below": below, "x": self.truncated()}
