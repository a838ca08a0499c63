"""What the polyhedral analyses say of accesses, compared with the accesses of runs."""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from loop_ir import (
    Dependence,
    For,
    Kernel,
    TooComplex,
    analyse,
    check_bounds,
    dependences,
    find_kinds,
    find_overwritten,
    find_unwritten,
    mark_loops,
    parse_kernel,
    to_raised,
)
from loop_ir import isl as library
from loop_strategies import Case, inputs_of, kernels
from loop_trace import Event, trace
from random_examples import examples

several = settings(max_examples=examples(80), deadline=None)

# Dependences.


@several
@given(kernels())
def test_dependences_are_those_of_a_run(case: Case) -> None:
    found = dependences(case.kernel)
    met = meetings(trace(case.kernel, case.inputs))
    assert met <= {key(dependence) for dependence in found}
    assert {key(dependence) for dependence in found if dependence.is_exact} <= met


def meetings(events: Iterable[Event]) -> set[tuple[object, ...]]:
    """Returns which accesses touch one element, one of them writing, and the loop that differs."""
    earlier: dict[tuple[object, ...], list[Event]] = defaultdict(list)
    found = set()
    for event in events:
        if event.element is None:
            continue
        others = earlier[(event.memory, event.element)]
        for other in others:
            carrier = next(
                (var for (var, value), (_, before) in common(event, other) if value != before),
                None,
            )
            is_same = other.order == event.order and carrier is None
            if (other.is_write or event.is_write) and not is_same:
                found.add((other.order, other.node, event.order, event.node, carrier))
        others.append(event)
    return found


def common(a: Event, b: Event) -> list[tuple[tuple[str, int], tuple[str, int]]]:
    """Returns the variables of common loops with their values in both."""
    pairs = []
    for one, other in zip(a.iteration, b.iteration, strict=False):
        if one[0] != other[0]:
            break
        pairs.append((one, other))
    return pairs


def key(dependence: Dependence) -> tuple[object, ...]:
    source, target = dependence.source, dependence.target
    return (source.order, source.node, target.order, target.node, dependence.carrier)


# Indices.


@several
@given(kernels(), st.data())
def test_indices_out_of_range_are_found(case: Case, data: st.DataObject) -> None:
    kernel = with_a_shorter_buffer(case.kernel, data)
    events = trace(kernel, inputs_of(kernel, 0))
    bounds = check_bounds(kernel)
    assert bounds.unproven is not None
    shapes = {buffer.name: buffer.shape for buffer in (*kernel.parameters, *kernel.buffers)}
    outside = {
        (event.node.buffer, event.node.indices, axis)
        for event in events
        if event.node.buffer in shapes
        for axis, (index, size) in enumerate(
            zip(event.indices, shapes[event.node.buffer], strict=True)
        )
        if not 0 <= index < size
    }
    assert outside <= bounds.unproven
    # What is reported does happen.
    assert not bounds.findings or outside


def with_a_shorter_buffer(kernel: Kernel, data: st.DataObject) -> Kernel:
    places = [
        (buffer, axis)
        for buffer in (*kernel.parameters, *kernel.buffers)
        for axis, size in enumerate(buffer.shape)
        if size > 1
    ]
    assume(places)
    chosen, axis = data.draw(st.sampled_from(places))
    shape = tuple(size - (n == axis) for n, size in enumerate(chosen.shape))
    parameters, buffers = (
        tuple(dataclasses.replace(b, shape=shape) if b is chosen else b for b in group)
        for group in (kernel.parameters, kernel.buffers)
    )
    return dataclasses.replace(kernel, parameters=parameters, buffers=buffers)


def test_an_index_out_of_range_is_told_with_an_iteration() -> None:
    kernel = parse_kernel("""
        kernel late(a: float32[4]) -> (b) {
          buffer b: float32[5]
          serial i in 0 .. 5 {
            b[i] = a[i]
          }
        }""")
    (finding,) = check_bounds(kernel).findings
    assert finding.message == "reads a[4] of a: float32[4] at i = 4"
    assert finding.location is not None
    assert finding.location.line == 5


