"""Expressions of the loop IR in C's syntax: what C and CUDA C have in common.

A value of the IR is a C value of its dtype's type; float16 and bfloat16 are held in float, rounded
after each operation. Loop variables are int64_t, and so is index arithmetic where it cannot leave
int32.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from string import Template
from typing import TypeAlias

import numpy as np

from msops._base.dtypes import as_dtype
from msops._loops.analysis.bounds import Index
from msops._loops.diagnostics import point
from msops._loops.ir.algebra import is_power_of_2, joined_axes
from msops._loops.ir.formulas import evaluate, is_name, uses
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    Kernel,
    Load,
    Select,
    Store,
    Unary,
    Var,
    Within,
)
from msops._loops.ir.operators import COMPARISONS, LOGICAL, is_float
from msops._loops.ir.ranges import (
    Range,
    dtype_range,
    float_range,
    is_within,
    loop_range,
    range_of,
    range_of_stores,
    unwrapped_range,
)
from msops._loops.ir.walk import contents, expressions, loads, own_expressions, statements
from msops._loops.to_c.facts.work import is_quick
from msops._loops.to_c.text.dialect import Declaration, Dialect
from msops._loops.to_c.text.helpers import fill
from msops._loops.to_c.text.names import choose_names
from msops._loops.to_c.text.syntax import (
    ROUNDED,
    SIGNS,
    bare,
    compares_indices,
    computed,
    division_sign,
    float32_text,
    has_variable,
    offset,
    short_name,
    signedness,
    unsigned_type,
    width,
)

Unproven: TypeAlias = Collection[Index]
"""Indices that may be out of range."""

_EXPENSIVE = ("div", "floordiv", "mod", "truncdiv", "truncmod", "pow")

_MOST_CHOICES = 4
"""Inside of a choice that are made whether or not their values are used: a loop with a branch is no
loop over vectors."""

POWERS = {
    0.5: "root",
    2.0: "square",
    **{float(exponent): f"power{exponent}" for exponent in range(3, 9)},
    -1.0: "reciprocal",
}
"""Helpers for some exponents of floats; the helper for 1/2 is right for -inf and -0, too. Products
are what `lax.integer_pow` computes."""


_VALUE_TYPES = {
    "bool": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t",
    "int64": "int64_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t",
    "uint64": "uint64_t", "float16": "float", "bfloat16": "float", "float32": "float",
    "float64": "double",
}  # fmt: skip

WHOLE = {"land": "&", "lor": "|"}
PLAIN_QUOTIENTS = ("/", "%", ">>", "&")
"""Operators of C that divide."""
_OF_CONSTANTS = {"min": "least", "max": "greatest"}
"""Helpers for the extreme of a constant and a number."""
SIGN_BITS = {"float32": "0x80000000u", "float64": "0x8000000000000000ull"}


class Values:
    """Prints the expressions of one kernel.

    Attributes:
      helpers: the helper functions used so far, by name, in an order that declares before use.
      checks: what the error codes 1, 2, ... of the bounds check mean.
      ranges: the ranges of the loop variables and scalar locals met so far.
      buffers: the parameters, buffers and locals met so far.
      variables: names of the locals that are C variables, not arrays.
      overwritten: names of buffers and locals that need not be zero at the start.
      check_bounds: an index out of range is an error of the run.
      is_beside_vectors: whether it prints what a loop in vectors leaves.
    """

    def __init__(
        self,
        kernel: Kernel,
        dialect: Dialect,
        unproven: Unproven | None,
        overwritten: Collection[str] = (),
        check_bounds: bool = False,
    ) -> None:
        """Prepares to print.

        Args:
          kernel: the kernel.
          dialect: C or CUDA C.
          unproven: the indices that may be out of range; None if that was not analysed: then the
            ranges of loops decide.
          overwritten: names of buffers and locals that need not be zero at the start.
          check_bounds: such an index is an error of the run.
        """
        self._dialect = dialect
        self.helpers: dict[str, str] = {}
        self.checks: list[str] = []
        self.ranges: dict[str, Range] = contents(kernel)
        self.buffers = {buffer.name: buffer for buffer in (*kernel.parameters, *kernel.buffers)}
        self.variables: set[str] = set()
        self._locals: set[str] = set()
        self._stored: dict[str, list[Expr]] = {}
        for stmt in statements(kernel.body):
            if isinstance(stmt, Store) and not stmt.indices:
                self._stored.setdefault(stmt.buffer, []).append(stmt.value)
        self._makes_floats = any(
            isinstance(part, Cast) and is_float(part.dtype) and not is_float(part.operand.dtype)
            for stmt in statements(kernel.body)
            for whole in own_expressions(stmt)
            for part in expressions(whole)
        )
        self.names = choose_names(kernel, dialect.reserved)
        self.overwritten = overwritten
        self._unproven = unproven
        self.check_bounds = check_bounds
        self.is_beside_vectors = False

    def helper(self, template: str, dtype: str | None = None, **words: str) -> str:
        """Returns the name of a helper function, which is printed with the kernel from now on."""
        suffix = [] if dtype is None else [short_name(dtype)]
        suffix += [short_name(words.pop("source"))] if "source" in words else []
        name = "_".join(["ms", template.partition("__")[0], *suffix])
        if name not in self.helpers:
            self.helpers[name] = fill(template, name, self._dialect.inline, dtype, **words)
        return name

    def symbol(self, symbol: Declaration) -> str:
        """Returns the name of a type or function, which is defined from now on."""
        for name, definition in symbol.definitions.items():
            self.helpers.setdefault(name, definition)
        return symbol.name

    def value_type(self, dtype: str) -> str:
        """Returns the C type of a value."""
        return _VALUE_TYPES[dtype]

    def storage_type(self, dtype: str) -> str:
        """Returns the C type of an array's elements."""
        if dtype == "float16":
            return self.symbol(self._dialect.float16)
        return "uint16_t" if dtype == "bfloat16" else _VALUE_TYPES[dtype]

    def declare(self, buffer: Buffer) -> None:
        """Makes a local known; one of shape () is a variable."""
        self.buffers[buffer.name] = buffer
        self._locals.add(buffer.name)
        if not buffer.shape:
            self.variables.add(buffer.name)
            known = range_of_stores(self._stored.get(buffer.name, ()), self.ranges)
            if known is not None:
                self.ranges[buffer.name] = known

    def is_local(self, name: str) -> bool:
        """Returns whether a buffer is a local."""
        return name in self._locals

    # Values.

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
                return self._whole(operand, dtype)
            case Within(operand=operand):
                return self.value(operand)
            case Select():
                return self._select(expr)

    def _select(self, expr: Select) -> str:
        texts = [self.value(part) for part in (expr.condition, expr.then, expr.otherwise)]
        if all(map(self._is_cheap, (expr.then, expr.otherwise))):
            return f"{self.helper('select', expr.dtype)}({', '.join(map(bare, texts))})"
        return "({} ? {} : {})".format(*texts)

    def constant(self, value: bool | int | float, dtype: str) -> str:
        """Returns a number as a C literal."""
        if is_float(dtype):
            return self._float_constant(float(value), dtype)
        value = int(value)
        suffix = {"int64": "ll", "uint32": "u", "uint64": "ull"}.get(dtype, "")
        if value >= 0:
            return f"{value}{suffix}"
        least = value == dtype_range(dtype)[0]
        return f"({value + 1}{suffix} - 1)" if least else f"({value}{suffix})"

    def _float_constant(self, value: float, dtype: str) -> str:
        with np.errstate(over="ignore"):
            value = float(as_dtype(dtype).dtype.type(value))
        if not math.isfinite(value):
            return self._dialect.not_finite(value, dtype)
        text = repr(value) if dtype == "float64" else f"{float32_text(value)}f"
        return f"({text})" if text.startswith("-") else text

    def _unary(self, expr: Unary) -> str:
        kind = _VALUE_TYPES[expr.dtype]
        if expr.op == "neg" and not is_float(expr.dtype) and not self._never_wraps(expr):
            return f"(({kind})(0 - {self._unsigned(expr.operand)}))"
        operand = self.value(expr.operand)
        if expr.op == "bits":
            return self._bits(expr, operand)
        if expr.op == "not":
            return f"(!{operand})"
        if expr.op == "invert":
            return f"(({kind})~{operand})"
        return f"(-{operand})"

    def _bits(self, expr: Unary, operand: str) -> str:
        if is_float(expr.dtype):
            helper = self.helper("of_bits", expr.dtype)
            return f"{helper}({bare(self._unsigned(expr.operand))})"
        helper = self.helper("bits_of", expr.operand.dtype)
        return f"(({_VALUE_TYPES[expr.dtype]}){helper}({bare(operand)}))"

    def _binary(self, expr: Binary) -> str:
        op, dtype = expr.op, expr.left.dtype
        if op in COMPARISONS and compares_indices(expr):
            return f"({self.index(expr.left)} {SIGNS[op]} {self.index(expr.right)})"
        if (
            op == "pow"
            and is_float(dtype)
            and isinstance(expr.right, Const)
            and expr.right.value in POWERS
        ):
            power = f"{self.helper(POWERS[expr.right.value], dtype)}({bare(self.value(expr.left))})"
            return self.rounded(power, dtype)
        if self._wraps(expr):
            return f"(({_VALUE_TYPES[dtype]}){self._wrapped(expr)})"
        left, right = self.value(expr.left), self.value(expr.right)
        if op in (*COMPARISONS, *LOGICAL, "and", "or", "xor"):
            sign = WHOLE[op] if self._is_whole(expr) else SIGNS[op]
            return f"({left} {sign} {right})"
        if is_float(dtype):
            return self.rounded(self._float_binary(expr, left, right), dtype)
        return self._integer_binary(expr, left, right)

    def _is_whole(self, expr: Binary) -> bool:
        """Returns whether a condition is evaluated whole, without a branch between its parts.

        Where data decide, no processor foresees a branch. A compiler makes one: it may not read
        elements before the first part holds, for all it knows. Of variables it decides this itself.
        """
        return (
            expr.op in LOGICAL
            and any(load.indices for load in loads(expr.right))
            and is_quick(expr.right)
            and self._is_cheap(expr.right)
        )

    def _float_binary(self, expr: Binary, left: str, right: str) -> str:
        op, dtype = expr.op, computed(expr.dtype)
        # gcc 12 takes 0.0 - x for -x, wrong for 0, where it sees in the text that x is never -0.
        if op in ("add", "sub") and _is_zero(expr.left, 1) and not isinstance(expr.right, Load):
            right = f"{self.helper('same', dtype)}({bare(right)})"
        if op == "add" and _is_zero(expr.right, 1) and not isinstance(expr.left, Load):
            left = f"{self.helper('same', dtype)}({bare(left)})"
        if op in SIGNS:
            return f"({left} {SIGNS[op]} {right})"
        if op == "pow":
            return self.math("pow", (left, right), dtype)
        if op not in ("min", "max"):
            return f"{self.helper(f'{op}__float', dtype)}({left}, {right})"
        of_constant = constant_and_number(expr)
        if of_constant:
            constant, number = map(self.value, of_constant)
            text = f"{self.helper(_OF_CONSTANTS[op], dtype)}({constant}, {number})"
            return f"({text} + {self.constant(0.0, dtype)})" if is_maximum_with_0(expr) else text
        if is_chained(expr, self.variables):
            left, right = right, left
        return f"{self.extreme(op, dtype, expr)}({left}, {right})"

    def rare(self, condition: str) -> str:
        """Returns a condition that hardly ever holds."""
        return self._dialect.rare.format(condition)

    def extreme(self, op: str, dtype: str, numbers: Expr | None = None) -> str:
        """Returns a helper for extremes of floats.

        Args:
          op: "min" or "max".
          dtype: in which they are computed.
          numbers: an expression that holds them.
        """
        sign, bits_of = SIGN_BITS[dtype], self.helper("bits_of", dtype)
        # gcc compares what it reads as float16 by a call.
        is_read = numbers is not None and "float16" in {load.dtype for load in loads(numbers)}
        is_half = is_read and dtype == "float32"
        is_nan = f"({bits_of}(b) & ~{sign}) > 0x7f800000u" if is_half else "b != b"
        return self.helper(
            f"{op}__float",
            "float16" if is_half else dtype,
            nan=self._dialect.not_finite(math.nan, dtype),
            is_nan=self.rare(is_nan),
            is_opposite=self.rare(f"({bits_of}(a) ^ {bits_of}(b)) == {sign}"),
        )

    def _integer_binary(self, expr: Binary, left: str, right: str) -> str:
        op, dtype = expr.op, expr.dtype
        if op in ("add", "sub", "mul"):
            return f"({left} {SIGNS[op]} {right})"
        if op in ("floordiv", "mod", "truncdiv", "truncmod"):
            return self._quotient(expr, left)
        if op == "shr" and is_within(self._range(expr.right), (0, width(dtype) - 1)):
            return f"(({_VALUE_TYPES[dtype]})({left} >> {right}))"
        signed = "" if op in ("min", "max", "shl") else f"__{signedness(dtype)}"
        return f"{self.helper(f'{op}{signed}', dtype)}({left}, {right})"

    def _wraps(self, expr: Expr) -> bool:
        """Returns whether a result may be out of range where C's own types do not wrap."""
        return (
            isinstance(expr, Binary)
            and expr.op in ("add", "sub", "mul")
            and not is_float(expr.dtype)
            and expr.dtype not in ("uint32", "uint64")
            and not self._never_wraps(expr)
        )

    def _wrapped(self, expr: Binary) -> str:
        """Returns arithmetic in an unsigned type, in which it wraps."""
        return f"({self._unsigned(expr.left)} {SIGNS[expr.op]} {self._unsigned(expr.right)})"

    def _unsigned(self, expr: Expr) -> str:
        """Returns a value in an unsigned type that is not narrower than int."""
        kind = unsigned_type(expr.dtype)
        if expr.dtype in ("int32", "int64") and isinstance(expr, Binary) and self._wraps(expr):
            return self._wrapped(expr)
        return f"({kind}){self.value(expr)}"

    def _quotient(self, expr: Binary, left: str) -> str:
        """Prints a division or a remainder of integers."""
        form, by = self.quotient_form(expr)
        right = self.value(by)
        if form in PLAIN_QUOTIENTS:
            return f"({left} {form} {right})"
        return f"{self.helper(form, expr.dtype)}({left}, {right})"

    def quotient_form(self, expr: Binary) -> tuple[str, Expr]:
        """Returns how a division or a remainder of integers is computed, and by what.

        It is an operator of C where that is the same, else the template of a helper.
        """
        op, right, kind = expr.op, expr.right, signedness(expr.dtype)
        low, high = self._range(expr.left)
        least = self._range(right)[0]
        # gcc 12 may move a sign out of a division, which is wrong for the least integer alone.
        is_safe = op.startswith("trunc") and low > dtype_range(expr.dtype)[0]
        if least > 0 and (low >= 0 or is_safe or kind == "unsigned"):
            return division_sign(op), right
        if op in ("floordiv", "mod") and is_power_of_2(right):
            # In two's complement both round down.
            power = int(right.value)
            bits = power - 1 if op == "mod" else power.bit_length() - 1
            return "&" if op == "mod" else ">>", Const(bits, right.dtype)
        if kind == "signed" and least > 0 and op in ("floordiv", "mod"):
            is_around = op == "mod" and -least <= low and high < least
            return f"{op}_{'around' if is_around else 'positive'}__signed", right
        return quotient_template(op, expr.dtype), right

    def _range(self, expr: Expr) -> Range:
        return range_of(expr, self.ranges)

    def _never_wraps(self, expr: Expr) -> bool:
        """Returns whether an integer operation stays in the range of its dtype."""
        exact = unwrapped_range(expr, self.ranges)
        return exact is not None and is_within(exact, dtype_range(expr.dtype))

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
        kind = _VALUE_TYPES[dtype]
        text = Template(template).substitute(T=kind, U=f"uint{width(dtype)}_t")
        return self._function(name, kind, {"x": (kind, value)}, text)

    def math(self, function: str, args: tuple[str, ...], dtype: str) -> str:
        """Returns a function, or `pow`, of float32 or float64 values."""
        own = self._own(function, dtype)
        if own is not None:
            return f"{self.symbol(own)}({', '.join(args)})"
        row = FUNCTIONS.get(function)
        form = (self._dialect.float_form(row) if row else "") or function
        if row is None or is_name(form):
            return f"{form}{'f' if dtype == 'float32' else ''}({', '.join(args)})"
        named = dict(zip(row.arguments, args, strict=True))
        if all(uses(form, name) == 1 for name in named):
            return self._formula(form, named, dtype)
        # An argument that is used twice is evaluated once.
        kind = _VALUE_TYPES[dtype]
        return self._function(
            f"ms_{function}_{short_name(dtype)}",
            "int" if row.to_bool else kind,
            {name: (kind, text) for name, text in named.items()},
            bare(self._formula(form, {name: name for name in named}, dtype)),
        )

    def _own(self, function: str, dtype: str) -> Declaration | None:
        return self._dialect.function(function, dtype, is_beside_vectors=self.is_beside_vectors)

    def _formula(self, formula: str, values: Mapping[str, str], dtype: str) -> str:
        """Returns a formula of float32 or float64 values as a C expression."""

        def apply(op: str, *operands: str) -> str:
            if op == "neg":
                return f"(-{operands[0]})"
            if op == "select":
                return "({} ? {} : {})".format(*operands)
            if op in SIGNS:
                return f"({operands[0]} {SIGNS[op]} {operands[1]})"
            return self.math(op, operands, dtype)

        return evaluate(formula, values, lambda value: self.constant(value, dtype), apply)

    def _function(
        self, name: str, result: str, arguments: Mapping[str, tuple[str, str]], value: str
    ) -> str:
        """Returns a call of a helper function of one expression.

        Args:
          name: its name.
          result: its C type.
          arguments: the C type and the value of each argument, by its name.
          value: the expression.
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
            if is_within(float_range(operand, self.ranges), (low + 1, high - 1)):
                return self._whole(operand, dtype)
            return f"{self._saturating(computed(source), dtype)}({text})"
        return f"(({_VALUE_TYPES[dtype]}){text})"

    def _whole(self, operand: Expr, dtype: str) -> str:
        """Returns a float in the range of an integer dtype, or NaN, as such an integer."""
        source = operand.dtype
        words = {"S": self.value_type(source), "x": self.truncated()}
        helper = self.helper("whole", dtype, source=source, **words)
        return f"{helper}({self.value(operand)})"

    def _saturating(self, source: str, dtype: str) -> str:
        """Returns the helper that converts float32 or float64 to an integer dtype."""
        least, greatest = dtype_range(dtype)
        above, below = (self.constant(float(edge), source) for edge in (greatest + 1, least))
        words = {"S": _VALUE_TYPES[source], "x": self.truncated()}
        return self.helper("saturate", dtype, source=source, above=above, below=below, **words)

    def truncated(self) -> str:
        """Returns x, with a 0 for what a conversion to an integer makes 0.

        gcc 12 takes `(float)(int)x` for a truncation of x, which is -0.0 for -0.25, wherever in a
        kernel the two conversions are.
        """
        return "(x * x < 1 ? 0 : x)" if self._makes_floats else "x"

    # Values of dtypes that arrays store otherwise.

    def rounded(self, text: str, dtype: str) -> str:
        """Returns a value, rounded first if its dtype is float16 or bfloat16."""
        if dtype not in ROUNDED:
            return text
        return self.from_storage(self.to_storage(text, dtype), dtype)

    def from_storage(self, text: str, dtype: str) -> str:
        """Returns the value of an element of an array."""
        if dtype == "float16":
            return f"{self.symbol(self._dialect.from_float16)}({text})"
        return f"{self.helper('from_bf16')}({text})" if dtype == "bfloat16" else text

    def to_storage(self, text: str, dtype: str) -> str:
        """Returns a value as an element of an array; one that comes from an array is one."""
        if dtype in ROUNDED and text.startswith(start := self.from_storage("", dtype)[:-1]):
            return text.removeprefix(start)[:-1]
        if dtype == "float16":
            return f"{self.symbol(self._dialect.to_float16)}({text})"
        return f"{self.helper('to_bf16')}({text})" if dtype == "bfloat16" else text

    def _is_cheap(self, expr: Expr) -> bool:
        """Returns whether an expression may be evaluated where its value is not used."""
        parts = list(expressions(expr))
        choices = sum(isinstance(part, Select) for part in parts)
        return choices <= _MOST_CHOICES and not any(
            isinstance(part, FunctionCall)
            or (isinstance(part, Load) and not self.is_always_inside(part))
            or (isinstance(part, Binary) and part.op in _EXPENSIVE)
            for part in parts
        )

    def is_always_inside(self, load: Load) -> bool:
        """Returns whether the element of a load exists even where the conditions around it fail."""
        if any(isinstance(part, Within) and part.is_guarded for part in expressions(load)):
            return False
        shape = self.buffers[load.buffer].shape
        return all(
            is_within(self._range(index), (0, size - 1))
            for index, size in zip(load.indices, shape, strict=True)
        )

    # Indices.

    def index(self, expr: Expr) -> str:
        """Returns an integer expression as an int64_t of the same value."""
        match expr:
            case Const(value=value):
                return f"{value}" if value >= 0 else f"({value})"
            case Var(name=name):
                return self.names[name]
            case Within(operand=Cast(operand=operand)) if is_float(operand.dtype):
                return f"(int64_t){self.value(expr)}"
            case Within(operand=operand, is_guarded=True):
                return self._unwrapped(operand)
            case Within(operand=operand):
                return self.index(operand)
            case Cast(operand=operand) if not is_float(operand.dtype) and is_within(
                self._range(operand), dtype_range(expr.dtype)
            ):
                return self.index(operand)
            case Binary(op="add" | "sub" | "mul" as op, left=left, right=right) if has_variable(
                expr
            ) and self._never_wraps(expr):
                return f"({self.index(left)} {SIGNS[op]} {self.index(right)})"
            case Binary(
                op="floordiv" | "truncdiv" | "mod" | "truncmod" as op, left=left, right=right
            ) if has_variable(expr) and self._range(left)[0] >= 0 and self._range(right)[0] > 0:
                return f"({self.index(left)} {division_sign(op)} {self.index(right)})"
            case Binary(op="min" | "max" as op, left=left, right=right) if has_variable(expr):
                return f"{self.helper(op, 'int64')}({self.index(left)}, {self.index(right)})"
        text = self.value(expr)
        if expr.dtype == "uint64":
            # A value that int64_t cannot hold is beyond the end of any array.
            return f"{self.helper('signed')}({bare(text)})"
        return f"(int64_t){text}"

    def _unwrapped(self, expr: Expr) -> str:
        """Returns an index that is in range as it stands, in 64 bits: no sum in it has wrapped."""
        match expr:
            case Binary(op="add" | "sub" | "mul" as op, left=left, right=right):
                return f"({self._unwrapped(left)} {SIGNS[op]} {self._unwrapped(right)})"
        return self.index(expr)

    def element(self, buffer: str, indices: tuple[Expr, ...]) -> str:
        """Returns the C lvalue of an element whose indices are in range."""
        axes = joined_axes(indices, self.buffers[buffer].shape)
        sizes = tuple(size for _, size in axes)
        return self._element(buffer, [self.index(index) for index, _ in axes], sizes)

    def _element(self, buffer: str, indices: Iterable[str], shape: tuple[int, ...]) -> str:
        name = self.names[buffer]
        if buffer in self.variables:
            return name
        return f"{name}[{offset(tuple(indices), shape)}]"

    def _load(self, load: Load) -> str:
        if 0 in self.buffers[load.buffer].shape:
            # An empty array has no nearest element.
            return self.constant(0, load.dtype)
        text = self.lvalue(load)
        return text if load.buffer in self.variables else self.from_storage(text, load.dtype)

    def lvalue(self, load: Load) -> str:
        """Returns the C lvalue of the element that a load reads, or of the nearest one."""
        shape = self.buffers[load.buffer].shape
        if any(self.may_be_outside(load, axis, size) for axis, size in enumerate(shape)):
            indices = [self.clamped(load, axis, size) for axis, size in enumerate(shape)]
            return self._element(load.buffer, indices, shape)
        return self.element(load.buffer, load.indices)

    def clamped(self, load: Load, axis: int, size: int) -> str:
        """Returns an index of a load, moved into its range if it may be outside."""
        index = load.indices[axis]
        if not self.may_be_outside(load, axis, size):
            return self.index(index)
        if self.check_bounds:
            arguments = f"{self.index(index)}, {size}, {self.check(load, axis)}, ms_failed"
            return f"{self.helper('clamp_checked')}({arguments})"
        return f"{self._nearest()}({bare(self.index(index))}, {size})"

    def _nearest(self) -> str:
        """Returns the helper that moves an index into its range."""
        return self.helper("near", "int64", is_outside=self.rare("i < 0 || i >= size"))

    def may_be_outside(self, access: Load | Store, axis: int, size: int) -> bool:
        """Returns whether an index has to be guarded."""
        if is_within(self._range(access.indices[axis]), (0, size - 1)):
            return False
        index = (access.buffer, access.indices, axis)
        return self._unproven is None or index in self._unproven

    def are_inside(self, loop: For, accesses: Iterable[Load | Store]) -> bool:
        """Returns whether none of some accesses in a loop has to be guarded."""
        self.ranges[loop.var] = loop_range(loop, self.ranges)
        return not any(
            self.may_be_outside(access, axis, size)
            for access in accesses
            for axis, size in enumerate(self.buffers[access.buffer].shape)
        )

    def check(self, access: Load | Store, axis: int) -> int:
        """Returns the error code of an index that is out of range."""
        size = self.buffers[access.buffer].shape[axis]
        problem = f"index {axis} of {access.buffer!r} is outside of 0 .. {size - 1}"
        text = "\n".join((problem, *point(access.location)))
        if text not in self.checks:
            self.checks.append(text)
        return self.checks.index(text) + 1


def quotient_template(op: str, dtype: str) -> str:
    """Returns the template of a division or a remainder of any integers of a dtype."""
    kind = signedness(dtype)
    if kind == "unsigned":
        op = {"floordiv": "truncdiv", "truncmod": "mod"}.get(op, op)
    return f"{op}__{kind}"


def constant_and_number(extreme: Binary) -> tuple[Const, Expr] | None:
    """Returns the sides of the minimum or maximum of a constant and another float; else None.

    It is the constant if that is less or greater, else the number, which may be NaN. Of two zeros
    that is the number, too: the minimum with -0 is none of these.
    """
    for side, other in ((extreme.left, extreme.right), (extreme.right, extreme.left)):
        if isinstance(side, Const) and side.value == side.value:
            return None if extreme.op == "min" and _is_zero(side, -1) else (side, other)
    return None


def is_maximum_with_0(extreme: Binary) -> bool:
    """Returns whether an extreme is 0 for -0: 0 is to be added, which leaves other numbers."""
    return extreme.op == "max" and any(_is_zero(s, 1) for s in (extreme.left, extreme.right))


def is_chained(extreme: Binary, variables: Collection[str]) -> bool:
    """Returns whether the second side is a variable: what a chain waits for goes first."""
    return isinstance(extreme.right, Load) and extreme.right.buffer in variables


def _is_zero(expr: Expr, sign: int) -> bool:
    """Returns whether a float is 0, for the sign 1, or -0, for -1."""
    return isinstance(expr, Const) and expr.value == 0 and math.copysign(1, expr.value) == sign
