"""Sums of terms from neighbours: by text, and by what they compute."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    Kernel,
    fuse_rows,
    gather_from_neighbours,
    interpret,
    mark_loops,
    parse_kernel,
    partition_loops,
    verify,
)
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of

STENCIL = """kernel stencil(w: float32[40]) -> (d) {
  buffer d: float32[42]
  reduction i in 0 .. 40 {
    d[i] = d[i] + w[i]
    d[i + 2] = d[i + 2] - (w[i] * 3.0:float32)
  }
}"""
PLANE = """kernel plane(w: float32[30, 20], d: float32[31, 20], e: float32[30, 20]) -> (d, e) {{
  reduction i in 0 .. 30 {{
    reduction j in 0 .. 20 {{
      local t: float32[] {{
        t[] = {value}
        {between}
        d[i, j] = d[i, j] + t[]
        d[i + 1, j] = d[i + 1, j] - t[]
        {after}
      }}
    }}
  }}
}}"""


def plane(value: str = "w[i, j]", between: str = "", after: str = "") -> str:
    return PLANE.format(value=value, between=between, after=after)


def gather_and_split(kernel: Kernel) -> Kernel:
    return partition_loops(gather_from_neighbours(kernel))


def test_each_element_gathers_its_terms() -> None:
    got = body_of(arranged_apart(gather_from_neighbours, parse_kernel(STENCIL)))
    assert got == textwrap.dedent("""\
        buffer d: float32[42]
        parallel i_1 in 0 .. 42 {
          d[i_1] = ((i_1 < 40) ? w[i_1] : 0.0:float32) + ((i_1 >= 2) ? \
-(w[i_1 - 2] * 3.0:float32) : 0.0:float32)
        }""")


def test_edges_have_some_of_the_terms() -> None:
    got = body_of(arranged_apart(gather_and_split, parse_kernel(plane())))
    assert got == textwrap.dedent("""\
        parallel j_1 in 0 .. 20 {
          d[0, j_1] = d[0, j_1] + w[0, j_1]
        }
        parallel i_1_1 in 1 .. 30 {
          parallel j_1_1 in 0 .. 20 {
            d[i_1_1, j_1_1] = (d[i_1_1, j_1_1] + w[i_1_1, j_1_1]) + -(w[i_1_1 - 1, j_1_1])
          }
        }
        parallel j_1_2 in 0 .. 20 {
          d[30, j_1_2] = d[30, j_1_2] + -(w[29, j_1_2])
        }""")


def test_a_sum_that_is_minus_zero_stays_so_where_a_term_is_missing() -> None:
    kernel = parse_kernel(plane())
    inputs = [np.full((rows, 20), -0.0, np.float32) for rows in (30, 31, 30)]
    for change in (gather_from_neighbours, gather_and_split):
        after = change(mark_loops(kernel))
        assert after != kernel
        got, want = interpret(after, inputs), interpret(kernel, inputs)
        np.testing.assert_array_equal(np.signbit(got[0]), np.signbit(want[0]))
        assert np.signbit(want[0]).any()


@pytest.mark.parametrize(
    "value",
    ["exp(w[i, j] - w[i, j])", "(w[i, j] * w[0, j]) * (w[i, 0] + (w[0, 0] - w[1, 1]))"],
)
def test_what_takes_long_is_computed_once(value: str) -> None:
    got = body_of(arranged_apart(gather_from_neighbours, parse_kernel(plane(value))))
    assert got.count("kept[i, j] = t[]") == 1
    assert got.count("exp") <= 1
    assert "buffer kept: float32[30, 20]" in got


def terms(first: str, second: str) -> str:
    """Returns what becomes of a nest that adds two terms of a long value to neighbours."""
    text = plane("exp(w[i, j] - w[i, j])")
    text = text.replace("] + t[]", f"] + {first}").replace("] - t[]", f"] - {second}")
    return body_of(arranged_apart(gather_from_neighbours, parse_kernel(text)))


def test_a_term_of_several_elements_is_kept_itself() -> None:
    got = terms("(t[] * w[i, j])", "(t[] * w[i, j])")
    assert got.count("[i, j] = t[] * w[i, j]") == got.count("] * w[") == 1
    assert got.count("buffer") == 1


@pytest.mark.parametrize("second", ["(t[] * w[i, 0])", "t[]", "(t[] + w[i, j])"])
def test_a_value_of_different_terms_is_kept_itself(second: str) -> None:
    assert "kept[i, j] = t[]" in terms("(t[] * w[i, j])", second)


def test_a_term_that_reads_what_may_not_exist_is_not_kept() -> None:
    term = "(t[] * w[min(i + 1, 29), j])"
    assert "kept[i, j] = t[]" in terms(term, term)


def test_terms_of_several_nests_are_one_sum() -> None:
    second = STENCIL[STENCIL.index("  reduction") : -1].replace("i", "k").replace("knt", "int")
    text = STENCIL[:-1] + second.replace("reductkon k kn", "reduction k in") + "}"
    got = body_of(arranged_apart(gather_from_neighbours, parse_kernel(text)))
    assert got.count("parallel") == 1


# Windows are written out, so that a statement without `p` is there three times.
@pytest.mark.parametrize(
    "window",
    [
        "t[] = floor(t[] * 3.0:float32) d[i + p] = d[i + p] + t[]",
        "c[i] = c[i] * 2.0:float32 d[i + p] = d[i + p] + c[i]",
        "c[i] = c[i] * 2.0:float32 t[] = floor(c[i]) d[i + p] = d[i + p] + t[]",
    ],
)
def test_what_a_window_computes_again_is_kept_each_time(window: str) -> None:
    kernel = parse_kernel(f"""kernel windows(w: float32[64], c: float32[64]) -> (d, c) {{
  buffer d: float32[70]
  reduction i in 0 .. 64 {{
    local t: float32[] {{
      t[] = w[i]
      serial p in 0 .. 3 {{ {window} }}
    }}
  }}
}}""")
    got = body_of(arranged_apart(gather_from_neighbours, kernel))
    assert "buffer kept_1: float32[64]" in got


def test_long_edges_have_loops() -> None:
    kernel = parse_kernel("""kernel lag(w: float32[800]) -> (d) {
  buffer d: float32[1000]
  reduction i in 0 .. 800 {
    d[i] = d[i] + w[i]
    d[i + 200] = d[i + 200] - w[i]
  }
}""")
    got = body_of(arranged_apart(gather_and_split, kernel))
    assert got.count(" = ") == got.count("parallel") == 3


@pytest.mark.parametrize(
    "text",
    [
        plane(after="e[i, j] = d[i, j]"),
        plane(between="if (d[i, j] > 0.0:float32) {\nd[i, j] = d[i, j] + t[]\n}"),
        plane(after="d[i, j] = 0.0:float32"),
        plane().replace("d[i + 1, j] = d[i + 1, j] - t[]", ""),
        plane().replace("i + 1, j]", "30 - i, j]"),
        plane().replace("d[i + 1, j] = d[i + 1, j]", "d[j, i] = d[j, i]").replace("30", "20"),
        plane().replace("float32", "int32"),
        plane().replace("float32", "float16"),
        plane().replace("0 .. 20", "0 .. i"),
        plane().replace("reduction", "serial"),
        plane().replace("20", "8"),
    ],
    ids=["read", "conditional", "written", "own", "turned", "crossing", "integers", "narrow",
         "triangle", "in order", "short"],
)  # fmt: skip
def test_other_nests_stay(text: str) -> None:
    kernel = parse_kernel(text)
    assert gather_from_neighbours(kernel) is kernel


def test_a_nest_that_would_be_too_long_is_not_written_out_first() -> None:
    loop = "d[i + 1, j] = d[i + 1, j] - t[]"
    kernel = parse_kernel(plane().replace(loop, f"serial k in 0 .. 2000000000 {{\n{loop}\n}}"))
    # As a list of statements it would fill all memory.
    assert gather_from_neighbours(kernel) is kernel


def test_terms_under_conditions_keep_these() -> None:
    kernel = parse_kernel("""kernel chosen(w: float32[40]) -> (d) {
  buffer d: float32[42]
  reduction i in 0 .. 40 {
    if ((i >= 3) && (w[i] > 0.0:float32)) {
      d[i] = d[i] + w[i]
    }
    d[i + 2] = d[i + 2] - w[i]
  }
}""")
    got = body_of(arranged_apart(gather_and_split, kernel))
    assert got == textwrap.dedent("""\
        buffer d: float32[42]
        parallel i_1 in 0 .. 3 {
          d[i_1] = 0.0:float32 + ((i_1 >= 2) ? -(w[0]) : 0.0:float32)
        }
        parallel i_1_1 in 3 .. 40 {
          d[i_1_1] = ((w[i_1_1] > 0.0:float32) ? w[i_1_1] : 0.0:float32) + -(w[i_1_1 - 2])
        }
        parallel i_1_2 in 40 .. 42 {
          d[i_1_2] = 0.0:float32 + -(w[i_1_2 - 2])
        }""")


def test_what_is_beyond_an_edge_is_never_a_term() -> None:
    text = """kernel inner(w: float32[40, 40], g: float32[40, 40]) -> (d) {
  buffer d: float32[40, 40]
  reduction i in 1 .. 39 {
    reduction j in 1 .. 39 {
      d[i, j] = d[i, j] - (w[i, j] * g[i, j])
      d[i - 1, j] = d[i - 1, j] + (w[i, j] * g[i, j])
      d[i, j + 1] = d[i, j + 1] + (w[i, j] * g[i, j])
    }
  }
}"""
    kernel = parse_kernel(text)
    values = np.full((2, 40, 40), np.nan, np.float32)
    values[:, 1:39, 1:39] = 2.0
    after = gather_from_neighbours(kernel)
    assert "reduction" not in body_of(after)
    (got,) = interpret(after, [*values])
    assert np.isfinite(got).all()
    np.testing.assert_array_equal(got, *interpret(kernel, [*values]))


MIXED = """kernel mixed({parameters}, c: float64[9, 9]) -> (d, e, c) {{
  {buffer}
  buffer e: float64[9, 9]
  {before}
  {loop}
    serial i in {rows} {{
      serial j in {columns} {{
        local t: float64[] {{
          t[] = {value}
          local u: float64[] {{
            u[] = t[] * w[i, j]
            {between}
            d[i{0}, j{1}] = d[i{0}, j{1}] + {left}
            {beside}
            d[i{2}, j{3}] = d[i{2}, j{3}] - {right}
            e[{4}] = e[{4}] + u[]
            e[i, j] = e[i, j] - t[]
          }}
        }}
      }}
    }}
    {after}
    serial k in 1 .. 8 {{
      serial l in {columns} {{
        d[k, l] = d[k, l] + {last}
        d[k{5}, l] = d[k{5}, l] - g[k, l]
      }}
    }}
  }}
}}"""
PLACES = st.sampled_from(["", " - 1", " + 1"])
VALUES = ["w[i, j]", "g[i, j] * w[j, i]", "c[i, j]", "w[i, j - 1] + (g[i, j] * w[j, i])"]
ELEMENTS = st.sampled_from(["i, j + 1", "i - 1, j", "j, i"])


CHANGED = """if (t[] > 0.0:float64) {
  t[] = t[] - w[i, j]
  d[i - 1, j] = d[i - 1, j] + t[]
}"""
OTHERWISE = """if (w[i, j] > 0.0:float64) {
  d[i - 1, j] = d[i - 1, j] + u[]
} else {
  t[] = t[] + 1.0:float64
  d[i, j + 1] = d[i, j + 1] - t[]
}"""
WINDOW = """serial p in -1 .. 2 {
  if ((((i + p) >= 2) && ((i + p) < 7)) && (w[i, j] > 0.0:float64)) {
    d[i + p, j] = d[i + p, j] + (w[i + p, j] * t[])
  }
}"""

Choices = dict[str, Any]


def mixed(choices: Choices) -> Kernel:
    names = "wg" if choices["is_zero"] else "wgd"
    text = MIXED.replace("serial l in {columns}", "serial l in {last_columns}").format(
        *choices["places"],
        parameters=", ".join(f"{name}: float64[9, 9]" for name in names),
        buffer="buffer d: float64[9, 9]" if choices["is_zero"] else "",
        last_columns=choices["columns"].replace("i", "7"),
        **choices,
    )
    return mark_loops(parse_kernel(text))


PLAIN: Choices = {
    "is_zero": True,
    "before": "",
    "loop": "if (w[0, 0] > -9.0:float64) {",
    "rows": "1 .. 8",
    "columns": "1 .. 8",
    "value": "w[i, j]",
    "between": "",
    "places": ("", "", " - 1", "", "i, j + 1", " + 1"),
    "left": "t[]",
    "beside": "",
    "right": "u[]",
    "after": "",
    "last": "w[k, l]",
}


@pytest.fixture
def _any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msops._loops.to_c.reduce.neighbours._FEWEST_TRIPS", 1)


@pytest.mark.usefixtures("_any_length")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"loop": "serial step in 0 .. 2 @serial {"},
        {"left": "c[i, j]", "after": "c[3, 3] = 2.0:float64"},
        {"left": "c[i, j]", "between": "c[i, j] = t[]"},
        {"value": "c[i, j]", "between": "c[i, j] = w[i, j]"},
        {"between": "if (w[i, j] > 0.0:float64) { t[] = 5.0:float64 }"},
        {"between": "serial q in 0 .. 3 { u[] = u[] + w[i, q] }"},
        {"between": "if ((j > 2) && (u[] > 0.0:float64)) { d[i, j] = d[i, j] + u[] }"},
        {"between": "if (j > 20) { d[i, j] = d[i, j] + u[] }"},
        {"between": CHANGED},
        {"between": OTHERWISE},
        {"between": WINDOW},
        {"beside": "t[] = u[] + t[]", "right": "t[]"},
        {"before": "serial f in 0 .. 9 { d[f, f] = w[f, f] }"},
        {"after": "serial m in 0 .. 9 { c[m, m] = d[m, m] + e[m, m] }"},
        {"left": "(t[] + exp(t[] - t[]))", "places": (" + 1", " - 1", "", " + 1", "i - 1, j", "")},
    ],
    ids=lambda changes: ", ".join(changes) or "plain",
)
def test_sums_of_special_cases(changes: Choices) -> None:
    kernel = mixed({**PLAIN, **changes})
    assert gather_from_neighbours(kernel) is not kernel
    check(kernel)


@settings(max_examples=examples(120), deadline=None)
@given(
    st.fixed_dictionaries(
        {
            "is_zero": st.booleans(),
            "before": st.sampled_from(["", "serial f in 0 .. 9 { d[f, f] = w[f, f] }"]),
            "loop": st.sampled_from(["serial step in 0 .. 2 @serial {", PLAIN["loop"]]),
            "rows": st.sampled_from(["1 .. 8", "1 .. 3", "2 .. 7"]),
            "columns": st.sampled_from(["1 .. 8", "1 .. 7", "1 .. i"]),
            "value": st.sampled_from(VALUES),
            "between": st.sampled_from(
                ["", "if (u[] > 0.0:float64) { t[] = g[i, j] }", "t[] = t[] - u[]", "c[i, j] = t[]",
                 "serial q in 0 .. 3 { u[] = u[] + w[i, q] }", "u[] = 2.0:float64", "c[j, i] = u[]",
                 CHANGED, OTHERWISE, WINDOW]
            ),
            "places": st.tuples(PLACES, PLACES, PLACES, PLACES, ELEMENTS, PLACES),
            "left": st.sampled_from(
                ["t[]", "u[]", "c[i, j]", "g[i, j]", "(t[] * g[i + 1, j])", "(t[] * g[i, j])",
                 "e[i, j]"]
            ),
            "beside": st.sampled_from(
                ["t[] = u[] + t[]", "", "c[i, j] = c[i, j] + u[]", "d[0, 0] = t[]"]
            ),
            "right": st.just("u[]"),
            "after": st.sampled_from(
                ["", "c[0, 0] = d[1, 1]", "c[3, 3] = 2.0:float64", "d[4, 4] = 0.0:float64",
                 "serial m in 0 .. 9 { c[m, m] = d[m, m] + e[m, m] }"]
            ),
            "last": st.sampled_from(["w[k, l]", "c[k, l]", "e[k, l]"]),
        }
    )
)  # fmt: skip
def test_gathered_sums_are_those_of_the_loops(choices: Choices) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("msops._loops.to_c.reduce.neighbours._FEWEST_TRIPS", 1)
        check(mixed(choices))


def check(kernel: Kernel) -> None:
    """Compares what a kernel computes of small integers, whose sums are exact in any order."""
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-2, 3, b.shape).astype(b.dtype) for b in kernel.parameters]
    after = gather_from_neighbours(kernel)
    verify(after)
    for got, want in zip(interpret(after, inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want)


def test_rows_of_gathered_sums_are_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msops._loops.to_c.materialise.fusing.LEAST_BYTES", 0)
    monkeypatch.setattr("msops._loops.to_c.materialise.fusing.LEAST_ROW_SECONDS", 0)
    monkeypatch.setattr("msops._loops.to_c.materialise.fusing.LEAST_GAIN", 0)
    text = """kernel twice(w: float32[40, 36]) -> (e) {
  buffer d: float32[42, 38]
  buffer e: float32[44, 40]
  reduction i in 0 .. 40 {
    reduction j in 0 .. 36 {
      d[i, j] = d[i, j] + w[i, j]
      d[i + 2, j + 2] = d[i + 2, j + 2] - w[i, j]
    }
  }
  reduction k in 0 .. 42 {
    reduction l in 0 .. 38 {
      e[k, l] = e[k, l] + d[k, l]
      e[k + 2, l + 1] = e[k + 2, l + 1] - d[k, l]
      e[k + 1, l + 2] = e[k + 1, l + 2] - d[k, l]
    }
  }
}"""
    kernel = parse_kernel(text)
    after = fuse_rows(gather_from_neighbours(kernel))
    assert "local d: float32[3, 38]" in body_of(after)
    w = np.random.default_rng(0).integers(-4, 5, (40, 36)).astype(np.float32)
    np.testing.assert_array_equal(*interpret(after, [w]), *interpret(kernel, [w]))
