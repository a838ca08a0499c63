"""The operators of `make gpu`, lowered for CUDA on a machine that may have no GPU."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROOT
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from quick_cases import one_in

from msops import Custom
from msops.errors import BackendError
from msops.ops import CustomRegOp, DataType

sys.path.insert(0, str(ROOT / "gpu"))
from checks_report import Row, print_report
from checks_table import CHECKS, KERNELS, Check
from run_checks import SCRIPT, SCRIPT_BUILD, run_check

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
DEVICE_CHECKS = [check for check in CHECKS if check.symbols]
# nvcc takes long. What lowers and what refuses looks at no other property of a kernel than these.
QUICK = ("square, aot bprop", "attributes with workspace", "no elements")
HOST_CHECKS = [check for check in CHECKS if not check.symbols]


def named(check: Check) -> str:
    return check.name


each_device_check = pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, marks=() if check.name in QUICK else pytest.mark.slow)
        for check in DEVICE_CHECKS
    ],
    ids=named,
)


def first(x: Any, *_: Any) -> Any:
    return x


def lower_for_cuda(function: Callable[..., Any], *arrays: Any) -> jax.stages.Lowered:
    return jax.jit(function).trace(*arrays).lower(lowering_platforms=("cuda",))


def custom_calls(lowered: jax.stages.Lowered) -> Iterator[dict[str, Any]]:
    """Yields the attributes of each custom call of a program, as plain values."""
    found: list[dict[str, Any]] = []

    def visit(op: Any) -> ir.WalkResult:
        if op.name == "stablehlo.custom_call":
            config = op.attributes["mhlo.backend_config"]
            found.append({"target": op.attributes["call_target_name"].value, **plain(config)})
        return ir.WalkResult.ADVANCE

    lowered.compiler_ir("stablehlo").operation.walk(visit)
    yield from found


def plain(attribute: Any) -> Any:
    """Returns an MLIR attribute as the Python value it was made from."""
    if isinstance(attribute, ir.DictAttr):
        return {entry.name: plain(entry.attr) for entry in attribute}
    if isinstance(attribute, (ir.DenseI64ArrayAttr, ir.DenseF64ArrayAttr)):
        return list(attribute)
    if isinstance(attribute, ir.DenseElementsAttr):
        return np.array(attribute).tolist()
    return attribute.value


@pytest.fixture
def pretend_cuda_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets JAX lower a host callback for CUDA, for which it asks for the running backend.

    It only asks: the program does not depend on the answer.
    """
    backend = jax.devices("cpu")[0].client
    monkeypatch.setattr(mlir.ModuleContext, "get_backend", lambda self, optional=False: backend)


