"""``msops doctor``: whether this machine has what each kind of kernel needs.

Each probe looks at one thing and returns what there is; an error it raises is shown, since msops's
errors say what to do. Only what every kernel needs makes the doctor unhappy: a machine may do
without nvcc, or without Eigen.
"""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from msops import _jax_seam as seam
from msops._backends.aicpu.libraries import find_eigen
from msops._base import config
from msops._base.temporary import temporary_folder
from msops._base.version import __version__
from msops._calls.handlers import native_module
from msops._custom.custom import Custom
from msops._custom.kernel import kernel
from msops._extension import CustomOpBuilder
from msops._op_info.builders import CustomRegOp
from msops._toolchain import BIND_OWN_SYMBOLS, contents, read_elf, taken_names
from msops._toolchain.compilers import find_compiler
from msops._toolchain.cuda import device_architectures
from msops._toolchain.known_faults import KnownFault, known_faults
from msops._toolchain.languages import CUDA, CXX, C, SourceLanguage
from msops._toolchain.nvrtc import find_compiler as find_nvrtc
from msops._toolchain.store import open_store
from msops._tools import cache
from msops.errors import BuildError, MsopsError

_AOT = """
extern "C" int Negate(int nparam, void **params, int *ndims, long **shapes, const char **dtypes,
                      void *stream, void *extra) {
  const float *x = static_cast<const float *>(params[0]);
  float *y = static_cast<float *>(params[1]);
  for (long i = 0; i < shapes[0][0]; ++i) y[i] = -x[i];
  return 0;
}
"""
_AICPU = """
#include "inc/ms_cpu_kernel.h"
namespace { const char *kDoctorNegate = "DoctorNegate"; }
class DoctorNegate : public aicpu::CpuKernel {
  uint32_t Compute(aicpu::CpuKernelContext &ctx) override {
    auto *x = static_cast<float *>(ctx.Input(0)->GetData());
    auto *y = static_cast<float *>(ctx.Output(0)->GetData());
    for (int64_t i = 0; i < ctx.Input(0)->NumElements(); ++i) y[i] = -x[i];
    return 0;
  }
};
REGISTER_MS_CPU_KERNEL(kDoctorNegate, DoctorNegate);
"""
_EXTENSION = """
#include "ms_extension/api.h"

class Negate : public ms::pynative::PyboostRunner {
 public:
  using PyboostRunner::PyboostRunner;
  void LaunchKernel() override {
    const float *x = inputs()[0].data_ptr<float>();
    float *y = outputs()[0].data_ptr<float>();
    for (size_t i = 0; i < inputs()[0].numel(); ++i) y[i] = -x[i];
  }
};

static ms::Tensor DoctorNegate(const ms::Tensor &x) {
  ms::Tensor y(x.data_type(), x.shape());
  std::make_shared<Negate>("Negate")->Run({x}, {y});
  return y;
}

PYBIND11_MODULE(MS_EXTENSION_NAME, m) { m.def("negate", &DoctorNegate); }
"""
_TBE = """
import te.lang.cce
from te import tvm
from topi import generic


def negate(x, y, kernel_name="negate"):
    data = tvm.placeholder(x["shape"], name="data", dtype=x["dtype"])
    result = te.lang.cce.vmuls(data, -1.0)
    with tvm.target.cce():
        schedule = generic.auto_schedule(result)
    te.lang.cce.cce_build_code(schedule, {"name": kernel_name, "tensor_list": [data, result]})
"""


def _negate_by_loops(x):  # type: ignore[no-untyped-def]
    y = output_tensor(x.shape, x.dtype)  # type: ignore[name-defined]  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = -x[i]
    return y


_IF_A_KERNEL_CRASHES = (
    "crashes      msops.testing.opcheck(op, *inputs) names what a C++ kernel reads or writes "
    "outside its arrays"
)
_NO_DEVICE = "no device; to compile for one elsewhere, set MSOPS_CUDA_ARCH, sm_90 say"


def main(libraries: Sequence[Path] = ()) -> int:
    """Prints what was found; returns how many things that every kernel needs are amiss.

    Args:
      libraries: shared libraries of kernels that are looked at, too; each counts if it is amiss.
    """
    amiss = 0
    with temporary_folder("msops doctor") as folder:
        probes: list[tuple[str, Callable[[], str], bool]] = [
            *((name, probe, needed) for name, (probe, needed) in _probes(folder).items()),
            *(("library", partial(_library, path), True) for path in libraries),
        ]
        for name, probe, is_needed in probes:
            try:
                print(f"{name:12} {probe()}")
            except Exception as error:
                amiss += is_needed
                verdict = "AMISS" if is_needed else "not here"
                kind = "" if isinstance(error, MsopsError) else f"{type(error).__name__}: "
                head, *rest = f"{kind}{error}".splitlines()
                print("\n".join([f"{name:12} {verdict}: {head}", *(f"{'':13}{x}" for x in rest)]))
    print(_IF_A_KERNEL_CRASHES)
    print(f"{amiss} amiss" if amiss else "All well.")
    return amiss


