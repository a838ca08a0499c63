"""Values that a loop does not change, computed once: by text, and by what they mean."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import compute_invariants_once, parse_kernel
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of

# The weight y costs eight operations, and is that of all channels.
TEXT = """kernel k(a: float64[6], f: float64[6, {channels}, 3]) -> (out) {{
  buffer out: float64[6, {channels}, 3]
  parallel i in 0 .. 6 {{
    parallel c in {c} {{
      local s: float64[] {{
        s[] = {start}
        reduction k in 0 .. {k} {{
          local y: float64[] {{
            y[] = {weight}
            {before}
            if ({condition}) {{ s[] = s[] + ({term}) }}
          }}
        }}
        out[i, c, 0] = s[]
      }}
    }}
  }}
}}"""
WEIGHT = "((a[i] * 2.0:float64) + (a[k] * 3.0:float64)) + ((a[5] * a[4]) + ((a[3] * a[2]) + a[1]))"
PARTS = {
    "channels": "9", "c": "0 .. 9", "start": "0.0:float64", "k": "3", "weight": WEIGHT,
    "before": "", "condition": "y[] > 0.0:float64", "term": "y[] * f[i, c, k % 3]",
}  # fmt: skip


def moved(**parts: str) -> str:
    """Returns the body of the kernel with its channels inside."""
    kernel = parse_kernel(TEXT.format(**{**PARTS, **parts}))
    return body_of(arranged_apart(compute_invariants_once, kernel))


def test_a_loop_goes_around_what_depends_on_it() -> None:
    assert moved() == textwrap.dedent(f"""\
        buffer out: float64[6, 9, 3]
        parallel i in 0 .. 6 {{
          local s: float64[9] {{
            parallel c_1 in 0 .. 9 {{
              s[c_1] = 0.0:float64
            }}
            reduction k in 0 .. 3 {{
              local y: float64[] {{
                y[] = {WEIGHT}
                if (y[] > 0.0:float64) {{
                  parallel c_2 in 0 .. 9 {{
                    s[c_2] = s[c_2] + (y[] * f[i, c_2, k])
                  }}
                }}
              }}
            }}
            parallel c_3 in 0 .. 9 {{
              out[i, c_3, 0] = s[c_3]
            }}
          }}
        }}""")


def test_a_condition_that_depends_on_the_loop_stays_inside_of_it() -> None:
    text = moved(condition="f[i, c, 0] > y[]")
    assert "if (f[i, c_2, 0] > y[]) {" in text
    assert text.count("y[] = ") == 1


@pytest.mark.parametrize(
    "parts",
    [
        {"channels": "7", "c": "0 .. 7"},
        {"c": "0 .. (i + 1)"},
        {"k": "9"},
        {"before": "parallel m in 0 .. 9 { parallel n in 0 .. 3 { y[] = y[] + a[k] } }"},
        {"weight": "a[i] * 2.0:float64"},
        {"weight": f"({WEIGHT}) * f[i, c, 0]"},
        {"before": "y[] = y[] + f[i, c, 1]"},
    ],
    ids=["few iterations", "a length that varies", "long loops inside", "loops around short ones",
         "few operations", "a weight of the loop", "a weight that changes"],
)  # fmt: skip
def test_loops_stay_that_gain_nothing(parts: dict[str, str]) -> None:
    assert "local s: float64[] {" in moved(**parts)


def test_a_loop_over_the_positions_of_windows_stays() -> None:
    text = TEXT.format(**{**PARTS, "channels": "40", "c": "0 .. 40"})
    assert compute_invariants_once(parse_kernel(text)).body != parse_kernel(text).body
    near = text.replace(", 3]", "]").replace(", 0]", "]").replace(", k % 3]", "]")
    assert compute_invariants_once(parse_kernel(near)).body == parse_kernel(near).body


@settings(max_examples=examples(60), deadline=None)
@given(
    c=st.sampled_from(["0 .. 9", "1 .. 9", "0 .. 8"]),
    start=st.sampled_from(["0.0:float64", "a[i]", "f[i, c, 1]", "out[i, c, 0]"]),
    before=st.sampled_from(
        [
            "",
            "y[] = y[] - a[k]",
            "y[] = y[] - f[i, c, 2]",
            "out[i, c, 1] = y[]",
            "if (a[k] > y[]) { y[] = s[] }",
            "local z: float64[] { z[] = z[] + s[] y[] = y[] + z[] }",
            "parallel m in 0 .. (c % 3) { out[i, c, m] = y[] }",
        ]
    ),
    condition=st.sampled_from(["y[] > 0.0:float64", "f[i, c, 0] > y[]", "s[] < a[k]", "k < c"]),
    term=st.sampled_from(["y[] * f[i, c, k % 3]", "a[k]", "y[] * s[]", "out[i, c, 1]"]),
)
def test_moved_loops_mean_the_same(**parts: str) -> None:
    moved(**parts)
