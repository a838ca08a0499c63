"""msops::ParallelFor: what kernel authors split over XLA's threads."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import KERNELS
from custom_ops import first

from msops import Custom, errors, get_include

SOURCE = KERNELS / "parallel_ops.cc"


def op(symbol: str, out_shape: Any = first, out_dtype: Any = np.float32) -> Custom:
    return Custom(f"{SOURCE}:{symbol}", out_shape, out_dtype)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1000, 100_003])
def test_every_element_is_computed(size: int) -> None:
    x = np.random.default_rng(size).random(size, np.float32)
    np.testing.assert_array_equal(jax.jit(op("ParallelSqrt"))(x), np.sqrt(x))


@pytest.mark.parametrize("grain", [-1, 0, 1, 7, 1000])
def test_every_iteration_runs_once_on_several_threads(grain: int) -> None:
    visits = np.asarray(op("Visits", [101], np.int32)(np.float32([grain])))
    np.testing.assert_array_equal(visits[:-1], 1)
    if grain >= 100:
        assert visits[-1] == 1
    elif len(os.sched_getaffinity(0)) > 1:
        assert visits[-1] > 1


def test_a_loop_in_a_block_runs_there() -> None:
    x = np.zeros(40, np.float32)
    assert op("Nested", [])(x) == np.outer(np.arange(40), np.arange(40)).sum()


@pytest.mark.parametrize("size", [2, 5, 97])
def test_a_loop_ends_before_the_next_one_begins(size: int) -> None:
    x = np.zeros(size, np.float32)
    rows = op("InARow", first, np.int32)
    with ThreadPoolExecutor(4) as pool:
        for counted in pool.map(lambda _: np.asarray(rows(x)), range(40)):
            np.testing.assert_array_equal(counted, 400)


def test_ops_at_the_same_time_share_the_threads() -> None:
    x = np.zeros(40, np.float32)
    sqrt, nested = op("ParallelSqrt"), op("Nested", [])
    values = jnp.arange(50_000, dtype=jnp.float32)
    program = jax.jit(lambda v: [sqrt(v + i) for i in range(8)] + [nested(x)])

    def check(_: int) -> None:
        *roots, total = program(values)
        for i, root in enumerate(roots):
            np.testing.assert_array_equal(root, np.sqrt(np.asarray(values) + i))
        assert total == (39 * 20) ** 2

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(check, range(40)))


def test_an_exception_in_a_block_is_the_error_of_the_op() -> None:
    throws = op("Throws", [])
    for _ in range(20):
        with pytest.raises(errors.KernelError) as caught:
            throws(np.zeros(1, np.float32))
        assert "std::domain_error: no block may be round" in str(caught.value)


def test_without_lent_threads_the_loop_runs_where_it_is_called() -> None:
    np.testing.assert_array_equal(op("Unsplit", [2], np.int32)(np.zeros(1, np.float32)), [1, 1])
    counted = op("Counted", None)
    np.testing.assert_array_equal(counted(np.full(300, 4, np.float32)), np.full(300, 2))


@pytest.mark.parametrize("abi", [0, 1])
def test_a_library_of_several_sources_built_elsewhere_gets_threads(
    abi: int, tmp_path: Path
) -> None:
    (tmp_path / "other.cc").write_text(
        '#include "msops_parallel_for.h"\n'
        "void Twice(void *extra, float *y, int64_t n) {\n"
        "  msops::ParallelFor(extra, n, 1, [=](int64_t begin, int64_t end) {\n"
        "    for (int64_t i = begin; i < end; ++i) y[i] *= 2;\n"
        "  });\n"
        "}\n"
    )
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden"]
    command += [f"-D_GLIBCXX_USE_CXX11_ABI={abi}", f"-I{get_include()}", "-Wall", "-Wextra"]
    command += ["-Werror", "-Wno-unused-parameter", str(SOURCE), "other.cc", "-o", "both.so"]
    text = SOURCE.read_text().replace(
        'extern "C" ', 'extern "C" __attribute__((visibility("default"))) '
    )
    (tmp_path / "parallel.cc").write_text(text)
    command[command.index(str(SOURCE))] = "parallel.cc"
    subprocess.run(command, cwd=tmp_path, check=True)
    visits = Custom(f"{tmp_path / 'both.so'}:Visits", [101], np.int32)(np.float32([1]))
    np.testing.assert_array_equal(np.asarray(visits)[:-1], 1)
    if len(os.sched_getaffinity(0)) > 1:
        assert visits[-1] > 1
