"""Planted faults for `opcheck`, by class, and healthy kernels beside them.

``python tests/fault_table.py [REPEATS] [NAME ...]`` prints for each how often it was found, which
check came first, and how many findings did not follow from another. The faults were written before
the checks that find them.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from msops import Custom
from msops.testing import Report, opcheck

KERNELS = Path(__file__).parent / "faulty_kernels" / "adversary.cc"
X = np.linspace(0.25, 2, 15, dtype=np.float32).reshape(3, 5)
WHOLE = np.arange(1, 16, dtype=np.int32).reshape(3, 5)
LINE = np.linspace(0.25, 2, 16, dtype=np.float32)


def same(*shapes: Any) -> Any:
    return shapes[0]


def to_bool(*dtypes: Any) -> Any:
    return np.dtype(bool)


@dataclass(frozen=True)
class Fault:
    """One row: a kernel, by its function in KERNELS or as a Python function, and its inputs."""

    kind: str  # the class that the page of opcheck names
    by: str  # the check that finds it: any, or none if empty
    kernel: str | Callable[..., Any]
    args: tuple[np.ndarray, ...] = (X,)
    dtype: Callable[..., Any] = same
    attributes: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return self.kernel if isinstance(self.kernel, str) else self.kernel.__name__

    def check(self, limit_s: float = 8.0) -> Report:
        kernel = f"{KERNELS}:{self.kernel}" if isinstance(self.kernel, str) else self.kernel
        op = Custom(kernel, same, self.dtype, attrs=dict(self.attributes) or None)
        return opcheck(op, *self.args, limit_s=limit_s, skip=["sharding"])


# ---- Python functions ----

_calls = Counter()
_first: dict[str, np.ndarray] = {}
_kept: list[Any] = []
_scratch = np.zeros(1 << 20, np.float32)


def counts_calls(x: np.ndarray) -> np.ndarray:
    _calls["counts"] += 1
    return 2 * x + np.float32(_calls["counts"])


def raises_at_call_fifty(x: np.ndarray) -> np.ndarray:
    _calls["raises"] += 1
    if _calls["raises"] == 50:
        raise RuntimeError("the table is full")
    return 2 * x


def keeps_first_input(x: np.ndarray) -> np.ndarray:
    first = _first.setdefault("input", x.copy())
    return 2 * x - (first.ravel()[0] if first.size else np.float32(0))


def keeps_a_view(x: np.ndarray) -> np.ndarray:
    _kept.append(x)
    return 2 * x


def writes_input_and_restores(x: np.ndarray) -> np.ndarray:
    x.flags.writeable = True
    x *= 2
    y = x.copy()
    x /= 2
    return y


def shares_scratch(x: np.ndarray) -> np.ndarray:
    scratch = _scratch[: x.size].reshape(x.shape) if x.size <= _scratch.size else x.copy()
    scratch[...] = x
    time.sleep(0)
    return 2 * scratch


def endless_for_nan(x: np.ndarray) -> np.ndarray:
    while not np.array_equal(x, x):
        pass
    return 2 * x


def changes_folder(x: np.ndarray) -> np.ndarray:
    os.chdir("/")
    return 2 * x


def changes_environment(x: np.ndarray) -> np.ndarray:
    os.environ["OMP_NUM_THREADS"] = "1"
    return 2 * x


def leaks_descriptor(x: np.ndarray) -> np.ndarray:
    os.open("/dev/null", os.O_RDONLY)
    return 2 * x


def changes_numpy_errors(x: np.ndarray) -> np.ndarray:
    np.seterr(over="raise" if np.geterr()["over"] != "raise" else "print")
    return 2 * x


def seeds_global_generator(x: np.ndarray) -> np.ndarray:
    np.random.seed(0)
    return 2 * x


def wrong_above_100000(x: np.ndarray) -> np.ndarray:
    y = 2 * x
    y.ravel()[100_000:] = 0
    return y


def healthy_function(x: np.ndarray) -> np.ndarray:
    return 2 * x


def healthy_cumulative(x: np.ndarray) -> np.ndarray:
    return np.cumsum(x, dtype=x.dtype).reshape(x.shape)


FAULTS = (
    Fault("refuses or fails when two threads are inside", "two threads", "RefusesSecondThread"),
    Fault("memory shared by threads", "two threads", "SharedScratch"),
    Fault("memory shared by threads", "two threads", "SharedSum"),
    Fault("deadlock of two calls", "two threads", "DeadlockOfTwoLocks"),
    Fault("state of the thread that came first", "two threads", "ThreadLocalTable"),
    Fault("only the first row, the rest unwritten", "outputs written", "FirstRowUnwrittenRest"),
    Fault("only the first row, the rest zero", "", "FirstRowZeroRest"),
    Fault("reads one element beyond, at odd sizes", "sizes", "ReadsBeyondAtOddSizes", (LINE,)),
    Fault("writes one element beyond, at odd sizes", "sizes", "WritesBeyondAtOddSizes", (LINE,)),
    Fault("reads before the start", "memory bounds", "ReadsBeforeStart"),
    Fault("wrong above 100,000 elements", "sizes", "WrongAbove100000"),
    Fault("unwritten above 100,000 elements", "sizes", "UnwrittenAbove100000"),
    Fault("a size of 16 bits, the rest unwritten", "sizes", "SixteenBitSize"),
    Fault("a size of 16 bits, the rest zero", "sizes", "SixteenBitSizeZeroed"),
    Fault("a size of 32 bits", "", "ThirtyTwoBitSize"),
    Fault("crash when empty", "sizes", "CrashesWhenEmpty"),
    Fault("wrong at size 1", "sizes", "WrongAtSizeOne"),
    Fault("a buffer of fixed size", "sizes", "FixedBufferOnStack"),
    Fault("a stack that grows with the size", "sizes", "StackGrowsWithSize"),
    Fault("one shape taken for another", "memory bounds", "IgnoresBroadcast", (X, X[0])),
    Fault("crash for NaN", "values", "CrashesForNaN"),
    Fault("crash for negative numbers", "values", "CrashesForNegative"),
    Fault("endless for NaN", "values", "EndlessForNaN"),
    Fault("endless for negative numbers", "values", "EndlessForNegative"),
    Fault("an index made from infinity", "values", "IndexFromInfinity"),
    Fault("terminates the process for NaN", "values", "QuitsForNaN"),
    Fault("division by zero", "any", "DividesByZero", (WHOLE,)),
    Fault("overflow of the smallest integer", "values", "DividesTheSmallest", (WHOLE,)),
    Fault("an index from the input, unchecked", "values", "IndexFromInteger", (WHOLE,)),
    Fault("unwritten for negative numbers", "values", "UnwrittenForNegative"),
    Fault("state of the first call: its input", "repeatable", "KeepsFirstInput"),
    Fault("state of the first call: its size", "repeatable", "KeepsFirstSize"),
    Fault("state of the first call: a table", "repeatable", "KeepsFirstTable"),
    Fault("state of the first call: its pointer", "repeatable", "KeepsFirstPointer"),
    Fault(
        *("state of the first call: an attribute", "repeatable", "KeepsFirstAttribute"),
        attributes=(("by", 2.0),),
    ),
    Fault("state of all calls", "repeatable", "KeepsLargestInput"),
    Fault("state of all calls", "repeatable", "CountsCalls"),
    Fault("inputs written and restored", "inputs unchanged", "WritesInputAndRestores"),
    Fault("inputs written", "inputs unchanged", "SortsInput"),
    Fault("shapes written", "return code", "WritesShapes"),
    Fault("heap: beyond a block", "any", "HeapOverrun"),
    Fault("heap: beyond a block, one byte", "any", "HeapOverrunByOneByte"),
    Fault("heap: before a block", "any", "HeapUnderrun"),
    Fault("heap: freed twice", "any", "DoubleFree"),
    Fault("heap: read after free", "any", "UseAfterFreeReads"),
    Fault("heap: written after free", "any", "UseAfterFreeWrites"),
    Fault("heap: read before written", "any", "UninitialisedHeap"),
    Fault("integers read as floats", "refusals", "IntegersReadAsFloats"),
    Fault("integers read as floats, of one size", "refusals", "IntegersOfFourBytesReadAsFloats"),
    Fault(
        *("integers read as floats, of one size", "refusals", "IntegersOfFourBytesReadAsFloats"),
        (WHOLE,),
    ),
    Fault("a bool that is neither 0 nor 1", "outputs written", "BoolOfTwo", dtype=to_bool),
    Fault("rounding mode", "many calls", "ChangesRounding"),
    Fault("flush to zero", "many calls", "FlushesToZero"),
    Fault("floating point traps", "many calls", "TrapsFloatErrors"),
    Fault("working directory", "many calls", "ChangesFolder"),
    Fault("memory leaked", "many calls", "LeaksMemory"),
    Fault("mappings leaked", "many calls", "LeaksMapping"),
    Fault("descriptors leaked", "many calls", "LeaksDescriptor"),
    Fault("descriptors closed", "many calls", "ClosesStandardInput"),
    Fault("standard output redirected", "many calls", "RedirectsOutput"),
    Fault("threads left", "many calls", "LeavesThreads"),
    Fault("processes left", "many calls", "LeavesProcess"),
    Fault("locale", "many calls", "ChangesLocale"),
    Fault("signal handlers", "many calls", "LeavesSignalHandler"),
    Fault("blocked signals", "many calls", "BlocksSignals"),
    Fault("environment", "many calls", "ChangesEnvironment"),
    Fault("file mode mask", "many calls", "ChangesMask"),
    Fault("timers", "many calls", "LeavesTimer"),
    Fault("resource limits", "many calls", "LowersLimit"),
    Fault("processors of the thread", "many calls", "PinsThread"),
    Fault("crash at exit", "", "CrashesAtExit"),
    Fault("crash when a thread ends", "two threads", "CrashesWhenThreadEnds"),
    Fault("exception at the 50th call", "many calls", "ThrowsAtCallFifty"),
    Fault("crash at the 40th call", "many calls", "CrashesAtCallForty"),
    Fault("depends on the time", "repeatable", "DependsOnTime"),
    Fault("prints, and fails", "return code", "PrintsMuch"),
    Fault("writes half its output after its return", "any", "HalfOnUnjoinedThread"),
    Fault("exception on a thread of its own", "values", "ThrowsOnOwnThread"),
    Fault("reads its output", "repeatable", "AccumulatesIntoOutput"),
    Fault("an element unwritten", "outputs written", "LastElementUnwritten"),
    Fault("depends on alignment", "repeatable", "DependsOnAlignment"),
    Fault("a workspace that is not there", "memory bounds", "UsesAbsentWorkspace"),
    Fault("Python: state of all calls", "repeatable", counts_calls),
    Fault("Python: exception at the 50th call", "many calls", raises_at_call_fifty),
    Fault("Python: state of the first call", "", keeps_first_input),
    Fault("Python: a view kept", "many calls", keeps_a_view),
    Fault("Python: inputs written and restored", "eager and jit", writes_input_and_restores),
    Fault("Python: memory shared by threads", "eager and jit", shares_scratch),
    Fault("Python: endless for NaN", "values", endless_for_nan),
    Fault("Python: working directory", "many calls", changes_folder),
    Fault("Python: environment", "many calls", changes_environment),
    Fault("Python: descriptors leaked", "many calls", leaks_descriptor),
    Fault("Python: NumPy's error state", "many calls", changes_numpy_errors),
    Fault("Python: NumPy's generator", "many calls", seeds_global_generator),
    Fault("Python: wrong above 100,000 elements", "sizes", wrong_above_100000),
)

HEALTHY = (
    Fault("one operation", "", "HealthyTwice"),
    Fault("two inputs, one broadcast", "", "HealthyAdd", (X, X[0])),
    Fault("threads: shared scratch behind a lock", "", "HealthyLocked"),
    Fault("sizes: pairs and a rest", "", "HealthyPairs"),
    Fault("rows: sums of rows", "", "HealthyRowSums"),
    Fault("values: a table, its index checked", "", "HealthyTable", (WHOLE,)),
    Fault("heap: a block of its own", "", "HealthyHeap"),
    Fault("types: float32 and int32", "", "HealthyTypes"),
    Fault("types: bool", "", "HealthyBool", dtype=to_bool),
    Fault("process: settings restored", "", "HealthyProcess"),
    Fault("process: a file and a table for all calls", "", "HealthyHandle"),
    Fault("threads: one of its own, joined", "", "HealthyThreads"),
    Fault("prints a line", "", "HealthyPrints"),
    Fault("writes its array of pointers", "", "HealthyPointers"),
    Fault("an attribute", "", "HealthyAttribute", attributes=(("by", 2.0),)),
    Fault("reads a dimension behind the last", "", "HealthyDimensions", (LINE,)),
    Fault("Python: one operation", "", healthy_function),
    Fault("Python: a sum over all elements", "", healthy_cumulative),
)


def main(repeats: int = 1, *names: str) -> None:
    """Prints for each fault, or each of those named, a line of JSON."""
    for fault in (*FAULTS, *HEALTHY):
        if names and fault.name not in names:
            continue
        start_s = time.perf_counter()
        reports = [fault.check() for _ in range(repeats)]
        by = Counter(report.failures[0].check for report in reports if report.failures)
        line = {
            "name": fault.name,
            "found": by.total(),
            "of": repeats,
            "by": by,
            "first": [len([f for f in report.failures if not f.follows]) for report in reports],
            "seconds": round((time.perf_counter() - start_s) / repeats, 1),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1, *sys.argv[2:])
    # One kernel of the table crashes when its process ends.
    os._exit(0)
