"""Everyday kernels, each with its inputs; what passes do for them is measured with the others'."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import everyday_kernels
import numpy as np


@dataclass(frozen=True)
class Everyday:
    """One kernel.

    Attributes:
      name: of the function in everyday_kernels.py.
      inputs: returns the inputs for a length.
      length: at which it is measured.
    """

    name: str
    inputs: Callable[[int], Sequence[np.ndarray]]
    length: int

    @property
    def kernel(self) -> Callable[..., Any]:
        """The loops."""
        return getattr(everyday_kernels, self.name)


def _normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def _positive(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).random(shape).astype("float32") + np.float32(0.1)


def _whole(low: int, high: int, *shape: int, dtype: str = "int32") -> np.ndarray:
    return np.random.default_rng(2).integers(low, high, shape).astype(dtype)


def _systems(n: int, m: int) -> np.ndarray:
    a = _normal(n, m, m, dtype="float64")
    return a @ a.transpose(0, 2, 1) + m * np.eye(m)


def _spins(n: int) -> np.ndarray:
    return 2 * _whole(0, 2, n, n) - 1


def _boxes(n: int) -> np.ndarray:
    return np.concatenate([_positive(n, 2), 2 + _positive(n, 2)], 1)


EVERYDAY = (
    Everyday("histogram", lambda n: [_whole(0, 64, n)], 20_000),
    Everyday("game_of_life", lambda n: [_whole(0, 2, n, n)], 200),
    Everyday("rotate_pairs", lambda n: [_normal(n, 8, 64), _normal(n, 32), _positive(n, 32)], 64),
    Everyday(
        "embedding_bag", lambda n: [_normal(1000, 64), _whole(0, 1000, n, 10), _normal(n, 10)], 200
    ),
    Everyday("ragged_softmax", lambda n: [_normal(n, 128), _whole(1, 128, n)], 100),
    Everyday("depthwise_conv", lambda n: [_normal(n, n, 32), _normal(3, 3, 32)], 40),
    Everyday("image_to_columns", lambda n: [_normal(8, n, n)], 40),
    Everyday("horner", lambda n: [_normal(n), _normal(8)], 20_000),
    Everyday("greatest_four", lambda n: [_normal(n, 200)], 200),
    Everyday("disparity_costs", lambda n: [_normal(n), _normal(n + 16)], 2_000),
    Everyday("box_overlaps", lambda n: [_boxes(n), _boxes(n + 1)], 200),
    Everyday("time_warping", lambda n: [_normal(n), _positive(n)], 200),
    Everyday("newton_roots", lambda n: [_positive(n)], 20_000),
    Everyday("collatz", lambda n: [_whole(1, 3000, n)], 2_000),
    Everyday("binary_search", lambda n: [np.sort(_normal(4096)), _normal(n)], 4_000),
    Everyday(
        "quantized_product",
        lambda n: [
            _whole(-9, 9, n, 128, dtype="int8"),
            _whole(-9, 9, 128, n, dtype="int8"),
            _positive(n),
        ],
        64,
    ),
    Everyday("cholesky_rows", lambda n: [_systems(n, 8)], 4_096),
    Everyday("solve_rows", lambda n: [_systems(n, 8), _normal(n, 8, dtype="float64")], 4_096),
    Everyday("lu_rows", lambda n: [_systems(n, 6).astype("float32")], 4_096),
    Everyday("sort_rows", lambda n: [_normal(n, 8)], 8_192),
    Everyday(
        "inside_polygon", lambda n: [_normal(n), _positive(n), _normal(40), _positive(40)], 20_000
    ),
    Everyday(
        "dequantized_product",
        lambda n: [_normal(n, 512), _whole(-127, 127, 512, 4 * n, dtype="int8"), _positive(4 * n)],
        64,
    ),
    Everyday("bilinear_resize", lambda n: [_normal(n, n)], 300),
    Everyday("symmetric_stored_half", lambda n: [_normal(n, n), _positive(n)], 1_000),
    Everyday("windows_at", lambda n: [_normal(20_000), _whole(0, 19_000, n)], 5_000),
    Everyday("box_filter", lambda n: [_normal(n, n)], 400),
    Everyday("smith_waterman", lambda n: [_whole(0, 4, n), _whole(0, 4, n + 5)], 300),
    Everyday("levenshtein", lambda n: [_whole(0, 5, n, 20), _whole(0, 5, n, 17)], 100),
    Everyday("viterbi", lambda n: [_whole(0, 6, n), _normal(5, 5), _normal(5, 6)], 2_000),
    Everyday(
        "hidden_markov_forward", lambda n: [_normal(n, 16), _normal(16, 16), _normal(16)], 1_000
    ),
    Everyday("ising_sweep", lambda n: [_spins(n), _positive(n, n), np.float32([0.44])], 200),
    Everyday("lattice_walk", lambda n: [_whole(0, 2**31 - 1, n, dtype="uint32")], 10_000),
    Everyday(
        "fft_stages", lambda n: [_normal(1 << n.bit_length()), _normal(1 << n.bit_length())], 4_000
    ),
    Everyday("haar_wavelet", lambda n: [_normal(n, 32)], 1_000),
    Everyday("equalise_histogram", lambda n: [_whole(0, 256, n, n, dtype="uint8")], 256),
    Everyday("median_of_windows", lambda n: [_normal(n, n)], 300),
    Everyday("segment_max", lambda n: [_normal(n, 6), np.sort(_whole(0, n // 3, n))], 4_000),
    Everyday(
        "padded_sparse_product", lambda n: [_normal(n, 7), _whole(-1, n, n, 7), _normal(n)], 8_000
    ),
    Everyday(
        "unpack_nibbles",
        lambda n: [
            _whole(0, 256, n, 32, dtype="uint8"),
            _positive(n, 2),
            _whole(0, 16, n, 2, dtype="uint8"),
        ],
        1_000,
    ),
    Everyday(
        "polynomial_modulo",
        lambda n: [_whole(-30_000, 30_000, n, dtype="int64"), _whole(0, 30_000, 9, dtype="int64")],
        20_000,
    ),
    Everyday("checksum_rows", lambda n: [_whole(0, 256, n, 64, dtype="uint8")], 300),
    Everyday("chebyshev_series", lambda n: [_normal(n), _normal(12)], 20_000),
)
