"""Tables of what a loop around does not change: by text, and by what they mean."""

from __future__ import annotations

import textwrap
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, interpret, mark_loops, parse_kernel, tabulate_values
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of

# c is the same in all rows; w is a choice among polynomials, by column and position.
TEXT = """kernel k(x: float64[12, 20], p: float64[23], b: float64[20, 3]) -> (y, z) {{
  buffer y: float64[12, 20]
  buffer z: float64[23]
  local sum: float64[] {{
    serial i in {rows} {{
      serial j in 0 .. 20 {{
        local c: float64[] {{ local w: float64[] {{ local t: float64[] {{
          c[] = {value}
          {between}
          serial q in {window} {{
            t[] = (float64(j) * 0.3:float64) - (float64(q) * p[1])
            w[] = 0.25:float64
            if (t[] < 1.0:float64) {{
              w[] = ((t[] * 0.5:float64) - 2.0:float64) * ((t[] * t[]) + 1.0:float64)
            }} else {{
              if (t[] <= 2.0:float64) {{ w[] = ((t[] - 4.0:float64) * t[]) * (t[] - p[0]) }}
            }}
            y[i, j] = y[i, j] + (w[] * x[i, j])
          }}
          {after}
          y[i, j] = y[i, j] + ({use} * x[i, j])
        }} }} }}
      }}
    }}
  }}
}}"""
PARTS = {
    "rows": "0 .. 12", "value": "cos(float64(j) * 0.1:float64)", "between": "",
    "window": "-2 .. 2", "after": "", "use": "c[]",
}  # fmt: skip


def nest(**parts: str) -> Kernel:
    return mark_loops(parse_kernel(TEXT.format(**{**PARTS, **parts})))


def tabulated(**parts: str) -> str:
    """Returns the body of the kernel with its tables."""
    return body_of(arranged_apart(tabulate_values, nest(**parts)))


def test_values_of_columns_come_from_tables_before_the_rows() -> None:
    text = tabulated(window="0 .. 0")
    assert text == textwrap.dedent("""\
        buffer y: float64[12, 20]
        buffer z: float64[23]
        local table: float64[20] {
          parallel j_1 in 0 .. 20 {
            table[j_1] = cos(float64(j_1) * 0.1:float64)
          }
          parallel i in 0 .. 12 {
            parallel j in 0 .. 20 {
              local c: float64[] {
                c[] = table[j]
                y[i, j] = y[i, j] + (c[] * x[i, j])
              }
            }
          }
        }""")


@pytest.mark.parametrize(
    ("parts", "where"),
    [
        ({"value": "cos(p[2])"}, "local table: float64[] {\n  table[] = cos(p[2])\n"),
        ({"value": "cos(p[j + 3] + float64(i))"}, None),
        ({"value": "cos(p[j + 3])"}, "table[j_1] = cos(p[j_1 + 3])"),
        ({"value": "x[i, j] * cos(p[j + 3])"}, "table[j_1] = cos(p[j_1 + 3])"),
        ({"value": "cos(x[i, 0])"}, "table[] = cos(x[i, 0])"),
        ({"value": "cos(x[3, j])"}, "table[j_1] = cos(x[3, j_1])"),
        ({"value": "b[j, 1] - x[i, j]"}, "table[j_1] = b[j_1, 1]"),
    ],
    ids=[
        "of nothing",
        "of all loops",
        "of columns",
        "a part",
        "of rows",
        "of one row",
        "of points",
    ],
)
def test_a_table_has_a_dimension_for_each_loop_inside_that_it_depends_on(
    parts: dict[str, str], where: str | None
) -> None:
    text = tabulated(**parts, window="0 .. 0")
    assert (where in text) if where else ("table" not in text)


@pytest.mark.parametrize(
    "parts",
    [
        {"value": "cos(y[0, j])"},
        {"value": "y[0, (j * j) % 5]"},
        {"value": "p[(j * 3) % 23]"},
        {"value": "cos(sum[])", "after": "sum[] = sum[] + 1.0:float64"},
        {"value": "cos(p[j + 4])"},
        {"value": "cos(p[j * 2])"},
        {"value": "p[j + 3] * 2.0:float64"},
        {"value": "cos(0.5:float64)"},
        {"value": "p[((((j * 3) + 4) * 5) + ((j + 6) * 7)) % 23]"},
        {"rows": "0 .. 3"},
        {"between": "if (x[i, j] > 0.0:float64) { c[] = cos(p[j + 3]) }", "value": "0.0:float64"},
        {"value": "p[j]", "after": "c[] = c[] + x[i, j]", "use": "cos(c[])"},
        {"value": "cos(z[j])", "after": "z[j] = 1.0:float64"},
    ],
    ids=["an array that changes", "its element", "a multiple", "a sum", "out of range",
         "out of range, far", "little",
         "a constant", "an index", "few rows", "under a condition", "a variable that changes",
         "read back"],
)  # fmt: skip
def test_what_gets_no_table(parts: dict[str, str]) -> None:
    assert "table" not in tabulated(**{"value": "cos(float64(j))", **parts}, window="0 .. 0")


