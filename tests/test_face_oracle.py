"""MindSpore's face against what the real MindSpore 2.7.2 printed and computed (tests/oracle)."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from face_namespace import ms
from quick_cases import in_turn, one_in

ORACLE = Path(__file__).parent / "oracle"
CASES = runpy.run_path(str(ORACLE / "face_cases.py"))
EXPECTED = json.loads((ORACLE / "face_mindspore_2_7_2.json").read_text())

# MindSpore's float32 functions on CPU err in the seventh digit, its tanh in the fourth.
ROUNDING = 3e-6
ROUNDING_OF = {"matrix.tanh()": 2e-4, "ops.Tanh()(x)": 2e-4}


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """The names the cases are evaluated with."""
    namespace = {"ms": ms, "np": np, "__name__": "face_prelude"}
    exec(CASES["PRELUDE"], namespace)
    return namespace


MODES = ("pynative", "graph")


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest):
    """Runs a test in both execution modes."""
    ms.set_context(mode=ms.GRAPH_MODE if request.param == "graph" else ms.PYNATIVE_MODE)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


def accepted(table: str) -> list[str]:
    """The cases MindSpore gave a result for."""
    assert list(EXPECTED[table]) == CASES[table.upper()], "run tests/oracle/dump_face.py again"
    return [case for case, result in EXPECTED[table].items() if result is not None]


def check(value: Any, expected: list[Any], rtol: float = ROUNDING) -> None:
    """Compares with a description by dump_face.described: kinds, dtypes, shapes, values."""
    kind, *rest = expected
    if kind == "tensor":
        dtype, shape, data = rest
        assert isinstance(value, ms.Tensor)
        assert str(value.dtype) == dtype
        assert list(value.shape) == shape
        wanted = np.array(eval(data, {"nan": np.nan, "inf": np.inf}))
        np.testing.assert_allclose(
            value.asnumpy().astype(wanted.dtype), wanted.reshape(shape), rtol=rtol, atol=1e-6
        )
    elif kind in ("tuple", "list"):
        assert isinstance(value, tuple if kind == "tuple" else list)
        assert len(value) == len(rest)
        for entry, description in zip(value, rest, strict=True):
            check(entry, description)
    elif kind == "dict":
        for key, description in rest:
            check(value[key], description)
    else:
        assert repr(value) == rest[0]


@pytest.mark.parametrize("case", accepted("printed"))
def test_prints_as_mindspore(case, names):
    value = eval(case, names)
    assert [repr(value), str(value)] == EXPECTED["printed"][case]


@pytest.mark.parametrize("case", accepted("plain"))
def test_tells_the_same_of_itself(case, names):
    assert repr(eval(case, names)) == EXPECTED["plain"][case]


@pytest.mark.parametrize("case", one_in(6, accepted("computed")))
def test_computes_the_same(case, names):
    check(eval(case, names), EXPECTED["computed"][case], ROUNDING_OF.get(case, ROUNDING))


@pytest.mark.parametrize(
    ("case", "mode"), one_in(6, in_turn(accepted("gradients"), MODES)), indirect=["mode"]
)
def test_differentiates_the_same(case, names, mode):
    check(eval(case, names), EXPECTED["gradients"][case])


def test_promotes_dtypes_the_same(names):
    found = {}

    def note(case):
        # Traced only: dtypes need no compiled kernels, of which these cases would take thousands.
        value = eval(case, names)
        found[case] = str(value.dtype)
        return value.value

    for case in accepted("promoted"):
        jax.eval_shape(lambda case=case: note(case))
    assert found == {case: EXPECTED["promoted"][case] for case in found}
    assert len(found) > 1000
