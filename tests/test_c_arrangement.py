"""How loops are arranged before they are printed as C: by text, and by what they compute."""

from __future__ import annotations

import functools
import math
import random
import re
import textwrap
from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from loop_ir import (
    PASSES_TO_C,
    For,
    Kernel,
    Load,
    Stmt,
    Store,
    c_source,
    carry_elements,
    interpret,
    keep_in_variables,
    kernel_text,
    mark_loops,
    mark_vectors,
    order_along_memory,
    parse_kernel,
    partial_sums,
    place_arrays,
    put_rows_in_lanes,
    run_passes,
    share_among_threads,
    simplify,
    split_at_pivots,
    split_reductions,
    split_searches,
    split_updates,
    statements,
    unroll_and_jam,
    verify,
    version_loops_over_data,
    widen_sums,
    write_out_windows,
)
from loop_ir import c_cost as cost
from loop_native import prepared, printed
from loop_trace import Iteration, Memory, Note, run
from random_examples import examples

from msops.errors import KernelError

Change = Callable[[Kernel], Kernel]

TRANSPOSE = """kernel transpose(a: float32[{n}, {m}]) -> (b) {{
  buffer b: float32[{m}, {n}]
  parallel i in 0 .. {m} {{
    parallel j in 0 .. {n} {{
      b[i, j] = a[j, i]
    }}
  }}
}}"""
SUM = """kernel total(a: {dtype}[{n}, 5], s: {dtype}[{shape}]) -> (s) {{
  serial i in 0 .. {n} {{
    serial j in 0 .. 5 {{
      s[{at}] = {update}
    }}
  }}
}}"""
ROWS = """kernel rows(a: float32[14, 40]) -> (b) {{
  buffer b: float32[16, 42]
  serial i in 0 .. 14 {{
    serial j in 0 .. 40 {{
      b[i + 1, j + 1] = (a[i, j] + {neighbour}) * 0.5:float32
    }}
  }}
}}"""


Run = tuple[str, Iteration]
"""One run of a loop: its variable, and the iterations around it."""


def arranged(change: Change, kernel: Kernel) -> Kernel:
    """Returns the kernel after a change, which must leave it legal and meaning the same."""
    after = change(kernel)
    if after is kernel:
        return kernel
    verify(after)
    inputs = exact_inputs(kernel)
    # C clamps no index, as the interpreter does elsewhere.
    got_all = interpret(after, inputs, check_bounds=True)
    for got, want in zip(got_all, interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want)
    return after


def arranged_apart(change: Change, kernel: Kernel) -> Kernel:
    """Returns what `arranged` does, of which no iterations of parallel loops meet."""
    after = arranged(change, kernel)
    if after is not kernel:
        assert loops_that_meet(after, exact_inputs(kernel)) == set()
    return after


def exact_inputs(kernel: Kernel) -> list[np.ndarray]:
    """Returns inputs of which sums and products are exact in any order, or infinite in each."""
    rng = np.random.default_rng(0)
    return [rng.choice([-1, 1, 2, 4], b.shape).astype(b.dtype) for b in kernel.parameters]


def loops_that_meet(kernel: Kernel, inputs: list[np.ndarray]) -> set[str]:
    """Returns the parallel loops of which two iterations touch an element that one writes.

    Run one after the other they may give the right sums all the same.
    """
    parallel = {s.var for s in statements(kernel.body) if is_parallel(s)}
    # Where nothing is stored nothing meets.
    stored_to = {s.buffer for s in statements(kernel.body) if isinstance(s, Store)}
    # The iterations that touch an element, and those that write it, in their order.
    touched: dict[object, list[Iteration]] = {}
    written: dict[object, list[Iteration]] = {}
    # Kept alive, so that no other memory gets the identity of one.
    memories: dict[int, Memory] = {}

    def note_of(node: Load | Store, stmt: Stmt) -> Note | None:
        if node.buffer not in stored_to:
            return None

        def note(memory: Memory, iteration: Iteration, indices: object, element: object) -> None:
            if element is None:
                return
            key = (id(memory), element)
            memories.setdefault(id(memory), memory)
            for iterations in (touched, written) if node is stmt else (touched,):
                known = iterations.get(key)
                if known is None:
                    iterations[key] = [iteration]
                elif known[-1] is not iteration:
                    known.append(iteration)

        return note

    run(kernel, inputs, note_of, lambda loop: any(map(is_parallel, statements((loop,)))))
    meeting: set[str] = set()
    for key, writing in written.items():
        if len(touched[key]) == 1:
            continue
        # Of each run of a loop that writes the element: the iterations that touch it.
        touching: dict[Run, set[int]] = {r: set() for i in writing for r in runs_of(i, parallel)}
        for iteration in touched[key]:
            for of, value in runs_of(iteration, parallel).items():
                if of in touching:
                    touching[of].add(value)
        meeting |= {var for (var, _), values in touching.items() if len(values) > 1}
    return meeting


def runs_of(iteration: Iteration, loops: set[str]) -> dict[Run, int]:
    """Returns the iteration of each of the loops, by its name and what is around it."""
    return {(v, iteration[:d]): value for d, (v, value) in enumerate(iteration) if v in loops}


def is_parallel(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and stmt.kind == "parallel"


@pytest.mark.parametrize(
    ("index", "meeting"), [("i", {"j"}), ("j", {"i"}), ("0", {"i", "j"}), ("(i * 2) + j", set())]
)
def test_iterations_that_meet_are_found(index: str, meeting: set[str]) -> None:
    kernel = parse_kernel(f"""kernel k(a: float32[4]) -> (b) {{
      buffer b: float32[8]
      parallel i in 0 .. 4 {{ parallel j in 0 .. 2 {{ b[{index}] = a[i] }} }}
    }}""")
    assert loops_that_meet(kernel, exact_inputs(kernel)) == meeting


def body_of(kernel: Kernel) -> str:
    return textwrap.dedent("\n".join(kernel_text(kernel).splitlines()[1:-1]))


def marked(text: str) -> Kernel:
    return mark_loops(parse_kernel(text))


def test_loops_that_cross_a_large_array_are_tiled() -> None:
    kernel = parse_kernel(TRANSPOSE.format(n=128, m=96))
    assert body_of(arranged(order_along_memory, kernel)) == textwrap.dedent("""\
        buffer b: float32[96, 128]
        parallel i_block in 0 .. 12 {
          parallel j_block in 0 .. 2 {
            parallel i in (i_block * 8) .. ((i_block * 8) + 8) {
              parallel j in (j_block * 64) .. ((j_block * 64) + 64) {
                b[i, j] = a[j, i]
              }
            }
          }
        }""")


@pytest.mark.parametrize(("n", "m"), [(129, 95), (70, 1000), (1000, 9)])
def test_the_last_tile_may_be_a_part(n: int, m: int) -> None:
    kernel = parse_kernel(TRANSPOSE.format(n=n, m=m))
    assert arranged(order_along_memory, kernel) != kernel


@pytest.mark.parametrize(
    "text",
    [
        TRANSPOSE.format(n=64, m=64),
        TRANSPOSE.format(n=4096, m=8),
        TRANSPOSE.format(n=128, m=128).replace("a[j, i]", "a[i, j]"),
        TRANSPOSE.format(n=128, m=128).replace("parallel j", "serial j"),
    ],
    ids=["small", "thin", "along", "in order"],
)
def test_other_loops_are_not_tiled(text: str) -> None:
    kernel = parse_kernel(text)
    assert order_along_memory(kernel) == kernel


def test_a_long_sum_is_one_of_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-9)
    text = SUM.format(dtype="float32", n=200, shape="", at="", update="s[] + a[i, j]")
    assert body_of(arranged(split_reductions, marked(text))) == textwrap.dedent("""\
        buffer s_parts: float32[16]
        parallel i_block in 0 .. 16 {
          local s_part: float32[] {
            s_part[] = 0.0:float32
            reduction i in (i_block * 13) .. min((i_block * 13) + 13, 200) {
              reduction j in 0 .. 5 {
                s_part[] = s_part[] + a[i, j]
              }
            }
            s_parts[i_block] = s_part[]
          }
        }
        reduction i_block_1 in 0 .. 16 {
          s[] = s[] + s_parts[i_block_1]
        }""")


def test_two_or_four_threads_have_as_many_parts_each(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = marked(SUM.format(dtype="float32", n=9600, shape="", at="", update="s[] + a[i, j]"))
    found = set()
    for part in range(1, 60):
        monkeypatch.setattr(cost, "BLOCK_SECONDS", cost.native_seconds(kernel) * part / 60)
        found |= set(
            re.findall(r"s_parts: float32\[(\d+)\]", kernel_text(split_reductions(kernel)))
        )
    assert found == {"2", "4", "8", "12", "16"}


@pytest.mark.parametrize(("rows", "parts"), [(48, 16), (64, 2), (200, 5), (600, 15), (605, 11)])
def test_parts_of_rows_in_order_fill_lanes(
    monkeypatch: pytest.MonkeyPatch, rows: int, parts: int
) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-9)
    kernel = marked(f"""kernel leaks(a: float32[{rows}, 40], k: float32[]) -> (s, y) {{
      buffer s: float32[]
      buffer y: float32[{rows}, 40]
      serial i in 0 .. {rows} {{
        local m: float32[] {{
          serial j in 0 .. 40 {{
            m[] = (k[] * m[]) + a[i, j]
            y[i, j] = m[]
            s[] = s[] + (sin(m[]) * m[])
          }}
        }}
      }}
    }}""")
    after = kernel_text(split_reductions(kernel))
    assert re.findall(r"s_parts: float32\[(\d+)\]", after) == [str(parts)]
    in_lanes = kernel_text(run_passes(kernel, PASSES_TO_C))
    assert bool(re.search(r"m: float32\[(16|32)\]", in_lanes)) == (rows >= 64)


@pytest.mark.parametrize("dtype", ["float32", "int16", "float64"])
@pytest.mark.parametrize(
    "update",
    ["s[{}] + a[i, j]", "s[{}] - a[i, j]", "s[{}] * a[i, j]", "min(s[{}], a[i, j])",
     "max(s[{}], a[i, j])", "a[i, j] + s[{}]"],
)  # fmt: skip
@pytest.mark.parametrize(("shape", "at"), [("", ""), ("1", "0"), ("5", "j"), ("2, 5", "1, 4 - j")])
def test_reductions_in_parts(
    monkeypatch: pytest.MonkeyPatch, dtype: str, update: str, shape: str, at: str
) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-9)
    kernel = marked(SUM.format(dtype=dtype, n=203, shape=shape, at=at, update=update.format(at)))
    assert "s_parts" in kernel_text(arranged(split_reductions, kernel))


@pytest.mark.parametrize(
    ("update", "shape", "at"),
    [("s[] + a[i, j]", "", ""), ("s[i] + a[i, j]", "200", "i"), ("a[i, j]", "5", "j")],
    ids=["short", "rows", "no sum"],
)
def test_what_is_not_split(
    monkeypatch: pytest.MonkeyPatch, update: str, shape: str, at: str
) -> None:
    if shape:
        monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-9)
    kernel = marked(SUM.format(dtype="float32", n=200, shape=shape, at=at, update=update))
    assert split_reductions(kernel) == kernel


@pytest.mark.parametrize(("shape", "at"), [("", ""), ("5", "j")])
def test_sums_in_locals_are_in_parts(monkeypatch: pytest.MonkeyPatch, shape: str, at: str) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-9)
    kernel = marked(f"""kernel mean(a: float32[203, 5]) -> (m) {{
      buffer m: float32[3, 5]
      serial k in 1 .. 3 {{
        local s: float32[{shape}] {{
          serial i in 0 .. 203 {{ serial j in 0 .. 5 {{ s[{at}] = s[{at}] + a[i, j] }} }}
          parallel n in 0 .. 5 {{ m[k, n] = m[k - 1, n] + s[{at.replace("j", "n")}] }}
        }}
      }}
    }}""")
    assert "s_parts" in kernel_text(arranged(split_reductions, kernel))


PICKED = """kernel picked(p: int32[203, 5], a: {dtype}[203, 5], s: {dtype}[{shape}]) -> (s) {{
  serial i in 0 .. 203 {{
    serial j in 0 .. 5 {{
      {update}
    }}
  }}
}}"""


