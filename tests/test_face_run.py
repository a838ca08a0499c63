"""``msops run``: scripts that import mindspore."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, run_command

from msops import __version__


def msops(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "msops", *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def run(tmp_path):
    """Writes a script and runs it."""

    def write_and_run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "script.py").write_text(code)
        return msops("run", "--device", "CPU", "script.py", *arguments, cwd=tmp_path)

    return write_and_run


def test_every_import_path_means_msops(run):
    done = run(
        """
import mindspore
import mindspore as ms
import mindspore.nn as nn
import mindspore.ops as ops
import mindspore.context as context
import mindspore.common.dtype as mstype
from mindspore import Tensor, Parameter, context as also_context, dtype
from mindspore.common import Tensor as CommonTensor
from mindspore.common.api import jit
from mindspore.common.parameter import Parameter as CommonParameter
from mindspore.common.seed import get_seed, set_seed
from mindspore.nn import Cell
from mindspore.ops import operations as P, functional as F, composite as C
from mindspore.ops import CustomRegOp, DataType, TBERegOp, custom_info_register
from mindspore.ops.op_info_register import op_info_register
from mindspore.ops.operations import _inner_ops as inner
from mindspore.ops.composite.multitype_ops.zeros_like_impl import zeros_like
import msops
assert mindspore is msops and ms.Tensor is CommonTensor is msops.Tensor
assert mindspore.__spec__.name == "msops" and nn.__spec__.name == "msops.nn"
assert also_context is context and dtype is mstype and CommonParameter is Parameter
assert callable(ops.op_info_register)
x = Tensor([1.0, 2.0])
op = inner.ConvertToDynamic(is_dynamic_rank=True).add_prim_attr("primitive_target", "CPU")
assert op(x) is x
print(zeros_like(x), zeros_like((x, [x])), P.Add()(x, x), F.add(x, x), C.GradOperation().get_all)
"""
    )
    assert done.stderr == ""
    assert done.stdout == (
        "[0. 0.] (Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  0.00000000e+00]), "
        "[Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  0.00000000e+00])]) "
        "[2. 4.] [2. 4.] False\n"
    )


def test_is_main_with_its_folder_and_arguments(run, tmp_path):
    (tmp_path / "beside.py").write_text("value = 5\n")
    done = run(
        """
import pickle, sys
import beside

class Thing:
    pass

assert isinstance(pickle.loads(pickle.dumps(Thing())), Thing)
print(__name__, sys.argv, beside.value, __file__)
""",
        "--flag",
        "a b",
    )
    assert done.stdout == "__main__ ['script.py', '--flag', 'a b'] 5 script.py\n"
    assert done.stderr == ""


@pytest.mark.parametrize("code", [pytest.param(0, marks=pytest.mark.slow), 7])
def test_the_exit_code_is_the_scripts(run, code):
    assert run(f"import sys\nsys.exit({code})").returncode == code


def test_a_traceback_begins_in_the_script(run):
    done = run("def f():\n    return 1 / 0\n\nf()\n")
    assert done.returncode == 1
    # Which expressions are underlined differs between Python versions.
    lines = [line for line in done.stderr.splitlines() if line.strip("~^ ")]
    assert lines == [
        "Traceback (most recent call last):",
        '  File "script.py", line 4, in <module>',
        "    f()",
        '  File "script.py", line 2, in f',
        "    return 1 / 0",
        "ZeroDivisionError: division by zero",
    ]


def test_a_script_that_does_not_parse(run):
    done = run("x = (\n")
    assert done.returncode == 1
    assert "msops" not in done.stderr
    assert "SyntaxError" in done.stderr


MISSING = [
    ("from mindspore.ops import Addd", "ImportError", "msops.ops.Addd", "Add"),
    (
        "import mindspore.ops as o; o.ReduceSums",
        "AttributeError",
        "msops.ops.ReduceSums",
        "ReduceSum",
    ),
    ("import mindspore.opps", "ModuleNotFoundError", "msops.opps", "ops"),
    ("from mindspore.nn import Dense", "ImportError", "msops.nn.Dense", ""),
    ("import mindspore.dataset.vision", "ModuleNotFoundError", "msops.dataset", ""),
    ("import mindspore as ms; ms.Tensr", "AttributeError", "msops.Tensr", "Tensor"),
    ("import mindspore.common.initializer", "ModuleNotFoundError", "msops.common", "optax"),
]


def test_what_msops_lacks_is_named(run):
    done = run(
        f"""
import sys
for code in {[code for code, *_ in MISSING]}:
    try:
        exec(code, {{}})
    except Exception as error:  # shown as Python shows what ends a script
        sys.excepthook(type(error), error, error.__traceback__)
    print("END", file=sys.stderr)
