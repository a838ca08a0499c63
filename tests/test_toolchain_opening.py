"""What opening a library does to the process: constructors that fail, variables that stay."""

from __future__ import annotations

import functools
import subprocess
import warnings
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from aicpu_harness import DOUBLE, info

from msops import Custom
from msops.errors import BuildError
from msops.ops import CustomOpBuilder

KERNEL = """
extern "C" int F(int n, void **p, int *, long **, const char **, void *, void *) {
  static_cast<float *>(p[n - 1])[0] = VALUE;
  return 0;
}
"""
THROWS = """
#include <stdexcept>
static struct Table { Table() { throw std::runtime_error("no table here"); } } table;
"""
WHO_RUNS = "runs the constructors of its global objects, which "


def library(path: Path, source: str, *flags: str) -> Path:
    """Compiles as a user would, by hand."""
    command = ["g++", "-shared", "-fPIC", "-o", path, "-x", "c++", "-", "-x", "none", *flags]
    subprocess.run(command, input=source.encode(), check=True)
    return path


def value(path: Path) -> float:
    return float(Custom(f"{path}:F", [1], np.float32)(jnp.zeros(1))[0])


def refusal(path: Path) -> str:
    with pytest.raises(BuildError) as caught:
        value(path)
    return str(caught.value)


def source_of(body: str) -> str:
    """Returns a kernel whose library runs a statement when it is opened."""
    text = f"#include <unistd.h>\n__attribute__((constructor)) static void f() {{ {body}; }}\n"
    return text + KERNEL.replace("VALUE", "1")


def run_for_a_second(run: Any, *args: Any, timeout: float | None = None, **options: Any) -> Any:
    return run(*args, timeout=timeout and 1, **options)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('throw "text"', "terminates the process"),
        ("__builtin_trap()", "terminates the process"),
        ("_exit(0)", "terminates the process"),
        ("pause()", "does not end within 60 s"),
    ],
)
def test_a_constructor_that_does_not_return_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, said: str
) -> None:
    path = library(tmp_path / "lib.so", source_of(body))
    if "pause" in body:
        # Without the wait.
        monkeypatch.setattr(subprocess, "run", functools.partial(run_for_a_second, subprocess.run))
    assert f"opening lib.so {WHO_RUNS}{said}" in refusal(path)


def test_the_exception_is_named_for_given_libraries_sources_and_dependencies(
    tmp_path: Path,
) -> None:
    source = THROWS + KERNEL.replace("VALUE", "1")
    (tmp_path / "op.cc").write_text(source)
    library(tmp_path / "libdep.so", THROWS)
    for path in (
        library(tmp_path / "lib.so", source),
        tmp_path / "op.cc",
        library(
            tmp_path / "user.so",
            KERNEL.replace("VALUE", "1"),
            "-Wl,--no-as-needed,-rpath,$ORIGIN",
            str(tmp_path / "libdep.so"),
        ),
    ):
        text = refusal(path)
        assert f"opening {path.name} {WHO_RUNS}terminates the process" in text
        assert "what():  no table here" in text


def test_aicpu_libraries_and_extensions_are_tried_too(tmp_path: Path) -> None:
    aicpu = tmp_path / "times.cc"
    aicpu.write_text(THROWS + DOUBLE.replace("FACTOR", "2"))
    op = Custom(str(aicpu), lambda x: x, lambda x: x, "aicpu", reg_info=info("Times"))
    with pytest.raises(BuildError, match="no table here"):
        op(jnp.zeros(1))
    extension = tmp_path / "ext.cc"
    extension.write_text(THROWS)
    with pytest.raises(BuildError, match="no table here"):
        CustomOpBuilder("ext", str(extension)).load()


def test_constructors_that_work_run_in_this_process_too(tmp_path: Path) -> None:
    source = "static struct S { float v; S() : v(3) {} ~S() {} } s;\n"
    assert value(library(tmp_path / "lib.so", source + KERNEL.replace("VALUE", "s.v"))) == 3


def test_libraries_without_code_of_their_own_are_not_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = library(tmp_path / "plain.so", KERNEL.replace("VALUE", "1"))
    with_one = library(tmp_path / "one.so", source_of("getpid()"))
    tried = []
    run = subprocess.run

    def recorded(*args: Any, **options: Any) -> Any:
        tried.append(str(args))
        return run(*args, **options)

    monkeypatch.setattr(subprocess, "run", recorded)
    assert value(plain) == 1
    assert tried == []
    assert value(with_one) == 1
    assert "one.so" in "".join(tried)


INLINE = (
    "struct Config { static inline float scale = SCALE; };\n#include <string>\n"
    + KERNEL.replace("VALUE", "Config::scale + 0 * std::to_string(n).size()")
)


def test_a_rebuilt_library_that_keeps_the_old_values_warns(tmp_path: Path) -> None:
    path = tmp_path / "config.so"
    assert value(library(path, INLINE.replace("SCALE", "2"), "-std=c++17")) == 2
    library(path, INLINE.replace("SCALE", "3"), "-std=c++17")
    with pytest.warns(UserWarning, match="config.so was rebuilt") as caught:
        assert value(path) == 2
    # What of the standard library is unique is the same in every build.
    assert "this process: _ZN6Config5scaleE. They" in str(caught[0].message)
    assert "-fno-gnu-unique" in str(caught[0].message)


def test_a_rebuilt_library_without_unique_variables_does_not_warn(tmp_path: Path) -> None:
    path = tmp_path / "config.so"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (2, 3, 2):
            source = INLINE.replace("SCALE", str(scale))
            assert value(library(path, source, "-std=c++17", "-fno-gnu-unique")) == scale
