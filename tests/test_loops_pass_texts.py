"""Each pass of the loop compiler, by the text of small kernels before and after it."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable

import numpy as np
import pytest
from loop_ir import (
    Kernel,
    ascend,
    carry_elements,
    components,
    contract,
    distribute,
    drop_starts,
    expand_carried,
    expand_locals,
    forward_indices,
    forward_locals,
    forward_terms,
    interpret,
    keep_decisions,
    kernel_text,
    make_indices_explicit,
    mark_loops,
    parse_kernel,
    privatise,
    reverse,
    rewrite_conditional_reductions,
    simplify,
    verify,
)

Pass = Callable[[Kernel], Kernel]

HEAD = "kernel k(a: float32[8, 8], n: int32[8]) -> (out)"


def changed(change: Pass, body: str, buffers: str = "out: float32[8, 8]") -> str:
    """Returns the lines of a kernel after a pass, from its first buffer on."""
    kernel = parse_kernel(whole(body, buffers))
    verify(kernel)
    after = change(kernel)
    verify(after)
    return "\n".join(kernel_text(after).splitlines()[1:-1])


def whole(body: str, buffers: str = "out: float32[8, 8]") -> str:
    lines = [f"buffer {buffer}" for buffer in buffers.split("; ")]
    return "\n".join([HEAD + " {", *lines, body, "}"])


def text(lines: str) -> str:
    return textwrap.indent(textwrap.dedent(lines).strip(), "  ")


# simplify


def test_simplify_resolves_what_is_decided() -> None:
    got = changed(
        simplify,
        """
        serial i in 0 .. 8 {
          serial j in 0 .. 8 {
            if ((i < 8) && (n[i] > 0)) {
              out[((i * 8) + j) // 8, ((i * 8) + j) % 8] = a[min(i, 9), (2 * j) - j]
            }
            if (j >= 8) {
              out[i, j] = 0.0:float32
            }
          }
          serial once in i .. (i + 1) {
            out[once, 0] = out[once, 0] * 1.0:float32
          }
          serial never in (i + 2) .. i {
            out[i, 0] = 1.0:float32
          }
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        serial i in 0 .. 8 {
          serial j in 0 .. 8 {
            if (n[i] > 0) {
              out[i, j] = a[i, j]
            }
          }
          out[i, 0] = out[i, 0]
        }
        """)


def test_simplify_finds_the_length_of_a_block() -> None:
    got = changed(
        simplify,
        """
        serial i in 0 .. 2 {
          serial j in 0 .. max(min((i * 5) + 5, 8) - (i * 5), 0) {
            out[0, j] = a[min(i * 5, n[0]) - (i * 5), i]
          }
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        serial i in 0 .. 2 {
          serial j in 0 .. min(5, 8 - (i * 5)) {
            out[0, j] = a[min(i * 5, n[0]) - (i * 5), i]
          }
        }
    """)


def test_simplify_takes_the_first_element_of_a_window_once() -> None:
    """Only where the same element is next to be compared, and the store does not change it."""
    got = changed(
        simplify,
        """
        serial i in 0 .. 4 {
          out[i, 0] = a[i, 0]
          out[i, 0] = max(out[i, 0], a[i, 0])
          out[i, 0] = max(out[i, 0], a[i, 1])
          out[i, 1] = a[i, 1]
          out[i, 1] = min(out[i, 1], a[i, 2])
          out[i, 2] = out[i, 3]
          out[i, 2] = max(out[i, 2], out[i, 3])
          out[i, 4] = a[i, 4]
          out[i, 5] = min(out[i, 4], a[i, 4])
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        serial i in 0 .. 4 {
          out[i, 0] = a[i, 0]
          out[i, 0] = max(out[i, 0], a[i, 1])
          out[i, 1] = a[i, 1]
          out[i, 1] = min(out[i, 1], a[i, 2])
          out[i, 2] = out[i, 3]
          out[i, 2] = max(out[i, 2], out[i, 3])
          out[i, 4] = a[i, 4]
          out[i, 5] = min(out[i, 4], a[i, 4])
        }
    """)


def test_simplify_leaves_extremes_of_numbers_that_wrap() -> None:
    kernel = parse_kernel("""kernel wraps() -> (o, p) {
      buffer o: int32[8]
      buffer p: int64[8]
      serial i in 0 .. 8 {
        o[i] = min(int32(i) + 2147483644, 5) - int32(i)
        p[i] = max(i + 9223372036854775804, 5) - i
      }
    }""")
    for got, want in zip(interpret(simplify(kernel), []), interpret(kernel, []), strict=True):
        np.testing.assert_array_equal(got, want)
        assert len({*map(int, want)}) > 1


def test_simplify_subtracts_no_number_that_a_dtype_lacks() -> None:
    kernel = parse_kernel("""kernel k(n: int32[1], a: int32[5]) -> (b) {
      buffer b: int32[5]
      parallel i in 0 .. 5 { b[i] = a[n[0] + -2147483648] + a[n[0] + (i * -2147483648)] }
    }""")
    after = simplify(kernel)
    verify(after)
    inputs = [np.array([-1], "int32"), np.arange(5, dtype="int32")]
    for got, want in zip(interpret(after, inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want)


def test_simplify_keeps_every_bit_of_a_float() -> None:
    body = """
    serial i in 0 .. 8 {
      out[i, 0] = (a[i, 0] + 0.0:float32) + (0.0:float32 * a[i, 1])
      out[i, 1] = a[i, 0] / a[i, 0]
      out[i, 2] = (a[i, 0] + 1.0:float32) + 2.0:float32
    }
    """
    assert changed(simplify, body) == "\n".join(
        kernel_text(parse_kernel(whole(body))).splitlines()[1:-1]
    )


def test_simplify_uses_conditions() -> None:
    got = changed(
        simplify,
        """
        serial i in 0 .. 8 {
          if (i > 0) {
            out[i, 0] = (i >= 1) ? a[max(i - 1, 0), 0] : 0.0:float32
          } else {
            out[i, 0] = a[i, 1]
          }
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        serial i in 0 .. 8 {
          if (i > 0) {
            out[i, 0] = a[i - 1, 0]
          } else {
            out[0, 0] = a[0, 1]
          }
        }
        """)


# Locals


def test_forward_locals() -> None:
    got = changed(
        forward_locals,
        """
        serial i in 0 .. 8 {
          local t: float32[] {
            t[] = a[i, 0] * a[i, 1]
            out[i, 0] = out[i, 0] + t[]
          }
          local u: float32[] {
            u[] = out[i, 0]
            out[i, 0] = a[i, 0]
            out[i, 1] = u[]
          }
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        serial i in 0 .. 8 {
          out[i, 0] = out[i, 0] + (a[i, 0] * a[i, 1])
          local u: float32[] {
            u[] = out[i, 0]
            out[i, 0] = a[i, 0]
            out[i, 1] = u[]
          }
        }
        """)


def test_forward_locals_does_not_grow_without_end() -> None:
    doublings = "\n".join(
        f"local t{n}: float32[] {{ t{n}[] = t{n - 1}[] * t{n - 1}[]" for n in range(1, 30)
    )
    body = f"""
    serial i in 0 .. 8 {{
      local t0: float32[] {{
        t0[] = a[i, 0] + 1.0:float32
        {doublings}
        out[i, 0] = t29[]
        {"}" * 29}
      }}
    }}
    """
    assert len(changed(forward_locals, body)) < 30_000


def test_forward_indices_leaves_values() -> None:
    got = changed(
        forward_indices,
        """
        serial i in 0 .. 4 {
          local at: int32[] {
            at[] = i * 2
            local t: float32[] {
              t[] = a[at[], 0]
              out[at[], 1] = t[]
            }
          }
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        serial i in 0 .. 4 {
          local t: float32[] {
            t[] = a[i * 2, 0]
            out[i * 2, 1] = t[]
          }
        }
        """)


WINDOW = """
    local first: int32[] {{
      first[] = int32(a[0, 0])
      serial i in 0 .. 8 {{
        local column: int32[] {{
          column[] = {value}
          {between}
          out[0, column[]] = a[0, column[] + 1]
          {after}
        }}
      }}
    }}
    """


@pytest.mark.parametrize(
    ("value", "after"),
    [("(first[] - 3) + i", ""), ("first[]", ""), ("i + first[]", "first[] = first[] + 1")],
    ids=["a window", "a copy", "a variable that changes later"],
)
def test_forward_indices_beside_a_variable(value: str, after: str) -> None:
    got = changed(forward_indices, WINDOW.format(value=value, between="", after=after))
    kept = value if value == "first[]" else f"({value})"
    assert f"out[0, {value}] = a[0, {kept} + 1]" in got
    assert "local column" not in got


@pytest.mark.parametrize(
    ("value", "between"),
    [
        ("first[] * 3", ""),
        ("int32(a[i, 1]) + first[]", ""),
        ("first[] + i", "first[] = first[] + 1"),
        ("first[] + i", "serial k in 0 .. 3 { out[k, column[]] = 1.0:float32 first[] = 4 }"),
    ],
    ids=["a product", "an element", "a variable that changes", "in a loop that changes it"],
)
def test_forward_indices_leaves_other_locals(value: str, between: str) -> None:
    body = WINDOW.format(value=value, between=between, after="")
    assert "local column" in changed(forward_indices, body)


def test_forward_indices_does_not_grow_without_end() -> None:
    doublings = "\n".join(
        f"local t{n}: int32[] {{ t{n}[] = t{n - 1}[] + t{n - 1}[]" for n in range(1, 30)
    )
    body = f"""
    local t0: int32[] {{
      t0[] = int32(a[0, 0])
      {doublings}
      out[t29[], 0] = 1.0:float32
      {"}" * 29}
    }}
    """
    assert len(changed(forward_indices, body)) < 30_000


def test_forward_terms_leaves_other_locals() -> None:
    terms = """
        {kind} i in 0 .. 8 {{
          local t: float32[] {{
            t[] = {value}
            out[0, 0] = {sum}
          }}
        }}
        """
    parts = {
        "kind": "reduction",
        "value": "a[i, 0] - a[i, 1]",
        "sum": "out[0, 0] + (t[] * t[])",
    }
    assert changed(forward_terms, terms.format(**parts)) == text("""
        buffer out: float32[8, 8]
        reduction i in 0 .. 8 {
          out[0, 0] = out[0, 0] + ((a[i, 0] - a[i, 1]) * (a[i, 0] - a[i, 1]))
        }
        """)
    for other in (
        {"kind": "serial"},
        {"value": "exp(a[i, 0])"},
        {"value": "((a[i, 0] - a[i, 1]) * a[i, 2]) + a[i, 3]"},
        {"sum": "t[] * t[]"},
    ):
        body = terms.format(**{**parts, **other})
        assert "t[] = " in changed(forward_terms, body)


def test_privatise() -> None:
    row = "out: float32[8, 8]; row: float32[8]; carried: float32[]"
    got = changed(
        privatise,
        """
        serial i in 0 .. 8 {
          serial j in 0 .. 8 {
            row[j] = a[i, j]
          }
          serial j2 in 0 .. 8 {
            out[i, j2] = row[7 - j2] + carried[]
          }
          carried[] = a[i, 0]
        }
        """,
        row,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer carried: float32[]
        serial i in 0 .. 8 {
          local row: float32[8] {
            serial j in 0 .. 8 {
              row[j] = a[i, j]
            }
            serial j2 in 0 .. 8 {
              out[i, j2] = row[7 - j2] + carried[]
            }
            carried[] = a[i, 0]
          }
        }
        """)


@pytest.mark.parametrize(
    ("index", "shrunk"),
    [
        ("i", "t[]"),
        # What is read from memory may change, and may be out of range.
        ("n[i]", "t[n[i]]"),
        # A store out of range is dropped, so the element that is read stays 0.
        ("i + 1", "t[i + 1]"),
    ],
)
def test_a_local_has_the_axes_that_it_needs(index: str, shrunk: str) -> None:
    got = changed(
        privatise,
        f"""
        serial i in 0 .. 8 {{
          local t: float32[8] {{
            t[{index}] = a[i, 0]
            out[i, 0] = t[{index}]
          }}
        }}
        """,
    )
    assert f"{shrunk} = a[i, 0]" in got
    assert f"out[i, 0] = {shrunk}" in got
    assert ("local t: float32[] {" in got) == (shrunk == "t[]")


def test_axes_of_inner_loops_stay() -> None:
    got = changed(
        privatise,
        """
        serial i in 0 .. 8 {
          local t: float32[8, 8] {
            serial j in 0 .. 8 {
              t[i, j] = a[i, j]
            }
            serial j2 in 0 .. 8 {
              out[i, j2] = t[i, 7 - j2]
            }
          }
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        serial i in 0 .. 8 {
          local t: float32[8] {
            serial j in 0 .. 8 {
              t[j] = a[i, j]
            }
            serial j2 in 0 .. 8 {
              out[i, j2] = t[7 - j2]
            }
          }
        }
        """)


STARTED = """
parallel i in 0 .. 8 {{
  out[i, 0] = a[i, {first}]
}}
parallel i2 in 0 .. 8 {{
  reduction j in {begin} .. {end} {{
    out[i2, 0] = {op}(out[i2, 0], a[i2, j])
  }}
}}
"""


@pytest.mark.parametrize(
    ("op", "first", "begin", "end", "start"),
    [
        ("max", "0", "0", "8", "-inf:float32"),
        ("min", "2", "2", "8", "inf:float32"),
        # The reduction takes in other elements, or may take in none.
        ("max", "0", "1", "8", "a[i, 0]"),
        ("max", "0", "0", "n[0]", "a[i, 0]"),
    ],
)
def test_drop_starts(op: str, first: str, begin: str, end: str, start: str) -> None:
    got = changed(drop_starts, STARTED.format(op=op, first=first, begin=begin, end=end))
    assert f"out[i, 0] = {start}\n" in got


def test_drop_starts_inside_of_a_loop() -> None:
    nests = STARTED.format(op="max", first="0", begin="0", end="8").replace(
        "a[i, 0]", "((i < s) ? a[i, 0] : a[s, 0])"
    )
    got = changed(drop_starts, f"serial s in 0 .. 8 {{ {nests} }}")
    assert "out[i, 0] = (i < s) ? a[i, 0] : a[s, 0]" in got


def test_drop_starts_keeps_what_is_read_before_the_reduction() -> None:
    nests = STARTED.format(op="max", first="0", begin="0", end="8").split("parallel i2")
    read = "parallel i3 in 0 .. 8 { out[i3, 1] = out[i3, 0] }"
    got = changed(drop_starts, f"{nests[0]}{read}\nparallel i2{nests[1]}")
    assert "out[i, 0] = a[i, 0]" in got


def test_drop_starts_keeps_what_is_overwritten_before_the_reduction() -> None:
    nests = STARTED.format(op="max", first="0", begin="0", end="8").split("parallel i2")
    kernel = f"{nests[0]}a[0, 0] = 7.0:float32\nparallel i2{nests[1]}"
    assert "out[i, 0] = a[i, 0]" in changed(drop_starts, kernel)


def test_expand_locals() -> None:
    got = changed(
        expand_locals,
        """
        serial i in 2 .. 8 {
          serial j in i .. 8 {
            local t: float32[2] {
              t[1] = a[i, j]
              out[i, j] = t[1]
            }
          }
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer t: float32[6, 6, 2]
        serial i in 2 .. 8 {
          serial j in i .. 8 {
            t[i - 2, j - 2, 1] = a[i, j]
            out[i, j] = t[i - 2, j - 2, 1]
          }
        }
        """)


def test_iterations_of_a_loop_of_unknown_length_share_a_local() -> None:
    got = changed(
        expand_locals,
        """
        serial i in 0 .. 8 {
          serial j in 0 .. n[i] {
            local t: float32[2] {
              t[0] = t[0] + a[i, 0]
              out[i, 0] = t[0]
            }
          }
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer t: float32[8, 2]
        serial i in 0 .. 8 {
          serial j in 0 .. n[i] {
            parallel t_axis in 0 .. 2 {
              t[i, t_axis] = 0.0:float32
            }
            t[i, 0] = t[i, 0] + a[i, 0]
            out[i, 0] = t[i, 0]
          }
        }
        """)


def test_a_local_that_would_be_too_large_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{expand_locals.__module__}.ELEMENT_LIMIT", 63)
    got = changed(
        expand_locals,
        """
        serial i in 0 .. 8 {
          serial j in 0 .. 8 {
            local t: bool[] {
              t[] = a[i, j] > 0.0:float32
            }
          }
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer t: bool[8]
        serial i in 0 .. 8 {
          serial j in 0 .. 8 {
            t[j] = false
            t[j] = a[i, j] > 0.0:float32
          }
        }
        """)


def test_conditions_that_a_body_changes_are_kept() -> None:
    got = changed(
        keep_decisions,
        """
        serial i in 0 .. 8 {
          if (out[i, 0] > 0.0:float32) {
            out[i, 0] = 1.0:float32
          }
          if (out[i, 1] > 0.0:float32) {
            out[i, 1] = 1.0:float32
            out[i, 2] = 2.0:float32
          }
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        serial i in 0 .. 8 {
          if (out[i, 0] > 0.0:float32) {
            out[i, 0] = 1.0:float32
          }
          local kept: bool[] {
            kept[] = out[i, 1] > 0.0:float32
            if (kept[]) {
              out[i, 1] = 1.0:float32
              out[i, 2] = 2.0:float32
            }
          }
        }
        """)


def test_bounds_that_the_loop_changes_are_kept() -> None:
    got = changed(
        keep_decisions,
        """
        serial i in m[0] .. m[1] {
          m[0] = m[0] + 1
        }
        """,
        "out: float32[8, 8]; m: int32[2]",
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer m: int32[2]
        local kept: int32[] {
          kept[] = m[0]
          local kept_1: int32[] {
            kept_1[] = m[1]
            serial i in kept[] .. kept_1[] {
              m[0] = m[0] + 1
            }
          }
        }
        """)


# Nests


def test_mark_loops() -> None:
    got = changed(
        mark_loops,
        """
        serial i in 0 .. 8 {
          serial j in 1 .. 8 {
            out[i, 0] = out[i, 0] + a[i, j]
          }
          serial j2 in 1 .. 8 {
            out[i, j2] = out[i, j2 - 1] * a[i, j2]
          }
        }
        """,
    )
    assert [line.split()[0] for line in got.splitlines() if " in " in line] == [
        "parallel",
        "reduction",
        "serial",
    ]


@pytest.mark.parametrize(
    ("begin", "end", "kind"),
    [("0", "i", "reduction"), ("i + 1", "8", "reduction"), ("0", "i + 1", "serial")],
)
def test_mark_loops_finds_sums_over_the_array_they_are_stored_in(
    begin: str, end: str, kind: str
) -> None:
    """Unless the sum itself is one of its terms."""
    body = """
        serial i in 0 .. 8 {
          serial k in (BEGIN) .. (END) {
            out[0, i] = out[0, i] - (out[0, k] * out[1, k])
          }
        }
        """.replace("BEGIN", begin).replace("END", end)
    assert f"{kind} k in" in changed(mark_loops, body)


def test_distribute_splits_what_does_not_depend_in_a_cycle() -> None:
    got = changed(
        distribute,
        """
        serial i in 1 .. 8 {
          out[i, 0] = out[i - 1, 1] * 2.0:float32
          out[i, 1] = a[i, 1]
          out[i, 2] = out[i - 1, 2] + out[i, 0]
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        parallel i in 1 .. 8 {
          out[i, 1] = a[i, 1]
        }
        parallel i_1 in 1 .. 8 {
          out[i_1, 0] = out[i_1 - 1, 1] * 2.0:float32
        }
        serial i_2 in 1 .. 8 {
          out[i_2, 2] = out[i_2 - 1, 2] + out[i_2, 0]
        }
        """)


def test_distribute_moves_what_is_run_in_order_outside() -> None:
    got = changed(
        distribute,
        """
        serial i in 0 .. 8 {
          if (n[i] > 0) {
            serial j in (i + 1) .. 8 {
              out[i, j] = out[i, j - 1] + a[i, j]
            }
          }
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        serial j in 1 .. 8 {
          parallel i in 0 .. 8 {
            if (n[i] > 0) {
              if ((i + 1) <= j) {
                if (j < 8) {
                  out[i, j] = out[i, j - 1] + a[i, j]
                }
              }
            }
          }
        }
        """)


ROWS_OF_ANY_LENGTH = """
serial i in 0 .. 8 {
  if (a[i, 0] > 0.0:float32) {
    serial j in BEGIN .. END {
      out[i, 0] = (out[i, 0] * a[i, j]) + 1.0:float32
    }
  }
}
"""


@pytest.mark.parametrize(
    "end", ["n[i]", "int32(max(int64(n[i]) - 2:int64, -4:int64))", "int32(int64(n[i]) // 99:int64)"]
)
def test_distribute_runs_as_many_steps_as_the_longest_row_has(end: str) -> None:
    got = changed(distribute, ROWS_OF_ANY_LENGTH.replace("BEGIN", "2").replace("END", end))
    assert got == text(
        """
        buffer out: float32[8, 8]
        buffer j_end: int32[]
        j_end[] = 2
        reduction i in 0 .. 8 {
          if (a[i, 0] > 0.0:float32) {
            j_end[] = max(j_end[], END)
          }
        }
        serial j in 2 .. j_end[] {
          parallel i_1 in 0 .. 8 {
            if (a[i_1, 0] > 0.0:float32) {
              if (2 <= j) {
                if (j < END_1) {
                  out[i_1, 0] = (out[i_1, 0] * a[i_1, j]) + 1.0:float32
                }
              }
            }
          }
        }
        """.replace("END_1", end.replace("[i]", "[i_1]")).replace("END", end)
    )


def test_distribute_skips_steps_beyond_the_longest_row_if_their_number_is_known() -> None:
    rows = ROWS_OF_ANY_LENGTH.replace("BEGIN", "0").replace("END", "min(n[i], 3000)")
    got = changed(distribute, rows)
    assert "serial j in 0 .. 3000 {\n    if (j < j_end[]) {\n      parallel i_1 in 0 .. 8 {" in got


@pytest.mark.parametrize("ends", ["n[i] .. 7", "n[i] .. n[i + 1]", "abs(n[i]) .. 7"])
def test_distribute_runs_through_no_iterations_of_unknown_number(ends: str) -> None:
    rows = ROWS_OF_ANY_LENGTH.replace("BEGIN .. END", ends)
    assert changed(distribute, rows) == text("buffer out: float32[8, 8]" + rows)


def test_distribute_reads_before_it_overwrites() -> None:
    got = changed(
        distribute,
        """
        serial i in 1 .. 7 {
          out[i, 0] = out[i + 1, 0]
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer out_new: float32[6]
        parallel i in 1 .. 7 {
          out_new[i - 1] = out[i + 1, 0]
        }
        parallel i_1 in 1 .. 7 {
          out[i_1, 0] = out_new[i_1 - 1]
        }
        """)


def test_contract() -> None:
    got = changed(
        contract,
        """
        serial k in 0 .. 8 {
          parallel i in 0 .. 8 {
            t[k, i] = out[i, 0]
            u[k] = t[k, i]
          }
          parallel i2 in 0 .. 8 {
            out[i2, 0] = t[k, i2] + u[0]
          }
        }
        """,
        "out: float32[8, 8]; t: float32[8, 8]; u: float32[8]",
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer t: float32[8]
        buffer u: float32[8]
        serial k in 0 .. 8 {
          parallel i in 0 .. 8 {
            t[i] = out[i, 0]
            u[k] = t[i]
          }
          parallel i2 in 0 .. 8 {
            out[i2, 0] = t[i2] + u[0]
          }
        }
        """)


def test_rewrite_conditional_reductions() -> None:
    got = changed(
        rewrite_conditional_reductions,
        """
        serial i in 0 .. 8 {
          if ((n[i] > 0) && (a[0, i] > out[0, 0])) {
            out[0, 0] = a[0, i]
          }
          low[] = (n[i] < low[]) ? n[i] : low[]
          sum[] = (sum[] + n[i]) - i
        }
        """,
        "out: float32[8, 8]; low: int32[]; sum: int32[]",
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer low: int32[]
        buffer sum: int32[]
        serial i in 0 .. 8 {
          if (n[i] > 0) {
            out[0, 0] = (a[0, i] > out[0, 0]) ? a[0, i] : out[0, 0]
          }
          low[] = min(low[], n[i])
          sum[] = sum[] + (n[i] - i)
        }
        """)


def test_rewrite_conditional_reductions_splits_a_search() -> None:
    got = changed(
        rewrite_conditional_reductions,
        """
        serial i in 0 .. 8 {
          if (n[i] > most[]) {
            most[] = n[i]
            at[] = i
          }
        }
        """,
        "out: float32[8, 8]; most: int32[]; at: int32[]",
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer most: int32[]
        buffer at: int32[]
        local most_before: int32[] {
          most_before[] = most[]
          serial i in 0 .. 8 {
            most[] = max(most[], n[i])
          }
          local most_at: int32[] {
            most_at[] = 2147483647
            serial i_1 in 0 .. 8 {
              most_at[] = min(most_at[], ((n[i_1] == most[]) && (n[i_1] > most_before[])) ? i_1 : 2147483647)
            }
            if (most_at[] != 2147483647) {
              at[] = most_at[]
            }
          }
        }
        """)  # noqa: E501


def test_expand_carried() -> None:
    got = changed(
        expand_carried,
        """
        serial j in 0 .. 8 {
          s[] = s[] + a[0, j]
          out[0, j] = s[]
        }
        """,
        "out: float32[8, 8]; s: float32[]",
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer s: float32[]
        buffer s_each: float32[8]
        serial j in 0 .. 8 {
          s_each[j] = ((j == 0) ? s[] : s_each[j - 1]) + a[0, j]
        }
        parallel j_1 in 0 .. 8 {
          out[0, j_1] = s_each[j_1]
        }
        s[] = s_each[7]
        """)


def test_components_follow_the_edges() -> None:
    edges = [(0, 1), (1, 0), (3, 2), (2, 3), (3, 0), (5, 4)]
    assert components(6, edges) == [[2, 3], [0, 1], [5], [4]]


# Gradients


def test_make_indices_explicit() -> None:
    got = changed(
        make_indices_explicit,
        """
        serial i in 0 .. 8 {
          out[i, n[i]] = a[n[i], i] + a[n[i] - 1, i]
        }
        """,
    )
    assert got == text("""
        buffer out: float32[8, 8]
        serial i in 0 .. 8 {
          if ((n[i] >= 0) && (n[i] < 8)) {
            out[i, n[i]] = a[n[i], i] + a[max(min(n[i] - 1, 7), 0), i]
          }
        }
        """)


def test_all_decisions_are_kept_for_going_backwards() -> None:
    got = changed(
        functools.partial(keep_decisions, backwards=True),
        """
        serial i in 0 .. n[0] {
          if (out[0, 0] < a[0, i]) {
            out[0, 0] = a[0, i]
          }
        }
        at[at[0]] = 1
        """,
        "out: float32[8, 8]; at: int32[8]",
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer at: int32[8]
        serial i in 0 .. n[0] {
          local kept: bool[] {
            kept[] = out[0, 0] < a[0, i]
            if (kept[]) {
              out[0, 0] = a[0, i]
            }
          }
        }
        local kept_1: int32[] {
          kept_1[] = at[0]
          at[kept_1[]] = 1
        }
        """)


def test_reverse() -> None:
    kernel = parse_kernel("""
        kernel f(x: float32[4], w: float32[4]) -> (y) {
          buffer y: float32[]
          serial i in 0 .. 4 {
            y[] = y[] + (x[i] * w[3 - i])
          }
        }""")
    reversed_ = reverse(kernel, (True, False))
    verify(reversed_)
    assert kernel_text(reversed_) == textwrap.dedent("""\
        kernel f_adjoint(x: float32[4], w: float32[4], d_y: float32[]) -> (d_x) {
          buffer d_x: float32[4]
          serial i_1 in 0 .. 4 {
            d_x[3 - i_1] = d_x[3 - i_1] + (d_y[] * w[3 - (3 - i_1)])
          }
        }""")


def test_ascend() -> None:
    got = changed(
        ascend,
        """
        parallel i in 0 .. 8 {
          out[7 - i, 7 - (7 - i)] = a[0, 7 - i]
          serial j in 0 .. 8 {
            line[7 - j] = line[7 - j] + a[7 - i, 7 - j]
          }
        }
        parallel k in 0 .. 8 {
          line[7 - k] = a[0, k]
        }
        parallel l in n[0] .. n[1] {
          line[((n[0] + n[1]) - 1) - l] = 1.0:float32
        }
        """,
        "out: float32[8, 8]; line: float32[8]",
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer line: float32[8]
        parallel i in 0 .. 8 {
          out[i, 7 - i] = a[0, i]
          serial j in 0 .. 8 {
            line[7 - j] = line[7 - j] + a[i, 7 - j]
          }
        }
        parallel k in 0 .. 8 {
          line[7 - k] = a[0, k]
        }
        parallel l in n[0] .. n[1] {
          line[l] = 1.0:float32
        }
        """)


# carry_elements


def test_carry_elements() -> None:
    got = changed(
        carry_elements,
        """
        serial i in 1 .. 8 {
          serial j in 0 .. 7 {
            out[i, j + 1] = min(out[i, j], out[i - 1, j]) + a[0, j]
          }
          serial l in 0 .. min(n[i], 5) {
            line[l + 1] = line[l] * line[l]
          }
        }
        """,
        "out: float32[8, 8]; line: float32[8]",
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer line: float32[8]
        serial i in 1 .. 8 {
          local carried: float32[] {
            carried[] = out[i, 0]
            serial j in 0 .. 7 {
              carried[] = min(carried[], out[i - 1, j]) + a[0, j]
              out[i, j + 1] = carried[]
            }
          }
          if (0 < min(n[i], 5)) {
            local carried_1: float32[] {
              carried_1[] = line[0]
              serial l in 0 .. min(n[i], 5) {
                carried_1[] = carried_1[] * carried_1[]
                line[l + 1] = carried_1[]
              }
            }
          }
        }
    """)


def test_carry_elements_of_several_arrays_past_conditions() -> None:
    got = changed(
        carry_elements,
        """
        serial i in 0 .. 8 {
          serial j in 1 .. 8 {
            local best: float32[] {
              if (n[j] < 3) {
                best[] = max(out[i, j - 1], line[j - 1])
              }
              out[i, j] = best[]
              line[j] = line[j - 1] + best[]
            }
          }
        }
        """,
        "out: float32[8, 8]; line: float32[8]",
    )
    assert got == text("""
        buffer out: float32[8, 8]
        buffer line: float32[8]
        serial i in 0 .. 8 {
          local carried_1: float32[] {
            carried_1[] = line[0]
            local carried: float32[] {
              carried[] = out[i, 0]
              serial j in 1 .. 8 {
                local best: float32[] {
                  if (n[j] < 3) {
                    best[] = max(carried[], carried_1[])
                  }
                  carried[] = best[]
                  out[i, j] = carried[]
                  carried_1[] = carried_1[] + best[]
                  line[j] = carried_1[]
                }
              }
            }
          }
        }
    """)


def test_carry_elements_reads_memory_after_the_next_store() -> None:
    body = """serial i in 0 .. 8 { serial j in 1 .. 8 {
        out[i, j] = 1.0:float32 + out[i, j - 1]
        line[j] = line[j] + out[i, j - 1]
    } }"""
    buffers = "out: float32[8, 8]; line: float32[8]"
    assert "carried" not in changed(carry_elements, body, buffers)


@pytest.mark.parametrize(
    "store",
    [
        "out[i, j] = out[i, j + 1] + 1.0:float32",  # the next element, not the one before
        "out[i, j + 2] = out[i, j] + 1.0:float32",  # from two iterations before
        "out[j + 1, i] = out[i, j] + 1.0:float32",  # of another row
        "out[i, n[j]] = out[i, n[j - 1]] + 1.0:float32",  # may be dropped
        "out[i, j + 3] = out[i, j + 2] + 1.0:float32",  # is dropped at the end
        "out[i, j - 1] = out[i, j - 2] + 1.0:float32",  # is clamped at the start
        "if (n[j] < 3) { out[i, j] = out[i, j - 1] }",  # only from some iterations before
        "out[i, j] = out[i, j - 1] out[0, 0] = 1.0:float32",  # which may change in between
        "out[i, j] = 1.0:float32 out[0, j] = out[i, j - 1]",  # the same
        "local t: float32[8] { t[j] = t[j - 1] out[i, j] = t[j] }",  # of a new array each time
    ],
)
def test_carry_elements_leaves_others_alone(store: str) -> None:
    body = f"serial i in 0 .. 8 {{ serial j in 1 .. 6 {{ {store} }} }}"
    assert changed(carry_elements, body) == changed(lambda kernel: kernel, body)
