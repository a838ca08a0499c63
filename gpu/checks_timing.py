"""How long a jitted call takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

_WARM_UPS = 5
_TIMED_CALLS = 200
# Of the warm-ups, and of the timed calls: more is spent only where one call takes longer.
_MOST_SECONDS = 0.5


def median_us(
    function: Callable[..., Any], arrays: Sequence[Any], timed_calls: int = _TIMED_CALLS
) -> float:
    """Returns the median time of a call, waiting for its result, in microseconds."""
    _seconds(function, arrays, _WARM_UPS)
    return 1e6 * statistics.median(_seconds(function, arrays, timed_calls))


def _seconds(function: Callable[..., Any], arrays: Sequence[Any], calls: int) -> list[float]:
    samples: list[float] = []
    while len(samples) < calls and sum(samples) < _MOST_SECONDS:
        start = time.perf_counter()
        jax.block_until_ready(function(*arrays))
        samples.append(time.perf_counter() - start)
    return samples
