"""Loops that hand rows on through temporaries: which are fused, and that they mean the same."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, fuse_rows, fusing, interpret, kernel_text, mark_loops, parse_kernel
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of

from msops import Custom
from msops.lang import allocate, output_tensor

BLUR = """kernel blur(a: float32[40, 8], c: float32[40, 8]) -> (b, e) {
  buffer t: float32[40, 8]
  buffer b: float32[38, 8]
  buffer e: float32[40, 8]
  serial i in 0 .. 40 {
    serial j in 0 .. 8 {
      t[i, j] = a[i, j] + c[i, j]
    }
  }
  serial k in 0 .. 38 {
    serial l in 0 .. 8 {
      b[k, l] = t[k, l] * t[k + 2, l]
    }
  }
}"""
TWICE = BLUR.replace(
    "t[k, l] * t[k + 2, l]",
    """t[k, l]
    }
  }
  serial m in 0 .. 40 {
    serial n in 0 .. 8 {
      e[m, n] = t[m, n]""",
)


@pytest.fixture(autouse=True)
def _however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusing, "LEAST_BYTES", 0)
    monkeypatch.setattr(fusing, "LEAST_ROW_SECONDS", 0)
    monkeypatch.setattr(fusing, "LEAST_GAIN", 0)


def marked(text: str) -> Kernel:
    return mark_loops(parse_kernel(text))


def test_rows_are_kept_while_they_are_read() -> None:
    assert body_of(arranged_apart(fuse_rows, marked(BLUR))) == textwrap.dedent("""\
        buffer b: float32[38, 8]
        buffer e: float32[40, 8]
        parallel strip in 0 .. 5 {
          local t: float32[3, 8] {
            serial row in (strip * 8) .. min((strip * 8) + 10, 40) {
              parallel j in 0 .. 8 {
                t[row % 3, j] = a[row, j] + c[row, j]
              }
              if ((row >= 2) && ((row - (strip * 8)) >= 2)) {
                parallel l in 0 .. 8 {
                  b[row - 2, l] = t[(row + 1) % 3, l] * t[row % 3, l]
                }
              }
            }
          }
        }""")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("t[i, j] =", "t[39 - i, j] ="),
        ("t[i, j] =", "t[i, (j + i) % 8] ="),
        ("serial j in 0 .. 8", "serial j in 0 .. min(i, 8)"),
        ("t[i, j] = a[i, j] + c[i, j]", "if (a[i, j] > c[i, j]) {\n t[i, j] = c[i, j]\n }"),
        ("a[i, j] + c[i, j]", "a[i, j] + t[i, j]"),
        ("serial i in 0 .. 40", "serial i in 0 .. 39"),
        ("serial i in 0 .. 40", "serial i in 1 .. 40"),
        ("t[k + 2, l]", "t[2 * k, l]"),
        ("t[k + 2, l]", "t[l, l]"),
        ("t[k + 2, l]", "t[int32(a[k, l]), l]"),
        ("t[k + 2, l]", "t[max(k - 1, 0), l]"),
        ("b[k, l] =", "c[k, l] ="),
        ("t[i, j] = a[i, j]", "e[i, j] = c[i, j]\n t[i, j] = a[i, j]"),
        ("-> (b, e)", "-> (b, e, t)"),
        ("a: float32[40, 8]", "a: float32[40, 8], s: float32[]"),
    ],
    ids=[
        "backwards", "moved", "triangle", "condition", "own", "fewer at the end",
        "fewer at the start", "far apart", "other axis", "data", "clamped", "overwrites an input",
        "a second result", "result", "nothing",
    ],
)  # fmt: skip
def test_only_what_reads_the_same_is_fused(old: str, new: str) -> None:
    assert old in BLUR
    kernel = marked(BLUR.replace(old, new, 1))
    fused = arranged_apart(fuse_rows, kernel)
    assert (fused != kernel) is (old == "a: float32[40, 8]")


@pytest.mark.parametrize(
    "text",
    [
        # Used before, after, and by a loop of the group that overwrites it.
        BLUR.replace(
            "  serial i", "  serial q in 0 .. 8 {\n t[0, q] = 3.0:float32\n }\n  serial i", 1
        ),
        BLUR[:-1] + "  serial q in 0 .. 8 {\n e[0, q] = t[0, q]\n }\n}",
        TWICE.replace("e[m, n] = t[m, n]", "t[m, n] = a[m, n]\n e[m, n] = t[m, n]"),
        TWICE.replace("e[m, n] = t[m, n]", "e[m, n] = t[m, n]\n a[m, n] = 5.0:float32"),
        TWICE.replace("e[m, n] = t[m, n]", "e[m, n] = t[m, n] + b[max(m - 1, 0), n]"),
    ],
    ids=["before", "after", "again", "input of the first", "result of the second"],
)
def test_what_others_use_stays(text: str) -> None:
    kernel = marked(text)
    fused = arranged_apart(fuse_rows, kernel)
    assert "local t" not in body_of(fused) or len(fused.body) > 1


def test_results_and_ranges_of_their_own() -> None:
    fused = arranged_apart(fuse_rows, marked(TWICE))
    assert len(fused.body) == 1
    text = TWICE.replace("k in 0 .. 38", "k in 5 .. 31").replace("m in 0 .. 40", "m in 3 .. 40")
    fused = arranged_apart(fuse_rows, marked(text))
    assert len(fused.body) == 1


def test_positions_that_no_row_gets_are_zero() -> None:
    text = BLUR.replace("serial j in 0 .. 8", "serial j in 2 .. 7")
    fused = arranged_apart(fuse_rows, marked(text))
    assert len(fused.body) == 1
    ones = np.ones((40, 8), np.float32)
    b, _ = interpret(fused, [ones, ones])
    np.testing.assert_array_equal(b[:, [0, 1, 7]], 0)


def test_rows_that_take_long_are_not_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    large = BLUR.replace("40", "400").replace("38", "398").replace("8]", "1000]")
    quick = marked(large.replace("0 .. 8 ", "0 .. 1000 "))
    slow = marked(
        kernel_text(quick).replace("a[i, j] + c[i, j]", "exp(" * 16 + "a[i, j]" + ")" * 16)
    )
    assert fuse_rows(quick) is not quick
    assert fuse_rows(slow) is slow


def test_a_step_of_a_serial_loop_is_fused() -> None:
    text = textwrap.dedent("""\
        kernel steps(a: float32[40, 6]) -> (a) {
          buffer t: float32[40, 6]
          serial s in 0 .. 3 {
            serial i in 1 .. 39 {
              serial j in 0 .. 6 {
                t[i, j] = a[i - 1, j] + a[i + 1, j]
              }
            }
            serial k in 1 .. 39 {
              serial l in 0 .. 6 {
                a[k, l] = t[k, l]
              }
            }
          }
        }""")
    # The loop that reads `a` beside its own row must be done before any is overwritten.
    assert fuse_rows(marked(text)) == marked(text)
    apart = text.replace("a: float32[40, 6]", "a: float32[40, 6], f: float32[40, 6]", 1)
    apart = apart.replace("a[i - 1, j] + a[i + 1, j]", "f[i - 1, j] + f[i + 1, j]")
    apart = apart.replace("= t[k, l]", "= a[k, l] + t[k, l]")
    fused = arranged_apart(fuse_rows, marked(apart))
    assert fused != marked(apart)


@pytest.mark.parametrize(
    ("old", "new"),
    [("j in 0 .. 6", "j in 0 .. (6 - s)"), ("t[i, j] =", "t[i, (j + s) % 6] =")],
    ids=["fewer each time", "elsewhere each time"],
)
def test_rows_that_keep_what_an_earlier_step_wrote_stay(old: str, new: str) -> None:
    text = """kernel steps(a: float32[40, 6], f: float32[40, 6]) -> (a) {
      buffer t: float32[40, 6]
      serial s in 0 .. 3 {
        serial i in 0 .. 40 {
          serial j in 0 .. 6 {
            t[i, j] = f[i, j] + f[s, j]
          }
        }
        serial k in 0 .. 38 {
          serial l in 0 .. 6 {
            a[k, l] = a[k, l] + (t[k, l] * t[k + 2, l])
          }
        }
      }
    }"""
    assert arranged_apart(fuse_rows, marked(text)) != marked(text)
    changing = marked(text.replace(old, new, 1))
    assert arranged_apart(fuse_rows, changing) == changing


@st.composite
def chains(draw: st.DrawFn) -> str:
    """Draws loops that read rows of those before, with ranges, offsets and axes of their own."""
    size, width = draw(st.integers(18, 40)), 3
    names = [f"t{n}" for n in range(draw(st.integers(1, 4)))]
    buffers, loops = [], []
    ranges: dict[str, tuple[int, int]] = {"a": (0, size)}
    reads: set[str] = set()
    for n, name in enumerate([*names, "b"]):
        sources = draw(st.lists(st.sampled_from(sorted(ranges)), min_size=1, max_size=3))
        if n and n == len(names) and not reads & set(names):
            sources.append(names[0])
        reads |= set(sources)
        offsets = [draw(st.integers(-2, 2)) for _ in sources]
        low = max(ranges[s][0] - o for s, o in zip(sources, offsets, strict=True))
        high = min(ranges[s][1] - o for s, o in zip(sources, offsets, strict=True))
        low, high = low + draw(st.integers(0, 1)), high - draw(st.integers(0, 1))
        shift = draw(st.integers(0, 2)) - min(low, 0)
        first, last = draw(st.sampled_from([(0, width), (1, width)]))
        terms = "1"
        for source, offset in zip(sources, offsets, strict=True):
            at = draw(st.sampled_from([f"j{n}", "0", "2"]))
            terms = f"(({terms}) * 3) + {source}[i{n} + {offset}, {at}]"
        buffers.append(f"  buffer {name}: int32[{size + 40}, {width}]")
        loops.append(
            f"  serial i{n} in {low} .. {high} {{\n serial j{n} in {first} .. {last} {{\n"
            f"    {name}[i{n} + {shift}, j{n}] = {terms}\n  }}\n }}"
        )
        ranges[name] = (low + shift, high + shift)
    head = f"kernel chain(a: int32[{size}, {width}]) -> (b) {{"
    return "\n".join([head, *buffers, *loops, "}"])


@given(text=chains())
@settings(max_examples=examples(60), deadline=None)
def test_random_chains_mean_the_same(text: str) -> None:
    arranged_apart(fuse_rows, marked(text))


def blurred(a: Any) -> Any:
    n, m = a.shape
    t = allocate((n, m), a.dtype)
    b = output_tensor((n - 2, m), a.dtype)
    for i in range(n):
        for j in range(1, m):
            t[i, j] = a[i, j] + a[i, j - 1]
    for i in range(n - 2):
        for j in range(m):
            b[i, j] = t[i, j] + t[i + 1, j] * t[i + 2, j]
    return b


def test_threads_run_strips() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-9, 9, (500, 300)).astype(np.float32)
    op = Custom(blurred, func_type="akg", compile_attrs={"lower": "native"})
    t = np.zeros_like(a)
    t[:, 1:] = a[:, 1:] + a[:, :-1]
    np.testing.assert_array_equal(op(a), t[:-2] + t[1:-1] * t[2:])
