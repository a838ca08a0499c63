"""Whole kernels in the interpreter, rule by rule (see msops/_loops/README.md) and against numpy."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_agreement import assert_agree, rounding_bound
from loop_expressions import LIPSCHITZ
from loop_ir import (
    FLOATS,
    Binary,
    Cast,
    For,
    FunctionCall,
    If,
    Kernel,
    Local,
    Select,
    as_dtype,
    expressions,
    interpret,
    loads,
    own_expressions,
    parse_kernel,
    statements,
)
from loop_strategies import WIDE_DTYPES, Case, kernels
from random_examples import examples

from msops.errors import ArgumentValueError, KernelError


def run(text: str, *inputs: Any, **options: Any) -> list[list[Any]]:
    return [array.tolist() for array in interpret(parse_kernel(text), inputs, **options)]


def array(*values: float, dtype: str = "int32") -> np.ndarray:
    return np.array(values, dtype)


# Memory (rule 2).


@pytest.mark.parametrize("dtype", WIDE_DTYPES)
def test_what_is_never_written_is_zero(dtype: str) -> None:
    (out,) = interpret(
        parse_kernel(
            f"kernel f() -> (out) {{\n buffer out: {dtype}[2, 3]\n out[1, 1] = out[0, 0]\n}}"
        ),
        [],
    )
    assert out.dtype == as_dtype(dtype).dtype
    np.testing.assert_array_equal(out, np.zeros((2, 3), out.dtype))


def test_a_local_is_fresh_at_every_execution() -> None:
    text = """kernel f(a: int32[3]) -> (out) {
      buffer out: int32[3]
      serial i in 0 .. 3 {
        local t: int32[2] {
          t[1] = t[1] + a[i]
          out[i] = t[1] + t[0]
        }
      }
    }"""
    assert run(text, array(5, 6, 7)) == [[5, 6, 7]]


def test_a_written_parameter_is_a_copy() -> None:
    kernel = parse_kernel("""kernel f(a: int32[2], b: int32[2]) -> (a, b) {
      a[0] = b[1]
    }""")
    a, b = array(1, 2), array(3, 4)
    results = interpret(kernel, [a, b])
    assert [r.tolist() for r in results] == [[4, 2], [3, 4]]
    assert (a.tolist(), b.tolist()) == ([1, 2], [3, 4])
    results[1][0] = 9
    assert b.tolist() == [3, 4]


def test_inputs_may_be_views_of_any_layout() -> None:
    base = np.arange(24, dtype="int32").reshape(4, 6)
    kernel = parse_kernel("""kernel f(a: int32[3, 4]) -> (out) {
      buffer out: int32[4, 3]
      parallel i in 0 .. 3 {
        parallel j in 0 .. 4 {
          out[j, i] = a[i, j]
        }
      }
    }""")
    view = base.T[::2]
    np.testing.assert_array_equal(interpret(kernel, [view])[0], view.T)


# Indices out of range (rule 3).

GATHER = """kernel gather(a: float32[2, 3], i: int32[4], j: int64[4]) -> (read, written) {
  buffer read: float32[4]
  buffer written: int32[2, 3]
  serial n in 0 .. 4 {
    read[n] = a[i[n], j[n]]
    written[i[n], j[n]] = n + 1
  }
}"""
A = np.arange(6, dtype="float32").reshape(2, 3)


def test_a_load_reads_the_nearest_element_of_each_dimension_and_a_store_is_dropped() -> None:
    i, j = array(-1, 1, 7, 0), array(1, 3, -(2**40), 2, dtype="int64")
    read, written = interpret(parse_kernel(GATHER), [A, i, j])
    np.testing.assert_array_equal(read, A[np.clip(i, 0, 1), np.clip(j, 0, 2)])
    assert written.tolist() == [[0, 0, 4], [0, 0, 0]]


@pytest.mark.parametrize(
    ("i", "j", "text", "line", "place"),
    [
        ([0, 2, 0, 0], [0, 1, 0, 0], "index [2, 1] of 'a'", 5, "a[i[n], j[n]]"),
        ([0, 0, 0, 0], [0, 0, 0, -1], "index [0, -1] of 'a'", 5, "a[i[n], j[n]]"),
    ],
)
def test_checked_bounds_name_buffer_index_and_place(
    i: list[int], j: list[int], text: str, line: int, place: str
) -> None:
    with pytest.raises(KernelError) as caught:
        interpret(parse_kernel(GATHER), [A, array(*i), array(*j, dtype="int64")], check_bounds=True)
    column = GATHER.splitlines()[line - 1].index(place) - 4
    assert str(caught.value) == (
        f"kernel 'gather': {text} is out of range for its shape [2, 3]:\n"
        f"  <kernel text>:{line}\n"
        f"    read[n] = {place}\n"
        f"    {' ' * column}{'^' * len(place)}\n"
        "Guard the access with a condition, or correct the index."
    )


def test_checked_bounds_hold_for_stores() -> None:
    with pytest.raises(
        KernelError, match=r"index \[4\] of 'out' is out of range for its shape \[4\]"
    ):
        run("kernel f(i: int8[]) -> (out) {\n buffer out: int32[4]\n out[i[]] = 1\n}",
            np.int8(4), check_bounds=True)  # fmt: skip


def test_an_empty_array_reads_as_zero_and_takes_nothing() -> None:
    text = """kernel f(a: float32[0, 2], i: int32[]) -> (out, none) {
      buffer out: float32[]
      buffer none: float32[0]
      out[] = 3.0:float32
      out[] = a[i[], 0]
      none[i[]] = 1.0:float32
    }"""
    assert run(text, np.zeros((0, 2), "float32"), np.int32(0)) == [0.0, []]


# What is not chosen is not evaluated (rule 4): under check_bounds, an evaluation would raise.

GUARDED = """kernel f(a: int32[3], at: int32[]) -> (out) {{
  buffer out: int32[]
  {statement}
}}"""
INSIDE = "((at[] >= 0) && (at[] < 3))"


@pytest.mark.parametrize(
    ("statement", "inside", "outside"),
    [
        (f"out[] = {INSIDE} ? a[at[]] : -1", 6, -1),
        (f"out[] = !({INSIDE}) ? -1 : a[at[]]", 6, -1),
        (f"out[] = int32({INSIDE} && (a[at[]] > 0))", 1, 0),
        (f"out[] = int32(!({INSIDE}) || (a[at[]] > 0))", 1, 1),
        (f"if {INSIDE} {{ out[] = a[at[]] }}", 6, 0),
        (f"if (!({INSIDE})) {{ }} else {{ out[] = a[at[]] }}", 6, 0),
    ],
)
def test_what_is_not_chosen_is_not_evaluated(statement: str, inside: int, outside: int) -> None:
    text = GUARDED.format(statement=statement)
    a = array(4, 5, 6)
    assert run(text, a, np.int32(2), check_bounds=True) == [inside]
    assert run(text, a, np.int32(3), check_bounds=True) == [outside]
    assert run(text, a, np.int32(-1), check_bounds=True) == [outside]


# Statements.


def test_a_loop_runs_from_begin_to_before_end_in_order() -> None:
    text = """kernel f(bounds: int32[4, 2]) -> (order, count) {
      buffer order: int32[16]
      buffer count: int32[]
      serial n in 0 .. 4 {
        serial i in bounds[n, 0] .. bounds[n, 1] {
          order[count[]] = i
          count[] = count[] + 1
        }
      }
    }"""
    order, count = run(text, np.array([[-2, 1], [3, 3], [5, 2], [7, 8]], "int32"))
    assert (order[:count], count) == ([-2, -1, 0, 7], 4)


def test_bounds_are_evaluated_once() -> None:
    text = """kernel f(n: int32[]) -> (n, count) {
      buffer count: int32[]
      serial i in 0 .. n[] {
        n[] = 100
        count[] = count[] + 1
      }
    }"""
    assert run(text, np.int32(3)) == [100, 3]


def test_statements_run_in_order() -> None:
    text = """kernel f() -> (a, b) {
      buffer a: int32[]
      buffer b: int32[]
      a[] = 1
      b[] = a[] + 1
      a[] = b[] * 5
      if (a[] == 10) {
        b[] = 7
        a[] = b[]
      } else {
        b[] = 8
      }
    }"""
    assert run(text) == [7, 7]


# Whole kernels.


def test_matmul() -> None:
    kernel = parse_kernel("""kernel matmul(a: float64[4, 5], b: float64[5, 3]) -> (c) {
      buffer c: float64[4, 3]
      parallel i in 0 .. 4 {
        parallel j in 0 .. 3 {
          reduction k in 0 .. 5 {
            c[i, j] = c[i, j] + (a[i, k] * b[k, j])
          }
        }
      }
    }""")
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(4, 5)), generator.normal(size=(5, 3))
    np.testing.assert_allclose(interpret(kernel, [a, b])[0], a @ b, 1e-14)


def test_lu_in_place() -> None:
    kernel = parse_kernel("""kernel lu(a: float64[6, 6]) -> (a) {
      serial k in 0 .. 6 {
        parallel i in (k + 1) .. 6 {
          a[i, k] = a[i, k] / a[k, k]
          parallel j in (k + 1) .. 6 {
            a[i, j] = a[i, j] - (a[i, k] * a[k, j])
          }
        }
      }
    }""")
    a = np.random.default_rng(1).normal(size=(6, 6)) + 6 * np.eye(6)
    (lu,) = interpret(kernel, [a])
    np.testing.assert_allclose((np.tril(lu, -1) + np.eye(6)) @ np.triu(lu), a, 1e-12)


def test_softmax_of_rows() -> None:
    kernel = parse_kernel("""kernel softmax(x: float32[3, 7]) -> (y) {
      buffer y: float32[3, 7]
      parallel i in 0 .. 3 {
        local top: float32[] {
          local total: float32[] {
            top[] = -inf:float32
            reduction j in 0 .. 7 {
              top[] = max(top[], x[i, j])
            }
            reduction k in 0 .. 7 {
              total[] = total[] + exp(x[i, k] - top[])
            }
            parallel l in 0 .. 7 {
              y[i, l] = exp(x[i, l] - top[]) / total[]
            }
          }
        }
      }
    }""")
    x = np.random.default_rng(2).normal(size=(3, 7)).astype("float32")
    e = np.exp(x.astype("float64") - x.max(1, keepdims=True))
    np.testing.assert_allclose(interpret(kernel, [x])[0], e / e.sum(1, keepdims=True), 1e-6)


def test_histogram() -> None:
    kernel = parse_kernel("""kernel histogram(at: uint8[50]) -> (count) {
      buffer count: int16[8]
      serial i in 0 .. 50 {
        count[at[i]] = count[at[i]] + 1:int16
      }
    }""")
    at = np.random.default_rng(3).integers(0, 8, 50).astype("uint8")
    assert interpret(kernel, [at])[0].tolist() == np.bincount(at, minlength=8).tolist()


def test_edit_distance() -> None:
    kernel = parse_kernel("""kernel distance(a: int32[7], b: int32[6]) -> (d) {
      buffer d: int32[8, 7]
      parallel i0 in 0 .. 8 {
        d[i0, 0] = i0
      }
      parallel j0 in 0 .. 7 {
        d[0, j0] = j0
      }
      serial i in 1 .. 8 {
        serial j in 1 .. 7 {
          local change: int32[] {
            change[] = (a[i - 1] == b[j - 1]) ? 0 : 1
            d[i, j] = min(min(d[i - 1, j] + 1, d[i, j - 1] + 1), d[i - 1, j - 1] + change[])
          }
        }
      }
    }""")
    words = [np.array(list(map(ord, word)), "int32") for word in ("sitting", "kitten")]
    assert interpret(kernel, words)[0][-1, -1] == 3


def test_wrong_inputs_are_refused() -> None:
    kernel = parse_kernel("kernel f(a: int32[2]) -> (a) {\n}")
    for wrong in ([], [array(1, 2, 3)], [array(1, 2, dtype="int64")], [array(1, 2)] * 2):
        with pytest.raises(ArgumentValueError, match="kernel 'f': expected inputs of shapes"):
            interpret(kernel, wrong)


# Loops in another order (rule 7).

ORDER = """kernel f(a: int32[{n}]) -> (sum, map, last) {{
  buffer sum: int32[]
  buffer map: int32[{n}]
  buffer last: int32[]
  {kind} i in 0 .. {n} {{
    sum[] = sum[] + a[i]
    map[i] = a[i] * 2
    last[] = a[i]
  }}
}}"""


@pytest.mark.parametrize("kind", ["serial", "parallel", "reduction"])
def test_shuffling_tells_which_loops_depend_on_their_order(kind: str) -> None:
    kernel = parse_kernel(ORDER.format(n=8, kind=kind))
    a = np.arange(8, dtype="int32")
    results = [interpret(kernel, [a], shuffle=random.Random(seed)) for seed in range(20)]
    assert {int(total) for total, _, _ in results} == {28}
    assert {tuple(doubled) for _, doubled, _ in results} == {tuple(range(0, 16, 2))}
    assert (len({int(last) for _, _, last in results}) > 1) == (kind != "serial")


def test_shuffling_is_repeatable() -> None:
    kernel = parse_kernel(ORDER.format(n=8, kind="parallel"))
    a = np.arange(8, dtype="int32")
    first, second = (interpret(kernel, [a], shuffle=random.Random(5))[2] for _ in range(2))
    assert first == second


# Random kernels: what the strategies promise.


@given(kernels(WIDE_DTYPES, indirect=False))
@settings(max_examples=examples(60), deadline=None)
def test_affine_accesses_of_random_kernels_are_in_range(case: Case) -> None:
    interpret(*case, check_bounds=True)


@given(kernels(WIDE_DTYPES))
@settings(max_examples=examples(60), deadline=None)
def test_random_kernels_leave_inputs_alone_and_stay_small(case: Case) -> None:
    before = [array.copy() for array in case.inputs]
    results = interpret(*case)
    again = interpret(*case)
    for first, second in zip((*before, *results), (*case.inputs, *again), strict=True):
        np.testing.assert_array_equal(first, second)
    for buffer, result in zip(case.kernel.outputs, results, strict=True):
        assert (result.shape, result.dtype.name) == (buffer.shape, buffer.dtype)
        if buffer.dtype in FLOATS:
            assert np.all(np.abs(result.astype("float64")) < 1e4)


@given(kernels(WIDE_DTYPES, smooth=True))
@settings(max_examples=examples(60), deadline=None)
def test_smooth_kernels_neither_compare_nor_round_floats(case: Case) -> None:
    for stmt in statements(case.kernel.body):
        for expr in (part for own in own_expressions(stmt) for part in expressions(own)):
            match expr:
                case Binary(op=op, left=left) if left.dtype in FLOATS:
                    assert op in ("add", "sub", "mul", "div")
                case Cast(operand=operand, dtype=dtype) if operand.dtype in FLOATS:
                    assert dtype in FLOATS
                case FunctionCall(function=function, args=args) if args[0].dtype in FLOATS:
                    assert function in (*LIPSCHITZ, "exp", "sqrt", "log")


def features(kernel: Kernel) -> set[str]:
    """Returns what a kernel has that a compiler must get right."""
    found = set()
    for stmt in statements(kernel.body):
        found.add(type(stmt).__name__)
        if isinstance(stmt, For) and any(expressions_of(stmt.begin, stmt.end, "Var")):
            found.add("triangular")
        for expr in own_expressions(stmt):
            found |= {type(part).__name__ for part in expressions(expr)}
            found |= {"table" for load in loads(expr) if load.buffer == "table"}
        if isinstance(stmt, If) and next((load for load in loads(stmt.condition)), None):
            found.add("data-dependent")
    written = {buffer.name for buffer in kernel.parameters} & set(kernel.results)
    return found | ({"in place"} if written else set())


def expressions_of(begin: Any, end: Any, kind: str) -> list[Any]:
    return [p for bound in (begin, end) for p in expressions(bound) if type(p).__name__ == kind]


@pytest.mark.slow
def test_random_kernels_have_every_feature() -> None:
    seen: set[str] = set()

    @given(kernels())
    @settings(max_examples=100, deadline=None, database=None, derandomize=True)
    def collect(case: Case) -> None:
        seen.update(features(case.kernel))

    collect()
    nodes = {cls.__name__ for cls in (For, If, Local, Select)} | {"Store", "Load", "Binary", "Cast"}
    assert seen >= nodes | {
        "Unary",
        "FunctionCall",
        "triangular",
        "table",
        "data-dependent",
        "in place",
    }


# Agreement (rule 6).


@given(kernels(), st.data())
@settings(max_examples=50, deadline=None)
def test_agreement_notices_a_changed_element(case: Case, data: st.DataObject) -> None:
    expected = interpret(*case)
    assert_agree(case.kernel, case.inputs, expected, expected)
    number = data.draw(st.integers(0, len(expected) - 1))
    changed = [array.copy() for array in expected]
    flat = changed[number].reshape(-1)
    where = data.draw(st.integers(0, flat.size - 1))
    bound = rounding_bound(case.kernel, case.inputs)
    old = flat[where]
    if flat.dtype.kind in "biu":
        flat[where] = old ^ flat.dtype.type(1)
    else:
        flat[where] = old + np.asarray(8 * bound + 1, flat.dtype)
    with pytest.raises(AssertionError):
        assert_agree(case.kernel, case.inputs, expected, changed)


def test_agreement_allows_what_reassociation_does() -> None:
    kernel = parse_kernel("""kernel total(a: float32[64]) -> (s) {
      buffer s: float32[]
      reduction i in 0 .. 64 {
        s[] = s[] + a[i]
      }
    }""")
    a = np.random.default_rng(0).normal(size=64).astype("float32")
    expected = interpret(kernel, [a])
    others = [interpret(kernel, [a], shuffle=random.Random(seed)) for seed in range(10)]
    assert {float(other[0]) for other in others} != {float(expected[0])}
    for other in others:
        assert_agree(kernel, [a], expected, other)
    assert rounding_bound(kernel, [a]) < 0.01


def test_agreement_wants_the_dtype_and_the_shape() -> None:
    kernel = parse_kernel("kernel f(a: int32[2]) -> (a) {\n}")
    a = [array(1, 2)]
    for wrong in (array(1, 2, dtype="int64"), np.array([[1, 2]], "int32")):
        with pytest.raises(AssertionError):
            assert_agree(kernel, a, a, [wrong])
    with pytest.raises(AssertionError):
        assert_agree(kernel, a, a, a * 2)


def test_the_bound_grows_with_what_is_stored() -> None:
    kernel = parse_kernel("kernel f(a: float32[]) -> (b) {\n buffer b: float32[]\n b[] = a[]\n}")
    small, large = (rounding_bound(kernel, [np.float32(value)]) for value in (1.0, 1000.0))
    assert large == pytest.approx(1000 * small)
    no_floats = dataclasses.replace(kernel, body=())
    assert rounding_bound(no_floats, [np.float32(1)]) == 0
