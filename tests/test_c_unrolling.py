"""Short loops that become statements, and the loop that is left for vectors."""

from __future__ import annotations

import textwrap

import pytest
from loop_ir import Kernel, parse_kernel, unroll_short_loops
from test_c_arrangement import arranged, body_of

PRODUCTS = """kernel products(a: float32[{n}, 4, 4], b: float32[{n}, 4, {m}]) -> (c) {{
  buffer c: float32[{n}, {rows}, {m}]
  parallel i in 0 .. {n} {{
    parallel x in 0 .. {rows} {{
      parallel y in 0 .. {m} {{
        reduction z in 0 .. 2 {{
          c[i, {at}] = c[i, {at}] + (a[i, {row}, z] * b[i, z, y])
        }}
      }}
    }}
  }}
}}"""


def loops(n: int = 9, rows: int = 4, m: int = 4, at: str = "x, y") -> list[str]:
    row = "x" if rows <= 4 else "x % 4"
    kernel = parse_kernel(PRODUCTS.format(n=n, rows=rows, m=m, at=at, row=row))
    text = body_of(arranged(unroll_short_loops, kernel))
    return [line.split()[1] for line in text.splitlines() if "{" in line]


def test_a_row_that_fills_a_vector_stays_for_vectors() -> None:
    kernel = parse_kernel(PRODUCTS.format(n=9, rows=4, m=4, at="x, y", row="x"))
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


CORNERS = """kernel corners(a: float32[{n}, 2], f: float32[{n}]) -> (c) {{
  buffer c: float32[{n}]
  parallel i in 0 .. {n} {{
    reduction z in 0 .. 2 {{
      local w: float32[] {{
        w[] = {weight}
        c[i] = c[i] + (w[] * a[i, z])
        {more}
      }}
    }}
  }}
}}"""


SIDE = "(z == 1) ? f[i] : (1.0:float32 - f[i])"


def corners(weight: str, more: int = 0) -> Kernel:
    updates = "c[i] = c[i] + w[] " * more
    return parse_kernel(CORNERS.format(n=9, weight=weight, more=updates))


def test_iterations_that_decide_a_condition_become_statements_with_their_variables() -> None:
    kernel = corners(SIDE)
    text = body_of(arranged(unroll_short_loops, kernel))
    assert "?" not in text
    assert [line.split(":")[0].strip() for line in text.splitlines() if "local" in line] == [
        "local w",
        "local w_1",
    ]


def test_iterations_that_decide_a_remainder_become_statements() -> None:
    # The corner of a triangle after this one.
    text = body_of(arranged(unroll_short_loops, corners("a[i, (z + 1) % 2]")))
    assert "%" not in text
    assert [line.strip() for line in text.splitlines() if "w[] =" in line or "w_1[] =" in line] == [
        "w[] = a[i, 1]",
        "w_1[] = a[i, 0]",
    ]


COLOURS = """kernel colours(a: float32[9, 3], m: float32[3, 3]) -> (c) {{
  buffer c: float32[9, 3]
  parallel i in 0 .. 9 {{
    {condition} {{
      parallel z in 0 .. 3 {{
        local v: float32[] {{
          v[] = ((m[z, 0] * a[i, 0]) + (m[z, 1] * a[i, 1]))
          c[i, z] = max(v[], (v[] * v[]))
        }}
      }}
    }}
  }}
}}"""


def test_channels_with_variables_become_statements() -> None:
    kernel = parse_kernel(COLOURS.format(condition="local s: float32[]"))
    text = body_of(arranged(unroll_short_loops, kernel))
    assert [line.split()[1] for line in text.splitlines() if "parallel" in line] == ["i"]
    assert text.count("local v") == 3


def test_channels_with_variables_stay_under_a_condition() -> None:
    # gcc makes no vectors of neighbours that are stored under conditions.
    kernel = parse_kernel(COLOURS.format(condition="if (a[i, 0] > 0.5:float32)"))
    assert unroll_short_loops(kernel) is kernel


def test_variables_of_a_row_that_fills_a_vector_stay_with_it() -> None:
    kernel = parse_kernel("""kernel nodes(a: float64[9, 4, 4], b: float64[4, 4]) -> (c) {
      buffer c: float64[9, 4, 4]
      parallel i in 0 .. 9 {
        parallel x in 0 .. 4 {
          parallel y in 0 .. 4 {
            local v: float64[] {
              v[] = a[i, x, y] + b[x, y]
              c[i, x, y] = v[] * v[]
            }
          }
        }
      }
    }""")
    assert unroll_short_loops(kernel) is kernel


# Two iterations, each with a variable, its value, the first sum, and others.
@pytest.mark.parametrize(("more", "is_unrolled"), [(17, True), (18, False)])
def test_many_statements_stay_in_their_loop(more: int, is_unrolled: bool) -> None:
    kernel = corners("f[i]", more)
    assert (unroll_short_loops(kernel) is not kernel) == is_unrolled
