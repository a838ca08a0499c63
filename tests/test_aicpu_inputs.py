"""AICPU kernels that write to their inputs, that need other files, and that crash."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from aicpu_cases import UNOPTIMISED
from aicpu_harness import info

import msops
from msops.ops import CustomRegOp
from msops.testing import opcheck

KERNEL = """
namespace {{ const char* k{name} = "{name}"; }}
class {name} : public aicpu::CpuKernel {{
  uint32_t Compute(aicpu::CpuKernelContext &ctx) override {{
    auto *x = static_cast<float *>(ctx.Input(0)->GetData());
    auto *y = static_cast<float *>(ctx.Output(0)->GetData());
    const int64_t n = ctx.Input(0)->NumElements();
    {body}
    return 0;
  }}
}};
REGISTER_MS_CPU_KERNEL(k{name}, {name});
"""
HEAD = """
#include <algorithm>
#include <cstdint>
#include "context/inc/cpu_kernel_utils.h"
#include "inc/ms_cpu_kernel.h"
#include "utils/kernel_util.h"
"""
# What kernels do with their inputs x and outputs y of n elements, by name. One library has all of
# them, as most of its build goes to the headers.
BODIES = {
    # As a published median does: it sorts where its input is.
    "Sort": "std::sort(x, x + n); std::copy(x, x + n, y);",
    "Relu": "for (int64_t i = 0; i < n; ++i) y[i] = x[i] = std::max(x[i], 0.f);",
    "Fail": "std::fill(x, x + n, 7); return x[n - 1] == 7 ? 1 : 0;",
    "Address": "*reinterpret_cast<uint64_t *>(y) = reinterpret_cast<uint64_t>(x);",
    "AddOne": "for (int64_t i = 0; i < n; ++i) y[i] = x[i] + 1;",
    # As published transforms do, to find out which optional inputs a call has.
    "Names": """
    for (const char *name : {"x0", "x1"})
      *y++ = aicpu::CpuKernelUtils::GetTensorName(ctx.Input(1)) == name;
    """,
    # As resizing and pooling do: tensors of a call have the format 0, NCHW, and no other.
    "Format": """
    auto shape = ctx.Input(0)->GetTensorShape();
    const std::string given = ctx.GetAttr("data_format")->GetString();
    const bool is_last = given == "NHWC";
    shape->SetFormat(is_last ? aicpu::FORMAT_NHWC : shape->GetFormat());
    y[0] = shape->GetDimSize(shape->GetFormat() == aicpu::FORMAT_NCHW ? 1 : 3);
    y[1] = aicpu::FormatToSerialString(shape->GetFormat()) == given;
    """,
    "OwnName": """
    using aicpu::GetOpName;
    y[0] = ctx.GetOpType() == "CustOwnName";
    y[1] = GetOpName(ctx) == "OwnName";
    """,
    "Crash": "*static_cast<volatile int *>(nullptr) = 1;",
}


@pytest.fixture(autouse=True)
def no_eigen_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MSOPS_EIGEN", raising=False)


def kernel(name: str, inputs: int = 1, **options: object) -> msops.Custom:
    bodies = "".join(KERNEL.format(name=each, body=body) for each, body in BODIES.items())
    return from_text(HEAD + bodies, **{"reg_info": info(name, inputs=inputs), **options})


def from_text(text: str, **options: object) -> msops.Custom:
    return msops.Custom(
        msops.source(text, "Kernels"),
        lambda x, *_: x,
        lambda x, *_: x,
        "aicpu",
        **{"build": UNOPTIMISED, **options},
    )


@pytest.mark.parametrize(
    ("transform", "size"),
    [
        (lambda op: op, 100_000),
        (jax.jit, 5),
        pytest.param(lambda op: op, 5, marks=pytest.mark.slow),
        pytest.param(jax.jit, 100_000, marks=pytest.mark.slow),
    ],
)
def test_arrays_that_a_kernel_writes_to_do_not_change(size: int, transform) -> None:
    sort = transform(kernel("Sort"))
    values = np.random.default_rng(size).permutation(size).astype(np.float32)
    x = jnp.asarray(values)
    for _ in range(20):
        np.testing.assert_array_equal(sort(x), np.arange(size))
        np.testing.assert_array_equal(x, values)


def test_later_writes_of_other_values_attributes_and_shapes_change_no_array() -> None:
    # A write of equal values looks like none, so no number of calls shows that a kernel only reads.
    relu = jax.jit(kernel("Relu"))
    for _ in range(20):
        relu(jnp.zeros(100_000)).block_until_ready()
    for size in (100_000, 3_000_000):
        x = jnp.full(size, -1.0)
        assert not np.any(relu(x))
        assert np.all(np.asarray(x) == -1)


def test_a_failing_call_changes_no_array() -> None:
    op = kernel("Fail")
    x = jnp.zeros(100_000)
    for _ in range(20):
        with pytest.raises(Exception, match="Compute returned 1"):
            jax.block_until_ready(op(x))
    assert not np.any(np.asarray(x))


@pytest.mark.parametrize("writable", [True, False, None])
def test_a_kernel_that_only_reads_may_get_the_inputs_themselves(writable: bool | None) -> None:
    op = jax.jit(kernel("Address", writable=writable))
    x = jnp.zeros(2000)
    (seen,) = np.asarray(op(x))[:2].view(np.uint64)
    assert (seen == x.unsafe_buffer_pointer()) == (writable is False)


def test_an_input_that_was_given_away_is_written_in_place() -> None:
    op = kernel("AddOne", inplace={0: 0})
    add = jax.jit(op, donate_argnums=0)
    x = jnp.arange(2000.0)
    place = x.unsafe_buffer_pointer()
    result = add(x)
    assert result.unsafe_buffer_pointer() == place
    np.testing.assert_array_equal(result, np.arange(2000) + 1)


@pytest.mark.slow
def test_helpers_of_the_author_come_after_the_headers_of_msops(tmp_path: Path) -> None:
    utils = tmp_path / "theirs" / "utils"
    utils.mkdir(parents=True)
    (utils / "helper.h").write_text("float Helper(float x);\n")
    (utils / "helper.cc").write_text(
        '#include "utils/helper.h"\nfloat Helper(float x) { return FACTOR * x; }\n'
    )
    (utils / "kernel_util.h").write_text("#error theirs goes before ours\n")
    helped = KERNEL.format(name="Mine", body="for (int64_t i = 0; i < n; ++i) y[i] = Helper(x[i]);")
    op = from_text(
        f'{HEAD}#include "utils/helper.h"\n{helped}',
        reg_info=info("Mine"),
        build=msops.Build(
            sources=utils / "helper.cc", include_dirs=tmp_path / "theirs", defines={"FACTOR": 3}
        ),
    )
    assert op(jnp.arange(3.0)).tolist() == [0, 3, 6]


def test_a_kernel_knows_its_inputs_by_the_names_of_the_op_info() -> None:
    op = kernel("Names", inputs=2)
    assert op(jnp.zeros(2), jnp.zeros(2)).tolist() == [0, 1]


MESHGRID = """
#include "cpu_kernel_utils.h"
#include "inc/ms_cpu_kernel.h"
#include "utils/eigen_tensor.h"
#include "utils/kernel_util.h"
namespace { const char* kGrid = "Grid"; }
namespace aicpu {
class Grid : public CpuKernel {
  uint32_t Compute(CpuKernelContext &ctx) override {
    CUST_KERNEL_HANDLE_ERROR(ctx, NormalCheck(ctx, kDynamicInput, kDynamicOutput, {"indexing"}),
                             "[%s] check failed.", kGrid);
    const size_t count = ctx.GetInputsSize();
    const bool swaps = ctx.GetAttr("indexing")->GetString() == "xy";
    std::vector<int64_t> bcast(count);
    for (size_t i = 0; i < count; ++i) bcast[i] = ctx.Input(i)->NumElements();
    if (swaps) std::swap(bcast[0], bcast[1]);
    for (size_t i = 0; i < count; ++i) {
      const size_t axis = swaps && i < 2 ? 1 - i : i;
      Eigen::array<Eigen::DenseIndex, 3> line = {1, 1, 1}, repeats = {bcast[0], bcast[1], bcast[2]};
      line[axis] = bcast[axis];
      repeats[axis] = 1;
      EigenTensor in(ctx.Input(i), ctx.Input(i)->GetData());
      EigenTensor out(ctx.Output(i), ctx.Output(i)->GetData());
      out.tensor<float, 3>() = in.flat<float>().reshape(line).broadcast(repeats);
      ctx.Output(i)->GetTensorShape()->SetDimSizes(bcast);
    }
    return KERNEL_STATUS_OK;
  }
};
REGISTER_MS_CPU_KERNEL(kGrid, Grid);
}
"""


@pytest.mark.parametrize("indexing", ["ij", "xy"])
def test_a_kernel_of_as_many_outputs_as_inputs_runs(indexing: str) -> None:
    # As meshgrid and unpack do: lists on both sides, Eigen's maps, shapes set on the outputs.
    arrays = [np.arange(size, dtype=np.float32) for size in (2, 3, 4)]
    expected = np.meshgrid(*arrays, indexing=indexing)
    made = CustomRegOp("Grid").input(0, "x", "dynamic").target("Ascend")
    for index in range(3):
        made.output(index, f"y{index}")
    op = msops.Custom(
        msops.source(MESHGRID, "Grid"),
        tuple(array.shape for array in expected),
        (np.float32,) * 3,
        "aicpu",
        reg_info=made.attr("indexing", "required", "str").get_op_info(),
        build=UNOPTIMISED,
    )
    for got, wanted in zip(op(arrays, indexing), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("data_format", ["NCHW", "NHWC"])
def test_a_kernel_reads_the_format_of_a_call_from_an_attribute(data_format: str) -> None:
    op = kernel("Format", reg_info=info("Format", data_format=data_format))
    seen = op(jnp.zeros((2, 3, 4, 5)), data_format).ravel()
    assert seen[:2].tolist() == [{"NCHW": 3, "NHWC": 5}[data_format], 1]


def test_a_kernel_of_a_users_library_is_called_by_cust_and_its_name() -> None:
    op = kernel("OwnName")
    assert op(jnp.zeros(2)).tolist() == [1, 1]


def test_opcheck_names_the_kernel_that_crashes() -> None:
    op = kernel("Crash")
    report = opcheck(op, jnp.arange(3.0))
    text = str(report)
    assert "SIGSEGV" in text
    assert "kernel Crash" in text
