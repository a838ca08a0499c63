"""The loop compiler, next to what is written by hand, Numba, and MindSpore's AKG."""

from __future__ import annotations

import contextlib
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import mindspore_loops_column
import numpy as np
from kernels import waiting
from loop_cases import CASES, Case
from plot import plot_ratios
from report import Report, Table, judge, show_ratio, show_us
from settings import Settings
from timing import Times, take_turns

import msops

try:
    import loops_numba
except ImportError:
    loops_numba = None

METHOD = (
    "Microseconds a call, waiting for the result, as median (quartiles) of {rounds} rounds in "
    "which all contenders take turns; ratios are taken within a round. By hand: jax.numpy under "
    "jax.jit, or for order-bound kernels (marked C) C with the flags of generated C, called as an "
    "aot op. JAX hands programs of 1,000 or more floating point operations to another thread, "
    "which takes longer than the small kernels (jax_cpu_enable_async_dispatch is left on). Numba: "
    "njit(parallel=True) on numpy arrays. AKG: MindSpore's func_type 'akg' in a process of its "
    "own. First call: creating the op, tracing and compiling, in milliseconds, once, with an empty "
    "build cache"
)


@dataclass(frozen=True)
class Measured:
    """One kernel at one size: seconds a call by contender, and milliseconds of first calls."""

    times: Mapping[str, Times]
    first_ms: Mapping[str, float]


def run(settings: Settings) -> Report:
    """Measures every kernel at both sizes."""
    with empty_cache():
        _warm_up()
        measured = {
            (case.name, size): _measure(case, size, settings.rounds)
            for case in CASES
            for size in (0, 1)
        }
    others = mindspore_loops_column.columns(settings)
    ratios = {key: found.times["msops"].over(found.times["by hand"]) for key, found in
              measured.items()}  # fmt: skip
    raised, native = (
        {
            case.label(size): ratios[case.name, size].median
            for case in CASES
            for size in (0, 1)
            if (case.by_hand is not None) == is_raised
        }
        for is_raised in (True, False)
    )
    _plot(settings.results / "loops.png", measured, others)
    return Report(
        name="loops",
        title="Loop kernels",
        method=METHOD.format(rounds=settings.rounds),
        tables=[
            _steady_table(measured, ratios, others),
            _first_table(measured, others),
        ],
        verdicts=[
            judge("within 5 % of jax.numpy where raised", raised, 1.05),
            judge("within 10 % of C where native", native, 1.10),
            *_akg_verdicts(measured, others),
        ],
    )


@contextlib.contextmanager
def empty_cache() -> Iterator[None]:
    """Gives msops a build cache that nothing has been built in."""
    before = os.environ.get("MSOPS_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MSOPS_CACHE_DIR"] = folder
        yield
    del os.environ["MSOPS_CACHE_DIR"]
    if before is not None:
        os.environ["MSOPS_CACHE_DIR"] = before


def _warm_up() -> None:
    """Loads what the first kernel of a process loads."""
    case = CASES[0]
    msops.Custom(case.kernel, func_type="akg")(*(np.ones((2, 3), np.float32),) * 2)


def _measure(case: Case, size: int, rounds: int) -> Measured:
    inputs = case.inputs(size)
    arrays = jax.block_until_ready([jax.numpy.asarray(array) for array in inputs])
    first_ms: dict[str, float] = {}
    calls: dict[str, Callable[[], object]] = {}
    expected: np.ndarray | None = None
    for name, make in _contenders(case).items():
        start = time.perf_counter()
        function = make()
        given = inputs if name == "Numba" else arrays
        result = np.asarray(jax.block_until_ready(function(*given)))
        first_ms[name] = 1e3 * (time.perf_counter() - start)
        expected = result if expected is None else expected
        # Sums are taken in other orders.
        np.testing.assert_allclose(result, expected, rtol=2e-3, atol=2e-3, err_msg=name)
        calls[name] = (
            (lambda function=function: function(*inputs))
            if name == "Numba"
            else waiting(function, *arrays)
        )
    return Measured(take_turns(calls, rounds), first_ms)


