"""What an AICPU kernel costs, next to the same C++ loop as an aot op."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from kernels import FOLDER, make_aot_op, make_inputs, waiting
from plot import plot_costs
from report import Report, Table, judge, show_count, show_ratio, show_us
from settings import Settings
from timing import Spread, Times, spread_of, take_turns

import msops
from msops.ops import CustomRegOp

METHOD = (
    "Adds two float32 arrays and waits for the sum, under jax.jit; microseconds a call as median "
    "(quartiles) of {rounds} rounds in which both take turns; ratio and difference are of one "
    "round. Both compile the same loop (add_loop.h); the AICPU kernel, an object made for each "
    "call, gets its arrays as tensors of a context and checks them as MindSpore's kernels do. "
    "aicpu is declared to only read its inputs (writable=False); copied is not, so each call "
    "copies them"
)
# Below, a call is more than its loop, and what it costs is judged by the difference.
_LOOP_IS_MOST = 2**16
_CONTENDERS = ("aicpu", "copied", "aot")


def make_aicpu_op(writable: bool) -> msops.Custom:
    """Returns the AICPU op; its kernel gets copies of its inputs if they are `writable`."""
    info = CustomRegOp("Add").input(0, "x").input(1, "y").output(0, "sum").target("Ascend")
    return msops.Custom(
        str(FOLDER / "add_aicpu.cc"),
        lambda x, y: x,
        lambda x, y: x,
        func_type="aicpu",
        reg_info=info.get_op_info(),
        writable=writable,
    )


def run(settings: Settings) -> Report:
    """Measures calls at every size."""
    measured = {count: _measure(count, settings.rounds) for count in settings.counts}
    plot_costs(
        settings.results / "aicpu.png",
        "Adding two float32 arrays",
        {
            name: {count: times[name].microseconds for count, times in measured.items()}
            for name in _CONTENDERS
        },
    )
    ratios = {count: times["aicpu"].over(times["aot"]) for count, times in measured.items()}
    differences = {count: _difference(times) for count, times in measured.items()}
    table = Table(
        "Under jax.jit",
        ["elements", *_CONTENDERS, "aicpu / aot", "copied / aot", "aicpu - aot"],
        [
            [
                show_count(count),
                *(show_us(times[name].microseconds) for name in _CONTENDERS),
                show_ratio(ratios[count]),
                show_ratio(times["copied"].over(times["aot"])),
                show_us(differences[count]),
            ]
            for count, times in measured.items()
        ],
    )
    large = _medians({c: ratio for c, ratio in ratios.items() if c >= _LOOP_IS_MOST})
    small = _medians({c: extra for c, extra in differences.items() if c < _LOOP_IS_MOST})
    verdicts = [
        judge(target, values, limit)
        for target, values, limit in (
            ("a kernel within 10 % of the same loop through aot", large, 1.1),
            ("a call within 2 us of an aot call", small, 2.0),
        )
        if values
    ]
    return Report(
        name="aicpu",
        title="An AICPU kernel beside the same loop through aot",
        method=METHOD.format(rounds=settings.rounds),
        tables=[table],
        verdicts=verdicts,
    )


def _measure(count: int, rounds: int) -> dict[str, Times]:
    x, y = make_inputs(count)
    ops = (make_aicpu_op(writable=False), make_aicpu_op(writable=True), make_aot_op())
    functions = dict(zip(_CONTENDERS, map(jax.jit, ops), strict=True))
    for name, function in functions.items():
        if not (function(x, y) == jnp.add(x, y)).all():
            raise RuntimeError(f"{name} adds {count} elements wrongly")
    return take_turns({name: waiting(call, x, y) for name, call in functions.items()}, rounds)


def _difference(times: dict[str, Times]) -> Spread:
    """Returns the microseconds by which the AICPU op is slower, taken round by round."""
    pairs = zip(times["aicpu"].seconds, times["aot"].seconds, strict=True)
    return spread_of([(aicpu - aot) * 1e6 for aicpu, aot in pairs])


def _medians(spreads: dict[int, Spread]) -> dict[str, float]:
    return {f"{show_count(count)} elements": spread.median for count, spread in spreads.items()}
