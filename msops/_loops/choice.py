"""Chooses between operations of XLA and native code.

Loops that are parallel or reductions become array operations, which XLA fuses with what stands
beside them. Only a kernel with loops that stay has a choice: as operations it pays for every
iteration of such a loop, as native code it pays for each scalar operation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from msops._loops.raising.steps import Branch, Loop, Step

Lowering = Literal["xla", "native"]


@dataclass(frozen=True)
class Choice:
    """What a kernel becomes.

    Attributes:
      lowering: operations of XLA, or native code.
      reason: why, a clause.
    """

    lowering: Lowering
    reason: str


def choose(steps: tuple[Step, ...], forced: Lowering | None) -> Choice:
    """Returns what a kernel with these array operations becomes."""
    names = {"xla": "XLA operations", "native": "native code"}
    if forced is not None:
        return Choice(forced, f"{names[forced]}, as compile_attrs asks")
    staying = list(_loops(steps))
    if not staying:
        return Choice("xla", "XLA operations, as every loop is parallel or a known reduction")
    return Choice("native", f"native code, as loop {staying[0].loop.var} must run in order")


def _loops(steps: tuple[Step, ...]) -> list[Loop]:
    found: list[Loop] = []
    for step in steps:
        match step:
            case Loop():
                found.append(step)
            case Branch(then=then, otherwise=otherwise):
                found += [*_loops(then), *_loops(otherwise)]
    return found
