"""Several processes that run one program together, over `jax.distributed`."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from conftest import ROOT

EXAMPLE = ROOT / "examples" / "data_parallel.py"
PAGE = (ROOT / "docs" / "guides" / "processes.md").read_text()

# Starting them takes a quarter of a minute.
pytestmark = pytest.mark.slow


def environment() -> dict[str, str]:
    paths = [str(EXAMPLE.parent), str(ROOT / "tests"), str(ROOT), *filter(None, sys.path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def free_address() -> str:
    with socket.socket() as free:
        free.bind(("localhost", 0))
        return f"localhost:{free.getsockname()[1]}"


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("data_parallel", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_together(steps: int) -> list[dict[str, Any]]:
    """Returns what two processes got that ran together, and trained for some steps."""
    script, address = str(ROOT / "tests" / "two_processes.py"), free_address()
    children = [
        subprocess.Popen(
            [sys.executable, script, address, str(number), str(steps)],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    with children[0], children[1]:
        try:
            answers = [child.communicate(timeout=100) for child in children]
        finally:
            for child in children:
                child.kill()
    for child, (_, stderr) in zip(children, answers, strict=True):
        assert child.returncode == 0, stderr[-4000:]
    return [json.loads(stdout.splitlines()[-1]) for stdout, _ in answers]


@pytest.fixture(scope="module")
def reports() -> list[dict[str, Any]]:
    return run_together(steps=0)


def test_two_processes_train_to_the_losses_of_one(example: ModuleType) -> None:
    alone = example.train(10)
    assert alone[-1] < alone[0] / 2
    for report in run_together(steps=10):
        assert report["processes"] == 2
        np.testing.assert_allclose(report["losses"], alone, rtol=1e-4)


def test_functions_and_runners_that_are_equal_everywhere_run(reports: list[dict[str, Any]]) -> None:
    for report, half in zip(reports, ([0.0, 1.0], [2.0, 3.0]), strict=True):
        assert report["equal functions"] == [2 * x for x in half]
        assert report["equal functions by rule"] == [-x for x in half]
        assert report["equal runners"] == [3 * x for x in half]
        assert report["equal again"] == [2 * x + 1 for x in half]
    assert reports[0]["own"] == [-1.0, -1.0]


DIFFERENT = (
    r"{who}: expected all processes that run its program together to call the same {what}; got:\n"
    r"  process 0: (?P<first>{first})\n"
    r"  process 1: (?P<second>{second})\n"
    r"Define and call the same functions in the same order in every process\."
)


def test_different_functions_are_an_error_in_every_process(reports: list[dict[str, Any]]) -> None:
    for report, name in zip(reports, ("triple", "halve"), strict=True):
        text = DIFFERENT.format(
            who=f"Custom '{name}' on CPU",
            what="Python functions",
            first="triple-[0-9a-f]{16}-0",
            second="halve-[0-9a-f]{16}-0",
        )
        assert re.fullmatch(text, report["different functions"]), report["different functions"]
        assert report["different functions again"] == report["different functions"]


def test_so_are_those_of_programs_that_xla_divides(reports: list[dict[str, Any]]) -> None:
    for report, name in zip(reports, ("square", "root"), strict=True):
        text = DIFFERENT.format(
            who=f"Custom '{name}' on CPU",
            what="Python functions",
            first="square-[0-9a-f]{16}-0",
            second="root-[0-9a-f]{16}-0",
        )
        found = report["different functions by rule"]
        assert re.fullmatch(text, found), found


def test_different_runners_are_an_error_in_every_process(reports: list[dict[str, Any]]) -> None:
    number = r"[0-9a-f]{16}/Axpy/\d"
    who = r"Runner 'Axpy' of extension module 'tests_runners'"
    text = DIFFERENT.format(who=who, what="runners", first=number, second=number)
    for report in reports:
        found = re.fullmatch(text, report["different runners"])
        assert found, report["different runners"]
        assert found["first"] != found["second"]


def test_a_process_that_comes_alone_does_not_wait_for_ever(reports: list[dict[str, Any]]) -> None:
    """The other one calls a function that was found equal before, so it has nothing to wait for."""
    text = DIFFERENT.format(
        who="Custom 'exp' on CPU",
        what="Python functions",
        first="exp-[0-9a-f]{16}-0",
        second=r"did not come within 300 s",
    )
    assert re.fullmatch(text, reports[0]["alone"]), reports[0]["alone"]
    assert reports[1]["alone"] == [4.0, 6.0]


def test_the_example_starts_its_processes() -> None:
    def losses(*args: str) -> list[float]:
        done = subprocess.run(
            [sys.executable, str(EXAMPLE), "--steps=40", *args],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout)]

    alone = losses()
    assert len(alone) > 5
    np.testing.assert_allclose(losses("--processes=2"), alone, atol=2e-6)


def changed_lines() -> tuple[list[str], list[str]]:
    """Returns the lines that the page takes out, and those it puts in."""
    (diff,) = re.findall(r"^```diff\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    lines = diff.splitlines()
    return tuple([line[1:].strip() for line in lines if line.startswith(sign)] for sign in "-+")


def test_the_lines_of_the_page_are_those_between_one_process_and_several(
    tmp_path: Path, example: ModuleType
) -> None:
    removed, added = changed_lines()
    source = EXAMPLE.read_text()
    assert all(line in source for line in added)
    # The example as it was before: for one process.
    text = source.replace(added[-1], removed[-1])
    before: dict[str, Any] = {"__name__": "before", "__file__": str(EXAMPLE)}
    exec(compile(text, "before.py", "exec"), before)
    assert before["train"](3) == example.train(3)
