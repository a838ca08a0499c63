"""Scripts of MindSpore's documents, unchanged, through ``python -m msops run --device CPU``.

`seed_documents` takes them out of the programming guide of MindSpore 1.6, and out of the pages on
gradients of 2.2 and 2.3. Where documents are only in print, without indentation or with template
arguments lost, a script of the same parts is written here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from seed_documents import seed

SUM = "[[2. 2.]\n [4. 4.]]\n"
GRADIENT = "[ 2.  8. 18.]\n"
CUBE = """
import mindspore as ms
import numpy as np
from mindspore import nn, ops

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_device("CPU")
slope = ops.Custom(lambda x, dy: 3 * x * x * dy, lambda x, _: x, lambda x, _: x, "pyfunc")


class Cube(nn.Cell):
    def __init__(self):
        super().__init__()
        same = lambda x: x
        self.cube = ops.Custom(lambda x: x**3, same, same, "pyfunc", bprop=self.backward)

    def backward(self, x, out, dout):
        return (slope(x, dout),)

    def construct(self, x):
        return self.cube(x)


x = ms.Tensor(np.array([1.0, 2.0, 3.0], np.float32))
ones = ms.Tensor(np.ones(3, np.float32))
print(ms.grad(Cube())(x))
print(ops.GradOperation(sens_param=True)(Cube())(x, ones))
"""


def run(script: Path, folder: Path) -> str:
    """Runs a script in a folder and returns what it prints."""
    return run_whole(script, folder).stdout


def run_whole(script: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script in a folder and returns what it prints and logs."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "msops", "run", "--device", "CPU", str(script)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


def saved(folder: Path, language: str, *marks: str) -> Path:
    """Returns a script of the documents, in a file."""
    path = folder / "script.py"
    path.write_text(seed(language, *marks))
    return path


def test_pyfunc_add(tmp_path):
    assert run(saved(tmp_path, "python", 'func_type="pyfunc"', "def add("), tmp_path) == SUM


def test_aot_add_prints_the_documented_result(tmp_path):
    # The kernel reads nparam entries of a two-dimensional shape; real MindSpore 2.7.2 prints zeros.
    script = saved(tmp_path, "python", "./add.so:CustomAdd", 'device_target="CPU"')
    (tmp_path / "add.cc").write_text(seed("cpp", "int CustomAdd(", "decltype"))
    subprocess.run(["g++", "--shared", "-fPIC", "-o", "add.so", "add.cc"], cwd=tmp_path, check=True)
    assert run(script, tmp_path) == SUM


@pytest.mark.parametrize(
    "mode", [pytest.param("GRAPH_MODE", marks=pytest.mark.slow), "PYNATIVE_MODE"]
)
def test_gradients_of_a_pyfunc(tmp_path, mode):
    script = tmp_path / "cube.py"
    script.write_text(CUBE.replace("GRAPH_MODE", mode))
    assert run(script, tmp_path) == "[ 3. 12. 27.]\n[ 3. 12. 27.]\n"


TBE = ("python", 'func_type="tbe"')


# At every run the script runs with two calls, below.
@pytest.mark.slow
def test_tbe_add(tmp_path):
    assert run(saved(tmp_path, *TBE), tmp_path) == SUM


def test_tbe_add_says_once_that_there_is_no_ascend(tmp_path):
    text = seed(*TBE)
    call = "    output = op(Tensor(x0), Tensor(x1))\n"
    assert call in text
    script = tmp_path / "twice.py"
    script.write_text(text.replace(call, call + call))
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "msops", "run", str(script)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout == SUM
    assert done.stderr.count("UserWarning") == 1
    assert "guarded by the op info registered for Ascend" in done.stderr


def test_akg_add(tmp_path):
    assert run(saved(tmp_path, "python", 'func_type="akg"', "def add("), tmp_path) == SUM


# The pages of three releases differ in words.
@pytest.mark.parametrize(
    "marks",
    [
        pytest.param(("sens_param", "context.GRAPH_MODE"), id="1.6", marks=pytest.mark.slow),
        pytest.param(("Forward computation of",), id="2.2", marks=pytest.mark.slow),
        pytest.param(("ms.grad(", "自定义算子正向实现"), id="2.3"),
    ],
)
def test_akg_gradient(tmp_path, marks):
    script = saved(tmp_path, "python", "y[i0] = y[i0] * y[i0]", *marks)
    done = run_whole(script, tmp_path)
    assert done.stdout == GRADIENT
    # The documents' forward kernel reads its output before it writes it.
    lines = script.read_text().splitlines()
    (line,) = (n for n, text in enumerate(lines, 1) if text.strip() == "y[i0] = y[i0] * y[i0]")
    assert f"{script}:{line}\n    y[i0] = y[i0] * y[i0]\n" in done.stderr
    assert "nothing has written it before" in done.stderr


@pytest.mark.slow
def test_aicpu_dropout(tmp_path):
    # The library of the script's name comes with msops; one channel is kept or dropped.
    kept = "[[[[2. 2. 2.]\n   [2. 2. 2.]]]]", "[[[[ True  True  True]\n   [ True  True  True]]]]"
    dropped = "[[[[0. 0. 0.]\n   [0. 0. 0.]]]]", "[[[[False False False]\n   [False False False]]]]"
    printed = run(saved(tmp_path, "python", 'func_type="aicpu"'), tmp_path)
    assert printed in [f"output:  {y}\nmask:  {mask}\n" for y, mask in (kept, dropped)]
