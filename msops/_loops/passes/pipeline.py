"""The pipeline of the loop compiler: lists of named passes.

With ``MSOPS_DEBUG=ir`` every stage is printed to stderr.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msops._base import config
from msops._loops.analysis.findings import Finding
from msops._loops.ir.nodes import Kernel
from msops._loops.ir.text import kernel_text
from msops._loops.passes.check_bounds import Index, check_bounds
from msops._loops.passes.conditional_reductions import rewrite_conditional_reductions
from msops._loops.passes.contract import contract
from msops._loops.passes.distribute import distribute
from msops._loops.passes.drop_starts import drop_starts
from msops._loops.passes.expand_carried import expand_carried
from msops._loops.passes.expand_locals import expand_locals
from msops._loops.passes.find_unwritten import find_unwritten
from msops._loops.passes.forward_locals import forward_indices, forward_locals
from msops._loops.passes.mark_loops import mark_loops
from msops._loops.passes.materialise_guards import materialise_guards
from msops._loops.passes.privatise import privatise
from msops._loops.passes.shrink_locals import shrink_locals
from msops._loops.passes.simplify import simplify

Pass: TypeAlias = Callable[[Kernel], Kernel]

PASSES_COMMON: tuple[tuple[str, Pass], ...] = (
    ("simplify", simplify),
    ("forward indices", forward_indices),
    ("simplify again", simplify),
    ("privatise", privatise),
    ("shrink locals", shrink_locals),
)
"""What every kernel goes through first."""

PASSES_RAISE: tuple[tuple[str, Pass], ...] = (
    ("forward locals", forward_locals),
    ("rewrite conditional reductions", rewrite_conditional_reductions),
    ("materialise guards", materialise_guards),
    ("expand locals", expand_locals),
    ("distribute", distribute),
    ("simplify nests", simplify),
    ("drop starts", drop_starts),
    ("contract", contract),
    ("expand carried elements", expand_carried),
)
"""From there to the raised form, which XLA operations are printed from."""


def run(kernel: Kernel, passes: Sequence[tuple[str, Pass]]) -> Kernel:
    """Returns the kernel after some passes; prints each stage with ``MSOPS_DEBUG=ir``."""
    for name, change in passes:
        changed = change(kernel)
        _show(name, kernel, changed)
        kernel = changed
    return kernel


def _show(name: str, before: Kernel, after: Kernel) -> None:
    if "ir" not in config.debug():
        return
    old, new = kernel_text(before), kernel_text(after)
    print(f"-- {name}: unchanged" if old == new else f"-- {name}\n{new}", file=sys.stderr)


@dataclass(frozen=True)
class Analysis:
    """What is known of a kernel before it is printed as anything.

    Attributes:
      common: the kernel after `PASSES_COMMON`.
      kernel: the same with the kinds of its loops: what C and CUDA are printed from.
      explanation: a line per loop: what it is, and why.
      findings: what the author should know.
      unproven: indices of that kernel that may be out of range, see `check_bounds`; None: any may.
      overwritten: names of its buffers and locals that need not be zero at the start.
    """

    common: Kernel
    kernel: Kernel
    explanation: tuple[str, ...]
    findings: tuple[Finding, ...]
    unproven: frozenset[Index] | None
    overwritten: frozenset[str]


def analyse(kernel: Kernel) -> Analysis:
    """Returns what is known of a kernel as a front end made it."""
    common = run(kernel, PASSES_COMMON)
    bounds, written = check_bounds(common), find_unwritten(common)
    marked = mark_loops(common)
    _show("mark loops", common, marked.kernel)
    findings = (*bounds.findings, *written.findings, *marked.findings)
    return Analysis(
        common, marked.kernel, marked.explanation, findings, bounds.unproven, written.overwritten
    )


def to_raised(kernel: Kernel) -> Kernel:
    """Returns a kernel of a front end in the raised form (see the README of the package).

    Raises:
      NotRaised: it has no such form.
    """
    return common_to_raised(run(kernel, PASSES_COMMON))


def common_to_raised(common: Kernel) -> Kernel:
    """Does the rest of `to_raised`, after `PASSES_COMMON`."""
    return run(common, PASSES_RAISE)
