"""aclnn operators given sizes and axes that nobody means: an error of ours, and no memory taken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest
from aclnn_cases import CASES, Case
from aclnn_model_cases import CASES as MODEL_CASES
from conftest import ROOT
from quick_cases import one_in

from msops._ascend import aclnn
from msops.errors import ArgumentValueError, InferenceValueError, MsopsError

HOSTILE = (-(2**63), -1, 0, 2**31, 2**62, 2**63 - 1)
FIRST = {case.name: case for case in reversed([*CASES, *MODEL_CASES])}
F32 = jax.ShapeDtypeStruct((3,), np.float32)
ONES = np.ones(3, np.float32)


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def spoiled(case: Case) -> Iterator[list[Any]]:
    """Yields the inputs of a case with one of its integers replaced."""
    for position, value in enumerate(case.inputs):
        for number in HOSTILE:
            inputs = list(case.inputs)
            if is_int(value):
                inputs[position] = number
                yield inputs
            elif isinstance(value, (list, tuple)) and value and all(map(is_int, value)):
                for index in range(len(value)):
                    inputs[position] = [*value[:index], number, *value[index + 1 :]]
                    yield list(inputs)


def outputs_of(case: Case) -> list[jax.ShapeDtypeStruct]:
    answer = case.expected(*case.inputs)
    arrays = [np.asarray(a) for a in (answer if isinstance(answer, (tuple, list)) else [answer])]
    positions = aclnn.lookup(case.name, "").updated
    updated = sum(case.inputs[position] is not None for position in positions)
    return [
        jax.ShapeDtypeStruct(a.shape, np.float32 if a.dtype == np.float64 else a.dtype)
        for a in arrays[: len(arrays) - updated]
    ]


def attack(case: Case, *, eagerly: bool) -> int:
    """Calls an operator with each spoiled input; returns how often it refused, or raises."""
    operator, refused = aclnn.lookup(case.name, "hostile"), 0
    outputs = outputs_of(case)
    for inputs in spoiled(case):
        try:
            if eagerly:
                jax.block_until_ready(operator(inputs, outputs))
            else:
                jax.eval_shape(lambda inputs=inputs: operator(inputs, outputs))
        except MsopsError:
            refused += 1
    return refused


SIZED = [name for name, case in FIRST.items() if next(spoiled(case), None) is not None]


@pytest.mark.parametrize("name", one_in(4, SIZED))
def test_no_integer_does_harm_when_traced(name: str) -> None:
    with jax.enable_x64(True):
        assert attack(FIRST[name], eagerly=False) >= 0


EAGERLY = """
import resource, sys
sys.path[:0] = {path!r}
resource.setrlimit(resource.RLIMIT_AS, (1 << 36, 1 << 36))
import jax
from test_aclnn_hostile import FIRST, SIZED, attack

jax.numpy.ones(3)
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with jax.enable_x64(True):
    for name in SIZED:
        print(name, attack(FIRST[name], eagerly=True), flush=True)
print("grew by", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used) // 1024)
"""


@pytest.mark.slow
def test_no_integer_does_harm_eagerly() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EAGERLY.format(path=[str(ROOT), str(ROOT / "tests")])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) < 2000


@pytest.mark.parametrize(
    ("name", "inputs", "kind", "message"),
    [
        ("Expand", [ONES[:1], [2**62]], InferenceValueError, f"of shape .{2**62},.; got a tensor"),
        ("Expand", [ONES[:1], [2**40, 2**40, 3]], InferenceValueError, "got a tensor of shape"),
        ("Expand", [ONES[:1], [-2]], InferenceValueError, "of shape .-2,.; got"),
        ("Repeat", [ONES, [2**62]], InferenceValueError, "got a tensor of shape"),
        ("Repeat", [ONES, [-1]], InferenceValueError, "of shape .-3,.; got"),
        ("RepeatInterleaveIntWithDim", [ONES, 2, 0, 7], ArgumentValueError, "outputSize 6; got 7"),
        ("RepeatInterleaveIntWithDim", [ONES, -1, 0, -3], InferenceValueError, "of shape .-3,."),
        ("ConstantPadNd", [ONES, [2**62, 2**62], 0], InferenceValueError, "got a tensor of shape"),
        ("ConstantPadNd", [ONES, [-2, -2], 0], InferenceValueError, "of shape .-1,.; got"),
        ("Arange", [0, 2**40, 1], InferenceValueError, f"of shape .{2**40},.; got"),
        ("Arange", [0, float("inf"), 1], ArgumentValueError, "cannot serve the inputs"),
        ("Linspace", [0, 1, 2**40], InferenceValueError, "got a tensor of shape"),
        ("Eye", [2**40, 2**40], InferenceValueError, "got a tensor of shape"),
        ("Flatten", [ONES, 7], ArgumentValueError, "an axis up to 1; got 7"),
        ("GatherNd", [ONES, np.int32(0), False], ArgumentValueError, "cannot serve the inputs"),
        ("Muls", [ONES.astype(np.int32), 2**40], ArgumentValueError, "cannot serve the inputs"),
        (
            "AvgPool2d",
            [ONES.reshape(1, 1, 3), [1], [0], [0], False, True, 0, 0],
            ArgumentValueError,
            "of 1 or more for strides; got .0.",
        ),
        (
            "MaxPool",
            [ONES.reshape(1, 1, 3), [1], [1], 0, [2**40], [1], 0],
            InferenceValueError,
            "got a tensor of shape",
        ),
    ],
)
def test_what_no_memory_holds_is_refused(
    name: str, inputs: list[Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        aclnn.lookup(name, "hostile")(inputs, [F32])


@pytest.mark.parametrize(
    ("name", "inputs", "expected"),
    [
        ("Expand", [ONES[:0].reshape(0, 1), [0, 5]], np.zeros((0, 5))),
        ("Repeat", [ONES, [0]], np.zeros(0)),
        ("Repeat", [ONES[:0], [2**40]], np.zeros(0)),
        ("RepeatInterleaveIntWithDim", [ONES, 0, 0, 0], np.zeros(0)),
        ("ConstantPadNd", [ONES, [-2, -1], 0], np.zeros(0)),
        ("Flatten", [ONES[:0].reshape(0, 3), 1], np.zeros((0, 3))),
        ("Eye", [0, 3], np.zeros((0, 3))),
        ("Arange", [3, 0, 1], np.zeros(0)),
        ("Linspace", [1, 2, 1], np.linspace(1, 2, 1)),
    ],
)
def test_sizes_of_nothing_are_served(name: str, inputs: list[Any], expected: np.ndarray) -> None:
    outputs = [jax.ShapeDtypeStruct(expected.shape, np.float32)]
    np.testing.assert_array_equal(aclnn.lookup(name, "hostile")(inputs, outputs)[0], expected)
