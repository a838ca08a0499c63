"""The pipeline of the loop compiler: a list of named passes for each way out.

    front end -> PASSES_COMMON -> PASSES_TO_JAX -> XLA operations
                               -> passes_to_mark -> STAGES_TO_C -> C
                                                 -> PASSES_TO_CUDA -> CUDA C
                                                 -> passes_to_gradient -> the kernel of a gradient
    front end -> passes_to_batch -> the kernel over a leading axis

With ``MSOPS_DEBUG=ir`` the kernel is printed to stderr after every pass; on the way to C after
every stage, each of which is one mechanism of `to_c`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from msops._base import config, processor
from msops._loops.analysis.findings import LoopFinding
from msops._loops.analysis.kinds import Kinds, find_kinds
from msops._loops.analysis.polyhedral.bounds import Index, check_bounds
from msops._loops.analysis.polyhedral.flow import find_overwritten, find_unwritten
from msops._loops.gradient.explicit_indices import make_indices_explicit
from msops._loops.gradient.extremes import share_extremes
from msops._loops.gradient.gather_windows import gather_windows
from msops._loops.gradient.operands import compute_operands_once
from msops._loops.gradient.reverse import reverse
from msops._loops.gradient.tidying import ascend, store_first_terms
from msops._loops.ir.nodes import Kernel, Local
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.text import kernel_text
from msops._loops.ir.walk import accesses_in, buffers_of, statements
from msops._loops.passes.batching import batched
from msops._loops.passes.forward_locals import forward_locals
from msops._loops.passes.keep_decisions import keep_decisions
from msops._loops.passes.mark_loops import mark_loops
from msops._loops.passes.plain_indices import make_indices_plain
from msops._loops.passes.privatise import privatise
from msops._loops.passes.simplify import simplify
from msops._loops.passes.split_at_pivots import split_at_pivots
from msops._loops.passes.split_running_maxima import split_running_maxima
from msops._loops.passes.version_ragged_rows import version_ragged_rows
from msops._loops.to_c import clean, lanes, materialise, order, ranges, reduce
from msops._loops.to_c.clean.promoting import keep_in_variables
from msops._loops.to_c.materialise.workspaces import place_locals
from msops._loops.to_cuda.grid import mark_grids
from msops._loops.to_cuda.hoisting import hoist_locals, sink_conditions, turn_reductions
from msops._loops.to_cuda.source import THREAD_BYTES
from msops._loops.to_jax.passes.conditional_reductions import rewrite_conditional_reductions
from msops._loops.to_jax.passes.count_windows import count_windows
from msops._loops.to_jax.passes.distribute import distribute
from msops._loops.to_jax.passes.drop_starts import drop_starts
from msops._loops.to_jax.passes.expand_carried import expand_carried
from msops._loops.to_jax.passes.expand_locals import contract, expand_locals
from msops._loops.to_jax.raising.describe import steps_text
from msops._loops.to_jax.raising.patterns import raise_kernel
from msops._loops.to_jax.raising.steps import Step

Pass: TypeAlias = Callable[[Kernel], Kernel]
Passes: TypeAlias = tuple[tuple[str, Pass], ...]
PassStages: TypeAlias = tuple[tuple[str, Passes], ...]

PASSES_COMMON: Passes = (
    ("make indices plain", make_indices_plain),
    ("privatise", privatise),
    ("split at pivots", split_at_pivots),
)
"""The first passes of every kernel."""

PASSES_TO_JAX: Passes = (
    ("split running maxima", split_running_maxima),
    ("count windows", count_windows),
    ("forward locals", forward_locals),
    ("rewrite conditional reductions", rewrite_conditional_reductions),
    ("keep decisions", keep_decisions),
    ("expand locals", expand_locals),
    ("distribute", distribute),
    ("simplify nests", simplify),
    ("drop starts", drop_starts),
    ("contract", contract),
    ("expand carried elements", expand_carried),
)
"""From there to the raised form, which XLA operations are printed from."""

STAGES_TO_C: PassStages = (
    ("clean", clean.STATEMENTS),
    ("reduce", reduce.UPDATES),
    ("materialise", materialise.VALUES),
    ("ranges", ranges.WINDOWS),
    ("order", order.NESTS),
    ("reduce", reduce.PARTIAL),
    ("ranges", ranges.ROWS),
    ("lanes", lanes.OUTER),
    ("order", order.ROWS),
    ("clean", clean.ELEMENTS),
    ("materialise", materialise.BUFFERS),
    ("ranges", ranges.INDICES),
    ("order", order.THREADS),
    ("lanes", lanes.INNERMOST),
)
"""From a kernel with the kinds of its loops to the form that C is printed from: mechanisms, each
with its passes. A mechanism acts on nests before loops have their order, and on loops after."""

STAGES_IN_PLACE: PassStages = (("clean", clean.IN_PLACE), *STAGES_TO_C[1:])
"""The same, where a result may have the memory of a parameter."""

PASSES_TO_C: Passes = tuple(each for _, passes in STAGES_TO_C for each in passes)
"""The passes of `STAGES_TO_C`."""

PASSES_TO_CUDA: Passes = (
    ("turn reductions", turn_reductions),
    ("hoist locals", hoist_locals),
    ("sink conditions", sink_conditions),
    ("keep in variables", keep_in_variables),
    ("place locals", partial(place_locals, most_bytes=THREAD_BYTES)),
    ("mark grids", mark_grids),
)
"""From a kernel with the kinds of its loops to the form that CUDA C is printed from."""


def passes_to_mark(kinds: Kinds) -> Passes:
    """Returns what follows `PASSES_COMMON` for C, CUDA C and gradients."""
    return (("mark loops", partial(mark_loops, kinds=kinds.by_variable)),)


def passes_to_gradient(wanted: tuple[bool, ...] | None) -> Passes:
    """Returns the passes from a kernel to that of its gradients; see `gradient.reverse.reverse`."""
    return (
        ("split running maxima", split_running_maxima),
        ("version ragged rows", version_ragged_rows),
        ("share extremes", share_extremes),
        ("compute operands once", compute_operands_once),
        ("make indices explicit", make_indices_explicit),
        ("keep decisions", partial(keep_decisions, backwards=True)),
        ("reverse", partial(reverse, wanted=wanted)),
        ("store first terms", store_first_terms),
        ("mark reversed loops", mark_loops),
        ("ascend", ascend),
        ("simplify the gradient", simplify),
        ("gather windows", gather_windows),
    )


def passes_to_batch(sizes: Sequence[int], mapped: Sequence[tuple[bool, ...]]) -> Passes:
    """Returns the passes from a kernel to the same over leading axes.

    Args:
      sizes: of the axes, outermost first.
      mapped: per axis, whether each parameter has it.
    """
    axes = zip(reversed(sizes), reversed(mapped), strict=True)
    return tuple(
        ("batch", partial(batched, size=size, batched_parameters=flags)) for size, flags in axes
    )


def run(kernel: Kernel, passes: Sequence[tuple[str, Pass]]) -> Kernel:
    """Returns the kernel after some passes; prints each with ``MSOPS_DEBUG=ir``."""
    return run_stages(kernel, tuple((name, ((name, change),)) for name, change in passes))


def run_stages(kernel: Kernel, stages: PassStages) -> Kernel:
    """Returns the kernel after some stages; prints each with ``MSOPS_DEBUG=ir``."""
    shows = "ir" in config.debug()
    for name, passes in stages:
        before, did = kernel, []
        for own_name, change in passes:
            changed = change(kernel)
            if shows and kernel_text(changed) != kernel_text(kernel):
                did.append(own_name)
            kernel = changed
        if shows:
            _show(name, did, before, kernel)
    return kernel


def _show(stage: str, did: Sequence[str], before: Kernel, after: Kernel) -> None:
    """Prints what a stage did, with the passes that changed something."""
    text = kernel_text(after)
    if text == kernel_text(before):
        print(f"-- {stage}: unchanged", file=sys.stderr)
        return
    passes = "" if did == [stage] else f": {', '.join(did)}"
    print(f"-- {stage}{passes}\n{text}", file=sys.stderr)


def to_steps(raised: Kernel) -> tuple[Step, ...]:
    """Returns the array operations of a raised kernel; prints them with ``MSOPS_DEBUG=ir``."""
    steps = raise_kernel(raised)
    if "ir" in config.debug():
        print(f"-- raise\n{steps_text(steps)}", file=sys.stderr)
    return steps


@dataclass(frozen=True)
class Analysis:
    """Facts about a kernel, before it is printed in any form.

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
    findings: tuple[LoopFinding, ...]
    unproven: frozenset[Index] | None
    overwritten: frozenset[str]


