"""A user's error shows the user's frames; those of msops are hidden as JAX hides its own."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from quick_cases import one_in

import msops

X = jnp.ones(3)
KERNEL = """
import jax, jax.numpy as jnp, msops
from msops.lang import output_tensor

@msops.kernel
def k(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = x[i] / i
    return y
"""
CALLS = {"jit": "jax.jit(k)(jnp.ones(3))", "eager": "k(jnp.ones(3))"}
NOTEBOOK = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor", history_length=0)
for cell in sys.argv[1:]:
    shell.run_cell(cell, store_history=True)
"""


OPS = """
import jax, jax.numpy as jnp, msops
from msops.lang import output_tensor

jax.config.update("jax_cpu_enable_async_dispatch", False)
scalar = jax.ShapeDtypeStruct((), jnp.float32)
source = 'extern "C" int fails(int, void **, int *, long **, const char **, void *, void *) '
source = msops.source(source + '{ return 7; }', 'fails')

@msops.kernel
def kernel(x):
    y = output_tensor((), x.dtype)
    for i in range(x.shape[0]):
        y[()] = x[i] / i
    return y

@msops.pyfunc(out=scalar, bprop=lambda x, out, dout: (dout * x,))
def pyfunc(x):
    return {}["weights"]

cpp = msops.cpp(source, out=scalar, bprop=lambda x, out, dout: (dout * x,))
x = jnp.ones(3)
"""
WAYS = {
    "jit": "jax.jit({op})(x)",
    "grad": "jax.value_and_grad({op})(x)",
    "jit of grad": "jax.jit(jax.value_and_grad({op}))(x)",
    "vmap": "jax.vmap({op})(jnp.stack([x, x]))",
}
EACH = {
    f"{op}: {way}": call.format(op=op)
    for op in ("kernel", "pyfunc", "cpp")
    for way, call in WAYS.items()
}
# Each call as a file of its own, which is shown as Python shows it when it ends.
IN_ONE_PROCESS = """
import runpy, sys, traceback
for path in sys.argv[1:]:
    try:
        runpy.run_path(path)
    except Exception as error:
        own = [f for f in traceback.extract_tb(error.__traceback__) if "runpy" not in f.filename]
        shown = traceback.TracebackException.from_exception(error)
        shown.stack = traceback.StackSummary.from_list(own[1:])
        print("".join(shown.format()), end="")
    print("====")
"""


def run(script: str, folder: Path, *arguments: str, **settings: str) -> list[str]:
    """Returns the lines that a script shows."""
    path = folder / "script.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", path, *arguments],
        env={**os.environ, "IPYTHONDIR": str(folder), **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    return (done.stdout + done.stderr).splitlines()


@pytest.mark.parametrize("way", one_in(2, CALLS))
def test_an_error_in_a_script_is_short(way: str, tmp_path: Path) -> None:
    lines = run(KERNEL + CALLS[way], tmp_path)
    assert any("y[i] = x[i] / i" in line for line in lines)
    # Python 3.13 marks the place in the script's line, too.
    assert len(lines) <= (10 if sys.version_info < (3, 13) else 11), lines
    assert not [line for line in lines if "/msops/" in line]


def sections_of(lines: list[str]) -> list[list[str]]:
    """Returns the lines before each line of ====."""
    sections: list[list[str]] = [[]]
    for line in lines:
        if line == "====":
            sections.append([])
        else:
            sections[-1].append(line)
    return sections[:-1]


def test_an_error_of_each_kind_of_op_is_short_under_each_transformation(tmp_path: Path) -> None:
    paths = [tmp_path / f"call{number}.py" for number in range(len(EACH))]
    for path, call in zip(paths, EACH.values(), strict=True):
        path.write_text(f"{OPS}{call}\n")
    sections = sections_of(run(IN_ONE_PROCESS, tmp_path, *map(str, paths)))
    for name, lines in zip(EACH, sections, strict=True):
        # With the two lines of JAX's own that say what it removed. Where no program of jit raises,
        # the error has what the function raised as its cause, which Python shows in four lines.
        most = 14 if name == "pyfunc: grad" else 10
        assert 5 <= len(lines) <= (most if sys.version_info < (3, 13) else most + 1), (name, lines)
        assert not [line for line in lines if "/msops/" in line], (name, lines)


def test_an_error_of_each_kind_of_op_is_short_in_a_notebook(tmp_path: Path) -> None:
    pytest.importorskip("IPython", reason="pip install .[notebook]")
    cells = [cell for call in EACH.values() for cell in (call, "print('====')")]
    sections = sections_of(run(NOTEBOOK, tmp_path, OPS, *cells))
    for name, lines in zip(EACH, sections, strict=True):
        assert 5 <= len(lines) <= 30, (name, lines)
        assert not [line for line in lines if "/msops/" in line], (name, lines)


def test_all_frames_are_shown_where_jax_shows_its_own(tmp_path: Path) -> None:
    lines = run(KERNEL + CALLS["eager"], tmp_path, JAX_TRACEBACK_FILTERING="off")
    assert [line for line in lines if "_custom/custom.py" in line]


@pytest.mark.parametrize("way", one_in(2, CALLS, first=1))
def test_an_error_in_a_notebook_is_short(way: str, tmp_path: Path) -> None:
    pytest.importorskip("IPython", reason="pip install .[notebook]")
    lines = run(NOTEBOOK, tmp_path, KERNEL, CALLS[way])
    assert "Convert one: float32(i)." in lines[-1]
    assert len(lines) <= 30, lines
    assert not [line for line in lines if "/msops/" in line]


def files_of(error: BaseException) -> list[str]:
    return [frame.filename for frame in traceback.extract_tb(error.__traceback__)]


def test_an_op_that_cannot_be_made_shows_where_it_is_made() -> None:
    for make in (
        lambda: msops.kernel(lambda x: x),
        lambda: msops.kernel(vmap="none")(lambda x: x),
        lambda: msops.pyfunc(np.sin),
        lambda: msops.cpp(np.sin),
        lambda: msops.Custom(3),
    ):
        with pytest.raises(msops.errors.MsopsError) as caught:
            make()
        assert set(files_of(caught.value)) == {__file__}


def test_frames_of_a_users_function_stay() -> None:
    def rule(x: jax.Array, out: jax.Array, dout: jax.Array) -> tuple[jax.Array]:
        return {}["no such key"]

    op = msops.pyfunc(np.sin, out=lambda x: x, bprop=rule)
    with pytest.raises(KeyError) as caught:
        jax.grad(lambda x: op(x).sum())(X)
    files = files_of(caught.value)
    assert files[-1] == __file__
    assert not [file for file in files if "/msops/" in file]


def test_a_fault_of_msops_shows_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msops._custom.custom.sort_arguments", None)
    with pytest.raises(TypeError) as caught:
        msops.pyfunc(np.sin, out=lambda x: x)(X)
    assert files_of(caught.value)[-1].endswith("_custom/custom.py")
