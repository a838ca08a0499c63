"""The table of planted faults: `opcheck` finds those that it says, and none in healthy kernels."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import faults_elsewhere
import numpy as np
import pytest
from conftest import ROOT
from fault_table import FAULTS, HEALTHY, Fault, X
from quick_cases import one_in

from msops import Custom
from msops.testing import opcheck

PAGE = ROOT / "docs" / "tutorial" / "opcheck.md"
ROWS = {fault.name: fault for fault in (*FAULTS, *HEALTHY)}
# One of each way in which faults are found that nothing else tests. They run in this process, so
# they leave it as it was.
FAST = (
    *("KeepsFirstSize", "WritesShapes", "SixteenBitSizeZeroed", "BoolOfTwo", "UninitialisedHeap"),
    *(
        "RedirectsOutput",
        "LeavesSignalHandler",
        "IntegersOfFourBytesReadAsFloats",
        "raises_at_call_fifty",
    ),
    *("FirstRowZeroRest", "HealthyTypes"),
)
PARTS = 6


def came_first(fault: Fault, checks: set[str]) -> bool:
    """Returns whether what came first in reports is what the table says."""
    return bool(checks) if fault.by == "any" else checks == ({fault.by} if fault.by else set())


@pytest.mark.parametrize("name", one_in(6, FAST))
def test_a_fault_is_found_by_the_check_that_the_table_names(name: str) -> None:
    report = ROWS[name].check()
    assert came_first(ROWS[name], {finding.check for finding in report.failures[:1]}), report


def test_a_python_function_meets_special_values_and_large_arrays() -> None:
    met: set[str] = set()  # not the arrays: memory that each call keeps is a fault

    def twice(x: np.ndarray) -> np.ndarray:
        found = {"NaN": np.isnan(x).any(), "negative": (x < 0).any(), "large": x.size > 100_000}
        met.update(name for name, is_met in found.items() if is_met)
        return 2 * x

    report = opcheck(
        Custom(twice, lambda x: x, lambda x: x), X, skip=["gradient", "vmap", "eager and jit"]
    )
    assert report.ok, report
    assert report["values"].verdict == "passed"
    assert met == {"NaN", "negative", "large"}


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_the_whole_table_is_found_as_it_says(part: int, tmp_path: Path) -> None:
    """In a process of its own: some of these functions change theirs."""
    names = list(ROWS)[part::PARTS]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("fault_table.py")), "1", *names],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    # Kernels that print do so on the same stream, and may end within a line.
    found = (line.partition('{"name"') for line in done.stdout.splitlines())
    lines = [json.loads(name + rest) for _, name, rest in found if name]
    assert len(lines) >= len(names)
    wrong = [line for line in lines if not came_first(ROWS[line["name"]], set(line["by"]))]
    assert not wrong


def test_the_page_names_each_class_of_the_table_and_the_check_that_finds_it() -> None:
    text = PAGE.read_text()
    missing = [row for row in page_rows() if row not in text.splitlines()]
    assert not missing
    section = text.split("### Faults, class by class")[1].split("\n### ")[0]
    assert (
        len([line for line in section.splitlines() if line.startswith("| ")])
        == len(page_rows()) + 1
    )


def page_rows() -> list[str]:
    """Returns the rows of the page's table, a class once."""
    shown = {"": "not found", "any": "several, by what it hits"}
    return list(
        dict.fromkeys(
            f"| {fault.kind} | {shown.get(fault.by, fault.by)} |"
            for fault in (*FAULTS, *faults_elsewhere.FAULTS)
        )
    )
