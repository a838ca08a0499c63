"""What is built: the source and binary distributions, the module, the tasks, the build notes."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT

import msops

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGED = ("pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", ".gitignore")
# Left by other builds in the source tree, or by Python; none may reach a user.
STALE = ("msops/_native.cpython-39-x86_64-linux-gnu.so", "msops/include/old.h", "msops/old.pyc")

needs_tasks = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def distributions_of(checkout: Path, *options: str) -> Path:
    """Returns a folder with the sdist, and the wheel built from that, of a copy of the checkout."""
    for module in ("build", "cmake", "ninja", "pybind11", "scikit_build_core"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install -e .[dev]")
    for name in PACKAGED:
        shutil.copy(ROOT / name, checkout)
    for name in ("msops", "xla_kernels"):
        ignored = shutil.ignore_patterns("*.so", "__pycache__")
        shutil.copytree(ROOT / name, checkout / name, ignore=ignored)
    for name in STALE:
        (checkout / name).parent.mkdir(exist_ok=True)
        (checkout / name).write_bytes(b"stale")
    # The pinned jaxlib is for released builds; headers of the installed one do here.
    command = [sys.executable, "-m", "build", "--no-isolation", "--skip-dependency-check"]
    environment = {**os.environ, "PATH": f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"}
    done = subprocess.run(
        [*command, *(f"--config-setting={option}" for option in options)],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return checkout / "dist"


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist and a wheel without what CMake adds, which takes more than a minute to compile."""
    return distributions_of(tmp_path_factory.mktemp("checkout"), "wheel.cmake=false")


@pytest.fixture(scope="module")
def whole_wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    # Nothing here depends on how fast the module is, and the optimiser takes most of the time.
    folder = distributions_of(
        tmp_path_factory.mktemp("whole"), "cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O0"
    )
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> zipfile.ZipFile:
    (path,) = distributions.glob("*.whl")
    return zipfile.ZipFile(path)


def checkout_files(*patterns: str) -> set[str]:
    return {
        path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)
    }


def test_the_wheel_holds_the_python_files_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == checkout_files("msops/**/*.py", "msops/py.typed")


@pytest.mark.slow
def test_the_whole_wheel_holds_the_package_and_nothing_else(whole_wheel: zipfile.ZipFile) -> None:
    names = {name for name in whole_wheel.namelist() if ".dist-info/" not in name}
    modules = {name for name in names if name.startswith("msops/_native.")}
    assert modules == {f"msops/_native{sysconfig.get_config_var('EXT_SUFFIX')}"}
    assert names - modules == checkout_files("msops/**/*.py", "msops/py.typed") | added_by_cmake()


def added_by_cmake() -> set[str]:
    return {
        name.replace("xla_kernels/", "msops/")
        for name in checkout_files("xla_kernels/include/**/*.*", "xla_kernels/aicpu/**/*.*")
    }


