"""Elements at positions that are data, read under conditions: what C computes."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import CSource, Kernel, interpret, parse_kernel
from loop_native import build_together, call, shipped
from random_examples import examples

pytestmark = pytest.mark.usefixtures("avx")

WARP = """kernel warp(a: {dtype}[8, 20], p: {position}[12], q: {position}[12], z: int32[12],
  n: int32[12]) -> (y) {{
  buffer y: {dtype}[3, 12]
  parallel i in 0 .. 3 {{
    {loop} j in 0 .. 12 {{
      local r: int32[] {{ local c: int32[] {{
        {row}
        c[] = int32(q[j])
        {body}
      }} }}
    }}
  }}
}}"""
PARTS = {
    "dtype": "float32", "position": "float32", "loop": "parallel",
    "row": "r[] = int32(p[j]) + z[j]",
}  # fmt: skip
INSIDE = "((r[] >= 0) && (r[] < 8)) && ((c[] >= 0) && (c[] < 20))"

BODIES = (
    f"if ({INSIDE}) {{ y[i, j] = a[r[], c[]] }}",
    f"if ({INSIDE}) {{ y[i, j] = a[r[], c[]] }} else {{ y[i, j] = 5.0:float32 }}",
    f"y[i, j] = (({INSIDE}) ? a[r[], c[]] : q[j])",
    """local v: float32[] { v[] = 0.5:float32
      if (((c[] >= 0) && ((c[] + 1) < 20)) && ((r[] < 8) && (r[] > 0))) {
        local s: float32[] {
          s[] = a[r[], c[]] - a[r[] - 1, c[] + 1]
          v[] = v[] + s[]
          if (q[j] > 1.0:float32) { v[] = v[] * 3.0:float32 }
        }
      }
      y[i, j] = v[] }""",
    "if (!((n[j] < 0) || (n[j] >= 20))) { y[i, j] = exp(a[i, n[j]]) }",
)
WHOLE = st.sampled_from([0, 1, -1, 19, 20, 2**31 - 1, -(2**31)])
NUMBERS = st.sampled_from(
    [0.0, -0.0, 1.5, 7.0, 7.99, 19.0, 20.0, -1.0, np.nan, np.inf, -np.inf, 3e9]
)


@given(st.data())
@settings(max_examples=examples(10), deadline=None)
def test_c_computes_what_the_interpreter_does(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    library, pairs = _built(tmp_path_factory.getbasetemp())
    p, q, z = (
        data.draw(st.lists(each, min_size=12, max_size=12)) for each in (NUMBERS, NUMBERS, WHOLE)
    )
    a = np.random.default_rng(0).standard_normal((8, 20)).astype(np.float32)
    whole = np.array(z, "int32")
    inputs = [a, np.array(p, "float32"), np.array(q, "float32"), whole, whole[::-1].copy()]
    for kernel, (arranged_kernel, source) in pairs:
        (got,) = call(library, arranged_kernel, source, inputs)
        np.testing.assert_allclose(got, interpret(kernel, inputs)[0], rtol=1e-6)


@functools.cache
def _built(folder: Path) -> tuple[ctypes.CDLL, list[tuple[Kernel, tuple[Kernel, CSource]]]]:
    """Returns the library of all bodies, and for each body the kernel and what it became."""
    kernels = [parse_kernel(WARP.format(body=body, **PARTS)) for body in BODIES]
    ready = [shipped(kernel, number) for number, kernel in enumerate(kernels)]
    library = build_together(folder, [source for _, source in ready], ("-O3", "-march=native"))
    return library, list(zip(kernels, ready, strict=True))


READS = """kernel reads(a: float32[9, 30], z: float32[40], x: float64[40]) -> (y) {
  buffer y: float32[40]
  parallel i in 0 .. 40 {
    local u: float32[] { local v: float64[] {
      u[] = z[i]
      v[] = x[i]
      if (((u[] >= 0.0:float32) && (u[] <= 8.0:float32))
          && ((v[] > -1.0:float64) && (v[] < 30.0:float64))) {
        local r: int32[] { local c: int64[] {
          r[] = int32(u[])
          c[] = int64(floor(v[]))
          y[i] = ((v[] >= 0.0:float64) ? a[r[], int32(v[])] : 7.0:float32)
          if (c[] >= 0:int64) { y[i] = y[i] + a[r[], c[]] }
        } }
      } else {
        y[i] = -1.0:float32
      }
    } }
  }
}"""


def test_c_reads_the_elements_below_floats(tmp_path: Path) -> None:
    kernel = parse_kernel(READS)
    arranged, source = shipped(kernel, 0)
    library = build_together(tmp_path, [source], ("-O3", "-march=native"))
    a, edges = np.arange(270, dtype=np.float32).reshape(9, 30), [np.nan, np.inf, -np.inf, 1e30, 0.0]
    rng = np.random.default_rng(0)
    for _ in range(20):
        z = np.concatenate([rng.uniform(-2, 11, 30), edges, [8, 7.9999995, -0.0, -1, 3e9]])
        x = np.concatenate(
            [rng.uniform(-2, 33, 30), edges, [30, 29.999999999999996, -0.0, -1, 3e9]]
        )
        inputs = [a, rng.permutation(z).astype(np.float32), rng.permutation(x)]
        (got,) = call(library, arranged, source, inputs)
        np.testing.assert_array_equal(got, interpret(kernel, inputs)[0])
