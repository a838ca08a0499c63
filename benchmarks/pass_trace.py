"""What each optional pass of the loop compiler does to one kernel: its C with and without."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from unittest import mock

import numpy as np

from msops._base.dtypes import as_dtype
from msops._loops import pipeline
from msops._loops.ir.nodes import Kernel
from msops._loops.specialisation import Stages
from msops._loops.to_c import CSource, c_source
from msops._toolchain import find_measurement, record_measurement
from msops._toolchain.generated import build_generated

OPTIONAL = tuple(name for name, _ in (*pipeline.PASSES_COMMON, *pipeline.PASSES_TO_C))
_WHO = "benchmark of passes"
_BATCH_S, _ROUNDS = 2e-3, 12


@dataclass(frozen=True)
class Trace:
    """A kernel on its way to C.

    Attributes:
      stages: the kernel in all forms.
      changed: by the name of each pass that changed the kernel, what it was before.
      seconds: by the name of each pass, what it took.
      whole_seconds: what all took, with analyses and printing.
    """

    stages: Stages
    changed: Mapping[str, Kernel]
    seconds: Mapping[str, float]
    whole_seconds: float

    def without(self, name: str) -> tuple[Kernel, CSource] | None:
        """Returns the kernel as C without a pass, None if its C is the same."""
        arranged, source = self._made_without(name)
        return None if source.text == self.stages.c.text else (arranged, source)

    def _made_without(self, name: str) -> tuple[Kernel, CSource]:
        if name in dict(pipeline.PASSES_COMMON):
            fewer = tuple(each for each in pipeline.PASSES_COMMON if each[0] != name)
            with mock.patch.object(pipeline, "PASSES_COMMON", fewer):
                stages = Stages(self.stages.kernel, _WHO)
                return stages.arranged, stages.c
        names = [each for each, _ in pipeline.PASSES_TO_C]
        later = pipeline.PASSES_TO_C[names.index(name) + 1 :]
        arranged = pipeline.run(self.changed[name], later)
        facts = pipeline.facts_of(arranged, self.stages.analysis)
        return arranged, c_source(arranged, *facts)


def trace(kernel: Kernel) -> Trace:
    """Returns what each pass does to a kernel as a front end made it."""
    changed: dict[str, Kernel] = {}
    seconds = dict.fromkeys(OPTIONAL, 0.0)

    def recorded(name: str, change: pipeline.Pass) -> tuple[str, pipeline.Pass]:
        def run(before: Kernel) -> Kernel:
            start = time.process_time()
            after = change(before)
            seconds[name] += time.process_time() - start
            if after is not before and after != before:
                changed[name] = before
            return after

        return name, run

    start = time.process_time()
    with (
        mock.patch.object(pipeline, "PASSES_COMMON", _each(recorded, pipeline.PASSES_COMMON)),
        mock.patch.object(pipeline, "STAGES_TO_C", _each_of_stages(recorded)),
    ):
        stages = Stages(kernel, _WHO)
        _ = stages.c
    return Trace(stages, changed, seconds, time.process_time() - start)


def _each(
    recorded: Callable[[str, pipeline.Pass], tuple[str, pipeline.Pass]], passes: pipeline.Passes
) -> pipeline.Passes:
    return tuple(recorded(name, change) for name, change in passes)


def _each_of_stages(
    recorded: Callable[[str, pipeline.Pass], tuple[str, pipeline.Pass]],
) -> pipeline.PassStages:
    return tuple((stage, _each(recorded, passes)) for stage, passes in pipeline.STAGES_TO_C)


def is_needed(found: Trace, name: str) -> bool:
    """Returns whether the C of a kernel is another one, or none, without a pass."""
    if name not in found.changed:
        return False
    try:
        return found.without(name) is not None
    except Exception:  # It needs the pass, whatever for.
        return True


def times(
    found: Mapping[str, tuple[Kernel, CSource]], inputs: Callable[[], Sequence[np.ndarray]]
) -> Mapping[str, float]:
    """Returns the seconds of one call by name, the least of many rounds in turns, on one thread.

    What was measured before is kept in the build cache.
    """
    subject = "\n".join((_WHO, *(source.text for _, source in found.values())))
    known = find_measurement(subject, _WHO)
    if known is None or set(known) != set(found):
        known = _measured(found, inputs())
        record_measurement(subject, known, _WHO)
    return known


def _measured(
    found: Mapping[str, tuple[Kernel, CSource]], inputs: Sequence[np.ndarray]
) -> Mapping[str, float]:
    calls = {name: _call(kernel, source, inputs) for name, (kernel, source) in found.items()}
    counts = {name: max(1, round(_BATCH_S / _seconds(call, 1))) for name, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            best[name] = min(best[name], _seconds(call, counts[name]))
    return best


def _seconds(call: Callable[[], None], count: int) -> float:
    call()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def _call(kernel: Kernel, source: CSource, inputs: Sequence[np.ndarray]) -> Callable[[], None]:
    built = build_generated(source.text, "passes", _WHO, source.libraries)
    library = ctypes.CDLL(str(built.path))
    function = library[source.symbol]
    arrays = [*_arrays(kernel, inputs), *(np.zeros(n + 64, "uint8") for n in source.workspaces)]
    pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    nothing = [None] * 5

    def call() -> None:
        assert arrays  # which C knows by their addresses alone
        function(len(pointers), pointers, *nothing)

    return call


def _arrays(kernel: Kernel, inputs: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    random = np.random.default_rng(0)
    for number, buffer in enumerate((*kernel.parameters, *kernel.outputs)):
        if number < min(len(inputs), len(kernel.parameters)):
            yield np.ascontiguousarray(inputs[number])
        else:
            yield random.uniform(0, 1, buffer.shape).astype(as_dtype(buffer.dtype).dtype)
