"""``msops doctor``: what is there, what is amiss, and what to do."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import pytest
from conftest import run_command

from msops._toolchain.languages import CXX, C
from msops._tools.doctor import compiler_text

pytestmark = pytest.mark.usefixtures("quick_builds")


def told(capsys: pytest.CaptureFixture[str], code: int) -> dict[str, str]:
    """Runs the doctor; returns what it says of each thing."""
    with pytest.raises(SystemExit) as ended:
        run_command("doctor")
    assert ended.value.code == code
    lines = re.sub(r"\n {13}", "; ", capsys.readouterr().out).splitlines()
    return {line[:12].strip(): line[13:] for line in lines}


@pytest.mark.slow
def test_a_machine_that_runs_these_tests_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, 0)
    assert lines["JAX"].startswith(f"{jax.__version__}, jaxlib ")
    assert re.search(r"XLA FFI 0\.\d+$", lines["JAX"])
    assert str(len(jax.devices())) in lines["devices"]
    assert re.search(r"\d+\.\d+", lines["g++"])
    assert "writable" in lines["cache"]
    assert {name for name, text in lines.items() if text == "an op ran"} >= {
        "aicpu",
        "akg",
        "aot",
        "hybrid",
        "pyfunc",
        "tbe",
    }
    assert "opcheck" in lines["crashes"]
    assert list(lines)[-1] == "All well."


def test_a_missing_compiler_is_told_with_its_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    lines = told(capsys, 1)
    assert lines["g++"].startswith("AMISS: ")
    assert "no-such-compiler" in lines["g++"]
    assert "Install it (Debian, Ubuntu: apt-get install g++" in lines["g++"]
    assert lines["aot"].startswith("AMISS: Custom 'Negate'")
    assert lines["aicpu"].startswith("not here: ")
    assert lines["pyfunc"] == "an op ran"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (
            "gcc (Debian 12.2.0-14+deb12u1) 12.2.0",
            ["mask of the first vector", "-0.25 is -0.0", "overlaps"],
        ),
        ("gcc (Debian 11.3.0-12) 11.3.0", ["mask of the first vector", "overlaps"]),
        ("gcc (GCC) 15.1.0", []),
        ("clang version 12.0.1", []),
    ],
)
def test_known_faults_of_a_compiler_are_told(
    text: str, known: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    owner = "" if "clang" in text else "\nCopyright (C) Free Software Foundation, Inc."
    compiler = tmp_path / "cc"
    compiler.write_text(f"#!/bin/sh\necho '{text}{owner}'\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    of_c = compiler_text(C)
    assert of_c.startswith(text)
    assert of_c.count("known: ") == of_c.count("Generated C avoids it") == len(known)
    for words in known:
        assert words in of_c
    monkeypatch.setenv("CXX", str(compiler))
    assert compiler_text(CXX) == "\n".join(
        [text, *[" " * 13 + "known: what is known of gcc"] * bool(known)]
    )
    monkeypatch.setenv("CC", "no-such-compiler")
    assert compiler_text(CXX) == of_c


def test_a_cache_that_cannot_be_written_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path / "file"))
    lines = told(capsys, 1)
    assert lines["cache"].startswith("AMISS: msops: the cache folder")
    assert "Set MSOPS_CACHE_DIR" in lines["aot"]


@pytest.mark.slow
def test_a_module_that_is_newer_than_jaxlib_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    header = tmp_path / "xla" / "ffi" / "api" / "c_api.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define XLA_FFI_API_MAJOR 0\n#define XLA_FFI_API_MINOR 0\n")
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: str(tmp_path))
    lines = told(capsys, 1)
    assert "jaxlib has 0.0, which refuses what is newer" in lines["C++ module"]
