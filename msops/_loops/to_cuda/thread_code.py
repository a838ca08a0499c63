"""What one thread does, and how CUDA C differs from C in it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from msops._loops.ir.functions import Function
from msops._loops.ir.nodes import Buffer, For, Kernel, Local
from msops._loops.ir.sizes import size_bytes
from msops._loops.to_c.text import CLike, Unproven, bare, indented
from msops._loops.to_cuda import costs
from msops._loops.to_cuda.accumulations import accumulation_of, in_register
from msops._loops.to_cuda.axes import Box

PREAMBLE = """\
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
"""
"""What NVRTC, which has no headers, must be told."""

FROM_F16 = """\
static __device__ float ms_from_f16(uint16_t x) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x));
  return value;
}"""
TO_F16 = """\
static __device__ uint16_t ms_to_f16(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}"""
"""float16 without cuda_fp16.h: the instructions behind __half2float and __float2half_rn."""

_WORDS = """
    threadIdx blockIdx blockDim gridDim warpSize dim3 uint3 float2 float3 float4 double2 int2 int3
    int4 min max abs clock
"""


Owner: TypeAlias = Literal["thread", "block"]


@dataclass(frozen=True)
class Slots:
    """An array in device memory for each thread, or each block, of a launch.

    Attributes:
      name: of the pointer to the first.
      buffer: one of them.
      owner: who has one.
    """

    name: str
    buffer: Buffer
    owner: Owner


class ThreadCode(CLike):
    """Prints what one thread does.

    Attributes:
      spilled: arrays that lie in device memory, as they are too large for where they belong.
    """

    inline = "static __device__"
    reserved = frozenset(_WORDS.split())
    storage_types: ClassVar[dict[str, str]] = CLike.storage_types | {"float16": "uint16_t"}

    def __init__(
        self,
        kernel: Kernel,
        unproven: Unproven | None,
        overwritten: Collection[str] = (),
        check_bounds: bool = False,
    ) -> None:
        """Prepares to print; see `CLikeValues`."""
        super().__init__(kernel, unproven, overwritten, check_bounds)
        self._numbers = itertools.count()
        self.spilled: list[Slots] = []

    # Values.

    def not_finite(self, value: float, dtype: str) -> str:
        """Returns a NaN or an infinity; NVRTC has no names for them."""
        sign = "-" if value < 0 else ""
        if dtype == "float64":
            bits = "0x7ff8000000000000" if math.isnan(value) else "0x7ff0000000000000"
            return f"({sign}__longlong_as_double({bits}ll))"
        bits = "0x7fc00000" if math.isnan(value) else "0x7f800000"
        return f"({sign}__int_as_float({bits}))"

    def float_form(self, row: Function) -> str:
        """Returns the form on floats of a function in CUDA C."""
        return row.cuda or row.c

    def integer_form(self, row: Function) -> str:
        """Returns the form on integers of a function in CUDA C."""
        return row.cuda_integer or row.c_integer

    def from_storage(self, text: str, dtype: str) -> str:
        """Returns the value of an element; float16 by the device's instruction."""
        if dtype != "float16":
            return super().from_storage(text, dtype)
        self.helpers.setdefault("ms_from_f16", FROM_F16)
        return f"ms_from_f16({text})"

    def to_storage(self, text: str, dtype: str) -> str:
        """Returns what is written for a value; float16 by the device's instruction."""
        if dtype != "float16":
            return super().to_storage(text, dtype)
        self.helpers.setdefault("ms_to_f16", TO_F16)
        return f"ms_to_f16({text})"

    # Loops.

    def loop(self, stmt: For) -> list[str]:
        """Returns a loop that one thread runs; what it accumulates is kept in a register."""
        accumulation = accumulation_of(stmt)
        if accumulation is None or accumulation.store.buffer in self.variables:
            return super().loop(stmt)
        nest = in_register(accumulation, self.new_name("total"), self.new_name("touched"))
        return super().loop(stmt) if nest is None else self.local(nest)

    def new_name(self, base: str) -> str:
        """Returns a name that is free, for a variable of the printer's own."""
        name = f"ms_{base}{next(self._numbers)}"
        self.names[name] = name
        return name

    def local(self, stmt: Local) -> list[str]:
        """Returns a block with a zeroed array of a thread's own; a large one in device memory."""
        if size_bytes(stmt.buffer) <= costs.THREAD_BYTES:
            return super().local(stmt)
        self.declare(stmt.buffer)
        name, count = self.names[stmt.buffer.name], math.prod(stmt.buffer.shape)
        index = self.new_name("i")
        zero = f"for (int64_t {index} = 0; {index} < {count}; ++{index}) {name}[{index}] = 0;"
        lines = [self.spill(stmt.buffer, "thread")]
        lines += [] if stmt.buffer.name in self.overwritten else [zero]
        lines += self.statements(stmt.body)
        return ["{", *indented(lines), "}"]

    def spill(self, buffer: Buffer, owner: Owner) -> str:
        """Returns the definition of an array in a slot of device memory; it is not zeroed."""
        slots = Slots(self.new_name("slots"), buffer, owner)
        self.spilled.append(slots)
        name, kind = self.names[buffer.name], self.storage_types[buffer.dtype]
        return f"{kind}* const {name} = {slots.name} + ms_{owner} * {math.prod(buffer.shape)};"

    # Boxes.

    def enter(self, box: Box) -> None:
        """Makes the ranges of a box's variables known."""
        self.ranges.update(box.ranges(self.ranges))

    def point(self, box: Box, number: str) -> list[str]:
        """Returns the definitions of a box's variables at the point of a number."""
        steps: dict[int, str] = {}
        stride = 1
        for position in reversed(box.order):
            size = box.axes[position].size
            text = number if stride == 1 else f"{number} / {stride}"
            steps[position] = text if position == box.order[0] else f"{text} % {size}"
            stride *= size
        lines = []
        for position, axis in enumerate(box.axes):
            begin = self.index(axis.loop.begin) if axis.is_moving else str(axis.range[0])
            start = "" if begin == "0" else f" + ({bare(begin)})"
            value = f"(int64_t)({steps[position]}){start}"
            lines.append(f"const int64_t {self.names[axis.loop.var]} = {value};")
        return lines

    def guarded(self, conditions: Iterable[str], lines: list[str]) -> list[str]:
        """Returns lines that run where all conditions hold."""
        condition = " && ".join(conditions)
        return [f"if ({condition}) {{", *indented(lines), "}"] if condition else lines

    def bounds(self, box: Box) -> Iterator[str]:
        """Yields the conditions under which a point of a box is an iteration of its loops."""
        for axis in box.axes:
            var = self.names[axis.loop.var]
            if not axis.is_exact and not axis.is_moving:
                yield f"{self.index(axis.loop.begin)} <= {var}"
            if not axis.is_exact:
                yield f"{var} < {self.index(axis.loop.end)}"


def number_type(box: Box) -> str:
    """Returns the type of numbers of points: division is quick in 32 bits only.

    A number may lie beyond the last one by as many as there are threads.
    """
    return "uint32_t" if box.count < 1 << 31 else "uint64_t"
