"""Chooses between operations of XLA and native code.

Loops that are parallel or reductions become array operations, which XLA fuses with what stands
beside them, and which differentiate, export and compile as anything of JAX does. So on a CPU native
code must be much faster to be chosen there, by the estimates that ``benchmarks/loops_choice.py``
compares with the clock. Where loops keep an order there is little to fuse, and the faster wins.

They leave out one thing: on a CPU, JAX runs a program of 1,000 or more floating point operations,
as XLA counts them, on another thread, and a call of native code counts as none. So a small kernel
that is a whole program takes some microseconds longer as XLA operations; within a larger program it
does not. (With jax_cpu_enable_async_dispatch=False all programs run where they are called.)

The estimates are of a CPU. On a GPU a kernel is native code if loops stay that run in order: each
of their iterations would launch kernels of XLA's. Elsewhere there are only operations of XLA.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msops._loops.ir import Kernel
from msops._loops.print_c.cost import native_seconds
from msops._loops.raising.cost import is_order_bound, raised_seconds
from msops._loops.raising.steps import Branch, Loop, Step

Lowering = Literal["xla", "native"]

SECONDS_PER_CALL = 4e-6
"""What a call takes by itself, either way."""
ADVANTAGE = 4.0
"""How many times as fast native code must be where XLA might fuse its operations with others."""

_NAMES = {"xla": "XLA operations", "native": "native code"}


@dataclass(frozen=True)
class Choice:
    """What a kernel becomes.

    Attributes:
      lowering: operations of XLA, or native code.
      reason: why, a clause.
    """

    lowering: Lowering
    reason: str


def forced(lowering: Lowering, why: str) -> Choice:
    """Returns a choice that costs have no part in."""
    return Choice(lowering, f"{_NAMES[lowering]}, {why}")


def choose_for_cpu(raised: Kernel, steps: tuple[Step, ...], arranged: Kernel) -> Choice:
    """Returns what a kernel becomes on a CPU.

    Args:
      raised: the loops as they become array operations.
      steps: the array operations.
      arranged: the loops as they are printed as C.
    """
    xla = SECONDS_PER_CALL + raised_seconds(raised, steps)
    native = SECONDS_PER_CALL + native_seconds(arranged)
    costs = f"an estimated {_time(native)} as native code, {_time(xla)} as XLA operations"
    if is_order_bound(steps):
        faster: Lowering = "native" if native < xla else "xla"
        return Choice(faster, f"{_NAMES[faster]}: {costs}")
    if ADVANTAGE * native < xla:
        return Choice("native", f"native code: {costs}")
    return Choice("xla", f"XLA operations, which fuse with others: {costs}")


def choose_for_gpu(steps: tuple[Step, ...]) -> Choice:
    """Returns what a kernel becomes on a GPU."""
    staying = _first_loop(steps)
    if staying is None:
        return Choice("xla", "XLA operations, as every loop is parallel or a known reduction")
    return Choice("native", f"native code, as loop {staying.loop.var} must run in order")


def _first_loop(steps: tuple[Step, ...]) -> Loop | None:
    for step in steps:
        match step:
            case Loop():
                return step
            case Branch(then=then, otherwise=otherwise):
                found = _first_loop((*then, *otherwise))
                if found:
                    return found
    return None


def _time(seconds: float) -> str:
    """Returns seconds as text, to two digits."""
    for unit, name in ((1.0, "s"), (1e-3, "ms")):
        if seconds >= unit:
            return f"{float(f'{seconds / unit:.2g}'):g} {name}"
    return f"{float(f'{seconds / 1e-6:.2g}'):g} us"
