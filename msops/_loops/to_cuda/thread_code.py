"""What one thread does, and how CUDA C differs from C in it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator
from typing import ClassVar

from msops._loops.ir.functions import Function
from msops._loops.ir.nodes import Buffer, Kernel, Local
from msops._loops.ir.sizes import size_bytes
from msops._loops.to_c.text import CLike, Unproven, bare, indented
from msops._loops.to_cuda.grid import Grid

THREAD_BYTES = 1024
"""The largest array that a thread keeps to itself; others are in device memory."""

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
"""The types of <stdint.h>: NVRTC has no headers."""

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


class ThreadCode(CLike):
    """Prints what one thread does.

    Attributes:
      slots: arrays of which each thread of the launch has one in device memory, by the name of the
        pointer to the first.
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
        self.slots: dict[str, Buffer] = {}

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

    # Statements.

    def local(self, stmt: Local) -> list[str]:
        """Returns a block with a zeroed array of a thread's own; a large one in device memory."""
        buffer = stmt.buffer
        if size_bytes(buffer) <= THREAD_BYTES:
            return super().local(stmt)
        self.declare(buffer)
        number, name, count = next(self._numbers), self.names[buffer.name], math.prod(buffer.shape)
        slots, index = f"ms_slots{number}", f"ms_i{number}"
        self.slots[slots] = buffer
        lines = [f"{self.storage_type(buffer)}* const {name} = {slots} + ms_thread * {count};"]
        if buffer.name not in self.overwritten:
            head = f"for (int64_t {index} = 0; {index} < {count}; ++{index})"
            lines.append(f"{head} {name}[{index}] = 0;")
        return ["{", *indented([*lines, *self.statements(stmt.body)]), "}"]

    def points(self, grid: Grid) -> list[str]:
        """Returns the loop in which the threads of a launch share out the points of a grid."""
        self.ranges.update(grid.ranges)
        # Division is quick in 32 bits only. A number may lie beyond the last point by as many as
        # there are threads.
        kind = "uint32_t" if grid.count < 1 << 31 else "uint64_t"
        body = self.statements(grid.body)
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
            lines.append(f"const int64_t {self.names[axis.loop.var]} = (int64_t)({text}){start};")
        return lines

    def _bounds(self, grid: Grid) -> Iterator[str]:
        """Yields the conditions under which a point is an iteration of its loops."""
        for axis in grid.axes:
            if not axis.is_exact:
                var = self.names[axis.loop.var]
                yield f"{self.index(axis.loop.begin)} <= {var}"
                yield f"{var} < {bare(self.index(axis.loop.end))}"
