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


@pytest.mark.parametrize("way", CALLS)
def test_an_error_in_a_script_is_short(way: str, tmp_path: Path) -> None:
    lines = run(KERNEL + CALLS[way], tmp_path)
    assert any("y[i] = x[i] / i" in line for line in lines)
    # Python 3.13 marks the place in the script's line, too.
    assert len(lines) <= (10 if sys.version_info < (3, 13) else 11), lines
    assert not [line for line in lines if "/msops/" in line]


def test_all_frames_are_shown_where_jax_shows_its_own(tmp_path: Path) -> None:
    lines = run(KERNEL + CALLS["eager"], tmp_path, JAX_TRACEBACK_FILTERING="off")
    assert [line for line in lines if "_custom/custom.py" in line]


@pytest.mark.parametrize("way", CALLS)
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