def test_isl_may_fail_to_find_the_first_iteration_with_an_index_out_of_range() -> None:
    # Its lexmin has an internal error at these iterations.
    kernel = parse_kernel("""
        kernel even_rows(b: float64[3, 3]) -> (sums) {
          buffer sums: float64[3]
          serial i in 0 .. 3 {
            if ((i % 2) == 0) {
              serial j in 0 .. (i + 1) {
                sums[i] = sums[i] + b[i, i + j]
              }
            }
          }
        }""")
    messages = [f.message for f in check_bounds(kernel).findings if f.kind == "out of range"]
    assert messages in (
        [f"reads b[i, {2 + j}] of b: float64[3, 3] at i = 2, j = {j}"] for j in (1, 2)
    )


def test_an_index_that_overflows_is_out_of_range() -> None:
    kernel = parse_kernel("""
        kernel huge(a: int8[1]) -> (b) {
          buffer b: int8[4900000000]
          serial i in 0 .. 70000 {
            serial j in 0 .. 70000 {
              b[(i * 70000) + j] = a[0]
            }
          }
        }""")
    (finding,) = check_bounds(kernel).findings
    assert 30678 * 70000 + 23648 == 2**31
    assert finding.message == (
        "writes b[-2147483648] of b: int8[4900000000] at i = 30678, j = 23648, "
        "where '(i * 70000) + j' overflows int32"
    )


def test_an_index_that_wraps_into_range_is_no_error() -> None:
    kernel = parse_kernel("""
        kernel hashed() -> (b) {
          buffer b: int32[8]
          serial i in 0 .. 8 {
            b[((i * 1103515245) + 12345) % 8] = i
            b[(i * 1073741824) * 4] = i
          }
        }""")
    assert check_bounds(kernel).findings == ()


def test_a_condition_that_cannot_be_analysed_makes_no_error() -> None:
    kernel = parse_kernel("""
        kernel guarded(a: float32[4], at: int32[4]) -> (b) {
          buffer b: float32[4]
          serial i in 0 .. 4 {
            if (at[i] > 0) {
              b[i] = a[i + 1] + a[at[i]]
            }
          }
        }""")
    bounds = check_bounds(kernel)
    assert bounds.findings == ()
    assert {(buffer, axis) for buffer, _, axis in bounds.unproven or ()} == {("a", 0)}
    assert len(bounds.unproven or ()) == 2


# Unwritten elements.


@several
@given(kernels())
def test_reads_of_unwritten_elements_are_found(case: Case) -> None:
    kernel = case.kernel
    events = trace(kernel, case.inputs)
    written = find_unwritten(kernel)
    read = {event.node.buffer for event in events if event.is_unwritten}
    assert not read & written.overwritten
    # What is reported does happen.
    assert len(written.findings) <= len({(e.order, e.node) for e in events if e.is_unwritten})
    for buffer in kernel.buffers:
        if buffer.name in written.overwritten & set(kernel.results):
            filled = {e.element for e in events if e.is_write and e.node.buffer == buffer.name}
            assert len(filled - {None}) == np.prod(buffer.shape, dtype=int)


def test_the_published_square_reads_its_result_unwritten() -> None:
    kernel = parse_kernel("""
        kernel square(x: float32[4, 8]) -> (y) {
          buffer y: float32[4, 8]
          serial i0 in 0 .. 4 {
            serial i1 in 0 .. 8 {
              y[i0, i1] = y[i0, i1] * y[i0, i1]
            }
          }
        }""")
    (finding,) = find_unwritten(kernel).findings
    assert finding.location is not None
    assert finding.location.line == 6
    assert finding.message == (
        "y[i0, i1] is read at i0 = 0, i1 = 0, and nothing has written it before"
    )


def test_the_first_unwritten_read_of_each_array_is_found() -> None:
    kernel = parse_kernel("""
        kernel f(x: float32[8]) -> (y, z) {
          buffer y: float32[8]
          buffer z: float32[8]
          serial i in 0 .. 8 {
            y[i] = y[i] + x[i]
            z[i] = (z[i] + y[i]) + z[7]
            y[0] = y[7]
          }
        }""")
    found = [(each.location.line, each.message) for each in find_unwritten(kernel).findings]
    assert found == [
        (6, "y[i] is read at i = 0, and nothing has written it before"),
        (7, "z[i] is read at i = 0, and nothing has written it before"),
    ]


