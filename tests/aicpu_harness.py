"""Calls of AICPU kernels for tests: op info, the kernels of aicpu_probes, libraries."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
from aicpu_cases import UNOPTIMISED, attribute_type
from conftest import ROOT

import msops
from msops import Custom
from msops.ops import CustomRegOp, custom_info_register

PROBE = str(ROOT / "tests" / "aicpu_probes" / "probe.cc")
_BUILT = Path(os.environ["MSOPS_CACHE_DIR"]) / "plain-aicpu"
X = jnp.arange(6, dtype=jnp.float32)

DOUBLE = """
#include "inc/ms_cpu_kernel.h"
namespace { const char* kTimes = "Times"; }
class Times : public aicpu::CpuKernel {
  uint32_t Compute(aicpu::CpuKernelContext &ctx) override {
    auto *x = static_cast<float *>(ctx.Input(0)->GetData());
    auto *y = static_cast<float *>(ctx.Output(0)->GetData());
    for (int64_t i = 0; i < ctx.Input(0)->NumElements(); ++i) y[i] = FACTOR * x[i];
    return 0;
  }
};
REGISTER_MS_CPU_KERNEL(kTimes, Times);
"""


def info(kernel: str, inputs: int = 1, outputs: int = 1, **attributes: Any) -> dict[str, Any]:
    """Returns op info for a kernel."""
    made = CustomRegOp(kernel).target("Ascend")
    for index in range(outputs):
        made.output(index, f"y{index}")
    for index in range(inputs):
        made.input(index, f"x{index}")
    for name, value in attributes.items():
        made.attr(name, "required", attribute_type(value))
    return made.get_op_info()


def probe(
    kernel: str,
    out_shape: Any,
    out_dtype: Any,
    *inputs: Any,
    attributes: Any = None,
    outputs: int = 1,
    **options: Any,
) -> Any:
    """Calls a kernel of probe.cc once."""
    attributes = attributes or {}
    op = Custom(
        PROBE,
        out_shape,
        out_dtype,
        func_type="aicpu",
        reg_info=info(kernel, len(inputs), outputs, **attributes),
        build=UNOPTIMISED,
        **options,
    )
    return op(*inputs, *attributes.values())


def write_times(folder: Path, factor: int, name: str = "times.cc") -> Path:
    source = folder / name
    source.write_text(DOUBLE.replace("FACTOR", str(factor)))
    return source


def build_with_plain_compiler(source: Path, library: Path) -> None:
    """Builds as the documentation describes, without any flag of msops's own.

    Equal sources are compiled once.
    """
    headers = Path(msops.get_include(), "aicpu")
    read = b"".join(path.read_bytes() for path in (*sorted(headers.rglob("*.h")), source))
    built = _BUILT / f"{hashlib.sha256(read).hexdigest()}.so"
    if not built.exists():
        _BUILT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_BUILT) as scratch:
            made = Path(scratch, "made.so")
            command = ["g++", "-std=c++17", "-shared", "-fPIC", f"-I{headers}", str(source)]
            subprocess.run([*command, "-o", str(made)], check=True)
            made.rename(built)
    # As the linker does: a process may have the old one open.
    library.unlink(missing_ok=True)
    shutil.copyfile(built, library)


def named_op(name: Any, **options: Any) -> Callable[..., Any]:
    """Returns an op whose library is given by name, in the call."""

    @custom_info_register(info("Times", cust_aicpu="name"))
    def times():
        """Stands for the kernel."""

    op = Custom(times, lambda x, _: x, lambda x, _: x, func_type="aicpu", **options)
    return lambda x: op(x, name)