@pytest.mark.parametrize("most_local_bytes", [0, 1 << 15], ids=["shared", "local"])
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize(
    ("shape", "update"),
    [
        ("7", "s[p[i, j]] = s[p[i, j]] + a[i, j]"),
        ("7", "s[p[i, j] - 2] = max(s[p[i, j] - 2], a[i, j])"),
        ("3, 5", "s[p[i, j], j] = s[p[i, j], j] * a[i, j]"),
        ("7", "if (p[i, j] < 3) {\n s[p[i, j]] = s[p[i, j]] + a[i, j]\n }"),
        ("7", "s[p[i, j]] = s[p[i, j]] + a[i, j] s[3] = s[3] - a[i, j]"),
    ],
    ids=["a histogram", "some outside", "rows", "a condition", "two"],
)
def test_histograms_are_sums_of_parts(
    monkeypatch: pytest.MonkeyPatch, dtype: str, shape: str, update: str, most_local_bytes: int
) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-9)
    monkeypatch.setattr(partial_sums, "_MOST_LOCAL_BYTES", most_local_bytes)
    kernel = marked(PICKED.format(dtype=dtype, shape=shape, update=update))
    after = split_reductions(kernel)
    verify(after)
    assert "s_parts" in kernel_text(after)
    assert ("local s_part" in kernel_text(after)) == (most_local_bytes > 0)
    count = int(re.findall(r"buffer s_parts: \w+\[(\d+)", kernel_text(after))[0])
    assert (count <= 4) == (most_local_bytes == 0)
    inputs = exact_inputs(kernel)
    assert loops_that_meet(after, inputs) == set()
    # Some indices are out of range: what is stored there is dropped.
    for got, want in zip(interpret(after, inputs), interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("shape", "update"),
    [
        ("7", "s[p[i, j]] = s[p[i, j]] + a[i, j] s[p[i, 0]] = max(s[p[i, 0]], a[i, j])"),
        ("7", "s[p[i, j]] = s[p[i, j]] + s[0]"),
        ("7", "s[int32(s[p[i, j]])] = s[int32(s[p[i, j]])] + a[i, j]"),
        ("1000", "s[p[i, j]] = s[p[i, j]] + a[i, j]"),
    ],
    ids=["two operations", "it is read", "it picks", "many elements"],
)
def test_histograms_that_are_not_split(
    monkeypatch: pytest.MonkeyPatch, shape: str, update: str
) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-9)
    kernel = marked(PICKED.format(dtype="float32", shape=shape, update=update))
    assert split_reductions(kernel) == kernel


LAYER = """kernel layer(x: float32[67, 5], w: float32[5], d: float32[5]) -> (y, d, top) {{
  buffer y: float32[71, 5]
  buffer top: float32[]
  serial i in 0 .. 67 {{
    local t: float32[] {{
      serial j in 0 .. 5 {{
        t[] = t[] + x[i, j]
      }}
      serial k in 0 .. 5 {{
        {row}
        d[k] = d[k] + (t[] * x[i, k])
      }}
      top[] = max(top[], t[])
    }}
  }}
}}"""


@pytest.mark.parametrize(
    ("row", "is_split"),
    [
        ("y[66 - i, k] = t[] * w[k]", True),
        ("y[i // 2, k] = y[i // 2, k] + t[]", False),
        ("y[i + k, 0] = y[i + k, 0] + t[]", False),
        ("y[i, k] = y[i, k] + d[k]", False),
    ],
    ids=["rows", "shared rows", "rows that meet", "a sum that is read"],
)
def test_sums_beside_rows_are_in_parts(
    monkeypatch: pytest.MonkeyPatch, row: str, is_split: bool
) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-9)
    text = kernel_text(arranged(split_reductions, marked(LAYER.format(row=row))))
    assert ("d_parts[i_block, " in text, "top_parts[i_block]" in text) == (is_split, is_split)


@pytest.mark.parametrize(("at", "is_split"), [("0", True), ("k", False)])
def test_long_sums_of_loops_that_may_be_short_are_not_split(
    monkeypatch: pytest.MonkeyPatch, at: str, is_split: bool
) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-9)
    length = 1 if is_split else 900
    text = f"""kernel rows(first: int32[201], a: float32[900], s: float32[{length}]) -> (s) {{
      serial i in 0 .. 200 {{
        serial k in first[i] .. first[i + 1] {{
          s[{at}] = s[{at}] + a[k]
        }}
      }}
    }}"""
    assert ("s_parts" in kernel_text(split_reductions(marked(text)))) == is_split


def test_rows_in_order_go_side_by_side() -> None:
    kernel = marked(ROWS.format(neighbour="(b[i, j + 1] + b[i + 1, j])"))
    got = body_of(arranged(unroll_and_jam, kernel))
    assert got.startswith("buffer b: float32[16, 42]\nserial i_group in 0 .. 3 {\n")
    assert "serial i in 12 .. 14 {" in got
    assert got.count("b[") == 3 * 5


@pytest.mark.parametrize(("count", "is_jammed"), [(16, True), (17, False)])
def test_rows_of_many_statements_stay_apart(count: int, is_jammed: bool) -> None:
    text = ROWS.format(neighbour="b[i + 1, j]")
    (store,) = (line for line in text.splitlines() if "b[i + 1, j + 1] =" in line)
    kernel = marked(text.replace(store, "\n".join([store] * count)))
    assert (arranged(unroll_and_jam, kernel) != kernel) == is_jammed


@pytest.mark.parametrize(
    ("neighbour", "lag"),
    [
        ("b[i + 1, j]", 0),
        ("b[i, j]", 0),
        ("b[i + 2, j + 1]", 0),
        # A row needs what lies ahead in the one before, or what the one after has yet to overwrite.
        ("b[i, j + 2]", 1),
        ("b[i + 2, j]", 1),
        ("b[i, min(j + 4, 41)]", 3),
        # Two elements ahead in two rows: one in each.
        ("b[max(i - 1, 0), min(j + 3, 41)]", 1),
        ("b[i, min(j + 6, 41)]", None),
        ("b[i, 40 - j]", None),
    ],
)
def test_rows_are_behind_one_another_as_dependences_want(neighbour: str, lag: int | None) -> None:
    kernel = marked(ROWS.format(neighbour=f"(b[i + 1, j] + {neighbour})"))
    after = arranged(unroll_and_jam, kernel)
    if lag is None:
        assert after is kernel
        return
    together = re.search(rf" in {3 * lag} .. 40 {{\n(( +b\[.* = .*\n)+)", body_of(after))
    assert together is not None
    assert together[1].count(" = ") == 4


@pytest.mark.parametrize(("columns", "is_jammed"), [(11, False), (12, True), (13, True)])
def test_rows_that_are_never_all_in_order_stay(columns: int, is_jammed: bool) -> None:
    text = ROWS.format(neighbour="(b[i + 1, j] + b[i, min(j + 4, 41)])")
    kernel = marked(text.replace("0 .. 40", f"0 .. {columns}"))
    assert (arranged(unroll_and_jam, kernel) is not kernel) == is_jammed


@settings(max_examples=examples(60), deadline=None)
@given(
    neighbours=st.lists(
        st.tuples(st.integers(-2, 2), st.integers(-3, 3)), min_size=1, max_size=4, unique=True
    ),
    rows=st.integers(8, 11),
    columns=st.integers(8, 20),
)
def test_skewed_rows_are_the_same(
    neighbours: list[tuple[int, int]], rows: int, columns: int
) -> None:
    reads = [f"b[i + {di + 2}, j + {dj + 3}]" for di, dj in neighbours]
    terms = functools.reduce("({} + {})".format, reads)
    kernel = marked(f"""kernel relax(a: float32[{rows + 4}, {columns + 6}]) -> (b) {{
  buffer b: float32[{rows + 4}, {columns + 6}]
  parallel p in 0 .. {rows + 4} {{
    parallel q in 0 .. {columns + 6} {{
      b[p, q] = a[p, q]
    }}
  }}
  serial t in 0 .. 2 {{
    serial i in 0 .. {rows} {{
      serial j in 0 .. {columns} {{
        b[i + 2, j + 3] = {terms} * 0.25:float32
      }}
    }}
  }}
}}""")
    arranged(unroll_and_jam, kernel)


def test_rows_of_a_parallel_loop_take_along_what_stands_beside_them() -> None:
    kernel = marked("""kernel sums(a: float32[9, 40]) -> (b) {
  buffer b: float32[9, 40]
  serial i in 0 .. 9 {
    b[i, 0] = a[i, 0]
    serial j in 0 .. 39 {
      b[i, j + 1] = b[i, j] + a[i, j + 1]
    }
  }
}""")
    got = body_of(arranged(unroll_and_jam, kernel))
    assert "parallel i_group in 0 .. 2 {" in got
    assert "parallel i in 8 .. 9 {" in got or "b[8, 0] = a[8, 0]" in got


def test_each_row_has_locals_of_its_own() -> None:
    text = ROWS.format(neighbour="b[i + 1, j]")
    store = next(line for line in text.splitlines() if "b[i + 1, j + 1] =" in line)
    with_local = f"""      local t: float32[] {{
        t[] = b[i + 1, j] - a[i, j]
        {store.strip().replace("a[i, j]", "t[]")}
      }}"""
    got = body_of(arranged(unroll_and_jam, marked(text.replace(store, with_local))))
    assert got.count("local t") == 5


def test_all_rows_of_an_iteration_go_side_by_side() -> None:
    kernel = marked("""kernel sweeps(a: float32[8, 40]) -> (b) {
  buffer b: float32[8, 40]
  serial i in 0 .. 8 {
    serial j in 0 .. 39 {
      b[i, j + 1] = (b[i, j] * 0.5:float32) + a[i, j + 1]
    }
    serial j_1 in 1 .. 40 {
      b[i, 39 - j_1] = (b[i, 40 - j_1] * 0.5:float32) + b[i, 39 - j_1]
    }
  }
}""")
    got = body_of(arranged(unroll_and_jam, kernel))
    rows = re.findall(r"serial j\w* in . .. \d+ {\n((?: +b\[.* = .*\n)+)", got)
    assert [row.count(" = ") for row in rows] == [4, 4]


def test_states_of_rows_are_locals_around_those_that_go_side_by_side() -> None:
    kernel = marked("""kernel filter(a: float32[9, 40]) -> (b, last) {
  buffer b: float32[9, 40]
  buffer last: float32[9]
  serial i in 0 .. 9 {
    local s: float32[] {
      s[] = a[i, 0]
      local t: float32[] {
        serial j in 0 .. 40 {
          b[i, j] = a[i, j] - s[]
          s[] = t[] + (a[i, j] * 0.5:float32)
          t[] = b[i, j] * 0.25:float32
        }
        last[i] = t[]
      }
    }
  }
}""")
    got = body_of(arranged(unroll_and_jam, kernel))
    assert "parallel i_group in 0 .. 2 {" in got
    (together,) = re.findall(r"serial j\w* in 0 .. 40 {\n((?: +\w+\[.* = .*\n){12})", got)
    assert len(set(re.findall(r"(s\w*)\[\] = ", together))) == 4


# The larger of a pixel and its right neighbour comes first in `w`; the last pixel stays.
WINDOW = """kernel order(a: float32[3, {m}]) -> (b) {{
  buffer b: float32[3, {n}]
  parallel i in 0 .. 3 {{
    parallel j in 0 .. {n} {{
      local w: float32[2] {{
        serial p in 0 .. 2 {{
          w[p] = a[i, j + p]
        }}
        serial q in 0 .. 1 {{
          serial r in (q + 1) .. 2 {{
            if (w[q] < w[r]) {{
              local t: float32[] {{
                t[] = w[q]
                w[q] = w[r]
                w[r] = t[]
              }}
            }}
          }}
        }}
        b[i, j] = w[0] - w[{last}]
      }}
    }}
  }}
}}"""


def window(n: int, last: str = "1") -> Kernel:
    return parse_kernel(WINDOW.format(n=n, m=n + 1, last=last))


def test_windows_are_written_out_with_their_arrays_in_variables() -> None:
    assert body_of(arranged(write_out_windows, window(32))) == textwrap.dedent("""\
        buffer b: float32[3, 32]
        parallel i in 0 .. 3 {
          parallel j in 0 .. 32 {
            local w_2: float32[] {
              local w_1: float32[] {
                w_1[] = a[i, j]
                w_2[] = a[i, j + 1]
                if (w_1[] < w_2[]) {
                  local t: float32[] {
                    t[] = w_1[]
                    w_1[] = w_2[]
                    w_2[] = t[]
                  }
                }
                b[i, j] = w_1[] - w_2[]
              }
            }
          }
        }""")


def test_an_array_that_is_indexed_by_data_stays_one() -> None:
    kernel = window(32, last="int32(w[0]) % 2")
    text = body_of(arranged(write_out_windows, kernel))
    assert "local w: float32[2]" in text
    assert "w[1] = a[i, j + 1]" in text


DERIVATIVES = """kernel derivatives(d: float32[8, {terms}], u: float32[9, 40, 40]) -> (b) {{
  buffer b: float32[6, 40, 40]
  parallel k in 0 .. 6 {{
    parallel j in 0 .. 6 {{
      parallel i in 0 .. {positions} {{
        local r: float32[] {{ local s: float32[] {{
          {kind} l in 0 .. {terms} {{
            r[] = r[] + ({row} * u[k, j, l])
            s[] = s[] + ((d[j, l] * u[k, l, i]) + (d[k, l] * u[l, j, i]))
          }}
          b[k, {stored}] = r[] + (s[] * u[k, l0, i])
        }} }}
      }}
    }}
  }}
}}""".replace("l0", "0")


@pytest.mark.parametrize(
    ("parts", "is_written_out"),
    [
        ({}, True),
        ({"positions": 7}, False),
        ({"terms": 9}, False),
        ({"kind": "serial"}, False),
        ({"row": "d[j, l]"}, True),
        ({"row": "(d[i, l] * u[k, i, l])"}, False),
        ({"stored": "i, j"}, False),
        ({"positions": 33, "row": "d[j, l]"}, True),
        ({"positions": 33, "terms": 9, "row": "d[j, int32(u[k, j, i]) % 8]"}, True),
    ],
    ids=[
        "fewer apart", "few positions", "many terms", "in order", "none apart", "as many apart",
        "stored apart", "a long row", "picked",
    ],
)  # fmt: skip
def test_positions_of_small_tensors_fill_vectors_if_terms_are_farther_apart(
    parts: dict[str, object], is_written_out: bool
) -> None:
    given = {
        "kind": "reduction",
        "positions": 8,
        "terms": 8,
        "row": "d[i, l]",
        "stored": "j, i",
        **parts,
    }
    text = body_of(arranged(write_out_windows, parse_kernel(DERIVATIVES.format(**given))))
    assert (" l in 0" not in text) == is_written_out


