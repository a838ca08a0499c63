"""What it costs to make the same op again and again, as a loop of Cells or a re-run cell does."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.monitoring
from kernels import handwritten_add, make_aot_op, make_inputs
from machine import resident_mib
from report import Report, Table, judge
from settings import Settings

import msops

REPEATS = 1000
BASELINE_REPEATS = 50
METHOD = (
    f"Makes an op and calls it once on 20 elements, {REPEATS} times, with functions defined anew "
    f"each time, and keeps them all; the baseline makes a new jax.jit of the hand-written handler, "
    f"{BASELINE_REPEATS} times. The first creation is timed apart: it includes tracing and XLA's "
    "compilation; the library is in msops's cache. Compilations are those JAX reports"
)
_COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"


@dataclass(frozen=True)
class Cost:
    """What one way of making ops costs."""

    way: str
    first_ms: float
    repeats: int
    each_us: float
    compilations: int
    growth_mib: float


def run(settings: Settings) -> Report:
    """Makes ops of each kind."""
    compiled: list[str] = []

    def count_compilation(event: str, _duration_s: float, **_: object) -> None:
        if event == _COMPILE_EVENT:
            compiled.append(event)

    jax.monitoring.register_event_duration_secs_listener(count_compilation)
    costs = [
        _measure("aot", make_aot_op, REPEATS, compiled),
        _measure("pyfunc", _make_pyfunc, REPEATS, compiled),
        _measure("a jax.jit each", _make_jit, BASELINE_REPEATS, compiled),
    ]
    ours = [cost for cost in costs if cost.repeats == REPEATS]
    table = Table(
        "Creation and one call",
        ["way", "first, ms", "repeats", "each, us", "compilations", "memory growth, MiB"],
        [
            [
                cost.way,
                f"{cost.first_ms:.1f}",
                str(cost.repeats),
                f"{cost.each_us:,.0f}",
                str(cost.compilations),
                f"{cost.growth_mib:.2f}",
            ]
            for cost in costs
        ],
    )
    return Report(
        "creation",
        "Making an op of equal definition again",
        METHOD,
        [table],
        [
            judge(
                f"{REPEATS} re-creations compile nothing",
                {cost.way: float(cost.compilations) for cost in ours},
                0,
            ),
            judge(
                f"{REPEATS} re-creations add under 10 MB (9.54 MiB)",
                {cost.way: cost.growth_mib for cost in ours},
                10e6 / 2**20,
            ),
        ],
    )


def _measure(
    way: str, make: Callable[[], Callable[..., object]], repeats: int, compiled: list[str]
) -> Cost:
    x, y = make_inputs(20)
    start = time.perf_counter()
    make()(x, y)
    first_s = time.perf_counter() - start
    # So that what is loaded once is not counted below.
    make()(x, y)
    gc.collect()
    compiled.clear()
    kept = []
    before_mib = resident_mib()
    start = time.perf_counter()
    for _ in range(repeats):
        op = make()
        op(x, y)
        kept.append(op)
    each_s = (time.perf_counter() - start) / repeats
    gc.collect()
    growth_mib = resident_mib() - before_mib
    return Cost(way, first_s * 1e3, repeats, each_s * 1e6, len(compiled), growth_mib)


def _make_pyfunc() -> msops.Custom:
    return msops.Custom(lambda x, y: x + y, lambda x, y: x, lambda x, y: x)


def _make_jit() -> Callable[..., jax.Array]:
    return jax.jit(lambda x, y: handwritten_add(x, y))
