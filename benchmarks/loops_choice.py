"""Whether the loop compiler's estimates choose the faster of XLA operations and native code."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

import jax
from kernels import waiting
from loop_cases import CASES, Case, make_inputs
from report import Report, Table, judge, show_ratio, show_us
from settings import Settings
from timing import Times, take_turns

import msops
from msops._loops.choice import SECONDS_PER_CALL
from msops._loops.compiled import Compiled
from msops._loops.frontends.program import read_kernel
from msops._loops.frontends.spec import Spec
from msops._loops.print_c.cost import native_seconds
from msops._loops.raising.cost import is_order_bound, raised_seconds

METHOD = (
    "Every kernel of the suite at four sizes, forced to either form by compile_attrs. Microseconds "
    "a call as median (quartiles) of {rounds} rounds; beside them the estimate over the median. "
    "The choice costs what the chosen form takes over what the faster one would"
)
_OUTCOMES = ("order-bound", "fused by XLA")


@dataclass(frozen=True)
class Measured:
    """One kernel at one size.

    Attributes:
      label: name and shape.
      is_order_bound: its raised form runs something in order.
      chosen: "xla" or "native".
      times: by form.
      estimates: microseconds by form.
    """

    label: str
    is_order_bound: bool
    chosen: str
    times: dict[str, Times]
    estimates: dict[str, float]

    @property
    def loss(self) -> float:
        """What the chosen form takes, over the faster one."""
        medians = {name: times.microseconds.median for name, times in self.times.items()}
        return medians[self.chosen] / min(medians.values())


def run(settings: Settings) -> Report:
    """Measures both forms of every kernel."""
    rounds = max(5, settings.rounds // 4)
    measured = [_measure(case, length, rounds) for case in CASES for length in _lengths(case)]
    return Report(
        name="loops_choice",
        title="Loop kernels: XLA operations or native code",
        method=METHOD.format(rounds=rounds),
        tables=[_table(measured), _summary(measured)],
        verdicts=[
            judge(
                "of order-bound kernels, the form chosen takes at most 1.5 times the faster",
                {m.label: m.loss for m in measured if m.is_order_bound},
                1.5,
            )
        ],
    )


def _lengths(case: Case) -> list[int]:
    small, large = case.lengths
    return [max(4, small // 8), small, math.isqrt(small * large) // 2 * 2, large]


def _measure(case: Case, length: int, rounds: int) -> Measured:
    inputs = make_inputs(case.name, case.shapes_of(length))
    program = read_kernel(case.kernel, "akg", case.name)
    specs = [Spec(array.shape, array.dtype.name) for array in inputs]
    compiled = Compiled(program.specialise(specs, {}, case.name), None, case.name)
    arrays = jax.block_until_ready([jax.numpy.asarray(array) for array in inputs])
    return Measured(
        label=case.label_at(length),
        is_order_bound=is_order_bound(compiled.steps),
        chosen=compiled.lowering("cpu"),
        times=take_turns({form: _call(case, form, arrays) for form in ("xla", "native")}, rounds),
        estimates={
            "xla": 1e6 * (SECONDS_PER_CALL + raised_seconds(compiled.raised, compiled.steps)),
            "native": 1e6 * (SECONDS_PER_CALL + native_seconds(compiled.arranged)),
        },
    )


def _call(case: Case, form: str, arrays: list[Any]) -> Any:
    op = msops.Custom(case.kernel, func_type="akg", compile_attrs={"lower": form})
    return waiting(jax.jit(op.__call__), *arrays)


def _table(measured: list[Measured]) -> Table:
    return Table(
        "Times and estimates",
        ["kernel", "xla", "estimate", "native", "estimate", "native / xla", "chosen", "costs"],
        [
            [
                m.label,
                *(
                    cell
                    for form in ("xla", "native")
                    for cell in (
                        show_us(m.times[form].microseconds),
                        f"{m.estimates[form] / m.times[form].microseconds.median:.2f}",
                    )
                ),
                show_ratio(m.times["native"].over(m.times["xla"])),
                m.chosen,
                f"{m.loss:.2f}",
            ]
            for m in measured
        ],
    )


def _summary(measured: list[Measured]) -> Table:
    rows = []
    for name, order_bound in zip(_OUTCOMES, (True, False), strict=True):
        losses = [m.loss for m in measured if m.is_order_bound == order_bound]
        rows.append(
            [
                name,
                str(len(losses)),
                str(sum(loss == 1 for loss in losses)),
                f"{statistics.geometric_mean(losses):.2f}",
                f"{max(losses):.2f}",
            ]
        )
    return Table("Choices", ["kernels", "cases", "faster chosen", "mean cost", "worst"], rows)