def test_windows_at_an_edge_are_under_conditions_on_outer_loops() -> None:
    kernel = parse_kernel("""kernel padded(a: float32[4, 40]) -> (b) {
  buffer b: float32[4, 40]
  parallel i in 0 .. 4 {
    parallel j in 0 .. 40 {
      serial p in 0 .. 3 {
        serial q in 0 .. 3 {
          if ((((i + p) >= 1) && ((i + p) < 5)) && (((j + q) >= 1) && ((j + q) < 41))) {
            b[i, j] = b[i, j] + a[(i + p) - 1, (j + q) - 1]
          }
        }
      }
    }
  }
}""")
    text = body_of(arranged(write_out_windows, kernel))
    assert text.count("b[i, j] = ") == 9
    assert "serial" not in text


def test_a_local_array_that_nothing_touches_leaves_a_window_written_out() -> None:
    kernel = parse_kernel("""kernel f(a: int32[32], c: int32[3]) -> (b) {
      buffer b: int32[32]
      parallel i in 0 .. 32 { local none: int32[3] {
        b[i] = a[i]
        reduction k in 0 .. 3 { b[i] = b[i] + c[k] }
      } }
    }""")
    text = body_of(arranged(write_out_windows, kernel))
    assert "b[i] = b[i] + c[2]" in text
    assert "none" not in text


@pytest.mark.parametrize(
    "kernel",
    [
        pytest.param(window(31), id="too few positions for vectors"),
        pytest.param(
            parse_kernel(
                """kernel rows(a: float32[64, 300]) -> (b) {
  buffer b: float32[64]
  parallel i in 0 .. 64 {
    reduction j in 0 .. 300 {
      b[i] = b[i] + a[i, j]
    }
  }
}"""
            ),
            id="memory is not read in its order",
        ),
        pytest.param(
            parse_kernel(
                """kernel columns(a: float32[33, 64]) -> (b) {
  buffer b: float32[64]
  parallel i in 0 .. 64 {
    reduction j in 0 .. 33 {
      b[i] = b[i] + a[j, i]
    }
  }
}"""
            ),
            id="a long sum",
        ),
    ],
)
def test_other_loops_stay(kernel: Kernel) -> None:
    assert write_out_windows(kernel) is kernel


@pytest.mark.parametrize(
    ("terms", "index", "is_written_out"),
    [(6, "at[k, {}]", True), (7, "at[k, {}]", False), (19, "({} + k)", True)],
)
def test_windows_of_very_many_picked_elements_stay(
    terms: int, index: str, is_written_out: bool
) -> None:
    value = "y[j]"
    for term in range(terms):
        value = f"({value} + a[j + {index.format(term)}])"
    kernel = parse_kernel(f"""kernel picked(a: float32[400], at: int32[30, 20]) -> (y) {{
      buffer y: float32[64]
      parallel j in 0 .. 64 {{
        reduction k in 0 .. 30 {{ y[j] = {value} }}
      }}
    }}""")
    assert (write_out_windows(kernel) is not kernel) == is_written_out


# Each column is a recurrence of its own.
COLUMNS = """kernel columns(a: float32[9, {n}, {m}]) -> (b) {{
  buffer b: float32[9, {n}, {m}]
  serial t in 0 .. 8 {{
    parallel i in 0 .. {n} {{
      parallel j in 0 .. {m} {{
        b[t + 1, i, j] = b[t, {at}] * a[t, i, j]
      }}
    }}
  }}
}}"""


def nest_of(kernel: Kernel) -> list[str]:
    """Returns the lines of a kernel that open loops, without what is around them."""
    return [line.strip(" {") for line in kernel_text(kernel).splitlines() if " .. " in line]


def columns(n: int, m: int, at: str = "i, j") -> Kernel:
    return parse_kernel(COLUMNS.format(n=n, m=m, at=at))


def test_parallel_loops_go_around_an_order_of_time() -> None:
    # The last loop walks along the rows in memory, so it stays inside.
    assert nest_of(arranged(order_along_memory, columns(6, 40))) == [
        "parallel i in 0 .. 6",
        "serial t in 0 .. 8",
        "parallel j in 0 .. 40",
    ]


def test_an_order_that_walks_along_memory_goes_innermost() -> None:
    kernel = parse_kernel(
        """kernel rows(a: float32[6, 40, 9]) -> (b) {
  buffer b: float32[6, 40, 9]
  serial t in 0 .. 8 {
    parallel i in 0 .. 6 {
      parallel j in 0 .. 40 {
        local x: float32[] {
          x[] = b[i, j, t] * 2.0:float32
          b[i, j, t + 1] = x[] + a[i, j, t]
        }
      }
    }
  }
}"""
    )
    assert nest_of(arranged(order_along_memory, kernel)) == [
        "parallel i in 0 .. 6",
        "parallel j in 0 .. 40",
        "serial t in 0 .. 8",
    ]


@pytest.mark.parametrize(("rows", "innermost"), [(3, "j"), (96, "k")])
def test_terms_go_innermost_along_memory_unless_tiles_take_them(rows: int, innermost: str) -> None:
    kernel = parse_kernel(
        f"""kernel product(a: float32[{rows}, 96], b: float32[64, 96]) -> (c) {{
  buffer c: float32[{rows}, 64]
  parallel i in 0 .. {rows} {{
    reduction j in 0 .. 96 {{
      parallel k in 0 .. 64 {{
        c[i, k] = c[i, k] + (a[i, j] * b[k, j])
      }}
    }}
  }}
}}"""
    )
    *_, last = nest_of(arranged(order_along_memory, kernel))
    assert last.split()[1] == innermost


def test_a_row_that_is_worth_threads_goes_out_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-9)
    kernel = parse_kernel(
        """kernel channels(a: float32[8, 512]) -> (b) {
  buffer b: float32[9, 512]
  serial t in 0 .. 8 {
    parallel j in 0 .. 512 {
      b[t + 1, j] = b[t, j] * a[t, j]
    }
  }
}"""
    )
    assert nest_of(arranged(order_along_memory, kernel)) == [
        "parallel j_block in 0 .. 4",
        "serial t in 0 .. 8",
        "parallel j in (j_block * 128) .. ((j_block * 128) + 128)",
    ]


def test_a_loop_that_scatters_goes_outside_of_one_that_gathers() -> None:
    kernel = parse_kernel(
        """kernel turned(a: float32[32, 48]) -> (b) {
          buffer b: float32[48, 32]
          parallel i in 0 .. 32 { parallel j in 0 .. 48 { b[j, i] = a[i, j] } }
        }"""
    )
    assert nest_of(arranged(order_along_memory, kernel)) == [
        "parallel j in 0 .. 48",
        "parallel i in 0 .. 32",
    ]


@pytest.mark.parametrize(
    ("at", "bound"),
    [
        pytest.param("i, (j + 1) % 40", "8", id="neighbours in a row"),
        pytest.param("(i + 1) % 6, j", "8", id="neighbours in a column"),
        pytest.param("i, j", "(int32(b[0, 0, 0]) + 8)", id="a bound that may change"),
    ],
)
def test_loops_whose_iterations_meet_stay_inside(at: str, bound: str) -> None:
    text = COLUMNS.format(n=6, m=40, at=at).replace("0 .. 8", f"0 .. {bound}")
    kernel = parse_kernel(text)
    assert order_along_memory(kernel) is kernel


# Threads.

SQUARES = """kernel squares(a: float32[{n}, {m}]) -> (b) {{
  buffer b: float32[{n}, {m}]
  parallel i in 0 .. {n} {{
    parallel j in 0 .. {m} {{
      parallel k in 0 .. {k} {{
        b[i, j] = sqrt(a[i, j])
      }}
    }}
  }}
}}"""


def shared_loops(
    text: str, monkeypatch: pytest.MonkeyPatch, seconds: float = 1e-8
) -> dict[str, int]:
    """Returns the least work for a thread of each loop that threads share, in iterations.

    Args:
      text: the kernel.
      monkeypatch: pytest's.
      seconds: of the least work that is worth a thread.
    """
    monkeypatch.setattr(cost, "BLOCK_SECONDS", seconds)
    after = arranged(share_among_threads, parse_kernel(text))
    assert parse_kernel(kernel_text(after)) == after
    found = re.findall(r"parallel (\w+) in .* @threads\((\d+)\)", kernel_text(after))
    return {var: int(grain) for var, grain in found}


def test_threads_share_the_outermost_loop_that_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [*shared_loops(SQUARES.format(n=40, m=4, k=8), monkeypatch)] == ["i"]


def test_threads_share_the_pairs_of_a_short_loop_and_the_one_inside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = shared_loops(SQUARES.format(n=3, m=40, k=8), monkeypatch)
    assert [*shared] == ["i", "j"]
    assert shared["i"] == shared["j"]


STEPS = """kernel steps(a: float32[{n}, 64]) -> (b) {{
  buffer b: float32[{n}, 64]
  buffer c: float32[{n}, 64]
  buffer d: float32[{n}, 64]
  serial t in 0 .. 9 {{
    parallel i in 0 .. {n} {{
      parallel j in 0 .. 64 {{ c[i, j] = exp(b[i, j]) + (exp(a[i, j]) / exp(c[i, j])) }}
    }}
    parallel k in 0 .. {n} {{ parallel l in 0 .. 64 {{ b[k, l] = {copied}[k, l] }} }}
    parallel m in 0 .. {n} {{ parallel o in 0 .. 64 {{ d[m, o] = d[m, o] + 1.0:float32 }} }}
    parallel p in 0 .. 2 {{ b[p, 0] = c[p, 0] }}
  }}
}}"""


@pytest.mark.parametrize(
    ("n", "copied", "seconds", "shared"),
    [
        (500, "c", 2.5e-6, ["i", "k"]),
        (500, "d", 2.5e-6, ["i", "k"]),
        (500, "c", 4e-6, ["i"]),
        (500, "c", 4e-5, []),
        (100, "c", 4e-7, ["i"]),
    ],
    ids=[
        "what threads wrote",
        "what they read",
        "too little work",
        "no heavy step",
        "small arrays",
    ],
)
def test_threads_share_light_steps_beside_heavy_ones(
    n: int, copied: str, seconds: float, shared: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = STEPS.format(n=n, copied=copied)
    assert [*shared_loops(text, monkeypatch, seconds)] == shared


def test_threads_share_a_light_loop_that_may_be_as_long_as_data_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """kernel rows(x: float32[1000000], last: int32[2]) -> (y) {
      buffer y: float32[2, 1000000]
      parallel s in 0 .. 2 {
        parallel k in 0 .. max(last[s], 0) { y[s, k] = sqrt(x[k]) }
      }
    }"""
    assert [*shared_loops(text, monkeypatch, 1e-3)] == ["k"]


def test_more_work_in_an_iteration_means_fewer_for_a_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    little = shared_loops(SQUARES.format(n=400, m=1, k=1), monkeypatch)
    much = shared_loops(SQUARES.format(n=400, m=4, k=8), monkeypatch)
    assert 1 <= much["i"] < little["i"]


@pytest.mark.parametrize(
    "text",
    [
        SQUARES.format(n=40, m=4, k=8).replace("parallel", "serial"),
        SQUARES.format(n=1, m=1, k=1),
        """kernel last(a: float32[40000]) -> (b) {
          buffer b: float32[1]
          local t: float32[] {
            parallel i in 0 .. 40000 { t[] = 1.0:float32 }
            b[0] = t[]
          }
        }""",
    ],
    ids=["in order", "little work", "writes a variable"],
)
def test_one_thread_runs_other_loops(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared_loops(text, monkeypatch) == {}


PATHS = """kernel paths(p: float32[{n}, {n}]) -> (p) {{
  serial k in {first} .. {last} {{
    serial i in 0 .. {n} {{
      serial j in 0 .. {n} {{
        p[i, j] = min(p[i, j], p[i, k] + p[k, j])
      }}
    }}
  }}
}}"""


def test_loops_are_split_where_they_write_what_the_others_read() -> None:
    after = arranged(split_at_pivots, parse_kernel(PATHS.format(n=5, first=0, last=5)))
    assert [line for line in nest_of(after) if line.startswith("serial i")] == [
        "serial i in 0 .. k",
        "serial i_2 in (k + 1) .. 5",
    ]
    kinds = [line.partition(" in ")[0] for line in nest_of(mark_loops(after))]
    # All but the order of the pivots is parallel.
    assert kinds[0] == "serial k"
    assert len(kinds) == 6
    assert all(kind.startswith("parallel") for kind in kinds[1:])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(PATHS.format(n=5, first=0, last=6), id="a pivot that may be past the end"),
        pytest.param(
            PATHS.format(n=5, first=0, last=5)
            .replace("in 0 .. 5 {\n      s", "in 1 .. 5 {\n      s")
            .replace("j in 0 .. 5", "j in (k + 1) .. 5")
            .replace("i in 1 .. 5", "i in (k + 1) .. 5"),
            id="only what is after the pivot",
        ),
        pytest.param(
            """kernel squared(d: float32[9, 9], x: float32[9, 9]) -> (d_x) {
  buffer d_x: float32[9, 9]
  serial i in 0 .. 9 {
    serial j in 0 .. 9 {
      serial k in 0 .. 9 {
        d_x[k, i] = d_x[k, i] + (d[i, j] * x[k, j])
        d_x[k, j] = d_x[k, j] + (d[i, j] * x[k, i])
      }
    }
  }
}""",
            id="sums of an array, whose order is free",
        ),
    ],
)
def test_loops_that_need_not_pass_a_pivot_stay(text: str) -> None:
    kernel = parse_kernel(text)
    assert split_at_pivots(kernel) is kernel


