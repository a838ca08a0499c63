"""What a call of an aot op costs, next to an FFI handler written by hand for the same loop."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import mindspore_column
from kernels import handwritten_add, make_aot_op, make_inputs, waiting
from plot import plot_costs
from report import Report, Table, judge, show_count, show_ratio, show_us
from settings import Settings
from timing import Times, take_turns

METHOD = (
    "Adds two float32 arrays and waits for the sum; microseconds a call as median (quartiles) of "
    "{rounds} rounds in which all contenders take turns; ratios are taken within a round. The aot "
    "op and the hand-written handler compile the same loop (add_loop.h) with the same flags; "
    "jnp.add runs XLA's own loop, which may use all cores"
)
JITTED = ("aot", "hand-written", "jnp.add")
EAGER = ("aot, eager", "ffi_call, eager", "jnp.add, eager")


def run(settings: Settings) -> Report:
    """Measures eager and jitted calls at every size."""
    measured = {count: _measure(count, settings.rounds) for count in settings.counts}
    plot_costs(
        settings.results / "aot_call.png",
        "Adding two float32 arrays",
        {name: _series(measured, name) for name in (*JITTED, "aot, eager", "jnp.add, eager")},
    )
    jitted_ratio = _ratios(measured, "aot", "hand-written")
    eager_ratio = _ratios(measured, "aot, eager", "jnp.add, eager")
    return Report(
        name="aot_call",
        title="Call cost of an aot op",
        method=METHOD.format(rounds=settings.rounds),
        tables=[
            _table("Under jax.jit", measured, JITTED, jitted_ratio, settings, "aot graph"),
            _table("Eager", measured, EAGER, eager_ratio, settings, "aot eager"),
        ],
        verdicts=[
            judge("jitted aot within 5 % of hand-written", _medians(jitted_ratio), 1.05),
            judge("eager aot within 2x of eager jnp.add", _medians(eager_ratio), 2.0),
        ],
    )


def _measure(count: int, rounds: int) -> dict[str, Times]:
    x, y = make_inputs(count)
    op = make_aot_op()
    functions = {
        "aot": jax.jit(lambda x, y: op(x, y)),
        "hand-written": jax.jit(handwritten_add),
        "jnp.add": jax.jit(jnp.add),
        "aot, eager": op,
        "ffi_call, eager": handwritten_add,
        "jnp.add, eager": jnp.add,
    }
    expected = jnp.add(x, y)
    for name, function in functions.items():
        if not (function(x, y) == expected).all():
            raise RuntimeError(f"{name} adds {count} elements wrongly")
    return take_turns({name: waiting(call, x, y) for name, call in functions.items()}, rounds)


def _series(measured, name):
    return {count: times[name].microseconds for count, times in measured.items()}


def _ratios(measured, name, baseline):
    return {count: times[name].over(times[baseline]) for count, times in measured.items()}


def _medians(ratios):
    return {f"{show_count(count)} elements": ratio.median for count, ratio in ratios.items()}


def _table(heading, measured, names, ratios, settings, mindspore_name) -> Table:
    others = mindspore_column.columns(settings, mindspore_name)
    subject, baseline = names[0], next(n for n in names[1:] if "ffi_call" not in n)
    return Table(
        heading,
        ["elements", *names, f"{subject} / {baseline}", *others],
        [
            [
                show_count(count),
                *(show_us(times[name].microseconds) for name in names),
                show_ratio(ratios[count]),
                *(column[count] for column in others.values()),
            ]
            for count, times in measured.items()
        ],
    )
