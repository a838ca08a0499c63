"""Whether the loop compiler's estimates choose the faster of XLA operations and native code."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import jax
from kernels import waiting
from loop_cases import CASES, Case, make_inputs
from report import Report, Table, judge, show_ratio, show_us
from settings import Settings
from timing import Times, take_turns

import msops
from msops._loops.frontends.program import read_kernel
from msops._loops.frontends.spec import Spec
from msops._loops.specialisation import Specialisation, Stages

METHOD = (
    "Every kernel of the suite at four sizes, forced to either form by compile_attrs. Microseconds "
    "a call as median (quartiles) of {rounds} rounds; beside them the estimate over the median. "
    "The choice costs what the chosen form takes over what the faster one would. Among neighbours: "
    "in one jitted program with an elementwise operation on each float input before it and one on "
    "its result after it, which XLA may fuse with the operations but not with native code"
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
      embedded: by form, among neighbours.
      estimates: microseconds by form.
    """

    label: str
    is_order_bound: bool
    chosen: str
    times: dict[str, Times]
    embedded: dict[str, Times]
    estimates: dict[str, float]

    @property
    def error(self) -> float:
        """By what factor the estimates are wrong about how much faster a form is; at least 1."""
        said = self.estimates["native"] / self.estimates["xla"]
        medians = {name: found.microseconds.median for name, found in self.times.items()}
        factor = said * medians["xla"] / medians["native"]
        return max(factor, 1 / factor)

    @property
    def loss(self) -> float:
        """What the chosen form takes, over the faster one."""
        return _loss(self.times, self.chosen)

    @property
    def embedded_loss(self) -> float:
        """The same among neighbours."""
        return _loss(self.embedded, self.chosen)


def _loss(times: dict[str, Times], chosen: str) -> float:
    medians = {name: found.microseconds.median for name, found in times.items()}
    return medians[chosen] / min(medians.values())


def run(settings: Settings) -> Report:
    """Measures both forms of every kernel."""
    # The estimates choose here, not what an earlier run measured.
    os.environ["MSOPS_LOOPS_TIMING"] = "0"
    rounds = max(5, settings.rounds // 4)
    measured = [_measure(case, length, rounds) for case in CASES for length in _lengths(case)]
    return Report(
        name="loops_choice",
        title="Loop kernels: XLA operations or native code",
        method=METHOD.format(rounds=rounds),
        tables=[_table(measured), _summary(measured), _sureness(measured)],
        verdicts=[
            judge(
                "of order-bound kernels, the form chosen takes at most 1.5 times the faster",
                {m.label: m.loss for m in measured if m.is_order_bound},
                1.5,
            ),
            judge(
                "of others, the form chosen takes at most 1.5 times the faster among neighbours",
                {m.label: m.embedded_loss for m in measured if not m.is_order_bound},
                1.5,
            ),
        ],
    )


def _lengths(case: Case) -> list[int]:
    small, large = case.lengths
    return [max(4, small // 8), small, math.isqrt(small * large) // 2 * 2, large]


def _measure(case: Case, length: int, rounds: int) -> Measured:
    inputs = make_inputs(case.name, case.shapes_of(length))
    program = read_kernel(case.kernel, "akg", case.name)
    specs = [Spec(array.shape, array.dtype.name) for array in inputs]
    stages = Stages(program.specialise(specs, {}, case.name), case.name)
    arrays = jax.block_until_ready([jax.numpy.asarray(array) for array in inputs])
    ops = {form: _forced(case, form) for form in ("xla", "native")}
    calls = {form: waiting(jax.jit(op.__call__), *arrays) for form, op in ops.items()}
    embedded = {form: waiting(jax.jit(_among_neighbours(op)), *arrays) for form, op in ops.items()}
    return Measured(
        label=case.label_at(length),
        is_order_bound=stages.is_order_bound,
        chosen=Specialisation(stages, None).lowering("cpu"),
        times=take_turns(calls, rounds),
        embedded=take_turns(embedded, rounds),
        estimates={
            "xla": 1e6 * stages.estimates.xla,
            "native": 1e6 * stages.estimates.native,
        },
    )


def _forced(case: Case, form: str) -> msops.Custom:
    return msops.Custom(case.kernel, func_type="akg", compile_attrs={"lower": form})


def _among_neighbours(op: msops.Custom) -> Callable[..., jax.Array]:
    """Returns a function of the op's inputs that computes something before it and after it."""

    def program(*arrays: jax.Array) -> jax.Array:
        before = [
            array * 1.25 + 0.5 if jax.numpy.issubdtype(array.dtype, jax.numpy.floating) else array
            for array in arrays
        ]
        return op(*before) * 2 + 1

    return program


def _table(measured: list[Measured]) -> Table:
    return Table(
        "Times and estimates",
        [
            "kernel",
            "xla",
            "estimate",
            "native",
            "estimate",
            "native / xla",
            "among neighbours: xla",
            "native",
            "native / xla",
            "chosen",
            "costs",
            "there",
        ],
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
                *(show_us(m.embedded[form].microseconds) for form in ("xla", "native")),
                show_ratio(m.embedded["native"].over(m.embedded["xla"])),
                m.chosen,
                f"{m.loss:.2f}",
                f"{m.embedded_loss:.2f}",
            ]
            for m in measured
        ],
    )


def _summary(measured: list[Measured]) -> Table:
    rows = []
    for name, order_bound in zip(_OUTCOMES, (True, False), strict=True):
        found = [m for m in measured if m.is_order_bound == order_bound]
        for setting, losses in (
            ("alone", [m.loss for m in found]),
            ("among neighbours", [m.embedded_loss for m in found]),
        ):
            rows.append(
                [
                    f"{name}, {setting}",
                    str(len(losses)),
                    str(sum(loss == 1 for loss in losses)),
                    f"{statistics.geometric_mean(losses):.2f}",
                    f"{max(losses):.2f}",
                ]
            )
    return Table("Choices", ["kernels", "cases", "faster chosen", "mean cost", "worst"], rows)


def _sureness(measured: list[Measured]) -> Table:
    """Returns by how much the estimates are wrong about which form is faster."""
    # Loops in order are native code without an estimate.
    measured = [m for m in measured if not m.is_order_bound]
    errors = [m.error for m in measured]
    steps = statistics.quantiles(errors, n=10)
    wrong = [m.error for m in measured if m.loss > 1]
    found = (steps[4], steps[8], max(errors), max(wrong, default=1.0))
    return Table(
        "Factor by which the estimates are wrong about how much faster a form is",
        ["half of the cases", "9 of 10", "worst", "worst where the slower form was chosen"],
        [[f"{factor:.2f}" for factor in found]],
    )