def test_an_element_that_a_parallel_loop_reads_throughout_is_held() -> None:
    kernel = parse_kernel(
        """kernel column(p: float32[6, 9]) -> (p) {
  serial i in 0 .. 6 {
    parallel j in (i + 1) .. 9 {
      p[i, j] = p[i, j] - (p[i, i] * p[0, j])
    }
  }
}""".replace("p[0, j]", "p[i, j]")
    )
    assert "held[] = p[i, i]" in kernel_text(arranged(carry_elements, kernel))
    assert "p[i, j] = p[i, j] - (held[] * p[i, j])" in kernel_text(carry_elements(kernel))


def test_an_element_that_may_not_exist_is_not_held() -> None:
    kernel = parse_kernel(
        """kernel column(p: float32[6, 9]) -> (p) {
  serial i in 0 .. 9 {
    if (i < 6) {
      parallel j in (i + 1) .. 9 {
        p[i, j] = p[i, j] * p[i, i]
      }
    }
  }
}"""
    )
    assert carry_elements(kernel) == kernel


# The largest element so far, and what the elements before it are worth beside it.
RUNNING = """kernel running(a: float32[{n}, {m}]) -> (b) {{
  buffer b: float32[{n}, {m}]
  parallel i in 0 .. {n} {{
    local big: float32[] {{
      big[] = a[i, 0]
      local total: float32[] {{
        serial j in 0 .. {m} {{
          local new: float32[] {{
            new[] = max(big[], {element})
            total[] = (total[] * (big[] / new[])) + ({element} / new[])
            big[] = new[]
          }}
        }}
        parallel j_1 in 0 .. {m} {{
          b[i, j_1] = a[i, j_1] * total[]
        }}
      }}
    }}
  }}
}}"""


def test_rows_that_compute_much_go_into_lanes() -> None:
    kernel = parse_kernel(RUNNING.format(n=48, m=8, element="a[i, j]"))
    assert body_of(arranged(put_rows_in_lanes, kernel)) == textwrap.dedent("""\
        buffer b: float32[48, 8]
        parallel i_block in 0 .. 3 {
          local big: float32[16] {
            parallel lane in 0 .. 16 {
              big[lane] = a[(i_block * 16) + lane, 0]
            }
            local total: float32[16] {
              serial j in 0 .. 8 {
                parallel lane_1 in 0 .. 16 {
                  local new: float32[] {
                    new[] = max(big[lane_1], a[(i_block * 16) + lane_1, j])
                    total[lane_1] = (total[lane_1] * (big[lane_1] / new[])) + (a[(i_block * 16) + lane_1, j] / new[])
                    big[lane_1] = new[]
                  }
                }
              }
              parallel lane_2 in 0 .. 16 {
                parallel j_1 in 0 .. 8 {
                  b[(i_block * 16) + lane_2, j_1] = a[(i_block * 16) + lane_2, j_1] * total[lane_2]
                }
              }
            }
          }
        }""")  # noqa: E501


ESCAPING = """kernel escaping(a: float32[37], b: float32[37]) -> (c) {
  buffer c: float32[37]
  parallel i in 0 .. 37 {
    local z: float32[] {
      local steps: float32[] {
        serial t in 0 .. 9 {
          if (z[] <= 9.0:float32) {
            local last: float32[] {
              last[] = z[]
              z[] = ((z[] * z[]) * a[i]) + b[i]
              steps[] = (steps[] + 1.0:float32) + last[]
            }
          }
        }
        c[i] = steps[]
      }
    }
  }
}"""


def test_conditions_in_rows_are_in_the_lanes() -> None:
    got = body_of(arranged_apart(put_rows_in_lanes, parse_kernel(ESCAPING)))
    lanes, left_over = got.split("parallel i in 32 .. 37 {")
    condition = """\
parallel lane in 0 .. 16 {
  if (z[lane] <= 9.0:float32) {
    local last: float32[] {
      last[] = z[lane]
      z[lane] = ((z[lane] * z[lane]) * a[row]) + b[row]
      steps[lane] = (steps[lane] + 1.0:float32) + last[]
    }
  }
}"""
    found = textwrap.indent(condition, " " * 12).replace("row]", "(i_block * 16) + lane]")
    assert found in lanes
    assert "if (z_1[] <= 9.0:float32) {" in left_over


@pytest.mark.parametrize("element", ["c[i]", "c[36 - i]", "c[0]"])
def test_a_branch_in_lanes_stores_to_any_element(element: str) -> None:
    store = f"if (i == 5) {{ {element} = z[] }}" if element == "c[0]" else f"{element} = z[]"
    text = ESCAPING.replace("steps[] = (steps", f"{store}\nsteps[] = (steps")
    kernel = parse_kernel(text.replace("c[i] = steps[]", "steps[] = 0.0:float32"))
    assert arranged_apart(put_rows_in_lanes, kernel) is not kernel


NEAREST = """kernel nearest(x: float32[{n}, {d}], c: float32[9, {d}]) -> (at, far) {{
  buffer at: int32[{n}]
  buffer far: float32[{n}]
  parallel i in 0 .. {n} {{
    local best: float32[] {{
      best[] = 1e30:float32
      serial j in 0 .. 9 {{
        local d: float32[] {{
          d[] = 0.0:float32
          reduction t in {first} .. {d} {{
            d[] = d[] + pow(x[i, t] - c[j, t], 2.0:float32)
          }}
          if (d[] < best[]) {{
            best[] = d[]
            at[i] = j
          }}
        }}
      }}
      far[i] = best[]
    }}
  }}
}}"""


def test_rows_in_lanes_read_copies_of_what_they_read_often() -> None:
    kernel = parse_kernel(NEAREST.format(n=33, d=5, first=2))
    lanes = body_of(arranged_apart(put_rows_in_lanes, kernel)).split("i in 32 .. 33")[0]
    inner = """\
serial j in 0 .. 9 {
  local d: float32[16] {
    parallel lane_2 in 0 .. 16 {
      d[lane_2] = 0.0:float32
    }
    reduction t in 2 .. 5 {
      parallel lane_3 in 0 .. 16 {
        d[lane_3] = d[lane_3] + pow(copy[t - 2, lane_3] - c[j, t], 2.0:float32)
      }
    }
    parallel lane_4 in 0 .. 16 {
"""
    assert textwrap.indent(inner, " " * 6) in lanes
    assert "copy[t_1, lane_1] = x[(i_block * 16) + lane_1, t_1 + 2]" in lanes
    assert "local copy: float32[3, 16]" in lanes


@pytest.mark.parametrize(
    "text",
    [
        NEAREST.format(n=48, d=300, first=0),
        NEAREST.format(n=48, d=5, first=0).replace("x[i, t]", "x[i, max(t - j, 0)]"),
        NEAREST.format(n=48, d=5, first="(i % 2)"),
        NEAREST.format(n=48, d=9, first=0).replace("reduction t", "parallel t"),
        NEAREST.format(n=48, d=5, first=0).replace("float32", "bfloat16"),
    ],
    ids=["large copies", "other elements", "other bounds", "parallel inside", "summed in float32"],
)
def test_rows_that_read_too_much_for_lanes_stay(text: str) -> None:
    kernel = parse_kernel(text)
    assert put_rows_in_lanes(kernel) is kernel


def test_rows_that_fill_no_lanes_are_left_over() -> None:
    kernel = parse_kernel(RUNNING.format(n=37, m=9, element="a[i, j]"))
    got = body_of(arranged(put_rows_in_lanes, kernel))
    assert "parallel i_block in 0 .. 2 {" in got
    assert "parallel i in 32 .. 37 {" in got


def test_what_each_row_keeps_has_an_element_for_each_lane() -> None:
    kept = RUNNING.replace("local big", "local kept: float32[{m}] {{\nlocal big", 1) + "}}"
    kept = kept.replace("big[] = new[]", "kept[j] = new[]\nbig[] = new[]").replace(
        "* total[]", "* (total[] + kept[j_1])"
    )
    kernel = parse_kernel(kept.format(n=37, m=9, element="a[i, j]"))
    got = body_of(arranged(put_rows_in_lanes, kernel))
    assert "local kept: float32[9, 16] {" in got
    assert "kept[j, lane_1] = new[]" in got
    # Of a longer row the lanes would keep more than the caches hold.
    long = parse_kernel(kept.format(n=37, m=5000, element="a[i, j]"))
    assert put_rows_in_lanes(long) is long


@pytest.mark.parametrize(
    "text",
    [
        RUNNING.format(n=31, m=8, element="a[i, j]"),
        RUNNING.format(n=48, m=7, element="a[i, j]").replace("b[i, j_1]", "b[47 - i, j_1]"),
        RUNNING.format(n=48, m=8, element="a[i, j]").replace("parallel i in", "serial i in"),
        RUNNING.format(n=48, m=8, element="a[i, j]").replace("j in 0 .. 8", "j in (i % 2) .. 8"),
        RUNNING.format(n=48, m=8, element="a[int32(a[i, j]) % 2, j]"),
        RUNNING.format(
            n=48, m=8, element="((a[i, j] + a[47 - i, j]) + (a[i, 7 - j] + a[47 - i, 7 - j]))"
        ).replace(" / ", " * "),
    ],
    ids=["few rows", "short rows", "in order", "other bounds", "gathered", "much fetched"],
)
def test_rows_that_gain_nothing_in_lanes_stay(text: str) -> None:
    kernel = parse_kernel(text)
    assert put_rows_in_lanes(kernel) is kernel


FOLLOWING = """kernel following(a: float32[{n}], c: float32[{n}, {m}]) -> (b) {{
  buffer b: float32[{rows}, {columns}]
  parallel p in 0 .. {rows} {{
    parallel q in 0 .. {columns} {{
      b[p, q] = 1.0:float32
    }}
  }}
  serial i in 0 .. {n} {{
    serial j in 0 .. {m} {{
      {store}
    }}
  }}
}}"""
LEAST = """local least: float32[] {
  least[] = min(b[i, j + 1], b[i + 1, j])
  b[i + 1, j + 1] = log(exp(least[] - b[i, j]) + exp(least[] - a[i])) - c[i, j]
}"""


def following(store: str = LEAST, n: int = 35, m: int = 40) -> str:
    return FOLLOWING.format(n=n, m=m, rows=n + 3, columns=m + 6, store=store)


def test_rows_that_follow_one_another_go_into_lanes_along_diagonals() -> None:
    got = body_of(arranged_apart(put_rows_in_lanes, marked(following())))
    lanes, left_over = got.split("serial i in 32 .. 35 {")
    assert "serial i_block in 0 .. 2 {" in lanes
    together = """\
serial j_1 in 15 .. 40 {
  parallel lane in 0 .. 16 {
    local least: float32[] {
      least[] = min(b[(i_block * 16) + lane, (j_1 - lane) + 1], b[((i_block * 16) + lane) + 1, j_1 - lane])
"""  # noqa: E501
    assert textwrap.indent(together, " " * 2) in lanes
    assert "b[((i_block * 16) + lane) + 1, (j_1 - lane) + 1] = log(" in lanes
    assert "lane" not in left_over


@pytest.mark.parametrize(
    "store",
    [
        """b[i + 1, j + 1] = b[i + 1, j + 1] + (b[i, j + 1] / exp(exp(b[i + 1, j])))
        b[i + 1, j + 1] = b[i + 1, j + 1] / exp(exp(exp(b[i + 1, j])))""",
        f"if (a[i] < b[i, j]) {{\n{LEAST}\n}}",
        LEAST.replace("b[i, j + 1]", "b[i, j + 1] - b[i + 1, max(j, 1)]"),
    ],
    ids=["twice", "condition", "perhaps its own"],
)
def test_rows_on_diagonals_may_store_what_they_read(store: str) -> None:
    got = body_of(arranged_apart(put_rows_in_lanes, marked(following(store))))
    assert "parallel lane in 0 .. 16 {" in got


@pytest.mark.parametrize(
    ("neighbour", "lag"),
    [
        ("b[i, j + 1]", 1),
        ("b[i, j + 2]", 2),
        ("b[i + 2, j]", 2),
        ("b[max(i - 1, 0), j + 4]", 2),
        ("b[i, j + 4]", 4),
        ("b[i, j + 5]", None),
        ("b[i, 129 - j]", None),
    ],
)
def test_diagonals_are_as_steep_as_dependences_want(neighbour: str, lag: int | None) -> None:
    kernel = marked(following(f"b[i + 1, j + 1] = exp(exp({neighbour}) / b[i + 1, j])", 16, 130))
    after = arranged_apart(put_rows_in_lanes, kernel)
    if lag is None:
        assert after is kernel
    else:
        assert f" in {15 * lag} .. 130 {{" in body_of(after)


@pytest.mark.parametrize(
    "text",
    [
        following(n=15),
        following(m=31),
        following().replace("j in 0 .. 40", "j in (i % 2) .. 40"),
        following().replace("exp", "abs").replace("log", "abs"),
    ],
    ids=["few rows", "short rows", "other bounds", "little work"],
)
def test_rows_that_follow_one_another_otherwise_stay(text: str) -> None:
    kernel = marked(text)
    assert put_rows_in_lanes(kernel) is kernel


