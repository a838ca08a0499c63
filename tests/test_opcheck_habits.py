"""`opcheck` finds what a kernel does besides, or only for other numbers, or after other calls."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from conftest import ROOT

from msops import Custom
from msops.testing import Report, opcheck

KERNELS = ROOT / "tests" / "faulty_kernels" / "habits.cc"
X = np.linspace(1, 2, 15, dtype=np.float32).reshape(3, 5)

# Per kernel the check that finds it, and what the check says.
HABITS = {
    "RefusesASecondThread": ("two threads", "returned 5"),
    "WaitsForANumber": ("values", "did not end"),
    "IndexesByValue": ("values", "SIGSEGV"),
    "RemembersTheFirstInput": ("repeatable", "was called with before"),
    "BorrowsItsInput": ("inputs unchanged", "write of input 0"),
    "OverrunsItsScratch": ("many calls", "SIGABRT"),
    "RoundsUpwards": ("many calls", "the rounding mode"),
    "FlushesToZero": ("many calls", "flushing of subnormals"),
    "ChangesTheFolder": ("many calls", "the working directory"),
    "LeaksMemory": ("many calls", "bytes of the heap"),
    "LeaksFiles": ("many calls", "open files"),
    "TiresAfterFifty": ("many calls", "that was the fiftieth"),
    "CountsIn16Bits": ("sizes", "not written"),
}


def report_of(symbol: str) -> Report:
    op = Custom(f"{KERNELS}:{symbol}", lambda x: x, lambda x: x, bprop=lambda x, out, dout: (dout,))
    return opcheck(op, X, limit_s=3, skip=["vmap", "eager and jit", "gradient", "refusals"])


@pytest.mark.parametrize("symbol", HABITS)
def test_a_habit_is_found_by_the_check_that_looks_for_it(symbol: str) -> None:
    check, said = HABITS[symbol]
    if symbol == "FlushesToZero" and platform.machine() != "x86_64":
        pytest.skip("a setting of x86-64")
    report = report_of(symbol)
    finding = report[check]
    assert finding.verdict == "failed", report
    assert said in "\n".join([finding.summary, *finding.details]), report


def test_a_thread_that_writes_after_the_return_is_found_by_what_it_hits() -> None:
    assert not report_of("GoesOnAfterItsReturn").ok


@pytest.mark.parametrize("symbol", ["KeepsATable", "FreesWhatItTakes"])
def test_what_a_kernel_may_do_is_no_fault(symbol: str) -> None:
    report = report_of(symbol)
    assert report.ok, report
    assert report["many calls"].verdict == report["values"].verdict == "passed", report


def test_a_kernel_that_talks_does_not_fill_the_report() -> None:
    report = report_of("Talks")
    assert report.ok, report
    assert len(str(report)) < 4000
