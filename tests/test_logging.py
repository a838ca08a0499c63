"""What msops says through Python's logging, and that it leaves handlers and levels alone."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROOT
from custom_ops import loops, matmul, solve_lower

from msops import Custom, errors, pyfunc

PAGE = (ROOT / "docs" / "guides" / "environment.md").read_text()
SOURCE = """int F(int n, void **p, int *r, long **s, const char **d, void *stream, void *extra) {
  *(float *)p[1] = 2.0f;
  return 0;
}
"""


def said(caplog: pytest.LogCaptureFixture, logger: str) -> list[tuple[str, str]]:
    return [(r.levelname, r.getMessage()) for r in caplog.records if r.name == logger]


def test_a_build_is_told_with_its_command_and_its_time(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "cache"))
    source = tmp_path / "f.c"
    source.write_text(SOURCE)
    with caplog.at_level(logging.DEBUG, "msops"):
        Custom(f"{source}:F", (1,), jnp.float32)(jnp.zeros(1))
    (began, command), (ended, elapsed) = said(caplog, "msops.toolchain")
    assert (began, ended) == ("DEBUG", "INFO")
    assert re.fullmatch(r"Custom 'F': building f\.so: \S*gcc .*f\.c.*", command)
    assert re.fullmatch(r"Custom 'F': built f\.so in \d+\.\d\d s", elapsed)
    code = f"""
import logging
import jax.numpy as jnp
from msops import Custom
logging.basicConfig(format="%(levelname)s %(message)s", force=True)
logging.getLogger("msops.toolchain").setLevel("DEBUG")
Custom({f"{source}:F"!r}, (1,), jnp.float32)(jnp.zeros(1))
"""
    again = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert again.stderr == "DEBUG Custom 'F': f.so is in the build cache\n"


def test_a_build_that_fails_is_not_called_built(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    source = tmp_path / "wrong.c"
    source.write_text("int F(")
    op = Custom(f"{source}:F", (1,), jnp.float32)
    with caplog.at_level(logging.DEBUG, "msops"), pytest.raises(errors.BuildError):
        op(jnp.zeros(1))
    assert [level for level, _ in said(caplog, "msops.toolchain")] == ["DEBUG"]


def test_what_loops_become_is_told_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    a = jnp.eye(7)
    calls = [(loops(matmul), (a, a)), (loops(solve_lower, "native"), (a, a[0]))]
    with caplog.at_level(logging.INFO, "msops"):
        for op, inputs in calls:
            jax.jit(op).lower(*inputs)
    told = [line for level, line in said(caplog, "msops.loops") if level == "INFO"]
    assert told == [op.explain(*inputs).splitlines()[0] for op, inputs in calls]
    assert told[1] == "Custom 'solve_lower' on CPU: native code, as compile_attrs asks"


IN_A_PROCESS = """
import logging
import jax.numpy as jnp, msops
assert logging.getLogger().handlers == []
for name in ("msops", "msops.loops", "msops.toolchain", "msops.aicpu", "msops.aot"):
    assert logging.getLogger(name).handlers == [] and logging.getLogger(name).level == 0

def half(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] + x[i]
    return y

op = msops.Custom(half, func_type="akg")
for size in (3, 3, 4):
    op(jnp.ones(size))
"""


def test_a_program_that_configures_nothing_sees_warnings_and_each_once(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(IN_A_PROCESS)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr.count("Custom 'half'") == 1
    assert "It reads as 0" in done.stderr


@pytest.mark.parametrize("words", ["ir", "bounds", "ir,bounds", " bounds  ir ", ""])
def test_debug_takes_its_words(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], words: str
) -> None:
    monkeypatch.setenv("MSOPS_DEBUG", words)
    a = jnp.ones((len(words) + 20, len(words) + 20))  # compiled for these words alone
    loops(matmul)(a, a)
    assert ("kernel matmul(" in capfd.readouterr().err) == ("ir" in words)


def test_an_unknown_word_of_debug_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSOPS_DEBUG", "bound,ir")
    with pytest.raises(errors.ArgumentValueError) as caught:
        loops(matmul)(np.eye(3, dtype=np.float32), np.eye(3, dtype=np.float32))
    assert str(caught.value) == (
        "MSOPS_DEBUG: expected words among ir, bounds; got bound.\n"
        "Separate them by commas or spaces."
    )


def test_the_guide_lists_every_logger_and_every_word_of_debug(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (section,) = re.findall(r"^## Logging\n(.*?)(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    listed = set(re.findall(r"^\| `(msops\.\w+)` \|", section, re.MULTILINE))
    sources = [*(ROOT / "msops").rglob("*.py"), *(ROOT / "xla_kernels" / "src").glob("*.cc")]
    made = re.compile(r'(?:getLogger\(|kLogger\[\] = )"(msops[\w.]*)"')
    assert listed == {name for path in sources for name in made.findall(path.read_text())}
    (words,) = re.findall(r"^\| `MSOPS_DEBUG` \| (.*), see .* \|$", PAGE, re.MULTILINE)
    monkeypatch.setenv("MSOPS_DEBUG", "?")
    with pytest.raises(errors.ArgumentValueError) as caught:
        loops(matmul)(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32))
    (expected,) = re.findall("expected words among (.*); got", str(caught.value))
    assert re.findall(r"`(\w+)`", words) == expected.split(", ")


def test_a_kernel_that_is_called_once_for_each_element_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def halve_each(x: np.ndarray) -> np.ndarray:
        return x / np.float32(2)

    op = pyfunc(halve_each, out=lambda x: x)
    with caplog.at_level(logging.INFO, "msops"):
        for rows in (2, 3):
            jax.vmap(op)(np.ones((rows, 2), np.float32))
        jax.vmap(pyfunc(halve_each, out=lambda x: x, vmap="expand_dims"))(
            np.ones((2, 2), np.float32)
        )
    ((level, text),) = said(caplog, "msops.vmap")
    assert level == "INFO"
    assert text.startswith("Custom 'halve_each': jax.vmap calls its kernel once for each element.")
    assert 'pass vmap="expand_dims"' in text
