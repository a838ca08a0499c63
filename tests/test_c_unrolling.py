"""Short loops that become statements, and the loop that is left for vectors."""

from __future__ import annotations

import textwrap

import pytest
from loop_ir import parse_kernel, unroll_short_loops
from test_c_arrangement import arranged, body_of

PRODUCTS = """kernel products(a: float32[{n}, 4, 4], b: float32[{n}, 4, {m}]) -> (c) {{
  buffer c: float32[{n}, {rows}, {m}]
  parallel i in 0 .. {n} {{
    parallel x in 0 .. {rows} {{
      parallel y in 0 .. {m} {{
        reduction z in 0 .. 2 {{
          c[i, {at}] = c[i, {at}] + (a[i, x % 4, z] * b[i, z, y])
        }}
      }}
    }}
  }}
}}"""


def loops(n: int = 9, rows: int = 4, m: int = 4, at: str = "x, y") -> list[str]:
    kernel = parse_kernel(PRODUCTS.format(n=n, rows=rows, m=m, at=at))
    text = body_of(arranged(unroll_short_loops, kernel))
    return [line.split()[1] for line in text.splitlines() if "{" in line]


def test_a_row_that_fills_a_vector_stays_for_vectors() -> None:
    kernel = parse_kernel(PRODUCTS.format(n=9, rows=4, m=4, at="x, y"))
    assert body_of(arranged(unroll_short_loops, kernel)) == textwrap.dedent("""\
        buffer c: float32[9, 4, 4]
        parallel i in 0 .. 9 {
          parallel x in 0 .. 4 {
            parallel y in 0 .. 4 {
              c[i, x, y] = c[i, x, y] + (a[i, x, 0] * b[i, 0, y])
              c[i, x, y] = c[i, x, y] + (a[i, x, 1] * b[i, 1, y])
            }
          }
        }""")


@pytest.mark.parametrize(
    ("parts", "left"),
    [({"m": 3}, ["i", "x"]), ({"rows": 50}, ["i", "x"]), ({"at": "y, x"}, ["i", "x"])],
    ids=["a vector is not filled", "the loop around is longer", "columns"],
)
def test_other_loops_become_statements(parts: dict[str, int], left: list[str]) -> None:
    assert loops(**parts) == left  # type: ignore[arg-type]
