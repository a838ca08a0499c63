"""`opcheck` finds what shows only for other inputs, or beside the results; right ops pass."""

from __future__ import annotations

import gc
import logging
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults_elsewhere import FAULTS, RIGHT, Case
from quick_cases import one_in
from test_opcheck import check_one

from msops.testing import opcheck


@pytest.fixture(autouse=True)
def restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Some of these functions change their process, or leave files where it works."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(random, "vonmisesvariate", random.vonmisesvariate)
    limit, level, hook = sys.getrecursionlimit(), logging.root.level, sys.unraisablehook
    threshold = gc.get_threshold()
    yield
    sys.setrecursionlimit(limit)
    gc.set_threshold(*threshold)
    logging.root.setLevel(level)
    sys.unraisablehook = hook


@pytest.mark.parametrize("case", one_in(8, FAULTS), ids=lambda case: case.kind)
def test_a_fault_is_found_by_its_check(case: Case) -> None:
    finding = check_one(case.op(), case.by, *case.args)
    assert finding.verdict == "failed", finding


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("case", one_in(8, RIGHT), ids=lambda case: case.kind)
def test_a_right_op_passes(case: Case) -> None:
    report = opcheck(case.op(), *case.args)
    assert report.ok, report
