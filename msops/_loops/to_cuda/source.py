"""A kernel as CUDA C: a function for each launch, and the steps that run them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator

from msops._loops.ir.nodes import Buffer, Kernel, Local, Stmt
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.walk import declared_in, stored_in, touched_in
from msops._loops.to_c.text import Statements, Unproven, Values, bare, indented
from msops._loops.to_c.text.names import plain_name
from msops._loops.to_cuda.dialect import CUDA, PREAMBLE
from msops._loops.to_cuda.grid import Grid, grid_of
from msops._loops.to_cuda.steps import ClearBuffer, CudaSource, Launch, Workspace, arrange_memory

THREAD_BYTES = 1024
"""The largest array that a thread keeps to itself; of others a workspace has one per thread."""


class ThreadCode(Statements):
    """Prints what one thread does.

    Attributes:
      slots: arrays of which each thread of the launch has one in a workspace, by the name of the
        pointer to the first.
    """

    def __init__(self, values: Values) -> None:
        super().__init__(values)
        self._numbers = itertools.count()
        self.slots: dict[str, Buffer] = {}

    def in_local(self, stmt: Local) -> list[str]:
        """Returns the lines of a block with an array of a thread's own; a workspace has many."""
        if stmt.storage != "workspace":
            return super().in_local(stmt)
        buffer = stmt.buffer
        self.values.declare(buffer)
        number, count = next(self._numbers), math.prod(buffer.shape)
        name, kind = self.values.names[buffer.name], self.values.storage_type(buffer.dtype)
        slots, index = f"ms_slots{number}", f"ms_i{number}"
        self.slots[slots] = buffer
        lines = [f"{kind}* const {name} = {slots} + ms_thread * {count};"]
        if buffer.name not in self.values.overwritten:
            head = f"for (int64_t {index} = 0; {index} < {count}; ++{index})"
            lines.append(f"{head} {name}[{index}] = 0;")
        return [*lines, *self.block(stmt.body)]

    def points(self, grid: Grid) -> list[str]:
        """Returns the loop in which the threads of a launch share out the points of a grid."""
        self.values.ranges.update(grid.ranges)
        # Division is quick in 32 bits only. A number may be beyond the last point by as many as
        # there are threads.
        kind = "uint32_t" if grid.count < 1 << 31 else "uint64_t"
        body = self.block(grid.body)
        condition = " && ".join(self._bounds(grid))
        if condition:
            body = [f"if ({condition}) {{", *indented(body), "}"]
        first = f"({kind})blockIdx.x * blockDim.x + threadIdx.x"
        step = f"({kind})gridDim.x * blockDim.x"
        return [
            f"for ({kind} ms_point = {first}; ms_point < {grid.count}; ms_point += {step}) {{",
            *indented([*self._variables(grid), *body]),
            "}",
        ]

    def _variables(self, grid: Grid) -> list[str]:
        """Returns the definitions of a grid's variables at a point."""
        lines = []
        stride = grid.count
        for position, axis in enumerate(grid.axes):
            stride //= axis.size
            text = "ms_point" if stride == 1 else f"ms_point / {stride}"
            text = f"{text} % {axis.size}" if position > 0 else text
            start = f" + ({axis.first})" if axis.first else ""
            lines.append(
                f"const int64_t {self.values.names[axis.loop.var]} = (int64_t)({text}){start};"
            )
        return lines

    def _bounds(self, grid: Grid) -> Iterator[str]:
        """Yields the conditions under which a point is an iteration of its loops."""
        for axis in grid.axes:
            if not axis.is_exact:
                var = self.values.names[axis.loop.var]
                yield f"{self.values.index(axis.loop.begin)} <= {var}"
                yield f"{var} < {bare(self.values.index(axis.loop.end))}"


FAILED = "ms_failed"
"""The workspace that takes the code of the first index out of range that a thread met."""

FAILED_BYTES = 4

_BLOCK_THREADS = 256
_MAX_BLOCKS = 1 << 22
# All slots of a launch together; fewer threads run where they would need more.
_SLOTS_BYTES = 256 << 20


