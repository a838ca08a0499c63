"""Steps that copy their result back: which use the copy by turns, and that they mean the same."""

from __future__ import annotations

import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_ir import (
    Kernel,
    alternate_arrays,
    alternating,
    kernel_text,
    mark_loops,
    parse_kernel,
)
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


def stages(count: int = 4, **parts: str) -> str:
    """Returns a kernel of steps that are written out, each of two strided stores and a copy."""
    default = {"stage": "", "between": "", "end": "", "copied": "0 .. 8", "shape": "8", "copy": ""}
    parts = {**default, **parts}
    body = [
        f"""parallel i{n} in 0 .. 4 {{
          b[2 * i{n}] = (a[i{n}] + a[i{n} + 4]) * {n}.5:float32
          b[(2 * i{n}) + 1] = a[i{n}] - a[i{n} + 4]
          {parts["stage"] if n == 2 else ""}
        }}
        {parts["between"] if n == 2 else ""}
        parallel k{n} in {parts["copied"]} {{
          a[k{n}] = b[k{n}] {parts["copy"].format(n=n)}
        }}"""
        for n in range(1, count + 1)
    ]
    return f"""kernel steps(x: float32[8]) -> (a, c) {{
      buffer a: float32[8]
      buffer c: float32[8]
      buffer b: float32[{parts["shape"]}]
      parallel i in 0 .. 8 {{ a[i] = x[i] }}
      {" ".join(body)}
      {parts["end"]}
    }}"""


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_steps_that_are_written_out_alternate_two_by_two(count: int) -> None:
    text = body_of(arranged_apart(alternate_arrays, parse_kernel(stages(count))))
    assert text.count("= b[k") == count % 2
    assert text.count("a[2 * ") == text.count("b[i") // 4 == count // 2


@pytest.mark.parametrize(
    "parts",
    [
        {"copied": "0 .. 7"},
        {"shape": "9"},
        {"end": "c[0] = b[0]"},
        {"stage": "c[i2] = b[i2]"},
        {"copy": "c[k{n}] = b[k{n}]"},
    ],
    ids=["a copy of a part", "another shape", "read at the end", "read in a step", "two copies"],
)
def test_steps_that_use_the_copy_otherwise_stay(parts: dict[str, str]) -> None:
    kernel = parse_kernel(stages(**parts))
    assert arranged_apart(alternate_arrays, kernel) == kernel


def test_a_step_that_writes_the_array_too_does_not_alternate() -> None:
    text = body_of(arranged_apart(alternate_arrays, parse_kernel(stages(between="a[3] = x[0]"))))
    assert [f"= b[k{n}]" in text for n in (1, 2, 3, 4)] == [True, False, False, True]


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_steps_do_not_alternate_if_one_fills_a_part_of_the_copy(step: int) -> None:
    kernel = parse_kernel(stages().replace(f"b[(2 * i{step}) + 1]", f"b[2 * i{step}]"))
    assert arranged_apart(alternate_arrays, kernel) == kernel


def test_steps_in_a_loop_alternate() -> None:
    text = stages(2).replace("parallel i1 in 0 .. 4", "serial o in 0 .. 3 { parallel i1 in 0 .. 4")
    text = text.replace("i2 in 0 .. 4", "i2 in o .. (4 + o)").replace("i2", "(i2 - o)")
    text = text.replace("parallel (i2 - o) in", "parallel i2 in").replace("b[k2]", "b[k2] }")
    body = body_of(arranged_apart(alternate_arrays, parse_kernel(text)))
    assert "= b[k" not in body


def test_a_result_is_no_copy() -> None:
    kernel = parse_kernel(stages().replace("-> (a, c)", "-> (a, b)"))
    assert arranged_apart(alternate_arrays, kernel) == kernel


def test_steps_of_another_array_are_apart() -> None:
    kernel = parse_kernel(stages(2).replace("a[k1] = b[k1]", "c[k1] = b[k1]"))
    assert arranged_apart(alternate_arrays, kernel) == kernel


@st.composite
def written_out(draw: st.DrawFn) -> str:
    """Draws steps over two arrays that are copied back, or not quite, in a loop or outside."""
    stages = []
    for n in range(draw(st.integers(2, 5))):
        rare = draw(st.integers(0, 12))
        low = 1 if rare == 0 else 0
        stages.append(
            f"""
            parallel i{n} in {low} .. 6 {{
              b[i{n}] = (a[(i{n} + {draw(st.integers(0, 5))}) % 6] * 3) + d[i{n}]
              {"if (i{n} > 2) {{ " if rare == 1 else ""}
              e[5 - i{n}] = d[i{n}] + a[i{n}] {" }}" if rare == 1 else ""}
            }}
            {
                ["a[1] = 5", "d[2] = b[1]", "b[3] = a[0]", "e[4] = o", ""][min(rare, 6) - 2]
                if 1 < rare < 7
                else ""
            }
            parallel k{n} in 0 .. 6 {{ a[k{n}] = b[k{n}] {
                "" if rare == 7 else f"d[k{n}] = e[k{n}]"
            } }}
        """.replace("{n}", str(n))
            .replace("{{", "{")
            .replace("}}", "}")
        )
    local = draw(st.booleans())
    start, end = ("local b: int32[6] { local e: int32[6] {", "} }") if local else ("", "")
    buffers = "" if local else "buffer b: int32[6] buffer e: int32[6]"
    return f"""kernel steps(a: int32[6], d: int32[6]) -> (a, d) {{
      {buffers}
      serial o in 0 .. 2 {{ {start} {" ".join(stages)} {end} }}
    }}"""


@given(text=written_out())
@settings(max_examples=examples(80), deadline=None)
def test_random_steps_that_are_written_out_mean_the_same(text: str) -> None:
    arranged_apart(alternate_arrays, parse_kernel(text))
