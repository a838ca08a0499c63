"""Parameters that are read as given while a result is written: by text, and by what they mean."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Stages, kernel_text, parse_kernel, write_fresh_results
from random_examples import examples
from test_c_arrangement import arranged

# What comes before the loops that write all of a, in them, and after them.
TEXT = """kernel k(a: float64[4, 5], b: float64[4, 5]) -> (a, b) {{
  {before}
  parallel i in {rows} {{
    {row}
    parallel j in {columns} {{
      {first}
      a[{at}] = {value}
      {then}
    }}
    {end}
  }}
  {after}
}}"""
PARTS = {
    "before": "", "rows": "0 .. 4", "row": "", "columns": "0 .. 5", "first": "", "at": "i, j",
    "value": "(a[i, j] * 2.0:float64)", "then": "", "end": "", "after": "",
}  # fmt: skip


def fresh(**parts: str) -> str:
    """Returns the text of the kernel with fresh results."""
    kernel = parse_kernel(TEXT.format(**{**PARTS, **parts}))
    return kernel_text(arranged(write_fresh_results, kernel))


def test_a_parameter_is_read_as_given_until_it_is_written() -> None:
    text = fresh(
        before="b[0, 0] = a[3, 4]",
        row="parallel m in 0 .. 5 { b[i, m] = b[i, m] + a[i, m] }",
        first="b[i, j] = a[i, j]",
        then="b[i, j] = b[i, j] + a[i, j]",
        end="b[i, 0] = a[i, 4]",
        after="b[1, 1] = a[2, 2]",
    )
    assert "-> (a_1, b)" in text
    lines = [line.strip() for line in text.splitlines() if " = " in line]
    assert [line.partition(" = ")[2] for line in lines] == [
        "a[3, 4]",
        "b[i, m] + a[i, m]",
        "a[i, j]",
        "a[i, j] * 2.0:float64",
        "b[i, j] + a_1[i, j]",
        "a_1[i, 4]",
        "a_1[2, 2]",
    ]
    assert "a_1[i, j] = a[i, j]" in text


@pytest.mark.parametrize(
    "parts",
    [
        {"rows": "1 .. 4"},
        {"columns": "0 .. 4"},
        {"columns": "0 .. (i + 1)"},
        {"at": "i, 4 - j"},
        {"at": "i, 0"},
        {"value": "(a[i, 4 - j] * 2.0:float64)"},
        {"value": "(a[3 - i, j] * 2.0:float64)"},
        {"row": "parallel m in 0 .. 5 { b[i, m] = a[3, m] }"},
        {"before": "a[0, 0] = b[1, 1]"},
        {"then": "b[i, j] = a[i, 0]"},
        {"end": "b[i, 0] = a[0, 4]"},
    ],
)
def test_elements_that_may_be_read_later_are_copied(parts: dict[str, str]) -> None:
    assert "a_1" not in fresh(**parts)


def test_a_store_under_a_condition_may_leave_elements() -> None:
    text = TEXT.format(**PARTS).replace(
        "a[i, j] = (a[i, j] * 2.0:float64)", "if (b[i, j] > 0.0:float64) { a[i, j] = b[i, j] }"
    )
    kernel = parse_kernel(text)
    assert write_fresh_results(kernel) is kernel


@settings(max_examples=examples(80), deadline=None)
@given(
    before=st.sampled_from(["", "b[0, 0] = a[3, 4]", "a[0, 0] = b[1, 1]"]),
    rows=st.sampled_from(["0 .. 4", "1 .. 4"]),
    row=st.sampled_from(["", "b[i, 0] = a[i, 4]", "parallel m in 0 .. 5 { b[i, m] = a[i, m] }"]),
    first=st.sampled_from(["", "b[i, j] = a[i, j]", "b[i, j] = a[i, 4 - j]"]),
    value=st.sampled_from(["a[i, j] + 1.0:float64", "b[j % 4, i]", "a[(i + 1) % 4, j]"]),
    then=st.sampled_from(["", "b[i, j] = a[i, j]", "a[i, j] = b[i, j] + a[i, j]"]),
    end=st.sampled_from(["", "a[i, 2] = a[i, 1]", "b[i, 0] = a[(i + 1) % 4, 0]"]),
    after=st.sampled_from(["", "b[1, 1] = a[2, 2]", "a[2, 2] = b[0, 0]"]),
)
def test_fresh_results_mean_the_same(**parts: str) -> None:
    fresh(**parts)


def test_results_in_the_memory_of_parameters_are_written_in_place() -> None:
    stages = Stages(parse_kernel(TEXT.format(**PARTS)), "k")
    assert "memcpy(params[2]" not in stages.c.text
    assert "if (params[2] != params[0]) memcpy(params[2]" in stages.in_place.c.text
