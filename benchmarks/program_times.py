"""Times one kernel as several trees compile it, in turns, in one process, on one thread."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from tree_programs import Program

from msops._base.dtypes import as_dtype
from msops._toolchain.generated import build_generated

_BATCH_S, _LEAST_ROUNDS, _SECONDS = 5e-4, 6, 0.4
_ALIGNMENT = 64
_GARBAGE = 77
"""Bytes of results before a call, so that none has those of another program."""

# A call from Python takes as long as a small kernel.
_TIMER = """
extern "C" {
struct timespec { long s, ns; };
int clock_gettime(int, struct timespec*);

typedef int (*kernel)(int, void**, int*, long**, const char**, void*, void*);

double seconds_of_calls(kernel run, int n, void** parameters, long count) {
  struct timespec start, end;
  clock_gettime(1, &start);
  for (long i = 0; i < count; ++i)
    if (run(n, parameters, 0, 0, 0, 0, 0)) return -1;
  clock_gettime(1, &end);
  return (end.s - start.s) + 1e-9 * (end.ns - start.ns);
}
}
"""


@dataclass(frozen=True)
class Turns:
    """What was found of one kernel.

    Attributes:
      seconds: of one call by tree, the least of all rounds.
      agree: whether the results of all trees are close.
    """

    seconds: Mapping[str, float]
    agree: bool


def in_turns(
    programs: Mapping[str, Program], inputs: Sequence[np.ndarray], seconds: float = _SECONDS
) -> Turns:
    """Times the programs of one kernel in turns.

    Args:
      programs: by tree.
      inputs: arrays for the first parameters; random ones do for the others.
      seconds: how long to go on.
    """
    first = next(iter(programs.values()))
    arrays = [*_parameters(first, inputs), *_outputs(first)]
    sizes = [max(each, default=0) for each in _columns(p.workspaces for p in programs.values())]
    arrays += [_aligned(np.zeros(size + _ALIGNMENT, np.uint8)) for size in sizes]
    calls = {tree: _timer(program, arrays) for tree, program in programs.items()}
    results, counts = [], {}
    for tree, call in calls.items():
        for array in _results(first, arrays):
            array.reshape(-1).view(np.uint8)[...] = _GARBAGE
        counts[tree] = max(1, round(_BATCH_S / call(1)))
        results.append([array.copy() for array in _results(first, arrays)])
    best = dict.fromkeys(calls, math.inf)
    end, rounds = time.perf_counter() + seconds, 0
    while rounds < _LEAST_ROUNDS or time.perf_counter() < end:
        for tree, call in calls.items():
            best[tree] = min(best[tree], call(counts[tree]))
        rounds += 1
    return Turns(best, all(_are_close(results[0], others) for others in results[1:]))


def _timer(program: Program, arrays: Sequence[np.ndarray]) -> Callable[[int], float]:
    """Returns a function that makes some calls, and returns the seconds of one."""
    timer = ctypes.CDLL(str(build_generated(_TIMER, "timer", "timer").path)).seconds_of_calls
    timer.restype = ctypes.c_double
    kernel = ctypes.CDLL(program.path)[program.symbol]
    count = len(program.parameters) + len(program.outputs) + len(program.workspaces)
    pointers = (ctypes.c_void_p * count)(*(array.ctypes.data for array in arrays[:count]))

    def call(times: int) -> float:
        seconds = timer(kernel, count, pointers, ctypes.c_long(times)) / times
        if seconds < 0:
            raise RuntimeError(f"{program.label}: the kernel reports an error")
        return max(seconds, 1e-9)

    return call


def _parameters(program: Program, inputs: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    random = np.random.default_rng(0)
    for number, (shape, dtype) in enumerate(program.parameters):
        if number < len(inputs):
            yield _aligned(np.asarray(inputs[number]))
        else:
            yield _aligned(random.uniform(0, 1, shape).astype(as_dtype(dtype).dtype))


def _outputs(program: Program) -> Iterator[np.ndarray]:
    for shape, dtype in program.outputs:
        yield _aligned(np.zeros(shape, as_dtype(dtype).dtype))


def _results(program: Program, arrays: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    return arrays[len(program.parameters) :][: len(program.outputs)]


def _aligned(array: np.ndarray) -> np.ndarray:
    """Returns a copy whose memory begins where JAX's does."""
    memory = np.empty(array.nbytes + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def _columns(rows: Iterator[Sequence[int]]) -> Iterator[list[int]]:
    kept = list(rows)
    for place in range(max(map(len, kept), default=0)):
        yield [row[place] for row in kept if place < len(row)]


def _are_close(some: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> bool:
    """Returns whether results differ by no more than another order of sums may make of them."""
    for one, other in zip(some, others, strict=True):
        wide = [np.asarray(each).astype(np.complex128) for each in (one, other)]
        finite = np.abs(wide[0][np.isfinite(wide[0])])
        scale = float(finite.max(initial=0.0))
        if not np.isclose(wide[0], wide[1], 1e-3, 1e-3 * scale, equal_nan=True).mean() > 0.99:
            return False
    return True
