"""Statements as C, with the marks of loops for vector units and threads, and of large locals."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from msops._loops.ir.nodes import Buffer, For, Kernel, Load, Local, Store, Var
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.ranges import loop_range
from msops._loops.ir.walk import (
    buffers_of,
    declared_in,
    expressions,
    own_expressions,
    statements,
    stored_in,
)
from msops._loops.to_c.clean.reductions import fixed_updates
from msops._loops.to_c.printing.lane_code import VectorLoop, has_halves, trips_of
from msops._loops.to_c.printing.thread_calls import Captured, task_call, task_text
from msops._loops.to_c.text import Statements, Values, bare, indented

_ALIGNED = "alignas(64)"
"""Stands before each array on the stack. gcc 12 takes some of them for aligned but does not align
them, and an aligned store then crashes. No vector is longer than 64 bytes."""
_ROLLED = "#pragma GCC unroll 1"
"""Stands before a loop around vectors. gcc would write out each of few iterations, and then takes
half a vector from a whole one through memory: conv2d 1.7. Not around single vectors, as those of
tiles, which stay in registers: 2.7."""
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
        self._is_in_task = False
        self._vector_loops = 0

    def loop(self, stmt: For) -> list[str]:
        """Returns a loop: as a call that splits it over threads, in lanes, or as it is."""
        if stmt.grain and not self._is_in_task:
            return self._split(stmt)
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
        rest = functools.partial(self._left, stmt)
        lines = VectorLoop(stmt, begin, end, trips, values, updates, rest).lines()
        self._vector_loops += lines is not None and has_halves(stmt, trips)
        return lines

    def _left(self, stmt: For) -> list[str]:
        """Returns an iteration that vectors leave, with the functions that vectors call."""
        outer, self.values.is_beside_vectors = self.values.is_beside_vectors, True
        lines = self.loop_body(stmt)
        self.values.is_beside_vectors = outer
        return lines

    # Local arrays.

    def local(self, stmt: Local) -> list[str]:
        """Returns a block with a local of its own; one in a workspace needs no block."""
        return self.in_local(stmt) if stmt.storage == "workspace" else super().local(stmt)

    def in_local(self, stmt: Local) -> list[str]:
        """Returns the lines of that block."""
        if stmt.storage != "workspace":
            return super().in_local(stmt)
        self.values.declare(stmt.buffer)
        self.large_locals.append(stmt.buffer)
        name = self.values.names[stmt.buffer.name]
        is_zeroed = stmt.buffer.name not in self.values.overwritten
        zero = [f"memset({name}, 0, {size_bytes(stmt.buffer)});"] if is_zeroed else []
        return [*zero, *self.statements(stmt.body)]

    def definition(self, buffer: Buffer) -> str:
        """Returns the definition of a local."""
        text = super().definition(buffer)
        return f"{_ALIGNED} {text}" if buffer.shape else text

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
