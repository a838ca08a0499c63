"""How long a jitted call takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax

_WARM_UPS = 5
_TIMED_CALLS = 200


def median_us(
    function: Callable[..., Any], arrays: Sequence[Any], timed_calls: int = _TIMED_CALLS
) -> float:
    """Returns the median time of a call, waiting for its result, in microseconds."""
    for _ in range(_WARM_UPS):
        jax.block_until_ready(function(*arrays))
    samples = []
    for _ in range(timed_calls):
        start_ns = time.perf_counter_ns()
        jax.block_until_ready(function(*arrays))
        samples.append((time.perf_counter_ns() - start_ns) / 1e3)
    return statistics.median(samples)
