"""Elements of arrays in C's syntax, and indices: int64_t where they cannot leave int32."""

from __future__ import annotations

from collections.abc import Iterable

from msops._loops.ir.algebra import joined_axes
from msops._loops.ir.nodes import Binary, Cast, Const, Expr, Load, Store, Var, Within
from msops._loops.ir.operators import is_float
from msops._loops.ir.ranges import dtype_range, is_within
from msops._loops.ir.text import point
from msops._loops.ir.walk import expressions
from msops._loops.to_c.text.known import KnownKernel
from msops._loops.to_c.text.operations import Operations
from msops._loops.to_c.text.syntax import SIGNS, bare, division_sign, has_variable, offset


class Elements(KnownKernel, Operations):
    """Prints elements and their indices."""

    def converter(self, way: str, dtype: str) -> str:
        """Returns what converts "from" elements of float16 or bfloat16, or "to" them."""
        if dtype == "bfloat16":
            return self.helper(f"{way}_bf16")
        dialect = self._dialect
        return self.symbol(dialect.from_float16 if way == "from" else dialect.to_float16)

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
                if value == dtype_range("int64")[0]:
                    # C has no such literal: that of its magnitude is unsigned.
                    return self.constant(value, "int64")
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

    # Elements.

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
        nearest = self.helper("near", "int64", is_outside=self.rare("i < 0 || i >= size"))
        return f"{nearest}({bare(self.index(index))}, {size})"

    def tests(self, store: Store) -> list[str]:
        """Returns the tests of the indices of a store that may be out of range."""
        found = []
        for axis, size in enumerate(self.buffers[store.buffer].shape):
            if self.may_be_outside(store, axis, size):
                index = self.index(store.indices[axis])
                text = f"(uint64_t)({index}) < {size}"
                if self.check_bounds:
                    arguments = f"{index}, {size}, {self.check(store, axis)}, ms_failed"
                    text = f"{self.helper('inside_checked')}({arguments})"
                found.append(text)
        return found

    def may_be_outside(self, access: Load | Store, axis: int, size: int) -> bool:
        """Returns whether an index has to be guarded."""
        if is_within(self._range(access.indices[axis]), (0, size - 1)):
            return False
        index = (access.buffer, access.indices, axis)
        return self._unproven is None or index in self._unproven

    def check(self, access: Load | Store, axis: int) -> int:
        """Returns the error code of an index that is out of range."""
        size = self.buffers[access.buffer].shape[axis]
        problem = f"index {axis} of {access.buffer!r} is outside of 0 .. {size - 1}"
        text = "\n".join((problem, *point(access.location)))
        if text not in self.checks:
            self.checks.append(text)
        return self.checks.index(text) + 1
