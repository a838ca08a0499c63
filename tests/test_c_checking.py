"""Elements at positions that parameters hold, some out of range: what C computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from loop_ir import PASSES_TO_C, Kernel, interpret, kernel_text, parse_kernel, run_passes
from loop_native import build_together, call, printed

PICKED = """kernel picked(at: {dtype}[400], to: int32[400], x: float32[400]) -> (y, z) {{
  buffer y: float32[7, 8]
  buffer z: float32[9]
  {kind} i in 0 .. {trips} {{
    {statement}
  }}
}}"""
ADD = "z[at[i]] = z[at[i]] + x[i]"


def picked(
    statement: str = ADD, kind: str = "reduction", dtype: str = "int32", trips: int = 400
) -> Kernel:
    text = PICKED.format(statement=statement, kind=kind, dtype=dtype, trips=trips)
    return parse_kernel(text)


STORES = (
    ADD,
    "z[at[i] + 2] = z[at[i] + 2] + x[i]",
    "z[at[i] - 2] = x[i]",
    "z[at[i]] = x[i] y[at[i], 3] = x[i]",
    "y[at[i], to[i]] = y[at[i], to[i]] + x[i]",
    "y[at[i], at[399 - i]] = x[i]",
    "z[at[i]] = x[to[i]]",
    "local k: int32[] { k[] = at[i] z[k[]] = z[k[]] + x[i] }",
    "local k: int32[] { if (x[i] > x[0]) { k[] = at[i] } z[k[]] = x[i] }",
    "local k: int32[] { k[] = at[i]  z[k[] + 1] = x[i] }",
    "if (x[i] > x[0]) { z[at[i]] = x[i] }",
    "z[int64(at[i])] = x[i]",
)


def test_c_computes_what_the_interpreter_does(tmp_path: Path) -> None:
    kernels = [picked(statement, "serial") for statement in STORES]
    arranged = [run_passes(kernel, PASSES_TO_C) for kernel in kernels]
    sources = [printed(kernel, number) for number, kernel in enumerate(arranged)]
    library = build_together(tmp_path, sources)
    rng = np.random.default_rng(1)
    for low, high in ((0, 6), (2, 6), (-2, 6), (-9, 12), (-(2**31), 2**31 - 1)):
        for kernel, after, source in zip(kernels, arranged, sources, strict=True):
            at, to = (rng.integers(low, high, 400, dtype="int32") for _ in range(2))
            inputs = [at, to, rng.integers(-9, 9, 400).astype("float32")]
            for got, want in zip(
                call(library, after, source, inputs), interpret(kernel, inputs), strict=True
            ):
                np.testing.assert_array_equal(got, want, err_msg=kernel_text(kernel))
