"""Estimates what native code costs on a CPU, to choose between it and operations of XLA.

The constants are seconds of one thread, rounded: they were fitted to times of generated C of many
kernels, and ``benchmarks/loops_choice.py`` says how far the estimates are off. A loop that is split
over threads counts half, because the constants for XLA's operations were measured on two
processors, and both share large work among the same threads.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence, Set
from dataclasses import dataclass

from msops._base import processor
from msops._base.dtypes import as_dtype
from msops._loops.analysis.affine import affine
from msops._loops.analysis.costs import (
    CACHE_BYTES,
    FIRST_CACHE_BYTES,
    MEASURED_VECTOR_BYTES,
    arithmetic,
    estimated_trips,
    width_in_float32s,
)
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.nodes import (
    Binary,
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
from msops._loops.ir.operators import QUOTIENTS, is_float, size_bytes
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    bodies,
    buffers_of,
    is_innermost,
    loads,
    operands,
    statements,
    stored_in,
    variables,
)
from msops._loops.to_c.facts.strides import stride
from msops._loops.to_c.lanes.vectors import may_run_in_vectors
from msops._loops.to_c.text.operations import POWERS

SECONDS_PER_OPERATION = 7e-12
"""Seconds of one operation on 4 bytes in vector registers, or of one access to 4 bytes in the
first-level cache."""
SECONDS_PER_SECOND_CACHE = 2e-11
"""Seconds of one access, in order, to 4 bytes of a larger array in the second-level cache."""
SECONDS_PER_STREAMED = 2.6e-11
"""Seconds of one byte of a still larger array, read or written in order."""
SECONDS_PER_SCALAR = 1e-10
"""Seconds of one scalar operation, as in a loop whose order is kept."""
SECONDS_PER_OVERLAPPED = 4e-11
"""Seconds of one scalar operation in a loop of independent iterations, which overlap."""
SECONDS_PER_FUNCTION = 4e-10
"""Seconds of a mathematical function on one element of 4 bytes in a vector: 0.2 to 0.5 ns, in wider
vectors less as far as they are wider."""
SECONDS_PER_POWER = 2e-9
"""The same of a power of floats: 1.8 ns."""
SECONDS_PER_SCALAR_FUNCTION = 5e-9
"""Seconds of a mathematical function on one scalar: 1 to 8 ns."""
SECONDS_PER_REMAINDER = 1e-8
"""Seconds of a remainder or floored quotient of floats, which no vectors have: 4 to 17 ns."""
SECONDS_PER_QUOTIENT = 1e-9
"""Seconds of a quotient or remainder of integers, which no vectors have: 0.9 to 1.8 ns. By a
constant it is a product."""
SECONDS_PER_STEPPED = 2e-11
"""Seconds of one byte of elements that lie apart in one line of memory: 0.01 to 0.03 ns."""
SECONDS_PER_MISS = 2e-9
"""Seconds of one element of a larger array, away from the element before."""
SECONDS_PER_TILED = 1.1e-9
"""Seconds of one such element in a line of memory read shortly before, or in the next cache."""
SECONDS_PER_PICKED = 5e-10
"""Seconds of one element of a larger array at an index that was computed for it."""
SECONDS_PER_ITERATION = 3e-10
"""Seconds of one iteration of a loop around another."""
BLOCK_SECONDS = 2e-5
"""Seconds of the least work worth a thread: a few times the start of one."""
_THREADS = 2
# A vector loop that goes down a column reads from as many cache lines as it has iterations. So many
# lines stay in the first-level cache until the loop around reads the next column.
_LINES = 256
_LINE_BYTES = 64
# The processor also prefetches as few lines as these; a loop over lanes touches no more.
_FEW_LINES = 32


def native_seconds(kernel: Kernel) -> float:
    """Returns the estimated seconds of native code, without the call.

    Args:
      kernel: the kernel in the form that is printed, after all passes.
    """
    return _SharedCosts(kernel)._body(kernel.body, Scope.of(kernel), None)


@dataclass(frozen=True)
class _Vector:
    """A loop that runs in vectors, in its scope.

    Attributes:
      is_in_registers: whether its vectors are those of a tile: in panels, and as wide as they get.
    """

    loop: For
    scope: Scope
    is_in_registers: bool

    @functools.cached_property
    def operation(self) -> float:
        """Seconds of one operation on 4 bytes."""
        width = processor.vector_bytes() if self.is_in_registers else MEASURED_VECTOR_BYTES
        return SECONDS_PER_OPERATION * MEASURED_VECTOR_BYTES / width

    @property
    def var(self) -> str:
        return self.loop.var

    @property
    def trips(self) -> float:
        return estimated_trips(self.loop, self.scope)

    def touches_lines_again(self, indices: Sequence[Expr]) -> bool:
        """Returns whether the loop around stays in the lines of memory of an access, or goes on
        along them."""
        if not self.scope.loops or any(map(loads, indices)):
            return False
        around = self.scope.loops[-1].var
        return not any(around in variables(index) for index in indices[:-1])

    @functools.cached_property
    def _changing(self) -> set[str]:
        return stored_in(self.loop.body)

    def changes(self, part: Expr) -> bool:
        """Returns whether a load or variable itself varies with the loop; not its operands."""
        if isinstance(part, Load):
            return part.buffer in self._changing
        return isinstance(part, Var) and part.name == self.loop.var


@dataclass
class NativeCosts:
    """Adds up the statements of a kernel; knows which of its arrays are larger than a cache."""

    kernel: Kernel
    _scalar: float = dataclasses.field(default=SECONDS_PER_SCALAR, init=False)
    _variable: float = dataclasses.field(default=SECONDS_PER_SCALAR, init=False)

    @functools.cached_property
    def _buffers(self) -> dict[str, Buffer]:
        return buffers_of(self.kernel)

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

    @functools.cached_property
    def _in_registers(self) -> set[str]:
        """The local arrays of one vector: a compiler keeps them in registers."""
        locals_ = (s.buffer for s in statements(self.kernel.body) if isinstance(s, Local))
        return {b.name for b in locals_ if b.shape and size_bytes(b) <= processor.vector_bytes()}

    def _beyond(self, size: int) -> list[Buffer]:
        buffers = (*self.kernel.parameters, *self.kernel.buffers)
        return [buffer for buffer in buffers if size_bytes(buffer) > size]

    def loop(self, loop: For, scope: Scope) -> float:
        """Returns the seconds of a loop in a scope."""
        return estimated_trips(loop, scope) * self.iteration(loop, scope)

    def iteration(self, loop: For, scope: Scope) -> float:
        """Returns the seconds of one iteration of a loop."""
        vector, start = None, SECONDS_PER_ITERATION
        outer = self._scalar, self._variable
        self._scalar, self._variable = _scalar(loop), _variable(loop)
        if self._runs_in_vectors(loop):
            touched = {access.buffer for access in accesses_in(loop.body)}
            is_tile = not touched.isdisjoint(self._in_registers)
            vector, start = _Vector(loop, scope, is_tile), self._streamed(touched)
        elif is_innermost(loop):
            start = 0.0
        (inside,) = scope.inside(loop)
        seconds = start + self._body(loop.body, inside, vector)
        self._scalar, self._variable = outer
        return seconds

    def _runs_in_vectors(self, loop: For) -> bool:
        return may_run_in_vectors(loop)

    def _streamed(self, touched: Set[str]) -> float:
        """Returns the seconds of bringing in an element of each large array that is touched."""
        return sum(SECONDS_PER_STREAMED * self._large.get(buffer, 0) for buffer in touched)

    def _body(self, body: Sequence[Stmt], scope: Scope, vector: _Vector | None) -> float:
        """Returns the seconds of statements; `vector` is the loop that runs in vectors."""
        return sum(self._statement(stmt, scope, vector) for stmt in body)

    def _statement(self, stmt: Stmt, scope: Scope, vector: _Vector | None) -> float:
        match stmt:
            case Store(indices=indices, value=value):
                address = self._address(indices, vector)
                return address + self._value(value, vector) + self._access(stmt, vector)
            case For() if vector:
                # A compiler has written it out.
                (inside,) = scope.inside(stmt)
                return estimated_trips(stmt, scope) * self._body(stmt.body, inside, vector)
            case For():
                return self.loop(stmt, scope)
            case If(condition=condition, then=then, is_usual=True):
                test = self._value(condition, vector)
                return test + self._body(then, scope.inside(stmt)[0], vector)
            case If(condition=condition):
                return self._value(condition, vector) + self._longest(stmt, scope, vector)
            case Local():
                return self._body(stmt.body, scope.inside(stmt)[0], vector)

    def _longest(self, stmt: Stmt, scope: Scope, vector: _Vector | None) -> float:
        """Returns the seconds of the longest of a statement's bodies."""
        insides = zip(bodies(stmt), scope.inside(stmt), strict=True)
        return max(self._body(body, inside, vector) for body, inside in insides)

    def _value(self, expr: Expr, vector: _Vector | None) -> float:
        """Returns the seconds of computing a value."""
        return self._computed(expr, vector)[0]

    def _computed(self, expr: Expr, vector: _Vector | None) -> tuple[float, bool]:
        """Returns these seconds, and whether the value is computed once for all iterations."""
        parts = [self._computed(operand, vector) for operand in operands(expr)]
        if vector and all(is_kept for _, is_kept in parts) and not vector.changes(expr):
            return 0.0, True
        match expr:
            case Load(indices=indices):
                return self._address(indices, vector) + self._access(expr, vector), False
            case Const() | Var():
                return 0.0, False
        return _own(expr, vector, self._scalar) + sum(seconds for seconds, _ in parts), False

    def _address(self, indices: Sequence[Expr], vector: _Vector | None) -> float:
        """Returns the seconds of indices; their arithmetic runs in parallel with that of values."""
        return sum(self._access(load, vector) for index in indices for load in loads(index))

    def _access(self, access: Load | Store, vector: _Vector | None) -> float:
        """Returns the seconds of a load or store; contiguous elements of a vector take few."""
        buffer, indices = access.buffer, access.indices
        if vector is None:
            return SECONDS_PER_SCALAR if indices else self._variable
        picked = SECONDS_PER_PICKED if buffer in self._beyond_first else SECONDS_PER_SCALAR
        if any(vector.changes(load) for index in indices for load in loads(index)):
            return picked
        functions = [affine(index, {vector.var}) for index in indices]
        if buffer in self._in_registers or not any(f is None or f.along for f in functions):
            # It stays in a register.
            return 0.0
        *outer, last = functions
        if last is not None and not any(f is None or f.along for f in outer):
            is_near = vector.is_in_registers or buffer not in self._beyond_first
            element = vector.operation if is_near else SECONDS_PER_SECOND_CACHE
            return element * width_in_float32s(
                access.dtype if isinstance(access, Load) else access.value.dtype
            )
        step = stride(access, vector.var, self._buffers)
        dtype = self._buffers[buffer].dtype
        size = as_dtype(dtype).dtype.itemsize
        if step and abs(step) * size <= _LINE_BYTES:
            # As in pixels of three colours: the elements between are read, too.
            return SECONDS_PER_STEPPED * size
        if step is None:
            return picked
        if buffer not in self._beyond_first:
            return SECONDS_PER_SCALAR
        # The cache lines are still in the cache when the loop around touches them again.
        is_tile = vector.trips <= _LINES and vector.touches_lines_again(indices)
        if is_tile and vector.trips <= _FEW_LINES:
            return SECONDS_PER_SCALAR
        return SECONDS_PER_TILED if is_tile or buffer not in self._large else SECONDS_PER_MISS


