"""Estimates what native code costs on a CPU, to choose between it and operations of XLA.

The constants are seconds of one thread, as the generated C of the suite takes in
``benchmarks/loops_choice.py``, rounded. What is split over threads counts half: those of XLA's
operations were measured on two processors, and both share large work among the same threads.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from msops._base.dtypes import as_dtype
from msops._loops.analysis.affine import affine
from msops._loops.analysis.costs import CACHE_BYTES, UNKNOWN_TRIPS, arithmetic, mean_trips
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import (
    Buffer,
    Const,
    Expr,
    For,
    FunctionCall,
    If,
    Kernel,
    Load,
    Local,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.ranges import Ranges, loop_range, range_of
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import accesses_in, bodies, expressions, loads, operands, statements

SECONDS_PER_OPERATION = 1.5e-11
"""One operation in vector registers, on what the second-level cache holds."""
SECONDS_PER_STREAMED = 2.6e-11
"""One byte of a larger array, read or written in its order."""
SECONDS_PER_SCALAR = 1e-10
"""One operation by itself, as in a loop whose order is kept."""
SECONDS_PER_FUNCTION = 5e-10
"""One call of a mathematical function on one element of a vector."""
SECONDS_PER_SCALAR_FUNCTION = 5e-9
"""One call of a mathematical function by itself."""
SECONDS_PER_MISS = 2e-9
"""One element of a larger array, away from the one before."""
SECONDS_PER_TILED = 1.1e-9
"""One such element in a line of memory that was read shortly before, or in the next cache."""
FIRST_CACHE_BYTES = 1 << 15
"""The size of the largest arrays that the first-level cache holds."""
SECONDS_PER_ITERATION = 3e-10
"""An iteration of a loop around another."""
BLOCK_SECONDS = 2e-5
"""The least work worth a thread: a few times what it takes to start one."""
_THREADS = 2
# Lines of memory that the first-level cache keeps.
_LINES = 256
# Rows in the lanes of a vector: so few of them the processor also fetches ahead.
_FEW_LINES = 16


def native_seconds(kernel: Kernel) -> float:
    """Returns the estimated seconds of native code, beside those of the call.

    Args:
      kernel: as it is printed: its loops have their kinds, and their order.
    """
    return _SharedCosts(kernel)._body(kernel.body, {}, None)


@dataclass(frozen=True)
class _Vector:
    """A loop that runs in vectors: its variable, its trips, and the variable of that around it."""

    var: str
    trips: float
    around: str


@dataclass
class NativeCosts:
    """Adds up the statements of a kernel; knows which of its arrays are larger than a cache."""

    kernel: Kernel

    @functools.cached_property
    def _large(self) -> dict[str, int]:
        """The bytes of an element of each array beyond the second-level cache."""
        return {
            buffer.name: as_dtype(buffer.dtype).dtype.itemsize
            for buffer in self._beyond(CACHE_BYTES)
        }

    @functools.cached_property
    def _beyond_first(self) -> set[str]:
        """The arrays beyond the first-level cache."""
        return {buffer.name for buffer in self._beyond(FIRST_CACHE_BYTES)}

    def _beyond(self, size: int) -> list[Buffer]:
        buffers = (*self.kernel.parameters, *self.kernel.buffers)
        return [buffer for buffer in buffers if size_bytes(buffer) > size]

    def loop(self, loop: For, ranges: Ranges) -> float:
        """Returns the seconds of a loop; `ranges` are of the variables of the loops around it."""
        return _trips(loop, ranges) * self.iteration(loop, ranges)

    def iteration(self, loop: For, ranges: Ranges) -> float:
        """Returns the seconds of one iteration of a loop."""
        is_innermost = not any(isinstance(inner, For) for inner in statements(loop.body))
        around = next(reversed(list(ranges)), "")
        vector = None
        if is_innermost and loop.kind != "serial":
            vector = _Vector(loop.var, _trips(loop, ranges), around)
        inside = {**ranges, loop.var: loop_range(loop, ranges)}
        start = self._streamed(loop) if vector else 0.0 if is_innermost else SECONDS_PER_ITERATION
        return start + self._body(loop.body, inside, vector)

    def _streamed(self, loop: For) -> float:
        """Returns the seconds of bringing in an element of each large array."""
        touched = {access.buffer for access in accesses_in(loop.body)}
        return sum(SECONDS_PER_STREAMED * self._large.get(buffer, 0) for buffer in touched)

    def _body(self, body: Sequence[Stmt], ranges: Ranges, vector: _Vector | None) -> float:
        """Returns the seconds of statements; `vector` is the loop that runs in vectors."""
        return sum(self._statement(stmt, ranges, vector) for stmt in body)

    def _statement(self, stmt: Stmt, ranges: Ranges, vector: _Vector | None) -> float:
        match stmt:
            case Store(buffer=buffer, indices=indices, value=value):
                address = self._address(indices, vector)
                return address + self._value(value, vector) + self._access(buffer, indices, vector)
            case For():
                return self.loop(stmt, ranges)
            case If(condition=condition, then=then, otherwise=otherwise):
                return self._value(condition, vector) + max(
                    self._body(then, ranges, vector), self._body(otherwise, ranges, vector)
                )
            case Local(body=inner):
                return self._body(inner, ranges, vector)

    def _value(self, expr: Expr, vector: _Vector | None) -> float:
        """Returns the seconds of computing a value."""
        match expr:
            case Load(buffer=buffer, indices=indices):
                return self._address(indices, vector) + self._access(buffer, indices, vector)
            case FunctionCall(function=function) if not FUNCTIONS[function].is_instruction:
                own = SECONDS_PER_FUNCTION if vector else SECONDS_PER_SCALAR_FUNCTION
            case Const() | Var():
                own = 0.0
            case _:
                own = _operation(vector)
        return own + sum(self._value(operand, vector) for operand in operands(expr))

    def _address(self, indices: Sequence[Expr], vector: _Vector | None) -> float:
        """Returns the seconds of indices: processors do the arithmetic beside that of values."""
        return sum(
            self._access(load.buffer, load.indices, vector)
            for index in indices
            for load in loads(index)
        )

    def _access(self, buffer: str, indices: Sequence[Expr], vector: _Vector | None) -> float:
        """Returns the seconds of a load or store: little, unless a vector of it is not in a row."""
        if vector is None:
            return SECONDS_PER_SCALAR
        functions = [affine(index, {vector.var}) for index in indices]
        if not any(f is None or f.along for f in functions):
            # It stays in a register.
            return 0.0
        *outer, last = functions
        if last is not None and not any(f is None or f.along for f in outer):
            return SECONDS_PER_OPERATION
        if buffer not in self._large:
            return SECONDS_PER_TILED if buffer in self._beyond_first else SECONDS_PER_SCALAR
        # The lines of memory are there still when the loop around reads on in them.
        is_tile = vector.trips <= _LINES and Var(vector.around) in expressions(indices[-1])
        if is_tile and vector.trips <= _FEW_LINES:
            return SECONDS_PER_SCALAR
        return SECONDS_PER_TILED if is_tile else SECONDS_PER_MISS


def operations_in_loops(kernel: Kernel) -> float:
    """Returns about how many arithmetic operations the stored values of a kernel take."""

    def count(body: Sequence[Stmt], ranges: Ranges) -> float:
        return sum(
            _trips(stmt, ranges) * count(stmt.body, {**ranges, stmt.var: loop_range(stmt, ranges)})
            if isinstance(stmt, For)
            else arithmetic(stmt.value)
            if isinstance(stmt, Store)
            else max(count(inner, ranges) for inner in bodies(stmt))
            for stmt in body
        )

    return count(kernel.body, {})


class _SharedCosts(NativeCosts):
    """Costs where threads share the outermost parallel loops that are worth it."""

    _is_shared = False

    def loop(self, loop: For, ranges: Ranges) -> float:
        if loop.kind != "parallel" or self._is_shared:
            return super().loop(loop, ranges)
        self._is_shared = True
        seconds = super().loop(loop, ranges)
        self._is_shared = False
        return seconds / _THREADS if seconds >= 2 * BLOCK_SECONDS else seconds


def _operation(vector: _Vector | None) -> float:
    return SECONDS_PER_OPERATION if vector else SECONDS_PER_SCALAR


def _trips(loop: For, ranges: Ranges) -> float:
    """Returns about how many iterations a loop runs."""
    limits = (range_of(loop.begin, ranges), range_of(loop.end, ranges))
    is_known = all(low > -(2**30) and high < 2**30 for low, high in limits)
    return mean_trips(loop, ranges) if is_known else UNKNOWN_TRIPS
