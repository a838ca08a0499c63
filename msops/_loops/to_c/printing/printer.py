"""Statements as C, with the marks of loops for vector units and threads, and of large locals."""

from __future__ import annotations

from collections.abc import Iterator

from msops._base.dtypes import as_dtype
from msops._loops.analysis.costs import fixed_trips
from msops._loops.analysis.updates import sum_of
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Expr,
    For,
    Kernel,
    Load,
    Local,
    Store,
    Unary,
    Var,
)
from msops._loops.ir.ranges import loop_range
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import (
    accesses_in,
    buffers_of,
    declared_in,
    expressions,
    own_expressions,
    statements,
    stored_in,
    variables,
)
from msops._loops.to_c.clean.reductions import fixed_updates
from msops._loops.to_c.facts.strides import offset
from msops._loops.to_c.printing.lane_code import has_halves, in_vectors, trips_of
from msops._loops.to_c.printing.thread_calls import Captured, task_call, task_text
from msops._loops.to_c.printing.vector_functions import VectorFunctions
from msops._loops.to_c.text import Statements, Values, bare, indented
from msops._loops.to_c.text.syntax import SIGNS

_FUSED_BYTES = 16
"""Bytes of the smallest vector that has fused operations."""
_ALIGNED = "alignas(64)"
"""Stands before each array on the stack. gcc 12 takes some of them for aligned but does not align
them, and an aligned store then crashes. No vector is longer than 64 bytes."""
_ROLLED = "#pragma GCC unroll 1"
"""Stands before a loop around vectors. gcc would write out each of few iterations, and then takes
half a vector from a whole one through memory: conv2d 1.7. Not around tiles of registers: 2.7."""
_OUT_OF_MEMORY = "no memory for the local arrays of a parallel loop"


