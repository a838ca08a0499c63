"""Windows that move with a loop: what they become as array operations, and what these take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
import jax
import numpy as np
import pytest
from jax.test_util import check_grads
from loop_agreement import assert_agree
from loop_ir import (
    Kernel,
    Stages,
    adjoint,
    analyse,
    body_text,
    count_windows,
    describe,
    interpret,
    parse_kernel,
    raise_kernel,
    to_raised,
    verify,
)
from loop_ir import build_jax as build
from loop_strategies import Case as Random
from loop_strategies import inputs_of
from random_examples import on_random

pytestmark = pytest.mark.usefixtures("as_users_compile")


@pytest.fixture(autouse=True)
def x64() -> Any:
    """All dtypes of the IR, without touching JAX's global flag."""
    with jax.enable_x64(True):
        yield


# What loops become.

SUM = "c[i] = c[i] + a[y]"


HEAD = "kernel k(a: float32[40], b: float32[40, 40], w: float32[40, 8], m: int32[40]) -> (c)"


def moving(begin: str, end: str, statement: str = SUM, outer: str = "0 .. 40") -> Kernel:
    """Returns a kernel with a loop over y inside of one over i."""
    kernel = parse_kernel(f"""{HEAD} {{
      buffer c: float32[40]
      buffer d: float32[40, 8]
      serial i in {outer} {{ serial y in ({begin}) .. ({end}) {{ {statement} }} }}
    }}""")
    verify(kernel)
    return kernel


def counted(kernel: Kernel) -> str:
    """Returns the text inside of the loop over i, after the pass, in one line."""
    after = count_windows(kernel)
    verify(after)
    _, *inside, _ = body_text(after.body).splitlines()
    return " ".join(line.strip() for line in inside)


@pytest.mark.parametrize(
    ("begin", "end", "outer", "head"),
    [
        ("i - 3", "i + 4", "3 .. 36", "serial y in 0 .. 7 { c[i] = c[i] + a[(i + y) - 3] }"),
        (
            "max(i - 3, 0)", "min(i + 4, 40)", "0 .. 40",
            "serial y in 0 .. 7 { if (0 <= ((i + y) - 3)) { if (((i + y) - 3) < 40) { "
            "c[i] = c[i] + a[(i + y) - 3] } } }",
        ),
        (
            "max(0, i - 3)", "i + 1", "0 .. 40",
            "serial y in 0 .. 4 { if (0 <= ((i + y) - 3)) { c[i] = c[i] + a[(i + y) - 3] } }",
        ),
        (
            "i", "min(39, i + 3) + 1", "0 .. 40",
            "serial y in 0 .. 4 { if ((i + y) < 40) { c[i] = c[i] + a[i + y] } }",
        ),
        ("i * 4", "(i * 4) + 4", "0 .. 10", "serial y in 0 .. 4 { c[i] = c[i] + a[(i * 4) + y] }"),
        (
            "max(max(i - 3, 0), i - 9)", "min(i + 4, min(40, i + 2))", "0 .. 40",
            "serial y in 0 .. 5 { if (0 <= ((i + y) - 3)) { if ((i - 9) <= ((i + y) - 3)) { "
            "if (((i + y) - 3) < (i + 4)) { if (((i + y) - 3) < 40) { "
            "c[i] = c[i] + a[(i + y) - 3] } } } } }",
        ),
    ],
)  # fmt: skip
def test_a_window_counts_from_zero(begin: str, end: str, outer: str, head: str) -> None:
    assert counted(moving(begin, end, outer=outer)) == head


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("0", "i"),
        ("i", "40"),
        ("max(i - 3, 0)", "40"),
        ("i - 3", "min(40, 2 * i)"),
        # Half of the axis is no window.
        ("max(i - 10, 0)", "min(i + 11, 40)"),
        # Bounds that are data.
        ("m[i]", "m[i] + 3"),
        ("max(i - 3, m[i])", "i + 4"),
        ("i - 3", "min(i + 4, m[i])"),
        # They wrap.
        ("min(i + 2147483640, 3) - 5", "min(i + 2147483640, 3)"),
        ("max(i - 2147483640, 0) - 9", "i - 5"),
        ("i - 3", "min(i + 2147483640, 2147483647) - 2147483640"),
        ("i - 99", "min(i + 2147483600, 5) + 2147483600"),
        # Nothing runs.
        ("max(i - 3, 0)", "i - 3"),
    ],
)
def test_what_is_no_window_stays(begin: str, end: str) -> None:
    kernel = moving(begin, end)
    assert count_windows(kernel) is kernel


