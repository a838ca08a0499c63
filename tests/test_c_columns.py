"""Sums over windows by their columns: by text, and by what they compute."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, adjoint, interpret, parse_kernel, sum_columns
from loop_ir import c_columns as columns
from loop_native import build_together, call, shipped
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of

WINDOWS = """kernel windows(a: {dtype}[9, {columns}], t: {dtype}[400]) -> (out) {{
  buffer out: {dtype}[9, {columns}]
  parallel i in {i} {{
    {kind} j in {j} {{
      {before} local s: {dtype}[] {{
        s[] = {start}
        {loop} p in {p} {{
          reduction q in {q} {{
            {body}
          }}
        }}
        out[i, j] = s[]
      }} {after}
    }}
  }}
}}"""
PARTS = {
    "kind": "parallel", "before": "", "after": "",
    "dtype": "float64", "columns": "100", "i": "2 .. 7", "j": "2 .. 98", "start": "t[j]",
    "loop": "reduction", "p": "-2 .. 3", "q": "-2 .. 3",
    "body": "s[] = s[] + (a[i + p, j + q] * a[i + p, j + q])",
}  # fmt: skip
CLAMPED = {
    "i": "0 .. 9", "j": "0 .. 100", "p": "max(i - 2, 0) .. min(i + 3, 9)",
    "q": "max(j - 3, 0) .. min(j + 2, 100)", "body": "s[] = s[] + (a[p, q] * a[p, q])",
}  # fmt: skip
GREATEST = {
    "i": "0 .. 9", "j": "0 .. 100", "p": "-3 .. 4", "q": "-4 .. 5",
    "body": "if ((((i + p) >= 0) && ((i + p) < 9)) && (((j + q) >= 0) && ((j + q) < 100))) "
            "{ s[] = max(s[], a[i + p, j + q]) }",
}  # fmt: skip


def windows(**parts: Any) -> Kernel:
    return parse_kernel(WINDOWS.format(**{**PARTS, **parts}))


def summed(**parts: Any) -> str:
    """Returns the body of windows whose columns are summed, as far as that pays."""
    return body_of(arranged_apart(sum_columns, windows(**parts)))


def is_summed(**parts: Any) -> bool:
    return "column" in summed(**parts)


def test_columns_are_summed_first() -> None:
    assert summed() == textwrap.dedent("""\
        buffer out: float64[9, 100]
        parallel i in 2 .. 7 {
          local column: float64[100] {
            parallel x in 0 .. 100 {
              local sum: float64[] {
                sum[] = -0.0:float64
                reduction p in -2 .. 3 {
                  sum[] = sum[] + (a[i + p, x] * a[i + p, x])
                }
                column[x] = sum[]
              }
            }
            parallel j in 2 .. 98 {
              local s: float64[] {
                s[] = t[j]
                reduction q in -2 .. 3 {
                  s[] = s[] + column[j + q]
                }
                out[i, j] = s[]
              }
            }
          }
        }""")


def test_windows_that_are_cut_have_columns_without_terms() -> None:
    text = summed(**CLAMPED)
    assert text == textwrap.dedent("""\
        buffer out: float64[9, 100]
        parallel i in 0 .. 9 {
          local column: float64[104] {
            parallel x in -3 .. 101 {
              local sum: float64[] {
                sum[] = -0.0:float64
                reduction p in max(i - 2, 0) .. min(i + 3, 9) {
                  if ((x >= 0) && (x < 100)) {
                    sum[] = sum[] + (a[p, x] * a[p, x])
                  }
                }
                column[x + 3] = sum[]
              }
            }
            parallel j in 0 .. 100 {
              local s: float64[] {
                s[] = t[j]
                reduction q in -3 .. 2 {
                  s[] = s[] + column[(j + q) + 3]
                }
                out[i, j] = s[]
              }
            }
          }
        }""")


def test_conditions_are_those_of_columns() -> None:
    assert (
        "if ((((i + p) >= 0) && ((i + p) < 9)) && ((x >= 0) && (x < 100))) {\n"
        "            sum[] = max(sum[], a[i + p, x])" in summed(**GREATEST)
    )


def test_sums_share_the_loops_of_their_columns() -> None:
    kernel = windows(
        start="0.0:float64 u[] = 1.0:float64",
        body="local d: float64[] { d[] = a[i + p, j + q] - a[i + p, (j + q) + 2] "
        "s[] = s[] + (d[] * d[]) u[] = u[] - d[] s[] = s[] + a[i, j + q] }",
        j="2 .. 96",
        before="local u: float64[] {",
        after="out[i, j] = out[i, j] + u[] }",
    )
    text = body_of(arranged_apart(sum_columns, kernel))
    assert text.count("parallel x ") == 1
    assert "sum_1[] = sum_1[] - d[]" in text
    assert "u[] = u[] + column_1[j + q]" in text


def test_positions_may_skip_columns() -> None:
    strided = summed(j="0 .. 48", body="s[] = s[] + a[i + p, (2 * j) + (q + 2)]")
    assert "s[] = s[] + column[((j * 2) + q) + 2]" in strided


@pytest.mark.parametrize(
    "parts",
    [
        {"body": "s[] = s[] + (a[i + p, j + q] * t[j])"},
        {"body": "s[] = s[] + (a[i + p, j + q] * t[q + 2])"},
        {"body": "s[] = s[] + (a[i + p, j + q] * a[i + p, j - q])"},
        {"body": "s[] = s[] + (a[i + p, j + (2 * q)] * a[i, j + (2 * q)])", "j": "4 .. 96"},
        {"body": "s[] = s[] + (a[i + p, (99 - j) + q] * a[i + p, j - q])"},
        {"body": "s[] = s[] + (a[i + p, j + q] * s[])"},
        {"dtype": "int32", "body": "s[] = s[] * (a[i + p, j + q] * a[i + p, j + q])"},
        {"body": "s[] = max(s[] + a[i + p, j + q], t[0])"},
        {"body": "s[] = s[] + (a[i + p, j + q] * a[i + p, j + q]) s[] = max(s[], t[0])"},
        {"body": "if (a[i, j] > t[0]) { s[] = s[] + (a[i + p, j + q] * a[i + p, j + q]) }"},
        {"body": "if (s[] > t[0]) { s[] = s[] + (a[i + p, j + q] * a[i + p, j + q]) }"},
        {"body": "s[] = s[] + (a[i + p, j + q] * a[i + p, j + q]) out[i, (j + q) - 2] = t[0]"},
        {"body": "s[] = s[] + (a[i + p, j + q] * out[i, j + q])"},
        {"body": "s[] = s[] + (a[i + p, j + q] * a[i + p, j + q])", "loop": "serial"},
        {"p": "0 .. 1"},
        {"p": "-2 .. (j % 3)"},
        {"p": "q .. 3", "q": "-2 .. 3"},
        {"q": "-2 .. (j % 3)"},
        {"q": "0 .. j", "body": "s[] = s[] + (a[i + p, q] * a[i + p, q])"},
        {"q": "max(j - 2, n[]) .. (j + 3)", "before": "local n: int32[] {", "after": "}",
         "start": "t[j] n[] = int32(t[j])", "body": "s[] = s[] + (a[i + p, q] * a[i + p, q])"},
        {"q": "((j + i) - 4) .. (j + 3)", "body": "s[] = s[] + (a[i + p, q] * a[i + p, q])"},
        {"q": "max(j - 2, (2 * j) - 90) .. (j + 3)",
         "body": "s[] = s[] + (a[i + p, q] * a[i + p, q])"},
        {"q": "(j - 2) .. ((2 * j) + 3)", "body": "s[] = s[] + (a[i + p, q] * a[i + p, q])"},
        {"j": "2 .. 30"},
        {"j": "i .. 98"},
        {"j": "0 .. 40", "body": "s[] = s[] + (t[(9 * (j + q)) + 20] * t[p + 2])"},
        {"before": "local w: float64[5] {", "after": "}",
         "body": "w[p + 2] = w[p + 2] + (a[i + p, j + q] * a[i + p, j + q])"},
        {"before": "local w: float64[5] {", "after": "}",
         "body": "local k: int32[] { k[] = p + 2 "
                 "w[k[]] = w[k[]] + (a[i + p, j + q] * a[i + p, j + q]) }"},
        {"before": "local u: float64[] {", "after": "}",
         "body": "s[] = s[] + (a[i + p, j + q] * (a[i + p, j + q] + u[]))"},
        {"dtype": "float16", "body": "s[] = s[] + (a[i + p, j + q] * a[i + p, j + q])"},
    ],
    ids=["a weight of the position", "a weight of the offset", "two columns", "offsets apart",
         "mirrored offsets", "a term of the sum", "a product", "no update", "two operations",
         "a condition on the position",
         "a condition on the sum", "another store", "a term that the row stores", "an order",
         "one row", "rows by position", "rows by offset", "offsets by position", "sums of a start",
         "limits by position", "bounds by two variables", "two bounds by position",
         "windows that grow", "few positions", "positions by row",
         "columns far apart", "sums by row", "sums at a local", "a term of a local",
         "sums that are rounded once"],
)  # fmt: skip
def test_other_windows_stay(parts: dict[str, str]) -> None:
    assert not is_summed(**parts)


@pytest.mark.parametrize(("q", "touch"), [("0 .. 2", False), ("0 .. 3", True)])
def test_columns_are_summed_that_are_all_in_windows(
    q: str, touch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_LEAST_GAIN", 0.0)
    assert is_summed(j="0 .. 32", q=q, body="s[] = s[] + a[i + p, (3 * j) + q]") == touch


@pytest.mark.parametrize(
    ("parts", "pays"),
    [
        ({}, True),
        ({"dtype": "float32"}, True),
        ({"j": "2 .. 36", "q": "0 .. 3", "body": "s[] = s[] + a[i + p, j + q]"}, False),
        ({"p": "0 .. 2", "q": "0 .. 2", "body": "s[] = s[] + a[i + p, j + q]"}, False),
        ({"p": "0 .. 2", "q": "0 .. 2", "body": "s[] = s[] + exp(a[i + p, j + q])"}, True),
        ({"q": "0 .. 2", "body": "s[] = max(s[], a[i + p, j + q])"}, True),
        ({"dtype": "int32", "body": "s[] = max(s[], a[i + p, j + q])"}, True),
        (GREATEST, True),
        ({"j": "0 .. 49", "q": "0 .. 3", "body": "s[] = max(s[], a[i + p, (2 * j) + q])"}, True),
    ],
)  # fmt: skip
def test_columns_are_summed_where_that_pays(parts: dict[str, str], pays: bool) -> None:
    assert ("column" in body_of(sum_columns(windows(**parts)))) == pays


BODIES = [
    "s[] = {op}(s[], {A})", "s[] = s[] + {A}", "s[] = s[] - ({A} * {A})",
    "local d: {dtype}[] {{ d[] = {A} - t[{X} + 9] s[] = s[] + (d[] * d[]) }}",
    "if ({X} > 11) {{ s[] = s[] + {A} }} else {{ s[] = s[] - t[{Y}] }}",
    "if (({Y} > 4) && ({X} > 11)) {{ s[] = {op}(s[], {A}) }}",
    "if (({Y} < 6) && (t[{X} + 9] > t[0])) {{ s[] = s[] + {A} s[] = s[] - t[{Y}] }}",
]  # fmt: skip
COLUMNS = ["j + q", "(2 * j) + q", "(2 * j) + (2 * q)", "(99 - j) - q"]


@settings(max_examples=examples(80), deadline=None)
@given(
    dtype=st.sampled_from(["float64", "int32", "uint8"]),
    column=st.sampled_from(COLUMNS),
    body=st.sampled_from(BODIES),
    op=st.sampled_from(["min", "max"]),
    rows=st.sampled_from(
        [("-2 .. 3", "i + p"), ("max(i - 2, 0) .. min(i + 3, 9)", "p"), ("i .. (i + 2)", "p")]
    ),
    q=st.sampled_from(["-1 .. 2", "0 .. 2", "-3 .. 1"]),
    start=st.sampled_from(["t[j]", "a[i, j]"]),
    kind=st.sampled_from(["parallel", "serial"]),
)
def test_windows_by_columns_mean_the_same(
    dtype: str,
    column: str,
    body: str,
    op: str,
    rows: tuple[str, str],
    **parts: str,
) -> None:
    p, row = rows
    term = body.format(A=f"a[{row}, {column}]", X=f"({column})", Y=f"({row})", dtype=dtype, op=op)
    i = "0 .. 9" if "max" in p else "2 .. 6"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_LEAST_GAIN", 0.0)
        text = summed(body=term, i=i, j="9 .. 43", columns=120, p=p, dtype=dtype, **parts)
    assert "column" in text


@settings(max_examples=examples(40), deadline=None)
@given(
    i=st.sampled_from(["0 .. 9", "3 .. 5"]),
    p=st.sampled_from(["max(i - 2, 0) .. min(i + 3, 9)", "(i - 1) .. i", "0 .. i"]),
    begin=st.sampled_from(["max(j - 3, 0)", "max(i, j - 3)", "max(2, max(j - 1, p))", "(j - 1)"]),
    end=st.sampled_from(["min(j + 3, 50)", "(j + 2)", "min(min(j + 5, 49 - i), 40)"]),
    body=st.sampled_from(
        ["s[] = s[] + a[p, q]", "s[] = max(s[], a[p, q])", "if (q > i) { s[] = s[] + a[p, q] }"]
    ),
)
def test_windows_that_are_cut_mean_the_same(
    i: str, p: str, begin: str, end: str, body: str
) -> None:
    i = "1 .. 9" if p.startswith("(i") else i
    j = f"{int('max' not in begin)} .. {50 - 2 * ('min' not in end)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_LEAST_GAIN", 0.0)
        text = summed(i=i, j=j, p=p, q=f"{begin} .. {end}", body=body, columns=50)
    assert "column" in text


def results_of(kernels: Sequence[Kernel], folder: Path, seed: int = 0) -> Iterator[Any]:
    """Yields inputs, the results of the C of each kernel, and those of the interpreter."""
    arranged = [shipped(kernel, number) for number, kernel in enumerate(kernels)]
    library = build_together(folder, [source for _, source in arranged])
    rng = np.random.default_rng(seed)
    for kernel, (after, source) in zip(kernels, arranged, strict=True):
        assert "column" in body_of(sum_columns(kernel))
        inputs = [rng.uniform(0, 200, b.shape).astype(b.dtype) for b in kernel.parameters]
        if kernel.parameters[0].dtype.startswith("float"):
            inputs[0][inputs[0] < 8] = np.nan
            inputs[0][inputs[0] > 192] = -np.inf
        yield call(library, after, source, inputs), interpret(kernel, inputs)


def test_c_of_windows_by_columns(tmp_path: Path) -> None:
    least = {**GREATEST, "body": GREATEST["body"].replace("max", "min")}
    kernels = [
        windows(),
        windows(**CLAMPED),
        windows(**{**CLAMPED, "dtype": "float32"}),
        windows(**GREATEST),
        windows(**{**GREATEST, "dtype": "float32"}),
        windows(**{**GREATEST, "dtype": "float16"}),
        windows(**least),
        windows(**{**least, "dtype": "float32"}),
        windows(**{**least, "dtype": "uint8"}),
        windows(**{**least, "dtype": "int64"}),
        windows(columns="400", j="2 .. 398", dtype="float32"),
        windows(j="0 .. 48", body="s[] = s[] + a[i + p, (2 * j) + (q + 2)]"),
    ]
    for got_all, want_all in results_of(kernels, tmp_path):
        for got, want in zip(got_all, want_all, strict=True):
            rtol = 1e-12 if want.dtype == np.float64 else 1e-5
            np.testing.assert_allclose(got, want, rtol=rtol)


def test_c_of_gradients_sums_columns_again(tmp_path: Path) -> None:
    text = WINDOWS.format(**{**PARTS, **CLAMPED}).replace("= s[]\n", "= s[] * s[]\n")
    for got_all, want_all in results_of([adjoint(parse_kernel(text))], tmp_path):
        for got, want in zip(got_all, want_all, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)


def test_columns_without_terms_keep_the_sign_of_zero(tmp_path: Path) -> None:
    parts = {**CLAMPED, "p": "i .. min(i, 9)", "q": "max(j - 2, 0) .. (j + 3)", "j": "0 .. 97"}
    kernel = windows(**parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_LEAST_GAIN", -1.0)
        assert "column" in body_of(sum_columns(kernel))
        after, source = shipped(kernel, 0)
    library = build_together(tmp_path, [source])
    (got,) = call(library, after, source, [np.ones((9, 100)), np.full(400, -0.0)])
    assert np.signbit(got[:, :97]).all()
