"""One kernel for one set of shapes: each stage to what runs is made when it is asked for."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from msops import _toolchain
from msops._base import config
from msops._base.collector import collector_waits
from msops._base.explanation import Explanation
from msops._loops import pipeline
from msops._loops.analysis.findings import check_sizes
from msops._loops.analysis.polyhedral.counts import count_operations
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.choice import (
    Choice,
    Costs,
    Form,
    choose_for_cpu,
    choose_for_gpu,
    estimate,
    forced,
    is_quick_as_native,
)
from msops._loops.ir.nodes import For, Kernel
from msops._loops.ir.text import kernel_text, point
from msops._loops.ir.walk import statements
from msops._loops.to_c import CSource, c_source
from msops._loops.to_c.cost import native_seconds
from msops._loops.to_cuda import CudaSource, cuda_source
from msops._loops.to_jax.raising.describe import describe
from msops._loops.to_jax.raising.steps import (
    Step,
    first_in_order,
    in_order,
    keep_extremes,
    loops_in,
)
from msops.errors import ArgumentValueError, explain

_FEW_ITERATIONS = 4
"""Iterations of a loop in order that are operations of XLA where native code is none or stays."""


@dataclass(frozen=True)
class Native:
    """A kernel as a library.

    Attributes:
      library: the library.
      symbol: the function in it.
      workspaces: sizes of the memory it wants, in bytes.
    """

    library: _toolchain.Library
    symbol: str
    workspaces: tuple[int, ...]


class Stages:
    """One specialised kernel in all its forms: each stage is made once, when it is asked for.

    Args:
      kernel: as a front end made it.
      who: the op, for messages.
      is_in_place: results may have the memory of parameters.

    Raises:
      ArgumentValueError: it reads or writes out of range for certain, or an array of it is larger
        than a process can be.
    """

    @collector_waits()
    def __init__(self, kernel: Kernel, who: str, *, is_in_place: bool = False):
        self.kernel = kernel
        self.who = who
        self._is_in_place = is_in_place
        check_sizes(kernel, who)
        self.analysis = pipeline.analyse(kernel)
        for finding in self.analysis.findings:
            if finding.kind == "out of range":
                raise ArgumentValueError.explained(
                    who,
                    finding.message,
                    "Correct the index, or guard the access by an if.",
                    point(finding.location),
                )

    @functools.cached_property
    def warnings(self) -> tuple[str, ...]:
        """The warnings for the author, as whole messages."""
        found = [
            (finding.message, _REMEDIES[finding.kind], finding.location)
            for finding in self.analysis.findings
        ]
        notes = [(note.problem, note.remedy, note.location) for note in self.kernel.notes]
        return tuple(
            explain(self.who, problem, remedy, point(location))
            for problem, remedy, location in (*notes, *found)
        )

    @functools.cached_property
    @collector_waits()
    def _raised(self) -> Kernel | None:
        """The loops as they become array operations; None if nothing is known of their order."""
        try:
            return pipeline.run(self.analysis.common, pipeline.PASSES_TO_JAX)
        except TooComplex:
            return None

    @property
    def raised(self) -> Kernel:
        """The loops as they become array operations; each stays a loop if that cannot be proven."""
        return self._raised or self.analysis.kernel

    @property
    def is_too_complex(self) -> bool:
        """Whether the loops stay as they are, as nothing is known of their dependences."""
        return self._raised is None

    @functools.cached_property
    @collector_waits()
    def steps(self) -> tuple[Step, ...]:
        """The array operations."""
        return pipeline.to_steps(self.raised)

    @functools.cached_property
    def loop_in_order(self) -> str:
        """The variable of the first loop that keeps its order; empty if none does."""
        for stmt in statements(self.analysis.kernel.body):
            if isinstance(stmt, For) and stmt.kind == "serial":
                return stmt.var
        return ""

    @functools.cached_property
    def is_order_bound(self) -> bool:
        """Whether something in the array operations runs in an order."""
        return bool(first_in_order(self.steps))

    @property
    def is_short(self) -> bool:
        """Whether what runs in an order among the array operations does so a few times."""
        lengths = [length for _, length in in_order(self.steps)]
        return all(length is not None and length <= _FEW_ITERATIONS for length in lengths)

    @functools.cached_property
    def keeps_extremes(self) -> bool:
        """Whether the array operations reduce floats to the greatest or least one."""
        return keep_extremes(self.steps)

    @property
    def loops_in_order(self) -> int:
        """How many loops among the array operations run in an order."""
        return len(loops_in(self.steps))

    @functools.cached_property
    def function(self) -> Callable[..., Sequence[Any]]:
        """The raised kernel as a JAX function, of one array per parameter."""
        # Here, as all but `to_jax.printing` work without JAX.
        from msops._loops.to_jax.printing import build

        return build(self.raised, self.steps)

    @functools.cached_property
    @collector_waits()
    def estimates(self) -> Costs:
        """The estimated times of both forms on a CPU."""
        return estimate(self.raised, self.steps, self._native_seconds)

    @functools.cached_property
    def is_quick(self) -> bool:
        """Whether native code takes so little that XLA's operations cannot take less."""
        return is_quick_as_native(self.analysis.kernel, self._native_seconds)

    @functools.cached_property
    @collector_waits()
    def _native_seconds(self) -> float:
        return native_seconds(self.arranged)

    @functools.cached_property
    @collector_waits()
    def arranged(self) -> Kernel:
        """The loops as they are printed as C."""
        stages = pipeline.STAGES_IN_PLACE if self._is_in_place else pipeline.STAGES_TO_C
        return pipeline.run_stages(self.analysis.kernel, stages)

    @functools.cached_property
    def in_place(self) -> Stages:
        """The same kernel, for results that may have the memory of parameters."""
        return Stages(self.kernel, self.who, is_in_place=True)

    @property
    def checks_bounds(self) -> bool:
        """Whether native code checks its indices, as ``MSOPS_DEBUG=bounds`` asks by now."""
        return "bounds" in config.debug()

    @functools.cached_property
    def gridded(self) -> Kernel:
        """The loops as they are printed as CUDA C."""
        return pipeline.run(self.analysis.kernel, pipeline.PASSES_TO_CUDA)

    @property
    def c(self) -> CSource:
        """The kernel as C."""
        return _c(self, self.checks_bounds)

    @property
    def cuda(self) -> CudaSource:
        """The kernel as CUDA."""
        return _cuda(self, self.checks_bounds)

    @property
    def native(self) -> Native:
        """The kernel as a library for the CPU; built where the cache does not have it."""
        return _native(self, self.checks_bounds)

    @property
    def is_worth_timing(self) -> bool:
        """Whether only the clock can choose a form on a CPU, and has not been asked yet."""
        return self._is_unsure and self.measured is None

    def record_times(self, seconds: Mapping[str, float] | None) -> None:
        """Records what the forms took; None: they could not be timed, so the estimate holds."""
        if seconds is None:
            self._is_unsure = False
        else:
            _toolchain.record_measurement(self._subject, seconds, self.who)
            self.measured = self._costs_of(seconds)

    @functools.cached_property
    def _is_unsure(self) -> bool:
        """Whether the estimates may choose the wrong form on a CPU, and the clock may be asked."""
        return (
            config.loops_timing()
            and not self.checks_bounds
            and not self.loop_in_order
            and not self.is_quick
            and not self.is_too_complex
            and not self.is_order_bound
            and not self.estimates.are_sure
            and _toolchain.has_compiler(".cc")
        )

    @functools.cached_property
    def measured(self) -> Costs | None:
        """The measured times of both forms, of an earlier process too; None if there are none."""
        found = _toolchain.find_measurement(self._subject, self.who) if self._is_unsure else None
        return self._costs_of(found) if found and {*found} == {"xla", "native"} else None

    def _costs_of(self, seconds: Mapping[Any, float]) -> Costs:
        # Nobody has measured what fusing might save, so measured times leave it out.
        return Costs(seconds["xla"], seconds["native"], fusion=0.0, are_measured=True)

    @functools.cached_property
    def _subject(self) -> str:
        """All that the times of both forms depend on, beside the machine."""
        return "\n".join(
            (version("jax"), kernel_text(self.raised), *describe(self.steps), self.c.text)
        )

    @functools.cached_property
    def operations(self) -> Mapping[str, int]:
        """The kernel's "flops" and "transcendentals"; none where they depend on data."""
        return count_operations(self.analysis.common)

    def batched(self, sizes: Sequence[int], mapped: Sequence[Sequence[bool]]) -> Stages:
        """Returns the kernel over leading axes.

        Args:
          sizes: of the axes, outermost first.
          mapped: per axis, whether each parameter has it.
        """
        return _batched(self, tuple(sizes), tuple(map(tuple, mapped))) if sizes else self

    @collector_waits()
    def adjoint(self, wanted: tuple[int, ...]) -> Kernel:
        """Returns the kernel's reverse-mode derivative for the parameters at some positions."""
        flags = tuple(i in wanted for i in range(len(self.kernel.parameters)))
        return pipeline.adjoint(self.analysis.kernel, flags)

    def texts(self) -> Mapping[str, Callable[[], str]]:
        """Returns the kernel's texts by name, in the order in which they are made."""
        return {
            "ir": lambda: kernel_text(self.kernel),
            "marked": lambda: kernel_text(self.analysis.kernel),
            "raised": lambda: kernel_text(self.raised),
            "steps": lambda: "\n".join(describe(self.steps)),
            "c": lambda: self.c.text,
            "cuda": lambda: self.cuda.text,
        }


