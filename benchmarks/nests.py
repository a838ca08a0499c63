"""Loop nests of four fields beside Numba, `jax.numpy` and C: times, choices and first calls."""

from __future__ import annotations

import functools
import math
import statistics
import time
import types
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from loops import empty_cache
from nest_cases import NESTS, Nest
from plot import plot_ratios
from report import Report, Table, judge
from settings import Settings
from timing import Times, take_turns

import msops
from msops import _toolchain
from msops._loops.choice import Costs
from msops._loops.frontends.program import read_kernel
from msops._loops.frontends.spec import Spec
from msops._loops.specialisation import Stages

try:
    import numba
except ImportError:
    numba = None

METHOD = (
    "{kernels} kernels of linear algebra, simulation, image processing and machine learning at "
    "three sizes, float32, written plainly and tuned for nothing. Milliseconds a call under "
    "jax.jit, waiting for the result: medians of {rounds} rounds in which all contenders take "
    "turns, each after a call of its own that is not timed. The other columns are their time over "
    "ours. Form: what the first call chose, which is outside jax.jit; `timed` if its estimates "
    "were too close, so that it timed both forms. Other form: msops with the form that it did not "
    "choose. Numba: njit(parallel=True) of the same function, which computes with literals in "
    "float64. jax.numpy: by hand. C: the loops as written, one thread, -O3 -march=native, called "
    "as an aot op. jit alone: a jitted function that returns an input. Gradient: the gradients of "
    "all float inputs from given cotangents, with the forward pass that they need, in the form "
    "that their estimates choose, over native code of the kernel. First call: creating the op, "
    "tracing, compiling, and timing both forms where that is done, once, with an empty build "
    "cache. What takes 40 times as long as the fastest, and over 0.2 s, runs once"
)
_OTHERS = ("Numba", "jax.numpy", "C")
_ALONE = "jit alone"
_C_FLAGS = ("-O3", "-march=native", "-fno-math-errno")
# Sums are taken in other orders, and a rounding may decide how long a point stays bounded.
_TOLERANCE = 3e-3
_LEAST_EQUAL = 0.99
_MOST_LOSS = 1.2


@dataclass(frozen=True)
class Measured:
    """One kernel at one size.

    Attributes:
      label: name and length.
      chosen: "native" or "xla".
      is_timed: the clock chose, as the estimates were too close.
      estimates: of both forms; None where loops run in order, whose form needs none.
      ms: milliseconds of a call, by contender; "native" and "xla" are ours.
      first_ms: milliseconds of our first call.
      gradient: time of the gradients over that of the kernel as native code.
    """

    label: str
    chosen: str
    is_timed: bool
    estimates: Costs | None
    ms: dict[str, float]
    first_ms: float
    gradient: float

    @property
    def ours(self) -> float:
        """Milliseconds in the form chosen."""
        return self.ms[self.chosen]

    @property
    def best_other(self) -> str:
        """The fastest of the other contenders."""
        return min((name for name in _OTHERS if name in self.ms), key=self.ms.__getitem__)

    @property
    def over_best(self) -> float:
        """Our time over that of the fastest other."""
        return self.ours / self.ms[self.best_other]

    @property
    def loss(self) -> float:
        """Our time over that of our faster form."""
        return self._over_faster(self.chosen)

    @property
    def estimated_factor(self) -> float:
        """By what factor the estimates of the two forms differ."""
        if self.estimates is None:
            return math.inf
        low, high = sorted((self.estimates.xla, self.estimates.native_among_others))
        return high / low

    @property
    def loss_by_estimate(self) -> float:
        """The time of the form that the estimates choose over that of our faster form."""
        is_native = self.estimates is None or self.estimates.prefers_native
        return self._over_faster("native" if is_native else "xla")

    def _over_faster(self, form: str) -> float:
        return self.ms[form] / min(self.ms["native"], self.ms["xla"])


