"""Functions of zeros of both signs, infinities, ties, extreme integers and nothing: as MindSpore's.

The values are those that MindSpore 2.10.0 computed on a CPU (tests/oracle/dump_special.py).
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from face_namespace import ms

from msops import ops

ORACLE = Path(__file__).parent / "oracle"
EXPECTED = json.loads((ORACLE / "special_mindspore_2_10_0.json").read_text())["found"]
with mock.patch.dict(sys.modules, mindspore=ms):
    CALLS = {
        f"{name} {kind}": (name, arrays)
        for name, kind, arrays in runpy.run_path(str(ORACLE / "dump_special.py"))["calls"]()
    }

DIFFERENT = {
    "expm1 floats": "MindSpore loses the sign of -0.0",
    "log1p floats": "MindSpore loses the sign of -0.0",
    "sign floats": "MindSpore loses the sign of -0.0",
    "div floats": "MindSpore takes a divisor -0.0 for 0.0",
    "floor_div floats": "MindSpore takes a divisor -0.0 for 0.0",
    "floor_mod floats": "MindSpore has NaN for remainders by infinity",
    "maximum floats": "of 0.0 and -0.0 MindSpore takes the second",
    "minimum floats": "of 0.0 and -0.0 MindSpore takes the second",
    "floor_mod integers": "remainders by 0 are 0, as in the loop language",
    "pow integers": "powers wrap, as in the loop language; MindSpore rounds them as floats",
    "pow bytes": "powers wrap, as in the loop language; MindSpore rounds them as floats",
}
"""Where msops differs on purpose, and why."""


def agrees(value: Any, expected: list[Any]) -> bool:
    dtype, shape, text = expected
    wanted = np.array(eval(text, {"nan": np.nan, "inf": np.inf}))
    found = value.asnumpy().reshape(-1).astype(wanted.dtype)
    if str(value.dtype) != dtype or list(value.shape) != shape:
        return False
    if wanted.dtype.kind != "f":
        return np.array_equal(found, wanted)
    zeros = wanted == 0
    return np.allclose(found, wanted, rtol=3e-6, atol=0, equal_nan=True) and np.array_equal(
        np.signbit(found)[zeros], np.signbit(wanted)[zeros]
    )


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
@pytest.mark.parametrize("kind", ["floats", "integers", "bytes", "empty", "number"])
def test_special_values_are_mindspores(kind: str, mode: int) -> None:
    class Net(ms.nn.Cell):
        def __init__(self, function: Any):
            super().__init__()
            self.function = function

        def construct(self, *inputs: Any) -> Any:
            return self.function(*inputs)

    ms.set_context(mode=mode)
    try:
        different = {
            key
            for key, (name, arrays) in CALLS.items()
            if key in EXPECTED and key.endswith(f" {kind}")
            if not agrees(Net(getattr(ops, name))(*map(ms.Tensor, arrays)), EXPECTED[key])
        }
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    assert different == {key for key in DIFFERENT if key.endswith(f" {kind}")}
