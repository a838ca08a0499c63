"""The nests of `nests.py` as native code on one processor, and on all."""

from __future__ import annotations

import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

import jax
import numpy as np
from nest_cases import NESTS, Nest
from report import Report, Table, judge
from settings import Settings
from timing import Times

import msops

METHOD = (
    "Native code of the nests of `nests` at their largest size; milliseconds a call under jax.jit "
    "as medians of {rounds} rounds in which two processes take turns: one may use one processor, "
    "so that XLA starts one thread, the other {processors}. GB/s: the bytes of inputs and results, "
    "each counted once, over the time on all processors. The nests to judge are named by hand: "
    "their outer loops are parallel, and they compute much for each element that they read"
)
_CALLS = 3
_LEAST_GAIN = 1.7
# Exponentials in windows, sorting networks, fifty steps of a map, products of matrices.
_ARITHMETIC = frozenset({"attention", "bilateral", "covariance", "mandelbrot", "median"})


@dataclass(frozen=True)
class _Measured:
    """One nest on one processor, and on all."""

    label: str
    is_arithmetic: bool
    bytes: int
    one: Times
    all: Times

    @property
    def gain(self) -> float:
        """How many times as fast all processors are."""
        return _median(self.one) / _median(self.all)


def run(settings: Settings) -> Report:
    """Measures every nest at its largest size."""
    rounds = max(3, settings.rounds // 4)
    processors = sorted(os.sched_getaffinity(0))
    with _Worker(processors[:1]) as one, _Worker(processors) as every:
        measured = [_measure(nest, one, every, rounds) for nest in NESTS]
    measured.sort(key=lambda m: m.gain)
    table = Table(
        "The least gain first",
        ["kernel", "one processor, ms", "all, ms", "gain", "GB/s", "judged"],
        [
            [
                m.label,
                f"{1e3 * _median(m.one):.3g}",
                f"{1e3 * _median(m.all):.3g}",
                f"{m.gain:.2f}",
                f"{m.bytes / _median(m.all) / 1e9:.1f}",
                "yes" if m.is_arithmetic else "",
            ]
            for m in measured
        ],
    )
    target = f"at least {_LEAST_GAIN} times as fast on two where arithmetic is the limit (1 / gain)"
    return Report(
        name="nests_threads",
        title="Loop nests on one processor and on all",
        method=METHOD.format(rounds=rounds, processors=len(processors)),
        tables=[table],
        verdicts=[
            judge(
                target, {m.label: 1 / m.gain for m in measured if m.is_arithmetic}, 1 / _LEAST_GAIN
            )
        ],
    )


def _measure(nest: Nest, one: _Worker, every: _Worker, rounds: int) -> _Measured:
    length = nest.lengths[-1]
    workers = (one, every)
    size = max(worker.prepare(nest.name, length) for worker in workers)
    seconds: dict[_Worker, list[float]] = {one: [], every: []}
    order = list(workers)
    for _ in range(rounds):
        random.shuffle(order)
        for worker in order:
            seconds[worker].append(worker.time())
    times = (Times(tuple(seconds[worker])) for worker in workers)
    return _Measured(f"{nest.name} {length}", nest.name in _ARITHMETIC, size, *times)


def _median(times: Times) -> float:
    return statistics.median(times.seconds)


class _Worker:
    """A process that may use some processors, and times what it is asked for."""

    def __init__(self, processors: Sequence[int]):
        context = multiprocessing.get_context("spawn")
        self._connection, child = context.Pipe()
        self._process = context.Process(target=_serve, args=(child, list(processors)), daemon=True)

    def __enter__(self) -> _Worker:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.send(None)
        self._process.join()

    def prepare(self, name: str, length: int) -> int:
        """Compiles a nest; returns the bytes of its inputs and results."""
        self._connection.send((name, length))
        return int(self._connection.recv())

    def time(self) -> float:
        """Returns the seconds of a call."""
        self._connection.send("time")
        return float(self._connection.recv())


def _serve(connection: Connection, processors: Sequence[int]) -> None:
    # Before JAX starts its threads: as many as there are processors.
    os.sched_setaffinity(0, processors)
    call: Callable[[], object] | None = None
    while (request := connection.recv()) is not None:
        if request != "time":
            call, size = _call(*request)
            connection.send(size)
            continue
        assert call is not None
        call()
        start = time.perf_counter()
        for _ in range(_CALLS):
            call()
        connection.send((time.perf_counter() - start) / _CALLS)


def _call(name: str, length: int) -> tuple[Callable[[], object], int]:
    (nest,) = (nest for nest in NESTS if nest.name == name)
    arrays = jax.block_until_ready([jax.numpy.asarray(array) for array in nest.inputs(length)])
    op = msops.Custom(nest.kernel, func_type="akg", compile_attrs={"lower": "native"})
    function = jax.jit(op.__call__)
    results = jax.tree.leaves(jax.block_until_ready(function(*arrays)))
    size = sum(int(np.prod(a.shape)) * a.dtype.itemsize for a in (*arrays, *results))
    return lambda: jax.block_until_ready(function(*arrays)), size
