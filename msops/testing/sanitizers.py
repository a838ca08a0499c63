"""Builds of a kernel's source with the address and undefined behaviour sanitizers."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from msops.testing.guarded import Run, run_jobs
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject

# Objects of AotExtra are made by msops, whose types the check of vptr does not know.
_FLAGS = (
    "-g",
    "-O1",
    "-fno-omit-frame-pointer",
    "-fsanitize=address,undefined",
    "-fno-sanitize=vptr",
)
# libasan has to come first in the process, and libstdc++ with it, or the first C++ exception ends
# the process; Python does not free all at exit.
_PRELOADED = ("libasan.so", "libstdc++.so")
_OPTIONS = "detect_leaks=0:verify_asan_link_order=0:abort_on_error=0"
_SAID = re.compile(
    r"^(?:==\d+==ERROR: |SUMMARY: |(?:READ|WRITE) of size|.*runtime error: |0x\w+ is located).*",
    re.MULTILINE,
)
_FRAME = re.compile(r"^\s*#\d+ 0x\w+ in (.+)$", re.MULTILINE)


def check_sanitizers(subject: Subject) -> Finding:
    """Runs an aot or aicpu kernel, built with the sanitizers, in a process of its own."""
    check = "sanitizers"
    runtimes = [_runtime_path(name) for name in _PRELOADED]
    if not all(runtimes):
        return skipped(check, "g++ has no sanitizers; install libasan")
    job, rebuilt = subject.job(), subject.rebuilt(_FLAGS)
    if job is None or rebuilt is None:
        return skipped(check, "there is no C or C++ source to build")
    library, sources = rebuilt
    call = dataclasses.replace(job.call, library=library)
    environment = {
        "LD_PRELOAD": " ".join(runtimes),
        "ASAN_OPTIONS": _OPTIONS,
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    job = dataclasses.replace(job, call=call, placement="heap")
    (run,) = run_jobs([job], environment, watched=False)
    lines = _lines_of(run, sources)
    if lines:
        return failed(
            check, f"kernel {call.kernel_name} is at fault", lines, "See the lines of its source."
        )
    return passed(check, "address and undefined behaviour")


def _lines_of(run: Run, sources: Sequence[Path]) -> list[str]:
    """Returns what the sanitizers said, and the frames that lie in the kernel's source."""
    lines = [line.strip() for line in _SAID.findall(run.text)]
    names = [source.name for source in sources]
    frames = [f for f in _FRAME.findall(run.text) if any(name in f for name in names)]
    if not lines and run.crash:
        lines = [run.crash.signal, *run.text.splitlines()[-6:]]
    return list(dict.fromkeys([*lines, *frames]))


def _runtime_path(name: str) -> str:
    """Returns where g++ has a library; empty if it has none."""
    try:
        done = subprocess.run(
            ["g++", f"-print-file-name={name}"], capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    path = done.stdout.strip()
    return path if "/" in path else ""