@settings(max_examples=examples(40), deadline=None)
@given(
    neighbours=st.lists(
        st.tuples(st.integers(-2, 2), st.integers(-3, 3)), min_size=1, max_size=3, unique=True
    ),
    rows=st.integers(16, 36),
    columns=st.integers(32, 70),
    is_in_two=st.booleans(),
)
def test_rows_in_lanes_along_diagonals_are_the_same(
    neighbours: list[tuple[int, int]], rows: int, columns: int, is_in_two: bool
) -> None:
    reads = [f"exp(exp(b[i + {di + 2}, j + {dj + 3}]) / 9.0)" for di, dj in neighbours]
    terms = functools.reduce("({} + {})".format, reads)
    store = f"b[i + 2, j + 3] = {terms}"
    if is_in_two:
        store += f"\nb[i + 2, j + 3] = exp(exp(0.5 / b[i + 2, j + 3])) - {reads[0]}"
    kernel = marked(
        following(
            store.replace("9.0", "9.0:float32").replace("0.5", "0.5:float32"), rows, columns
        ).replace(f"[{rows + 3}, ", f"[{rows + 4}, ")
    )
    arranged_apart(put_rows_in_lanes, kernel)


GATES = """kernel gates(h: float32[20], u: float32[20, {n}], b: float32[{n}]) -> (g) {{
  buffer g: float32[{n}]
  serial j in 0 .. {n} {{
    local s: {dtype}[] {{
      s[] = {dtype}(b[j])
      serial k in {begin} .. {end} {{
        s[] = s[] + {dtype}({term})
      }}
      g[j] = float32(s[])
    }}
  }}
}}"""


def gates(
    n: int = 40, begin: str = "0", end: str = "20", term: str = "h[k] * u[k, j]",
    dtype: str = "float32",
) -> Kernel:  # fmt: skip
    text = GATES.format(n=n, begin=begin, end=end, term=term, dtype=dtype)
    return mark_loops(simplify(parse_kernel(text)))


def test_a_sum_in_a_variable_gets_an_element_for_each_position() -> None:
    assert body_of(arranged(widen_sums, gates())) == textwrap.dedent("""\
        buffer g: float32[40]
        local s: float32[40] {
          parallel j in 0 .. 40 {
            s[j] = b[j]
          }
          reduction k in 0 .. 20 {
            parallel j_1 in 0 .. 40 {
              s[j_1] = s[j_1] + (h[k] * u[k, j_1])
            }
          }
          parallel j_2 in 0 .. 40 {
            g[j_2] = s[j_2]
          }
        }""")


# Reflections: each round works on fewer columns, and on fewer elements of each.
ROUNDS = """kernel rounds(x: float32[{n}, {n}], v: float32[{n}]) -> (x) {{
  serial r in 0 .. {n} {{
    parallel j in r .. {n} {{
      local s: float32[] {{
        s[] = 0.0:float32
        reduction i in r .. {n} {{
          s[] = s[] + (v[i] * x[i, j])
        }}
        parallel i_1 in r .. {n} {{
          x[i_1, j] = x[i_1, j] - (s[] * v[i_1])
        }}
      }}
    }}
  }}
}}"""


def test_positions_may_be_fewer_in_each_round() -> None:
    text = body_of(arranged_apart(widen_sums, parse_kernel(ROUNDS.format(n=40))))
    assert "local s: float32[40] {" in text
    assert "s[j_1 - r] = s[j_1 - r] + (v[i] * x[i, j_1])" in text


def test_few_positions_in_the_mean_stay_in_variables() -> None:
    kernel = parse_kernel(ROUNDS.format(n=30))
    assert widen_sums(kernel) is kernel


@pytest.mark.parametrize(("n", "size"), [(2048, 1024), (2500, 625), (2503, 835)])
def test_sums_of_many_positions_go_in_blocks(n: int, size: int) -> None:
    got = body_of(arranged(widen_sums, gates(n)))
    assert "parallel j_block in 0 .. " in got
    assert f"local s: float32[{size}] {{" in got


@pytest.mark.parametrize(
    "kernel",
    [
        gates(n=8),
        gates(end="9"),
        gates(term="h[k] * u[j % 20, j]"),
        gates(begin="(j % 2)"),
        gates(dtype="float16"),
    ],
    ids=["few positions", "few terms", "gathered", "other terms", "rounded once"],
)
def test_sums_that_stay_in_variables(kernel: Kernel) -> None:
    assert widen_sums(kernel) is kernel


# A sum for each position, whose terms are in rows of memory.
CONVOLUTION = """kernel convolution(x: float32[4, 40, 40], w: float32[4, 3, 5]) -> (y) {{
  buffer y: float32[32, 32]
  serial i in 0 .. {rows} {{
    serial j in 0 .. 32 {{
      local s: float32[] {{
        serial c in 0 .. {channels} {{ serial p in 0 .. 3 {{ serial q in 0 .. 5 {{
          s[] = s[] + (x[c, i + p, j + q] * w[c, p, q])
        }} }} }}
        y[i, j] = s[]
      }}
    }}
  }}
}}"""


def convolution(channels: int = 4, rows: int = 32) -> Kernel:
    return mark_loops(simplify(parse_kernel(CONVOLUTION.format(channels=channels, rows=rows))))


def test_long_sums_whose_additions_wait_for_each_other_get_elements() -> None:
    text = body_of(arranged(widen_sums, convolution()))
    assert "local s: float32[32] {" in text
    assert "s[j] = s[j] + (x[c, i + p, j + q] * w[c, p, q])" in text


@pytest.mark.parametrize("parts", [{"channels": 1}, {"rows": 3}], ids=["short", "few rows"])
def test_sums_that_no_tile_of_rows_computes_stay(parts: dict[str, int]) -> None:
    kernel = convolution(**parts)
    assert widen_sums(kernel) is kernel


# What a product adds to the gradients of its factors.
BACKWARDS = """kernel backwards(d: float32[{n}], s: float32[20], v: float32[20, {n}],
    ds: float32[20], dv: float32[20, {n}], total: float32[]) -> (ds, dv, total) {{
  serial i in 0 .. {n} {{
    local mean: float32[] {{
      mean[] = mean[] + d[i]
      total[] = total[] + mean[]
      serial k in {begin} .. 20 {{
        ds[k] = ds[k] + (mean[] * v[k, i])
        dv[k, i] = dv[k, i] + (mean[] * s[k])
        {more}
      }}
    }}
  }}
}}"""


def backwards(n: int = 40, begin: str = "0", more: str = "") -> Kernel:
    return marked(BACKWARDS.format(n=n, begin=begin, more=more))


def test_a_reduction_over_positions_goes_innermost_too() -> None:
    assert body_of(arranged_apart(widen_sums, backwards())) == textwrap.dedent("""\
        local mean: float32[40] {
          parallel i in 0 .. 40 {
            mean[i] = mean[i] + d[i]
          }
          reduction i_1 in 0 .. 40 {
            total[] = total[] + mean[i_1]
          }
          parallel k in 0 .. 20 {
            reduction i_2 in 0 .. 40 {
              ds[k] = ds[k] + (mean[i_2] * v[k, i_2])
            }
            parallel i_3 in 0 .. 40 {
              dv[k, i_3] = dv[k, i_3] + (mean[i_3] * s[k])
            }
          }
        }""")


@pytest.mark.parametrize(
    "kernel",
    [
        backwards(begin="(i % 2)"),
        backwards(more="total[] = ds[k] * 2.0:float32"),
        backwards(more="v[k, i] = total[]"),
    ],
    ids=["other terms", "last one stays", "sum so far"],
)
def test_reductions_over_positions_that_stay(kernel: Kernel) -> None:
    assert widen_sums(kernel) is kernel


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from(["0", "2"]),
    st.lists(
        st.sampled_from(
            ["total[] = total[] + v[k, i]", "total[] = ds[k]", "ds[k] = ds[k] - dv[k, i]",
             "dv[k, i] = max(dv[k, i], d[i])", "mean[] = mean[] - s[k]", "v[k, i] = mean[]",
             "local t: float32[] { t[] = v[k, i] ds[k] = ds[k] + t[] dv[k, i] = t[] }"]
        ),
        max_size=3,
        unique=True,
    ),
)  # fmt: skip
def test_what_goes_innermost_means_the_same(begin: str, more: list[str]) -> None:
    kernel = backwards(begin=begin, more="\n".join(more))
    arranged_apart(widen_sums, kernel)


# The loops over k change places with the one over j, and those over m where bounds allow it.
MEETING = """kernel meeting(u: float32[20, 40], w: float32[40], c: float32[40], d: float32[80])
    -> (c, d) {{
  serial j in 0 .. 40 {{
    serial k in 0 .. 20 {{ c[j] = c[j] + u[k, j] }}
    serial m in {bounds} {{ d[j + m] = d[j + m] + w[m] }}
  }}
}}"""


@pytest.mark.parametrize(
    ("bounds", "loop"),
    [
        ("0 .. (j // 2)", "reduction j_1 in 0 .. 40 {"),
        ("0 .. j", "reduction m in 0 .. 39 {"),
        ("j .. 40", "reduction m in 0 .. 40 {"),
        ("0 .. 20", "reduction m in 0 .. 20 {"),
    ],
)
def test_a_part_of_a_reduction_whose_loops_reach_others_is_none_of_parallel(
    bounds: str, loop: str
) -> None:
    text = body_of(arranged_apart(order_along_memory, marked(MEETING.format(bounds=bounds))))
    assert loop in text


@pytest.mark.parametrize(
    ("condition", "is_passed"), [("0 < k", True), ("j != k", False), ("t[k] > 0", False)]
)
def test_a_loop_moves_past_conditions_that_do_not_depend_on_it(
    condition: str, is_passed: bool
) -> None:
    kernel = parse_kernel(f"""kernel sums(u: float32[20, 40], t: int32[20]) -> (c) {{
      buffer c: float32[40]
      parallel j in 0 .. 40 {{
        reduction k in 0 .. 20 {{
          if ({condition}) {{ c[j] = c[j] + u[k, j] }} else {{ c[j] = c[j] - u[k, j] }}
        }}
      }}
    }}""")
    text = body_of(arranged_apart(order_along_memory, kernel))
    assert (text.index("if (") < text.index("parallel j in 0 .. 40")) == is_passed
    assert text.count("parallel") == (2 if is_passed else 1)


# Rows of a product, whose elements are those of columns of the result.
TURNED = """kernel turned(a: float32[{n}, 30], b: float32[30, 64]) -> (c) {{
  buffer c: float32[64, {n}]
  parallel i in 0 .. {n} {{ local s: float32[64] {{
    reduction k in 0 .. 30 {{ parallel j in 0 .. 64 {{ s[j] = s[j] + (a[i, k] * b[k, j]) }} }}
    parallel j in 0 .. 64 {{ c[{at}] = s[j] * 2.0:float32 }}
  }} }}
}}"""


def test_rows_that_are_side_by_side_in_memory_are_stored_together() -> None:
    kernel = parse_kernel(TURNED.format(n=26, at="j, i"))
    assert body_of(arranged_apart(widen_sums, kernel)) == textwrap.dedent("""\
        buffer c: float32[64, 26]
        local s: float32[26, 64] {
          parallel i in 0 .. 26 {
            reduction k in 0 .. 30 {
              parallel j in 0 .. 64 {
                s[i, j] = s[i, j] + (a[i, k] * b[k, j])
              }
            }
          }
          parallel j_1 in 0 .. 64 {
            parallel i_1 in 0 .. 26 {
              c[j_1, i_1] = s[i_1, j_1] * 2.0:float32
            }
          }
        }""")


def test_many_of_them_are_stored_in_blocks() -> None:
    text = body_of(widen_sums(parse_kernel(TURNED.format(n=1100, at="j, i"))))
    assert "local s: float32[48, 64]" in text
    assert "parallel i_block in 0 .. 23 {" in text


def test_rows_apart_in_memory_are_stored_one_by_one() -> None:
    kernel = parse_kernel(TURNED.format(n=26, at="j, i").replace("c[j, i]", "c[j, 25 - i]"))
    assert widen_sums(kernel) is kernel
    along = TURNED.format(n=26, at="i, j").replace("c: float32[64, 26]", "c: float32[26, 64]")
    assert widen_sums(parse_kernel(along)) == parse_kernel(along)


def test_a_loop_with_an_empty_local_alone_may_be_widened() -> None:
    sums = "serial k in 0 .. 20 { c[j] = c[j] + u[k, j] }"
    text = (
        MEETING.format(bounds="0 .. j")
        .replace(sums, f"local empty: float32[0] {{ {sums} }}")
        .splitlines()
    )
    arranged_apart(widen_sums, marked("\n".join(line for line in text if "serial m" not in line)))


# The condition alone keeps the rows from meeting.
ONE_ROW = """kernel one_row(a: float32[6, 40]) -> (s) {{
  {buffer}
  parallel i in 0 .. 6 {{
    reduction j in 0 .. 40 {{
      if ((i == 3) && (a[i, j] > 0.0:float32)) {{ s[{at}] = s[{at}] + a[i, j] }}
    }}
  }}
}}"""


@pytest.mark.parametrize(
    ("shape", "at", "is_summed"), [("1", "0", False), ("", "", False), ("6", "i", True)]
)
def test_a_chosen_sum_is_not_written_back_where_others_write(
    shape: str, at: str, is_summed: bool
) -> None:
    text = ONE_ROW.format(buffer=f"buffer s: float32[{shape}]", at=at)
    kernel = parse_kernel(text)
    assert (arranged_apart(keep_in_variables, kernel) != kernel) is is_summed


