"""Whether memory stays flat over a million calls."""

from __future__ import annotations

import gc
from collections.abc import Callable

import jax
from kernels import make_aot_op, make_inputs, waiting
from machine import resident_mib
from plot import plot_memory
from report import Report, Table, judge
from settings import Settings

import msops

CALLS = 1_000_000
STEP = 50_000
LIMIT_MIB = 1.0
METHOD = (
    f"Calls an op {CALLS:,} times on 20 elements and reads the process's resident memory every "
    f"{STEP:,} calls. The start is after the first {STEP:,} calls, when caches and pools are filled"
)


def run(settings: Settings) -> Report:
    """Measures each kind of call, one after the other."""
    x, y = make_inputs(20)
    tensors = msops.Tensor(x), msops.Tensor(y)
    op = make_aot_op()
    pyfunc = msops.Custom(lambda x, y: x + y, lambda x, y: x, lambda x, y: x)

    def call_on_tensors() -> None:
        op(*tensors).value.block_until_ready()

    calls = {
        "aot, eager": waiting(op, x, y),
        "aot under jax.jit": waiting(jax.jit(lambda x, y: op(x, y)), x, y),
        "aot on Tensors": call_on_tensors,
        "pyfunc, eager": waiting(pyfunc, x, y),
    }
    series = {name: _sample(call) for name, call in calls.items()}
    plot_memory(settings.results / "flat_memory.png", "Memory over a million calls", series)
    growth = {name: points[-1][1] for name, points in series.items()}
    peak = {name: max(mib for _, mib in points) for name, points in series.items()}
    table = Table(
        "Resident memory over the start, MiB",
        ["call", f"after {CALLS:,}", "at most"],
        [[name, f"{growth[name]:.2f}", f"{peak[name]:.2f}"] for name in series],
    )
    verdict = judge(f"flat to {LIMIT_MIB:g} MiB", growth, LIMIT_MIB)
    return Report("flat_memory", "Memory over a million calls", METHOD, [table], [verdict])


def _sample(call: Callable[[], object]) -> list[tuple[int, float]]:
    points = []
    for done in range(STEP, CALLS + 1, STEP):
        for _ in range(STEP):
            call()
        gc.collect()
        points.append((done, resident_mib()))
    start_mib = points[0][1]
    return [(done, mib - start_mib) for done, mib in points]