def analyse(kernel: Kernel) -> Analysis:
    """Returns what is known of a kernel as a front end made it."""
    common = run(kernel, PASSES_COMMON)
    bounds, written, kinds = check_bounds(common), find_unwritten(common), find_kinds(common)
    findings = (*bounds.findings, *written.findings, *kinds.findings)
    return Analysis(
        common,
        run(common, passes_to_mark(kinds)),
        kinds.explanation,
        _by_its_names(findings, kernel, common) if findings else (),
        bounds.unproven,
        written.overwritten,
    )


def _by_its_names(
    findings: tuple[LoopFinding, ...], kernel: Kernel, common: Kernel
) -> tuple[LoopFinding, ...]:
    """Returns findings in terms of the author's loops, also of those written out or nested."""
    keeping = partial(make_indices_plain, keeps_loops=True)
    passes = tuple(
        (name, keeping if change is make_indices_plain else change)
        for name, change in PASSES_COMMON
    )
    whole = run(kernel, passes)
    if whole == common:
        return findings
    found = (*check_bounds(whole).findings, *find_unwritten(whole).findings)
    of_loops = {(each.kind, each.location): each for each in found}
    return tuple(dict.fromkeys(of_loops.get((each.kind, each.location), each) for each in findings))


def facts_of(kernel: Kernel, known: Analysis) -> tuple[frozenset[Index] | None, frozenset[str]]:
    """Returns `unproven` and `overwritten` of a kernel that passes made of an analysed one.

    Finding them takes long, so what is known is kept. Passes do not change which values are read:
    an array whose elements were written before they were read still is such an array. Only new
    indices and new arrays are looked at. Arrays of one vector are left out, since C compilers see
    for themselves that these are written first.
    """
    new, old = (
        {(access.buffer, access.indices) for access in accesses_in(stage.body) if access.indices}
        for stage in (kernel, known.kernel)
    )
    if new <= old:
        return known.unproven, known.overwritten
    added = {
        stmt.buffer.name
        for stmt in statements(kernel.body)
        if isinstance(stmt, Local)
        and stmt.buffer.shape
        and size_bytes(stmt.buffer) > processor.vector_bytes()
    }
    added |= {buffer.name for buffer in kernel.buffers}
    added -= buffers_of(known.kernel).keys()
    overwritten = known.overwritten | find_overwritten(kernel, added)
    return check_bounds(kernel).unproven, overwritten


def adjoint(kernel: Kernel, wanted: tuple[bool, ...] | None = None) -> Kernel:
    """Returns the kernel that computes the gradients of a kernel.

    Args:
      kernel: any kernel.
      wanted: for each parameter, whether its gradient is; None wants all. Parameters that are not
        floats have none.

    Returns:
      A kernel whose parameters are those of `kernel`, then a cotangent per float result, of the
      result's shape and dtype; its results are the gradients wanted, in the order of the
      parameters, each of its parameter's shape and dtype.

    Raises:
      ArgumentValueError: no gradient is wanted, or no result is a float.
    """
    return run(kernel, passes_to_gradient(wanted))
