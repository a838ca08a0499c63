"""What the threads of a block do together, with barriers between what depends on each other.

Every piece of code ends with a barrier if it wrote something, so at its beginning all threads see
the same memory. Conditions and bounds are therefore the same in all threads, provided that all have
read them before one goes on to write: where they read memory, a barrier follows the reading.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection

from msops._loops.analysis.ranges import loop_range
from msops._loops.ir.nodes import (
    Binary,
    BinaryOp,
    Buffer,
    For,
    If,
    Kernel,
    Load,
    Local,
    Stmt,
)
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import loads
from msops._loops.to_c.text import Unproven, bare, indented
from msops._loops.to_c.text.syntax import short_name
from msops._loops.to_cuda import costs
from msops._loops.to_cuda.accumulations import (
    Accumulation,
    accumulation_of,
    identity,
    redirected,
)
from msops._loops.to_cuda.axes import Box, box_of
from msops._loops.to_cuda.costs import is_shared_out, ordered, own_width
from msops._loops.to_cuda.thread_code import ThreadCode, number_type

BARRIER = "__syncthreads();"
MAX_THREADS = 1024

_TOTAL = """\
static __device__ {kind} {name}({kind} value) {{
  __shared__ {kind} part[{threads}];
  part[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {{
    if (threadIdx.x < half) {{
      const {kind} ms_one = part[threadIdx.x], ms_other = part[threadIdx.x + half];
      part[threadIdx.x] = {combined};
    }}
    __syncthreads();
  }}
  value = part[0];
  __syncthreads();
  return value;
}}"""


class BlockCode(ThreadCode):
    """Prints what the threads of a block do; their number is a power of two."""

    def __init__(
        self,
        kernel: Kernel,
        unproven: Unproven | None,
        overwritten: Collection[str] = (),
        check_bounds: bool = False,
    ) -> None:
        """Prepares to print; see `CLikeValues`."""
        super().__init__(kernel, unproven, overwritten, check_bounds)
        self._shared_bytes = 0

    def start_function(self) -> None:
        """Forgets what the function before has in shared memory and in slots."""
        self._shared_bytes = 0
        self.spilled = []

    def together(self, body: tuple[Stmt, ...]) -> list[str]:
        """Returns the lines of a body; what cannot be shared out is left to the first thread."""
        lines: list[str] = []
        alone: list[Stmt] = []
        for stmt in body:
            if is_shared_out(stmt, self.ranges):
                lines += [*self._by_first_thread(alone), *self._shared_out(stmt)]
                alone = []
            else:
                alone.append(stmt)
        return [*lines, *self._by_first_thread(alone)]

    def _by_first_thread(self, body: list[Stmt]) -> list[str]:
        if not body:
            return []
        return ["if (threadIdx.x == 0) {", *indented(self.statements(tuple(body))), "}", BARRIER]

    def _shared_out(self, stmt: Stmt) -> list[str]:
        match stmt:
            case For() if own_width(stmt, self.ranges) < costs.LEAST_SHARED:
                return self._in_order(stmt)
            case For(kind="parallel"):
                return self._parallel(stmt)
            case For():
                accumulation = accumulation_of(stmt)
                box = box_of(stmt, ("reduction",), self.ranges)
                if accumulation is not None and box is not None:
                    return self._total(accumulation, box)
                return self._in_order(stmt)
            case If():
                return self._either(stmt)
            case Local():
                return self._shared_local(stmt)
        raise AssertionError(stmt)

    def _parallel(self, stmt: For) -> list[str]:
        box = box_of(stmt, ("parallel",), self.ranges)
        if box is not None and len(box.axes) > 1:
            return [*self._over(ordered(box), lambda: self.statements(box.body)), BARRIER]
        reading, begin, end = self._uniform_bounds(stmt)
        name = self.names[stmt.var]
        head = f"for (int64_t {name} = {begin} + threadIdx.x; {name} < {end}; {name} += blockDim.x)"
        lines = [f"{head} {{", *indented(self.loop_body(stmt)), "}"]
        return [*reading, *lines, BARRIER]

    def _over(self, box: Box, body: Callable[[], list[str]]) -> list[str]:
        """Returns the loop in which the threads share out the points of a box."""
        number = self.new_name("n")
        self.enter(box)
        head = (
            f"for ({number_type(box)} {number} = threadIdx.x; {number} < {box.count}; "
            f"{number} += blockDim.x)"
        )
        inside = [*self.point(box, number), *self.guarded(self.bounds(box), body())]
        return [f"{head} {{", *indented(inside), "}"]

    def _in_order(self, stmt: For) -> list[str]:
        reading, begin, end = self._uniform_bounds(stmt)
        name = self.names[stmt.var]
        head = f"for (int64_t {name} = {begin}; {name} < {end}; ++{name}) {{"
        self.ranges[stmt.var] = loop_range(stmt, self.ranges)
        return [*reading, head, *indented(self.together(stmt.body)), "}"]

    def _uniform_bounds(self, stmt: For) -> tuple[list[str], str, str]:
        """Returns the lines that read a loop's bounds, and the bounds."""
        begin, end = self.index(stmt.begin), self.index(stmt.end)
        if not any(True for bound in (stmt.begin, stmt.end) for _ in loads(bound)):
            return [], begin, end
        first, last = self.new_name("begin"), self.new_name("end")
        reading = f"const int64_t {first} = {bare(begin)}, {last} = {bare(end)};"
        return [reading, BARRIER], first, last

    def _either(self, stmt: If) -> list[str]:
        condition = self.new_name("if")
        lines = [f"const bool {condition} = {bare(self.value(stmt.condition))};"]
        lines += [BARRIER] if any(True for _ in loads(stmt.condition)) else []
        lines += [f"if ({condition}) {{", *indented(self.together(stmt.then))]
        if stmt.otherwise:
            lines += ["} else {", *indented(self.together(stmt.otherwise))]
        return [*lines, "}"]

    def _shared_local(self, stmt: Local) -> list[str]:
        """Returns a block with an array that its threads share."""
        buffer = stmt.buffer
        self.declare(buffer)
        name, count = self.names[buffer.name], math.prod(buffer.shape)
        if self._shared_bytes + size_bytes(buffer) <= costs.SHARED_BYTES:
            self._shared_bytes += size_bytes(buffer)
            definition = self._shared_definition(buffer)
        else:
            definition = self.spill(buffer, "block")
        if buffer.name in self.overwritten:
            zero = ""
        elif buffer.shape:
            index = self.new_name("i")
            head = f"for (int64_t {index} = threadIdx.x; {index} < {count}; {index} += blockDim.x)"
            zero = f"{head} {name}[{index}] = 0;"
        else:
            zero = f"if (threadIdx.x == 0) {name} = 0;"
        start = [zero, BARRIER] if zero else []
        return ["{", *indented([definition, *start, *self.together(stmt.body)]), "}"]

    def _shared_definition(self, buffer: Buffer) -> str:
        name = self.names[buffer.name]
        if not buffer.shape:
            return f"__shared__ {self.value_types[buffer.dtype]} {name};"
        size = max(1, math.prod(buffer.shape))
        return f"__shared__ {self.storage_types[buffer.dtype]} {name}[{size}];"

    def _total(self, accumulation: Accumulation, box: Box) -> list[str]:
        """Returns an accumulation of which each thread does a part, put together as a tree."""
        update, store = accumulation.update, accumulation.store
        dtype = update.target.dtype
        register, touched = self.new_name("total"), self.new_name("touched")
        self.declare(Buffer(register, (), dtype))
        start = self.value(identity(update.op, dtype))
        lines = [f"{self.value_types[dtype]} {register} = {start};"]
        if not accumulation.is_certain:
            self.declare(Buffer(touched, (), "bool"))
            lines.append(f"uint8_t {touched} = 0;")
        nest = redirected(accumulation, register, "" if accumulation.is_certain else touched)
        inside = box_of(nest, ("reduction",), self.ranges)
        assert inside is not None
        lines += self._over(ordered(inside), lambda: self.statements(inside.body))
        lines.append(f"{register} = {self._tree(update.op, dtype)}({register});")

        combined = Binary(update.op, update.target, Load(register, (), dtype), dtype)
        write = dataclasses.replace(store, value=combined)
        is_writer = "threadIdx.x == 0"
        if not accumulation.is_certain:
            is_writer = f"__syncthreads_or({touched}) && {is_writer}"
        lines += [*self.guarded([is_writer], self.store(write)), BARRIER]
        return ["{", *indented(lines), "}"]

    def _tree(self, op: BinaryOp, dtype: str) -> str:
        """Returns the name of the function that combines a value of each thread of a block."""
        name = f"ms_total_{op}_{short_name(dtype)}"
        if name not in self.helpers:
            for operand in ("ms_one", "ms_other"):
                self.declare(Buffer(operand, (), dtype))
                self.names[operand] = operand
            one, other = (Load(operand, (), dtype) for operand in ("ms_one", "ms_other"))
            combined = self.value(Binary(op, one, other, dtype))
            self.helpers[name] = _TOTAL.format(
                kind=self.value_types[dtype],
                name=name,
                threads=MAX_THREADS,
                combined=bare(combined),
            )
        return name
