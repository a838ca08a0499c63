"""The loop kernels of `make gpu`: the same checks on the CPU, and their programs for CUDA."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable

import jax
import numpy as np
import pytest
from conftest import ROOT
from loop_corpus import BY_NAME, CORPUS, Case
from quick_cases import in_turn, one_in
from test_cuda_loops import needs_nvrtc
from test_gpu_lowering import custom_calls, lower_for_cuda

sys.path.insert(0, str(ROOT / "gpu"))
import checks_loops
import checks_programs
from checks_loops import (
    BESIDE,
    LOWERINGS,
    has_gradient,
    loop_checks,
    loop_op,
    run_gradient_check,
    run_loop_check,
    run_speed_check,
)
from checks_programs import program_checks

CPU = jax.devices("cpu")[0]
FEW = [
    BY_NAME[name] for name in ("softmax_row", "horner", "matmul", "scatter_add", "lu", "viterbi")
]
each_lowering = pytest.mark.parametrize("lowering", LOWERINGS)


def named(case: Case) -> str:
    return case.name


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_loops, "_SIZE", 9)
    monkeypatch.setattr(checks_loops, "_TIMED_CALLS", 1)


@pytest.mark.parametrize(
    ("case", "lowering"), in_turn([pytest.param(case, id=case.name) for case in FEW], LOWERINGS)
)
def test_a_right_kernel_passes(case: Case, lowering: str) -> None:
    assert run_loop_check(case, lowering, CPU).failure == ""
    assert run_gradient_check(case, lowering, CPU).failure == ""


@pytest.mark.slow
@each_lowering
@pytest.mark.parametrize("case", CORPUS, ids=named)
def test_every_kernel_passes(case: Case, lowering: str) -> None:
    assert run_loop_check(case, lowering, CPU).failure == ""
    if has_gradient(case):
        assert run_gradient_check(case, lowering, CPU).failure == ""


@pytest.mark.parametrize("name", one_in(2, BESIDE))
def test_what_one_would_write_computes_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _, by_hand = BESIDE[name]
    monkeypatch.setitem(BESIDE, name, (20, by_hand))
    row = run_speed_check(name, CPU)
    assert row.call_us is not None
    assert row.beside_us is not None


@pytest.mark.parametrize(
    ("name", "size", "form"), [("lu", 9, "native"), ("outer_product", 2500, "xla")]
)
def test_a_row_names_the_form_that_is_chosen(
    monkeypatch: pytest.MonkeyPatch, name: str, size: int, form: str
) -> None:
    monkeypatch.setattr(checks_loops, "_SIZE", size)
    rows = {lowering: run_loop_check(BY_NAME[name], lowering, CPU).name for lowering in LOWERINGS}
    assert [lowering for lowering, row in rows.items() if row.endswith(", chosen")] == [form]


@pytest.mark.parametrize(
    "run", [checks_programs.in_a_loop, checks_programs.under_vmap, checks_programs.out_of_range]
)
def test_programs_with_kernels_are_right(run: Callable[[jax.Device], float]) -> None:
    assert run(CPU) < 1e-6


def test_a_wrong_program_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks_programs, "of_a_module", lambda device: math.nan)
    (run,) = (run for name, run in program_checks(CPU) if name == "module of CustomOpBuilder")
    assert "largest error nan" in run().failure


def test_a_wrong_kernel_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    case = BY_NAME["softmax_row"]
    wrong = dataclasses.replace(case, reference=lambda a: np.tril(case.reference(a)))
    with pytest.raises(AssertionError):
        run_loop_check(wrong, "native", CPU)
    right = checks_loops._gradients
    monkeypatch.setattr(
        checks_loops,
        "_gradients",
        lambda case, inputs, lowering, device: [
            array * (1.001 if lowering == "native" else 1)
            for array in right(case, inputs, lowering, device)
        ],
    )
    assert "largest error" in run_gradient_check(case, "native", CPU).failure
    assert run_gradient_check(case, "xla", CPU).failure == ""


def test_every_case_has_its_rows_in_every_form() -> None:
    names = [name for name, _ in loop_checks(CPU)]
    assert len(set(names)) == len(names)
    for lowering in LOWERINGS:
        assert {f"{case.name}, {lowering}" for case in CORPUS} <= set(names)
        assert f"lu, {lowering}, gradient" in names
    assert "matmul, beside jnp" in names


@pytest.mark.parametrize("case", FEW, ids=named)
def test_raised_kernels_are_operations_for_cuda(case: Case) -> None:
    inputs = case.inputs(np.random.default_rng(0), 9)
    lowered = lower_for_cuda(loop_op(case, len(inputs), "xla"), *inputs)
    assert not [call for call in custom_calls(lowered) if call["target"].startswith("msops")]


@needs_nvrtc
@pytest.mark.parametrize("case", FEW, ids=named)
def test_native_kernels_are_calls_for_cuda(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSOPS_CUDA_ARCH", "sm_90")
    inputs = case.inputs(np.random.default_rng(0), 9)
    (call,) = custom_calls(lower_for_cuda(loop_op(case, len(inputs), "native"), *inputs))
    assert call["target"].startswith("msops_loops_cuda")


@needs_nvrtc
def test_the_gradient_of_what_has_an_order_is_a_call_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSOPS_CUDA_ARCH", "sm_90")
    case = BY_NAME["lu"]
    op = loop_op(case, 1, "native")
    lowered = lower_for_cuda(
        jax.value_and_grad(lambda a: op(a).sum()), *case.inputs(np.random.default_rng(0), 9)
    )
    calls = list(custom_calls(lowered))
    assert len(calls) == 2
    assert all(call["target"].startswith("msops_loops_cuda") for call in calls)