def test_a_sum_started_in_its_loop_reads_nothing_unwritten() -> None:
    kernel = parse_kernel("""
        kernel total(a: float32[4, 8]) -> (s) {
          buffer s: float32[4]
          serial i in 0 .. 4 {
            serial j in 0 .. 8 {
              if (j == 0) {
                s[i] = 0.0:float32
              }
              s[i] = s[i] + a[i, j]
            }
          }
        }""")
    written = find_unwritten(kernel)
    assert written.findings == ()
    assert written.overwritten == {"s"}


# What both branches of a condition on data write.

BRANCHES = {
    "if (a[i] > 0) { s[i] = 1 } else { s[i] = 0 }": True,
    "if (a[i] > 0) { s[i] = 1  t[i] = a[i] } else { t[i] = 0  s[i] = 0 }": True,
    "if (a[i] > 0) { if (a[i] > 1) { s[i] = 2 } else { s[i] = 1 } } else { s[i] = 0 }": True,
    "if (a[i] > 0) { local u: int32[] { u[] = a[i]  s[i] = u[] } } else { s[i] = 0 }": True,
    "if (a[i] > 0) { s[i] = 1 } else { s[i] = 0 }  t[i] = s[i]": True,
    "if (a[i] > 0) { s[i] = 1 }": False,
    "if (a[i] > 0) { s[i] = 1 } else { s[7 - i] = 0 }": False,
    "if (a[i] > 0) { s[i] = 1 } else { t[i] = 0 }": False,
    "if (a[i] > 0) { if (a[i] > 1) { s[i] = 2 } } else { s[i] = 0 }": False,
    "if (a[i] > 0) { s[i] = 1 } else { serial j in 0 .. i { s[i] = 0 } }": False,
    "if (a[i] > 0) { t[i] = s[i]  s[i] = 1 } else { s[i] = 0 }": False,
    "if (a[i] > 0) { s[i] = 1 } else { s[i] = s[i] }": False,
    "if (a[i] > 0) { s[at[i]] = 1 } else { s[at[i]] = 0 }": False,
    "t[i] = s[i]  if (a[i] > 0) { s[i] = 1 } else { s[i] = 0 }": False,
}


@pytest.mark.parametrize("body", BRANCHES)
def test_what_both_branches_write_is_written(body: str) -> None:
    kernel = parse_kernel(f"""
        kernel f(a: int32[8], at: int32[8]) -> (s, t) {{
          buffer s: int32[8]
          buffer t: int32[8]
          serial i in 0 .. 8 {{
            {body}
          }}
        }}""")
    assert ("s" in find_unwritten(kernel).overwritten) == BRANCHES[body]


def test_only_the_arrays_asked_for_are_overwritten() -> None:
    kernel = parse_kernel("""
        kernel f(a: int32[8]) -> (s) {
          buffer s: int32[8]
          buffer t: int32[8]
          serial i in 0 .. 8 {
            s[i] = t[i]
            if (a[i] > 0) { t[i] = 1  s[i] = 1 } else { t[i] = 2  s[i] = 0 }
          }
        }""")
    assert find_overwritten(kernel, {"s"}) == {"s"}


def test_a_temporary_that_both_branches_write_is_one_of_each_iteration() -> None:
    kernel = parse_kernel("""
        kernel f(a: int32[8]) -> (s) {
          buffer s: int32[8]
          buffer t: int32[]
          serial i in 0 .. 8 {
            if (a[i] > 0) { t[] = a[i] } else { t[] = 0 }
            s[i] = t[]
          }
        }""")
    assert analyse(kernel).kernel.body[0].kind == "parallel"


# Kinds of loops.

