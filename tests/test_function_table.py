"""A function of the loop IR is one row of a table: a row that is added works everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from loop_ir import FUNCTIONS, Function, evaluate

PROGRAM = '''
import jax
import jax.numpy as jnp
import numpy as np

# Before anything reads the table.
from msops._loops.ir.functions import FUNCTIONS, Function

FUNCTIONS["softsign"] = Function(
    numpy=lambda x: x / (1 + np.abs(x)),
    derivative=("w / ((1 + abs(x)) * (1 + abs(x)))",),
    jax="x / (1 + abs(x))",
    c="x / (1 + abs(x))",
    hybrid="kernel",
)
FUNCTIONS["root3"] = Function(
    numpy=np.cbrt,
    derivative=("w / (3 * y * y)",),
    safe=(1.0,),
    jax="lax.cbrt",
    c="cbrt",
    tvm_aliases=("third_root",),
)

from msops import ops
from loop_ir import analyse, cuda_source, interpret, parse_kernel

X = np.float32([-2.5, -0.5, 0.25, 1.0, 30.0])
SOFT = X / (1 + np.abs(X))
SOFT_SLOPE = 1 / (1 + np.abs(X)) ** 2
ROOT = np.cbrt(X.astype("float64"))
ROOT_SLOPE = 1 / (3 * ROOT * ROOT)


@ops.kernel
def soft(x):
    out = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        out[i] = softsign(x[i]) + softsign(0.0)
    return out


def root(x):
    return topi.root3(x)


def third(x):
    return tvm.compute(x.shape, lambda i: tvm.call_pure_intrin("float32", "third_root", x(i)))


def check(found, expected):
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-5)


check(soft(X), SOFT)
for lower in ("xla", "native"):
    for function, func_type, value, slope in (
        (soft, "hybrid", SOFT, SOFT_SLOPE),
        (root, "akg", ROOT, ROOT_SLOPE),
        (third, "akg", ROOT, ROOT_SLOPE),
    ):
        attrs = {"lower": lower}
        op = ops.Custom(function, func_type=func_type, compile_attrs=attrs)
        check(op(jnp.asarray(X)), value)
        check(jax.grad(lambda x: op(x).sum())(jnp.asarray(X)), slope)

text = """kernel f(x: float32[5]) -> (soft, root) {
  buffer soft: float32[5]
  buffer root: float32[5]
  parallel i in 0 .. 5 {
    soft[i] = softsign(x[i])
    root[i] = root3(x[i])
  }
}"""
for found, expected in zip(interpret(parse_kernel(text), [X]), (SOFT, ROOT), strict=True):
    check(found, expected)
facts = analyse(parse_kernel(text))
code = cuda_source(facts.kernel, facts.unproven, facts.overwritten).text
assert "ms_softsign_f32(" in code and "cbrtf(" in code, code
'''


def test_a_row_is_enough_for_a_function(tmp_path: Path) -> None:
    script = tmp_path / "toy.py"
    script.write_text(PROGRAM)
    result = subprocess.run(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_row_has_a_form_for_each_argument(name: str) -> None:
    row: Function = FUNCTIONS[name]
    has_derivative = row.domain != "integer" and not row.to_bool
    assert len(row.derivative) == (row.arity if has_derivative else 0)
    assert len(row.safe) in (0, row.arity)
    assert bool(row.c_integer) == (row.domain != "float")


@pytest.mark.parametrize("formula", ["x @ 2", "x[0]", "0 < x < 1", "x.y", "'a'"])
def test_a_formula_has_no_other_syntax(formula: str) -> None:
    with pytest.raises(ValueError, match="is not supported"):
        evaluate(formula, {"x": 1.0}, float, lambda *_: 0.0)