def _contenders(case: Case) -> dict[str, Callable[[], Callable[..., Any]]]:
    contenders = {
        "by hand": case.baseline,
        "msops": lambda: jax.jit(msops.Custom(case.kernel, func_type="akg").__call__),
    }
    if loops_numba is not None:
        contenders["Numba"] = lambda: getattr(loops_numba, case.name)
    return contenders


def _over_contenders(measured: Any, others: Any) -> dict[str, dict[str, float]]:
    """Returns by contender what msops takes over what it takes, for each kernel it runs."""
    found: dict[str, dict[str, float]] = {}
    for case in CASES:
        for size in (0, 1):
            times = measured[case.name, size].times
            ours = times["msops"]
            for name in times.keys() - {"msops"}:
                found.setdefault(name, {})[case.label(size)] = ours.over(times[name]).median
            for name, column in others.items():
                if (case.name, size) in column.times:
                    theirs = column.times[case.name, size].microseconds.median
                    ratio = ours.microseconds.median / theirs
                    found.setdefault(name, {})[case.label(size)] = ratio
    return found


def _steady_table(measured: Any, ratios: Any, others: Any) -> Table:
    numba = ["Numba"] if loops_numba is not None else []
    over = _over_contenders(measured, others)
    footers = {"msops / it, geometric mean": statistics.geometric_mean, "msops / it, worst": max}
    return Table(
        "Steady calls",
        ["kernel", "msops", "by hand", "msops / by hand", *numba, *others],
        [
            *(
                [
                    case.label(size),
                    show_us(found.times["msops"].microseconds),
                    show_us(found.times["by hand"].microseconds) + ("" if case.by_hand else " C"),
                    show_ratio(ratios[case.name, size]),
                    *(show_us(found.times[name].microseconds) for name in numba),
                    *(column.steady(case.name, size) for column in others.values()),
                ]
                for case in CASES
                for size in (0, 1)
                for found in (measured[case.name, size],)
            ),
            *(
                [
                    heading,
                    "",
                    f"{combine(over['by hand'].values()):.2f}",
                    "",
                    *(f"{combine(over[name].values()):.2f}" for name in (*numba, *others)),
                ]
                for heading, combine in footers.items()
            ),
        ],
    )


def _plot(path: Path, measured: Any, others: Any) -> None:
    title = "What msops takes, over what others take"
    plot_ratios(path, title, _over_contenders(measured, others))


def _first_table(measured: Any, others: Any) -> Table:
    numba = ["Numba"] if loops_numba is not None else []
    return Table(
        "First calls, ms",
        ["kernel", "msops", "by hand", *numba, *others],
        [
            [
                case.label(size),
                *(f"{found.first_ms[name]:.0f}" for name in ("msops", "by hand", *numba)),
                *(column.first(case.name, size) for column in others.values()),
            ]
            for case in CASES
            for size in (0, 1)
            for found in (measured[case.name, size],)
        ],
    )


def _akg_verdicts(measured: Any, others: Any) -> list[str]:
    verdicts = []
    for label, column in others.items():
        both = {key: found for key, found in measured.items() if key in column.times}
        speed = {
            f"{name} ({size})": found.times["msops"].microseconds.median
            / column.times[name, size].microseconds.median
            for (name, size), found in both.items()
        }
        first = {
            f"{name} ({size})": found.first_ms["msops"] / column.first_ms[name, size]
            for (name, size), found in both.items()
        }
        if not speed:
            continue
        mean = math.exp(sum(map(math.log, speed.values())) / len(speed))
        verdicts += [
            f"{label}: {len(speed)} of {2 * len(CASES)} kernels run there; geometric mean "
            f"{1 / mean:.1f} times as fast",
            judge(f"geometric mean at least 4 times as fast as {label}", {"all": mean}, 0.25),
            judge(f"no kernel slower than {label}", speed, 1.0),
            judge(f"first call at most a tenth of {label}'s", first, 0.1),
        ]
    return verdicts
