"""`opcheck`: each fault it claims to find is planted and found, and right kernels pass."""

from __future__ import annotations

import contextlib
import ctypes
import io
import itertools
import mmap
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from aicpu_harness import info
from conftest import DTYPE_NAMES, ROOT
from custom_ops import (
    aicpu,
    aot,
    first,
    loops,
    matmul,
    multiply,
    multiply_bprop,
    solve_lower,
    sum_and_max,
    tbe,
)
from quick_cases import in_turn, one_in

from msops import Custom, Tensor, ops
from msops.errors import ArgumentTypeError, ArgumentValueError
from msops.ops import CustomRegOp, DataType
from msops.testing import Finding, Report, child_processes, opcheck
from msops.testing.guarded import run_jobs
from msops.testing.subject import Subject
from msops.testing.transformations import check_inputs

FAULTS = ROOT / "tests" / "faulty_kernels" / "faults.cc"
X = np.linspace(1, 2, 15, dtype=np.float32).reshape(3, 5)
Y = X[::-1] + 1
ALL = (
    "shapes and dtypes",
    "own symbols",
    "return code",
    "memory bounds",
    "outputs written",
    "inputs unchanged",
    "repeatable",
    "alignment",
    "many calls",
    "two threads",
    "sizes",
    "values",
    "refusals",
    "eager and jit",
    "forms agree",
    "gradient",
    "vmap",
    "sharding",
)
SLOW_PARTS = ("two threads", "sizes", "refusals", "gradient", "vmap")


def faulty(symbol: str, **options: Any) -> Custom:
    return Custom(f"{FAULTS}:{symbol}", first, first, **options)


def only(*checks: str) -> list[str]:
    """Returns what to skip so that these checks are left."""
    return [check for check in ALL if check not in checks]


def check_one(op: Custom, check: str, *args: Any) -> Finding:
    return opcheck(op, *(args or (X,)), skip=only(check))[check]


def text_of(finding: Finding) -> str:
    return "\n".join([finding.summary, *finding.details, finding.remedy])


# X has 60 bytes, so 4 canaries lie between an array like it and the guard page; FULL none.
FULL = np.linspace(1, 2, 16, dtype=np.float32)
PLANTED: list[tuple[str, str, np.ndarray, str]] = [
    ("WritesBeyond", "memory bounds", X, "output 0, float32[3,5], which ends at byte 60: at bytes"),
    ("WritesBeyond", "memory bounds", X, "at bytes 60 to 63 (4 changed)"),
    ("WritesBeyond", "memory bounds", FULL, "leaves its buffers (SIGSEGV)"),
    (
        "WritesBeyond",
        "memory bounds",
        FULL,
        "float32[16], which ends at byte 64: at bytes 64 to 67",
    ),
    ("WritesBefore", "memory bounds", X, "write before output 0, float32[3,5]: at bytes -4 to -1"),
    ("WritesBefore", "memory bounds", X, "leaves its buffers (SIGSEGV)"),
    ("WritesFarBeyond", "memory bounds", FULL, "which ends at byte 64: at bytes 4160 to 4163"),
    (
        "OverrunsWorkspace",
        "memory bounds",
        X,
        "beyond workspace 0, which ends at byte 512",
    ),
    ("CopiesBeyond", "memory bounds", X, "at bytes 60 to 63 (4 changed)"),
    ("FollowsNull", "memory bounds", X, "kernel FollowsNull crashes (SIGSEGV)"),
    ("DividesByZero", "memory bounds", X, "kernel DividesByZero crashes (SIGFPE)"),
    ("Aborts", "memory bounds", X, "kernel Aborts crashes (SIGILL)"),
    (
        "SkipsLast",
        "outputs written",
        X,
        "1 of 15 elements not written, the first [2, 4] at byte 56",
    ),
    ("WritesInput", "inputs unchanged", X, "input 0, float32[3,5], changed from byte 4 on"),
    ("AddsToOutput", "repeatable", X, "depend on memory that it has not written"),
    ("ReadsBeyond", "repeatable", X, "1 of 15 elements different, the first [2, 4] at byte 56"),
    ("ReadsBeyond", "memory bounds", FULL, "read beyond input 0, float32[16], which ends at byte"),
    ("Counts", "repeatable", X, "kernel Counts returns other results for the same inputs"),
    ("SharesScratch", "two threads", FULL, "something else when two threads run it"),
    ("ForgetsTail", "sizes", FULL, "odd: output 0, float32[33]: 1 of 33 elements not written, the"),
    ("NeedsAnElement", "sizes", X, "3 -> 0: SIGSEGV: "),
    (
        "TakesAnything",
        "refusals",
        X,
        "all float16: write beyond output 0, float16[3,5], which",
    ),
    ("Fails", "return code", X, "kernel returned 7, expected 0"),
]


@pytest.mark.parametrize(("symbol", "check", "x", "said"), one_in(2, PLANTED))
def test_a_planted_fault_is_found(symbol: str, check: str, x: np.ndarray, said: str) -> None:
    finding = check_one(faulty(symbol), check, x)
    assert finding.verdict == "failed", finding
    assert said in text_of(finding)


def test_a_kernel_that_needs_more_alignment_than_xla_gives_is_found() -> None:
    # A page: it begins and ends at guard pages alike.
    x = np.ones(1024, np.float32)
    report = opcheck(faulty("RoundsPointers"), x, skip=SLOW_PARTS)
    assert report["memory bounds"].verdict == "passed"
    assert report["alignment"].verdict == "failed"
    assert "write before output 0, float32[1024]: at bytes -192 to -1" in text_of(
        report["alignment"]
    )
    assert report["eager and jit"].verdict == "skipped"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the kernel has an x86 instruction")
def test_alignment_that_xla_gives_is_told() -> None:
    finding = check_one(faulty("StoresAligned"), "alignment", FULL)
    assert (finding.verdict, finding.summary) == (
        "passed",
        "more than 16 bytes are needed, and XLA gives 64",
    )