MULTIPLIED = "serial j in 0 .. 8 { d[i, j] = d[i, j] + (b[i, y] * w[y, j]) }"


@pytest.mark.parametrize(
    ("begin", "end", "outer", "statement", "is_counted"),
    [
        ("max(i - 3, 0)", "min(i + 4, 40)", "0 .. 40", MULTIPLIED, False),
        ("i", "min(i + 2, 40)", "0 .. 40", MULTIPLIED, True),
        # Windows beside one another copy nothing.
        ("i * 8", "(i * 8) + 8", "0 .. 5", MULTIPLIED, True),
        # Nothing is summed over.
        ("max(i - 3, 0)", "min(i + 4, 40)", "0 .. 40",
         "serial j in 0 .. 8 { d[y, j] = d[y, j] + (b[i, y] * w[y, j]) }", True),
        ("max(i - 3, 0)", "min(i + 4, 40)", "0 .. 40", "c[i] = c[i] + (b[i, y] * a[y])", True),
        ("max(i - 3, 0)", "min(i + 4, 40)", "0 .. 40",
         "serial j in 0 .. 8 { d[i, j] = d[i, j] + a[y] }", True),
        ("max(i - 3, 0)", "min(i + 4, 40)", "0 .. 40",
         "serial j in 0 .. 8 { local s: float32[] { s[] = w[i, j] "
         "d[i, j] = d[i, j] + (w[y, j] * s[]) } }", True),
    ],
    ids=["a long window", "a short one", "groups", "an outer product", "a vector", "one factor",
         "a scalar"],
)  # fmt: skip
def test_long_windows_on_a_matrix_that_is_multiplied_stay(
    begin: str, end: str, outer: str, statement: str, is_counted: bool
) -> None:
    kernel = moving(begin, end, statement, outer)
    assert (count_windows(kernel) is not kernel) is is_counted


def test_windows_in_one_another_count_together() -> None:
    inner = "serial j in 0 .. 8 { d[i, j] = d[i, j] + (b[x, y] * w[y, j]) }"
    both = f"serial x in (i - 3) .. (i + 4) {{ {inner} }}"
    text = counted(moving("i - 3", "i + 4", both, "3 .. 36"))
    assert text.startswith("serial y in 0 .. 7 { serial x in 0 .. 7 {")


def test_the_steps_name_the_loops_as_they_were_written() -> None:
    kernel = moving("max(i - 3, 0)", "min(i + 4, 40)")
    assert describe(raise_kernel(to_raised(kernel))) == (
        "loops i, y (line 4): sum over windows, reduce_window",
    )


# What they compute.

STATEMENTS = (
    "c[i, j] = c[i, j] + a[y, x]",
    "c[i, j] = c[i, j] + (a[y, x] * b[y, x])",
    "c[i, j] = c[i, j] + ((a[y, x] - a[i, j]) * (b[i, j] - b[y, x]))",
    "c[i, j] = max(c[i, j], a[y, x])",
    "c[y, x] = c[y, x] + (a[i, j] * b[i, j])",
    "if ((y < i) && (x > 2)) { c[i, j] = c[i, j] + a[y, x] } e[i, j] = e[i, j] + 1.0:float64",
    "local t: float64[] { t[] = a[y, x] * 2.0:float64 c[i, j] = c[i, j] + (t[] * t[]) "
    "e[y, x] = t[] }",
    "c[i, j] = c[i, j] + float64((y * 3) + x)",
    "c[i, j] = (c[i, j] * 0.5:float64) + a[y, x]",
)


def begins(at: str, before: int) -> tuple[str, ...]:
    return (
        f"max({at} - {before}, 0)",
        f"max(0, {at} - {before})",
        f"max({at}, {before}) - {before}",
    )


def ends(at: str, size: int, after: int) -> tuple[str, ...]:
    return (
        f"min({at} + {after}, {size})",
        f"min({size}, {at} + {after})",
        f"min({at}, {size - after}) + {after}",
        f"min({size - 1}, {at} + {after - 1}) + 1",
    )


