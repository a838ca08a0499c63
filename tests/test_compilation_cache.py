"""JAX's persistent compilation cache: a second process hits it, and never runs stale code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

CHILD = """
import json, sys
import jax, jax.numpy as jnp
events = []
jax.monitoring.register_event_listener(lambda event, **_: events.append(event))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
import kernels
x, report = jnp.ones(3), {}
for name in sys.argv[1:]:
    function = jax.jit(getattr(kernels, name)())
    events.clear()
    value = function(x).tolist()
    report[name] = [value, events.count("/jax/compilation_cache/cache_hits")]
print(json.dumps(report))
"""

KERNELS = """
from pathlib import Path
from msops import Build, Custom
from msops.ops import CustomOpBuilder, CustomRegOp

HERE = Path(__file__).parent
FACTOR = 2.0

def scaled(x):
    y = output_tensor(x.shape, x.dtype)
    for i in range(x.shape[0]):
        y[i] = FACTOR * x[i]
    return y

def same(x):
    return x

def aot():
    return Custom(f"{HERE / 'aot.cc'}:Scale", same, same)

def native_loops():
    return Custom(scaled, func_type="akg", compile_attrs={"lower": "native"})

def array_operations():
    return Custom(scaled, func_type="akg", compile_attrs={"lower": "xla"})

def aicpu():
    info = CustomRegOp("Scale").input(0, "x").output(0, "y").target("Ascend").get_op_info()
    build = Build(flags=["-O0"])
    return Custom(str(HERE / "aicpu.cc"), same, same, "aicpu", reg_info=info, build=build)

def pyfunc():
    return Custom(lambda x: x * x.dtype.type(FACTOR), same, same)

def runner():
    return CustomOpBuilder("cached", str(HERE / "runner.cpp")).load().scale
"""

SOURCES = {
    "kernels.py": KERNELS,
    "aot.cc": """
extern "C" int Scale(int, void **params, int *, long **shapes, const char **, void *, void *) {
  for (long i = 0; i < shapes[0][0]; ++i) {
    static_cast<float *>(params[1])[i] = 2.0 * static_cast<float *>(params[0])[i];
  }
  return 0;
}
""",
    "aicpu.cc": """
#include "cpu_kernel.h"
namespace aicpu {
class ScaleCpuKernel : public CpuKernel {
 public:
  uint32_t Compute(CpuKernelContext &ctx) override {
    auto *x = static_cast<float *>(ctx.Input(0)->GetData());
    auto *y = static_cast<float *>(ctx.Output(0)->GetData());
    for (int64_t i = 0; i < ctx.Output(0)->NumElements(); ++i) y[i] = 2.0 * x[i];
    return 0;
  }
};
static const char *kScale = "Scale";
REGISTER_CPU_KERNEL(kScale, ScaleCpuKernel);
}  // namespace aicpu
""",
    "runner.cpp": """
#include "ms_extension/api.h"
class Scale : public ms::pynative::PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    for (size_t i = 0; i < inputs()[0].numel(); ++i) {
      outputs()[0].data_ptr<float>()[i] = 2.0 * inputs()[0].data_ptr<float>()[i];
    }
  }
};
static ms::Tensor Run(const ms::Tensor &x) {
  ms::Tensor y(x.data_type(), x.shape());
  auto runner = std::make_shared<Scale>("Scale");
  runner->Run({x}, {y});
  return y;
}
PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.def("scale", [](const ms::Tensor &x) { return ms::pynative::PyboostRunner::Call<1>(Run, x); });
}
""",
}


def run(folder: Path, *names: str) -> dict[str, Any]:
    """Returns the result of each program in a new process, and how often JAX's cache had it."""
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *names],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)]),
            "JAX_COMPILATION_CACHE_DIR": str(folder / "cache"),
        },
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def write(folder: Path, factor: str) -> None:
    for name, text in SOURCES.items():
        (folder / name).write_text(text.replace("2.0", factor))


def check(folder: Path, *names: str, cached: tuple[str, ...]) -> None:
    write(folder, "2.0")
    assert run(folder, *names) == {name: [[2.0] * 3, 0] for name in names}
    report = run(folder, *names)
    assert [report[name][0] for name in names] == [[2.0] * 3] * len(names)
    assert all(report[name][1] == 1 for name in cached)
    write(folder, "3.0")
    report = run(folder, *names)
    assert [report[name][0] for name in names] == [[3.0] * 3] * len(names)
    assert all(report[name][1] == 0 for name in cached)


@pytest.mark.usefixtures("quick_builds")
def test_a_second_process_hits_the_cache_and_a_changed_kernel_does_not(tmp_path: Path) -> None:
    cached = ("aot", "native_loops", "array_operations")
    # From 0.12 on JAX keeps programs that call Python, too. They look the function up by the id of
    # its code, so what else it depends on is what the process has.
    check(tmp_path, *cached, "pyfunc", cached=cached)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["aicpu", "runner"])
def test_programs_whose_kernels_build_for_long_are_cached_too(tmp_path: Path, name: str) -> None:
    check(tmp_path, name, cached=(name,))
