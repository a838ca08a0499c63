"""Kernels and scripts that nobody here wrote, as they were published.

They are no part of the repository. An environment variable names the folder of each collection,
and where it does not, its tests are skipped: ``MSOPS_TEST_LOOPS``, ``MSOPS_TEST_AKG``,
``MSOPS_TEST_SCRIPTS``, ``MSOPS_TEST_TUTORIALS`` and ``MSOPS_TEST_TBE``. BUILD_NOTES.md says where
they come from; AICPU kernels are in test_aicpu_corpus.py. What is known to fail is in a table, with
the reason, and a test fails as well when something of a table begins to work.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
from conftest import ROOT

import msops

pytestmark = pytest.mark.slow


def folder_of(collection: str) -> Path | None:
    """Returns the folder that the variable of a collection names."""
    named = os.environ.get(f"MSOPS_TEST_{collection}")
    return Path(named).absolute() if named else None


def needs(collection: str) -> pytest.MarkDecorator:
    reason = f"MSOPS_TEST_{collection} names no folder"
    return pytest.mark.skipif(folder_of(collection) is None, reason=reason)


LOOPS, AKG, TBE = (folder_of(name) or Path() for name in ("LOOPS", "AKG", "TBE"))
SCRIPTS, TUTORIALS = (folder_of(name) or Path() for name in ("SCRIPTS", "TUTORIALS"))


def run(folder: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs this Python with `arguments` in `folder`."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", **environment},
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )


def names_of(collection: str) -> list[str]:
    folder = folder_of(collection)
    return sorted(path.stem for path in folder.glob("*.py")) if folder else []


def check_failures(failures: Mapping[str, str], known: Mapping[str, tuple[str, str]]) -> None:
    """Fails unless what failed is exactly what is known to, with the text that is known.

    Args:
      failures: by name, what was reported.
      known: by name, a pattern of the report, and the reason.
    """
    new = {name: text for name, text in failures.items() if name not in known}
    assert not new, "\n".join(f"{name}: {text}" for name, text in new.items())
    works = known.keys() - failures.keys()
    assert not works, f"these work now; take them out of the table: {sorted(works)}"
    other = {
        name: failures[name]
        for name, (pattern, _) in known.items()
        if not re.search(pattern, failures[name])
    }
    assert not other, f"these fail in another way than the table says: {other}"


# Loop kernels.

PARTS = 8


def loop_kernels(condition: str, part: int) -> list[str]:
    """Returns every PARTS-th of the kernels for which `condition` holds."""
    code = (
        "import kernels.polybench, kernels.more\n"
        "from kernels.case import CASES\n"
        f"print(*(name for name, case in CASES.items() if {condition}))"
    )
    done = run(LOOPS, "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[part::PARTS]


@needs("LOOPS")
@pytest.mark.parametrize("part", range(PARTS))
def test_loop_kernels_compute_what_numpy_does(part: int, tmp_path: Path) -> None:
    names = loop_kernels("True", part)
    done = run(tmp_path, LOOPS / "correctness.py", *names)
    assert done.returncode == 0, done.stderr[-4000:]
    rows = json.loads((tmp_path / "correctness.json").read_text())
    assert {row[0] for row in rows} == set(names)
    # Called as plain Python, a function without a decorator does not know the names of kernels.
    wrong = [row for row in rows if row[4] != "ok" and (row[0], row[3]) != ("lstm", "plain")]
    assert not wrong, done.stdout


# A quarter of them: all take several minutes.
@needs("LOOPS")
@pytest.mark.parametrize("part", [0, 5])
def test_loop_kernels_have_the_gradients_of_finite_differences(part: int, tmp_path: Path) -> None:
    names = loop_kernels("case.grad", part)
    assert names
    done = run(tmp_path, LOOPS / "gradients.py", "--forms=chosen", *names)
    assert done.returncode == 0, done.stderr[-4000:]
    wrong = re.findall(r"^\S+ +\S+ +\S+ +(?:WRONG|ERROR) .*$", done.stdout, re.MULTILINE)
    assert not wrong, "\n".join(wrong)


# AKG's own operators.

NOT_THERE = "the corpus lacks a module that the operator's file imports"
AKG_FAILURES = {
    "math.greater_equal.greater_equal[cce]": ("float16", "for cce it takes float16 alone"),
    "math.notequal.not_equal[cce]": ("float16", "for cce it takes float16 alone"),
    "math.ascend.sum_others.sum_by_shape": (
        "expected a tensor or several",
        "it returns an element of a tensor, as if its own sum returned a list",
    ),
    "array.reshape.reshape[cuda]": ("No module named 'utils'", NOT_THERE),
    "array.unsorted_segment_sum.unsorted_segment_sum[cuda]": (
        "No module named 'utils'",
        NOT_THERE,
    ),
    "array.gpu.gather_nd.gather_nd": ("No module named 'utils'", NOT_THERE),
    "array.gpu.squeeze.squeeze": ("No module named 'utils'", NOT_THERE),
    "array.gpu.tensor_scatter_add.tensor_scatter_add": ("No module named 'utils'", NOT_THERE),
    "test_op.ascend.softmax_grad.softmax_grad": ("No module named 'utils'", NOT_THERE),
    "test_op.ascend.eltwise.eltwise": (
        "'function' object has no attribute 'addn'",
        "it takes a function for the module of that name",
    ),
    "test_op.ascend.fused_layernorm.fused_layernorm[first]": (
        "8 elements of shape",
        "it gives one row the shape of all",
    ),
    "test_op.ascend.cholesky.cholesky": (
        "undeclared variable: res",
        "it writes to a tensor that it has not declared",
    ),
    "test_op.ascend.IOU_for_train.iou_for_train": (
        "batch_size, boxes, 8",
        "the case gives boxes of four numbers",
    ),
    "test_op.ascend.detection_four2five.detection_four2five": (
        "provide 3 indices; got 2",
        "the case gives three dimensions, the operator takes two",
    ),
}


@needs("AKG")
@pytest.mark.parametrize("part", ["math.", "array. nn.", "test_op."])
def test_operators_of_akg_compute_what_numpy_does(part: str, tmp_path: Path) -> None:
    pytest.importorskip("decorator", reason="AKG's own files import decorator")
    done = run(tmp_path, AKG / "akg_ops.py", *part.split())
    assert done.returncode == 0, done.stderr[-4000:]
    rows = json.loads((tmp_path / "akg_1.json").read_text())
    failures = {name: text for name, verdict, text, _ in rows if verdict not in ("ok", "ran")}
    known = {
        name: row for name, row in AKG_FAILURES.items() if name.startswith(tuple(part.split()))
    }
    assert known.keys() <= {name for name, *_ in rows}
    check_failures(failures, known)


# Scripts.

NO_FILE = "it names a file that its page does not have"
SCRIPT_FAILURES = {
    **dict.fromkeys(
        ["1211054756", "ce1b2e512b"],
        ("NameError: name 'sin_by_numpy'", "it goes on where another block of its page ends"),
    ),
    **dict.fromkeys(
        ["42cc5d43f2", "86f1c2d1b3"], ("NameError: name 'ops'", "it does not import what it uses")
    ),
    "2857f6221b": ("has no kernel Abs", "its library is built by the reader of its page"),
    "2da21a667d": ("leaky_relu_cpu.so", "its library has headers of torch, which is not here"),
    "d4df51fbff": ("function_ops.cpp", NO_FILE),
    **dict.fromkeys(
        ["f46f9d0898", "ff03a4f8b2"], ("Write the kernel as one of", "it is a kernel in Julia")
    ),
}


def provide_libraries(script: Path, folder: Path) -> None:
    """Builds the libraries that a script names, as its page says, from the sources beside it."""
    for name, symbol in re.findall(r'"\./(\w+\.so):(\w+)"', script.read_text()):
        for source in script.parent.glob("*.cc"):
            text = source.read_text()
            if f"int {symbol}(" in text and "__global__" not in text and "torch" not in text:
                command = ["g++", "-shared", "-fPIC", "-o", folder / name, source]
                subprocess.run(command, check=True)


def script_error(script: Path, folder: Path, *arguments: str) -> tuple[str, str]:
    """Returns what a script printed, and how it ended if that is an error."""
    shutil.copytree(script.parent, folder, dirs_exist_ok=True)
    done = run(folder, "-m", "msops", "run", "--device", "CPU", script.name, *arguments)
    return done.stdout, done.stderr[-4000:] if done.returncode else ""


@needs("TUTORIALS")
@pytest.mark.parametrize("name", names_of("TUTORIALS"))
def test_a_block_of_a_tutorial_runs(name: str, tmp_path: Path) -> None:
    script = TUTORIALS / f"{name}.py"
    provide_libraries(script, tmp_path)
    _, error = script_error(script, tmp_path)
    known = {name: SCRIPT_FAILURES[name]} if name in SCRIPT_FAILURES else {}
    check_failures({name: error} if error else {}, known)


@needs("TUTORIALS")
def test_the_table_names_scripts_that_are_there() -> None:
    assert set(SCRIPT_FAILURES) <= set(names_of("TUTORIALS"))


GRAPH_AND_PYNATIVE = ("graph", "pynative")
SIX_SCALARS = "".join(
    f"float32/1 {kind}/0 float32/1 \n" for kind in ("float32", "int64", "bool") * 2
)
TEN = "[10. 10. 10.] [20. 20. 20.]\n"
# What MindSpore 2.7.2 prints; its own words for Tensors where those are as long as here.
PRINTED = {
    ("aicpu_str", ""): "[(1, 1, 2, 3), (1, 1, 2, 3)]\n",
    ("cell_bprop", "graph"): TEN,
    ("cell_bprop", "pynative"): TEN,
    ("mini_subclass", ""): "[2. 2. 2.]\n",
    ("scalar_dtype", "graph"): SIX_SCALARS,
    ("scalar_dtype", "pynative"): SIX_SCALARS,
    ("side_effect", "graph"): "[1] [3]\n[4] [6]\n[7] [9]\n",
    ("side_effect", "pynative"): "[1] [3]\n[4] [6]\n[7] [9]\n",
}


@needs("SCRIPTS")
@pytest.mark.parametrize(("name", "mode"), PRINTED)
def test_a_small_script_prints_what_mindspore_does(name: str, mode: str, tmp_path: Path) -> None:
    script = SCRIPTS / f"{name}.py"
    assert script_error(script, tmp_path, *mode.split()) == (PRINTED[name, mode], "")


@needs("SCRIPTS")
def test_constants_of_numpy_are_promoted_as_numpy_1_does(tmp_path: Path) -> None:
    printed, error = script_error(SCRIPTS / "np2.py", tmp_path)
    assert not error
    numbers = [float(text) for text in re.findall(r"-?\d+\.\d+(?=[ \]])", printed)]
    x = np.linspace(-1, 1, 4)
    gelu = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(numbers[-8:], [*gelu, *(x / np.linalg.norm(x) * 2)], rtol=1e-6)


@needs("SCRIPTS")
def test_every_small_script_has_a_test() -> None:
    assert {name for name, _ in PRINTED} | {"np2"} == set(names_of("SCRIPTS"))


# Kernels in the TBE DSL.


@dataclasses.dataclass(frozen=True)
class Formula:
    """What a kernel computes.

    Attributes:
      function: of one array.
      limit: the largest argument that is tested. Most kernels, as they were published, are wrong
        beyond theirs: a table of theirs is, or a factor exp(x) or 1 / sqrt(x) is missing. The same
        steps in numpy's float32 give the same numbers.
    """

    function: Callable[..., Any]
    limit: float


def dsl_kernel(name: str, out_shape: Any, out_dtype: Any) -> Any:
    """Returns the op of a kernel, whose file and function have the same name."""
    return msops.Custom(f"{TBE / name}.py:{name}", out_shape, out_dtype, "tbe")


FORMULAS = {
    "bessel_i0": Formula(scipy.special.i0, 20),
    "bessel_i1": Formula(scipy.special.i1, 8),
    "bessel_j0": Formula(scipy.special.j0, 5),
    "bessel_j1": Formula(scipy.special.j1, 5),
    "bessel_k0": Formula(scipy.special.k0, 20),
    "bessel_k0e": Formula(scipy.special.k0e, 2),
    "bessel_k1": Formula(scipy.special.k1, 20),
    "bessel_k1e": Formula(scipy.special.k1e, 2),
    "bessel_y0": Formula(scipy.special.y0, 7.9),
    "bessel_y1": Formula(scipy.special.y1, 7.9),
}


@needs("TBE")
@pytest.mark.parametrize("name", FORMULAS)
def test_a_bessel_kernel_is_scipys_function(name: str) -> None:
    formula = FORMULAS[name]
    x = np.linspace(0.05, formula.limit, 200, dtype=np.float32)
    op = dsl_kernel(name, lambda x: x, lambda x: x)
    expected = formula.function(x.astype(np.float64))
    np.testing.assert_allclose(op(jnp.asarray(x)), expected, rtol=2e-5, atol=2e-5)


@needs("TBE")
def test_a_kernel_for_channels_computes_its_formula() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(2, 20, 3, 4)).astype(np.float32)
    batch, running = random.uniform(0.5, 1.5, size=(2, 20)).astype(np.float32)
    op = dsl_kernel("correction_mul", lambda x, *_: x, lambda x, *_: x)
    expected = x * (batch / running)[:, None, None]
    np.testing.assert_allclose(op(x, batch, running, 1), expected, rtol=1e-5)


@needs("TBE")
def test_a_kernel_with_two_results_computes_its_formula() -> None:
    x = np.random.default_rng(1).normal(size=(2, 20, 3, 4)).astype(np.float32)
    low, high = np.float32([-1]), np.float32([1])
    op = dsl_kernel(
        "minmax_update_perlayer", lambda x, a, b, *_: (a, b), lambda x, a, b, *_: (a, b)
    )
    got = op(x, low, high, True, 0.9)
    np.testing.assert_allclose(got[0], 0.9 * low + 0.1 * min(x.min(), 0), rtol=1e-5)
    np.testing.assert_allclose(got[1], 0.9 * high + 0.1 * max(x.max(), 0), rtol=1e-5)