TAPED = """kernel taped(a: float32[{steps}, {n}]) -> (b) {{
  buffer b: float32[{steps}, {n}]
  serial i in 0 .. {n} {{
    local tape: float32[{steps}] {{
      local s: float32[] {{
        serial t in 0 .. {steps} {{
          tape[t] = s[]
          s[] = s[] + a[t, i]
        }}
        serial t_1 in 0 .. {steps} {{
          b[t_1, i] = tape[({steps} - 1) - t_1] * s[]
        }}
      }}
    }}
  }}
}}"""


@pytest.mark.parametrize(
    ("n", "local"),
    [
        (40, "local tape: float32[20, 40] {"),
        (400, "local tape: float32[20, 100] {"),
        (2500, "local tape: float32[20, 625] {"),
    ],
)
def test_a_local_array_gets_an_element_for_each_position(n: int, local: str) -> None:
    assert local in body_of(arranged(widen_sums, marked(TAPED.format(n=n, steps=20))))


def test_positions_in_a_parallel_loop_are_one_block() -> None:
    lines = TAPED.format(n=400, steps=20).replace("b: float32[", "b: float32[2, ").splitlines()
    inner = [line.replace("b[t_1, i]", "b[r, t_1, i]") for line in lines[2:-1]]
    text = "\n".join([*lines[:2], "parallel r in 0 .. 2 {", *inner, "} }"])
    assert "local tape: float32[20, 400] {" in body_of(arranged(widen_sums, marked(text)))


def test_local_arrays_of_all_positions_fit_a_cache() -> None:
    after = widen_sums(marked(TAPED.format(n=300, steps=3000)))
    (positions,) = map(int, re.findall(r"local tape: float32\[3000, (\d+)\]", kernel_text(after)))
    assert 16 <= positions < 80
    assert 300 % positions == 0
    large = marked(TAPED.format(n=300, steps=30000))
    assert widen_sums(large) is large


MIXED = """kernel mixed(a: float32[40], b: float32[40, 40], g: float32[40, 40]) -> (g) {{
  serial i in 0 .. 5 {{
    serial j in {first} .. {last} {{
      local s: float32[] {{
        {start}
        serial k in ({begin}) .. ({end}) {{
          {update}
        }}
        local t: float32[] {{
          {between}
          serial m in 0 .. 17 {{
            t[] = t[] + (b[m, j] * {factor})
          }}
          g[i, j] = s[] + t[]
        }}
      }}
    }}
  }}
}}"""


@settings(max_examples=examples(80), deadline=None)
@given(
    st.sampled_from([(0, 40), (3, 40), (20, 37)]),
    st.sampled_from(["s[] = a[j]", "g[i, j] = s[]", "if (a[j] < 0.0:float32) { s[] = a[i] }"]),
    st.sampled_from([("0", "20"), ("i", "40"), ("i + 3", "i + 30"), ("j", "40")]),
    st.sampled_from(
        ["s[] = s[] + b[k, j]", "s[] = max(s[], b[k, j])", "s[] = b[k, j] - s[]",
         "g[i, j] = g[i, j] + b[k, j]", "if (b[k, j] < 0.0:float32) { s[] = s[] + a[k] }",
         "local r: float32[] { r[] = b[k, j] s[] = s[] + (r[] * r[]) }"]
    ),
    st.sampled_from(["t[] = s[]", "s[] = s[] * 0.5:float32", "t[] = g[i, j]"]),
    st.sampled_from(["s[]", "a[m]", "g[i, j]"]),
)  # fmt: skip
def test_sums_in_arrays_are_those_in_variables(
    positions: tuple[int, int], start: str, terms: tuple[str, str], update: str, between: str,
    factor: str,
) -> None:  # fmt: skip
    text = MIXED.format(
        first=positions[0], last=positions[1], start=start, begin=terms[0], end=terms[1],
        update=update, between=between, factor=factor,
    )  # fmt: skip
    kernel = mark_loops(parse_kernel(text))
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(b.shape).astype(b.dtype) for b in kernel.parameters]
    after = widen_sums(kernel)
    verify(after)
    np.testing.assert_array_equal(interpret(after, inputs), interpret(kernel, inputs))


# What a position of `a` adds to its neighbours.
NEIGHBOURS = """kernel neighbours(a: float32[{n}, {m}], d: float32[{rows}, {columns}]) -> (d) {{
  reduction i in 0 .. {n} {{
    reduction j in 0 .. {m} {{
      local t: float32[] {{
        t[] = a[i, j] * 2.0:float32
        d[i, j] = d[i, j] + t[]
        {between}
        d[i + {span}, j + 1] = d[i + {span}, j + 1] - t[]
      }}
    }}
  }}
}}"""


def neighbours(n: int, m: int, span: int = 1, between: str = "") -> str:
    return NEIGHBOURS.format(n=n, m=m, rows=n + span, columns=m + 1, span=span, between=between)


def test_terms_of_neighbours_are_computed_before_they_are_added() -> None:
    kernel = parse_kernel(neighbours(3, 40, between="d[i, j] = d[i, j] - (t[] * t[])"))
    assert body_of(arranged(split_updates, kernel)) == textwrap.dedent("""\
        reduction i in 0 .. 3 {
          local terms_1: float32[256] {
            local terms: float32[256] {
              parallel j in 0 .. 40 {
                local sum_1: float32[] {
                  local sum: float32[] {
                    local t: float32[] {
                      t[] = a[i, j] * 2.0:float32
                      sum[] = sum[] + t[]
                      sum[] = sum[] - (t[] * t[])
                      sum_1[] = sum_1[] - t[]
                    }
                    terms[j] = sum[]
                    terms_1[j] = sum_1[]
                  }
                }
              }
              parallel j_1 in 0 .. 40 {
                d[i, j_1] = d[i, j_1] + terms[j_1]
              }
              parallel j_2 in 0 .. 40 {
                d[i + 1, j_2 + 1] = d[i + 1, j_2 + 1] + terms_1[j_2]
              }
            }
          }
        }""")


@pytest.mark.parametrize("m", [256, 257, 700])
def test_terms_are_kept_for_a_block_at_a_time(m: int) -> None:
    got = body_of(
        arranged(split_updates, parse_kernel(neighbours(2, m, between="t[] = 3.0:float32")))
    )
    assert "local terms_1: float32[256]" in got


def test_windows_are_written_out_where_terms_are_added() -> None:
    kernel = parse_kernel("""kernel windows(a: float32[3, 40], d: float32[3, 42]) -> (d) {
  reduction i in 0 .. 3 {
    reduction j in 0 .. 40 {
      local w: float32[3] {
        serial p in 0 .. 3 {
          w[p] = a[i, j] * float32(p)
        }
        serial q in 0 .. 3 {
          d[i, j + q] = d[i, j + q] + w[q]
        }
      }
    }
  }
}""")
    text = body_of(arranged(split_updates, kernel))
    assert text.count("d[i, j_") == 6
    assert "serial" not in text


def test_a_term_that_only_some_positions_have_is_0_at_the_others() -> None:
    some = "if (t[] > 1.0:float32) {\nd[i + 1, j] = d[i + 1, j] - t[]\n}"
    text = body_of(arranged(split_updates, parse_kernel(neighbours(3, 40, between=some))))
    assert "if (t[] > 1.0:float32) {\n" in text
    assert "  sum_1[] = sum_1[] - t[]\n" in text
    assert "d[i + 1, j_2] = d[i + 1, j_2] + terms_1[j_2]\n" in text


def test_each_body_of_a_pair_gets_its_term() -> None:
    # d[i, 0] and d[j, 0] are one element where a body meets itself.
    kernel = parse_kernel("""kernel pairs(a: float32[40, 3], d: float32[40, 3]) -> (d) {
  reduction i in 0 .. 40 {
    reduction j in 0 .. 40 {
      local t: float32[] {
        t[] = a[j, 0] - (a[i, 1] * a[i, 2])
        d[j, 0] = d[j, 0] + (t[] * t[])
        d[i, 0] = d[i, 0] - t[]
      }
    }
  }
}""")
    after = arranged(split_updates, kernel)
    lines = [line.strip() for line in body_of(after).splitlines()]
    assert "d[j_1, 0] = d[j_1, 0] + terms[j_1]" in lines
    assert "reduction j_2 in 0 .. 40 {" in lines
    inputs = exact_inputs(kernel)
    np.testing.assert_array_equal(interpret(after, inputs), interpret(kernel, inputs))


@pytest.mark.parametrize(
    ("guard", "at", "limit"),
    [
        ("t[] > 9e9:float32", "j + 2", "(j_2 + 2) < 41"),
        ("j >= 20", "j - 20", "(j_2 - 20) >= 0"),
    ],
    ids=["data", "positions"],
)
def test_terms_are_added_where_their_elements_exist(guard: str, at: str, limit: str) -> None:
    some = f"if ({guard}) {{\nd[i, {at}] = d[i, {at}] + t[]\n}}"
    text = body_of(arranged(split_updates, parse_kernel(neighbours(3, 40, between=some))))
    assert f"if ({limit}) {{" in text


def test_windows_two_elements_apart_are_split() -> None:
    kernel = parse_kernel("""kernel windows(a: float32[3, 40], d: float32[3, 80]) -> (d) {
  reduction i in 0 .. 3 {
    reduction j in 0 .. 40 {
      parallel q in 0 .. 3 {
        if ((((2 * j) + q) >= 1) && (a[i, j] > 2.0:float32)) {
          d[i, ((2 * j) + q) - 1] = d[i, ((2 * j) + q) - 1] + a[i, j]
        }
      }
    }
  }
}""")
    after = arranged(split_updates, kernel)
    text = body_of(after)
    assert "if (((j_1 * 2) - 1) >= 0) {" in text
    assert "d[i, (j_3 * 2) + 1] = d[i, (j_3 * 2) + 1] + terms_2[j_3]" in text
    inputs = exact_inputs(kernel)
    want = interpret(kernel, inputs, check_bounds=True)
    np.testing.assert_array_equal(interpret(after, inputs, check_bounds=True), want)


@pytest.mark.parametrize("guard", ["(j + p) >= 20", "((2 - p) + j) >= 20", "(40 * p) >= (21 - j)"])
def test_a_window_may_have_one_term_under_several_conditions(guard: str) -> None:
    # The statement is the same in each iteration of the window, its condition is not.
    some = f"""serial p in 0 .. 3 {{
      if ({guard}) {{
        d[i + 1, j] = d[i + 1, j] + t[]
      }}
    }}"""
    text = body_of(arranged(split_updates, parse_kernel(neighbours(3, 40, between=some))))
    assert "serial" not in text
    assert text.count("sum_1[] = sum_1[] + t[]") == 3


GUARDS = [
    "j >= 1", "(j + 2) < {m}", "i >= 1", "(j >= 2) && (i < 4)", "a[i, j] > 1.0:float32",
    "(j >= 2) && (a[i, j] < 2.0:float32)", "!(j < 1)", "(j >= 1) || (i >= 1)",
    "(j >= 12) && (i >= 1)", "(j < 20) && (i >= 1)",
]  # fmt: skip
UPDATES = ["i, (j)", "i, (j - 1)", "i, (j + 1)", "i, (j + 2)", "i - 1, (j - 2)", "i - 1, (j + 20)"]


@settings(max_examples=examples(40), deadline=None)
@given(
    st.sampled_from([33, 70, 300]),
    st.lists(
        st.tuples(st.sampled_from(GUARDS), st.sampled_from(UPDATES), st.booleans()),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
    st.booleans(),
)
def test_terms_under_conditions_are_the_same(
    m: int, updates: list[tuple[str, str, bool]], is_shifted: bool, is_window: bool
) -> None:
    shift = 2 if is_shifted else 0
    column = "(j + p)" if is_window else "j"
    between = ""
    for n, (guard, at, has_else) in enumerate(updates):
        condition = re.sub(r"\bj\b", column, guard.format(m=m))
        element = f"d[{at} + {shift}]"
        between += f"if ({condition}) {{ {element} = {element} + t[] }}\n"
        if has_else:
            between += f"else {{ d[i + 1, j] = d[i + 1, j] - {n}.0:float32 }}\n"
    if is_window:
        between = f"serial p in 0 .. 3 {{ {between} }}"
    text = neighbours(5, m, between=between).replace(f"{m + 1}]) ->", f"{m + 5}]) ->")
    kernel = parse_kernel(text)
    inputs = exact_inputs(kernel)
    try:
        expected = interpret(kernel, inputs, check_bounds=True)
    except KernelError:
        # Then an index may be out of range afterwards, too.
        expected = interpret(kernel, inputs)
        got_all = interpret(split_updates(kernel), inputs)
    else:
        got_all = interpret(split_updates(kernel), inputs, check_bounds=True)
    for got, want in zip(got_all, expected, strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "text",
    [
        neighbours(3, 31),
        neighbours(3, 40, between="t[] = d[i, j]"),
        neighbours(3, 40, between="d[i, j] = 0.0:float32"),
        neighbours(3, 40).replace("j + 1]", "int32(a[i, j])]"),
        neighbours(3, 40, between="a[0, 0] = max(a[0, 0], t[])"),
        neighbours(3, 40, between="a[i, j] = a[i, j] - a[i, 0]"),
        neighbours(3, 40).replace("float32", "int32").replace("2.0:", "2:"),
    ],
    ids=[
        "short",
        "read between",
        "written",
        "anywhere",
        "extreme",
        "row",
        "integers",
    ],
)
def test_other_updates_stay(text: str) -> None:
    kernel = parse_kernel(text)
    assert split_updates(kernel) is kernel


def test_rows_that_meet_are_never_taken_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-10)
    got = body_of(arranged(split_reductions, parse_kernel(neighbours(64, 3))))
    assert got.splitlines()[:3] == [
        "serial parity in 0 .. 2 {",
        "  parallel i_block in 0 .. 16 {",
        "    reduction i in ((i_block * 4) + (parity * 2)) .. "
        "(((i_block * 4) + (parity * 2)) + 2) {",
    ]


