"""The documents' scripts, unchanged, through ``python -m msops run --device CPU``.

tests/seeds holds their text: custom_pyfunc.py, custom_aot.py and add.cc from the programming guide
of MindSpore 1.6 (custom_operator_custom.md), pyfunc_grad.py from the advanced page of a later one,
whose indentation was lost in print and is put back. custom_tbe.py, custom_aicpu.py, akg_add.py
and akg_grad_16.py are the guide's, akg_grad_22.py and akg_grad_23.py the advanced pages' of 2.2
and 2.3. function_grad.py and custom_src/function_ops.cpp are the CustomOpBuilder tutorial's of 2.6,
with the template arguments and the header's name that print took for markup put back.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

SEEDS = ROOT / "tests" / "seeds"
SUM = "[[2. 2.]\n [4. 4.]]\n"
GRADIENT = "[ 2.  8. 18.]\n"


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


@pytest.fixture
def add_so(tmp_path):
    """add.so, built with the document's command."""
    command = ["g++", "--shared", "-fPIC", "-o", str(tmp_path / "add.so"), str(SEEDS / "add.cc")]
    subprocess.run(command, check=True)
    return tmp_path / "add.so"


def test_pyfunc_add(tmp_path):
    assert run(SEEDS / "custom_pyfunc.py", tmp_path) == SUM


def test_aot_add_prints_the_documented_result(add_so):
    # The kernel reads nparam entries of a two-dimensional shape; real MindSpore 2.7.2 prints zeros.
    assert run(SEEDS / "custom_aot.py", add_so.parent) == SUM


# At every run the guide's own last lines, below, which are of the same parts.
@pytest.mark.slow
def test_pyfunc_gradient(tmp_path):
    assert run(SEEDS / "pyfunc_grad.py", tmp_path) == GRADIENT


@pytest.mark.parametrize(
    "mode", [pytest.param("GRAPH_MODE", marks=pytest.mark.slow), "PYNATIVE_MODE"]
)
def test_pyfunc_gradient_by_grad_operation_with_sens(tmp_path, mode):
    text = (SEEDS / "pyfunc_grad.py").read_text().replace("GRAPH_MODE", mode)
    plain = "    dx = ms.grad(Net())(ms.Tensor(x))\n"
    assert plain in text
    # The last lines of the guide's own gradient script, whose kernels are akg.
    with_sens = (
        "    sens = np.array([1.0, 1.0, 1.0]).astype(np.float32)\n"
        "    dx = ops.GradOperation(sens_param=True)(Net())(ms.Tensor(x), ms.Tensor(sens))\n"
    )
    script = tmp_path / "sens.py"
    script.write_text(text.replace(plain, with_sens))
    assert run(script, tmp_path) == GRADIENT


# At every run the script runs with two calls, below.
@pytest.mark.slow
def test_tbe_add(tmp_path):
    assert run(SEEDS / "custom_tbe.py", tmp_path) == SUM


def test_tbe_add_says_once_that_there_is_no_ascend(tmp_path):
    text = (SEEDS / "custom_tbe.py").read_text()
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
    assert run(SEEDS / "akg_add.py", tmp_path) == SUM


# The pages of three releases differ in words.
@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(f"akg_grad_{n}", marks=pytest.mark.slow) for n in (16, 22)),
        "akg_grad_23",
    ],
)
def test_akg_gradient(tmp_path, name):
    script = SEEDS / f"{name}.py"
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
    printed = run(SEEDS / "custom_aicpu.py", tmp_path)
    assert printed in [f"output:  {y}\nmask:  {mask}\n" for y, mask in (kept, dropped)]


@pytest.fixture(scope="module")
def folder_of_an_extension(tmp_path_factory):
    """A folder with the sources of function_grad.py, which are built once for all modes."""
    folder = tmp_path_factory.mktemp("extension")
    (folder / "custom_src").symlink_to(SEEDS / "custom_src")
    return folder


# An extension takes long to compile; at every run that of docs/guides/extension.md does, which is
# of the same parts.
@pytest.mark.slow
@pytest.mark.parametrize("mode", [None, "GRAPH_MODE", "PYNATIVE_MODE"])
def test_function_of_an_extension(folder_of_an_extension, mode):
    text = (SEEDS / "function_grad.py").read_text()
    if mode is not None:
        text = text.replace("class MyNet", f"ms.set_context(mode=ms.{mode})\n\nclass MyNet")
    script = folder_of_an_extension / "function_grad.py"
    script.write_text(text)
    assert run(script, folder_of_an_extension) == (
        "out: 12.0\n"
        "grads[0]: (Tensor(shape=[], dtype=Float32, value= 6), "
        "Tensor(shape=[], dtype=Float32, value= 4))\n"
        "grads[1]: (Tensor(shape=[], dtype=Float32, value= 6),)\n"
    )