def cuda_source(
    kernel: Kernel,
    unproven: Unproven | None = None,
    overwritten: Collection[str] = (),
    *,
    check_bounds: bool = False,
) -> CudaSource:
    """Returns a kernel as CUDA C.

    Args:
      kernel: after `pipeline.PASSES_TO_CUDA`.
      unproven: the indices that may be out of range; None if they were not looked for: then
        the ranges of loops decide.
      overwritten: names of buffers and locals that need not be zero at the start.
      check_bounds: an index out of range is an error of the run.
    """
    values = Values(kernel, CUDA, unproven, overwritten, check_bounds)
    printer = _SourcePrinter(kernel, ThreadCode(values))
    for body, grid in _launches(kernel.body):
        if grid is None or grid.count > 0:
            printer.add_launch(body, grid)
    return printer.source()


def _launches(body: tuple[Stmt, ...]) -> Iterator[tuple[tuple[Stmt, ...], Grid | None]]:
    """Yields what each launch runs: the statement of a grid, or neighbours that one thread runs."""
    alone: list[Stmt] = []
    for stmt in body:
        grid = grid_of(stmt)
        if grid is None:
            alone.append(stmt)
            continue
        if alone:
            yield tuple(alone), None
            alone = []
        yield (stmt,), grid
    if alone:
        yield tuple(alone), None


class _SourcePrinter:
    def __init__(self, kernel: Kernel, code: ThreadCode) -> None:
        self._kernel = kernel
        self._code = code
        self._values = code.values
        self._functions: list[str] = []
        self._launches: list[Launch] = []
        self._slots: list[Workspace] = []

    def add_launch(self, body: tuple[Stmt, ...], grid: Grid | None) -> None:
        """Adds a function to the text, and its launch.

        Args:
          body: what is run, with the loops of the grid.
          grid: the points that threads share out; None if one thread runs the body.
        """
        code = self._code
        code.slots = {}
        lines = code.statements(body) if grid is None else code.points(grid)
        blocks, threads = (1, 1) if grid is None else (self._blocks(grid), _BLOCK_THREADS)
        may_fail = any(FAILED in line for line in lines)
        buffers = self._named(body)
        parameters = [
            *self._parameters(body, buffers),
            *(
                f"{self._values.storage_type(buffer.dtype)}* __restrict__ {slots}"
                for slots, buffer in code.slots.items()
            ),
            *([f"int* {FAILED}"] if may_fail else []),
        ]
        if code.slots:
            number = "(int64_t)blockIdx.x * blockDim.x + threadIdx.x"
            lines = [f"const int64_t ms_thread = {number};", *lines]
        function = f"{plain_name(self._kernel.name)}_{len(self._functions)}"
        head = f'extern "C" __global__ void __launch_bounds__({threads})'
        self._functions.append(
            "\n".join(
                [head, f"{function}({', '.join(parameters)}) {{", *indented(lines), "}"],
            )
        )
        self._slots += [
            Workspace(slots, blocks * threads * size_bytes(buffer))
            for slots, buffer in code.slots.items()
        ]
        arguments = (*buffers, *code.slots, *([FAILED] if may_fail else []))
        self._launches.append(Launch(function, blocks, threads, arguments))

    def _blocks(self, grid: Grid) -> int:
        blocks = min(-(-grid.count // _BLOCK_THREADS), _MAX_BLOCKS)
        for buffer in self._code.slots.values():
            blocks = min(blocks, max(1, _SLOTS_BYTES // (_BLOCK_THREADS * size_bytes(buffer))))
        return blocks

    def _named(self, body: tuple[Stmt, ...]) -> list[str]:
        """Returns the names of the kernel's buffers that a body uses."""
        named = touched_in(body) - declared_in(body)
        return [name for name in self._values.buffers if name in named]

    def _parameters(self, body: tuple[Stmt, ...], buffers: list[str]) -> Iterator[str]:
        written = stored_in(body)
        for name in buffers:
            const = "" if name in written else "const "
            kind = self._values.storage_type(self._values.buffers[name].dtype)
            yield f"{const}{kind}* __restrict__ {self._values.names[name]}"

    def source(self) -> CudaSource:
        """Returns the whole."""
        values = self._values
        memory = arrange_memory(self._kernel, values.overwritten)
        checking = [Workspace(FAILED, FAILED_BYTES)] if values.checks else []
        clears = [ClearBuffer(workspace.name, workspace.size_bytes) for workspace in checking]
        text = "\n\n".join((PREAMBLE.rstrip(), *values.helpers.values(), *self._functions))
        return CudaSource(
            text=f"{text}\n",
            steps=(*memory.before, *clears, *self._launches, *memory.after),
            inputs=memory.inputs,
            outputs=memory.outputs,
            workspaces=(*memory.workspaces, *self._slots, *checking),
            checks=tuple(values.checks),
        )
