"""`opcheck` finds what shows only for other inputs, or beside the results; right ops pass."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator

import pytest
from faults_elsewhere import FAULTS, RIGHT, Case, left
from quick_cases import one_in
from test_opcheck import check_one

from msops.testing import opcheck


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Some of these functions change their process."""
    limit, level, hook = sys.getrecursionlimit(), logging.root.level, sys.unraisablehook
    yield
    sys.setrecursionlimit(limit)
    logging.root.setLevel(level)
    sys.unraisablehook = hook
    for name in left:
        with contextlib.suppress(FileNotFoundError):
            os.remove(name)
    left.clear()


@pytest.mark.parametrize("case", one_in(8, FAULTS), ids=lambda case: case.kind)
def test_a_fault_is_found_by_its_check(case: Case) -> None:
    finding = check_one(case.op(), case.by, *case.args)
    assert finding.verdict == "failed", finding


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", one_in(8, RIGHT), ids=lambda case: case.kind)
def test_a_right_op_passes(case: Case) -> None:
    report = opcheck(case.op(), *case.args)
    assert report.ok, report
