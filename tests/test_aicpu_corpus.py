"""AICPU kernels as MindSpore publishes them: all compile, and some of each kind run.

They are no part of the repository: MSOPS_TEST_AICPU_SOURCES names the folder ``cpu_kernel`` with
them, and without it these tests are skipped.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import scipy
from aicpu_cases import attribute_type
from test_aicpu_api import HEADERS, eigen_flags

import msops
from msops.ops import CustomRegOp

NAMED = os.environ.get("MSOPS_TEST_AICPU_SOURCES")
THEIRS = Path(NAMED or "").absolute()
KERNELS = THEIRS / "ms_kernel"
SOURCES = sorted(str(path.relative_to(KERNELS)) for path in KERNELS.rglob("*.cc")) if NAMED else []

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SOURCES, reason="there is no folder with published AICPU kernels"),
]


# Its decompositions by Eigen, of four types each, take g++ over four minutes and 4 GB.
TOO_LONG = {"lstsqv2.cc"}


@pytest.mark.parametrize("name", sorted({*SOURCES} - TOO_LONG))
def test_a_published_kernel_compiles(name: str) -> None:
    folders = [KERNELS, HEADERS, THEIRS, THEIRS.parent]
    flags = ["-std=c++17", "-fsyntax-only", "-w", "-include", "eigen_assert.h", *eigen_flags()]
    command = ["g++", *flags, *(f"-I{folder}" for folder in folders), name]
    done = subprocess.run(command, cwd=KERNELS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]


def call(
    source: str,
    kernel: str,
    outputs: Mapping[str, tuple[int, ...]],
    inputs: list[Any],
    options: Mapping[str, Any] | None = None,
    **attributes: Any,
) -> list[np.ndarray]:
    """Calls a published kernel.

    Args:
      source: its file.
      kernel: the name that it registers.
      outputs: the shapes of the outputs; a key is a dtype, and after a dot what tells two apart.
      inputs: arrays.
      options: of `Custom`.
      attributes: values by name.
    """
    made = CustomRegOp(kernel).target("Ascend")
    for index in range(len(inputs)):
        made.input(index, f"x{index}")
    for index in range(len(outputs)):
        made.output(index, f"y{index}")
    for name, value in attributes.items():
        made.attr(name, "required", attribute_type(value))
    shapes, dtypes = (
        tuple(outputs.values()),
        tuple(np.dtype(name.split(".")[0]) for name in outputs),
    )
    op = msops.Custom(
        KERNELS / source,
        shapes if len(shapes) > 1 else shapes[0],
        dtypes if len(dtypes) > 1 else dtypes[0],
        "aicpu",
        reg_info=made.get_op_info(),
        **(options or {}),
    )
    with jax.enable_x64(True):
        results = op(*inputs, *attributes.values())
        return [np.asarray(array) for array in jax.tree.leaves(results)]


def test_im2col_reads_the_format_of_its_input() -> None:
    x = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    blocks = np.lib.stride_tricks.sliding_window_view(x, (2, 2), (2, 3))
    expected = blocks.reshape(2, 3, 12, 4).transpose(0, 1, 3, 2)
    (got,) = call(
        "im2col.cc",
        "Im2col",
        {"float32": (2, 3, 4, 12)},
        [x],
        ksizes=[2, 2],
        strides=[1, 1],
        dilations=[1, 1],
        pads=[0, 0],
    )
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("data_format", ["NCHW", "NHWC", ""])
def test_avgpool_reads_the_format_of_its_input(data_format: str, padding: str) -> None:
    """By an attribute, as MindSpore gives it; without one it is NCHW."""
    x = np.random.default_rng(0).normal(size=(2, 3, 7, 6)).astype(np.float32)
    pictures = x if data_format == "NHWC" else x.transpose(0, 2, 3, 1)
    window, strides = (1, 3, 2, 1), (1, 2, 2, 1)  # of the batch, height, width and channels

    def sums(array: np.ndarray) -> np.ndarray:
        zero = np.float32(0)
        return np.asarray(jax.lax.reduce_window(array, zero, jax.lax.add, window, strides, padding))

    expected = sums(pictures) / sums(np.ones_like(pictures))
    order = (0, 1, 2, 3) if data_format == "NHWC" else (0, 3, 1, 2)
    (got,) = call(
        "avgpool.cc",
        "AvgPool",
        {"float32": tuple(expected.shape[axis] for axis in order)},
        [x],
        ksize=[window[axis] for axis in order],
        strides=[strides[axis] for axis in order],
        padding=padding,
        **({"data_format": data_format} if data_format else {}),
    )
    np.testing.assert_allclose(got, expected.transpose(order), rtol=1e-5, atol=1e-6)


def test_ragged_range() -> None:
    starts, limits, deltas = (np.array(row, np.int32) for row in ([0, 5, 8], [3, 5, 2], [1, 1, -3]))
    rows = [np.arange(*row) for row in zip(starts, limits, deltas, strict=True)]
    values = np.concatenate(rows)
    splits = np.cumsum([0, *map(len, rows)])
    got = call(
        "ragged_range.cc",
        "RaggedRange",
        {"int32.splits": splits.shape, "int32.values": values.shape},
        [starts, limits, deltas],
        Tsplits=3,
    )
    np.testing.assert_array_equal(got[0], splits)
    np.testing.assert_array_equal(got[1], values)


def test_one_hot() -> None:
    indices = np.array([[0, 2], [1, 3]], np.int32)
    for axis in (-1, 0):
        expected = np.moveaxis(np.where(np.eye(4)[indices] == 1, 5.0, -1.0), -1, axis)
        (got,) = call(
            "one_hot.cc",
            "OneHot",
            {"float32": expected.shape},
            [indices, np.int32(4), np.float32(5), np.float32(-1)],
            axis=axis,
        )
        np.testing.assert_array_equal(got, expected)


def test_sparse_to_dense() -> None:
    (got,) = call(
        "sparse_to_dense.cc",
        "SparseToDense",
        {"float32": (3, 4)},
        [
            np.array([[0, 1], [2, 3]], np.int64),
            np.array([3, 4], np.int64),
            np.array([1, 2], np.float32),
            np.float32(-1),
        ],
        validate_indices=True,
    )
    assert got.tolist() == [[-1, 1, -1, -1], [-1, -1, -1, -1], [-1, -1, -1, 2]]


def test_set_size() -> None:
    (got,) = call(
        "setsize.cc",
        "SetSize",
        {"int32": (3,)},
        [
            np.array([[0, 0], [0, 1], [0, 2], [2, 0]], np.int64),
            np.array([5, 5, 6, 1], np.int32),
            np.array([3, 4], np.int64),
        ],
        validate_indices=True,
    )
    assert got.tolist() == [2, 0, 1]


def test_truncated_normal_with_its_authors_generator() -> None:
    # Their random/utils.h lies beside the kernel and so is found before ours.
    build = msops.Build(sources=KERNELS / "random" / "utils.cc")
    (got,) = call(
        "truncated_normal.cc",
        "TruncatedNormal",
        {"float32": (40, 50)},
        [np.array([40, 50], np.int32), np.zeros(1, np.uint64), np.zeros(1, np.uint64)],
        {"build": build},
        seed=1,
        seed2=2,
    )
    assert np.abs(got).max() <= 2
    # That of the normal distribution cut at two standard deviations.
    assert abs(got.mean()) < 5 * got.std() / got.size**0.5
    assert abs(got.std() - scipy.stats.truncnorm(-2, 2).std()) < 0.05
