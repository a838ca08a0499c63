"""Variables that a loop does not change get their values before it."""

from __future__ import annotations

import textwrap

import pytest
from loop_ir import Kernel, hoist_variables, parse_kernel
from test_c_arrangement import arranged, body_of

ROWS = """kernel rows(x: float32[8, 90], at: float32[8], n: int32[8]) -> (out) {{
  buffer out: float32[8, 90]
  {outer} {{
    {kind} j in {span} {{
      local y: int32[] {{
        local z: int32[] {{
          {before}
          y[] = {value}
          z[] = y[] + 1
          {store}
        }}
      }}
    }}
  }}
}}"""
PARTS = {
    "outer": "parallel i in 0 .. 8", "kind": "parallel", "span": "0 .. 90", "before": "",
    "value": "int32(at[i])", "store": "out[i, j] = x[z[], j]",
}  # fmt: skip


def rows(**parts: str) -> Kernel:
    return parse_kernel(ROWS.format(**{**PARTS, **parts}))


def test_values_are_computed_before_the_loop() -> None:
    assert body_of(arranged(hoist_variables, rows())) == textwrap.dedent("""\
        buffer out: float32[8, 90]
        parallel i in 0 .. 8 {
          local y: int32[] {
            local z: int32[] {
              y[] = int32(at[i])
              z[] = y[] + 1
              parallel j in 0 .. 90 {
                out[i, j] = x[z[], j]
              }
            }
          }
        }""")


def test_what_changes_stays_in_the_loop() -> None:
    text = body_of(arranged(hoist_variables, rows(store="z[] = z[] + j out[i, j] = x[z[] % 8, j]")))
    assert text.index("y[] = int32") < text.index("parallel j") < text.index("z[] = y[] + 1")


def test_variables_that_stay_keep_their_scopes() -> None:
    """All in one scope are nested: Python's stack limits how many a compiler can walk."""
    text = body_of(
        arranged(
            hoist_variables,
            parse_kernel("""kernel two(x: float32[8, 90]) -> (out) {
      buffer out: float32[8, 90]
      parallel i in 0 .. 8 {
        parallel j in 0 .. 90 {
          local a: float32[] {
            local b: float32[] {
              b[] = x[i, 0] * x[i, 1]
              a[] = x[i, j] * b[]
              out[i, j] = a[]
            }
          }
          local c: float32[] {
            c[] = x[i, j] * x[i, j]
            out[i, j] = out[i, j] * c[]
          }
        }
      }
    }"""),
        )
    )
    assert text == textwrap.dedent("""\
        buffer out: float32[8, 90]
        parallel i in 0 .. 8 {
          local b: float32[] {
            b[] = x[i, 0] * x[i, 1]
            parallel j in 0 .. 90 {
              local a: float32[] {
                a[] = x[i, j] * b[]
                out[i, j] = a[]
              }
              local c: float32[] {
                c[] = x[i, j] * x[i, j]
                out[i, j] = out[i, j] * c[]
              }
            }
          }
        }""")


@pytest.mark.parametrize(
    "parts",
    [
        {"span": "0 .. n[i]"},
        {"span": "i .. i"},
        {"outer": "if (n[0] > 0)", "value": "int32(at[3])", "store": "out[0, j] = x[z[], j]"},
        {"value": "int32(at[j % 8])"},
        {"value": "int32(out[i, 0])", "kind": "serial"},
        {"before": "out[i, j] = float32(y[])", "value": "n[i]", "store": "z[] = j"},
        {"before": "if (n[j % 8] > 0) { y[] = 3 }", "store": "y[] = y[] + j z[] = j"},
    ],
    ids=[
        "may not run", "does not run", "outermost", "of the loop's variable", "of what is stored",
        "loaded before", "stored again",
    ],
)  # fmt: skip
def test_other_variables_stay(parts: dict[str, str]) -> None:
    kernel = rows(**parts)
    assert hoist_variables(kernel).body == kernel.body
