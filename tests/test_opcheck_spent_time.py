"""A limit of time counts what a call computes and waits, not what it waits for a processor."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from test_opcheck import only

from msops import pyfunc
from msops.testing import opcheck
from msops.testing.spent_time import Stopwatch

SPIN = "while True: pass"
# Programs on one processor, beside which another gets a fifth of it.
OTHERS = 4


@pytest.fixture
def busy() -> Iterator[int]:
    """The number of a program that shares one processor with others; so does this thread."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(own)})
    # Each in a session of its own, as Linux shares processors among these.
    programs = [
        subprocess.Popen([sys.executable, "-S", "-c", SPIN], start_new_session=True)
        for _ in range(OTHERS)
    ]
    yield programs[0].pid
    os.sched_setaffinity(0, own)
    for program in programs:
        program.kill()
        program.wait()


def test_a_program_that_waits_for_a_processor_spends_little(busy: int) -> None:
    stopwatch = Stopwatch(busy)
    time.sleep(1)
    assert stopwatch.read_s() < 0.7
    stopwatch.restart()
    assert stopwatch.read_s() < 0.1


def test_a_thread_that_waits_for_another_spends_what_passes() -> None:
    ended = threading.Event()
    waiting = threading.Thread(target=ended.wait)
    waiting.start()
    stopwatch = Stopwatch(os.getpid(), waiting.native_id)
    time.sleep(0.3)
    assert stopwatch.read_s() >= 0.3
    ended.set()
    waiting.join()


def test_a_right_function_ends_in_time_beside_others(busy: int) -> None:
    taken = []

    def computes(x: np.ndarray) -> np.ndarray:
        start_s, end_s = time.monotonic(), time.thread_time() + 0.3
        while time.thread_time() < end_s:
            pass
        taken.append(time.monotonic() - start_s)
        return x + 1

    op = pyfunc(computes, out=lambda x: x)
    report = opcheck(op, np.float32([1, 2]), limit_s=0.6, skip=only("inputs unchanged"))
    assert report.ok, report
    assert max(taken) > 0.6, "the processor was not busy"
