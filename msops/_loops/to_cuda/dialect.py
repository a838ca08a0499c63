"""CUDA C, as NVRTC compiles it: without headers."""

from __future__ import annotations

import math

from msops._loops.to_c.text.dialect import Declaration, Dialect

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
"""The types of <stdint.h>."""

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


def _not_finite(value: float, dtype: str) -> str:
    """Returns a NaN or an infinity by its bits: NVRTC has no names for them."""
    sign = "-" if value < 0 else ""
    if dtype == "float64":
        bits = "0x7ff8000000000000" if math.isnan(value) else "0x7ff0000000000000"
        return f"({sign}__longlong_as_double({bits}ll))"
    bits = "0x7fc00000" if math.isnan(value) else "0x7f800000"
    return f"({sign}__int_as_float({bits}))"


CUDA = Dialect(
    inline="static __device__",
    reserved=frozenset(_WORDS.split()),
    float16=Declaration("uint16_t"),
    from_float16=Declaration("ms_from_f16", {"ms_from_f16": FROM_F16}),
    to_float16=Declaration("ms_to_f16", {"ms_to_f16": TO_F16}),
    float_form=lambda row: row.cuda or row.c,
    integer_form=lambda row: row.cuda_integer or row.c_integer,
    not_finite=_not_finite,
    rare="{}",
    function=lambda function, dtype, is_beside_vectors: None,
)
