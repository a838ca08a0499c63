"""`opcheck` finds what a kernel does besides, or only for other numbers, or after other calls."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from conftest import ROOT
from quick_cases import one_in

from msops import Custom, cpp, source
from msops.testing import Report, opcheck

KERNELS = ROOT / "tests" / "faulty_kernels" / "habits.cc"
X = np.linspace(1, 2, 15, dtype=np.float32).reshape(3, 5)

OTHERS = ("two threads", "sizes", "refusals", "values", "vmap", "eager and jit", "many calls")

# Per kernel the check that finds it, and what the check says.
HABITS = {
    "RefusesASecondThread": ("two threads", "returned 5"),
    "WaitsForANumber": ("values", "did not end"),
    "IndexesByValue": ("values", "SIGSEGV"),
    "RemembersTheFirstInput": ("repeatable", "was called with before"),
    "RemembersTheFirstSize": ("repeatable", "was called with before"),
    "DependsOnAddresses": ("repeatable", "was called with before"),
    "BorrowsItsInput": ("inputs unchanged", "write of input 0"),
    "OverrunsItsScratch": ("many calls", "SIGABRT"),
    "FreesTwice": ("memory bounds", "FreesTwice damages the heap (SIGABRT)"),
    "RoundsUpwards": ("many calls", "the rounding mode"),
    "FlushesToZero": ("many calls", "flushing of subnormals"),
    "ChangesTheFolder": ("many calls", "the working directory"),
    "LeaksMemory": ("many calls", "bytes of the heap"),
    "LeaksFiles": ("many calls", "open files"),
    "TiresAfterFifty": ("many calls", "that was the fiftieth"),
    "CountsIn16Bits": ("sizes", "not written"),
}


def report_of(symbol: str, limit_s: float = 3) -> Report:
    op = Custom(f"{KERNELS}:{symbol}", lambda x: x, lambda x: x, bprop=lambda x, out, dout: (dout,))
    return opcheck(op, X, limit_s=limit_s, skip=["vmap", "eager and jit", "gradient", "refusals"])


@pytest.mark.parametrize("symbol", one_in(4, HABITS))
def test_a_habit_is_found_by_the_check_that_looks_for_it(symbol: str) -> None:
    check, said = HABITS[symbol]
    if symbol == "FlushesToZero" and platform.machine() != "x86_64":
        pytest.skip("a setting of x86-64")
    # Nobody has to wait for a kernel that waits.
    report = report_of(symbol, 1 if symbol == "WaitsForANumber" else 3)
    finding = report[check]
    assert finding.verdict == "failed", report
    assert said in "\n".join([finding.summary, *finding.details]), report


# It crashes process after process.
@pytest.mark.slow
def test_a_thread_that_writes_after_the_return_is_found_by_what_it_hits() -> None:
    assert not report_of("GoesOnAfterItsReturn").ok


@pytest.mark.parametrize("symbol", ["KeepsATable", "FreesWhatItTakes"])
def test_what_a_kernel_may_do_is_no_fault(symbol: str) -> None:
    report = report_of(symbol)
    assert report.ok, report
    assert report["many calls"].verdict == report["values"].verdict == "passed", report


@pytest.mark.slow
def test_a_kernel_that_talks_does_not_fill_the_report() -> None:
    report = report_of("Talks")
    assert report.ok, report
    assert len(str(report)) < 4000


SCALE = """
#include "custom_aot_extra.h"
extern "C" int Scale(int nparam, void **params, int *ndims, int64_t **shapes, const char **dtypes,
                     void *stream, void *extra) {
  if (nparam != 2 || std::string(dtypes[0]) != "float32") return 1;
  int64_t size = 1;
  for (int i = 0; i < ndims[0]; ++i) size *= shapes[0][i];
  const float by = static_cast<AotExtra *>(extra)->Attr<float>("by");
  for (int64_t i = 0; i < size; ++i)
    static_cast<float *>(params[1])[i] = by * static_cast<const float *>(params[0])[i];
  return 0;
}
"""


@pytest.mark.parametrize(("slope", "verdict"), one_in(2, [(1.0, "passed"), (17.0, "failed")]))
def test_an_op_with_attributes_by_name_is_checked_as_any_other(slope: float, verdict: str) -> None:
    op = cpp(
        source(SCALE, "Scale"),
        out=lambda x: x,
        attrs={"by": 0.5},
        bprop=lambda x, by, out, dout: (slope * by * dout, None),
    )
    for attributes in ({}, {"by": 3.0}):
        report = opcheck(op, X, skip=["vmap", "two threads"], **attributes)
        assert report["eager and jit"].verdict == "passed", report
        assert report["gradient"].verdict == verdict, report


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ('const float by = ATTRS->Attr<float>("by");', "passed"),
        ('static const float by = ATTRS->Attr<float>("by");', "failed"),
        ('static const float by = ATTRS->Attr<std::vector<float>>("steps")[1];', "failed"),
        pytest.param(
            'static const float by = ATTRS->Attr<bool>("twice") ? 2 : 1;',
            "failed",
            marks=pytest.mark.slow,
        ),
        # It refuses what it does not know, as it may.
        ('if (ATTRS->Attr<int64_t>("axis") != 1) return 2; const float by = 1;', "passed"),
    ],
)
def test_the_value_of_an_attribute_that_a_kernel_keeps_is_found(line: str, verdict: str) -> None:
    used = 'const float by = static_cast<AotExtra *>(extra)->Attr<float>("by");'
    line = line.replace("ATTRS", "static_cast<AotExtra *>(extra)")
    op = cpp(
        source(SCALE.replace(used, line), "Scale"),
        out=lambda x: x,
        attrs={"by": 0.5, "steps": [1.0, 2.0], "twice": True, "axis": 1},
    )
    finding = opcheck(op, X, skip=OTHERS)["repeatable"]
    assert finding.verdict == verdict, finding
    if verdict == "failed":
        assert "depend on what it was called with before" in finding.summary
        assert "after a call with another" in finding.details[0]


def test_a_kernel_that_crashes_only_after_another_attribute_is_found() -> None:
    used = 'const float by = static_cast<AotExtra *>(extra)->Attr<float>("by");'
    line = """
      const int64_t pages = static_cast<AotExtra *>(extra)->Attr<int64_t>("pages");
      static char *table = static_cast<char *>(
          mmap(nullptr, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      static const int opened = mprotect(table, 4096 * (9 - pages), PROT_READ);
      if (opened != 0) return 1;
      const float by = 2.0f + table[4096 * (9 - pages) - 1];
    """
    text = "#include <sys/mman.h>\n" + SCALE.replace(used, line)
    finding = opcheck(
        cpp(source(text, "Scale"), out=lambda x: x, attrs={"pages": 2}), X, skip=OTHERS
    )["repeatable"]
    assert finding.verdict == "failed", finding
    assert finding.details[0].startswith("after a call with another pages: SIGSEGV")