def test_rows_of_a_window_are_beside_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-10)
    kernel = parse_kernel("""kernel windows(a: float32[64, 3], d: float32[68, 3]) -> (d) {
  reduction i in 0 .. 64 {
    serial p in -2 .. 3 {
      reduction j in 0 .. 3 {
        d[(i + 2) - p, j] = d[(i + 2) - p, j] + a[i, j]
      }
    }
  }
}""")
    got = body_of(arranged(split_reductions, kernel))
    # Iterations less than five rows apart touch rows in common.
    assert "reduction i in ((i_block * 8) + (parity * 4))" in got


@pytest.mark.parametrize(("n", "span"), [(65, 1), (67, 5), (40, 9), (128, 31)])
def test_blocks_of_one_parity_touch_rows_of_their_own(
    monkeypatch: pytest.MonkeyPatch, n: int, span: int
) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-9)
    kernel = arranged(split_reductions, parse_kernel(neighbours(n, 2, span)))
    assert "parity" in body_of(kernel)
    # The rows that each block touches, as the loops say: of two blocks of a parity, none.
    rows: dict[tuple[int, int], set[int]] = {}
    count = int(re.search(r"i_block in 0 .. (\d+)", body_of(kernel))[1])  # type: ignore[index]
    bounds = re.search(r"reduction i in (.*) \.\. (.*) \{", body_of(kernel))
    assert bounds
    for parity in (0, 1):
        for block in range(count):
            here = {"parity": parity, "i_block": block, "min": min}
            begin, end = (eval(bound, here) for bound in bounds.groups())
            rows[parity, block] = {row for i in range(begin, end) for row in (i, i + span)}
    for parity in (0, 1):
        taken = [rows[parity, block] for block in range(count)]
        assert sum(map(len, taken)) == len(set().union(*taken))


@pytest.mark.parametrize(
    "text",
    [
        neighbours(64, 3).replace("reduction i", "serial i"),
        neighbours(64, 3).replace("d[i, j]", "d[0, j]"),
        neighbours(64, 3).replace("d[i, j]", "d[2 * i, j]").replace("[65, 4]", "[129, 4]"),
        neighbours(8, 3, 7),
    ],
    ids=["in order", "one row", "rows apart", "far"],
)
def test_rows_stay_together(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(cost, "BLOCK_SECONDS", 1e-9)
    kernel = parse_kernel(text)
    assert "parity" not in kernel_text(split_reductions(kernel))


VECTORS = """kernel vectors(a: float32[40], t: int32[40]) -> (b, s) {
  buffer b: float32[40]
  buffer s: float32[4]
  parallel i in 0 .. 40 {
    b[i] = a[i]
  }
  parallel few in 0 .. 16 {
    b[few] = a[few]
  }
  local sum: float32[] {
    reduction j in 0 .. 40 {
      sum[] = sum[] + a[j]
    }
    s[0] = sum[]
  }
  local most: float32[] {
    reduction k in 0 .. 40 {
      most[] = max(most[], a[k])
    }
    s[1] = most[]
  }
  local count: int32[] {
    reduction n in 0 .. 40 {
      count[] = count[] + t[n]
    }
    s[2] = float32(count[])
  }
  local total: float32[] {
    reduction h in 0 .. 40 {
      total[] = total[] + a[h]
      b[t[h] + 1] = b[t[h] + 1] + 1.0:float32
    }
    s[3] = total[]
  }
  serial q in 1 .. 40 {
    b[q] = b[q - 1] * a[q]
  }
}"""


def test_innermost_loops_are_marked_for_vectors() -> None:
    text = kernel_text(arranged(mark_vectors, parse_kernel(VECTORS)))
    # A histogram beside a total may meet.
    assert re.findall(r"(\w+) in .* @vector\((\w+)\)", text) == [
        ("i", "lanes"),
        ("few", "lanes"),
        ("j", "lanes"),
        ("k", "lanes"),
        ("n", "lanes"),
    ]


def test_no_compiler_chooses_the_order_of_a_sum() -> None:
    """Each sum that is marked has lanes of our own; see also the comparison with -O0."""
    text = c_source(mark_vectors(parse_kernel(VECTORS))).text
    assert "ms_all_add_f32" in text
    assert "reduction(" not in text


# Rows of a sparse matrix, `first[i] .. first[i + 1]` of its elements.
SPARSE = """kernel sparse(first: int32[5], value: float32[9], at: int32[9], x: float32[4]) -> (y) {{
  buffer y: float32[4]
  parallel i in 0 .. 4 {{
    {kind} k in {begin} .. {end} {{
      {statement}
    }}
  }}
}}"""
DOT = "y[i] = y[i] + (value[k] * x[at[k]])"


def sparse(
    begin: str = "first[i]", end: str = "first[i + 1]", statement: str = DOT,
    kind: str = "reduction",
) -> Kernel:  # fmt: skip
    return parse_kernel(SPARSE.format(begin=begin, end=end, statement=statement, kind=kind))


def test_a_loop_over_data_has_a_version_whose_indices_are_in_range() -> None:
    assert body_of(version_loops_over_data(sparse())) == textwrap.dedent("""\
        buffer y: float32[4]
        parallel i in 0 .. 4 {
          if ((int64(first[i]) >= 0:int64) && ((int64(first[i + 1]) + -1:int64) <= 8:int64)) {
            reduction k in first[i] .. first[i + 1] {
              y[i] = y[i] + (value[within(int64(k), 0, 8)] * x[at[within(int64(k), 0, 8)]])
            }
          } else {
            reduction k_1 in first[i] .. first[i + 1] {
              y[i] = y[i] + (value[k_1] * x[at[k_1]])
            }
          }
        }""")


def test_versions_differ_in_what_is_not_known_alone() -> None:
    text = body_of(version_loops_over_data(sparse("2", statement="y[i] = y[i] + value[k - 1]")))
    assert "if ((int64(first[i + 1]) + -1:int64) <= 9:int64) {" in text
    assert "value[within(int64(k) + -1:int64, 0, 8)]" in text


SHIFTED = """kernel shifted(at: int32[6], x: float32[9]) -> (y) {{
  buffer y: float32[4, 5]
  serial i in 0 .. 4 {{
    serial k in {begin} .. {end} {{
      y[i, k] = y[i, k] + x[{index}]
    }}
  }}
}}"""


def test_an_index_that_data_moves_is_in_range_if_its_ends_are() -> None:
    kernel = parse_kernel(SHIFTED.format(begin="0", end="5", index="(at[i] - (k * 2)) + 1"))
    text = body_of(version_loops_over_data(kernel))
    assert "if (((int64(at[i]) - 8:int64) >= -1:int64) && (int64(at[i]) <= 7:int64)) {" in text
    assert "x[within((int64(at[i]) + 1:int64) - (int64(k) * 2:int64), 0, 8)]" in text


@pytest.mark.parametrize("value", ["x[at[i] + k] + z[at[i] + k]", "z[at[i] + k] + x[at[i] + k]"])
def test_an_index_of_two_arrays_is_in_the_range_of_the_smaller(value: str) -> None:
    text = SHIFTED.replace("x: float32[9]", "x: float32[9], z: float32[6]")
    text = text.replace("x[{index}]", f"({value})").format(begin="0", end="3")
    kernel = parse_kernel(text)
    after = version_loops_over_data(kernel)
    assert kernel_text(after).count("within(int64(k) + int64(at[i]), 0, 5)") == 2
    inputs = [np.array([0, 3, 4, 6, 9, -1], "int32")]
    inputs += [np.arange(n, dtype="float32") for n in (9, 6)]
    np.testing.assert_array_equal(interpret(after, inputs), interpret(kernel, inputs))


def test_an_index_of_few_bits_has_no_version() -> None:
    text = SHIFTED.replace("x: float32[9]", "x: float32[900]")
    kernel = parse_kernel(text.format(begin="0", end="5", index="int8(at[i] + k)"))
    assert version_loops_over_data(kernel) is kernel


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.sampled_from([-(2**31), 1 - 2**31, -3, 0, 2, 3, 8, 9, 12, 2**31 - 4, 2**31 - 1]),
        min_size=6, max_size=6,
    ),
    st.sampled_from(
        ["at[i] + k", "(at[i] - k) + 4", "((k * 2) + at[i]) - at[i + 1]", "(k - 3) - at[i]",
         "(at[i] * 3) + k", "int64(at[i] + k)", "int64(at[i] + k) - int64(at[i + 1])",
         "int64(at[i]) + int64(k)", "(at[i] + k) + 2147483647", "int32(int64(at[i]) + int64(k))"]
    ),
    st.sampled_from(
        [("0", "5"), ("1", "max(min(at[i + 1], 5), 0)"), ("min(max(at[i], 0), 5)", "5")]
    ),
)  # fmt: skip
@example([2**31 - 1] * 6, "int64(at[i] + k) - int64(at[i + 1])", ("0", "5"))
@example([-(2**31)] * 6, "(at[i] - 2147483647) - k", ("0", "5"))
def test_versions_over_shifted_data_mean_the_loop(
    at: list[int], index: str, bounds: tuple[str, str]
) -> None:
    kernel = parse_kernel(SHIFTED.format(begin=bounds[0], end=bounds[1], index=index))
    after = version_loops_over_data(kernel)
    verify(after)
    inputs = [np.array(at, "int32"), np.arange(9, dtype="float32")]
    np.testing.assert_array_equal(interpret(after, inputs), interpret(kernel, inputs))


@pytest.mark.parametrize(
    "kernel",
    [
        sparse(end="9", begin="i"),
        sparse(statement="y[i] = y[i] + x[at[i]]"),
        sparse(statement="first[i + 1] = at[k]", kind="serial"),
        sparse(statement="serial j in 0 .. 2 { y[j] = value[k] }", kind="serial"),
        sparse(statement="y[i] = value[k + 4] - value[k - 5]"),
        sparse("0", "9", statement="if (i < 2) { y[i] = value[k + at[i * 8]] }"),
    ],
    ids=["known", "nothing moves", "bounds change", "not innermost", "never in range", "guarded"],
)
def test_loops_of_one_version(kernel: Kernel) -> None:
    assert version_loops_over_data(kernel) is kernel


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.sampled_from([-(2**31), -3, 0, 2, 5, 8, 9, 10, 12]), min_size=5, max_size=5),
    st.sampled_from(
        [DOT, "y[i] = value[k]", "y[k] = value[k + 1] + float32(at[k - 2])",
         "if (k < 7) { y[i] = y[i] - value[k + 2] }",
         "local t: float32[] { t[] = value[k] y[k - 1] = t[] value[k] = x[k] }"]
    ),
    st.sampled_from(["first[i]", "at[i]", "i"]),
)  # fmt: skip
def test_both_versions_mean_the_loop(first: list[int], statement: str, begin: str) -> None:
    kernel = sparse(begin, statement=statement, kind="serial")
    after = version_loops_over_data(kernel)
    verify(after)
    # A row this far from the array would take the interpreter long.
    ends = np.maximum(first, -4).astype("int32")
    at = np.array([3, -1, 0, 7, 2, 1, 9, 0, 4], "int32")
    inputs = [ends, np.arange(9, dtype="float32"), at, np.arange(4, dtype="float32")]
    np.testing.assert_array_equal(interpret(after, inputs), interpret(kernel, inputs))


# A window around a point that data give.
SPLAT = """kernel splat(x: float32[6], at: int32[6], row: int32[6]) -> (y, z) {{
  buffer y: float32[7, 8]
  buffer z: float32[8]
  serial p in 0 .. 6 {{
    {kind} k in 0 .. 4 {{
      {statement}
    }}
  }}
}}"""
ADD = "y[row[p], at[p] + k] = y[row[p], at[p] + k] + x[k]"


def splat(statement: str = ADD, kind: str = "reduction") -> Kernel:
    return parse_kernel(SPLAT.format(statement=statement, kind=kind))


def test_a_window_on_data_is_parallel_where_its_elements_are_in_range() -> None:
    after = version_loops_over_data(splat())
    assert body_of(after) == textwrap.dedent("""\
        buffer y: float32[7, 8]
        buffer z: float32[8]
        serial p in 0 .. 6 {
          if ((((int64(at[p]) >= 0:int64) && ((3:int64 + int64(at[p])) <= 7:int64)) && (int64(row[p]) >= 0:int64)) && (int64(row[p]) <= 6:int64)) {
            parallel k in 0 .. 4 {
              y[within(row[p], 0, 6), within(int64(k) + int64(at[p]), 0, 7)] = y[within(row[p], 0, 6), within(int64(k) + int64(at[p]), 0, 7)] + x[k]
            }
          } else {
            reduction k_1 in 0 .. 4 {
              y[row[p], at[p] + k_1] = y[row[p], at[p] + k_1] + x[k_1]
            }
          }
        }""")  # noqa: E501


