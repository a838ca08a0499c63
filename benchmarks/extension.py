"""What a CustomOpBuilder module costs: to build, to load, and to call.

MSOPS_BENCH_MINDSPORE names a Python with MindSpore 2.7, which builds the same source, and
MSOPS_BENCH_TORCH one with torch and ninja, which builds the same loop with load_inline. Make one:

    python -m venv torch-venv && torch-venv/bin/pip install torch ninja numpy
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from kernels import FOLDER, handwritten_add, make_inputs, waiting
from plot import plot_costs
from report import Report, Table, judge, show_count, show_ratio, show_us
from settings import Settings
from timing import Times, take_turns

import msops
from msops.ops import CustomOpBuilder

SOURCE = FOLDER / "add_extension.cpp"
METHOD = (
    "Builds a module that adds two float32 arrays with a PyboostRunner, cold (with an empty cache) "
    "and from the cache, in seconds as median of {builds} child processes. "
    "Then calls it; microseconds a call as median (quartiles) of {rounds} rounds in which all "
    "contenders of this process take turns. The hand-written FFI handler compiles the same loop. "
    "The pool is msops.set_context(host_memory_pool=True), measured after all others; MindSpore "
    "and torch, which have pools by default, run in processes of their own"
)
BUILDS = 3
JITTED = ("runner", "hand-written", "jnp.add")
EAGER = ("runner, eager", "jnp.add, eager")
POOLED = "runner, eager, pool"

# Prints the seconds from the builder to the module; msops and JAX are imported, as they are when a
# script gets there.
CHILD = """
import sys, time
import jax, msops
from msops.ops import CustomOpBuilder
jax.numpy.ones(3)
start = time.perf_counter()
CustomOpBuilder("bench_extension", sys.argv[1]).load()
print(time.perf_counter() - start)
"""


@dataclass(frozen=True)
class Other:
    """Another framework: its build and its calls.

    Attributes:
      label: name and version.
      cold_s: seconds of a build in an empty folder, with loading.
      warm_s: seconds of the same in the next process, which finds the module built.
      times: of eager calls, by number of elements.
    """

    label: str
    cold_s: float
    warm_s: float
    times: dict[int, Times]


def run(settings: Settings) -> Report:
    """Measures builds, then eager and jitted calls at every size."""
    builds = [_build_and_load() for _ in range(BUILDS)]
    cold_s, warm_s = (statistics.median(column) for column in zip(*builds, strict=True))
    others = _others(settings)
    module = CustomOpBuilder("bench_extension", str(SOURCE)).load()
    measured = {count: _measure(module, count, settings.rounds) for count in settings.counts}
    pooled = _measure_with_pool(module, settings)
    for count, times in measured.items():
        times[POOLED] = pooled[count]
    plot_costs(
        settings.results / "extension.png",
        "Adding two float32 arrays in an extension module",
        {
            name: {count: times[name].microseconds for count, times in measured.items()}
            for name in (*JITTED, *EAGER, POOLED)
        },
    )
    ratios = {n: times["runner"].over(times["hand-written"]) for n, times in measured.items()}
    return Report(
        name="extension",
        title="A CustomOpBuilder module",
        method=METHOD.format(builds=BUILDS, rounds=settings.rounds),
        tables=[
            _build_table(cold_s, warm_s, others),
            _call_table("Under jax.jit", measured, JITTED, (), ratios),
            _call_table("Eager", measured, (*EAGER, POOLED), others, None),
        ],
        verdicts=_verdicts(cold_s, warm_s, measured, ratios, others),
    )


def _build_and_load() -> tuple[float, float]:
    """Returns the seconds of a cold build and of a load from the cache, each in a new process."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-c", CHILD, str(SOURCE)]
        environment = {**os.environ, "MSOPS_CACHE_DIR": cache}
        answers = [
            subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            for _ in range(2)
        ]
    cold, warm = (float(answer.stdout) for answer in answers)
    return cold, warm


def _measure(module: Any, count: int, rounds: int) -> dict[str, Times]:
    x, y = make_inputs(count)
    functions = {
        "runner": jax.jit(module.add),
        "hand-written": jax.jit(handwritten_add),
        "jnp.add": jax.jit(jnp.add),
        "runner, eager": module.add,
        "jnp.add, eager": jnp.add,
    }
    for name, function in functions.items():
        if not (function(x, y) == x + y).all():
            raise RuntimeError(f"{name} adds {count} elements wrongly")
    return take_turns({name: waiting(call, x, y) for name, call in functions.items()}, rounds)


