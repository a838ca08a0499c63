"""The TBE kernels of `make gpu`: the same checks on the CPU, and their programs for CUDA."""

from __future__ import annotations

import dataclasses
import sys

import jax
import pytest
from conftest import ROOT
from quick_cases import one_in
from tbe_corpus import CASES, Case

sys.path.insert(0, str(ROOT / "gpu"))
from checks_tbe import run_tbe_check, tbe_checks

CPU = jax.devices("cpu")[0]
FEW = [case for case in CASES if case.file in ("add3", "bn_infer", "row_norm", "blocked_product")]


@pytest.mark.parametrize("case", one_in(2, FEW), ids=str)
def test_a_right_kernel_passes_and_lowers_for_cuda(case: Case) -> None:
    assert run_tbe_check(case, str(case), CPU).failure == ""
    lowered = jax.jit(case.op()).trace(*case.inputs()).lower(lowering_platforms=("cuda",))
    assert "msops" not in lowered.as_text()


@pytest.mark.slow
def test_every_kernel_passes() -> None:
    failures = [row.failure for row in (run() for _, run in tbe_checks(CPU)) if row.failure]
    assert failures == []


def test_a_wrong_kernel_is_noticed() -> None:
    wrong = dataclasses.replace(FEW[0], numpy=lambda a, b, c: a + b - c)
    with pytest.raises(AssertionError):
        run_tbe_check(wrong, "wrong", CPU)