SPLATS = {
    ADD: True,
    "y[row[p], k + at[p]] = y[row[p], at[p] + k] + x[k]": True,
    "y[k, at[p] + k] = y[k, at[p] + k] + x[k]": True,
    "z[at[p] + (k * 2)] = z[at[p] + (k * 2)] + x[k]": True,
    "local t: float32[] { t[] = x[k]  if (k != 2) { z[at[p] + k] = z[at[p] + k] + t[] } }": True,
    "z[at[p] + k] = z[(at[p] + k) + 1] + x[k]": False,
    "z[at[p] + k] = z[at[p] - k] + x[k]": False,
    "y[row[p], at[p] + k] = y[row[p], row[p] + k] + x[k]": False,
    "y[row[p] * k, at[p] + k] = y[row[p] * k, at[p] + k] + x[k]": False,
    "y[p + 3, at[p] + k] = y[p + 3, at[p] + k] + x[k]": True,
    "y[row[p], at[p] + k] = y[row[p], at[p] + k] + x[k]  row[k] = 9": False,
    "z[at[p]] = z[at[p]] + x[at[p] + k]": False,
    "z[at[p] + k] = z[at[p] + k] + x[k]  y[0, 0] = y[0, 0] + x[k]": False,
    "z[k + 1] = z[k + 1] + x[at[p] + k]": True,
    "z[k + 5] = z[k + 5] + x[at[p] + k]": False,
}


@pytest.mark.parametrize("statement", SPLATS)
def test_windows_are_parallel_where_no_two_iterations_meet(statement: str) -> None:
    after = version_loops_over_data(splat(statement, "serial"))
    assert ("parallel k" in kernel_text(after)) == SPLATS[statement]
    assert "serial k_1" in kernel_text(after)


def test_fixed_indices_are_proven_for_stores_if_they_are_read_in_any_case() -> None:
    text = kernel_text(version_loops_over_data(splat("z[at[p] + k] = x[at[p] - k] + x[row[p]]")))
    assert "x[row[p]]" in text
    assert "within(row" not in text
    for statement in (ADD.replace("row[p]", "row[p + 1]"), f"{ADD}  row[k] = 9"):
        text = kernel_text(version_loops_over_data(splat(statement)))
        assert "within(row" not in text
        assert "y[row[p" in text
    chosen = "z[at[p] + k] = (x[k] < 3.0:float32) ? x[row[p]] : z[at[p] + k]"
    text = kernel_text(version_loops_over_data(splat(chosen)))
    assert "(x[k] < 3.0:float32) ? x[within(row[p], 0, 5)] : " in text
    both = "y[at[p], at[p] + k] = x[k]  z[at[p]] = z[at[p]] + x[k]"
    text = kernel_text(version_loops_over_data(splat(both)))
    assert "z[within(at[p], 0, 6)] = z[within(at[p], 0, 6)] + x[k]" in text


@settings(max_examples=examples(100), deadline=None)
@given(
    st.sampled_from([*SPLATS]),
    *2 * [st.lists(st.integers(-3, 9), min_size=6, max_size=6)],
    st.integers(0, 99),
)
def test_windows_in_any_order_mean_the_loop(
    statement: str, at: list[int], row: list[int], seed: int
) -> None:
    kernel = splat(statement, "serial")
    after = version_loops_over_data(kernel)
    verify(after)
    inputs = [np.arange(1, 7, dtype="float32"), np.array(at, "int32"), np.array(row, "int32")]
    again = interpret(after, inputs, shuffle=random.Random(seed))
    for got, wanted in zip(again, interpret(kernel, inputs), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_large_locals_are_in_workspaces_and_small_temporaries_on_the_stack() -> None:
    kernel = parse_kernel(
        """kernel place(a: float32[3]) -> (b) {
          buffer b: float32[3]
          buffer large: float32[2049]
          buffer small: float32[3]
          parallel i in 0 .. 3 {
            local row: float32[1024] {
              local long: float32[1025] {
                long[i] = a[i]
                row[i] = long[i]
              }
              small[i] = row[i]
              large[i] = small[i]
            }
            b[i] = large[i]
          }
        }"""
    )

    assert body_of(arranged(place_arrays, kernel)) == textwrap.dedent(
        """\
        buffer b: float32[3]
        buffer large: float32[2049]
        local small: float32[3] {
          parallel i in 0 .. 3 {
            local row: float32[1024] {
              local long: float32[1025] @workspace {
                long[i] = a[i]
                row[i] = long[i]
              }
              small[i] = row[i]
              large[i] = small[i]
            }
            b[i] = large[i]
          }
        }"""
    )


def test_functions_outside_vectors_are_those_of_the_c_library_where_these_are_faster() -> None:
    kernel = mark_vectors(
        parse_kernel("""kernel k(a: float32[40]) -> (b, c) {
  buffer b: float32[40]
  buffer c: float32[40]
  parallel i in 0 .. 40 {
    b[i] = exp(a[i])
  }
  serial i_1 in 0 .. 39 {
    c[i_1 + 1] = exp(c[i_1]) + tanh(a[i_1])
  }
}""")
    )
    text = c_source(kernel).text
    assert re.search(r"= ms_exp_f32_\d+\(\*\(const ms_memory_float_\d+\*\)&a\[i\]\);", text)
    assert "= expf(c[i_1]) + ms_tanh_f32(a[i_1]);" in text


SEARCH = """kernel search(a: {dtype}[3, {n}], ok: bool[3, {n}], label: int32[{n}]) -> (m, w, l) {{
  buffer m: {dtype}[3]
  buffer w: int32[3]
  buffer l: int32[3]
  parallel i in 0 .. 3 {{
    local best: {dtype}[] {{
      local at: int32[] {{
        local what: int32[] {{
          best[] = a[i, {first}]
          serial j in {first} .. {n} {{
            {body}
          }}
          m[i] = best[]
          w[i] = at[]
          l[i] = what[]
        }}
      }}
    }}
  }}
}}"""
FOUND = "best[] = a[i, j] at[] = j what[] = label[j] - 1"


def search(body: str, n: int = 70, first: int = 1, dtype: str = "float32") -> Kernel:
    return parse_kernel(SEARCH.format(body=body, n=n, first=first, dtype=dtype))


def test_searches_run_in_lanes() -> None:
    kernel = search(f"if (a[i, j] > best[]) {{ {FOUND} }}")
    text = body_of(arranged(split_searches, kernel))
    assert "serial j_group in 0 .. 2 {" in text
    assert "is_better[] = a[i, (1 + (j_group * 32)) + lane] > lanes[lane]" in text
    assert "where[lane] = is_better[] ? j_group : where[lane]" in text
    assert "serial j in (1 + 64) .. 70 @serial {" in text


def test_the_greatest_element_alone_is_found_without_an_index() -> None:
    text = body_of(arranged(split_searches, search("if (a[i, j] < best[]) { best[] = a[i, j] }")))
    assert "lanes[lane] = (" in text
    assert "where" not in text


def test_rows_are_not_put_in_lanes_for_what_is_left_of_searches() -> None:
    rows = SEARCH.replace("[3", "[64").replace(".. 3 {{", ".. 64 {{")
    body = "if (abs(a[i, j]) > best[]) { best[] = abs(a[i, j]) }"
    kernel = parse_kernel(rows.format(body=body, n=500, first=1, dtype="float32"))
    searched = split_searches(kernel)
    assert searched is not kernel
    assert put_rows_in_lanes(searched) is searched
    # Rows lie far apart; those of a search are read in the order of memory.
    assert "float lanes[32];" in printed(prepared(kernel)).text


@pytest.mark.parametrize(
    "kernel",
    [
        search(f"if (a[i, j] > best[]) {{ {FOUND} }}", n=64),
        search(f"if (a[i, 69 - j] > best[]) {{ {FOUND.replace('a[i, j]', 'a[i, 69 - j]')} }}"),
        search(f"if (a[i, j] > best[]) {{ {FOUND} }} what[] = what[] + at[]"),
        search(f"if (a[i, j] > float32(at[])) {{ {FOUND} }}"),
        search("if (a[i, j] > best[]) { best[] = exp(exp(a[i, j])) at[] = j }"),
        search("if ((j < 9) && (a[i, j + 60] > best[])) { best[] = a[i, j + 60] at[] = j }"),
        search("if (a[i, j] > m[i + 1]) { m[i + 1] = a[i, j] }"),
    ],
    ids=[
        "short",
        "backwards",
        "read meanwhile",
        "another element",
        "costly",
        "guarded index",
        "out of range",
    ],
)
def test_searches_that_stay(kernel: Kernel) -> None:
    assert split_searches(kernel) is kernel


def test_a_search_that_compares_elements_of_its_own_array_stays() -> None:
    own = "local kept: float32[2] { if (a[i, j] > kept[0]) { best[] = a[i, j] } }"
    kernel = search(own)
    assert split_searches(kernel) is kernel


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from([">", ">=", "<", "<="]),
    st.sampled_from(["", "ok[i, j] && ", "(j % 3 != 0) && "]),
    st.booleans(),
    st.sampled_from([FOUND, "at[] = j best[] = a[i, j]", "best[] = a[i, j]"]),
    st.sampled_from([("float32", 0), ("float64", 1), ("int32", 3)]),
    st.integers(67, 101),  # from 3 on there are enough for lanes
    st.randoms(use_true_random=False),
)
def test_searches_in_lanes_find_the_same(
    sign: str,
    guard: str,
    is_mirrored: bool,
    stores: str,
    form: tuple[str, int],
    n: int,
    random: Random,
) -> None:
    dtype, first = form
    mirrored = {">": "<", ">=": "<=", "<": ">", "<=": ">="}
    here = f"(best[] {mirrored[sign]} a[i, j])" if is_mirrored else f"(a[i, j] {sign} best[])"
    guard = guard.replace("(j % 3 != 0)", "((j % 3) != 0)")
    kernel = search(f"if ({guard}{here}) {{ {stores} }}", n, first, dtype)
    after = split_searches(kernel)
    assert after is not kernel
    verify(after)
    values = [0.0, 1.0, 2.0, 3.0, -1.0]
    if dtype != "int32":
        values += [math.nan, math.inf, -math.inf]
    # Few values, so that many are equal, and in some rows one alone.
    rows = [[random.choice(values[: random.randint(1, 8)]) for _ in range(n)] for _ in range(3)]
    ok = [[random.random() < 0.7 for _ in range(n)] for _ in range(3)]
    inputs = [np.array(rows, dtype), np.array(ok), np.arange(n, dtype="int32") * 7]
    assert_all_equal(interpret(after, inputs), interpret(kernel, inputs))


def test_a_search_that_reads_what_it_has_found_keeps_it_in_a_variable() -> None:
    kernel = search("if (a[i, j] > a[i, at[]]) { at[] = j }", n=9)
    text = body_of(arranged(split_searches, kernel))
    assert (
        "at_best[] = a[i, at[]] "
        "serial j in 1 .. 9 { if (a[i, j] > at_best[]) { at_best[] = a[i, j] at[] = j } }"
    ) in " ".join(text.split())


@pytest.mark.parametrize(
    "body",
    [
        "if ((j > 4) && (a[i, j] > a[i, at[]])) { at[] = j }",
        "if ((a[i, j] + float32(at[])) > (a[i, at[]] + float32(at[]))) { at[] = j }",
        "if (a[i, j] > a[i, l[i]]) { l[i] = j }",
        "if ((a[i, j] > 0.0:float32) || (a[i, at[]] > 0.0:float32)) { at[] = j }",
        "if (a[i, j] > a[i, at[]]) { at[] = j } else { what[] = j }",
        "if (a[i, j] > a[i, at[]]) { at[] = j - 1 }",
        "if (a[i, j] > a[i, what[]]) { at[] = j }",
    ],
    ids=["guarded", "by where it was", "in an array", "either", "or else", "one before", "another"],
)
def test_searches_that_read_again_what_they_have_found(body: str) -> None:
    kernel = search(body, n=9)
    assert split_searches(kernel) == kernel


@settings(max_examples=examples(60), deadline=None)
@given(
    st.sampled_from([">", ">=", "<", "<="]),
    st.sampled_from(["a[i, {0}]", "(a[i, {0}] * a[i, ({0} + 2) % 7])", "abs(a[i, {0}] - a[i, 3])"]),
    st.sampled_from([("float32", 0, 9), ("float64", 3, 9), ("int32", 1, 9), ("float32", 9, 9)]),
    st.randoms(use_true_random=False),
)
def test_searches_that_keep_what_they_found_find_the_same(
    sign: str, element: str, form: tuple[str, int, int], random: Random
) -> None:
    dtype, first, n = form
    here, there = element.format("j"), element.format("at[]")
    kernel = search(f"if ({here} {sign} {there}) {{ at[] = j }}", n, first, dtype)
    if first == n:
        # A loop that never runs reads nothing, wherever its search begins.
        text = kernel_text(kernel).replace(f"best[] = a[i, {n}]", "at[] = 77")
        kernel = parse_kernel(text)
    after = split_searches(kernel)
    verify(after)
    values = [0.0, 1.0, 2.0, 3.0, -1.0]
    if dtype != "int32":
        values += [math.nan, math.inf, -math.inf]
    rows = [[random.choice(values[: random.randint(1, 8)]) for _ in range(n)] for _ in range(3)]
    inputs = [np.array(rows, dtype), np.ones((3, n), bool), np.arange(n, dtype="int32")]
    expected = interpret(kernel, inputs, check_bounds=True)
    assert_all_equal(interpret(after, inputs, check_bounds=True), expected)


def assert_all_equal(got: Sequence[np.ndarray], want: Sequence[np.ndarray]) -> None:
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)
