"""Sums of an innermost reduction beside other accesses of the same array."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    For,
    Kernel,
    Local,
    Stmt,
    Store,
    keep_in_variables,
    kernel_text,
    mark_vectors,
    parse_kernel,
    statements,
)
from random_examples import examples
from test_c_arrangement import arranged, exact_inputs, loops_that_meet, marked

# What a step of an elimination adds to the adjoints: the column of the pivot gets a sum.
PIVOT = """kernel pivot(a: float32[12, 40], d: float32[12, 40]) -> (d) {{
  serial k in 0 .. 12 {{
    serial i in {rows} {{
      serial j in {columns} {{
        {own}
        d[{at}] = d[{at}] + a[i, j]
        d[k, j] = d[k, j] + a[i, j]
      }}
    }}
  }}
}}"""
PARTS = {
    "rows": "(k + 1) .. 12",
    "columns": "(k + 1) .. 40",
    "own": "d[i, j] = a[i, j] * 2.0:float32",
    "at": "i, k",
}


def pivot(**parts: str) -> Kernel:
    return marked(PIVOT.format(**{**PARTS, **parts}))


def innermost(kernel: Kernel) -> list[For]:
    return [s for s in statements(kernel.body) if isinstance(s, For) and s.var == "j"]


def test_a_sum_is_kept_where_bounds_show_that_nothing_else_touches_it() -> None:
    after = mark_vectors(arranged(keep_in_variables, pivot()))
    text = kernel_text(after)
    assert "sum[] = sum[] + a[i, j]" in text
    assert "d[i, k] = sum[]" in text
    assert [loop.vector for loop in innermost(after)] == ["lanes"]


@pytest.mark.parametrize(
    ("term", "trips", "vector"),
    [
        ("a[3, k]", 9, "lanes"),
        ("a[3, 39 - k]", 9, "lanes"),
        ("a[k, 3]", 9, ""),
        ("a[k, 3]", 17, "lanes"),
        ("a[3, 2 * k]", 9, ""),
        ("a[3, (k * k) % 40]", 9, ""),
        ("a[3, p[k]]", 9, ""),
        ("a[3, p[k]]", 17, "lanes"),
    ],
)
def test_few_elements_that_are_no_neighbours_are_added_one_by_one(
    term: str, trips: int, vector: str
) -> None:
    kernel = parse_kernel(f"""kernel total(a: float32[40, 40], p: int32[40]) -> (y) {{
      buffer y: float32[]
      local sum: float32[] {{
        reduction k in 0 .. {trips} {{ sum[] = sum[] + {term} }}
        y[] = sum[]
      }}
    }}""")
    after = statements(mark_vectors(kernel).body)
    assert [loop.vector for loop in after if isinstance(loop, For)] == [vector]


@pytest.mark.parametrize(
    "parts",
    [{"columns": "0 .. k"}, {"rows": "0 .. k"}, {"rows": "0 .. k", "columns": "0 .. k"}],
    ids=["columns before", "rows before", "both"],
)
def test_the_end_of_a_loop_shows_it_too(parts: dict[str, str]) -> None:
    assert "d[i, k] = sum[]" in kernel_text(arranged(keep_in_variables, pivot(**parts)))


@pytest.mark.parametrize(
    "parts",
    [
        {"columns": "k .. 40"},
        {"columns": "0 .. (k + 1)"},
        {"own": "d[i, j - 1] = a[i, j] * 2.0:float32"},
        {"at": "k, k + 39", "own": ""},
    ],
    ids=["own element", "own element at the end", "element before", "in the first step alone"],
)
def test_a_sum_stays_where_something_else_touches_its_element(parts: dict[str, str]) -> None:
    kernel = pivot(**parts)
    assert keep_in_variables(kernel) is kernel


@pytest.mark.parametrize("own", ["d[k, j - 1] = d[k, j - 1] + a[k, j]", "d[k, j - 1] = a[k, j]"])
def test_iterations_that_touch_the_same_element_run_in_no_vector(own: str) -> None:
    after = mark_vectors(arranged(keep_in_variables, pivot(columns="(k + 2) .. 40", own=own)))
    assert "lanes" not in [loop.vector for loop in innermost(after)]


# A load of d[i, j + 1] reads d[i, 7], the sum, in the last iteration: its index is clamped.
CLAMPED = """kernel clamped(a: float32[6, 8], b: float32[6, 8], d: float32[6, 8]) -> (b, d) {{
  serial i in 0 .. 6 {{
    reduction j in {first} .. 8 {{
      b[i, j] = d[i, j + {away}]
      d[i, {at}] = d[i, {at}] + a[i, j]
    }}
  }}
}}"""


@pytest.mark.parametrize(
    ("first", "away", "at", "is_summed"),
    [(1, 0, 0, True), (1, 2, 1, False), (0, 1, 0, False), (3, 0, 2, True)],
)
def test_a_load_that_is_clamped_may_be_of_the_sum(
    first: int, away: int, at: int, is_summed: bool
) -> None:
    kernel = marked(CLAMPED.format(first=first, away=away, at=at))
    assert (keep_in_variables(kernel) is not kernel) is is_summed


ROWS = st.sampled_from(
    ["0 .. k", "(k + 1) .. 12", "k .. 12", "0 .. (k + 1)", "0 .. 12", "(k + 2) .. 12",
     "0 .. (k - 1)", "(11 - k) .. 12", "(12 - k) .. 12"]
)  # fmt: skip


@settings(max_examples=examples(80), deadline=None)
@given(
    ROWS,
    st.one_of(ROWS, st.sampled_from(["(k + 1) .. 40", "k .. 40", "12 .. 40", "0 .. 40"])),
    st.sampled_from(
        ["", PARTS["own"], "d[k, j - 1] = d[k, j - 1] + a[k, j]",
         "d[i, j] = d[i, j] + a[k, j]", "d[k, j] = d[i, j]",
         "if (a[i, j] < 2.0:float32) { d[i, j] = d[k, j] * 2.0:float32 }",
         "local t: float32[] { t[] = d[i, j] d[i, j] = t[] + a[i, k] }"]
    ),
    st.sampled_from(["i, k", "k, k", "i, 11 - k", "k, i", "11 - k, k"]),
)  # fmt: skip
def test_sums_and_vectors_of_eliminations_mean_the_same(
    rows: str, columns: str, own: str, at: str
) -> None:
    kernel = pivot(rows=rows, columns=columns, own=own, at=at)
    after = mark_vectors(arranged(keep_in_variables, kernel))
    # What runs in vectors may meet in the sums alone, which are variables.
    alone = _without_sums(after)
    assert loops_that_meet(alone, exact_inputs(kernel)) == set()


def _without_sums(kernel: Kernel) -> Kernel:
    """Returns a kernel with vector loops as parallel ones, and without their sums."""
    sums = {
        s.buffer.name
        for s in statements(kernel.body)
        if isinstance(s, Local) and s.buffer.name.startswith("sum")
    }

    def body(stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        kept = [s for s in stmts if not (isinstance(s, Store) and s.buffer in sums)]
        return tuple(map(changed, kept))

    def changed(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Store):
            return stmt
        parts = {name: body(getattr(stmt, name)) for name in ("body", "then", "otherwise")
                 if hasattr(stmt, name)}  # fmt: skip
        if isinstance(stmt, For):
            return dataclasses.replace(
                stmt, kind="parallel" if stmt.vector else "serial", vector="", **parts
            )
        return dataclasses.replace(stmt, **parts)

    return dataclasses.replace(kernel, body=body(kernel.body))
