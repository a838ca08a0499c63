"""Small cases of MindSpore's Python interface: the value, dtype, shape or error is MindSpore's.

The answers are those of MindSpore 2.10.0 on a CPU (tests/oracle/dump_small.py). With
MSOPS_TEST_MINDSPORE naming a Python that has it, the slow test asks it again.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import msops

ORACLE = Path(__file__).parent / "oracle"
DUMP = runpy.run_path(str(ORACLE / "dump_small.py"))
EXPECTED = json.loads((ORACLE / "small_mindspore_2_10_0.json").read_text())["found"]

DIFFERENT: dict[str, dict[str, str]] = {
    "functions": {
        "needs_input_grad": "MindSpore counts every argument of the outer function",
        "needs_input_grad in forward": "MindSpore counts every Tensor, outside of gradients, too",
        "in ms.jit": "MindSpore runs it in PYNATIVE_MODE only",
    },
    "differences": {
        "the gradient by an integer": "an integer has no gradient",
        "the gradient of an operator without bprop": "the error is a TypeError",
        "vmap of a CellList": "refused: jax.vmap over stacked weights",
        "one Tensor twice": "MindSpore adds up the gradients of both positions",
        "if on a Tensor": "refused: the value is not known while the function is compiled",
        "a loop over a Tensor's value": "refused, as if",
        "a numpy array beside a Tensor": "arrays are taken",
        "a bprop that returns too few": "the error is a ValueError",
        "a bprop of another shape": "MindSpore returns it as it is",
        "a pyfunc of another dtype": "results are cast",
    },
    "hooks": {
        "forward hooks of a Cell with a bprop": "MindSpore ignores the forward hook",
    },
    "programs": {
        "it is found out at once": "MindSpore says so at the first call",
        "jit level 2": "MindSpore 2.7 has it",
        "jit with an unknown option": "an unknown option is a slip",
        "jit of no function": "MindSpore returns it",
        "is_contiguous of a transposed": "a dense copy",
        "is_contiguous of a permuted": "a dense copy",
        "is_contiguous of a slice": "a dense copy",
        "add_": "MindSpore returns the sum, and leaves the Tensor, on a CPU",
        "add_ of another shape": "it does not fit in place",
        "assigning to a slice": "a dense copy",
        "storage_offset": "a dense copy has none",
        "data_ptr": "the address of a jax.Array is not the script's",
        "a Cell in half precision": "there is no mixed precision",
        "to_float of nothing": "there is no mixed precision",
        "Cell.to with a dtype": "there is no mixed precision",
        "out_dtype as a string": "names of dtypes are taken",
    },
    "transformations": {
        "get_grad of one gradient": "MindSpore returns its first entry",
        "sens is missing": "MindSpore has an IndexError of its own code",
        "jacrev by True": "True is no position",
        "recompute runs it again": "JAX traces the block once",
        "saved_tensors_hooks that give back another dtype": "a gradient keeps its dtype",
        "saved_tensors_hooks of one position": "y alone is kept: the gradient by x needs no more",
        "saved_tensors_hooks of a sine": "JAX keeps the cosine",
    },
}
"""Where msops differs on purpose, and why."""


def agrees(found: Any, expected: Any) -> bool:
    """Returns whether two answers are equal; an error also if it is one of MindSpore's class."""
    if isinstance(expected, dict) and "error" in expected:
        return isinstance(found, dict) and expected["error"][0] in found.get("error", ())
    return bool(found == expected)


@pytest.mark.parametrize("subject", list(EXPECTED))
def test_answers_are_mindspores(subject: str) -> None:
    names = ["common._grad_function", "common.api", "nn", "ops.primitive"]
    for name in names:
        importlib.import_module(f"msops.{name}")
    modules = {
        "mindspore" + name.removeprefix("msops"): module
        for name, module in sys.modules.items()
        if name.partition(".")[0] == "msops"
    }
    with mock.patch.dict(sys.modules, modules):
        found = DUMP["answers"](msops, ORACLE / "small_cases" / f"{subject}.py")
    expected = EXPECTED[subject]
    assert list(found) == list(expected), "run tests/oracle/dump_small.py again"
    different = {
        name: (found[name], answer)
        for name, answer in expected.items()
        if not agrees(found[name], answer)
    }
    named = DIFFERENT.get(subject, {})
    assert different.keys() == named.keys(), {
        name: answers for name, answers in different.items() if name not in named
    }


@pytest.mark.slow
def test_recorded_answers_are_mindspores(tmp_path: Path) -> None:
    python = os.environ.get("MSOPS_TEST_MINDSPORE")
    if not python:
        pytest.skip("MSOPS_TEST_MINDSPORE names no Python with MindSpore")
    done = subprocess.run(
        [python, str(ORACLE / "dump_small.py")],
        cwd=tmp_path,  # it leaves a folder of logs
        env={**os.environ, "GLOG_v": "4", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    answers = json.loads(done.stdout)
    if answers["mindspore"] != "2.10.0":
        pytest.skip(f"the answers are of MindSpore 2.10.0; here is {answers['mindspore']}")
    assert answers["found"] == EXPECTED