LOOPS = {
    "b[i] = a[i]": "parallel",
    "b[i] = a[i + 1] + b[i]": "parallel",
    "b[i + 1] = b[i] + a[i]": "serial",
    "b[i] = b[i + 1] + a[i]": "serial",
    "b[7 - i] = b[i + 8] + a[i]": "parallel",
    "b[i // 2] = b[i // 2] + a[i]": "reduction",
    "b[2] = b[2] + a[i]": "reduction",
    "b[2] = (b[2] - a[i]) + a[i + 1]": "reduction",
    "b[2] = a[i] - b[2]": "serial",
    "b[2] = max(a[i], b[2])": "reduction",
    "b[2] = b[2] + b[i]": "serial",
    "b[at[i]] = b[at[i]] + a[i]": "reduction",
    "b[at[i]] = a[i]": "serial",
    "b[i % 4] = a[i]": "serial",
    "b[2 * i] = b[(2 * i) + 1] + a[i]": "parallel",
    "b[3 * i] = b[(2 * i) + 1] + a[i]": "serial",
}


@pytest.mark.parametrize("store", LOOPS)
def test_kinds_of_loops(store: str) -> None:
    assert kind_of(store) == LOOPS[store]


def kind_of(store: str, hint: str = "") -> str:
    (loop,) = mark_loops(one_loop(store, hint)).body
    assert isinstance(loop, For)
    return loop.kind


def one_loop(store: str, hint: str = "") -> Kernel:
    return parse_kernel(f"""
        kernel one(a: float32[9], at: int32[8]) -> (b) {{
          buffer b: float32[24]
          serial i in 0 .. 8 {hint} {{
            {store}
          }}
        }}""")


@pytest.mark.parametrize(
    ("op", "kind"), [("b[2] + a[i]", "reduction"), ("max(b[2], a[i])", "serial")]
)
def test_updates_by_one_operation_may_be_reordered(op: str, kind: str) -> None:
    store = f"b[2] = b[2] - a[i + 1]\nb[2] = {op}"
    assert kind_of(store) == kind


def test_what_is_not_affine_may_be_promised() -> None:
    assert kind_of("b[at[i]] = a[i]", "@parallel") == "parallel"
    marked = find_kinds(one_loop("b[at[i]] = a[i]", "@vectorize"))
    assert marked.findings == ()
    assert marked.explanation == (
        "loop i (<kernel text>:4): parallel, as its author promises by 'vectorize'",
    )


def test_a_promise_that_is_wrong_is_refused() -> None:
    marked = find_kinds(one_loop("b[i + 1] = b[i] + a[i]", "@parallel"))
    (finding,) = marked.findings
    why = "b[i + 1] at line 5 is written and is read as b[i] at line 5 in a later iteration"
    assert finding.kind == "hint"
    assert finding.message == f"loop i cannot be 'parallel': {why}"
    assert marked.explanation == (f"loop i (<kernel text>:4): serial, because {why}",)
    assert kind_of("b[i + 1] = b[i] + a[i]", "@parallel") == "serial"


# Whatever the data are: where the loop runs, two iterations meet.
WRONG_PROMISES = [
    "b[at[i] % 2] = b[at[i] % 2] + ((j < 3) ? a[j] : b[0])",
    "b[at[0]] = (3.0 * b[at[0]]) + a[j]",
    "b[at[i]] = a[j]",
    "b[j + 1] = b[j] + a[j]",
    "b[at[i] % 1] = b[at[i] % 1] + ((j < 3) ? a[j] : b[0])",
    "b[at[i] + j] = b[(at[i] + j) + 1] * 0.5",
    "b[at[i] + i] = b[i + at[i]] * 0.5",
]
# Data may make them right.
POSSIBLE_PROMISES = [
    "if (at[0] > 0) { b[j + 1] = b[j] + a[at[i]] }",
    "b[at[j]] = (3.0 * b[at[j]]) + a[j]",
    "b[at[i] + j] = b[(at[0] + j) + 1] * 0.5",
    "if (a[j] > 0.0) { b[at[i]] = a[j] }",
    "if (j > at[i]) { b[0] = a[j] }",
    "b[j] = b[at[i]] + a[j]",
]