def operations_in_loops(kernel: Kernel) -> float:
    """Returns about how many arithmetic operations the stored values of a kernel take."""

    def count(stmt: Stmt, scope: Scope) -> float:
        if isinstance(stmt, Store):
            return arithmetic(stmt.value)
        trips = estimated_trips(stmt, scope) if isinstance(stmt, For) else 1
        insides = zip(bodies(stmt), scope.inside(stmt), strict=True)
        return trips * max(sum(count(part, inside) for part in body) for body, inside in insides)

    return sum(count(stmt, Scope.of(kernel)) for stmt in kernel.body)


class _SharedCosts(NativeCosts):
    """Costs of loops in their last form.

    The outermost parallel loops are shared among threads, where that pays. Loops that run in
    vectors are marked; a compiler takes sums of integers without a mark.
    """

    def _runs_in_vectors(self, loop: For) -> bool:
        is_left = loop.kind == "reduction" and not loop.vector
        stores = (stmt for stmt in statements(loop.body) if isinstance(stmt, Store))
        is_scalar = is_left and any(is_float(store.value.dtype) for store in stores)
        return super()._runs_in_vectors(loop) and not is_scalar

    def loop(self, loop: For, scope: Scope) -> float:
        seconds = super().loop(loop, scope)
        is_outermost = loop.kind == "parallel" and not scope.is_parallel
        is_shared = is_outermost and seconds >= 2 * BLOCK_SECONDS
        return seconds / _THREADS if is_shared else seconds


