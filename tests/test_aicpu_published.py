"""The headers of MindSpore's own AICPU kernels, which come with its package, against ours.

MindSpore's sources are not on PyPI, but its wheel for 2.7.2 has the headers of some 230 kernels and
of the helpers they share. MSOPS_TEST_MINDSPORE names a Python with it; nothing of it is kept here.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from test_aicpu_api import HEADERS, eigen_flags

FOLDER = "include/mindspore/ops/kernel/ascend/aicpu/aicpu_ops/cpu_kernel"
FIND = "import importlib.util as u; print(u.find_spec('mindspore').submodule_search_locations[0])"

# Three need what no AICPU kernel of a user has: MindSpore's op registry, its process environment.
OTHER_LIBRARIES = ("op_def/op_enum.h", "aicpu_environ")

# Helpers whose bodies are in the headers, with what makes the compiler look at them. They stand in
# for ours of the same name.
HELPERS = {
    "equal_util": "template uint32_t EqualCompute<Eigen::half>(CpuKernelContext&, bool);",
    "linalg_utils": "void Use(const half* x, complex64* y) { Cast(x, y); }",
    "sparse_tensor": "void Use(CpuKernelContext& c, SparseTensor& s) { s.Reorder<float>(c, {}); }",
    "philox_random": "uint32_t Use() { return random::PhiloxRandom(1, 2)()[0]; }",
    "distinct_uniform_int_distribution": "template class DistinctUniformIntDistribution<int64_t>;",
    "tensor_iterator": "void Use() { TensorIterator i({2, 3}); ++i; }",
    "igamma_utils": "void Use(double* x) { Igamma(x, x, x, 1); IgammaGradA(x, x, x, 1); }",
    "atomic_op": "void Use(CpuKernelContext& c, float* x) { AtomicAdd(c, x, 1.0F); }",
    "range_sampler": "",
    "sparse_dense_cwise_utils": "template class SparseDenseCwiseOpKernel<AddOp>;",
    "fused_sparse_utils": "",
}


@pytest.fixture(scope="module")
def published() -> Path:
    python = os.environ.get("MSOPS_TEST_MINDSPORE")
    if not python:
        pytest.skip("MSOPS_TEST_MINDSPORE names no Python with MindSpore")
    done = subprocess.run([python, "-c", FIND], capture_output=True, text=True, check=True)
    folder = Path(done.stdout.strip(), FOLDER)
    if not folder.is_dir():
        pytest.skip("this MindSpore comes without the headers of its AICPU kernels")
    return folder


def compile_text(text: str, folder: Path) -> str:
    """Returns what the compiler says against a source, nothing if it is content."""
    source = folder / "all.cc"
    source.write_text(text)
    flags = ["-std=c++17", "-fsyntax-only", f"-I{HEADERS}", *eigen_flags()]
    done = subprocess.run(["g++", *flags, str(source)], capture_output=True, text=True, check=False)
    return done.stderr


@pytest.mark.slow
def test_the_headers_of_kernels_compile(published: Path, tmp_path: Path) -> None:
    names = sorted((published / "ms_kernel").rglob("*.h"))
    kernels = [
        path
        for path in names
        if not any(other in path.read_text() + path.name for other in OTHER_LIBRARIES)
    ]
    assert len(kernels) > len(names) - 5 > 200
    failures = []
    batches = [kernels[start : start + 16] for start in range(0, len(kernels), 16)]
    while batches:
        batch = batches.pop()
        said = compile_text("".join(f'#include "{path}"\n' for path in batch), tmp_path)
        if not said:
            continue
        # Some give one name to different constants, and so cannot stand beside each other.
        if len(batch) > 1:
            batches += [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
        else:
            failures.append(f"{batch[0].name}: {said[:500]}")
    assert failures == []


@pytest.mark.slow
@pytest.mark.parametrize("name", HELPERS)
def test_the_helpers_of_kernels_compile(published: Path, tmp_path: Path, name: str) -> None:
    text = '#include "inc/ms_cpu_kernel.h"\n#include "utils/kernel_util.h"\n'
    text += "#include <functional>\n#include <memory>\n#include <vector>\nusing Eigen::half;\n"
    text += f'#include "{published}/utils/{name}.h"\n'
    assert compile_text(f"{text}namespace aicpu {{ {HELPERS[name]} }}\n", tmp_path) == ""
