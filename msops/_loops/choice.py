"""Chooses between operations of XLA and native code.

Loops that are parallel or reductions become array operations, which XLA fuses with what stands
beside them; native code is a call of its own, which always reads and writes whole arrays. What
fusing could save counts as next to nothing for arrays in a cache; for large ones it is often more
than the kernel takes. Nobody knows how much of it a program saves, so on a CPU the form is chosen
that loses less at worst: half of it counts against native code.
Where the estimates are too close, the first call that is no part of a larger program times both
forms; the build cache keeps the times. Where loops keep an order there is little to fuse, and C is
the faster by far: native code needs no estimate there, nor the array operations of a long loop.

``benchmarks/loops_choice.py`` compares the estimates with the clock. The form chosen for a parallel
kernel takes 1.02 times as long as the faster form in the mean if the kernel is alone, and 1.2 times
among neighbours that XLA may fuse; at worst 5.6 times there, for a gather. The neighbours of native
code write arrays of their own, which takes longer than the estimates say.

The estimates are of a CPU. On a GPU a kernel is native code if loops stay that run in order: each
of their iterations would launch kernels of XLA's. It is not if parallel loops are inside those:
launches for all iterations take less time than one thread. Elsewhere there are only operations of
XLA.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msops._base.explanation import show_seconds
from msops._loops.analysis.costs import CACHE_BYTES
from msops._loops.ir.nodes import Kernel
from msops._loops.ir.operators import size_bytes
from msops._loops.to_c.cost import operations_in_loops
from msops._loops.to_cuda.grid import loop_of_one_thread
from msops._loops.to_jax.raising.cost import (
    INLINE_OPERATIONS,
    SECONDS_PER_STREAMED,
    SECONDS_PER_WAKING,
    raised_seconds,
)
from msops._loops.to_jax.raising.steps import Step, loops_in

Form = Literal["xla", "native"]

SURE_FACTOR = 2.0
"""Estimates that differ by less may be the wrong way round. ``benchmarks/nests.py`` prints how many
do, and how many of the others still choose the slower form.
"""

CLOSE_FACTOR = 1.15
"""If the estimate of native code is at most this much greater, and fusing would save little, native
code is chosen.

