"""The benchmark that compares this tree's loop compiler with another tree's: its parts."""

from __future__ import annotations

import dataclasses
import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

BENCHMARKS = ROOT / "benchmarks"
ADD_ONE = """
int add(int n, void** p, int* ndims, long** shapes, const char** dtypes, void* s, void* e) {
  const float* x = p[0];
  float* y = p[1];
  // Without turns it leaves the result alone.
  for (int turn = 0; turn < TURNS; ++turn)
    for (int i = 0; i < 1000; ++i) y[i] = x[i] + (ADDED);
  return CODE;
}
"""


@pytest.fixture(scope="module")
def modules() -> Iterator[dict[str, ModuleType]]:
    """The benchmark's modules by name."""
    sys.path.insert(0, str(BENCHMARKS))
    names = ("against", "program_times", "tree_programs", "settings")
    try:
        yield {name: importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(str(BENCHMARKS))


def program(modules: dict[str, ModuleType], label: str = "loops:add", **changes: Any) -> Any:
    whole = [((1000,), "float32")]
    made = modules["tree_programs"].Program(
        label, "", "", "add", (), whole, whole, 1.0, 1.0, 1, 1.0
    )
    return dataclasses.replace(made, **changes)


def built(modules: dict[str, ModuleType], folder: Path, **values: str) -> Any:
    """Returns a program that adds a number to an array, in some turns."""
    words = {"ADDED": "1", "TURNS": "1", "CODE": "0", **values}
    library = folder / f"{'_'.join(words.values())}.so"
    flags = [f"-D{name}={value}" for name, value in words.items()]
    command = ["gcc", "-O1", "-shared", "-fPIC", *flags, "-xc", "-", "-o", str(library)]
    subprocess.run(command, input=ADD_ONE, text=True, check=True)
    return program(modules, path=str(library))


def compared(modules: dict[str, ModuleType], label: str, ratio: float, **kept: Any) -> Any:
    programs = {tree: program(modules, label) for tree in ("this", "other")}
    seconds = {"this": ratio, "other": 1.0}
    made = modules["against"].Compared(programs, False, seconds, True)
    return dataclasses.replace(made, **kept)


def test_programs_take_turns_in_one_process(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    programs = {"this": built(modules, tmp_path, TURNS="9"), "other": built(modules, tmp_path)}
    inputs = [np.arange(1000, dtype=np.float32)]
    found = modules["program_times"].in_turns(programs, inputs, seconds=0.01)
    assert found.agree
    assert 4 < found.seconds["this"] / found.seconds["other"] < 20


def test_results_that_differ_are_found(modules: dict[str, ModuleType], tmp_path: Path) -> None:
    inputs = [np.arange(1000, dtype=np.float32)]
    right = built(modules, tmp_path)
    for wrong in (built(modules, tmp_path, ADDED="i"), built(modules, tmp_path, TURNS="0")):
        programs = {"this": right, "other": wrong}
        assert not modules["program_times"].in_turns(programs, inputs, seconds=0).agree


def test_a_kernel_that_reports_an_error_is_not_timed(
    modules: dict[str, ModuleType], tmp_path: Path
) -> None:
    failing = {"this": built(modules, tmp_path, CODE="1")}
    with pytest.raises(RuntimeError, match="loops:add: the kernel reports an error"):
        modules["program_times"].in_turns(failing, [], seconds=0)


def test_verdicts_name_what_is_slower_than_it_may_be(modules: dict[str, ModuleType]) -> None:
    kernels = [
        compared(modules, "loops:slow", 1.2),
        compared(modules, "nests:slow", 1.2),
        compared(modules, "nests:slower", 1.5, agree=False),
        compared(modules, "akg:same", 9.0, is_same=True, seconds={}),
        compared(modules, "tests:quick", 0.25),
    ]
    mean, first, most, passes, memory, results = modules["against"].verdicts(
        kernels, {"this": 90.0, "other": 100.0}
    )
    assert mean.endswith("**met (at most 0.884)**")  # (1.2 * 1.2 * 1.5 * 0.25) ** (1 / 5)
    assert first.endswith("**missed: 1.200 at loops:slow**")
    assert most.endswith("**missed: 1.500 at nests:slower**")
    assert passes.endswith("**missed: 1.000 at all**")
    assert memory.endswith("**met (at most 0.900)**")
    assert results == "Results that differ: nests:slower"


@pytest.mark.slow
def test_a_tree_compiles_kernels_in_a_process_of_its_own(
    modules: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MSOPS_TEST_LOOPS", "MSOPS_TEST_AKG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    label = "loops:softmax@0"
    found = modules["tree_programs"].programs_of({"this": sys.executable}, [label])
    (made,) = found["this"].values()
    assert made.label == label
    assert made.parameters == made.outputs == [[[64, 64], "float32"]]
    assert Path(made.path).exists()
    assert min(made.pass_seconds, made.compiler_seconds, made.length, made.peak_mib) > 0
    inputs = [np.ones((64, 64), np.float32)]
    assert modules["program_times"].in_turns({"this": made}, inputs, 0).agree


def test_against_wants_a_tree(tmp_path: Path) -> None:
    command = [sys.executable, str(BENCHMARKS / "run.py"), "against", "--results", str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "against needs --tree FOLDER" in ended.stderr
    assert not list(tmp_path.iterdir())