def _measure_with_pool(module: Any, settings: Settings) -> dict[int, Times]:
    was_kept = msops.get_context("host_memory_pool")
    msops.set_context(host_memory_pool=True)
    measured = {
        count: take_turns({POOLED: waiting(module.add, *make_inputs(count))}, settings.rounds)
        for count in settings.counts
    }
    msops.set_context(host_memory_pool=was_kept)
    return {count: times[POOLED] for count, times in measured.items()}


def _others(settings: Settings) -> list[Other]:
    """Returns what was measured of the frameworks that the environment names."""
    found = []
    for variable, title, script, source in (
        ("MSOPS_BENCH_MINDSPORE", "MindSpore", "extension_mindspore.py", (str(SOURCE),)),
        ("MSOPS_BENCH_TORCH", "torch", "extension_torch.py", ()),
    ):
        for python in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            found.append(_measure_other(Path(python), variable, title, script, source, settings))
    return found


def _measure_other(
    python: Path,
    variable: str,
    title: str,
    script: str,
    source: Sequence[str],
    settings: Settings,
) -> Other:
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join([str(python.absolute().parent), os.environ.get("PATH", "")])
        environment = {
            **os.environ,
            "PATH": path,
            "CPATH": str(FOLDER),
            "TORCH_EXTENSIONS_DIR": folder,
        }
        environment.pop("PYTHONPATH", None)

        def answer(*counts: int) -> dict[str, Any]:
            result = Path(folder, "times.json")
            arguments = (*source, str(settings.rounds), str(result), *map(str, counts))
            command = [str(python.absolute()), str(FOLDER / script), *arguments]
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                sys.exit(
                    f"{variable}: {python} failed with status {done.returncode}:\n{done.stderr}"
                    f"Name a Python that has {title}, or unset the variable."
                )
            return json.loads(result.read_text())

        first, second = answer(*settings.counts), answer()
    times = {int(count): Times(tuple(seconds)) for count, seconds in first["times"].items()}
    return Other(f"{title} {first['version']}", first["load_s"], second["load_s"], times)


def _build_table(cold_s: float, warm_s: float, others: Sequence[Other]) -> Table:
    return Table(
        "Seconds to a loaded module",
        ["", "cold", "from the cache"],
        [
            ["msops", f"{cold_s:.2f}", f"{warm_s:.3f}"],
            *([other.label, f"{other.cold_s:.2f}", f"{other.warm_s:.3f}"] for other in others),
        ],
    )


def _call_table(heading, measured, names, others, ratios) -> Table:
    ratio_column = [] if ratios is None else ["runner / hand-written"]
    return Table(
        heading,
        ["elements", *names, *ratio_column, *(other.label for other in others)],
        [
            [
                show_count(count),
                *(show_us(times[name].microseconds) for name in names),
                *([] if ratios is None else [show_ratio(ratios[count])]),
                *(show_us(other.times[count].microseconds) for other in others),
            ]
            for count, times in measured.items()
        ],
    )


def _verdicts(cold_s, warm_s, measured, ratios, others) -> list[str]:
    def by_count(values):
        return {f"{show_count(count)} elements": value for count, value in values.items()}

    verdicts = [
        judge("cold build within 6 s", {"this machine": cold_s}, 6.0),
        judge("load from the cache within 50 ms", {"this machine": warm_s}, 0.05),
        judge(
            "jitted call within 5 % of hand-written",
            by_count({count: ratio.median for count, ratio in ratios.items()}),
            1.05,
        ),
    ]
    if others:
        cold = {other.label: cold_s / other.cold_s for other in others}
        verdicts.append(judge("cold build at most a quarter of others'", cold, 0.25))
    # torch's eager calls, which dispatch nothing through Python, are shown but no goal.
    for other in (other for other in others if other.label.startswith("MindSpore")):
        eager = {
            count: times[POOLED].microseconds.median / other.times[count].microseconds.median
            for count, times in measured.items()
        }
        verdicts.append(
            judge(f"eager call with the pool at most {other.label}'s", by_count(eager), 1.0)
        )
    return verdicts