def window_kernel(rows: str, columns: str, statements: str, sizes: tuple[int, int]) -> Kernel:
    """Returns a kernel with windows along both axes of images."""
    shape, (height, width) = f"float64[{sizes[0]}, {sizes[1]}]", sizes
    kernel = parse_kernel(f"""kernel k(a: {shape}, b: {shape}) -> (c, e) {{
      buffer c: {shape}
      buffer e: {shape}
      serial i in 0 .. {height} {{ serial j in 0 .. {width} {{
        serial y in {rows} {{ serial x in {columns} {{ {statements} }} }}
      }} }}
    }}""")
    verify(kernel)
    return kernel


@st.composite
def windows(draw: st.DrawFn) -> Random:
    """Draws a kernel with windows, and its inputs."""
    height, width = 17, 19
    before, after = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    first, last = draw(st.integers(0, 2)), draw(st.integers(0, 3))
    rows, columns = (
        f"({begins(at, before)[first]}) .. ({ends(at, size, after)[last]})"
        for at, size in (("i", height), ("j", width))
    )
    statements = draw(st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=2, unique=True))
    kernel = window_kernel(rows, columns, " ".join(statements), (height, width))
    return Random(kernel, inputs_of(kernel, draw(st.integers(0, 99))))


def run(kernel: Kernel, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns what the array operations of a kernel compute."""
    return [np.asarray(array) for array in jax.jit(build(to_raised(kernel)))(*inputs)]


@on_random(windows(), quick=6, thorough=60)
def test_random_windows(case: Random) -> None:
    assert count_windows(analyse(case.kernel).common) != analyse(case.kernel).common
    with jax.enable_x64(True):
        expected = interpret(case.kernel, case.inputs)
        assert_agree(case.kernel, case.inputs, expected, run(case.kernel, case.inputs))


@pytest.mark.parametrize("statement", STATEMENTS[:3])
def test_gradients_of_windows(statement: str) -> None:
    rows, columns = (
        f"max({at} - 1, 0) .. min({at} + 2, {size})" for at, size in (("i", 12), ("j", 13))
    )
    kernel = window_kernel(rows, columns, statement, (12, 13))
    inputs = inputs_of(kernel, 0)
    function = build(to_raised(kernel))
    # That of the array operations, which JAX knows, and the loops of a gradient.
    check_grads(function, inputs, order=1, modes=["fwd", "rev"])
    results, pull_back = jax.vjp(lambda *arrays: function(*arrays), *inputs)
    cotangents = inputs_of(kernel, 1)
    got = run(adjoint(analyse(kernel).kernel), [*inputs, *cotangents])
    assert len(results) == len(cotangents)
    for want, have in zip(pull_back(list(cotangents)), got, strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-12, atol=1e-12)


def box(size: int) -> Kernel:
    """Returns the kernel of the sums of squares of 49 elements."""
    rows, columns = (f"max({at} - 3, 0) .. min({at} + 4, {size})" for at in "ij")
    statement = "c[i, j] = c[i, j] + (a[y, x] * a[y, x])"
    return window_kernel(rows, columns, statement, (size, size))


def memory(kernel: Kernel) -> int:
    """Returns the bytes that the program of a kernel's array operations works in."""
    shapes = [jax.ShapeDtypeStruct(b.shape, b.dtype) for b in kernel.parameters]
    compiled = jax.jit(build(to_raised(kernel))).lower(*shapes).compile()
    return int(compiled.memory_analysis().temp_size_in_bytes)


def test_memory_grows_with_the_image() -> None:
    # Over the hulls of the windows there would be 48 ** 4 elements, and 16 times as many.
    small, large = (memory(box(size)) for size in (48, 96))
    assert large < 5 * small
    assert large < 8 * 8 * 96**2


def test_memory_of_a_gradient_grows_with_the_image() -> None:
    small, large = (memory(adjoint(analyse(box(size)).kernel)) for size in (48, 96))
    assert large < 5 * small


def test_a_window_costs_no_more_than_its_elements() -> None:
    small, large = (Stages(box(size), "k").estimates.xla for size in (300, 600))
    assert large < 6 * small
    assert large < 0.1
