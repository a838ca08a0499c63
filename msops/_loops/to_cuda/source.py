"""A kernel as CUDA C: a function for each launch, and the steps that run them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msops._loops.ir.nodes import Expr, Kernel, Load, Local, Stmt, Store, Var
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import expressions, own_expressions, statements
from msops._loops.to_c.text import Unproven, indented
from msops._loops.to_cuda import costs
from msops._loops.to_cuda.block_code import MAX_THREADS, BlockCode
from msops._loops.to_cuda.costs import width
from msops._loops.to_cuda.memory import place_buffers
from msops._loops.to_cuda.preparation import prepare
from msops._loops.to_cuda.schedule import HostLoop, Part, Region, Zero, schedule
from msops._loops.to_cuda.steps import Clear, CudaSource, Launch, Repeat, Step, Workspace
from msops._loops.to_cuda.thread_code import PREAMBLE, number_type

FAILED = "ms_failed"
"""The workspace that takes the code of the first index out of range that a thread met."""

FAILED_BYTES = 4

_GRID_THREADS = 256
_MAX_BLOCKS = 1 << 22
# All slots of a launch together; fewer threads run where they would need more.
_SLOTS_BYTES = 256 << 20


def cuda_source(
    kernel: Kernel,
    unproven: Unproven | None = None,
    overwritten: Collection[str] = (),
    check_bounds: bool = False,
) -> CudaSource:
    """Returns a kernel as CUDA C.

    Args:
      kernel: with the kinds of its loops marked.
      unproven: the indices that may be out of range; None if nobody looked, then only the ranges
        of loop variables are asked.
      overwritten: names of buffers and locals that need not be zero at the start.
      check_bounds: an index out of range is an error of the run.
    """
    return _SourcePrinter(prepare(kernel), unproven, overwritten, check_bounds).source()


class _SourcePrinter:
    def __init__(
        self,
        kernel: Kernel,
        unproven: Unproven | None,
        overwritten: Collection[str],
        check_bounds: bool,
    ) -> None:
        self._kernel = kernel
        self._code = BlockCode(kernel, unproven, overwritten, check_bounds)
        self._functions: list[str] = []
        self._workspaces: list[Workspace] = []
        self._schedule = schedule(kernel.body)

    def source(self) -> CudaSource:
        """Returns the whole."""
        for buffer in self._schedule.temporaries:
            self._code.buffers[buffer.name] = buffer
            self._workspaces.append(Workspace(buffer.name, size_bytes(buffer)))
        memory = place_buffers(self._kernel, self._code.overwritten)
        steps = self._steps(self._schedule.parts, ())
        before = memory.before
        if self._code.checks:
            before = (*before, Clear(FAILED, FAILED_BYTES))
            self._workspaces.append(Workspace(FAILED, FAILED_BYTES))
        text = "\n\n".join((PREAMBLE.rstrip(), *self._code.helpers.values(), *self._functions))
        return CudaSource(
            text=f"{text}\n",
            steps=(*before, *steps, *memory.after),
            inputs=memory.inputs,
            outputs=memory.outputs,
            workspaces=(*memory.workspaces, *self._workspaces),
            checks=tuple(self._code.checks),
        )

    def _steps(self, parts: Iterable[Part], host_loops: tuple[str, ...]) -> tuple[Step, ...]:
        return tuple(step for part in parts for step in self._steps_of(part, host_loops))

    def _steps_of(self, part: Part, host_loops: tuple[str, ...]) -> Iterable[Step]:
        match part:
            case Zero(buffer=buffer):
                size = size_bytes(buffer)
                is_needed = size and buffer.name not in self._code.overwritten
                return [Clear(buffer.name, size)] if is_needed else []
            case HostLoop(loop=loop, begin=begin, end=end, parts=parts):
                self._code.ranges[loop.var] = (begin, end - 1)
                return [Repeat(loop.var, begin, end, self._steps(parts, (*host_loops, loop.var)))]
            case Region():
                return self._launch(part, host_loops)

    def _launch(self, region: Region, host_loops: tuple[str, ...]) -> list[Step]:
        """Returns the launch of a region, and adds its function to the text."""
        if region.box is not None and region.box.count == 0:
            return []
        code = self._code
        code.start_function()
        threads = self._thread_count(region)
        lines = _looped(region, code)
        lines = code.guarded([code.value(guard) for guard in region.guards], lines)
        blocks = self._block_count(region, threads)
        function = f"{_plain(self._kernel.name)}_{len(self._functions)}"
        buffers, variables = self._arguments(region, host_loops)
        self._functions.append(
            "\n".join(
                [
                    f'extern "C" __global__ void __launch_bounds__({threads})',
                    f"{function}({self._parameters(region, buffers, variables, lines)}) {{",
                    *indented([*self._preamble(variables), *lines]),
                    "}",
                ]
            )
        )
        for slots in code.spilled:
            count = blocks * (threads if slots.owner == "thread" else 1)
            self._workspaces.append(Workspace(slots.name, count * size_bytes(slots.buffer)))
        own = [slots.name for slots in code.spilled]
        own += [FAILED] if _may_fail(lines) else []
        arguments = (*buffers, *own, *variables)
        return [Launch(function, blocks, threads, arguments)]

    def _thread_count(self, region: Region) -> int:
        if region.unit == "thread":
            return _GRID_THREADS
        ranges = region.box.ranges(self._code.ranges) if region.box else self._code.ranges
        wide = width(region.body, ranges)
        most = _GRID_THREADS if region.box else MAX_THREADS
        return 1 if wide < costs.LEAST_SHARED else min(most, 1 << (wide - 1).bit_length())

    def _block_count(self, region: Region, threads: int) -> int:
        if region.box is None:
            return 1
        points = region.box.count
        wanted = points if region.unit == "block" else -(-points // threads)
        for slots in self._code.spilled:
            owned = threads if slots.owner == "thread" else 1
            wanted = min(wanted, max(1, _SLOTS_BYTES // (owned * size_bytes(slots.buffer))))
        return min(wanted, _MAX_BLOCKS)

    def _arguments(
        self, region: Region, host_loops: tuple[str, ...]
    ) -> tuple[list[str], list[str]]:
        """Returns the buffers and the variables of loops on the host that a region names."""
        named = _named(region)
        local = {stmt.buffer.name for stmt in statements(region.body) if isinstance(stmt, Local)}
        known = [name for name in self._code.buffers if name in named and name not in local]
        return known, [name for name in host_loops if name in named]

    def _parameters(
        self, region: Region, buffers: list[str], variables: list[str], lines: list[str]
    ) -> str:
        code = self._code
        written = {stmt.buffer for stmt in statements(region.body) if isinstance(stmt, Store)}
        texts = []
        for name in buffers:
            kind = code.storage_types[code.buffers[name].dtype]
            const = "" if name in written else "const "
            texts.append(f"{const}{kind}* __restrict__ {code.names[name]}")
        for slots in code.spilled:
            texts.append(f"{code.storage_types[slots.buffer.dtype]}* __restrict__ {slots.name}")
        texts += [f"int* {FAILED}"] if _may_fail(lines) else []
        texts += [f"int32_t ms_{code.names[name]}" for name in variables]
        return ", ".join(texts)

    def _preamble(self, variables: list[str]) -> list[str]:
        names = self._code.names
        lines = [f"const int64_t {names[var]} = ms_{names[var]};" for var in variables]
        owners = {slots.owner for slots in self._code.spilled}
        if "thread" in owners:
            lines.append(
                "const int64_t ms_thread = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;"
            )
        if "block" in owners:
            lines.append("const int64_t ms_block = blockIdx.x;")
        return lines


def _looped(region: Region, code: BlockCode) -> list[str]:
    """Returns the lines of a region: what is done at the points of its box, shared out."""
    if region.box is None:
        return code.together(region.body)
    box = region.box
    code.enter(box)
    kind = number_type(box)
    first, step = "blockIdx.x", "gridDim.x"
    if region.unit == "thread":
        first, step = (
            f"({kind})blockIdx.x * blockDim.x + threadIdx.x",
            f"({kind})gridDim.x * blockDim.x",
        )
        body = code.statements(region.body)
    else:
        body = code.together(region.body)
    inside = [*code.point(box, "ms_point"), *code.guarded(code.bounds(box), body)]
    head = f"for ({kind} ms_point = {first}; ms_point < {box.count}; ms_point += {step}) {{"
    return [head, *indented(inside), "}"]


def _may_fail(lines: list[str]) -> bool:
    return any(FAILED in line for line in lines)


def _named(region: Region) -> set[str]:
    """Returns the names of all buffers and variables in a region."""
    exprs: list[Expr] = list(region.guards)
    named: set[str] = set()
    for stmt in _within(region):
        exprs += own_expressions(stmt)
        if isinstance(stmt, Store):
            named.add(stmt.buffer)
    for expr in exprs:
        for part in expressions(expr):
            if isinstance(part, Load):
                named.add(part.buffer)
            elif isinstance(part, Var):
                named.add(part.name)
    return named


def _within(region: Region) -> list[Stmt]:
    """Returns all statements of a region, those of its box too."""
    outer: tuple[Stmt, ...] = tuple(axis.loop for axis in region.box.axes) if region.box else ()
    return [*outer, *statements(region.body)]


def _plain(name: str) -> str:
    return "".join(c if c.isascii() else f"u{ord(c):x}" for c in name)
