"""Records of elements in loops that run in vectors: by the C, by the code, by what it computes."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from loop_ir import interpret, parse_kernel
from loop_native import build_together, call, prepared, printed
from test_c_functions import called, in_vectors, needs_vector_library

SPREAD = """kernel spread(x: float64[{rows}]) -> (y) {{
  buffer y: float64[{rows}, {size}]
  {kind} i in 0 .. {rows} {{
    {stores}
  }}
}}"""
GATHERED = """kernel gathered(x: float64[{rows}, {size}]) -> (y) {{
  buffer y: float64[60]
  parallel i in 0 .. 60 {{
    y[i] = {value}
  }}
}}"""


def spread(
    size: int,
    stored: int | None = None,
    value: str = "sin(x[i] + {0}.0:float64)",
    rows: int = 60,
    kind: str = "parallel",
) -> str:
    """Returns a kernel that stores the first elements of records."""
    stores = [f"y[i, {k}] = {value.format(k)}" for k in range(stored or size)]
    return SPREAD.format(size=size, stores="\n    ".join(stores), rows=rows, kind=kind)


def gathered(
    size: int, loaded: int | None = None, value: str = "sin(x[i, {0}])", rows: int = 60
) -> str:
    """Returns a kernel that reads the first elements of records."""
    values = [value.format(k) for k in range(loaded or size)]
    total = reduce("({} + {})".format, values)
    return GATHERED.format(size=size, value=total, rows=rows)


@needs_vector_library
@pytest.mark.parametrize("size", range(2, 11))
@pytest.mark.parametrize("kernel", [spread, gathered])
def test_functions_of_records_come_from_the_vector_library(kernel, size, tmp_path) -> None:
    assert in_vectors(called(tmp_path, kernel(size))) == {"sin"}


@needs_vector_library
@pytest.mark.parametrize("size", range(2, 11))
def test_those_of_parts_of_records_do(size, tmp_path) -> None:
    for kernel in (spread(size, 2), gathered(size, 2), spread(size, size - 1), gathered(size, 1)):
        assert in_vectors(called(tmp_path, kernel)) == {"sin"}


@needs_vector_library
@pytest.mark.parametrize("size", [5, 6, 7, 9])
def test_those_of_records_that_are_changed_do(size, tmp_path) -> None:
    text = f"""kernel changed(x: float64[60, {size}]) -> (x) {{
      parallel i in 0 .. 60 {{
        {" ".join(f"x[i, {k}] = sin(x[i, {size - 1 - k}]) + x[i, 2]" for k in range(size))}
      }}
    }}"""
    assert in_vectors(called(tmp_path, text)) == {"sin"}


@needs_vector_library
def test_those_of_a_loop_that_threads_share_do(tmp_path) -> None:
    assert in_vectors(called(tmp_path, spread(5, rows=100_000))) == {"sin"}


@pytest.mark.parametrize("size", [2, 3, 5, 6, 7, 9])
def test_results_are_those_of_the_interpreter(size, tmp_path) -> None:
    both = f"""kernel both(x: float64[60, {size}], at: int32[60]) -> (x, y) {{
      buffer y: float64[60, {size}]
      parallel i in 0 .. 60 {{
        {" ".join(f"y[i, {k}] = cos(x[i, {size - 1 - k}])" for k in range(size))}
        {" ".join(f"x[i, {k}] = y[i, {size - 1 - k}] + exp(x[i, 0])" for k in range(size))}
      }}
    }}"""
    kernels = [prepared(parse_kernel(t)) for t in (spread(size), gathered(size), both)]
    sources = [printed(kernel, number) for number, kernel in enumerate(kernels)]
    library = build_together(tmp_path, sources, ("-O3",))
    x = np.random.default_rng(size).standard_normal((60, size))
    for kernel, source, given in zip(
        kernels, sources, ([x[:, 0].copy()], [x], [x, np.zeros(60, np.int32)]), strict=True
    ):
        found = call(library, kernel, source, given)
        for one, other in zip(found, interpret(kernel, given), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-13)
