"""Which form of a loop kernel is the faster one, by the clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax

LIMIT_S = 0.1
"""How long a kernel's forms are timed in all, once each has been compiled and has run."""
_ROUNDS = 7
_ROUND_S = 1e-3
_FEWEST_ROUNDS = 2
_CLEAR = 2
"""How many times as long a form takes that need not be timed again."""
# Two threads that time at once would measure each other.
_lock = threading.Lock()


def time_forms(calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Returns the least seconds that a call of each form takes.

    They take turns, so that what else the machine does slows all of them. A form that takes longer
    than `LIMIT_S` runs twice: once to compile it, once for the clock.

    Args:
      calls: by form; each returns arrays, perhaps before they are computed.
    """
    with _lock:
        least = {}
        for form, call in calls.items():
            jax.block_until_ready(call())
            least[form] = _seconds(call, 1)
        end = time.perf_counter() + LIMIT_S - sum(least.values())
        for number in range(_ROUNDS):
            if number >= _FEWEST_ROUNDS and max(least.values()) > _CLEAR * min(least.values()):
                break
            for form, call in calls.items():
                if time.perf_counter() < end:
                    repeats = max(1, int(_ROUND_S / least[form]))
                    # The threads of the other form may still occupy processors: not timed.
                    jax.block_until_ready(call())
                    least[form] = min(least[form], _seconds(call, repeats))
        return least


def _seconds(call: Callable[[], Any], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        jax.block_until_ready(call())
    return (time.perf_counter() - start) / repeats