def test_large_tables_are_those_of_functions() -> None:
    def text(value: str) -> str:
        kernel = f"""kernel k(x: float32[4, {20_000}]) -> (y) {{
          buffer y: float32[4, 20000]
          serial i in 0 .. 4 {{
            serial j in 0 .. 20000 {{ y[i, j] = x[i, j] * ({value}) }}
          }}
        }}"""
        return body_of(arranged_apart(tabulate_values, mark_loops(parse_kernel(kernel))))

    assert "local table: float32[20000]" in text("exp(float32(j))")
    ratio = "((float32(j) / 3.0:float32) + 1.0:float32) / (float32(j) + 2.0:float32)"
    assert "table" not in text(ratio)


def test_a_value_that_a_serial_loop_does_not_change_is_computed_before_it() -> None:
    kernel = parse_kernel("""kernel k(a: float64[40], w: float64[40]) -> (b) {
      buffer b: float64[40]
      serial t in 0 .. 9 {
        parallel j in 0 .. 40 {
          b[j] = (b[j] * log(1.0:float64 + exp(w[j]))) + a[j]
        }
      }
    }""")
    text = body_of(arranged_apart(tabulate_values, kernel))
    assert text.index("table[j_1] = log(1.0:float64 + exp(w[j_1]))") < text.index("serial t")
    assert "b[j] = (b[j] * table[j]) + a[j]" in text


# Iterations may meet in an element of y: the loop runs without vectors.
MEETING = """kernel k(a: float64[40], b: float64[40], n: int32[40]) -> (y, z) {{
  buffer y: float64[40]
  buffer z: float64[40]
  serial t in 0 .. 3 {{
    {kind} j in {span} {{
      local v: float64[] {{ local w: float64[] {{
        v[] = a[j] * float64(t)
        {before}
        y[{at}] = y[{at}] + {value}
      }} }}
    }}
  }}
}}"""
MEETING_PARTS = {
    "kind": "reduction", "span": "0 .. 40", "before": "w[] = exp(v[] - b[j])",
    "at": "n[j] % 8", "value": "(w[] * b[j])",
}  # fmt: skip


def meeting(**parts: str) -> Kernel:
    return parse_kernel(MEETING.format(**{**MEETING_PARTS, **parts}))


def test_functions_of_a_loop_without_vectors_come_from_a_table_before_it() -> None:
    text = body_of(arranged_apart(tabulate_values, meeting()))
    assert text == textwrap.dedent("""\
        buffer y: float64[40]
        buffer z: float64[40]
        serial t in 0 .. 3 {
          local row: float64[40] {
            parallel j_1 in 0 .. 40 {
              row[j_1] = exp((a[j_1] * float64(t)) - b[j_1])
            }
            reduction j in 0 .. 40 {
              local w: float64[] {
                w[] = row[j]
                y[n[j] % 8] = y[n[j] % 8] + (w[] * b[j])
              }
            }
          }
        }""")


@pytest.mark.parametrize(
    ("parts", "table"),
    [
        ({"span": "3 .. 40"}, "local row: float64[37]"),
        ({"before": "w[] = exp(b[j]) w[] = w[] * sin(w[])"}, "exp(b[j_1])"),
        ({"value": "(w[] * exp(b[j] + y[0]))"}, "row[j_1] = exp((a"),
        ({"before": "w[] = pow(a[j], b[j])"}, "row[j_1] = pow(a[j_1], b[j_1])"),
        ({"before": "w[] = float64(exp(float32(a[j])))"}, "row[j_1] = float64(exp("),
        ({"before": "w[] = exp(y[0])", "at": "j"}, ""),
        ({"at": "j"}, ""),
        ({"at": "3"}, ""),
        ({"kind": "serial"}, "row[j_1] = exp((a"),
        ({"span": "0 .. 7"}, ""),
        ({"span": "0 .. (n[0] % 12)"}, ""),
        ({"before": "w[] = exp(a[n[j] + 1])"}, ""),
        ({"before": "w[] = exp(y[j])"}, ""),
        ({"before": "w[] = sqrt(v[] - b[j])"}, ""),
        ({"before": "w[] = pow(v[], 2.0:float64)"}, ""),
        ({"before": "if (n[j] > 0) { w[] = exp(v[]) }", "value": "w[]"}, ""),
        ({"before": "parallel k in 0 .. 3 { z[k] = exp(v[]) }", "value": "z[3]"}, ""),
    ],
    ids=["a part", "of others", "beside another", "power", "float32", "of itself", "apart",
         "of one element", "in order", "short", "of any length", "out of range",
         "of what is stored", "an instruction", "a product", "under a condition",
         "with loops inside"],
)  # fmt: skip
def test_functions_that_a_loop_without_vectors_may_have_ahead(
    parts: dict[str, str], table: str
) -> None:
    text = body_of(arranged_apart(tabulate_values, meeting(**parts)))
    assert (table in text) if table else ("row" not in text)


