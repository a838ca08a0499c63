"""Loops whose bounds lie at the ends of int32, in every form that a kernel has."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from cuda_emulation import Emulation
from loop_ir import Kernel, cuda_source, interpret, pipeline, to_raised
from loop_ir import build_jax as build
from loop_native import build_together, call, prepared, printed
from loop_source import body, define, matrix, specialise, vector

LEAST, GREATEST = -(2**31), 2**31 - 1
STEPS = (1, 2, 3, 7, 2**30, 2**31 - 1, 2**31, 2**32 - 1, 2**40, -1, -2, -5, -(2**31), -(2**33))
MOST = 6
"""The longest loop that is run."""


def kernel_of(step: int) -> Kernel:
    func = define(
        f"""
        def k(n, c):
            for i in range(n[0], n[1], {step}):
                c[0] = c[0] * 31 + i
                c[1] += 1
            return c
        """
    )
    return specialise(func, vector(2, "int32"), vector(2, "int32"))


def pairs(step: int) -> list[tuple[int, int]]:
    """Returns bounds of short loops, near the ends of int32 and near 0."""
    near = [base + shift for base in (LEAST, 0, GREATEST) for shift in (-9, -2, -1, 0, 1, 2, 9)]
    inside = [bound for bound in near if LEAST <= bound <= GREATEST]
    return [(b, e) for b in inside for e in inside if len(range(b, e, step)) <= MOST]


def expected(begin: int, end: int, step: int) -> list[int]:
    total = count = 0
    for i in range(begin, end, step):
        total, count = total * 31 + i, count + 1
    return [(total + 2**31) % 2**32 - 2**31, count]


@pytest.mark.parametrize("step", STEPS)
def test_steps_are_counted_as_in_python(step: int) -> None:
    kernel, zeros = kernel_of(step), np.zeros(2, "int32")
    bounds = pairs(step)
    assert any(expected(*pair, step)[1] > 0 for pair in bounds)
    for pair in bounds:
        (got,) = interpret(kernel, [np.array(pair, "int32"), zeros])
        assert got.tolist() == expected(*pair, step), pair


def test_native_code_counts_the_same(tmp_path: Path) -> None:
    ready = [prepared(kernel_of(step)) for step in STEPS]
    sources = [printed(kernel, number) for number, kernel in enumerate(ready)]
    library = build_together(tmp_path, sources)
    for step, kernel, source in zip(STEPS, ready, sources, strict=True):
        for pair in pairs(step):
            inputs = [np.array(pair, "int32"), np.zeros(2, "int32")]
            (got,) = call(library, kernel, source, inputs)
            assert got.tolist() == expected(*pair, step), (step, pair)


@pytest.mark.parametrize("step", [2, 2**31, -1, -(2**31)])
def test_gpu_code_counts_the_same(step: int) -> None:
    kernel = kernel_of(step)
    told = pipeline.analyse(kernel)
    loops = pipeline.run(told.kernel, pipeline.PASSES_TO_CUDA)
    emulation = Emulation(kernel, cuda_source(loops, told.unproven, told.overwritten))
    for pair in pairs(step):
        (got,) = emulation.run([np.array(pair, "int32"), np.zeros(2, "int32")])
        assert got.tolist() == expected(*pair, step), pair


@pytest.mark.parametrize("step", [1, 2, 2**31, -1, -(2**31)])
def test_raised_loops_count_the_same(step: int) -> None:
    with jax.enable_x64(True):
        function = jax.jit(build(to_raised(kernel_of(step))))
        for pair in pairs(step):
            (got,) = function(np.array(pair, "int32"), np.zeros(2, "int32"))
            assert got.tolist() == expected(*pair, step), pair


@pytest.mark.parametrize(
    ("begin", "end", "step"),
    [
        (GREATEST - 5, GREATEST, 2),
        (LEAST, GREATEST, GREATEST),
        (GREATEST, LEAST, -GREATEST),
        (LEAST + 4, LEAST, -3),
        (LEAST, GREATEST, 2**32),
    ],
)
def test_constant_bounds_count_the_same(begin: int, end: int, step: int) -> None:
    func = define(
        f"""
        def k(c):
            for i in range({begin}, {end}, {step}):
                c[0] = c[0] * 31 + i
                c[1] += 1
            return c
        """
    )
    kernel = specialise(func, vector(2, "int32"))
    (got,) = interpret(kernel, [np.zeros(2, "int32")])
    assert got.tolist() == expected(begin, end, step)


def test_bounds_are_int32_where_the_loops_around_say_that_they_are_near() -> None:
    func = define(
        """
        def k(c):
            for i in range(8):
                for j in range(i, 8, 2):
                    c[i, j] = 1.0
            return c
        """
    )
    assert "serial j in 0 .. (((8 - i) + 1) // 2) {" in body(func, matrix(8, 8))
