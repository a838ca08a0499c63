"""What msops::ParallelFor gives a kernel that is bound by computing."""

from __future__ import annotations

import jax
import numpy as np
from kernels import FOLDER, make_inputs, waiting
from report import Report, Table, show_count, show_ratio, show_us
from settings import Settings
from timing import Times, take_turns

import msops

METHOD = (
    "Steps the logistic map 64 times on each float32 element; microseconds a call as median "
    "(quartiles) of {rounds} rounds in which both kernels take turns. They run the same loop, one "
    "of them through msops::ParallelFor with blocks of at least 1024 elements"
)
SOURCE = FOLDER / "parallel_ops.cc"


def run(settings: Settings) -> Report:
    """Measures both kernels at every size."""
    measured = {count: _measure(count, settings.rounds) for count in settings.counts}
    table = Table(
        "Under jax.jit",
        ["elements", "one thread", "ParallelFor", "one thread / ParallelFor"],
        [
            [
                show_count(count),
                *(show_us(times[name].microseconds) for name in ("OneThread", "AllThreads")),
                show_ratio(times["OneThread"].over(times["AllThreads"])),
            ]
            for count, times in measured.items()
        ],
    )
    return Report(
        "parallel_for", "Splitting a kernel's work", METHOD.format(rounds=settings.rounds), [table]
    )


def _measure(count: int, rounds: int) -> dict[str, Times]:
    x = abs(make_inputs(count)[0]) % 1
    functions = {
        name: jax.jit(msops.Custom(f"{SOURCE}:{name}", lambda x: x, lambda x: x))
        for name in ("OneThread", "AllThreads")
    }
    one, other = (function(x) for function in functions.values())
    np.testing.assert_array_equal(one, other)
    return take_turns({name: waiting(call, x) for name, call in functions.items()}, rounds)
