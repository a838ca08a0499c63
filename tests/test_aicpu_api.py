"""The AICPU headers by themselves: every name kernels use compiles, and does what it says."""

from __future__ import annotations

import importlib.metadata
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT

HEADERS = ROOT / "xla_kernels" / "include" / "aicpu"
API = ROOT / "tests" / "aicpu_probes" / "api.cc"
# Parts of the API that need Eigen say so, and are not there without it.
NAMES = sorted(str(path.relative_to(HEADERS)) for path in HEADERS.rglob("*.h"))


def eigen_flags() -> list[str]:
    package = importlib.metadata.distribution("cmeel-eigen")
    folder = Path(str(package.locate_file("cmeel.prefix/include/eigen3")))
    assert (folder / "Eigen" / "Core").is_file()
    return ["-isystem", str(folder)]


def compile_cpp(*arguments: str) -> None:
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}"]
    done = subprocess.run(["g++", *flags, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("with_eigen", [pytest.param(True, marks=pytest.mark.slow), False])
def test_every_name_of_the_api_compiles_and_does_what_it_says(tmp_path, with_eigen: bool) -> None:
    program = str(tmp_path / "api")
    compile_cpp(str(API), "-o", program, *(eigen_flags() if with_eigen else []))
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.stdout == "0 wrong\n"
    assert done.returncode == 0
    # Without msops, errors go to the standard error, and nothing else does.
    assert "OldChecks: null 1\n" in done.stderr
    assert "NewChecks: error\n" in done.stderr
    assert "debug" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_header_stands_alone(tmp_path: Path, name: str) -> None:
    source = tmp_path / "alone.cc"
    source.write_text(f'#include "{name}"\n#include "{name}"\n')
    compile_cpp("-fsyntax-only", str(source), *eigen_flags())


@pytest.mark.slow
def test_headers_compile_as_cpp20(tmp_path: Path) -> None:
    source = tmp_path / "all.cc"
    source.write_text("".join(f'#include "{name}"\n' for name in reversed(NAMES)))
    compile_cpp("-fsyntax-only", "-std=c++20", str(source), *eigen_flags())


LOOP = """
#include "inc/ms_cpu_kernel.h"
#include "utils/kernel_util.h"
namespace { const char* const kAdd = "Add"; }
class Add : public aicpu::CpuKernel {
  uint32_t Compute(aicpu::CpuKernelContext& ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, aicpu::NormalMathCheck(ctx), "[%s] check failed.", kAdd);
    CUST_KERNEL_LOG_DEBUG(ctx, "%u inputs", ctx.GetInputsSize());
    if (ctx.GetAttr("scale") != nullptr) return ctx.GetAttr("scale")->GetInt() != 1;
    const auto* x = static_cast<const float*>(ctx.Input(0)->GetData());
    const auto* y = static_cast<const float*>(ctx.Input(1)->GetData());
    auto* sum = static_cast<float*>(ctx.Output(0)->GetData());
    const int64_t count = ctx.Output(0)->NumElements();
    for (int64_t i = 0; i < count; ++i) sum[i] = x[i] + y[i];
    return 0;
  }
};
REGISTER_MS_CPU_KERNEL(kAdd, Add);
"""


def test_checks_of_a_call_leave_a_kernels_loop_to_the_vectoriser(tmp_path: Path) -> None:
    # An attribute of a function that a kernel calls, such as `cold`, changes how gcc sees the loop.
    source = tmp_path / "add.cc"
    source.write_text(LOOP)
    line = 1 + LOOP[: LOOP.index("for (")].count("\n")
    flags = [
        "-std=c++17",
        "-O3",
        "-fPIC",
        "-fopt-info-vec",
        f"-I{HEADERS}",
        "-c",
        "-o",
        "/dev/null",
    ]
    done = subprocess.run(["g++", *flags, str(source)], capture_output=True, text=True, check=True)
    assert f"{source}:{line}:" in done.stderr
    assert "loop vectorized" in done.stderr