@pytest.mark.parametrize("keyword", ["parallel", "vectorize"])
@pytest.mark.parametrize(
    ("text", "is_wrong"),
    [(text, True) for text in WRONG_PROMISES] + [(text, False) for text in POSSIBLE_PROMISES],
)
def test_a_promise_is_wrong_whatever_is_outside_the_loop(
    text: str, is_wrong: bool, keyword: str
) -> None:
    text = re.sub(r"(\d\.\d)", r"\1:float32", text.replace("{ ", "{\n").replace(" }", "\n}"))
    kernel = parse_kernel(f"""
        kernel k(a: float32[8], at: int32[8], b: float32[8]) -> (b) {{
          serial i in 0 .. 8 {{
            if (a[i] > 0.0:float32) {{
              serial j in 0 .. 7 @{keyword} {{
                {text}
              }}
            }}
          }}
        }}""")
    found = find_kinds(kernel)
    assert (found.by_variable["j"] == "serial") is is_wrong
    assert [f"loop j cannot be '{keyword}'" in f.message for f in found.findings] == [
        True
    ] * is_wrong


def test_an_asked_order_is_kept() -> None:
    assert kind_of("b[i] = a[i]", "@serial") == "serial"


# Locals, and limits.


def test_a_local_is_no_dependence_between_iterations() -> None:
    kernel = parse_kernel("""
        kernel swap(a: float32[8]) -> (a) {
          serial i in 0 .. 4 {
            local t: float32[] {
              t[] = a[i]
              a[i] = a[7 - i]
              a[7 - i] = t[]
            }
          }
        }""")
    assert all(dependence.carrier is None for dependence in dependences(kernel))


def test_guards_in_expressions_narrow_what_is_read() -> None:
    kernel = parse_kernel("""
        kernel shifted(a: float32[8]) -> (a) {
          serial i in 0 .. 8 {
            a[i] = (i >= 8) ? a[i - 1] : 1.0:float32
          }
        }""")
    assert dependences(kernel) == ()


def test_beyond_its_limit_isl_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = one_loop("if (i < 3) { b[i] = a[i] }")
    monkeypatch.setattr(library, "OPERATION_LIMIT", 10)
    analysis = analyse(kernel)
    (loop,) = analysis.kernel.body
    assert isinstance(loop, For)
    assert loop.kind == "serial"
    # The intervals of the indices need no isl.
    assert analysis.unproven == frozenset()
    assert analysis.overwritten == frozenset()
    assert analysis.explanation == (
        "loop i (<kernel text>:4): serial, because its dependences are too complex to analyse",
    )
    with pytest.raises(TooComplex):
        to_raised(kernel)
    assert analyse(one_loop("if (i < 3) { b[i] = a[i + 2] }")).unproven is None


def test_an_unwritten_element_is_found_where_isl_has_no_first_iteration() -> None:
    """isl's `lexmin` fails at the iterations that read `out` by `i % 2` before they write it."""
    kernel = parse_kernel("""
        kernel f(p: int8[10, 10]) -> (out) {
          buffer out: int8[10, 10]
          serial k in 0 .. 10 {
            out[k, k] = p[k, k]
          }
          serial j in 0 .. 10 {
            serial i in 0 .. 10 {
              if (!(j <= 0)) {
                out[j, j] = p[j, j]
                serial m in 0 .. 10 { out[j, j] = out[j, j] + (0:int8 + p[j, j]) }
                out[i % 2, (j % 2) + 2] = out[i % 2, (j % 2) + 2] + p[j, j]
                out[i, j] = out[i, j] + 0:int8
              }
            }
          }
        }""")
    events = trace(kernel, [np.ones((10, 10), np.int8)])
    unwritten = [e for e in events if e.is_unwritten]
    findings = [finding for finding in analyse(kernel).findings if "nothing" in finding.message]
    assert findings
    for finding in findings:
        # Passes before it split the loop over i.
        found = re.search(r" is read at j = (\d)", finding.message)
        assert found is not None
        assert any(("j", int(found[1])) in event.iteration for event in unwritten), finding.message
