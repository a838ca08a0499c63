"""Type checkers know calls of ops: they find the wrong ones in a user's file, and no others."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from loop_ir import INTRINSICS

import msops
from msops import lang

USER = """
import jax
import jax.numpy as jnp
import numpy as np

import msops
import msops.lang as ml


@msops.pyfunc(out=lambda x, y: x)
def lean(x, y, *, power: int = 2):
    return x - y**power


@msops.kernel
def scale(x: jax.Array, alpha: float = 2.0) -> jax.Array:
    y = ml.output_tensor(x.shape, x.dtype)
    for i in ml.parallel(x.shape[0]):
        y[i] = alpha * ml.exp(x[i])
    return y


@msops.kernel(sharding="i -> i")
def plain(x):
    return x


x = jnp.ones(3)
lean(x, x, power=3)
scale(x, alpha=3.0)
scale(x, 3.0)
plain(x)
swish = msops.cpp("swish.cc:Swish", out=lambda x: x, build=msops.Build(std="c++20"))
swish(x, alpha=1.0)
msops.Custom(np.sin, out=jax.ShapeDtypeStruct((3,), jnp.float32))(x)
op: msops.Custom = lean
lean.def_vjp(lambda x, y: (lean(x, y), None), lambda residuals, dout: (dout, None))
scale(x).at[0].set(1.0).sum()
swish(x).astype(jnp.float16).shape
op(x, x).anything
scale(x).shap  # wrong
swish(x).shap  # wrong
lean(x)  # wrong
lean(x, x, 3)  # wrong
lean(x, x, powr=3)  # wrong
lean(x, x, power="two")  # wrong
scale(x, beta=1.0)  # wrong
scale("x")  # wrong
plain()  # wrong
msops.pyfunc(lambda x: x, out=x, statefull=True)  # wrong
msops.kernel(statefull=True)  # wrong
ml.exp(1.0, 2.0)  # wrong
ml.expp(1.0)  # wrong
"""

WRONG = {number for number, line in enumerate(USER.splitlines(), 1) if line.endswith("# wrong")}


@pytest.mark.slow
def test_mypy_finds_the_wrong_calls_of_a_users_file(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    checked = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file=", "user.py"),
            f"--cache-dir={ROOT / '.mypy_cache'}",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    lines = re.findall(r"^user\.py:(\d+): error", checked.stdout, re.MULTILINE)
    assert {int(line) for line in lines} == WRONG, checked.stdout + checked.stderr


@pytest.mark.slow
def test_pyright_finds_the_wrong_calls_of_a_users_file(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    settings = {"typeCheckingMode": "basic", "extraPaths": [str(ROOT)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    checked = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    lines = re.findall(r"user\.py:(\d+):\d+ - error", checked.stdout)
    assert {int(line) for line in lines} == WRONG, checked.stdout + checked.stderr


@pytest.mark.parametrize("short_form", [msops.pyfunc, msops.kernel, msops.cpp])
def test_short_forms_know_every_option(short_form: object) -> None:
    parameters = inspect.signature(msops.Custom).parameters.values()
    options = {p.name: p.annotation for p in parameters if p.kind is p.KEYWORD_ONLY}
    later = ("bprop", "reg_info")  # by position, too, as in MindSpore
    options |= {p.name: p.annotation for p in parameters if p.name in later}
    del options["out"]
    (rest,) = (
        p for p in inspect.signature(short_form).parameters.values() if p.kind is p.VAR_KEYWORD
    )
    known = eval(rest.annotation, vars(sys.modules[short_form.__module__])).__args__[0]
    written = {name: kind.__forward_arg__ for name, kind in known.__annotations__.items()}
    assert written == options


def test_lang_has_the_names_of_the_language_and_their_arguments() -> None:
    assert set(lang.__all__) == set(INTRINSICS)
    for name, row in INTRINSICS.items():
        if row.role == "math":
            (count,) = row.arities
            values = [3] * count if name == "popcount" else [0.5] * count
            assert getattr(lang, name)(*values) is not None
