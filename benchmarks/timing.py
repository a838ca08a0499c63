"""Interleaved timing: contenders take turns, so that a slow moment of the machine hits them alike.

MindSpore's own Python runs this module too, so it keeps to Python 3.9 and the standard library.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_BATCH_S = 2e-3
_SETTLE_S = 0.012
_WARM_UP_S = 0.05


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Times:
    """Seconds per call of one contender, one entry for each round."""

    seconds: tuple[float, ...]

    @property
    def microseconds(self) -> Spread:
        """Microseconds per call."""
        return spread_of([second * 1e6 for second in self.seconds])

    def over(self, baseline: Times) -> Spread:
        """Returns the ratio to `baseline`, taken round by round."""
        pairs = range(min(len(self.seconds), len(baseline.seconds)))
        return spread_of([self.seconds[i] / baseline.seconds[i] for i in pairs])


def spread_of(values: list[float]) -> Spread:
    """Returns the median and quartiles of two or more values."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(median, low, high)


def take_turns(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Times]:
    """Times each call `rounds` times, in batches of about two milliseconds.

    Within a round every contender has one turn, in an order drawn anew, so that none profits from
    what always runs before it. A turn begins with calls that are not timed: the one before left
    its own data in the caches, and its own threads on the processors. Those of OpenMP, which Numba
    uses, look for work for seven milliseconds.

    Args:
      calls: by name, a function that does one call and waits for its result.
      rounds: two or more.
    """
    sizes = {name: _batch_size(call) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    order = list(calls)
    shuffle = random.Random(0).shuffle
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            shuffle(order)
            for name in order:
                seconds[name].append(_seconds_per_call(calls[name], sizes[name]))
    finally:
        if was_enabled:
            gc.enable()
    return {name: Times(tuple(values)) for name, values in seconds.items()}


def _batch_size(call: Callable[[], object]) -> int:
    """Warms `call` up and returns how many calls take about a batch's time."""
    call()
    calls, start = 0, time.perf_counter()
    while calls < 2 or time.perf_counter() - start < _WARM_UP_S:
        call()
        calls += 1
    return max(1, round(_BATCH_S * calls / (time.perf_counter() - start)))


def _seconds_per_call(call: Callable[[], object], calls: int) -> float:
    settled = time.perf_counter() + _SETTLE_S
    call()
    while time.perf_counter() < settled:
        call()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls
