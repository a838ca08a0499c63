"""What set_context(host_memory_pool=True) gives an aot op, next to MindSpore's memory pool."""

from __future__ import annotations

import jax
import mindspore_column
from kernels import make_aot_op, make_inputs, waiting
from report import Report, Table, judge, show_count, show_ratio, show_us
from settings import Settings
from timing import Times, take_turns

import msops

METHOD = (
    "Adds two float32 arrays by an aot kernel under jax.jit and waits for the sum; microseconds a "
    "call as median (quartiles) of {rounds} rounds, all with malloc's defaults first, then all "
    "with the pool. MindSpore runs the same library in graph mode, in a process of its own"
)


def run(settings: Settings) -> Report:
    """Measures every size without the pool, then with it."""
    was_kept = msops.get_context("host_memory_pool")
    measured: dict[bool, dict[int, Times]] = {}
    for is_kept in (False, True):
        msops.set_context(host_memory_pool=is_kept)
        measured[is_kept] = {count: _measure(count, settings.rounds) for count in settings.counts}
    msops.set_context(host_memory_pool=was_kept)
    default, pool = measured[False], measured[True]
    others = mindspore_column.columns(settings, "aot graph")
    table = Table(
        "Under jax.jit",
        ["elements", "defaults", "pool", "defaults / pool", *others],
        [
            [
                show_count(count),
                show_us(default[count].microseconds),
                show_us(pool[count].microseconds),
                show_ratio(default[count].over(pool[count])),
                *(column[count] for column in others.values()),
            ]
            for count in settings.counts
        ],
    )
    return Report(
        "host_memory",
        "Large results on the CPU",
        METHOD.format(rounds=settings.rounds),
        [table],
        [
            judge(
                f"with the pool at least as fast as {found.label} at every size",
                {
                    f"{show_count(count)} elements": pool[count].microseconds.median
                    / found.times["aot graph"][count].microseconds.median
                    for count in settings.counts
                },
                1.0,
            )
            for found in mindspore_column.measure(settings)
        ],
    )


def _measure(count: int, rounds: int) -> Times:
    x, y = make_inputs(count)
    op = make_aot_op()
    call = waiting(jax.jit(lambda x, y: op(x, y)), x, y)
    return take_turns({"aot": call}, rounds)["aot"]