class CPrinter(Statements):
    """Prints statements as C, loops in vectors as such, and parallel loops as tasks.

    Attributes:
      large_locals: the arrays in the workspace of the function that is being printed.
      tasks: the text of each task, in order.
    """

    def __init__(self, kernel: Kernel, values: Values) -> None:
        super().__init__(values)
        self.large_locals: list[Buffer] = []
        self.tasks: list[str] = []
        # Locals are zeroed.
        self._written = stored_in(kernel.body) | declared_in(kernel.body)
        self._buffers = buffers_of(kernel)
        self._in_register: set[str] = set()
        self._is_in_task = False
        self._vector_loops = 0

    def loop(self, stmt: For) -> list[str]:
        """Returns a loop: as a call that splits it over threads, in lanes, or as it is."""
        if stmt.grain and not self._is_in_task:
            return self._split(stmt)
        if stmt.vector == "registers" and self.values.are_inside(stmt, accesses_in(stmt.body)):
            return self._in_registers(stmt)
        begin, end = bare(self.values.index(stmt.begin)), bare(self.values.index(stmt.end))
        vectors = self._vectors(stmt, begin, end)
        if vectors is not None:
            return vectors
        before = self._vector_loops
        lines = super().loop(stmt)
        if self._vector_loops > before and trips_of(stmt) is not None:
            head = next(n for n, line in enumerate(lines) if line.startswith("for "))
            lines.insert(head, _ROLLED)
        return lines

    # Vectors.

    def _vectors(
        self, stmt: For, begin: str, end: str, *, is_shared: bool = False
    ) -> list[str] | None:
        """Returns a parallel loop as statements on vectors; None if it stays a loop."""
        if stmt.vector != "lanes":
            return None
        values, updates = self.values, {}
        if stmt.kind == "reduction":
            found = fixed_updates(stmt, values.ranges, self._buffers)
            updates = {name: update for (name, _), update in found.items()}
        trips = None if is_shared else trips_of(stmt)
        lines = in_vectors(stmt, (begin, end), trips, values, updates, lambda: self._left(stmt))
        self._vector_loops += lines is not None and has_halves(stmt, trips)
        return lines

    def _left(self, stmt: For) -> list[str]:
        """Returns an iteration that vectors leave, with the functions that vectors call."""
        outer, self.values.is_beside_vectors = self.values.is_beside_vectors, True
        lines = self.loop_body(stmt)
        self.values.is_beside_vectors = outer
        return lines

    def _in_registers(self, stmt: For) -> list[str]:
        """Returns a loop over the lanes of vectors as statements on whole vectors."""
        values = self.values
        # A vector is named by its first lane.
        values.names[stmt.var] = "0"
        return [
            f"{self._vector(store, stmt)} = {self._summed(store, stmt)};"
            for store in stmt.body
            if isinstance(store, Store)
        ]

    def _summed(self, store: Store, lanes: For) -> str:
        """Returns the value of a store as a vector; products are added in one rounding."""
        update, count = sum_of(store), fixed_trips(lanes)
        assert count is not None
        dtype = store.value.dtype
        size = count * as_dtype(dtype).dtype.itemsize
        if update is None or update.op != "add" or size < _FUSED_BYTES:
            return bare(self._vector_value(store.value, lanes))
        name = VectorFunctions(self.values, count).fused(dtype)
        total = self._vector_value(update.target, lanes)
        for is_negated, part in _addends(update.term, update.is_negated):
            if isinstance(part, Binary) and part.op == "mul":
                one, other = (self._vector_value(f, lanes) for f in (part.left, part.right))
                one = f"-{one}" if is_negated else bare(one)
                total = f"{name}({one}, {bare(other)}, {total})"
            else:
                sign = "-" if is_negated else "+"
                total = f"({total} {sign} {self._vector_value(part, lanes)})"
        return bare(total)

    def _vector_value(self, expr: Expr, lanes: For) -> str:
        """Returns a value as a vector, or as a number if all lanes share it."""
        match expr:
            case _ if lanes.var not in variables(expr):
                return self.values.value(expr)
            case Load():
                return self._vector(expr, lanes)
            case Binary(op=op, left=left, right=right):
                left_text, right_text = (self._vector_value(e, lanes) for e in (left, right))
                return f"({left_text} {SIGNS[op]} {right_text})"
            case Unary(operand=operand):
                return f"(-{self._vector_value(operand, lanes)})"
        raise AssertionError(expr)

    def _vector(self, access: Load | Store, lanes: For) -> str:
        """Returns the lvalue of the elements in all lanes."""
        values = self.values
        buffer, count = values.buffers[access.buffer], fixed_trips(lanes)
        assert count is not None
        kind = self._vector_type(buffer.dtype, count, is_in_memory=True)
        const = "const " if isinstance(access, Load) else ""
        if access.buffer in self._in_register:
            name = values.names[access.buffer]
            first = offset(access.indices[0], lanes.var)
            assert first is not None
            is_whole = buffer.shape == (count,)
            return name if is_whole else f"*(({const}{kind}*)&{name} + {first // count})"
        element = values.element(access.buffer, access.indices)
        return f"*({const}{kind}*)&{element}"

    def _vector_type(self, dtype: str, lanes: int, *, is_in_memory: bool = False) -> str:
        """Returns the type of a vector; one in memory may begin at any element."""
        element, bytes_ = self.values.value_type(dtype), as_dtype(dtype).dtype.itemsize
        name = f"ms_{'memory' if is_in_memory else 'vector'}_{element}_{lanes}"
        size = f"vector_size({lanes * bytes_})"
        more = f", aligned({bytes_}), may_alias" if is_in_memory else ""
        text = f"typedef {element} {name} __attribute__(({size}{more}));"
        self.values.helpers.setdefault(name, text)
        return name

    # Local arrays.

    def local(self, stmt: Local) -> list[str]:
        """Returns a block with a local of its own; one in a workspace needs no block."""
        return self.in_local(stmt) if stmt.storage == "workspace" else super().local(stmt)

    def in_local(self, stmt: Local) -> list[str]:
        """Returns the lines of that block."""
        if stmt.storage == "register":
            self._in_register.add(stmt.buffer.name)
        if stmt.storage != "workspace":
            return super().in_local(stmt)
        self.values.declare(stmt.buffer)
        self.large_locals.append(stmt.buffer)
        name = self.values.names[stmt.buffer.name]
        is_zeroed = stmt.buffer.name not in self.values.overwritten
        zero = [f"memset({name}, 0, {size_bytes(stmt.buffer)});"] if is_zeroed else []
        return [*zero, *self.statements(stmt.body)]

    def definition(self, buffer: Buffer) -> str:
        """Returns the definition of a local; that of a vector has a vector type."""
        if buffer.name not in self._in_register:
            text = super().definition(buffer)
            return f"{_ALIGNED} {text}" if buffer.shape else text
        start = "" if buffer.name in self.values.overwritten else " = {0}"
        kind = self._vector_type(buffer.dtype, buffer.shape[0])
        return f"{kind} {self.values.names[buffer.name]}{start};"

    # Tasks.

    def _split(self, stmt: For) -> list[str]:
        """Returns the call that runs a loop in blocks, and adds its task to `tasks`."""
        values = self.values
        number = len(self.tasks) + 1
        captured = tuple(self._captured(stmt))
        begin, end = bare(values.index(stmt.begin)), bare(values.index(stmt.end))
        inner = next((s for s in stmt.body if isinstance(s, For) and s.grain), None)
        self._is_in_task, outer_locals = True, self.large_locals
        self.large_locals = []
        if inner is None:
            body = self._iterations(stmt)
        else:
            size = f"(({end}) - ({begin}))"
            width = f"({values.index(inner.end)} - {values.index(inner.begin)})"
            body = self._pairs(stmt, inner, begin, width)
            begin, end = "0", f"{size} * {width}"
        body = self.function_body(self._with_memory(body))
        self.tasks.append(task_text(number, captured, body))
        self._is_in_task, self.large_locals = False, outer_locals
        return task_call(number, captured, begin, end, stmt.grain)

    def _iterations(self, stmt: For) -> list[str]:
        """Returns the loop over a task's share of a loop's iterations."""
        vectors = self._vectors(stmt, "ms_begin", "ms_end", is_shared=True)
        if vectors is not None:
            return vectors
        name = self.values.names[stmt.var]
        head = f"for (int64_t {name} = ms_begin; {name} < ms_end; ++{name}) {{"
        return [head, *indented(self.loop_body(stmt)), "}"]

    def _pairs(self, outer: For, inner: For, begin: str, width: str) -> list[str]:
        """Returns the loop over a task's share of the pairs of two loops' iterations."""
        values = self.values
        values.ranges[outer.var] = loop_range(outer, values.ranges)
        body = self.loop_body(inner)
        return [
            "for (int64_t ms_pair = ms_begin; ms_pair < ms_end; ++ms_pair) {",
            f"  const int64_t {values.names[outer.var]} = {begin} + ms_pair / {width};",
            f"  const int64_t {values.names[inner.var]} = "
            f"{bare(values.index(inner.begin))} + ms_pair % {width};",
            *indented(body),
            "}",
        ]

    def _captured(self, stmt: For) -> Iterator[Captured]:
        """Yields the buffers and variables around a loop that it uses."""
        inside = list(statements((stmt,)))
        own = {s.var for s in inside if isinstance(s, For)}
        own |= {s.buffer.name for s in inside if isinstance(s, Local)}
        used: dict[str, None] = {s.buffer: None for s in inside if isinstance(s, Store)}
        for part in (p for s in inside for e in own_expressions(s) for p in expressions(e)):
            if isinstance(part, Var):
                used[part.name] = None
            elif isinstance(part, Load):
                used[part.buffer] = None
        for name in used:
            if name not in own:
                yield Captured(self.capture_type(name), self.values.names[name])

    def capture_type(self, name: str) -> str:
        """Returns the C type of a parameter that is a buffer or variable."""
        buffer = self.values.buffers.get(name)
        if buffer is None:
            return "const int64_t"
        if name in self.values.variables:
            return f"const {self.values.value_type(buffer.dtype)}"
        const = "" if name in self._written else "const "
        return f"{const}{self.values.storage_type(buffer.dtype)}* __restrict"

    def function_body(self, body: list[str]) -> list[str]:
        """Returns the lines of a function that returns an error code, 0 if there is none."""
        if not self.values.check_bounds:
            return [*body, "return 0;"]
        return [
            "int ms_code_of_check = 0;",
            "int* const ms_failed = &ms_code_of_check;",
            *body,
            "return ms_code_of_check;",
        ]

    def _with_memory(self, body: list[str]) -> list[str]:
        """Returns a task's lines with its own workspace around them; threads cannot share one."""
        if not self.large_locals:
            return body
        values, checks = self.values, self.values.checks
        offsets, total = _lay_out(self.large_locals)
        if _OUT_OF_MEMORY not in checks:
            checks.append(_OUT_OF_MEMORY)
        code = checks.index(_OUT_OF_MEMORY) + 1
        return [
            f"char* const ms_memory = (char*)aligned_alloc(64, {total});",
            f"if (!ms_memory) return {code};",
            *(
                f"{values.storage_type(b.dtype)}* const __restrict {values.names[b.name]} = "
                f"({values.storage_type(b.dtype)}*)(ms_memory + {offset});"
                for b, offset in zip(self.large_locals, offsets, strict=True)
            ),
            *body,
            "free(ms_memory);",
        ]


def _lay_out(buffers: list[Buffer]) -> tuple[list[int], int]:
    """Returns offsets at multiples of 64 bytes for arrays in one block, and the block's size."""
    offsets, total = [], 0
    for buffer in buffers:
        offsets.append(total)
        total += max(64, -(-size_bytes(buffer) // 64) * 64)
    return offsets, total


def _addends(term: Expr, is_negated: bool) -> Iterator[tuple[bool, Expr]]:
    """Yields the parts of a sum, each with whether it is subtracted."""
    match term:
        case Binary(op="add" | "sub" as op, left=left, right=right):
            yield from _addends(left, is_negated)
            yield from _addends(right, is_negated != (op == "sub"))
        case _:
            yield is_negated, term
