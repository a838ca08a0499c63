"""Runs every GPU check and prints a table; `make gpu` calls this.

Needs the package installed for the running Python, a CUDA device that JAX sees, and nvcc. The exit
status is 0 if all checks passed, 1 if one failed, 2 if there is no such device.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from checks_device import cuda_device
from checks_loops import loop_checks
from checks_programs import program_checks
from checks_report import Row, print_report
from checks_table import CHECKS, Check
from checks_tbe import tbe_checks
from checks_timing import median_us

# A script of MindSpore's kind, with the commands of its guide, and what it prints.
SCRIPT = Path(__file__).resolve().parent / "script"
SCRIPT_BUILD = ("nvcc", "--shared", "-Xcompiler", "-fPIC", "-o", "affine.so", "affine.cu")
_SCRIPT_RUN = (sys.executable, "-m", "msops", "run", "affine.py")
SCRIPT_NAME = "script on a GPU"
_SCRIPT_OUTPUT = "[[ 1.  4.]\n [ 7. 10.]]"


def main() -> int:
    """Runs all checks; returns the exit status."""
    device = cuda_device()
    checks = [(check.name, lambda check=check: run_check(check, device)) for check in CHECKS]
    checks += [*program_checks(device), (SCRIPT_NAME, run_script)]
    checks += [*tbe_checks(device), *loop_checks(device)]
    return 0 if print_report(_guarded(name, run) for name, run in checks) else 1


def run_check(check: Check, device: jax.Device) -> Row:
    """Compares one operator with numpy, eagerly and jitted, and times the jitted call."""
    inputs = check.inputs(np.random.default_rng(0))
    expected = check.numpy(*inputs)
    # Only the int64 index needs it; the other arrays keep their 32 bits.
    with jax.enable_x64(True):
        arrays = [jax.device_put(value, device) for value in inputs]
        function = check.make()
        jitted = jax.jit(function)
        calls = (function(*arrays), jitted(*arrays))
        error = float(np.max([_largest_error(call, expected, device) for call in calls]))
        # Not `error > tolerance`: that would let NaN pass.
        if not error <= check.tolerance:
            failure = f"largest error {error:.2e} exceeds {check.tolerance:.0e}"
            return Row(check.name, error, failure=failure)
        return Row(check.name, error, median_us(jitted, arrays))


def run_script() -> Row:
    """Builds and runs the script; compares what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(SCRIPT, folder, dirs_exist_ok=True)
        for command in (SCRIPT_BUILD, _SCRIPT_RUN):
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return Row(SCRIPT_NAME, failure=f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
    printed = done.stdout.strip()
    if printed != _SCRIPT_OUTPUT:
        return Row(SCRIPT_NAME, failure=f"expected\n{_SCRIPT_OUTPUT}\ngot\n{printed}")
    return Row(SCRIPT_NAME)


def _guarded(name: str, run: Callable[[], Row]) -> Row:
    """Returns the outcome of a check, its traceback where it raised."""
    try:
        return run()
    except Exception:
        return Row(name, failure=traceback.format_exc())


def _largest_error(results: Any, expected: Any, device: jax.Device) -> float:
    """Returns the largest error relative to the largest expected value, over all outputs."""
    errors = [0.0]
    results, expected = (
        value if isinstance(value, tuple) else (value,) for value in (results, expected)
    )
    for result, truth in zip(results, expected, strict=True):
        if result.shape != truth.shape or result.dtype != truth.dtype:
            raise ValueError(
                f"expected {truth.dtype}{truth.shape}; got {result.dtype}{result.shape}"
            )
        if result.devices() != {device}:
            raise ValueError(f"expected the result on {device}; it is on {result.devices()}")
        if truth.size:
            scale = max(1.0, float(np.abs(truth).max()))
            difference = np.abs(np.asarray(result, np.float64) - truth.astype(np.float64))
            errors.append(float(difference.max()) / scale)
    return float(np.max(errors))


if __name__ == "__main__":
    sys.exit(main())
