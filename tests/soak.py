"""Uses ops in every way for some minutes, and reports what the process holds early and at the end.

    python tests/soak.py SECONDS FOLDER

Threads call ops that are made anew, kernels' sources are edited, builds in other processes are
killed, functions fail and wait for JAX. test_soak.py runs it.
"""
# Loop kernels use names that mean something only inside them.
# ruff: noqa: F821

from __future__ import annotations

import ctypes
import gc
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from msops import Custom, Tensor, errors

THREADS = 4
VARIANTS = 4
X = jnp.arange(64, dtype=jnp.float32)
WORK = jax.jit(lambda x: jnp.sin(x).sum() + x)

SOURCE = """
#include <cstdint>
extern "C" int Scale(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {{
  const float *x = static_cast<const float *>(params[0]);
  float *y = static_cast<float *>(params[1]);
  for (int64_t i = 0; i < shapes[0][0]; ++i) y[i] = {factor} * x[i];
  return 0;
}}
"""

KILLED = """
import sys
import jax.numpy as jnp
from msops import Custom
Custom(sys.argv[1] + ":Scale", lambda x: x, lambda x: x)(jnp.ones(4))
"""


def first(x: Any, *_: Any) -> Any:
    return x


def use_functions(folder: Path, step: int) -> None:
    offset = np.float32(step % VARIANTS)
    op = Custom(lambda x: x + offset, first, first, bprop=lambda x, out, dout: (dout * offset,))
    np.testing.assert_array_equal(op(X), X + offset)
    np.testing.assert_array_equal(np.asarray(op(Tensor(np.asarray(X)))), X + offset)
    np.testing.assert_array_equal(jax.grad(lambda x: op(x).sum())(X), np.full(64, offset))
    waiting = Custom(lambda x: np.asarray(WORK(x)), first, first)
    np.testing.assert_array_equal(waiting(WORK(X)), WORK(WORK(X)))


def use_failures(folder: Path, step: int) -> None:
    def fail(x: Any) -> Any:
        raise ZeroDivisionError(f"by hand {step}")

    try:
        Custom(fail, first, first)(X)
    except errors.KernelError as error:
        if not isinstance(error.__cause__, ZeroDivisionError):
            raise
    else:
        raise AssertionError("no error")


def use_loops(folder: Path, step: int) -> None:
    factor = float(step % VARIANTS)

    def scale(x):
        y = output_tensor(x.shape, x.dtype)
        for i in range(x.shape[0]):
            y[i] = factor * x[i]
        return y

    lower = ("xla", "native")[step % 2]
    op = Custom(scale, func_type="akg", compile_attrs={"lower": lower})
    np.testing.assert_array_equal(op(X), factor * X)
    np.testing.assert_array_equal(jax.grad(lambda x: op(x).sum())(X), np.full(64, factor))


def use_edits(folder: Path, step: int) -> None:
    source = folder / f"scale{threading.get_ident()}.cc"
    factor = step % VARIANTS
    source.write_text(SOURCE.format(factor=factor))
    try:
        op = Custom(f"{source}:Scale", first, first)
        np.testing.assert_array_equal(op(X), factor * X)
    finally:
        source.unlink()


def use_kills(folder: Path, step: int) -> None:
    if step % 10:
        return
    source = folder / f"killed{step}.cc"
    source.write_text(SOURCE.format(factor=1000 + step))
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(source)], start_new_session=True)
    time.sleep(1 + step % 30 / 10)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


USES = (use_functions, use_failures, use_loops, use_edits, use_kills)


def run_round(folder: Path, step: int) -> None:
    """Runs each use in a thread of its own, and each of these in the same order of uses."""
    failures: list[BaseException] = []

    def run(uses: Sequence[Callable[[Path, int], None]]) -> None:
        try:
            for use in uses:
                use(folder, step)
        except BaseException as error:
            failures.append(error)

    uses = itertools.cycle(USES)
    parts = [[next(uses) for _ in range(3)] for _ in range(THREADS)]
    threads = [threading.Thread(target=run, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    if step % 20 == 0:
        jax.clear_caches()


def measure() -> dict[str, int]:
    """Returns what the process holds: memory in bytes, open files, threads."""
    jax.clear_caches()
    for _ in range(3):
        gc.collect()
        time.sleep(0.1)
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "memory_bytes": pages * os.sysconf("SC_PAGE_SIZE"),
        "files": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
    }


def main(seconds: float, folder: Path) -> None:
    begin = time.monotonic()
    early = None
    for step in itertools.count():
        run_round(folder, step)
        elapsed = time.monotonic() - begin
        if early is None and elapsed > min(60, seconds / 3):
            early = measure()
        elif elapsed > seconds and early is not None:
            break
    print(json.dumps({"rounds": step, "early": early, "late": measure()}))


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]))
