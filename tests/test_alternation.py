"""Steps that copy their result back: which use the copy by turns, and that they mean the same."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import Kernel, alternate_arrays, alternating, kernel_text, mark_loops, parse_kernel
from loop_native import prepared
from random_examples import examples
from test_c_arrangement import arranged_apart, body_of

STEPS = """kernel steps(a: float32[20, 8], c: float32[20, 8]) -> (a) {
  serial s in 0 .. 5 {
    local w: float32[20, 8] {
      serial i in 1 .. 19 {
        serial j in 0 .. 8 {
          w[i, j] = (a[i - 1, j] + a[i + 1, j]) * c[s, j]
        }
      }
      serial k in 1 .. 19 {
        serial l in 0 .. 8 {
          a[k, l] = w[k, l]
        }
      }
    }
  }
}"""


@pytest.fixture(autouse=True)
def _however_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alternating, "LEAST_SHARE", 0)


def marked(text: str) -> Kernel:
    return mark_loops(parse_kernel(text))


def test_two_steps_and_the_one_that_is_left() -> None:
    assert body_of(arranged_apart(alternate_arrays, marked(STEPS))) == textwrap.dedent("""\
        local w: float32[20, 8] {
          parallel at in 0 .. 20 {
            parallel at_1 in 0 .. 8 {
              w[at, at_1] = a[at, at_1]
            }
          }
          serial s_1 in 0 .. 2 {
            parallel i in 1 .. 19 {
              parallel j in 0 .. 8 {
                w[i, j] = (a[i - 1, j] + a[i + 1, j]) * c[s_1 * 2, j]
              }
            }
            parallel i_1 in 1 .. 19 {
              parallel j_1 in 0 .. 8 {
                a[i_1, j_1] = (w[i_1 - 1, j_1] + w[i_1 + 1, j_1]) * c[(s_1 * 2) + 1, j_1]
              }
            }
          }
          parallel i_2 in 1 .. 19 {
            parallel j_2 in 0 .. 8 {
              w[i_2, j_2] = (a[i_2 - 1, j_2] + a[i_2 + 1, j_2]) * c[4, j_2]
            }
          }
          parallel k in 1 .. 19 {
            parallel l in 0 .. 8 {
              a[k, l] = w[k, l]
            }
          }
        }""")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("s in 0 .. 5", "s in 0 .. 3"),
        ("s in 0 .. 5", "s in 0 .. int32(c[0, 0])"),
        ("i in 1 .. 19", "i in 1 .. 18"),
        ("i in 1 .. 19", "i in 0 .. 19"),
        ("j in 0 .. 8", "j in 0 .. (8 - s)"),
        ("k in 1 .. 19", "k in 2 .. 19"),
        ("l in 0 .. 8", "l in 0 .. min(k, 8)"),
        ("w[i, j] =", "w[20 - i, j] ="),
        ("a[k, l] = w[k, l]", "a[k, l] = w[20 - k, l]"),
        ("a[k, l] = w[k, l]", "a[k, l] = w[k, l] + 1.0:float32"),
        ("a[k, l] = w[k, l]", "a[k, l] = w[k, l]\n c[k, l] = 0.5:float32"),
        ("a[k, l] = w[k, l]", "if (c[k, l] > 0.0:float32) {\n a[k, l] = w[k, l]\n }"),
        ("* c[s, j]", "* c[s, 7 - j]"),
        ("a[i - 1, j]", "w[i - 1, j]"),
        ("serial i in", "a[0, 0] = 3.0:float32\n serial i in"),
        ("serial i in", "w[0, 0] = 3.0:float32\n serial i in"),
        ("serial k in", "c[0, 0] = w[3, 0]\n serial k in"),
        ("w: float32[20, 8]", "w: float32[21, 8]"),
        ("local w", "local t: float32[20, 8] {\n local w"),
    ],
    ids=[
        "few steps", "steps by data", "fewer rows", "more rows", "fewer each time",
        "fewer rows back", "a triangle back", "backwards", "back backwards", "changed on the way",
        "more at the end", "back under a condition", "nothing", "reads the copy",
        "writes the array", "writes the copy again", "uses the copy", "another shape",
        "another array of a step",
    ],
)  # fmt: skip
def test_only_what_both_arrays_hold_alternates(old: str, new: str) -> None:
    assert old in STEPS
    text = STEPS.replace(old, new, 1)
    if new.startswith("local t"):
        text += "}"
    kernel = marked(text)
    changed = arranged_apart(alternate_arrays, kernel)
    assert (changed != kernel) is ("7 - j" in new or "local t" in new)


AROUND = STEPS.replace("    local w: float32[20, 8] {\n", "").removesuffix("}")
AROUND = AROUND.replace(" -> (a) {", " -> (a) {\n  buffer w: float32[20, 8]")


def test_an_array_around_the_steps_is_used_too() -> None:
    text = body_of(arranged_apart(alternate_arrays, marked(AROUND)))
    assert text.startswith("buffer w: float32[20, 8]\nparallel at in 0 .. 20 {")
    assert "a[i_1, j_1] = (w[i_1 - 1, j_1] + w[i_1 + 1, j_1])" in text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("-> (a)", "-> (a, w)"),
        ("buffer w: float32[20, 8]\n", ""),
        ("serial s in", "w[0, 0] = c[0, 0]\n serial s in"),
        ("serial s in", "c[0, 0] = w[3, 3]\n serial s in"),
    ],
    ids=["a result", "a parameter", "written before", "read before"],
)
def test_an_array_that_others_use_is_not(old: str, new: str) -> None:
    text = AROUND.replace(old, new)
    if not new:
        text = text.replace("c: float32[20, 8])", "c: float32[20, 8], w: float32[20, 8])")
    kernel = marked(text)
    assert arranged_apart(alternate_arrays, kernel) == kernel


def test_steps_that_choose_what_they_write_alternate() -> None:
    text = AROUND.replace(
        "w[i, j] = (a[i - 1, j] + a[i + 1, j]) * c[s, j]",
        "if (i > s) { w[i, j] = a[i - 1, j] * 0.5:float32 } else { w[i, j] = a[i, j] }",
    )
    assert kernel_text(prepared(parse_kernel(text))).count("w[") > 2
    assert "= w[k, l]" not in kernel_text(prepared(parse_kernel(text.replace("0 .. 5", "0 .. 6"))))


@st.composite
def time_loops(draw: st.DrawFn) -> str:
    """Draws steps over arrays that are copied back, or not quite, inside loops of their own."""
    size, width = draw(st.integers(5, 8)), 2
    steps = draw(st.integers(4, 7))
    count = draw(st.integers(1, 3))
    work, back = [], []
    for n in range(count):
        low, high = draw(st.integers(0, 2)), size - draw(st.integers(0, 2))
        terms = draw(st.sampled_from(["s", "o", "1"]))
        for _ in range(draw(st.integers(1, 3))):
            source = draw(st.integers(0, count - 1))
            # Mostly of the arrays; a load of a copy keeps it apart.
            name = draw(st.sampled_from([f"a{source}"] * 9 + [f"w{source}"]))
            offset, at = draw(st.integers(-2, 2)), draw(st.sampled_from([f"j{n}", "0", "1"]))
            row = f"min(max(i{n} + {offset}, 0), {size - 1})"
            terms = f"(({terms}) * 3) + {name}[{row}, {at}]"
        columns = draw(st.sampled_from(["0 .. 2"] * 4 + ["1 .. 2"]))
        work.append(
            f"serial i{n} in {low} .. {high} {{\n serial j{n} in {columns} {{\n"
            f" w{n}[i{n}, j{n}] = {terms}\n }}\n }}"
        )
        # Seldom another box than that of the step.
        low = min(low + draw(st.sampled_from([0] * 9 + [1])), high - 1)
        back.append(
            f"serial k{n} in {low} .. {high} {{\n serial l{n} in {columns} {{\n"
            f" a{n}[k{n}, l{n}] = w{n}[k{n}, l{n}]\n }}\n }}"
        )
    names = range(count)
    arrays = ", ".join(f"a{n}: int32[{size}, {width}]" for n in names)
    open_ = "".join(f"local w{n}: int32[{size}, {width}] {{\n" for n in names)
    return "\n".join([
        f"kernel steps({arrays}) -> ({', '.join(f'a{n}' for n in names)}) {{",
        f"serial o in 0 .. 2 {{\n serial s in 1 .. {1 + steps} {{\n{open_}",
        *work, *draw(st.permutations(back)), "}" * (count + 3),
    ])  # fmt: skip


@given(text=time_loops())
@settings(max_examples=examples(60), deadline=None)
def test_random_time_loops_mean_the_same(text: str) -> None:
    arranged_apart(alternate_arrays, marked(text))
