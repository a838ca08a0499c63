"""What a printer knows of a kernel: names and types in C, ranges, the helpers it has used."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TypeAlias

import numpy as np

from msops._base.dtypes import as_dtype
from msops._loops.analysis.polyhedral.bounds import Index
from msops._loops.ir.nodes import Buffer, Cast, Expr, Kernel, Store
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import (
    Range,
    dtype_range,
    is_within,
    range_of,
    range_of_stores,
    unwrapped_range,
)
from msops._loops.ir.walk import contents, expressions, own_expressions, statements
from msops._loops.to_c.text.dialect import Declaration, Dialect
from msops._loops.to_c.text.helpers import TEMPLATES, words_of
from msops._loops.to_c.text.names import choose_names
from msops._loops.to_c.text.syntax import float32_text, short_name

Unproven: TypeAlias = Collection[Index]
"""Indices that may be out of range."""

_VALUE_TYPES = {
    "bool": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int32": "int32_t",
    "int64": "int64_t", "uint8": "uint8_t", "uint16": "uint16_t", "uint32": "uint32_t",
    "uint64": "uint64_t", "float16": "float", "bfloat16": "float", "float32": "float",
    "float64": "double",
}  # fmt: skip


class KnownKernel:
    """What is known of one kernel.

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
            known = words_of(dtype) if dtype else {}
            known |= words | {"name": name, "inline": self._dialect.inline}
            self.helpers[name] = TEMPLATES[template].substitute(known)
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

    def unsigned(self, dtype: str) -> str:
        """Returns the unsigned type of an integer dtype that is not narrower than int."""
        return "uint64_t" if dtype.endswith("64") else "uint32_t"

    def rare(self, condition: str) -> str:
        """Returns a condition that hardly ever holds."""
        return self._dialect.rare.format(condition)

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

    def _range(self, expr: Expr) -> Range:
        return range_of(expr, self.ranges)

    def _never_wraps(self, expr: Expr) -> bool:
        """Returns whether an integer operation stays in the range of its dtype."""
        exact = unwrapped_range(expr, self.ranges)
        return exact is not None and is_within(exact, dtype_range(expr.dtype))

    def truncated(self) -> str:
        """Returns x, with a 0 for what a conversion to an integer makes 0.

        gcc 12 takes `(float)(int)x` for a truncation of x, which is -0.0 for -0.25, wherever in a
        kernel the two conversions are.
        """
        return "(x * x < 1 ? 0 : x)" if self._makes_floats else "x"
