"""Networks of minima and maxima: where they look for NaN, and what they compute."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from hypothesis import strategies as st
from loop_ir import Kernel, interpret, kernel_text, parse_kernel, sort_integers, verify
from random_examples import on_random

VARIABLES = ("x", "y", "z")
ENTRIES = ("x[] = a[i, 0]", "y[] = a[i, 1]", "z[] = a[i, 2]")
# Sorts x and y, then y and z, then x and y.
SORT = tuple(
    line
    for low, high in (("x", "y"), ("y", "z"), ("x", "y"))
    for line in (
        f"t[] = min({low}[], {high}[])",
        f"{high}[] = max({low}[], {high}[])",
        f"{low}[] = t[]",
    )
)


def network(*lines: str) -> Kernel:
    body = "\n".join(lines)
    return parse_kernel(
        f"""kernel network(a: float32[64, 3]) -> (b) {{
  buffer b: float32[64, 4]
  serial i in 0 .. 64 {{
    local x: float32[] {{
      local y: float32[] {{
        local z: float32[] {{
          local t: float32[] {{
            {body}
          }}
        }}
      }}
    }}
  }}
}}"""
    )


def check(kernel: Kernel) -> Kernel:
    """Returns the kernel with tests deferred, which must leave it legal and meaning the same."""
    after = sort_integers(kernel)
    verify(after)
    numbers = [-np.inf, -1.0, -0.0, 0.0, 1.0, 2.0, 3.0, np.inf, np.nan]
    a = np.random.default_rng(0).choice(numbers, (64, 3)).astype(np.float32)
    # Infinities meet in sums.
    with np.errstate(invalid="ignore"):
        for got, want in zip(interpret(after, [a]), interpret(kernel, [a]), strict=True):
            same_nan = np.isnan(got) & np.isnan(want)
            np.testing.assert_array_equal(got.view("i4")[~same_nan], want.view("i4")[~same_nan])
    return after


def test_a_network_looks_for_nan_where_its_value_leaves() -> None:
    text = kernel_text(check(network(*ENTRIES, *SORT, "b[i, 0] = y[]")))
    lines = textwrap.dedent("\n".join(line for line in text.splitlines() if "[] =" in line))
    assert lines.startswith(
        textwrap.dedent("""\
            entry[] = a[i, 0]
            x[] = bits(entry[]) ^ ((bits(entry[]) >> 31) & 2147483647)
            entry_1[] = a[i, 1]
            y[] = bits(entry_1[]) ^ ((bits(entry_1[]) >> 31) & 2147483647)
            entry_2[] = a[i, 2]
            z[] = bits(entry_2[]) ^ ((bits(entry_2[]) >> 31) & 2147483647)
            t[] = min(x[], y[])
            y[] = max(x[], y[])
            x[] = t[]
            """)
    )
    assert (
        "b[i, 0] = (((entry[] != entry[]) || (entry_1[] != entry_1[])) || (entry_2[] != entry_2[]))"
        " ? nan:float32 : bits(y[] ^ ((y[] >> 31) & 2147483647))"
    ) in text


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param((*ENTRIES, *SORT, "b[i, 0] = x[]", "b[i, 1] = y[]"), id="few steps"),
        pytest.param(
            (*ENTRIES, *SORT[:3], "b[i, 1] = y[]", *SORT * 2, "b[i, 0] = y[]"),
            id="values of other numbers leave",
        ),
        pytest.param((*ENTRIES[:2], *SORT, "b[i, 0] = y[]"), id="a variable that is 0"),
        pytest.param((*ENTRIES, "if (i < 3) {", *SORT, "}", "b[i, 0] = y[]"), id="a condition"),
    ],
)
def test_others_stay(lines: tuple[str, ...]) -> None:
    kernel = network(*lines)
    assert sort_integers(kernel) is kernel


def test_a_number_that_goes_in_is_kept_before_it_is_replaced() -> None:
    after = check(network(*ENTRIES, *SORT, "b[i, 0] = x[] + 1.0:float32", "x[] = b[i, 0]"))
    assert "entry" in kernel_text(after)


def test_the_last_step_of_a_network_may_be_what_leaves() -> None:
    text = kernel_text(check(network(*ENTRIES, *SORT, "b[i, 0] = max(x[], y[])")))
    assert (
        "(entry_2[] != entry_2[])) ? nan:float32 "
        ": bits(max(x[], y[]) ^ ((max(x[], y[]) >> 31) & 2147483647))"
    ) in text
    part = network(*ENTRIES, *SORT * 2, "b[i, 0] = max(x[], y[])", "x[] = 1.0:float32")
    assert "entry" in kernel_text(check(part))
    few = network(*ENTRIES, *SORT[:3], *SORT[:3], "b[i, 0] = max(x[], y[])", "b[i, 1] = z[]")
    assert "entry_1" in kernel_text(check(few))
    assert "entry_2" not in kernel_text(check(few))


_names = st.sampled_from((*VARIABLES, "t"))
_steps = st.builds("{}[] = {}({}[], {}[])".format, _names, st.sampled_from(["min", "max"]), _names,
                   _names)  # fmt: skip
_lines = st.one_of(
    _steps,
    _steps,
    _steps,
    _steps,
    st.builds("{}[] = {}[]".format, _names, _names),
    st.builds("{}[] = a[i, {}]".format, _names, st.integers(0, 2)),
    st.builds("{}[] = {}[] + {}[]".format, _names, _names, _names),
    st.builds("b[i, {}] = {}[]".format, st.integers(0, 3), _names),
    st.builds("b[i, {}] = min({}[], 1.0:float32)".format, st.integers(0, 3), _names),
    st.builds("b[i, {}] = max({}[], {}[])".format, st.integers(0, 3), _names, _names),
)


@on_random(st.lists(_lines, max_size=8), _names, _names, quick=60, thorough=2000)
def test_what_a_network_computes_stays(lines: list[str], left: str, right: str) -> None:
    tail = (*SORT, f"b[i, 3] = {left}[] - {right}[]")
    check(network(*ENTRIES, "t[] = x[]", *SORT, *lines, *tail))


# The greatest of a number and of its neighbours, some of them under a condition.