@needs_nvcc
@each_device_check
def test_a_device_kernel_lowers_to_the_custom_call(check: Check) -> None:
    with jax.enable_x64(True):
        inputs = check.inputs(np.random.default_rng(0))
        calls = list(custom_calls(lower_for_cuda(check.make(), *inputs)))
    assert [call["target"] for call in calls] == ["msops_aot"] * len(check.symbols)
    assert [call["symbol"] for call in calls] == list(check.symbols)
    assert {call["library_name"] for call in calls} == {check.source}
    outputs = check.numpy(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    if len(calls) == 1:
        arrays = (*inputs, *outputs)
        assert calls[0]["ranks"] == [array.ndim for array in arrays]
        assert calls[0]["dims"] == [dim for array in arrays for dim in array.shape]
        assert calls[0]["dtypes"] == ",".join(array.dtype.name for array in arrays)


@needs_nvcc
def test_attributes_and_their_defaults_are_in_the_cuda_program() -> None:
    (check,) = (check for check in CHECKS if check.name == "attributes with workspace")
    (call,) = custom_calls(lower_for_cuda(check.make(), jnp.ones((2, 3))))
    assert call["attributes"] == {"scale": 2.5, "epsilon": 1e-6}


@needs_nvcc
def test_a_cuda_program_names_its_library_by_content_alone() -> None:
    (check,) = (check for check in CHECKS if check.name == "add")
    text = lower_for_cuda(check.make(), jnp.ones(3), jnp.ones(3)).as_text()
    assert "msops_aot" in text
    assert str(KERNELS) not in text
    assert "build" not in text


@needs_nvcc
@each_device_check
def test_a_device_kernel_on_the_cpu_is_an_error(check: Check) -> None:
    with (
        jax.enable_x64(True),
        pytest.raises(BackendError) as caught,
        jax.default_device(jax.devices("cpu")[0]),
    ):
        check.make()(*check.inputs(np.random.default_rng(0)))
    assert str(caught.value) == (
        f"Custom '{check.symbols[0]}' on CPU: {check.source} holds GPU code, and the program runs "
        "on the CPU.\nPlace the arrays on a GPU, or register op info for target 'CPU' if "
        f"{check.symbols[0]} is a host function of that library."
    )


def test_a_host_kernel_lowered_for_cuda_is_an_error() -> None:
    op = Custom(f"{KERNELS}/host_clip.cc:HostClip", first, first)
    with pytest.raises(BackendError) as caught:
        lower_for_cuda(op, jnp.ones(3))
    assert str(caught.value) == (
        "Custom 'HostClip' on GPU: host_clip.cc holds no GPU code.\n"
        "Make the op with host=True to run it on the host with a copy each way, give a .cu "
        "kernel, or register op info for target 'GPU' if the library does launch on the GPU."
    )


def test_op_info_for_the_gpu_vouches_for_a_library_without_device_code() -> None:
    info = (
        CustomRegOp("HostClip")
        .input(0, "x")
        .output(0, "y")
        .dtype_format(DataType.F32_Default, DataType.F32_Default)
        .target("GPU")
        .get_op_info()
    )
    op = Custom(f"{KERNELS}/host_clip.cc:HostClip", first, first, reg_info=info)
    (call,) = custom_calls(lower_for_cuda(op, jnp.ones((2, 3))))
    assert (call["target"], call["symbol"]) == ("msops_aot", "HostClip")
    assert (call["ranks"], call["dims"]) == ([2, 2], [2, 3, 2, 3])


@pytest.mark.usefixtures("pretend_cuda_runs")
@pytest.mark.parametrize("check", one_in(3, HOST_CHECKS), ids=named)
def test_host_functions_lower_to_a_host_callback(check: Check) -> None:
    inputs = check.inputs(np.random.default_rng(0))
    calls = list(custom_calls(lower_for_cuda(check.make(), *inputs)))
    assert [call["target"] for call in calls] == ["xla_ffi_python_gpu_callback"]


@pytest.mark.usefixtures("pretend_cuda_runs")
def test_a_host_round_trip_is_said(caplog: pytest.LogCaptureFixture) -> None:
    op = Custom(f"{KERNELS}/host_clip.cc:HostClip", first, first, host=True)
    lower_for_cuda(op, jnp.ones(3))
    assert [record.getMessage() for record in caplog.records if record.name == "msops.aot"] == [
        "Custom 'HostClip' on GPU: runs on the host, with a copy of its arrays each way"
    ]


@pytest.mark.usefixtures("pretend_cuda_runs")
def test_aicpu_ops_say_once_that_they_run_on_the_host(caplog: pytest.LogCaptureFixture) -> None:
    check = next(check for check in HOST_CHECKS if check.name == "aicpu kernel")
    for shape in (3, 4):
        lower_for_cuda(check.make(), jnp.ones(shape, jnp.float32))
    assert [record.getMessage() for record in caplog.records if record.name == "msops.aicpu"] == [
        "aicpu ops run on the host: a program on cuda copies their arrays each way"
    ]


@pytest.mark.parametrize("check", HOST_CHECKS, ids=named)
def test_the_runner_passes_a_right_operator(check: Check) -> None:
    row = run_check(check, jax.devices("cpu")[0])
    assert row.failure == ""
    assert row.error == 0.0
    assert row.call_us is not None
    assert row.call_us > 0


@pytest.mark.parametrize(
    ("numpy", "failure"),
    [
        (lambda x: np.maximum(x, 0) + 1, "largest error"),
        (lambda x: np.full_like(x, np.nan), "largest error nan"),
    ],
)
def test_the_runner_fails_a_wrong_operator(numpy: Callable[..., Any], failure: str) -> None:
    right = next(check for check in HOST_CHECKS if check.source)
    row = run_check(dataclasses.replace(right, numpy=numpy), jax.devices("cpu")[0])
    assert failure in row.failure


def test_the_report_tells_failures_from_passes(capsys: pytest.CaptureFixture[str]) -> None:
    passed = Row("one", 0.0, 12.34, 5.0)
    assert print_report([passed])
    assert not print_report([passed, Row("two", failure="why\nindeed")])
    text = capsys.readouterr().out
    assert "1 of 1 passed" in text
    assert "1 of 2 passed" in text
    assert "| one | passed | 0.0e+00 | 12.3 | 5.0 |" in text
    assert "| two | FAILED |  |  |  |" in text
    assert text.endswith("two:\n    why\n    indeed\n")


def test_a_row_is_printed_before_the_next_check_runs(capsys: pytest.CaptureFixture[str]) -> None:
    def rows() -> Iterator[Row]:
        yield Row("one")
        assert "| one | passed |" in capsys.readouterr().out
        yield Row("two")

    assert print_report(rows())


@needs_nvcc
def test_the_scripts_kernel_compiles_with_its_command(tmp_path: Path) -> None:
    shutil.copytree(SCRIPT, tmp_path, dirs_exist_ok=True)
    subprocess.run(SCRIPT_BUILD, cwd=tmp_path, check=True)
    assert (tmp_path / "affine.so").is_file()
