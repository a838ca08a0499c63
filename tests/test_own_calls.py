"""A function that calls its own op in another thread, and waits for that: an error, no deadlock."""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys
import threading
import time
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from custom_ops import first

from msops import Custom

SCRIPT = """
import concurrent.futures, faulthandler, threading
import jax, jax.numpy as jnp, numpy as np
import msops
faulthandler.dump_traceback_later(100, exit=True)

def joins(x):
    thread = threading.Thread(target=lambda: op(np.array(x)))
    thread.start()
    thread.join()
    return x

def joins_a_thread_that_joins(x):
    def other():
        thread = threading.Thread(target=lambda: op(np.array(x)))
        thread.start()
        thread.join()
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    return x

pool = concurrent.futures.ThreadPoolExecutor(4)

def asks_for_a_result(x):
    return np.asarray(pool.submit(op, np.array(x)).result())

def leaves_a_pool(x):
    with concurrent.futures.ThreadPoolExecutor(4) as executor:
        executor.submit(op, np.array(x))
    return x

threading.excepthook = lambda *_: None
function = {}
op = msops.Custom(function, lambda x: x, lambda x: x)
for _ in range(2):
    try:
        print(op(jnp.ones(3)))
    except msops.errors.KernelError as error:
        print("inside its own call" in str(error), "have it call itself" in str(error))
"""


@pytest.mark.parametrize(
    "function", ["joins", "joins_a_thread_that_joins", "asks_for_a_result", "leaves_a_pool"]
)
def test_a_function_that_waits_for_its_own_op_ends_in_an_error(function: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.replace("{}", function)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "True True\nTrue True\n"), done.stderr[-4000:]


def test_first_calls_of_several_threads_at_once_are_right() -> None:
    def slow(x: Any) -> Any:
        time.sleep(0.1)
        return 2 * x

    op = Custom(slow, first, first)
    inputs = [jnp.full(3, float(i % 4)) for i in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for got, x in zip(pool.map(op, inputs), inputs, strict=True):
            np.testing.assert_array_equal(got, 2 * x)


def test_a_thread_may_call_the_op_on_other_arrays() -> None:
    def halves(x: Any) -> Any:
        if x.size == 1:
            return x
        results: list[Any] = []
        half = np.array(x[: x.size // 2])
        thread = threading.Thread(target=lambda: results.append(np.asarray(op(half))))
        thread.start()
        thread.join()
        return np.concatenate([results[0] + 1, x[x.size // 2 :]])

    op = Custom(halves, first, first)
    np.testing.assert_array_equal(op(jnp.zeros(4)), [2, 1, 0, 0])
