"""Intervals of what arrays of integers hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loop_ir import contents, interpret, parse_kernel, visit

from msops import Custom

TEXT = """kernel k(x: int32[20], y: float32[20]) -> (a, b) {{
  buffer a: int32[20]
  buffer b: int32[20]
  local n: int32[] {{
    serial i in 0 .. 20 {{ {first} }}
    serial j in 0 .. 20 {{ {then} }}
  }}
}}"""


def found(first: str, then: str = "") -> dict[str, tuple[int, int]]:
    return contents(parse_kernel(TEXT.format(first=first, then=then)))


@pytest.mark.parametrize(
    ("first", "then", "intervals"),
    [
        ("a[i] = i", "a[j // 2] = a[j]", {"a": (0, 19)}),
        ("a[i] = i", "n[] = a[j] a[0] = n[]", {"a": (0, 19), "n": (0, 19)}),
        ("a[i] = 3 - i", "b[j] = -5", {"a": (-16, 3), "b": (-5, 0)}),
        ("a[i] = x[i] % 10", "b[j] = a[a[j]]", {"a": (0, 9), "b": (0, 9)}),
        ("a[i] = b[i]", "b[j] = a[j] b[3] = 7", {"a": (0, 7), "b": (0, 7)}),
        ("a[i] = i", "a[j] = min(a[a[j]], j)", {"a": (0, 19)}),
        ("n[] = max(x[i], 3)", "serial k in n[] .. min(x[j], 9) { a[j] = k }",
         {"a": (0, 8), "n": (0, 2**31 - 1)}),
        ("a[i] = int32(floor(y[i]))", "b[j] = 2", {"b": (0, 2)}),
        ("a[i] = i", "n[] = n[] + 1 b[j] = n[]", {"a": (0, 19)}),
        ("a[i] = x[i]", "b[j] = a[j]", {}),
        ("a[i] = a[i] + 1", "b[j] = a[j] - 1", {}),
        ("x[i] = 1", "a[j] = x[j]", {"b": (0, 0), "n": (0, 0)}),
    ],
    ids=["a permutation", "by a variable", "negative", "remainders", "a cycle", "a forest",
         "a window", "floats", "a counter", "data", "grows", "an input"],
)  # fmt: skip
def test_intervals(first: str, then: str, intervals: dict[str, tuple[int, int]]) -> None:
    zero = {name: (0, 0) for name in "abn" if f"{name}[" not in first + then}
    assert found(first, then) == {**zero, **intervals}


def test_bounds_in_variables_say_where_a_loop_is() -> None:
    kernel = parse_kernel(
        TEXT.format(first="n[] = x[i] % 7", then="serial k in n[] .. 9 { a[k] = 1 }")
    )
    (inside,) = [scope for stmt, scope in visit(kernel) if len(scope.loops) == 2]
    assert inside.ranges == {"j": (0, 19), "k": (0, 8)}


VALUES = st.sampled_from(
    ["i", "3 - i", "x[i] % 7", "a[i]", "b[i]", "max(a[i], b[i])", "a[i] + 1", "n[]", "-(b[i])"]
)
STORES = st.builds("{}[{}] = {}".format, st.sampled_from("ab"), st.just("i"), VALUES)
VARIABLES = st.builds("n[] = {}".format, VALUES)


@given(st.lists(STORES | VARIABLES, min_size=1, max_size=5), st.lists(STORES, max_size=3))
def test_no_run_leaves_them(first: list[str], then: list[str]) -> None:
    text = TEXT.format(first=" ".join(first), then=" ".join(then).replace("i", "j"))
    kernel = parse_kernel(text)
    inputs = [np.arange(-10, 10, dtype=np.int32) * 5, np.ones(20, np.float32)]
    known = contents(kernel)
    for name, result in zip("ab", interpret(kernel, inputs), strict=True):
        low, high = known.get(name, (-(2**31), 2**31))
        assert low <= result.min()
        assert result.max() <= high


def squeezed(x, y):  # type: ignore[no-untyped-def]  # a kernel
    out = output_tensor(x.shape, x.dtype)  # noqa: F821
    listed = allocate(x.shape, "int32")  # noqa: F821
    for i in range(x.shape[0]):
        listed[i] = i
    count = 0
    for i in range(x.shape[0]):
        at = listed[i]
        if y[at] > 0.0:
            listed[count] = at
            count += 1
    for i in range(count):
        out[i] = x[listed[i]]
    return out


def test_elements_at_listed_indices_are_read_unguarded() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 60)).astype(np.float32)
    op = Custom(squeezed, func_type="akg", compile_attrs={"lower": "native"})
    kept = x[y > 0]
    np.testing.assert_array_equal(op(x, y), np.pad(kept, (0, 60 - len(kept))))