Of 172 kernels, most of which nobody had tuned, 14 had estimates that differ by less than 1.2. As
operations of XLA these took 2.2 times as long as native code in the mean. For large products XLA is
the faster, by 1.2, and their estimates say so.
"""

SECONDS_PER_CALL = 4e-6
"""The time of calling a jitted program, measured of one that returns its input."""
SECONDS_PER_NATIVE_CALL = 3e-7
"""The time that a call of native code adds to its program."""
SECONDS_PER_FUSED = 1e-6
"""The time saved by being a part of a fused operation, however small, instead of one by itself.
Measured were 0.2 to 0.4 us in a scan. Small kernels go to XLA, which compiles in half the time."""

_NAMES = {"xla": "XLA operations", "native": "native code"}


@dataclass(frozen=True)
class Choice:
    """The form that a kernel gets, and why.

    Attributes:
      lowering: operations of XLA, or native code.
      reason: why, a clause.
      seconds: the time of each form by its name, if times were compared.
    """

    lowering: Form
    reason: str
    seconds: tuple[tuple[str, float], ...] = ()


def forced(lowering: Form, why: str) -> Choice:
    """Returns a choice that does not depend on costs."""
    return Choice(lowering, f"{_NAMES[lowering]}, {why}")


@dataclass(frozen=True)
class Costs:
    """The times of both forms of a kernel on a CPU, in seconds.

    Attributes:
      xla: as operations of XLA, alone in a program.
      native: as native code.
      fusion: an estimate of what XLA may save by fusing the operations with others.
      are_measured: whether the clock gave the first two.
    """

    xla: float
    native: float
    fusion: float
    are_measured: bool = False

    @property
    def native_among_others(self) -> float:
        """The time of native code, and half of what fusing could save, as nobody knows how much."""
        return self.native + self.fusion / 2

    @property
    def prefers_native(self) -> bool:
        """Whether native code loses less where it is the wrong form.

        It loses most if XLA fused all that it can, XLA's operations if it fused nothing. Where
        estimates are close although XLA fused all, XLA's operations lose more.
        """
        is_less = self.native_among_others < self.xla
        if self.are_measured or is_less:
            return is_less
        alone = self.xla - SECONDS_PER_CALL
        return self.native + self.fusion - SECONDS_PER_CALL < CLOSE_FACTOR * alone

    @property
    def are_sure(self) -> bool:
        """Whether they show which form is the faster, alone and among operations to fuse with."""
        is_native = SURE_FACTOR * (self.native + self.fusion) <= self.xla
        is_xla = SURE_FACTOR * self.xla <= self.native
        return self.are_measured or is_native or is_xla


def estimate(raised: Kernel, steps: tuple[Step, ...], native: float) -> Costs:
    """Returns what a kernel takes on a CPU.

    Args:
      raised: the loops as they become array operations.
      steps: the array operations.
      native: what `native_seconds` says of the loops as they are printed as C.
    """
    return Costs(
        xla=SECONDS_PER_CALL + raised_seconds(raised, steps),
        native=SECONDS_PER_CALL + SECONDS_PER_NATIVE_CALL + native,
        fusion=fusion_seconds(raised),
    )


def fusion_seconds(kernel: Kernel) -> float:
    """Returns what is saved if an array operation is fused with those before and after it.

    That is at most writing and reading its results once, and reading its inputs.
    """
    sizes = [size_bytes(b) for b in (*kernel.outputs, *kernel.outputs, *kernel.parameters)]
    return SECONDS_PER_FUSED + SECONDS_PER_STREAMED * sum(s for s in sizes if s > CACHE_BYTES)


def is_quick_as_native(kernel: Kernel, native: float) -> bool:
    """Returns whether native code is done before XLA has woken the threads that it would use.

    Args:
      kernel: the loops, with their kinds.
      native: what `native_seconds` says of the same as they are printed as C.
    """
    wakes = operations_in_loops(kernel) >= INLINE_OPERATIONS
    seconds = SECONDS_PER_NATIVE_CALL + native + fusion_seconds(kernel)
    return wakes and seconds < SECONDS_PER_WAKING


def choose_for_cpu(costs: Costs, is_quick: bool) -> Choice:
    """Returns what a kernel becomes on a CPU; `is_quick` is what `is_quick_as_native` returns."""
    xla, native, fusion = costs.xla, costs.native, costs.fusion
    source = "a measured" if costs.are_measured else "an estimated"
    text = f"{source} {show_seconds(native)} as native code, {show_seconds(xla)} as XLA operations"
    if fusion > 0:
        text += f", of which fusing them with others may save {show_seconds(fusion)}"
    if not costs.are_measured and costs.prefers_native and xla < costs.native_among_others:
        text += "; where these are close, native code is mostly the faster"
    faster: Form = "native" if is_quick or costs.prefers_native else "xla"
    seconds = ((_NAMES["native"], native), (_NAMES["xla"], xla))
    return Choice(faster, f"{_NAMES[faster]}: {text}", seconds)


def choose_for_gpu(steps: tuple[Step, ...], gridded: Kernel) -> Choice:
    """Returns what a kernel becomes on a GPU.

    Args:
      steps: the array operations.
      gridded: the loops as they are printed as CUDA C.
    """
    staying = next(iter(loops_in(steps)), None)
    if staying is None:
        return Choice("xla", "XLA operations, as every loop is parallel or a known reduction")
    alone = loop_of_one_thread(gridded)
    if alone is not None:
        return Choice("xla", f"XLA operations, as one thread would run all of loop {alone.var}")
    return Choice("native", f"native code, as loop {staying.loop.var} must run in order")