"""
    )
    reports = done.stderr.split("END\n")[:-1]
    for (_, error, missing, near), report in zip(MISSING, reports, strict=True):
        assert error in report
        assert f"msops does not have {missing}" in report
        assert near in report


def test_a_missing_name_ends_the_script(run):
    done = run(MISSING[0][0])
    assert done.returncode == 1
    assert "msops does not have msops.ops.Addd. Near names: Add.\n" in done.stderr


SCRIPT = """
import mindspore as ms
import mindspore.common.dtype as mstype
from mindspore import Tensor, nn, ops
from mindspore.ops import operations as P


class Net(nn.Cell):
    def construct(self, x):
        return ms.mint.add(nn.Dense(2, 2)(x), P.Conv2D(1, 2)(x))


def other(ms, x):
    return x


print(mstype.float32, ops.Add()(Tensor([1.0]), Tensor([2.0])), hasattr(ops, "flash"))
if len(nn.__name__) > 99:
    ms.mint.exp(P.Add())
    from mindspore.train.callback import Callback
"""


def test_names_that_msops_lacks_are_reported_at_the_end(run):
    done = run(SCRIPT.replace("def other(ms, x)", "def other(x)"))
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "msops run: script.py asks for names that msops does not have:",
        "  mindspore.mint (line 10, 19)",
        "  mindspore.nn.Dense (line 10)",
        "  mindspore.ops.operations.Conv2D (line 10)",
        "  mindspore.train (line 20)",
        "  mindspore.ops.flash",
    ]


def test_a_name_that_is_also_a_variable_is_left_alone_in_the_report(run):
    assert "mindspore.mint" not in run(SCRIPT).stderr


def test_the_report_comes_after_the_traceback_of_a_script_that_failed(run):
    done = run("from mindspore import ops\nops.Addd()(1)\nops.Subb()(1)\n")
    assert done.returncode == 1
    error, *report = done.stderr.splitlines()[-4:]
    # Python 3.12 and newer add a suggestion of their own.
    assert error.startswith("AttributeError: msops does not have msops.ops.Addd. Near names: Add.")
    assert report == [
        "msops run: script.py asks for names that msops does not have:",
        "  mindspore.ops.Addd (line 2)",
        "  mindspore.ops.Subb (line 3)",
    ]


def test_an_installed_mindspore_is_not_reached(run, tmp_path):
    (tmp_path / "mindspore").mkdir()
    (tmp_path / "mindspore" / "__init__.py").write_text("raise RuntimeError('the real one')\n")
    done = run("import mindspore; print(mindspore.__name__)")
    assert done.stdout == "msops\n"


def test_an_op_without_arrays_returns_tensors_in_a_script(run):
    done = run(
        """
import numpy as np
import mindspore as ms
from mindspore import ops
op = ops.Custom(lambda: np.float32([1, 2]), (2,), ms.float32, "pyfunc")
double = ops.Custom(lambda x: np.float32(2 * x), (), ms.float32, "pyfunc")
print(type(op()).__name__, op(), type(double(3.0)).__name__, double(3.0))
print(isinstance(double(np.float32([3])[0:1].reshape(())), ms.Tensor))
"""
    )
    assert done.stdout == "Tensor [1. 2.] Tensor [6.]\nFalse\n"
    assert done.stderr == ""


def test_the_device_option_wins_over_the_script(run):
    done = run(
        """
import mindspore as ms
ms.set_context(device_target="GPU")
ms.set_device("Ascend")
print(ms.get_context("device_target"), ms.Tensor([1.0]))
"""
    )
    assert done.stdout == "CPU [1.]\n"
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("walk",), "invalid choice: 'walk'"),
        (("run", "none.py"), "no such script: none.py"),
        (("run", "a" * 5000), "no such script, File name too long: aaa"),
        (("run", "--device", "TPU", "none.py"), "'CPU', 'GPU', 'Ascend'"),
        (("a script.py", "--flag"), "did you mean: msops run 'a script.py' --flag\n"),
        (
            ("--device", "CPU", "script.py"),
            "did you mean: msops run --device CPU script.py\n",
        ),
    ],
    ids=["command", "script", "long_script", "device", "forgotten_run", "forgotten_run_device"],
)
def test_wrong_arguments_are_named(arguments, expected, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        run_command(*arguments)
    assert ended.value.code == 2
    assert expected in capsys.readouterr().err


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as ended:
        run_command("--version")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"msops {__version__}\n"


def test_usage(tmp_path):
    bare = msops(cwd=tmp_path)
    assert bare.returncode == 2
    assert "usage: msops" in bare.stdout
    assert "`" not in bare.stdout