def test_the_wheel_says_what_it_needs_and_its_licence(wheel: zipfile.ZipFile) -> None:
    (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    text = wheel.read(metadata).decode()
    assert f"Requires-Python: {PROJECT['project']['requires-python']}\n" in text
    required = re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", text, re.MULTILINE)
    needed = ["flatbuffers", "islpy", "jax", "jaxlib", "numpy", "pybind11", "pyyaml"]
    assert sorted(required) == needed
    assert "License-Expression: Apache-2.0\n" in text
    (licence,) = (name for name in wheel.namelist() if name.endswith("/LICENSE"))
    assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()


def test_the_sdist_holds_the_sources_and_no_builds(distributions: Path) -> None:
    (path,) = distributions.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "CMakeLists.txt", "LICENSE"} <= names
    assert checkout_files("msops/**/*.py", "xla_kernels/**/*.*") <= names
    assert names.isdisjoint(STALE)


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_a_manylinux_wheel_runs_the_readme_in_a_new_environment(
    version: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [ROOT / "tools" / "make_wheels.sh", tmp_path / "wheels", version],
        capture_output=True,
        text=True,
        check=False,
    )
    if "skipped" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "wheels").glob("*.whl")
    tag = "cp" + version.replace(".", "")
    assert re.fullmatch(rf"msops-.*-{tag}-{tag}-manylinux_2_\d+_x86_64\.whl", path.name)
    python = subprocess.check_output(
        [ROOT / "tools" / "find_python.sh", f"python{version}"], text=True
    ).strip()
    subprocess.run([python, "-m", "venv", tmp_path / "new"], check=True)
    new = tmp_path / "new" / "bin" / "python"
    # The newest JAX that the wheel allows.
    subprocess.run([new, "-m", "pip", "install", "--quiet", path], check=True)
    (tmp_path / "readme").mkdir()
    script = (
        "import pathlib, sys\n"
        "from documents import run_document\n"
        "print(run_document(pathlib.Path(sys.argv[1]).read_text(), pathlib.Path.cwd()))\n"
        "import msops; print(msops.__file__)\n"
    )
    ran = subprocess.run(
        [new, "-c", script, ROOT / "README.md"],
        cwd=tmp_path / "readme",
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    checked, file = ran.stdout.splitlines()[-2:]
    assert int(checked) > 2
    assert file.startswith(str(tmp_path / "new"))
    shown = subprocess.check_output([new.with_name("msops"), "--help"], text=True)
    assert "doctor" in shown


@pytest.mark.slow
def test_an_installed_wheel_builds_and_runs_a_kernel(
    whole_wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    whole_wheel.extractall(tmp_path / "site")
    check_that_a_kernel_builds_and_runs(tmp_path / "site")


def test_an_installed_package_builds_and_runs_a_kernel(
    wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    """The wheel's Python files, and what CMake adds to them, of the build of this environment."""
    version = "cp{}{}".format(*sys.version_info)
    built = [path.parent for path in ROOT.glob(f"build/{version}-{version}-*/cmake_install.cmake")]
    if not built:
        pytest.skip("this environment's module was built elsewhere")
    site = tmp_path / "site"
    wheel.extractall(site)
    cmake = Path(sysconfig.get_path("scripts")) / "cmake"
    subprocess.run([cmake, "--install", built[0], "--prefix", site], check=True)
    added = {path.relative_to(site).as_posix() for path in site.glob("msops/**/*.*")}
    added -= checkout_files("msops/**/*.py", "msops/py.typed")
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    assert added == {f"msops/_native{suffix}", *added_by_cmake()}
    check_that_a_kernel_builds_and_runs(site)


def check_that_a_kernel_builds_and_runs(site: Path) -> None:
    """Checks that the package in a folder uses its own files alone."""
    (site.parent / "scale.cc").write_text(
        '#include "custom_aot_extra.h"\n'
        'extern "C" int Scale(int, void** p, int*, int64_t**, const char**, void*, void* extra) {\n'
        '  const float by = static_cast<AotExtra*>(extra)->Attr<float>("by");\n'
        "  for (int i = 0; i < 3; ++i) "
        "static_cast<float*>(p[1])[i] = by * static_cast<const float*>(p[0])[i];\n"
        "  return 0;\n"
        "}\n"
    )
    script = (
        "import jax.numpy as jnp, msops\n"
        "print(msops.__file__)\n"
        "print(msops.get_include())\n"
        "op = msops.Custom('scale.cc:Scale', lambda x: x, lambda x: x)\n"
        "print(op.add_prim_attr('by', 2.5)(jnp.arange(3.0)).tolist())\n"
    )
    # -S leaves out .pth files, by which an editable install would come first.
    paths = [str(site), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        cwd=site.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    package = site / "msops"
    assert done.stdout.splitlines() == [
        str(package / "__init__.py"),
        str(package / "include"),
        "[0.0, 2.5, 5.0]",
    ]


def printed_of_module(*command: str) -> str:
    """Returns what a program of binutils prints of the module."""
    module = importlib.util.find_spec("msops._native")
    assert module is not None
    assert module.origin is not None
    done = subprocess.run([*command, module.origin], capture_output=True, text=True, check=True)
    return done.stdout


def test_the_module_exports_only_its_entry_and_needs_only_the_toolchains_libraries() -> None:
    exports = printed_of_module("nm", "-D", "--defined-only").splitlines()
    assert [line.split()[-1] for line in exports] == ["PyInit__native"]
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", printed_of_module("readelf", "-dW"))
    named = {name.partition(".so")[0] for name in needed}
    assert named
    # Neither Python, nor jaxlib, nor CUDA: one build serves them all.
    assert named <= {
        "libstdc++",
        "libgcc_s",
        "libc",
        "libm",
        "libdl",
        "libpthread",
        "ld-linux-x86-64",
    }


def test_get_include_has_the_header_of_the_sources() -> None:
    header = Path(msops.get_include()) / "custom_aot_extra.h"
    source = ROOT / "xla_kernels" / "include" / "custom_aot_extra.h"
    assert header.read_bytes() == source.read_bytes()


def test_released_builds_use_the_headers_of_the_oldest_supported_jaxlib() -> None:
    (pinned,) = (r for r in PROJECT["build-system"]["requires"] if r.startswith("jaxlib"))
    (supported,) = (r for r in PROJECT["project"]["dependencies"] if r.startswith("jax>"))
    assert pinned.removeprefix("jaxlib==") == re.findall(r">=([\d.]+)", supported)[0]


@needs_tasks
def test_make_lists_every_task() -> None:
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = set(re.findall(r"^make (\S+) +\S", done.stdout, re.MULTILINE))
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert {*listed, "FORCE"} == set(phony.split())


def test_ci_runs_what_a_developer_runs() -> None:
    text = (ROOT / ".ci" / "run").read_text()
    assert "set -euo pipefail\n" in text
    assert text.endswith("\nmake lint test\n")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


RUN_THIS_PYTHON = f'exec {sys.executable} "$@"'
# Fails as the version check makes an old one fail, and answers what version it is.
OLD_PYTHON = 'case "$2" in *platform*) echo 3.9.2 ;; *) exit 1 ;; esac'


def tools_folder(folder: Path, **scripts: str) -> Path:
    """Returns a folder for PATH with the shell's usual tools and the scripts given."""
    folder.mkdir()
    for name in ("dirname", "grep", "id", "make", "sh"):
        (folder / name).symlink_to(shutil.which(name) or "/bin/false")
    for name, body in scripts.items():
        path = folder / name.replace("__", "++").replace("_", "-")
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    return folder


def check_prerequisites(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "tools" / "check_prerequisites.sh"), *arguments],
        env={"PATH": str(folder), "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@needs_tasks
def test_prerequisites_that_are_there_are_found(tmp_path: Path) -> None:
    folder = tools_folder(
        tmp_path / "bin", g__="echo 12.2.0", python3=f'exec {sys.executable} "$@"'
    )
    done = check_prerequisites(folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{folder}/python3\n"
    assert [line.split()[0] for line in done.stderr.splitlines()] == ["found"] * 5


@needs_tasks
@pytest.mark.parametrize(
    ("scripts", "line"),
    [
        (
            {"python3": "exit 1", "apt_get": ""},
            "MISSING  Python 3.11 or newer: {sudo}apt-get install python3 python3-venv python3-dev",
        ),
        ({"python3": "exit 1", "dnf": ""}, "{sudo}dnf install python3 python3-devel"),
        ({"apt_get": ""}, "MISSING  g++: {sudo}apt-get install g++"),
        ({}, "MISSING  g++: install g++ (Debian, Ubuntu) or gcc-c++ (Fedora) with your package"),
        (
            {
                "g__": "[ $1 = --version ] && echo Free Software Foundation || echo 9.4.0",
                "apt_get": "",
            },
            "MISSING  g++ 11 or newer (found 9.4.0): {sudo}apt-get install g++-12, then make "
            "CXX=g++-12",
        ),
    ],
    ids=["python", "fedora", "compiler", "other_system", "old_compiler"],
)
def test_a_missing_prerequisite_is_one_line_with_its_fix(
    scripts: dict[str, str], line: str, tmp_path: Path
) -> None:
    working = {"python3": RUN_THIS_PYTHON}
    if "python3" in scripts:
        working["g__"] = "echo 12.2.0"
    done = check_prerequisites(tools_folder(tmp_path / "bin", **{**working, **scripts}))
    assert done.returncode == 1
    assert done.stdout == ""
    missing = [text for text in done.stderr.splitlines() if text.startswith("MISSING")]
    assert len(missing) == 1
    assert line.format(sudo="" if os.getuid() == 0 else "sudo ") in missing[0]


@needs_tasks
@pytest.mark.parametrize(
    ("scripts", "named", "line"),
    [
        (
            {},
            "python2",
            "(PYTHON=python2 does not run): {sudo}apt-get install python3 python3-venv",
        ),
        (
            {"python3": OLD_PYTHON},
            "",
            "(python3 is 3.9.2): {sudo}apt-get install python3.11 python3.11-venv python3.11-dev, "
            "or a newer one in the same way",
        ),
        (
            {"python3.9": OLD_PYTHON},
            "python3.9",
            "(PYTHON=python3.9 is 3.9.2): {sudo}apt-get install python3.11 python3.11-venv "
            "python3.11-dev, or a newer one in the same way, then make without PYTHON=python3.9",
        ),
        (
            {"python3.9": OLD_PYTHON, "python3": RUN_THIS_PYTHON},
            "python3.9",
            "(PYTHON=python3.9 is 3.9.2): make without PYTHON=python3.9, which finds "
            "{folder}/python3",
        ),
    ],
    ids=["none", "old_python3", "old_named", "named_beside_one_that_serves"],
)
def test_a_python_that_does_not_serve_is_told_with_its_version(
    scripts: dict[str, str], named: str, line: str, tmp_path: Path
) -> None:
    folder = tools_folder(tmp_path / "bin", g__="echo 12.2.0", apt_get="", **scripts)
    done = check_prerequisites(folder, *filter(None, [named]))
    assert done.returncode == 1
    assert done.stdout == ""
    line = line.format(sudo="" if os.getuid() == 0 else "sudo ", folder=folder)
    assert f"MISSING  Python 3.11 or newer {line}" in done.stderr


OVERRUNNING_KERNEL = """\
#include <cstdint>

extern "C" int Add(int nparam, void** params, int* ndims, int64_t** shapes, const char** dtypes,
                   void* stream, void* extra) {
  const auto* x = static_cast<const float*>(params[0]);
  const auto* y = static_cast<const float*>(params[1]);
  auto* z = static_cast<float*>(params[2]);
  for (int64_t i = 0; i <= shapes[2][0]; ++i) z[i] = x[i] + y[i];
  return 0;
}
"""


def run_from_guide(mark: str, folder: Path) -> str:
    """Runs the command block of the debugging guide that holds `mark`; returns all it printed."""
    page = (ROOT / "docs" / "guides" / "debugging.md").read_text()
    scripts = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (script,) = (script for script in scripts if "sys.argv[1]" in script)
    blocks = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    (block,) = (block for block in blocks if mark in block)
    (folder / "add.cc").write_text(OVERRUNNING_KERNEL)
    (folder / "use_add.py").write_text(script)
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e"],
        input=block,
        cwd=folder,
        env={**os.environ, "PATH": path, "MSOPS_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def sanitizer_is_there() -> bool:
    compiler = shutil.which("g++")
    if compiler is None:
        return False
    command = [compiler, "-print-file-name=libasan.so"]
    return "/" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not sanitizer_is_there(), reason="g++ has no address sanitizer")
@pytest.mark.parametrize(
    "mark",
    [
        pytest.param('CXX="g++ -g -fsanitize', id="source", marks=pytest.mark.slow),
        pytest.param("g++ -g -O1 -fsanitize", id="library"),
    ],
)
@pytest.mark.slow
def test_the_sanitizer_commands_of_the_guide_find_an_overrun(mark: str, tmp_path: Path) -> None:
    output = run_from_guide(mark, tmp_path)
    assert "heap-buffer-overflow" in output
    assert re.search(r"in Add \S*add\.cc:8", output)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed")
def test_the_debugger_command_of_the_guide_stops_in_the_kernel(tmp_path: Path) -> None:
    output = run_from_guide("gdb ", tmp_path)
    assert re.search(r"Breakpoint 1, Add \(nparam=3, .*\) at add\.cc:5", output)
    assert '"float32"' in output