def _own(expr: Expr, vector: _Vector | None, scalar: float) -> float:
    """Returns the seconds of an operation or function itself.

    Args:
      expr: the operation.
      vector: the loop that runs in vectors; None: none does.
      scalar: the seconds of a quick operation outside of vectors.
    """
    width, is_of_floats = width_in_float32s(expr.dtype), is_float(expr.dtype)
    match expr:
        case Binary(op="mod" | "floordiv") if is_of_floats:
            return SECONDS_PER_REMAINDER
        case Binary(op=op, right=right) if op in QUOTIENTS and not isinstance(right, Const):
            return SECONDS_PER_QUOTIENT
        case Binary(op="pow", right=right) if is_of_floats and not is_quick_power(right):
            in_vector = SECONDS_PER_POWER
        case FunctionCall(function=name) if not FUNCTIONS[name].is_instruction:
            in_vector = SECONDS_PER_FUNCTION
        case _:
            return vector.operation * width if vector else scalar
    if vector is None:
        return SECONDS_PER_SCALAR_FUNCTION
    return in_vector * width * MEASURED_VECTOR_BYTES / processor.vector_bytes()


def is_quick_power(exponent: Expr) -> bool:
    """Returns whether a power of floats is printed as a root, a product or a quotient."""
    return isinstance(exponent, Const) and exponent.value in POWERS


def _scalar(loop: For) -> float:
    """Returns the seconds of one scalar operation directly inside of a loop.

    The terms of a reduction overlap. A parallel loop without vectors has loops inside, which wait
    for what it computes.
    """
    return SECONDS_PER_OVERLAPPED if loop.kind == "reduction" else SECONDS_PER_SCALAR


def _variable(loop: For) -> float:
    """Returns the seconds of one access to a variable of C directly inside of a loop.

    The terms of a reduction overlap, so that its sums are in registers when they are added to.
    Elsewhere each operation waits for the one before.
    """
    return 0.0 if loop.kind == "reduction" and is_innermost(loop) else SECONDS_PER_SCALAR