# Every dtype; most of these sizes are no multiple of the 64 bytes to which XLA aligns arrays.
EXTENTS = {
    "bool": 1,
    "int8": 7,
    "uint8": 100,
    "int16": 1,
    "uint16": 33,
    "float16": 7,
    "bfloat16": 65,
    "int32": 3,
    "uint32": 16,
    "float32": 100,
    "int64": 1,
    "uint64": 9,
    "float64": 7,
    "complex64": 13,
    "complex128": 3,
}
BEYOND_INPUT = "beyond input 0, {array}, which ends at byte {size}: at byte {size}"
BEYOND_OUTPUT = "beyond output 0, {array}, which ends at byte {size}: at byte {size}"
BYTES_OUTSIDE = {
    "ReadsByteBeyondInput": f"read {BEYOND_INPUT}",
    "ReadsByteBeforeInput": "read before input 0, {array}: at byte -1",
    "ReadsByteBeyondOutput": f"read {BEYOND_OUTPUT}",
    "WritesByteBeyondInput": f"write {BEYOND_INPUT}",
    "WritesByteBeyondOutput": f"write {BEYOND_OUTPUT}",
    "WritesByteBeforeOutput": "write before output 0, {array}: at byte -1",
}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("symbol", "said"), BYTES_OUTSIDE.items(), ids=BYTES_OUTSIDE)
def test_one_byte_outside_is_found_for_every_dtype_and_size(
    symbol: str, said: str, every: bool
) -> None:
    assert set(EXTENTS) == set(DTYPE_NAMES)
    # Each call crashes processes. At every run each dtype is with some of the accesses.
    first, step = (0, 1) if every else (list(BYTES_OUTSIDE).index(symbol) % 4, 4)
    for name in list(EXTENTS)[first::step]:
        x = np.ones(EXTENTS[name], name)
        with jax.enable_x64(True):
            finding = check_one(faulty(symbol), "memory bounds", x)
        (line,) = finding.details
        assert said.format(array=f"{name}[{x.size}]", size=x.nbytes) in line


@pytest.mark.parametrize("count", one_in(2, [1, 7, 16, 100]))
def test_a_read_beyond_that_shows_in_no_result_is_found(count: int) -> None:
    finding = check_one(faulty("ComparesNext"), "memory bounds", np.ones(count, np.float32))
    assert finding.details == (
        f"SIGSEGV: read beyond input 0, float32[{count}], which ends at byte {4 * count}: "
        f"at byte {4 * count}",
    )
    # The op is called with other sizes, too.
    assert check_one(faulty("ComparesNext"), "sizes", FULL).verdict == "failed"


def test_each_array_that_is_left_is_named_once() -> None:
    # The first access beyond ends the process: those behind it need a run of their own.
    finding = check_one(faulty("ClearsAndCopiesBeyond"), "memory bounds", X)
    assert finding.details == (
        "write beyond output 0, float32[3,5], which ends at byte 60: at bytes 60 to 63 (4 changed)",
        "SIGSEGV: read beyond input 0, float32[3,5], which ends at byte 60: at byte 60",
    )
    finding = check_one(faulty("ClearsAndCopiesBeyond"), "memory bounds", FULL)
    assert [line.partition(",")[0] for line in finding.details] == [
        "write beyond output 0",
        "SIGSEGV: read beyond input 0",
    ]


SEEN = "no access outside of its buffers"
UNSEEN = (
    f"{SEEN}; a read of up to 4 bytes beyond one would not show, as the kernel needs them aligned"
)


def test_a_kernel_that_relies_on_the_alignment_of_xla_leaves_no_buffer() -> None:
    # XLA promises 64 bytes; an array of 60 that ends at a guard page cannot be so.
    finding = check_one(faulty("RoundsTo64"), "memory bounds", X)
    assert (finding.verdict, finding.summary) == ("passed", UNSEEN)
    finding = check_one(faulty("RoundsTo64"), "memory bounds", FULL)
    assert (finding.verdict, finding.summary) == ("passed", SEEN)


@pytest.mark.parametrize("x", [X, FULL], ids=["60 bytes", "64 bytes"])
def test_a_write_of_pages_beyond_the_end_is_one_line_with_its_first_byte(x: np.ndarray) -> None:
    finding = check_one(faulty("FillsFarBeyond"), "memory bounds", x)
    name = f"output 0, float32[{','.join(map(str, x.shape))}]"
    assert finding.details == (
        f"SIGSEGV: write beyond {name}, which ends at byte {x.nbytes}: at byte {x.nbytes}",
    )


def test_a_write_very_far_beyond_a_buffer_is_one_line() -> None:
    finding = check_one(faulty("WritesVeryFar"), "memory bounds", X)
    assert finding.details == (
        "SIGSEGV: write beyond output 0, float32[3,5], which ends at byte 60: at byte 160000060",
    )


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the kernel has an x86 instruction")
def test_aligned_instructions_are_told_from_accesses_outside() -> None:
    finding = check_one(faulty("StoresAligned"), "memory bounds", X)
    assert (finding.verdict, finding.summary) == ("passed", UNSEEN)
    finding = check_one(faulty("StoresAlignedReadsBeyond"), "memory bounds", X)
    assert finding.details == (
        "SIGSEGV: read beyond input 0, float32[3,5], which ends at byte 60: at byte 64",
    )


def test_a_kernel_with_other_results_each_time_is_checked_to_the_byte() -> None:
    assert check_one(faulty("AddsClock"), "memory bounds", X).summary == SEEN


def hangs(x: np.ndarray) -> np.ndarray:
    while True:
        time.sleep(0.01)


def hangs_on_nothing(x: np.ndarray) -> np.ndarray:
    while not x.size:
        pass
    return x


def of_kernels(pid: int) -> list[int]:
    """Returns the processes behind another that run kernels, and the one that starts them."""
    found = []
    with contextlib.suppress(OSError):  # one may end meanwhile, as a compiler
        for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            command = Path(f"/proc/{child}/cmdline").read_bytes()
            found += [child] if b"msops.testing.child" in command else []
            found += of_kernels(child)
    return found


def is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


