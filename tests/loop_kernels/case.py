"""A row of the corpus: a kernel, its inputs and what numpy makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator

Arrays = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Case:
    """A kernel of the corpus.

    Attributes:
      func: the kernel, in the Hybrid DSL ("akg" dialect; most are `@kernel` functions too).
      inputs: makes inputs from a generator and a size (about the extent of a dimension).
      reference: the outputs by numpy, in float64 where that helps.
      tolerance: allowed error relative to the largest element; 0 where results are exact.
      tags: what the kernel is an example of.
      attributes: constants that follow the tensors.
    """

    func: Callable[..., Any]
    inputs: Callable[[Generator, int], Arrays]
    reference: Callable[..., Any]
    tolerance: float = 1e-5
    tags: frozenset[str] = frozenset()
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The kernel's name, with its dtype where one kernel has several rows."""
        extra = sorted(tag for tag in self.tags if tag in ("float16", "bfloat16", "float64"))
        return "_".join([self.func.__name__, *extra])

    def expected(self, inputs: Sequence[np.ndarray]) -> Arrays:
        """Returns what the kernel must return."""
        # The reference may write into what it gets.
        outputs = self.reference(*(array.copy() for array in inputs), **self.attributes)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    def check(self, inputs: Sequence[np.ndarray], outputs: Sequence[Any]) -> None:
        """Raises AssertionError unless outputs are what numpy says."""
        expected = self.expected(inputs)
        assert len(outputs) == len(expected)
        for output, wanted in zip(outputs, expected, strict=True):
            got = np.asarray(output)
            assert got.shape == wanted.shape
            if self.tolerance == 0:
                np.testing.assert_array_equal(got, wanted.astype(got.dtype))
                continue
            wide, wanted = got.astype(np.float64), wanted.astype(np.float64)
            largest = float(np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1.0))
            np.testing.assert_allclose(wide, wanted, rtol=0, atol=self.tolerance * largest)


def row(
    func: Callable[..., Any],
    inputs: Callable[[Generator, int], Any],
    reference: Callable[..., Any],
    tags: str,
    tolerance: float = 1e-5,
    **attributes: Any,
) -> Case:
    """Returns a case; `tags` are words."""
    return Case(func, inputs, reference, tolerance, frozenset(tags.split()), attributes)


def normal(rng: Generator, *shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Returns normally distributed numbers."""
    return rng.standard_normal(shape).astype(dtype)


def whole(rng: Generator, low: int, high: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
    """Returns integers in [low, high)."""
    return rng.integers(low, high, shape).astype(dtype)


def wide(array: np.ndarray) -> np.ndarray:
    """Returns an array as float64."""
    return array.astype(np.float64)