@dataclass(eq=False)
class Specialisation:
    """Chooses the form of one specialised kernel, for a platform.

    Attributes:
      stages: the kernel in all forms.
      lower: "xla" or "native" to force what it becomes; None lets the estimate of costs choose.
    """

    stages: Stages
    lower: Form | None

    def choice(self, platform: str, travels: bool = False) -> Choice:
        """Returns whether operations of XLA or native code run on a platform of JAX, and why.

        Args:
          platform: JAX's name of it.
          travels: the program is exported to other machines, or XLA splits it over devices: it can
            do both with its own operations alone.
        """
        if platform not in ("cpu", "cuda"):
            return forced("xla", f"as there is no native code for {platform}")
        if self.stages.checks_bounds and self.stages.analysis.unproven != frozenset():
            return forced("native", "which can check its indices")
        if self.lower is not None:
            return forced(self.lower, "as compile_attrs asks")
        # Raising takes time, and what travels or has no compiler may be XLA's operations after all.
        is_here = platform == "cpu" and not travels and _toolchain.has_compiler(".cc")
        if is_here and self.stages.loop_in_order:
            return forced("native", f"as loop {self.stages.loop_in_order} must run in order")
        if self.stages.is_too_complex:
            return forced("native", "as its dependences are too complex to analyse")
        if platform == "cuda":
            return choose_for_gpu(self.stages.steps, self.stages.gridded)
        needs_xla = travels or not _toolchain.has_compiler(".cc")
        if self.stages.is_order_bound and not (needs_xla and self.stages.is_short):
            first = first_in_order(self.stages.steps)
            return forced("native", f"as loop {first} must run in order")
        if travels:
            return forced("xla", "as the program is exported or split over devices")
        if not _toolchain.has_compiler(".cc"):
            return forced("xla", "as no C++ compiler is installed")
        costs = self.stages.measured or self.stages.estimates
        choice = choose_for_cpu(costs, self.stages.is_quick)
        if self.stages.is_worth_timing:
            hint = "; these are close, so a first call outside jax.jit times both"
            return dataclasses.replace(choice, reason=choice.reason + hint)
        return choice

    def lowering(self, platform: str, travels: bool = False) -> Form:
        """Returns "xla" or "native" for one of JAX's platforms; see `choice`."""
        # Raising the loops takes longer than some kernels will in all.
        is_free = platform == "cpu" and not travels and self.lower is None
        if (
            is_free
            and not self.stages.loop_in_order
            and self.stages.is_quick
            and _toolchain.has_compiler(".cc")
        ):
            return "native"
        return self.choice(platform, travels).lowering

    def explanation(self, where: str, platform: str) -> Explanation:
        """Returns what each loop is, and what became of it; `where` names op and platform."""
        choice = self.choice(platform)
        lines = [
            f"{where}: {choice.reason}",
            "Loops, by their dependences:",
            *(f"  {line}" for line in self.stages.analysis.explanation),
            "As array operations:",
            *(f"  {line}" for line in describe(self.stages.steps)),
            *self.stages.warnings,
        ]
        return Explanation("\n".join(lines), choice.seconds)