def run(settings: Settings) -> Report:
    """Measures every nest at its three sizes."""
    rounds = max(3, settings.rounds // 4)
    with empty_cache():
        # What the first kernel of a process loads is none of its own.
        msops.Custom(NESTS[-1].kernel, func_type="akg")(*NESTS[-1].inputs(8))
        library = _toolchain.build(
            Path(__file__).parent / "nests.c", options=msops.Build(flags=_C_FLAGS), who="benchmarks"
        ).path
        measured = [
            _measure(nest, length, rounds, library) for nest in NESTS for length in nest.lengths
        ]
    measured.sort(key=lambda m: -m.over_best)
    ratios = {
        name: {m.label: m.ours / m.ms[name] for m in measured if name in m.ms} for name in _OTHERS
    }
    title = "What msops takes, over what others take"
    plot_ratios(settings.results / "nests.png", title, {n: r for n, r in ratios.items() if r})
    return Report(
        name="nests",
        title="Loop nests that nobody tuned for",
        method=METHOD.format(kernels=len(NESTS), rounds=rounds),
        tables=[_summary(measured), _table(measured), _sureness(measured)],
        verdicts=[
            judge(
                "at most 1.2 times the faster of its own two forms",
                {m.label: m.loss for m in measured},
                _MOST_LOSS,
            ),
            judge(
                "none slower than 1.2 times the best of the others",
                {m.label: m.over_best for m in measured},
                1.2,
            ),
            judge(
                "gradients of native kernels take at most 3 times as long, in the median",
                {"the median": statistics.median(m.gradient for m in measured)},
                3,
            ),
        ],
    )


def _measure(nest: Nest, length: int, rounds: int, library: Path) -> Measured:
    inputs = nest.inputs(length)
    arrays = jax.block_until_ready([jax.numpy.asarray(array) for array in inputs])
    start = time.perf_counter()
    op = msops.Custom(nest.kernel, func_type="akg")
    expected = jax.tree.leaves(jax.block_until_ready(op(*arrays)))
    first_ms = 1e3 * (time.perf_counter() - start)
    choice = op.explain(*arrays).splitlines()[0]
    functions: dict[str, Callable[[], Any]] = {
        form: _waiting(
            jax.jit(
                msops.Custom(nest.kernel, func_type="akg", compile_attrs={"lower": form}).__call__
            ),
            arrays,
        )
        for form in ("native", "xla")
    }
    if numba is not None:
        jitted = _numba(nest.kernel)
        # A kernel that writes its inputs would change those of the next call.
        kept = [np.copy(array) for array in inputs]
        jitted(*kept)
        writes = [not np.array_equal(x, y) for x, y in zip(inputs, kept, strict=True)]
        functions["Numba"] = lambda: jitted(
            *(np.copy(x) if written else x for x, written in zip(inputs, writes, strict=True))
        )
    functions["jax.numpy"] = _waiting(jax.jit(nest.by_hand), arrays)
    functions["C"] = _waiting(jax.jit(_c_op(library, nest.name, expected).__call__), arrays)
    for name, function in functions.items():
        for got, want in zip(jax.tree.leaves(function()), expected, strict=True):
            scale = _TOLERANCE * np.abs(want).max()
            if np.isclose(got, want, _TOLERANCE, scale).mean() < _LEAST_EQUAL:
                raise AssertionError(f"{nest.name}: {name} gives another result")
    native = msops.Custom(nest.kernel, func_type="akg", compile_attrs={"lower": "native"})
    functions[_ALONE] = _waiting(jax.jit(lambda *inputs: inputs[0]), arrays)
    functions["gradient"] = _waiting(_gradient(native, arrays, expected), arrays)
    ms = {name: _median_ms(times) for name, times in _times(functions, rounds).items()}
    return Measured(
        label=f"{nest.name} {length}",
        chosen="native" if "CPU: native" in choice else "xla",
        is_timed="a measured" in choice,
        estimates=_estimates(nest, inputs),
        ms=ms,
        first_ms=first_ms,
        gradient=ms["gradient"] / ms["native"],
    )


def _gradient(
    op: msops.Custom, arrays: Sequence[jax.Array], results: Sequence[jax.Array]
) -> Callable[..., Any]:
    """Returns a function of the inputs: the gradients of those that are floats."""
    floats = [i for i, array in enumerate(arrays) if array.dtype.kind == "f"]

    def gradients(cotangents: Sequence[Any], *inputs: jax.Array) -> Any:
        def of_floats(*values: jax.Array) -> Any:
            given = dict(zip(floats, values, strict=True))
            return jax.tree.leaves(op(*(given.get(i, x) for i, x in enumerate(inputs))))

        _, pull = jax.vjp(of_floats, *(inputs[i] for i in floats))
        return pull(cotangents)

    # An argument: as a constant, XLA would fill its memory in each call.
    ones = [jax.numpy.ones(x.shape, x.dtype) for x in results]
    return functools.partial(jax.jit(gradients), ones)


def _estimates(nest: Nest, inputs: Sequence[np.ndarray]) -> Costs | None:
    specs = [Spec(array.shape, array.dtype.name) for array in inputs]
    program = read_kernel(nest.kernel, "akg", nest.name)
    stages = Stages(program.specialise(specs, {}, nest.name), nest.name)
    return None if stages.is_order_bound else stages.estimates


def _waiting(function: Callable[..., Any], arrays: Sequence[jax.Array]) -> Callable[[], Any]:
    if isinstance(function(*arrays), jax.Array):
        # jax.block_until_ready spends half a microsecond in Python on finding the one array.
        return lambda: function(*arrays).block_until_ready()
    return lambda: jax.block_until_ready(function(*arrays))


def _times(functions: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Times]:
    """Times all functions in turns, the slowest of them once."""
    once = {}
    for name, function in functions.items():
        start = time.perf_counter()
        function()
        once[name] = time.perf_counter() - start
    limit = max(0.2, 40 * min(seconds for name, seconds in once.items() if name != _ALONE))
    slow = {name: Times((seconds,)) for name, seconds in once.items() if seconds > limit}
    return slow | take_turns({n: f for n, f in functions.items() if n not in slow}, rounds)


def _median_ms(times: Times) -> float:
    return 1e3 * statistics.median(times.seconds)


def _numba(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a kernel compiled by Numba; the names of the language are those of its own."""
    # It warns of functions without a loop for threads.
    warnings.simplefilter("ignore", numba.errors.NumbaPerformanceWarning)
    zeros = numba.njit(lambda shape, dtype: np.zeros(shape, dtype))
    names = {
        "output_tensor": zeros,
        "allocate": zeros,
        "parallel": numba.prange,
        "float32": np.float32,
    }
    names |= {name: getattr(math, name) for name in ("exp", "sqrt", "tanh")}
    return numba.njit(parallel=True)(types.FunctionType(kernel.__code__, names))


def _c_op(library: Path, name: str, results: Sequence[jax.Array]) -> msops.Custom:
    shapes = [list(result.shape) for result in results]
    dtypes = [result.dtype for result in results]
    one = len(results) == 1
    return msops.Custom(
        f"{library}:{name}",
        lambda *_: shapes[0] if one else shapes,
        lambda *_: dtypes[0] if one else dtypes,
        "aot",
    )


def _table(measured: Sequence[Measured]) -> Table:
    def over(m: Measured, name: str) -> str:
        return f"{m.ms[name] / m.ours:.2f}" if name in m.ms else ""

    return Table(
        "A call, the worst beside the best of the others first",
        [
            "kernel",
            "form",
            "ms",
            "other form",
            *_OTHERS,
            _ALONE,
            "ours / best",
            "gradient",
            "first call, ms",
        ],
        [
            [
                m.label,
                m.chosen + (", timed" if m.is_timed else ""),
                f"{m.ours:.3g}",
                over(m, "xla" if m.chosen == "native" else "native"),
                *(over(m, name) for name in (*_OTHERS, _ALONE)),
                f"{m.over_best:.2f} ({m.best_other})",
                f"{m.gradient:.2f}",
                f"{m.first_ms:.0f}",
            ]
            for m in measured
        ],
    )


def _sureness(measured: Sequence[Measured]) -> Table:
    """Returns what is left to the estimates if closer ones are timed: `choice.SURE_FACTOR`."""
    rows = []
    for factor in (1.0, 1.5, 2.0, 3.0, 5.0):
        sure = [m for m in measured if m.estimated_factor >= factor]
        wrong = [m for m in sure if m.loss_by_estimate > _MOST_LOSS]
        worst = max(sure, key=lambda m: m.loss_by_estimate)
        share = f"{1 - len(sure) / len(measured):.0%}"
        loss = f"{worst.loss_by_estimate:.2f} ({worst.label})"
        rows.append([f"{factor:g}", share, str(len(wrong)), loss])
    columns = ["estimates within", "are timed", "chosen wrong", "worst beside its other form"]
    return Table("Choices left to estimates; inside a larger program, all of them", columns, rows)


def _summary(measured: Sequence[Measured]) -> Table:
    rows = []
    for name in _OTHERS:
        ratios = {m.label: m.ours / m.ms[name] for m in measured if name in m.ms}
        if ratios:
            rows.append([name, *_mean_and_worst(ratios)])
    rows.append(["the best of these", *_mean_and_worst({m.label: m.over_best for m in measured})])
    rows.append(["our faster form", *_mean_and_worst({m.label: m.loss for m in measured})])
    gradients = {m.label: m.gradient for m in measured}
    median = f"{statistics.median(gradients.values()):.2f} (median)"
    rows.append(["gradient / native kernel", median, _mean_and_worst(gradients)[1]])
    first = [m.first_ms for m in measured]
    rows.append(["first call, ms", f"{statistics.median(first):.0f} (median)", f"{max(first):.0f}"])
    return Table("Our time over that of", ["", "geometric mean", "worst"], rows)


def _mean_and_worst(ratios: dict[str, float]) -> tuple[str, str]:
    worst = max(ratios, key=ratios.__getitem__)
    return f"{statistics.geometric_mean(ratios.values()):.2f}", f"{ratios[worst]:.2f} ({worst})"
