"""What a call of a pyfunc costs, next to a bare jax.pure_callback of the same function."""

from __future__ import annotations

import jax
import mindspore_column
import numpy as np
from kernels import make_inputs, waiting
from plot import plot_costs
from report import Report, Table, judge, show_count, show_ratio, show_us
from settings import Settings
from timing import Times, take_turns

import msops

METHOD = (
    "Adds two float32 arrays in numpy and waits for the sum; microseconds a call as median "
    "(quartiles) of {rounds} rounds in which all contenders take turns. The bare callback converts "
    "its arguments to numpy, as a pyfunc's are, and checks nothing. With out= the function is "
    "np.add, which writes to the program's memory; by callback is the same op with "
    'compile_attrs={{"lower": "callback"}}'
)
NAMES = ("pyfunc", "pyfunc, out=", "pyfunc, by callback", "pure_callback", "pyfunc, eager")
US_AT_20_ELEMENTS = 7.0
LARGE = 2**24


def add(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The function of all contenders."""
    return x + y


def bare_callback(x: jax.Array, y: jax.Array) -> jax.Array:
    """Adds through jax.pure_callback alone."""
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(lambda x, y: add(np.asarray(x), np.asarray(y)), result, x, y)


def run(settings: Settings) -> Report:
    """Measures eager and jitted calls at every size."""
    measured = {count: _measure(count, settings.rounds) for count in settings.counts}
    plot_costs(
        settings.results / "pyfunc_call.png",
        "Adding two float32 arrays in numpy",
        {
            name: {count: times[name].microseconds for count, times in measured.items()}
            for name in NAMES
        },
    )
    others = {
        f"{label}, {mode}": column
        for mode in ("eager", "graph")
        for label, column in mindspore_column.columns(settings, f"pyfunc {mode}").items()
    }
    table = Table(
        "pyfunc",
        ["elements", *NAMES, "pyfunc / pure_callback", *others],
        [
            [
                show_count(count),
                *(show_us(times[name].microseconds) for name in NAMES),
                show_ratio(times["pyfunc"].over(times["pure_callback"])),
                *(column[count] for column in others.values()),
            ]
            for count, times in measured.items()
        ],
    )
    verdicts = []
    if 20 in measured:
        cost = measured[20]["pyfunc"].microseconds.median
        target = f"at most {US_AT_20_ELEMENTS} us a call at 20 elements"
        verdicts.append(judge(target, {"20 elements": cost}, US_AT_20_ELEMENTS))
    if LARGE in measured:
        ratio = measured[LARGE]["pyfunc"].over(measured[LARGE]["pure_callback"]).median
        target = "at most half of pure_callback's time at 16 Mi elements"
        verdicts.append(judge(target, {"16 Mi elements": ratio}, 0.5))
    return Report(
        "pyfunc_call",
        "Call cost of a pyfunc",
        METHOD.format(rounds=settings.rounds),
        [table],
        verdicts,
    )


def _measure(count: int, rounds: int) -> dict[str, Times]:
    x, y = make_inputs(count)
    op, writing, by_callback = (
        msops.Custom(function, lambda x, y: x, lambda x, y: x, compile_attrs=attrs)
        for function, attrs in ((add, None), (np.add, None), (add, {"lower": "callback"}))
    )
    functions = {
        "pyfunc": jax.jit(lambda x, y: op(x, y)),
        "pyfunc, out=": jax.jit(lambda x, y: writing(x, y)),
        "pyfunc, by callback": jax.jit(lambda x, y: by_callback(x, y)),
        "pure_callback": jax.jit(bare_callback),
        "pyfunc, eager": op,
    }
    return take_turns({name: waiting(call, x, y) for name, call in functions.items()}, rounds)