# By whether indices are checked, which may change while a process runs.
@functools.lru_cache(maxsize=256)
@collector_waits()
def _c(stages: Stages, checks_bounds: bool) -> CSource:
    facts = pipeline.facts_of(stages.arranged, stages.analysis)
    return c_source(stages.arranged, *facts, check_bounds=checks_bounds)


@functools.lru_cache(maxsize=256)
def _cuda(stages: Stages, checks_bounds: bool) -> CudaSource:
    facts = pipeline.facts_of(stages.gridded, stages.analysis)
    return cuda_source(stages.gridded, *facts, check_bounds=checks_bounds)


@functools.lru_cache(maxsize=256)
def _native(stages: Stages, checks_bounds: bool) -> Native:
    c = _c(stages, checks_bounds)
    library = _toolchain.build_generated(c.text, stages.kernel.name, stages.who, c.libraries)
    return Native(library, c.symbol, c.workspaces)


@functools.lru_cache(maxsize=256)
def _batched(
    stages: Stages, sizes: tuple[int, ...], mapped: tuple[tuple[bool, ...], ...]
) -> Stages:
    kernel = pipeline.run(stages.kernel, pipeline.passes_to_batch(sizes, mapped))
    return Stages(kernel, stages.who)


_REMEDIES: Mapping[str, str] = {
    "unwritten": "It reads as 0; write it first.",
    "hint": "The loop runs in order; leave the keyword out, or remove the dependence.",
}