def _probes(folder: Path) -> dict[str, tuple[Callable[[], str], bool]]:
    """Returns the probes by name, each with whether every kernel needs it."""
    info = CustomRegOp("DoctorNegate").input(0, "x").output(0, "y").target("Ascend").get_op_info()

    def written(name: str, text: str) -> str:
        path = folder / name
        path.write_text(text)
        return str(path)

    def op(func_type: str, func: Callable[[], Any], **options: Any) -> Callable[[], str]:
        if func_type not in ("akg", "hybrid"):
            options |= {"out_shape": lambda x: x, "out_dtype": lambda x: x}
        return lambda: _run(Custom(func(), func_type=func_type, **options))

    return {
        "msops": (lambda: f"{__version__}, Python {platform.python_version()}", True),
        "JAX": (_jax, True),
        "devices": (_devices, True),
        "C++ module": (_module, True),
        "gcc": (lambda: compiler_text(C), False),
        "g++": (lambda: compiler_text(CXX), True),
        "nvcc": (lambda: compiler_text(CUDA), False),
        "NVRTC": (_nvrtc, False),
        "CUDA": (lambda: ", ".join(device_architectures()) or _NO_DEVICE, False),
        "Eigen": (_eigen, False),
        "cache": (_cache, True),
        "pyfunc": (op("pyfunc", lambda: np.negative), True),
        "aot": (op("aot", lambda: written("negate.cc", _AOT) + ":Negate"), True),
        "akg": (op("akg", lambda: _negate_by_loops), True),
        "akg, native": (
            op("akg", lambda: _negate_by_loops, compile_attrs={"lower": "native"}),
            True,
        ),
        "hybrid": (op("hybrid", lambda: kernel(_negate_by_loops)), True),
        "aicpu": (op("aicpu", lambda: written("doctor.cc", _AICPU), reg_info=info), False),
        "extension": (_extension, False),
        "tbe": (op("tbe", lambda: written("negate.py", _TBE) + ":negate", reg_info=info), True),
    }


def _extension() -> str:
    return _run(CustomOpBuilder.from_source("doctor", _EXTENSION).load().negate)


def _run(op: Callable[..., Any]) -> str:
    x = np.arange(3, dtype=np.float32)
    result = np.asarray(jax.jit(op)(x))
    if not np.array_equal(result, -x):
        raise RuntimeError(f"the op returns {result} instead of {-x}; please report this")
    return "an op ran"


def _jax() -> str:
    jaxlib = importlib.metadata.version("jaxlib")
    return f"{jax.__version__}, jaxlib {jaxlib}, XLA FFI {_dotted(seam.ffi_version())}"


def _devices() -> str:
    devices = jax.devices()
    kinds = sorted({device.device_kind for device in devices})
    return f"{len(devices)} of platform {jax.default_backend()}: {', '.join(kinds)}"


def _module() -> str:
    built_with, there = native_module().ffi_version, seam.ffi_version()
    if built_with > there:
        raise RuntimeError(
            f"it was built with XLA FFI {_dotted(built_with)}, and jaxlib has {_dotted(there)}, "
            "which refuses what is newer\n"
            "Build it against the oldest jaxlib you run: pip install . in the checkout."
        )
    return f"loads, built with XLA FFI {_dotted(built_with)}"


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def compiler_text(language: SourceLanguage) -> str:
    """Returns which compiler builds sources of a language, and what is known of it."""
    compiler = find_compiler(language, (), Path("a kernel"), "msops")
    lines = compiler.identity.splitlines()
    version = next((line for line in lines if re.search(r"\d\.\d", line)), lines[0])
    faults = known_faults(compiler) if language is not CUDA else ()
    known = [f"known: {f.what}. Generated C avoids it. {f.advice}" for f in faults]
    if faults and language is CXX and faults == _faults_of_c():
        known = ["known: what is known of gcc"]
    return f"\n{'':13}".join([version, *known])


def _faults_of_c() -> tuple[KnownFault, ...]:
    try:
        return known_faults(find_compiler(C, (), Path("a kernel"), "msops"))
    except MsopsError:
        return ()


def _library(path: Path) -> str:
    taken = taken_names(read_elf(path).preemptible)
    if taken:
        raise BuildError.explained(
            str(path),
            "the program, libc or libm define names of the library, which uses theirs instead "
            "of its own",
            BIND_OWN_SYMBOLS,
            taken,
        )
    return f"{path}: uses its own functions and variables"


def _nvrtc() -> str:
    architecture = next(iter(device_architectures()), "sm_90")
    compiler = find_nvrtc(architecture, "msops")
    return f"{_dotted(compiler.version)}, {compiler.path}"


def _eigen() -> str:
    return str(
        find_eigen("Eigen")
        or "not here: AICPU kernels that use it need it; pip install 'msops[aicpu]'"
    )


def _cache() -> str:
    root = config.cache_dir()
    with open_store("msops").scratch():
        return f"{root}: {cache.show_size(contents.measure(root))}, writable"
