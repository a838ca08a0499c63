"""Loop kernels on a GPU: each of the corpus in `tests/`, as XLA operations and as CUDA C.

`tests/test_gpu_loops.py` runs the same checks on machines that have no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from checks_report import Row
from checks_timing import median_us

from msops import Custom
from msops.ops import CustomRegOp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from loop_corpus import CORPUS, Case

# Beyond a warp in every dimension, and no multiple of it.
_SIZE = 70
_TIMED_CALLS = 20
_ATTRIBUTE_TYPES = {int: "int", float: "float"}

LOWERINGS = ("xla", "native")


def loop_checks(device: jax.Device) -> Iterator[tuple[str, Callable[[], Row]]]:
    """Yields the name of each check, and what runs it."""
    for case in CORPUS:
        for lowering in LOWERINGS:
            name = f"{case.name}, {lowering}"
            yield name, lambda case=case, lowering=lowering: run_loop_check(case, lowering, device)


def run_loop_check(case: Case, lowering: str, device: jax.Device) -> Row:
    """Compares one kernel with numpy, and times the jitted call."""
    inputs = case.inputs(np.random.default_rng(0), _SIZE)
    with jax.enable_x64(True):
        arrays = [jax.device_put(array, device) for array in inputs]
        function = jax.jit(loop_op(case, len(inputs), lowering))
        results = function(*arrays)
        results = results if isinstance(results, tuple) else (results,)
        if any(result.devices() != {device} for result in results):
            raise ValueError(f"expected the results on {device}")
        case.check(inputs, results)
        call_us = median_us(function, arrays, _TIMED_CALLS)
    return Row(f"{case.name}, {lowering}", call_us=call_us)


def loop_op(case: Case, inputs: int, lowering: str) -> Callable[..., Any]:
    """Returns a case as a function of its arrays, lowered in a given way."""
    forced = {"lower": lowering}
    if not case.attributes:
        return Custom(case.func, func_type="akg", compile_attrs=forced)
    info = CustomRegOp(case.name)
    names = case.func.__code__.co_varnames
    for position in range(inputs):
        info = info.input(position, names[position])
    info = info.output(0, "out")
    for name, value in case.attributes.items():
        info = info.attr(name, "required", _ATTRIBUTE_TYPES[type(value)])
    for target in ("CPU", "GPU"):
        info = info.target(target)
    op = Custom(case.func, func_type="akg", compile_attrs=forced, reg_info=info.get_op_info())
    return lambda *arrays: op(*arrays, *case.attributes.values())
