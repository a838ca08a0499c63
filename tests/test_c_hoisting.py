"""Variables that a loop does not change get their values before it."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from loop_ir import Kernel, hoist_variables, interpret, kernel_text, parse_kernel
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


MASKED = """kernel masked(x: float32[8, 90], t: float32[8, 3], n: int32[8]) -> (out) {{
  buffer out: float32[8, 90]
  buffer kept: float32[8, 3]
  {outer} {{
    local own: float32[3] {{
      {kind} j in 0 .. 90 {{
        {before}
        if (x[i, j] > 0.0:float32) {{ out[i, j] = {value} }}
      }}
    }}
  }}
}}"""
MASKED_PARTS = {
    "outer": "parallel i in 0 .. 8", "kind": "parallel", "before": "",
    "value": "t[i, 2] * (x[i, j] + t[i, 2])",
}  # fmt: skip


def masked(**parts: str) -> Kernel:
    return parse_kernel(MASKED.format(**{**MASKED_PARTS, **parts}))


def test_elements_that_only_conditions_read_are_held() -> None:
    text = body_of(arranged(hoist_variables, masked()))
    assert text[text.index("local held") :] == textwrap.dedent("""\
        local held: float32[] {
              held[] = t[i, 2]
              parallel j in 0 .. 90 {
                if (x[i, j] > 0.0:float32) {
                  out[i, j] = held[] * (x[i, j] + held[])
                }
              }
            }
          }
        }""")


def test_short_loops_hold_nothing() -> None:
    text = MASKED.format(**MASKED_PARTS)
    short, long = (parse_kernel(text.replace("0 .. 90", f"0 .. {n}")) for n in (3, 4))
    assert hoist_variables(short).body == short.body
    assert hoist_variables(long).body != long.body


PATHS = """kernel paths(w: float32[90, 90], way: int32[90, 90]) -> (next) {{
  buffer next: int32[90, 90]
  serial k in 0 .. 90 {{
    serial i in 0 .. 90 {{
      parallel j in {bounds} {{
        if (w[i, j] > w[k, j]) {{ next[i, j] = next[i, k]{more} }}
      }}
    }}
  }}
}}"""


@pytest.mark.parametrize(
    ("bounds", "more", "is_held"),
    [
        ("0 .. k", "", True),
        ("(k + 1) .. 90", "", True),
        ("0 .. (k + 1)", "", False),
        ("0 .. 90", "", False),
        ("0 .. k", " next[i, k] = j", False),
        ("0 .. k", " next[i, way[i, j]] = j", False),
    ],
)
def test_elements_of_a_stored_array_are_held_if_others_are_stored(
    bounds: str, more: str, is_held: bool
) -> None:
    kernel = parse_kernel(PATHS.format(bounds=bounds, more=more))
    after = hoist_variables(kernel)
    assert ("held[] = next[i, k]" in kernel_text(after)) == is_held
    rng = np.random.default_rng(0)
    inputs = [rng.random((90, 90), "float32"), rng.integers(0, 90, (90, 90), dtype="int32")]
    np.testing.assert_array_equal(interpret(after, inputs), interpret(kernel, inputs))


@pytest.mark.parametrize(
    "parts",
    [
        {"value": "t[i + 3, 1]"},
        {"value": "t[min(max(n[i + 3], 0), 7), 1]"},
        {"value": "t[i, j % 3]"},
        {"value": "kept[i, 1]", "before": "kept[i, j % 3] = x[i, j]", "kind": "serial"},
        {"value": "t[i, 1]", "kind": "serial"},
        {"value": "t[int32(kept[i, 0]) % 3, 1]", "before": "kept[i, 0] = x[i, j]"},
        {"value": "own[1]"},
        {"before": "local z: float32[3] { if (x[i, j] < 0.0:float32) { out[i, j] = z[1] } }",
         "value": "1.0:float32"},
        {"value": "t[3, 1]", "outer": "if (n[3] > 0)"},
        {"value": "x[i, j]"},
    ],
    ids=["may not exist", "picked by what may not", "of the loop", "stored", "in an order",
         "picked by what is stored", "a local array", "an array of an iteration", "outermost",
         "of lanes"],
)  # fmt: skip
def test_other_elements_stay(parts: dict[str, str]) -> None:
    kernel = masked(**{"outer": "parallel i in 0 .. 8", **parts})
    if "outer" in parts:
        kernel = parse_kernel(MASKED.format(**{**MASKED_PARTS, **parts}).replace("i, j", "0, j"))
    assert hoist_variables(kernel).body == kernel.body