IN_ORDER = """kernel filtered(a: float64[40]) -> (y) {{
  buffer y: float64[4]
  {kind} i in 0 .. 4 {{
    serial j in 0 .. 40 {{ y[i] = (y[i] * 0.5:float64) + exp(a[j] * float64(i)) }}
  }}
}}"""


@pytest.mark.parametrize(("kind", "has_table"), [("serial", True), ("parallel", False)])
def test_functions_of_rows_that_may_go_into_lanes_stay(kind: str, has_table: bool) -> None:
    text = body_of(arranged_apart(tabulate_values, parse_kernel(IN_ORDER.format(kind=kind))))
    assert ("local row: float64[40]" in text) is has_table


VALUES = st.sampled_from(
    [
        "cos(float64(j) * 0.1:float64)",
        "cos(p[j + 3]) * exp(p[i])",
        "((p[j] / 3.0:float64) + p[2]) / (p[j + 1] + 5.0:float64)",
        "float64(int32(floor((float64(j) + 0.5:float64) * 1.7:float64)))",
        "exp(sum[]) + exp(p[1] + p[2])",
        "cos(p[(j * 3) % 23])",
        "exp(x[i, 3]) + exp(x[2, j])",
        "cos(z[j]) + x[i, j]",
        "cos(y[i, 19 - j])",
        "cos(x[i, 0])",
        "p[(j * j) % 23] + p[(i * j) % 23]",
        "((b[j, 2] - b[j, 0]) * x[i, j]) + b[j, 0]",
    ]
)
BETWEEN = st.sampled_from(
    [
        "",
        "sum[] = sum[] + c[]",
        "c[] = c[] + sum[]",
        "w[] = exp(c[] + 0.5:float64)",
        "w[] = p[2] if (p[j] > 0.0:float64) { c[] = exp(p[j]) w[] = p[j] }",
        "if (sum[] > 0.0:float64) { c[] = exp(p[j]) }",
        "if (x[i, j] > 0.0:float64) { c[] = exp(p[j]) }",
        "if (p[j] > 0.0:float64) { c[] = exp(p[j]) t[] = c[] } else { t[] = exp(c[]) }",
        "if (j < 9) { w[] = exp(p[3] + float64(j)) } else { z[j] = c[] }",
        "serial k in 0 .. 5 { c[] = (c[] * 0.5:float64) + exp(p[k]) }",
        "serial k in 0 .. 5 { c[] = exp(p[k] + float64(j)) t[] = t[] + c[] }",
        "local u: float64[] { u[] = u[] + exp(p[j]) c[] = c[] + u[] }",
    ]
)


@settings(max_examples=examples(80), deadline=None)
@given(
    rows=st.sampled_from(["0 .. 12", "5 .. 5", "2 .. 9"]),
    value=VALUES,
    between=BETWEEN,
    window=st.sampled_from(
        ["-2 .. 2", "0 .. 0", "0 .. (j % 3)", "j .. (j + 2)", "int32(p[j]) .. (int32(p[j]) + 2)"]
    ),
    after=BETWEEN,
    use=st.sampled_from(["c[]", "exp(c[])", "exp(c[] - t[])", "w[]", "t[]", "(sum[] + cos(p[0]))"]),
    seed=st.integers(0, 9),
)
@example(
    rows="0 .. 12",
    value="cos(p[(j * 3) % 23])",
    between="sum[] = sum[] + c[]",
    window="0 .. 0",
    after="c[] = c[] + sum[]",
    use="exp(c[])",
    seed=0,
)
@example(
    rows="0 .. 12",
    value="cos(p[(j * 3) % 23])",
    between="sum[] = sum[] + c[]",
    window="0 .. 0",
    after="if (sum[] > 0.0:float64) { c[] = exp(p[j]) }",
    use="exp(c[])",
    seed=0,
)
@example(
    rows="0 .. 12",
    value="cos(float64(j) * 0.1:float64)",
    between="",
    window="0 .. 0",
    after="w[] = p[2] if (p[j] > 0.0:float64) { c[] = exp(p[j]) w[] = p[j] }",
    use="w[]",
    seed=0,
)
@example(
    rows="0 .. 12", value="cos(float64(j) * 0.1:float64)", between="", window="-2 .. 2",
    after="serial k in 0 .. 5 { c[] = exp(p[k] + float64(j)) t[] = t[] + c[] }", use="c[]", seed=0,
)  # fmt: skip
def test_tables_mean_the_same(seed: int, **parts: str) -> None:
    kernel = nest(**parts)
    after = arranged_apart(tabulate_values, kernel)
    rng = np.random.default_rng(seed)
    inputs = [rng.integers(-2, 3, b.shape).astype(b.dtype) for b in kernel.parameters]
    expected = interpret(kernel, inputs, check_bounds=True)
    shuffled = interpret(after, inputs, check_bounds=True, shuffle=Random(seed))
    for got, want in zip(shuffled, expected, strict=True):
        np.testing.assert_array_equal(got, want)
