"""Stores of two branches that become stores of chosen values: by text, and by what they mean."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, merge_branches, parse_kernel
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of

# A pixel in each iteration; an index may be data.
TEXT = """kernel k(x: float64[9, 12], n: int32[12]) -> (y) {{
  buffer y: float64[9, 12, 3]
  parallel i in 0 .. 9 {{
    serial j in 0 .. 12 {{
      if ({condition}) {{
        {then}
      }} else {{
        {otherwise}
      }}
    }}
  }}
}}"""
PARTS = {
    "condition": "(j % 2) == 0",
    "then": "y[i, j, 0] = x[i, j] y[i, j, 1] = 2.0:float64",
    "otherwise": "y[i, j, 0] = 3.0:float64 y[i, j, 1] = x[i, 0]",
}


def branches(**parts: str) -> Kernel:
    return parse_kernel(TEXT.format(**{**PARTS, **parts}))


def test_stores_to_the_same_elements_become_choices() -> None:
    body = body_of(arranged_apart(merge_branches, branches()))
    inside = body.split("serial j in 0 .. 12 {\n")[1].split("  }\n")[0]
    assert textwrap.dedent(inside) == textwrap.dedent("""\
        y[i, j, 0] = ((j % 2) == 0) ? x[i, j] : 3.0:float64
        y[i, j, 1] = ((j % 2) == 0) ? 2.0:float64 : x[i, 0]
        """)


def test_branches_of_branches_are_merged_first() -> None:
    inner = "y[i, j, 0] = 1.0:float64 y[i, j, 1] = 4.0:float64"
    kernel = branches(
        otherwise=f"if (x[i, j] < 0.0:float64) {{ {inner} }} else {{ {PARTS['otherwise']} }}"
    )
    assert "if (" not in body_of(arranged_apart(merge_branches, kernel))


@pytest.mark.parametrize(
    "parts",
    [
        {"then": "y[i, j, 0] = x[i, j]"},
        {"then": "y[i, j, 1] = x[i, j] y[i, j, 0] = 2.0:float64"},
        {"condition": "y[i, j, 0] < 1.0:float64"},
        {"then": "y[i, j, 0] = x[i, j] y[i, j, 1] = y[i, j, 0]"},
        {"then": "", "otherwise": ""},
    ],
    ids=["fewer stores", "another order", "a condition on them", "a value of them", "no stores"],
)
def test_branches_that_stay(parts: dict[str, str]) -> None:
    kernel = branches(**parts)
    assert body_of(merge_branches(kernel)) == body_of(kernel)


STORES = st.lists(
    st.sampled_from(
        [
            "y[i, j, 0] = x[i, j]",
            "y[i, j, 0] = y[i, j, 0] + 1.0:float64",
            "y[i, j, 1] = 2.0:float64",
            "y[i, j, 1] = y[i, j, 0] * x[i, 3]",
            "y[i, j, n[j] % 3] = x[i, j]",
        ]
    ),
    max_size=3,
).map(" ".join)


@settings(max_examples=examples(80), deadline=None)
@given(
    condition=st.sampled_from(
        ["(j % 2) == 0", "y[i, j, 0] < 1.0:float64", "x[i, j] < y[i, j, 1]", "n[j] < 2"]
    ),
    then=STORES,
    otherwise=STORES,
)
def test_merged_branches_mean_the_same(**parts: str) -> None:
    arranged_apart(merge_branches, branches(**parts))
