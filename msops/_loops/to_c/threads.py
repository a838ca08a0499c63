"""Parallel loops in generated C, split into blocks that threads run.

A loop becomes a function over a range of its iterations, with what it uses of its surroundings in
a struct. Who opens the library fills the slot `ms_parallel_for` calls; without it, and where there
is little to do, the calling thread runs the whole range at once.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from msops._loops.analysis.costs import mean_trips
from msops._loops.analysis.ranges import loop_range
from msops._loops.ir.nodes import Buffer, For, Kernel, Load, Local, Store, Var
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import expressions, own_expressions, statements
from msops._loops.to_c import cost
from msops._loops.to_c.loops import CLoops
from msops._loops.to_c.text import Unproven, bare, indented

SLOT = "msops_parallel_for_slot"
"""The symbol that who opens the library writes a function pointer to."""

PARALLEL_FOR = f"""
typedef int ms_task(void* argument, int64_t begin, int64_t end);
int (*{SLOT})(int64_t begin, int64_t end, int64_t grain, ms_task* task, void* argument);

static int ms_parallel_for(int64_t begin, int64_t end, int64_t grain, ms_task* task,
                           void* argument) {{
  if (end - begin <= grain || !{SLOT}) return task(argument, begin, end);
  return {SLOT}(begin, end, grain, task, argument);
}}"""

_OUT_OF_MEMORY = "no memory for the local arrays of a parallel loop"
# Nested parallel loops are split as one where the outer one gives threads too little choice.
_FEW_ITERATIONS = 16


class CThreads(CLoops):
    """Prints parallel loops as tasks.

    Attributes:
      functions: the text of each outlined function, in order.
    """

    def __init__(
        self,
        kernel: Kernel,
        unproven: Unproven | None,
        overwritten: Collection[str] = (),
        check_bounds: bool = False,
    ) -> None:
        """Prepares to print; see `CLikeValues`."""
        super().__init__(kernel, unproven, overwritten, check_bounds)
        self.functions: list[str] = []
        self._written = {s.buffer for s in statements(kernel.body) if isinstance(s, Store)}
        self._costs = cost.NativeCosts(kernel)
        self._is_split = False
        self._block_var: str | None = None

    def loop(self, stmt: For) -> list[str]:
        """Returns a loop, split if it is parallel and worth it."""
        if stmt.kind == "parallel" and not self._is_split and self._is_worth_threads(stmt):
            return self._split(stmt)
        return super().loop(stmt)

    def loop_head(self, stmt: For) -> str:
        """Returns the line that opens a loop; over the block's iterations for the split one."""
        if stmt.var != self._block_var:
            return super().loop_head(stmt)
        name = self.names[stmt.var]
        return f"for (int64_t {name} = ms_begin; {name} < ms_end; ++{name}) {{"

    def _is_worth_threads(self, stmt: For) -> bool:
        """Tells whether a parallel loop has work for several threads."""
        trips = mean_trips(stmt, self.ranges)
        written = {inner.buffer for inner in statements((stmt,)) if isinstance(inner, Store)}
        is_enough = trips * self._costs.iteration(stmt, self.ranges) >= 2 * cost.BLOCK_SECONDS
        return trips >= 2 and is_enough and not written & self.variables

    def _split(self, stmt: For) -> list[str]:
        """Returns the call that runs a loop in blocks, and keeps the function it is given."""
        number = self.next_number()
        captured = self._captured(stmt)
        begin, end = bare(self.index(stmt.begin)), bare(self.index(stmt.end))
        seconds = self._costs.iteration(stmt, self.ranges)
        inner = self._collapsible(stmt)
        self._is_split, outer_locals = True, self.large_locals
        self.large_locals = []
        if inner is None:
            self._block_var = stmt.var
            body = self.loop(stmt)
        else:
            size = f"(({end}) - ({begin}))"
            width = f"({self.index(inner.end)} - {self.index(inner.begin)})"
            seconds /= mean_trips(inner, self.ranges)
            body = self._collapsed(stmt, inner, begin, width)
            begin, end = "0", f"{size} * {width}"
        self.functions.append(self._block_function(number, captured, body))
        self._is_split, self.large_locals, self._block_var = False, outer_locals, None
        grain = max(1, math.ceil(cost.BLOCK_SECONDS / seconds))
        return [
            "{",
            f"  struct ms_context_{number} ms_context = {{{', '.join(n for _, n in captured)}}};",
            f"  const int ms_code = ms_parallel_for({begin}, {end}, {grain}, ms_task_{number}, "
            "&ms_context);",
            "  if (ms_code != 0) return ms_code;",
            "}",
        ]

    def _collapsible(self, stmt: For) -> For | None:
        """Returns the parallel loop that is all of a short loop's body, if its bounds are fixed."""
        if mean_trips(stmt, self.ranges) >= _FEW_ITERATIONS or len(stmt.body) != 1:
            return None
        (inner,) = stmt.body
        if not isinstance(inner, For) or inner.kind != "parallel":
            return None
        if not any(isinstance(part, For) for part in statements(inner.body)):
            # Dividing the index in an innermost loop would cost more than it brings.
            return None
        bounds = (part for bound in (inner.begin, inner.end) for part in expressions(bound))
        is_fixed = all(part != Var(stmt.var) and not isinstance(part, Load) for part in bounds)
        return inner if is_fixed and mean_trips(inner, self.ranges) >= 1 else None

    def _collapsed(self, outer: For, inner: For, begin: str, width: str) -> list[str]:
        """Returns the loop over the pairs of two loops' iterations."""
        self.ranges[outer.var] = loop_range(outer, self.ranges)
        body = self.loop_body(inner)
        return [
            "for (int64_t ms_pair = ms_begin; ms_pair < ms_end; ++ms_pair) {",
            f"  const int64_t {self.names[outer.var]} = {begin} + ms_pair / {width};",
            f"  const int64_t {self.names[inner.var]} = "
            f"{bare(self.index(inner.begin))} + ms_pair % {width};",
            *indented(body),
            "}",
        ]

    def _captured(self, stmt: For) -> list[tuple[str, str]]:
        """Returns the type and name of everything around a loop that it uses."""
        inside = list(statements((stmt,)))
        own = {s.var for s in inside if isinstance(s, For)}
        own |= {s.buffer.name for s in inside if isinstance(s, Local)}
        used: dict[str, None] = {s.buffer: None for s in inside if isinstance(s, Store)}
        for part in (p for s in inside for e in own_expressions(s) for p in expressions(e)):
            if isinstance(part, Var):
                used[part.name] = None
            elif isinstance(part, Load):
                used[part.buffer] = None
        return [(self.capture_type(name), self.names[name]) for name in used if name not in own]

    def capture_type(self, name: str) -> str:
        """Returns the C type of a parameter that stands for a buffer or variable."""
        buffer = self.buffers.get(name)
        if buffer is None:
            return "const int64_t"
        if name in self.variables:
            return f"const {self.value_types[buffer.dtype]}"
        const = "" if name in self._written else "const "
        return f"{const}{self.storage_type(buffer)}* restrict"

    def _block_function(self, number: int, captured: list[tuple[str, str]], body: list[str]) -> str:
        """Returns the struct and the functions of one split loop."""
        fields = [f"{kind.removesuffix(' restrict')} {name};" for kind, name in captured]
        parameters = ", ".join(f"{kind} {name}" for kind, name in captured)
        arguments = "".join(f"ms_context->{name}, " for _, name in captured)
        return "\n".join(
            [
                f"struct ms_context_{number} {{",
                *indented(fields),
                "};",
                "",
                f"static int ms_block_{number}({parameters}{', ' if parameters else ''}"
                "int64_t ms_begin, int64_t ms_end) {",
                *indented(self.function_body(self._with_memory(body))),
                "}",
                "",
                f"static int ms_task_{number}(void* argument, int64_t ms_begin, int64_t ms_end) {{",
                f"  const struct ms_context_{number}* const ms_context = argument;",
                f"  return ms_block_{number}({arguments}ms_begin, ms_end);",
                "}",
            ]
        )

    def function_body(self, body: list[str]) -> list[str]:
        """Returns the lines of a function that answers with an error code, 0 if all is well."""
        if not self.check_bounds:
            return [*body, "return 0;"]
        return [
            "int ms_code_of_check = 0;",
            "int* const ms_failed = &ms_code_of_check;",
            *body,
            "return ms_code_of_check;",
        ]

    def _with_memory(self, body: list[str]) -> list[str]:
        """Returns a block's lines with memory for its large local arrays around them."""
        if not self.large_locals:
            return body
        offsets, total = lay_out(self.large_locals)
        if _OUT_OF_MEMORY not in self.checks:
            self.checks.append(_OUT_OF_MEMORY)
        code = self.checks.index(_OUT_OF_MEMORY) + 1
        return [
            f"char* const ms_memory = aligned_alloc(64, {total});",
            f"if (!ms_memory) return {code};",
            *(
                f"{self.storage_type(b)}* const restrict {self.names[b.name]} = "
                f"(void*)(ms_memory + {offset});"
                for b, offset in zip(self.large_locals, offsets, strict=True)
            ),
            *body,
            "free(ms_memory);",
        ]


def lay_out(buffers: list[Buffer]) -> tuple[list[int], int]:
    """Returns offsets at multiples of 64 bytes for arrays in one block, and the block's size."""
    offsets, total = [], 0
    for buffer in buffers:
        offsets.append(total)
        total += max(64, -(-size_bytes(buffer) // 64) * 64)
    return offsets, total