def test_a_kernel_that_does_not_end_is_ended_where_opcheck_is_killed() -> None:
    code = f"""
import numpy as np
from msops import Custom
from msops.testing import opcheck
op = Custom({f"{FAULTS}:Spins"!r}, lambda x: x, lambda x: x)
opcheck(op, np.ones(4, np.float32), limit_s=600)
"""
    program = subprocess.Popen([sys.executable, "-c", code])
    found: list[int] = []
    try:
        end_s = time.monotonic() + 100
        while len(found) < 2 and time.monotonic() < end_s:  # one that forks, and its fork
            time.sleep(0.1)
            found = of_kernels(program.pid)
    finally:
        program.kill()
        program.wait()
    assert len(found) >= 2
    end_s = time.monotonic() + 30
    while any(map(is_running, found)) and time.monotonic() < end_s:
        time.sleep(0.1)
    left = [pid for pid in found if is_running(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


HANGING = {
    "always": (faulty("Spins"), "return code", "Spins(float32[16]) -> float32[16]"),
    "on nothing": (faulty("SpinsOnNothing"), "sizes", "SpinsOnNothing(float32[0]) -> float32[0]"),
    "on two threads": (
        faulty("WaitsForOthers"),
        "two threads",
        "WaitsForOthers(float32[16]) -> float32[16], on two threads",
    ),
    "in Python": (Custom(hangs, first, first), "shapes and dtypes", "hangs(float32[16]) -> float"),
    "in Python on nothing": (
        Custom(hangs_on_nothing, first, first),
        "sizes",
        "hangs_on_nothing(float32[0]) -> float32[0]",
    ),
}


@pytest.mark.parametrize(("op", "check", "call"), one_in(2, HANGING.values()), ids=HANGING)
def test_a_call_that_does_not_end_is_named_and_is_the_last(
    op: Custom, check: str, call: str
) -> None:
    report = opcheck(op, FULL, limit_s=1)
    assert report.failures == (report[check],)
    assert report[check].details[0].startswith(call)
    for later in ALL[ALL.index(check) + 1 :]:
        assert report[later].verdict == "skipped"
        assert report[later].summary == f"a call did not end: see {check!r}"


def test_where_a_python_function_hangs_is_said() -> None:
    finding = opcheck(Custom(hangs, first, first), FULL, limit_s=0.5)["shapes and dtypes"]
    lines = range(hangs.__code__.co_firstlineno, hangs.__code__.co_firstlineno + 3)
    assert finding.details[1] in [f"in hangs, {__file__}, line {line}" for line in lines]
    assert finding.summary == "a call did not end in 0.5 s"


def test_values_on_which_a_kernel_hangs_are_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def count(jobs: list[Any]) -> Any:
        tried.append(jobs)
        return run_jobs(jobs)

    monkeypatch.setattr("msops.testing.subject.run_jobs", count)
    # Rolled, they do not rise any more: three checks would have it so.
    skip = ["sizes", "refusals", "values"]
    report = opcheck(faulty("SpinsUnlessSorted"), FULL, limit_s=1, skip=skip)
    assert len(tried) == 1
    assert report.ok, report
    assert report["two threads"].summary == (
        "the kernel does not end on the same values in another order"
    )
    assert report["vmap"].verdict == "passed"


@pytest.mark.slow
def test_the_limit_is_that_of_one_call() -> None:
    # It takes 0.3 s a call; a check takes more than 3 s.
    started_s = time.monotonic()
    report = opcheck(faulty("Slow"), FULL, limit_s=3, skip=only("return code", "two threads"))
    assert time.monotonic() - started_s > 3
    assert [finding.verdict for finding in report] == ["passed", "passed"], report


def test_what_a_library_does_at_exit_is_not_waited_for() -> None:
    # Only this check: the others would call it in this process, which has to end.
    report = opcheck(faulty("SpinsAtExit"), FULL, limit_s=1, skip=only("return code"))
    assert report["return code"].verdict == "passed", report


@pytest.mark.parametrize(
    ("limit_s", "error"),
    [
        ("1", ArgumentTypeError),
        (True, ArgumentTypeError),
        (0, ArgumentValueError),
        (-1.5, ArgumentValueError),
        (float("inf"), ArgumentValueError),
        (float("nan"), ArgumentValueError),
    ],
)
def test_the_limit_is_a_number_of_seconds(limit_s: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="expected a positive number of seconds for limit_s; got"):
        opcheck(Custom(np.sin, first, first), X, limit_s=limit_s)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_each_check_is_a_line_that_begins_with_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[str] = []

    def look(x: np.ndarray) -> np.ndarray:
        shown.append(terminal.getvalue())
        return x

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    opcheck(Custom(look, first, first), X, skip=only("return code", "memory bounds", "vmap"))
    assert terminal.getvalue() == (
        "opcheck of pyfunc op 'look' on float32[3,5]\n"
        "  return code    passed\n"
        "  memory bounds  skipped\n"
        "  vmap           passed\n"
    )
    assert shown[0].endswith("  return code    ")
    assert shown[-1].endswith("  vmap           ")


def test_elsewhere_nothing_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    opcheck(Custom(np.sin, first, first), X, skip=only("return code"))
    assert capsys.readouterr() == ("", "")


def test_failures_that_may_follow_from_another_say_so() -> None:
    report = opcheck(faulty("WritesBeyond"), X, skip=["two threads", "vmap"])
    follows = {finding.check: finding.follows for finding in report.failures}
    assert follows == {"memory bounds": "", "sizes": "memory bounds"}
    assert "2 failed (1 may follow from others)" in str(report).splitlines()[0]
    assert "May follow from 'memory bounds': correct that first." in str(report)
    # By its alignment or by threads it is no worse.
    assert report["alignment"].summary == "the kernel leaves its buffers at any alignment"


def test_results_that_change_are_one_fault() -> None:
    report = opcheck(faulty("Counts"), X)
    follows = {finding.check: finding.follows for finding in report.failures}
    assert follows.pop("repeatable") == ""
    assert set(follows) >= {"eager and jit"}
    assert set(follows.values()) == {"repeatable"}


def test_xla_aligns_arrays_to_64_bytes() -> None:
    # What "alignment" takes for granted, for an array that numpy has at 16.
    room = np.zeros(4096 + 64, np.uint8)
    start = (16 - room.ctypes.data) % 64
    x = room[start : start + 4096].view(np.float32)
    seen = []
    op = Custom(lambda x: seen.append(x.ctypes.data % 64) or x, first, first, stateful=True)
    jax.block_until_ready([op(x), op(jnp.asarray(x)[4:20]), jax.jit(op)(jax.device_put(x))])
    assert seen == [0, 0, 0]


def test_the_right_kernel_of_that_file_passes() -> None:
    bprop = faulty("Right", bprop=lambda x, out, dout: (dout,))
    report = opcheck(bprop, X)
    assert report.ok, report
    verdicts = {finding.check: finding.verdict for finding in report.findings}
    others = {"forms agree": "skipped", "sharding": verdicts["sharding"]}
    assert verdicts == {**dict.fromkeys(ALL, "passed"), **others}
    assert "refused by return code: all float16" in report["refusals"].summary


def test_a_finding_that_is_not_there_is_told_those_that_are() -> None:
    report = Report("f", (Finding("vmap", "passed", ""), Finding("sizes", "passed", "")))
    with pytest.raises(KeyError, match="no finding 'size'; there are 'vmap', 'sizes'"):
        report["size"]


def test_a_library_that_infers_otherwise_is_found() -> None:
    finding = check_one(faulty("InfersOther"), "shapes and dtypes", FULL)
    assert finding.verdict == "failed"
    assert "out_shape says [16]; the kernel itself [17]" in finding.details


def test_a_library_that_infers_another_dtype_is_found() -> None:
    finding = check_one(faulty("InfersOtherType"), "shapes and dtypes", FULL)
    assert finding.verdict == "failed"
    assert "out_dtype says float32; the kernel itself float64" in finding.details


def test_a_refusal_that_is_lost_later_is_found() -> None:
    finding = check_one(faulty("RefusesOnce"), "refusals", FULL)
    assert finding.verdict == "failed"
    assert "jit: the kernel's code is lost" in text_of(finding)


def test_a_shape_too_large_shows_as_elements_not_written() -> None:
    op = Custom(f"{FAULTS}:Right", lambda x: [x[0] + 2], first)
    assert "2 of 18 elements not written, the first [16]" in text_of(
        check_one(op, "outputs written", FULL)
    )


def test_a_shape_too_small_shows_as_a_write_beyond() -> None:
    op = Custom(f"{FAULTS}:Right", lambda x: [x[0] - 4], first)
    assert "which ends at byte 48: at bytes 48 to 63" in text_of(
        check_one(op, "memory bounds", FULL)
    )


def test_threads_are_no_fault_of_a_kernel_that_runs_alone() -> None:
    finding = check_one(faulty("SharesScratch", reentrant=False), "two threads", FULL)
    assert finding.verdict == "passed", finding


def test_what_crashes_in_the_child_does_not_run_here() -> None:
    report = opcheck(faulty("FollowsNull"), X)
    assert report["eager and jit"].verdict == "skipped"
    assert report["eager and jit"].summary == "kernel FollowsNull crashes"


@pytest.mark.parametrize("name", ["float64", "float32"])
def test_a_wrong_gradient_is_found(name: str) -> None:
    # Half of what it should be; the C kernel takes no float64.
    wrong = {"bprop": lambda x, y, out, dout: (dout * y, dout * x / 2)}
    op = (
        aot("Multiply", **wrong)
        if name == "float32"
        else Custom(np.multiply, first, first, **wrong)
    )
    finding = check_one(op, "gradient", X, Y)
    assert finding.verdict == "failed"
    assert finding.summary == f"it differs from finite differences in {name}"
    assert len(finding.details) == 4
    assert all(line.startswith(f"input 1, {name}[3,5], direction") for line in finding.details)


def tolerances_of_the_page() -> dict[str, str]:
    """Returns the rows of the guide's table, by the first check that they name."""
    page = (ROOT / "docs" / "tutorial" / "opcheck.md").read_text()
    table = page.partition("### Tolerances")[2].partition("\n### ")[0]
    rows = re.findall(r"^\| ([a-z]+)[^|]*\| (.*) \|$", table, re.MULTILINE)
    return dict(rows)


@pytest.mark.parametrize(("precision", "what"), [("float64", "pyfunc"), ("float32", "aot")])
def test_gradients_agree_within_the_tolerance_that_the_page_gives(
    precision: str, what: str
) -> None:
    row = tolerances_of_the_page()["gradient"]
    (part,) = re.findall(rf"([\d.e-]+) in {precision}", row)
    verdicts = []
    # Of one element: its derivative is the only term. The differences are not quite exact.
    for share in (0.8, 2):
        factor = 1 + share * float(part)
        rule = {"bprop": lambda x, y, out, dout, by=factor: (dout * y * by, dout * x)}
        op = aot("Multiply", **rule) if what == "aot" else Custom(np.multiply, first, first, **rule)
        finding = check_one(op, "gradient", np.float32([3.0]), np.float32([2.0]))
        verdicts.append(finding.verdict)
    assert verdicts == ["passed", "failed"]
    assert all(re.search(r", more than [\d.e-]+ apart$", line) for line in finding.details)


def test_batches_agree_within_the_tolerance_that_the_page_gives() -> None:
    row = tolerances_of_the_page()["vmap"]
    (units,) = re.findall(r"`(\d+) \* eps", row)
    eps = float(np.finfo(np.float32).eps)
    verdicts = []
    # The only element is the largest too, so that it counts twice.
    for share in (1.8, 2.2):

        def rule(size: int, batched: Any, x: Any, by: float = 1 + share * int(units) * eps) -> Any:
            return 2 * x * by, True

        op = Custom(lambda x: 2 * x, first, first, vmap=rule)
        verdicts.append(check_one(op, "vmap", np.float32([1.5])).verdict)
    assert verdicts == ["passed", "failed"]


@pytest.mark.parametrize(
    ("rule", "count", "factor", "verdict"),
    in_turn(
        [
            pytest.param("bprop", 15),
            pytest.param("bprop", 30_000),
            pytest.param("jvp", 30_000, marks=pytest.mark.slow),
            pytest.param("jvp", 15),
        ],
        [pytest.param(1.0, "passed"), pytest.param(1.05, "failed")],
    ),
)
def test_a_gradient_that_is_off_by_a_twentieth_is_found_in_float32(
    factor: float, verdict: str, rule: str, count: int
) -> None:
    def push(primals: Any, tangents: Any, out: Any) -> Any:
        return primals[1] * tangents[0] + factor * primals[0] * tangents[1]

    x = np.linspace(-3, 2, count, dtype=np.float32)
    bprop = {"bprop": lambda x, y, out, dout: (dout * y, factor * dout * x)}
    op = aot("Multiply", **(bprop if rule == "bprop" else {"jvp": push}))
    finding = check_one(op, "gradient", x, x[::-1].copy())
    assert finding.verdict == verdict, finding
    assert "float32" in finding.summary


def in_32_bits(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Returns a function that refuses other dtypes, so that its gradient is checked in 32 bits."""

    def narrow(x: np.ndarray) -> np.ndarray:
        if x.dtype != np.float32:
            raise TypeError(f"expected float32, got {x.dtype}")
        return np.asarray(function(x), np.float32)

    return narrow


# Curved, of large and of small numbers, sums with much rounding, close to a pole, and with kinks
# between the steps.
RANDOM = np.random.default_rng(0).uniform(-2, 2, 1000).astype(np.float32)
SMOOTH: dict[str, tuple[Any, Any, np.ndarray]] = {
    "waves": (lambda x: np.sin(30 * x), lambda x: jnp.sin(30 * x), RANDOM),
    "powers": (np.exp, jnp.exp, 5 * RANDOM),
    "large": (np.square, jnp.square, 1e5 * RANDOM),
    "small": (np.square, jnp.square, 1e-4 * RANDOM),
    "near a pole": (np.log, jnp.log, np.abs(RANDOM) + np.float32(0.05)),
    "behind a large number": (lambda x: x + np.float32(1e4), lambda x: x + 1e4, RANDOM),
    "sums": (lambda x: np.cumsum(x, dtype=np.float32), jnp.cumsum, RANDOM),
    "constant": (np.ones_like, jnp.ones_like, RANDOM),
    "corners": (lambda x: np.maximum(x, 0), jax.nn.relu, RANDOM),
    "order": (np.sort, jnp.sort, RANDOM[:100]),
}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize(("function", "same", "x"), one_in(3, SMOOTH.values()), ids=SMOOTH)
def test_a_right_gradient_passes_in_float32(function: Any, same: Any, x: np.ndarray) -> None:
    op = Custom(
        in_32_bits(function),
        first,
        first,
        bprop=lambda x, out, dout: jax.vjp(same, x)[1](dout),
    )
    finding = check_one(op, "gradient", x)
    assert finding.verdict == "passed", finding
    assert "float32" in finding.summary


def test_a_wrong_rule_of_forward_mode_is_found_beside_a_right_bprop() -> None:
    def double(primals: Any, tangents: Any, out: Any) -> Any:
        return 2 * (primals[1] * tangents[0] + primals[0] * tangents[1])

    op = aot("Multiply", bprop=multiply_bprop, jvp=double)
    finding = check_one(op, "gradient", X, Y)
    assert finding.verdict == "failed"
    assert finding.details
    assert all(" forward: " in line for line in finding.details)


@pytest.mark.parametrize("sanitize", ["yes", 1, None])
def test_sanitize_is_a_bool(sanitize: Any) -> None:
    op = Custom(np.sin, lambda x: x, lambda x: x)
    with pytest.raises(ArgumentTypeError, match="expected a bool for sanitize; got"):
        opcheck(op, np.ones(3, np.float32), sanitize=sanitize)


def test_a_kernel_without_gradient_is_not_wrong() -> None:
    assert check_one(aot("Multiply"), "gradient", X, Y).verdict == "skipped"


def test_a_kernel_that_takes_no_batch_is_found() -> None:
    # It subtracts the first element of the whole batch.
    finding = check_one(faulty("SubtractsFirst", vmap="expand_dims"), "vmap", FULL)
    assert finding.verdict == "failed"
    assert "all inputs mapped: output 0, float32[3,16]" in text_of(finding)
    assert check_one(faulty("SubtractsFirst"), "vmap", FULL).verdict == "passed"


PYTHON_FAULTS = {
    "shape": (lambda x: x[1:], "shapes and dtypes", "(2, 5)"),
    "dtype": (lambda x: x.astype(np.float64), "shapes and dtypes", "float64"),
    "raises": (lambda x: x[7, 7], "return code", "index 7 is out of bounds"),
    "random": (
        lambda x: np.random.default_rng().random(x.shape, np.float32),
        "eager and jit",
        "15",
    ),
}


@pytest.mark.parametrize(("function", "check", "said"), PYTHON_FAULTS.values(), ids=PYTHON_FAULTS)
def test_a_fault_in_python_is_found(function: Any, check: str, said: str) -> None:
    finding = check_one(Custom(function, first, first), check)
    assert finding.verdict == "failed", finding
    assert said in text_of(finding)


def test_a_python_function_that_overwrites_its_inputs_is_found() -> None:
    def overwrite(x: np.ndarray) -> np.ndarray:
        ctypes.memset(x.ctypes.data, 0, 4)  # numpy forbids it, ctypes does not
        return np.ones_like(x)

    finding = check_one(Custom(overwrite, first, first), "inputs unchanged")
    assert finding.verdict == "failed"
    assert finding.details == ("input 0, float32[3,5]",)


def test_a_python_function_that_two_threads_share_is_found() -> None:
    scratch = np.zeros((3, 5), np.float32)

    def add_one(x: np.ndarray) -> np.ndarray:
        scratch[...] = x
        time.sleep(0.001)  # without the GIL, so that the other thread comes in between
        return scratch + np.float32(1)

    op = Custom(add_one, first, first)
    assert check_one(op, "repeatable").verdict == "passed"
    finding = check_one(op, "eager and jit")
    assert finding.verdict == "failed", finding
    assert "two threads: output 0, float32[3,5]: 15 of 15 elements differ" in text_of(finding)


def test_inputs_overwritten_in_this_process_are_found() -> None:
    class Overwriting(Subject):
        def apply(self, *flat: Any) -> list[Any]:
            results = super().apply(*flat)
            ctypes.memset(flat[0].unsafe_buffer_pointer(), 0, 4)
            return results

    op = loops(multiply, "xla")
    assert check_inputs(Subject(op, [X[0], Y[0]])).verdict == "passed"
    assert check_inputs(Overwriting(op, [X[0], Y[0]])).verdict == "failed"


def test_a_function_that_leaves_out_half_empty_is_found() -> None:
    def fill_half(x: np.ndarray, out: np.ndarray) -> None:
        out[:2] = x[:2]

    finding = check_one(Custom(fill_half, first, first), "outputs written")
    assert "5 of 15 elements not written, the first [2, 0] at byte 40" in text_of(finding)


def test_a_function_that_reads_what_is_in_out_is_found() -> None:
    def add_to(x: np.ndarray, out: np.ndarray) -> None:
        out += x

    finding = check_one(Custom(add_to, first, first), "repeatable")
    assert "depend on memory that it has not written" in finding.summary


@pytest.mark.slow
def test_kernels_that_work_in_place_pass() -> None:
    def double(x: np.ndarray, out: np.ndarray) -> None:
        out *= 2

    for op in (
        Custom(double, first, first, inplace={0: 0}),
        faulty("DoublesInPlace", inplace={0: 0}),
    ):
        report = opcheck(op, X, skip=["gradient"])
        assert report.ok, report


def in_aicpu(kernel: str) -> Custom:
    source = str(ROOT / "tests" / "faulty_kernels" / "aicpu.cc")
    return Custom(source, first, first, func_type="aicpu", reg_info=info(kernel))


@pytest.mark.parametrize(
    ("kernel", "check", "said"),
    one_in(
        3,
        [
            (
                "AicpuBeyond",
                "memory bounds",
                "write beyond output 0, float32[16], which ends at byte 64: at bytes 64 to",
            ),
            ("AicpuNull", "memory bounds", "kernel AicpuNull crashes (SIGSEGV)"),
            (
                "AicpuWritesInput",
                "inputs unchanged",
                "input 0, float32[16], changed from byte 4 on",
            ),
        ],
    ),
)
@pytest.mark.slow
def test_a_fault_in_an_aicpu_kernel_is_found(kernel: str, check: str, said: str) -> None:
    assert said in text_of(check_one(in_aicpu(kernel), check, FULL))


@pytest.mark.parametrize(
    ("kernel", "said"),
    one_in(
        2,
        [
            ("AicpuNull", "kernel AicpuNull crashes (SIGSEGV)"),
            ("AicpuAbort", "kernel AicpuAbort crashes (SIGABRT)"),
            ("AicpuExit", "kernel AicpuExit crashes (exited with status 3)"),
            ("AicpuEndless", "AicpuEndless(float32[16]) -> float32[16]"),
        ],
    ),
)
def test_an_aicpu_kernel_that_would_end_or_stop_the_process_is_named(
    kernel: str, said: str
) -> None:
    # All checks: none may call the kernel in this process.
    report = opcheck(in_aicpu(kernel), FULL, limit_s=1)
    assert not report.ok
    assert said in str(report)


def test_a_right_aicpu_kernel_passes() -> None:
    report = opcheck(in_aicpu("AicpuRight"), FULL)
    assert report.ok, report
    assert "refused by return code: all float16, all float64" in report["refusals"].summary
    passed = {finding.check for finding in report.findings if finding.verdict == "passed"}
    assert passed == set(ALL) - {"forms agree", "gradient", "sharding"}


# Those that compile the most are slow.
RIGHT = {
    "aot": (lambda: aot("Multiply", bprop=multiply_bprop), (X, Y)),
    "pyfunc": (lambda: Custom(np.multiply, first, first, bprop=multiply_bprop), (X, Y)),
}
RIGHT_AND_SLOW = {
    "tbe": (lambda: tbe(lambda te, x, y: te.vmul(te.vexp(x), y)), (X[0], Y[0])),
    "akg native": (lambda: loops(solve_lower, "native"), (X[:, :3].copy(), X[:, 0].copy())),
    "aicpu": (lambda: aicpu("Mul", bprop=multiply_bprop), (X, Y)),
    "akg raised": (lambda: loops(matmul, "xla"), (X, X.T.copy())),
    "hybrid": (lambda: loops(sum_and_max), (X[0], Y[0])),
    "hybrid native": (lambda: loops(ops.kernel(multiply), "native"), (X[0], Y[0])),
}


def check_right(op: Custom, *args: Any) -> None:
    report = opcheck(op, *args)
    assert report.ok, report
    assert [finding.check for finding in report.findings] == list(ALL)
    in_library = op.func_type in ("aot", "aicpu") or "custom_call" in op.lower_text(*args)
    expected = "passed" if in_library and op.func_type != "pyfunc" else "skipped"
    assert report["memory bounds"].verdict == expected
    for check in ("return code", "sizes", "eager and jit", "gradient", "vmap"):
        assert report[check].verdict == "passed", report


@pytest.mark.parametrize("make", one_in(2, map(pytest.param, RIGHT.values())), ids=RIGHT)
def test_right_kernels_pass(make: Any) -> None:
    check_right(make[0](), *make[1])


@pytest.mark.slow
@pytest.mark.parametrize("make", RIGHT_AND_SLOW.values(), ids=RIGHT_AND_SLOW)
def test_more_right_kernels_pass(make: Any) -> None:
    check_right(make[0](), *make[1])


def test_an_attribute_and_a_list_are_passed_on() -> None:
    scale_sum = (
        CustomRegOp()
        .input(0, "x")
        .output(0, "y")
        .attr("scale", "required", "float")
        .dtype_format(DataType.F32_Default, DataType.F32_Default)
        .target("CPU")
        .get_op_info()
    )
    scaled = aot("ScaleSum", lambda x, scale: x[:1], lambda x, scale: x, reg_info=scale_sum)
    report = opcheck(scaled, X, 2.5, skip=["vmap"])
    assert report.ok, report
    assert "refused by OpInfoTypeError" in report["refusals"].summary
    added = aot("AddAll", lambda xs: xs[0], lambda xs: xs[0])
    report = opcheck(added, [X, Y], skip=["refusals"])
    assert report.ok, report


@pytest.mark.slow
def test_tensors_are_checked_in_64_bits() -> None:
    op = Custom(np.multiply, first, first, bprop=multiply_bprop)
    report = opcheck(op, Tensor(X.astype(np.float64)), Tensor(Y.astype(np.float64)))
    assert report.ok, report
    assert report["shapes and dtypes"].summary == "float64[3,5]"


def test_a_setting_of_64_bits_holds_on_every_thread() -> None:
    op = Custom(np.square, first, first)
    with jax.enable_x64(True):
        report = opcheck(op, X.astype(np.float64), skip=["vmap"])
    assert report.ok, report
    assert report["shapes and dtypes"].summary == "float64[3,5]"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("dtype", "shape"),
    one_in(
        2,
        [
            (np.complex64, (3, 4)),
            pytest.param(ml_dtypes.bfloat16, (3, 4), marks=pytest.mark.slow),
            pytest.param(np.int8, (), marks=pytest.mark.slow),
            pytest.param(np.complex64, (), marks=pytest.mark.slow),
            (np.bool_, (0, 2)),
        ],
    ),
)
def test_right_kernels_of_every_kind_of_dtype_and_shape_pass(dtype: Any, shape: Any) -> None:
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    copy = aot("Copy")
    report = opcheck(copy, x, skip=["two threads"])
    assert report.ok, report
    assert report["memory bounds"].verdict == "passed"

    def both(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return x, x != 0

    op = Custom(both, lambda x: (x, x), lambda x: (x, np.bool_))
    report = opcheck(op, x)
    assert report.ok, report


def test_values_in_other_places_are_tried_out_where_they_do_no_harm() -> None:
    # Rolled, the inputs begin with their greatest element: that ends the process.
    report = opcheck(faulty("TrustsFirst"), FULL, skip=["sizes", "refusals", "values"])
    assert report.ok, report
    assert report["two threads"].summary == (
        "the kernel does not take the same values in another order"
    )
    assert report["eager and jit"].verdict == report["vmap"].verdict == "passed"


def sanitize(op: Custom) -> Finding:
    return opcheck(op, FULL, sanitize=True, skip=only())["sanitizers"]


def check_sanitized(finding: Finding, kernel: str, said: str, file: str) -> None:
    assert finding.verdict == "failed", finding
    assert f"kernel {kernel}" in finding.summary
    assert said in text_of(finding)
    assert file in text_of(finding)


@pytest.mark.parametrize(
    ("symbol", "said"),
    one_in(
        2,
        [
            ("WritesBeyond", "heap-buffer-overflow"),
            ("OverreadsOwnArray", "stack-buffer-overflow"),
            ("OverflowsInt", "signed integer overflow: 2147483647 + 1"),
            ("FollowsNull", "SEGV on unknown address"),
        ],
    ),
)
def test_the_sanitizers_find_a_planted_fault(symbol: str, said: str) -> None:
    check_sanitized(sanitize(faulty(symbol)), symbol, said, "faults.cc:")


def test_the_sanitizers_can_be_skipped() -> None:
    report = opcheck(faulty("Right"), FULL, sanitize=True, skip=[*ALL[1:], "sanitizers"])
    assert [finding.check for finding in report] == ["shapes and dtypes"]
    assert len(list(opcheck(faulty("Right"), FULL, skip=[*ALL[1:], "sanitizers"]))) == 1


def test_the_sanitizers_are_content_with_a_right_kernel() -> None:
    finding = sanitize(faulty("Right"))
    assert finding.verdict == "passed", finding


@pytest.mark.slow
def test_the_sanitizers_know_the_sources_of_aicpu_kernels() -> None:
    beyond, null = (sanitize(in_aicpu(name)) for name in ("AicpuBeyond", "AicpuNull"))
    check_sanitized(beyond, "AicpuBeyond", "heap-buffer-overflow", "aicpu.cc:")
    check_sanitized(null, "AicpuNull", "SEGV on unknown address", "aicpu.cc:")
    assert sanitize(in_aicpu("AicpuRight")).verdict == "passed"


ON_FOUR_DEVICES = """
import jax
import jax.numpy as jnp
import numpy as np
from msops import Custom
from msops.testing import opcheck

x = np.arange(16, dtype=np.float32).reshape(8, 2)
same = lambda x: x
skip = ["sizes", "refusals", "two threads", "gradient", "vmap"]
print(opcheck(Custom(np.square, same, same), x, skip=skip)["sharding"])
print(opcheck(Custom(np.square, same, same), x[:7], skip=skip)["sharding"])
sort = Custom(lambda x: np.sort(x, axis=0), same, same, sharding="i j -> i j")
print(opcheck(sort, x, skip=skip)["sharding"])
"""


def test_sharded_inputs_are_compared_where_there_are_devices() -> None:
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_PLATFORMS": "cpu",
    }
    command = [sys.executable, "-c", ON_FOUR_DEVICES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    whole, odd, sort = done.stdout.splitlines()
    assert "verdict='passed'" in whole
    assert "over 4" in whole
    assert "no first axis of an input divides among 4 devices" in odd
    # Parts of sorted values are sorted, too.
    assert "verdict='failed'" in sort
    assert "i over 4, values in another order: output 0" in sort


def test_the_report_is_a_table_that_says_what_to_do() -> None:
    report = opcheck(faulty("SkipsLast"), X, skip=[*SLOW_PARTS, "sharding", "eager and jit"])
    assert not report.ok
    assert [finding.check for finding in report.failures] == ["outputs written"]
    assert (
        str(report)
        == """\
opcheck of aot op 'SkipsLast' on float32[3,5]: 8 passed, 1 failed, 2 skipped
  shapes and dtypes  passed   float32[3,5]
  own symbols        passed   the library uses its own functions and variables
  return code        passed   no error
  memory bounds      passed   no access outside of its buffers
  outputs written    failed   kernel SkipsLast leaves elements of its outputs as they were
                              output 0, float32[3,5]: 1 of 15 elements not written, the first \
[2, 4] at byte 56
                              Write every element, since outputs are not zeroed; or infer a
                              smaller shape.
  inputs unchanged   passed   bytes compared
  repeatable         passed   same bytes twice, and over other memory
  alignment          passed   16 bytes will do
  many calls         passed   205 calls: same bytes, and nothing left in the process
  values             skipped  the kernel is wrong on usual values already
  forms agree        skipped  the kernel is no loops"""
    )


def test_the_report_indexes_and_counts() -> None:
    report = Report("op", (Finding("a", "passed", ""), Finding("b", "skipped", "why")))
    assert report.ok
    assert report["b"].summary == "why"
    assert [finding.check for finding in report] == ["a", "b"]
    with pytest.raises(KeyError):
        report["c"]


@pytest.mark.parametrize(
    ("args", "options", "error", "said"),
    [
        ((np.square, X), {}, ArgumentTypeError, "expected an op made by msops.Custom; got ufunc"),
        ((Custom(np.square, first, first),), {}, ArgumentTypeError, "expected inputs to check"),
        (
            (Custom(np.square, first, first), X),
            {"skip": ["bounds"]},
            ArgumentValueError,
            "There are 'shapes and dtypes', 'own symbols', 'return code'",
        ),
        (
            (Custom(np.square, first, first), X),
            {"skip": "vmap"},
            ArgumentTypeError,
            "skip=['vmap']",
        ),
    ],
)
def test_wrong_arguments_are_explained(
    args: Any, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as caught:
        opcheck(*args, **options)
    assert said in str(caught.value)


def test_the_package_is_imported_when_asked_for() -> None:
    code = "import sys, msops; assert 'msops.testing' not in sys.modules; msops.testing.opcheck"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_mapped_file_whose_name_is_not_utf_8_is_no_fault(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/\xff.bin"
    with open(name, "wb") as file:
        file.write(b"x")
    with open(name, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ):
        assert opcheck(aot("Multiply"), X, Y, skip=ALL[5:-1]).ok


def test_a_check_leaves_the_umask_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # Files that other threads of the program create meanwhile would have other modes.
    masks: list[int] = []
    monkeypatch.setattr("os.umask", lambda mask: masks.append(mask) or 0o22)
    assert check_one(Custom(lambda x: 2 * x, first, first), "many calls").verdict == "passed"
    assert not masks


@pytest.mark.parametrize("symbol", ["SkipsLast", "Aborts", "Spins"])
def test_processes_are_killed_before_their_number_is_free(
    symbol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A group has the number of its first process, which the system keeps until that is reaped.
    order = tmp_path / "order"
    spy = f"""
import os
def noted(name, function):
    def wrapped(*arguments):
        with open({str(order)!r}, "a") as file:
            print(name, arguments[0], os.path.exists(f"/proc/{{arguments[0]}}"), file=file)
        return function(*arguments)
    return wrapped
os.killpg, os.waitpid = noted("killpg", os.killpg), noted("waitpid", os.waitpid)
"""
    monkeypatch.setattr(child_processes, "START", spy + child_processes.START)
    opcheck(faulty(symbol), X, skip=only("return code"), limit_s=0.5)
    calls = [line.split() for line in order.read_text().splitlines()]
    assert calls
    for (kill, group, kept), (wait, number, _) in zip(calls[::2], calls[1::2], strict=True):
        assert (kill, wait, group, kept) == ("killpg", "waitpid", number, "True")


@contextlib.contextmanager
def another_thread(repeat: Callable[[int], object], every_s: float) -> Iterator[None]:
    """Runs what another part of the user's program does, again and again."""
    ended = threading.Event()

    def work() -> None:
        for number in itertools.count():
            repeat(number)
            if ended.wait(every_s):
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def slow_twice(x: np.ndarray) -> np.ndarray:
    time.sleep(0.002)
    return 2 * x


def test_a_process_of_the_user_that_ends_meanwhile_is_no_fault() -> None:
    def ends_it(x: np.ndarray) -> np.ndarray:
        process.terminate()
        process.wait()
        return 2 * x

    with subprocess.Popen(["sleep", "60"]) as process:
        finding = check_one(Custom(ends_it, first, first), "many calls")
    assert finding.verdict == "passed", finding


def test_an_environment_that_other_threads_change_is_no_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"MSOPS_TEST_{number}" for number in range(10)]

    def change(number: int) -> None:
        os.environ[names[number % 10]] = str(number)

    for name in names:
        monkeypatch.setenv(name, "")  # and away at the end
    with another_thread(change, 0.02):
        finding = check_one(Custom(slow_twice, first, first), "many calls")
    assert finding.verdict == "passed", finding


@pytest.mark.parametrize("call", [1, 20])
def test_a_change_by_the_function_is_found_beside_other_threads(
    call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)  # and back at the end
    calls = itertools.count(1)

    def changes_folder(x: np.ndarray) -> np.ndarray:
        if next(calls) == call:
            os.chdir(tmp_path)
        return slow_twice(x)

    def change(number: int) -> None:
        os.environ["MSOPS_TEST_0"] = str(number)

    monkeypatch.setenv("MSOPS_TEST_0", "")  # and away at the end
    with another_thread(change, 0.02):
        finding = check_one(Custom(changes_folder, first, first), "many calls")
    assert finding.details == (
        f"the working directory: {str(ROOT)!r} before, {str(tmp_path)!r} after",
    )


def test_a_python_function_that_reads_bits_is_no_fault() -> None:
    def exponents(x: np.ndarray) -> np.ndarray:
        if x.dtype.itemsize != 4:
            raise TypeError(f"expected 4 bytes for each element, got {x.dtype}")
        return x.view(np.int32) >> 23

    op = Custom(exponents, first, lambda x: np.dtype(np.int32))
    finding = check_one(op, "refusals")
    assert finding.verdict == "passed", finding


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (lambda x, y, out, dout: 2 * dout, "expected a tuple of 2 gradient(s)"),
        (lambda x, dout: (dout, dout), "cannot take 2 input(s), out and dout"),
    ],
    ids=["no tuple", "too few parameters"],
)
def test_a_rule_that_is_refused_is_a_fault(rule: Any, said: str) -> None:
    finding = check_one(Custom(np.multiply, first, first, bprop=rule), "gradient", X, Y)
    assert finding.verdict == "failed"
    assert said in finding.details[0]


def test_the_rule_of_a_32_bit_kernel_may_make_arrays_of_jaxs_own_dtype() -> None:
    def bprop(x: Any, y: Any, out: Any, dout: Any) -> Any:
        return dout * y + jnp.zeros(()), dout * x * jnp.ones(())

    op = aot("Multiply", bprop=bprop)
    finding = check_one(op, "gradient", X, Y)
    assert (finding.verdict, "float32" in finding.summary) == ("passed", True)


def test_sanitizers_accept_a_kernel_that_reads_an_attribute(tmp_path: Path) -> None:
    (tmp_path / "scale.cc").write_text(
        '#include "custom_aot_extra.h"\n'
        'extern "C" int Scale(int, void **params, int *, int64_t **, const char **, void *,'
        " void *extra) {\n"
        '  float by = static_cast<AotExtra *>(extra)->Attr<float>("by");\n'
        "  static_cast<float *>(params[1])[0] = by * static_cast<float *>(params[0])[0];\n"
        "  return 0;\n"
        "}\n"
    )
    op = Custom(f"{tmp_path}/scale.cc:Scale", first, first, attrs={"by": 2.0})
    assert sanitize(op).verdict == "passed"


@pytest.mark.slow
def test_an_extreme_among_the_first_elements_is_no_fault_of_one_size():
    def below_the_top(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821
        top = x[0]
        for i in range(x.shape[0]):
            top = max(top, x[i])
        for i in range(x.shape[0]):
            y[i] = x[i] - top
        return y

    report = opcheck(Custom(below_the_top, func_type="akg"), np.array([1, 3, 2], np.float32))
    assert report["sizes"].verdict == "passed", str(report)
