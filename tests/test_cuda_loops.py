"""Loop kernels as CUDA C: what they become, and that it computes what the interpreter does.

No GPU is needed: the code is compiled for the CPU and run there thread by thread, in several
orders (cuda_emulation.py), and compiled for GPUs by NVRTC where it is installed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from cuda_emulation import Emulation
from hypothesis import given, settings
from loop_agreement import assert_agree
from loop_corpus import CORPUS, Case, specialised
from loop_ir import BINARY_TYPES as _BINARY
from loop_ir import (
    DTYPES,
    FUNCTIONS,
    INTEGERS,
    PREAMBLE,
    Binary,
    Buffer,
    Cast,
    ClearBuffer,
    Const,
    CopyBuffer,
    CudaSource,
    Expr,
    For,
    FunctionCall,
    Kernel,
    Launch,
    Load,
    Store,
    Var,
    as_dtype,
    body_text,
    cuda_source,
    find_compiler,
    interpret,
    kernel_text,
    mark_grids,
    parse_kernel,
    pipeline,
    result_dtype,
    verify,
)
from loop_ir import FUNCTION_TYPES as _FUNCTIONS
from loop_strategies import WIDE_DTYPES, kernels
from quick_cases import one_in
from random_examples import examples

from msops.errors import BuildError

ARCHITECTURE = "sm_90"
# Ascending order hides most mistakes.
ORDERS = (1, 7)


def has_nvrtc() -> bool:
    try:
        find_compiler(ARCHITECTURE, "test")
    except BuildError:
        return False
    return True


needs_nvrtc = pytest.mark.skipif(
    not has_nvrtc(), reason="NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12"
)


def gridded(kernel: Kernel) -> Kernel:
    """Returns a kernel with the kinds of its loops as CUDA C is printed from it."""
    after = pipeline.run(kernel, pipeline.PASSES_TO_CUDA)
    verify(after)
    return after


def printed(kernel: Kernel, check_bounds: bool = False) -> CudaSource:
    told = pipeline.analyse(kernel)
    return cuda_source(
        gridded(told.kernel), told.unproven, told.overwritten, check_bounds=check_bounds
    )


def run_everywhere(kernel: Kernel, inputs: Sequence[np.ndarray]) -> None:
    """Compares the emulation with the interpreter, in several orders of threads."""
    with np.errstate(all="ignore"):
        expected = interpret(kernel, inputs)
        emulation = Emulation(kernel, printed(kernel))
        for order in ORDERS:
            assert_agree(kernel, inputs, expected, emulation.run(inputs, order))


def random_inputs(kernel: Kernel) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(1, 2, p.shape).astype(p.dtype) for p in kernel.parameters]


ADD = """
kernel add(a: float32[4, 300], b: float32[4, 300]) -> (c) {
  buffer c: float32[4, 300]
  serial i in 0 .. 4 {
    serial j in 0 .. 300 {
      c[i, j] = a[i, j] + b[i, j]
    }
  }
}"""

ROW_SUM = """
kernel row_sum(a: float32[3, 100]) -> (s) {
  buffer s: float32[3]
  serial i in 0 .. 3 {
    serial j in 0 .. 100 {
      s[i] = s[i] + a[i, j]
    }
  }
}"""

COLUMN_SUM = """
kernel column_sum(a: float32[10, 2000]) -> (s) {
  buffer s: float32[2000]
  serial i in 0 .. 10 {
    serial j in 0 .. 2000 {
      s[j] = s[j] + a[i, j]
    }
  }
}"""

TOTAL = """
kernel total(a: float64[300, 200]) -> (s) {
  buffer s: float64[]
  serial i in 0 .. 300 {
    serial j in 0 .. 200 {
      s[] = s[] + a[i, j]
    }
  }
}"""


def lu(size: int) -> str:
    return f"""
kernel lu(a: float32[{size}, {size}]) -> (a) {{
  serial k in 0 .. {size} {{
    serial i in (k + 1) .. {size} {{
      a[i, k] = a[i, k] / a[k, k]
      serial j in (k + 1) .. {size} {{
        a[i, j] = a[i, j] - (a[i, k] * a[k, j])
      }}
    }}
  }}
}}"""


def functions(source: CudaSource) -> str:
    """Returns the kernels of a text, without types and helpers."""
    return source.text[source.text.index('extern "C"') :]


def test_a_parallel_nest_is_a_grid_of_threads() -> None:
    source = printed(parse_kernel(ADD))
    assert source.steps == (Launch("add_0", 5, 256, ("a", "b", "c")),)
    assert functions(source) == (
        'extern "C" __global__ void __launch_bounds__(256)\n'
        "add_0(const float* __restrict__ a, const float* __restrict__ b, "
        "float* __restrict__ c) {\n"
        "  for (uint32_t ms_point = (uint32_t)blockIdx.x * blockDim.x + threadIdx.x; "
        "ms_point < 1200; ms_point += (uint32_t)gridDim.x * blockDim.x) {\n"
        "    const int64_t i = (int64_t)(ms_point / 300);\n"
        "    const int64_t j = (int64_t)(ms_point % 300);\n"
        "    c[i * 300 + j] = a[i * 300 + j] + b[i * 300 + j];\n"
        "  }\n"
        "}\n"
    )


def test_a_sum_stays_inside_a_thread() -> None:
    kernel = parse_kernel(ROW_SUM)
    (launch,) = printed(kernel).launches
    assert (launch.blocks, launch.threads) == (1, 256)
    assert "for (int64_t j = 0; j < 100; ++j) {" in functions(printed(kernel))
    run_everywhere(kernel, random_inputs(kernel))


def test_a_reduction_around_a_parallel_loop_is_turned_round() -> None:
    kernel = parse_kernel(
        """
kernel k(a: float32[4, 8]) -> (s) {
  buffer s: float32[8]
  reduction i in 0 .. 4 {
    parallel j in 0 .. 8 {
      s[j] = s[j] + a[i, j]
    }
  }
}"""
    )
    assert body_text(gridded(kernel).body) == (
        "parallel j in 0 .. 8 @grid {\n"
        "  local sum: float32[] {\n"
        "    sum[] = s[j]\n"
        "    reduction i in 0 .. 4 {\n"
        "      sum[] = sum[] + a[i, j]\n"
        "    }\n"
        "    s[j] = sum[]\n"
        "  }\n"
        "}"
    )
    # Here two rounds touch one element in different iterations of j, so the order has to stay.
    moved = parse_kernel(
        """
kernel k(a: float32[4, 8]) -> (s) {
  buffer s: float32[11]
  reduction i in 0 .. 4 {
    parallel j in 0 .. 8 {
      s[(i + j)] = s[(i + j)] + a[i, j]
    }
  }
}"""
    )
    assert gridded(moved) == moved


def test_locals_and_conditions_around_nests_leave_them_their_grids() -> None:
    kernel = parse_kernel(
        """
kernel k(a: float32[40], n: int32[1]) -> (b) {
  buffer b: float32[40]
  local t: float32[40] {
    if (n[0] > 0) {
      parallel i in 0 .. 40 { t[i] = a[i] * 2.0:float32 }
      parallel j in 0 .. 40 { b[j] = t[39 - j] }
    } else {
      parallel l in 0 .. 40 { b[l] = 0.0:float32 - a[l] }
    }
  }
}"""
    )
    after = gridded(kernel)
    assert [buffer.name for buffer in after.buffers] == ["b", "t"]
    assert body_text(after.body).startswith(
        "parallel i in 0 .. 40 @grid {\n  if (n[0] > 0) {\n    t[i] = a[i] * 2.0:float32\n  }\n}\n"
    )
    a = random_inputs(kernel)[0]
    for n, expected in ((1, 2 * a[::-1]), (0, -a)):
        inputs = [a, np.array([n], np.int32)]
        for order in ORDERS:
            (got,) = Emulation(after, cuda_source(after)).run(inputs, order)
            np.testing.assert_array_equal(got, expected)


def test_a_condition_that_its_nest_changes_stays_around_it() -> None:
    kernel = parse_kernel(
        """
kernel k(n: int32[4]) -> (n) {
  if (n[0] > 0) {
    parallel i in 0 .. 4 { n[i] = n[i] - 5 }
  }
}"""
    )
    assert gridded(kernel) == kernel
    run_everywhere(kernel, [np.full(4, 3, np.int32)])


def test_what_has_an_order_to_keep_is_one_thread() -> None:
    source = printed(parse_kernel(lu(40)))
    assert (source.inputs, source.outputs) == (("a@input",), ("a",))
    assert source.steps == (CopyBuffer("a", "a@input", 6400), Launch("lu_0", 1, 1, ("a",)))
    assert functions(source) == (
        'extern "C" __global__ void __launch_bounds__(1)\n'
        "lu_0(float* __restrict__ a) {\n"
        "  for (int64_t k = 0; k < 40; ++k) {\n"
        "    for (int64_t i = k + 1; i < 40; ++i) {\n"
        "      a[i * 40 + k] = a[i * 40 + k] / a[k * 40 + k];\n"
        "      for (int64_t j = k + 1; j < 40; ++j) {\n"
        "        a[i * 40 + j] = a[i * 40 + j] - (a[i * 40 + k] * a[k * 40 + j]);\n"
        "      }\n"
        "    }\n"
        "  }\n"
        "}\n"
    )


def test_what_has_an_order_is_a_thread_for_each_independent_iteration() -> None:
    kernel = parse_kernel(
        """
kernel scan(a: float32[300, 20]) -> (a) {
  serial i in 0 .. 300 {
    serial j in 1 .. 20 { a[i, j] = a[i, j] + a[i, j - 1] }
  }
}"""
    )
    (launch,) = printed(kernel).launches
    assert (launch.blocks, launch.threads) == (2, 256)
    run_everywhere(kernel, random_inputs(kernel))


def test_a_triangle_is_the_part_of_a_box_that_its_bounds_allow() -> None:
    kernel = parse_kernel(
        """
kernel k(a: float32[60, 60]) -> (b) {
  buffer b: float32[60, 60]
  serial i in 0 .. 60 {
    serial j in 0 .. (i + 1) {
      b[i, j] = a[i, j] + 1.0:float32
    }
  }
}"""
    )
    source = printed(kernel)
    assert source.steps[0] == ClearBuffer("b", 14400)
    assert "if (0 <= j && j < i + 1) {" in source.text
    run_everywhere(kernel, random_inputs(kernel))


def test_a_narrow_band_stays_inside_a_thread() -> None:
    kernel = parse_kernel(
        """
kernel k(a: float32[1000]) -> (b) {
  buffer b: float32[1000, 1000]
  serial i in 0 .. 998 {
    serial j in i .. (i + 3) {
      b[i, j] = a[j]
    }
  }
}"""
    )
    source = printed(kernel)
    (launch,) = source.launches
    assert (launch.blocks, launch.threads) == (4, 256)
    assert "for (int64_t j = i; j < i + 3; ++j) {\n      b[" in source.text
    run_everywhere(kernel, random_inputs(kernel))


LARGE_LOCAL = """
kernel k(a: float32[50, 400]) -> (b) {
  buffer b: float32[50]
  serial i in 0 .. 50 {
    local t: float32[400] {
      serial j in 1 .. 400 {
        t[j] = t[(j - 1)] + a[i, j]
      }
      b[i] = t[399]
    }
  }
}"""


def test_an_array_too_large_for_a_thread_lies_in_a_slot_of_device_memory() -> None:
    kernel = parse_kernel(LARGE_LOCAL)
    source = printed(kernel)
    (launch,) = source.launches
    (slots,) = source.workspaces
    assert slots.size_bytes == launch.blocks * launch.threads * 1600
    assert f"float* const t = {slots.name} + ms_thread * 400;" in source.text
    run_everywhere(kernel, random_inputs(kernel))


@pytest.mark.slow
def test_slots_for_many_threads_are_shared_by_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = parse_kernel(LARGE_LOCAL.replace("50", "500"))
    monkeypatch.setattr("msops._loops.to_cuda.source._SLOTS_BYTES", 1 << 19)
    (launch,) = printed(kernel).launches
    assert launch.blocks == 1
    run_everywhere(kernel, random_inputs(kernel))


@pytest.mark.parametrize("size", [33, pytest.param(100, marks=pytest.mark.slow)])
def test_lu_runs_in_order(size: int) -> None:
    kernel = parse_kernel(lu(size))
    (inputs,) = random_inputs(kernel)
    run_everywhere(kernel, [inputs + size * np.eye(size, dtype=np.float32)])


def test_a_false_claim_of_independence_shows() -> None:
    # The emulation is the proof of everything else here, so it has to be able to fail.
    kernel = parse_kernel(
        """
kernel k(a: int32[300]) -> (a) {
  parallel i in 1 .. 300 { a[i] = a[i] + a[i - 1] }
}"""
    )
    inputs = [np.arange(300, dtype=np.int32)]
    emulation = Emulation(kernel, cuda_source(mark_grids(kernel)))
    results = [emulation.run(inputs, order)[0] for order in (0, *ORDERS)]
    assert not any(np.array_equal(results[0], other) for other in results[1:])


def test_outputs_that_are_inputs_or_named_twice_are_copies() -> None:
    kernel = parse_kernel(
        """
kernel k(a: int32[4], b: int32[4]) -> (a, c, b, c) {
  buffer c: int32[4]
  serial i in 0 .. 4 {
    a[i] = a[i] + b[i]
    c[i] = a[i] * 2
  }
}"""
    )
    source = printed(kernel)
    assert source.inputs == ("a@input", "b@input")
    assert source.outputs == ("a", "c", "b", "c@3")
    run_everywhere(kernel, [np.arange(4, dtype=np.int32), np.full(4, 5, np.int32)])


def test_a_temporary_lies_in_a_workspace() -> None:
    kernel = parse_kernel(
        """
kernel k(a: float32[40]) -> (b) {
  buffer b: float32[40]
  buffer t: float32[40]
  serial i in 0 .. 40 { t[i] = a[i] * 2.0:float32 }
  serial j in 0 .. 40 { b[j] = t[(39 - j)] }
}"""
    )
    source = printed(kernel)
    assert [(w.name, w.size_bytes) for w in source.workspaces] == [("t", 160)]
    assert len(source.launches) == 2
    run_everywhere(kernel, random_inputs(kernel))


def test_empty_arrays_launch_nothing() -> None:
    kernel = parse_kernel(
        """
kernel k(a: float32[0, 3]) -> (b) {
  buffer b: float32[0, 3]
  serial i in 0 .. 0 { serial j in 0 .. 3 { b[i, j] = a[i, j] } }
}"""
    )
    source = printed(kernel)
    assert source.launches == () or all(launch.blocks == 1 for launch in source.launches)
    run_everywhere(kernel, [np.zeros((0, 3), np.float32)])


GATHER = """
kernel gather(a: float32[4], index: int32[3]) -> (b) {
  buffer b: float32[3]
  serial i in 0 .. 3 { b[i] = a[index[i]] }
}"""


def test_an_index_out_of_range_is_reported_where_that_is_asked_for() -> None:
    kernel = parse_kernel(GATHER)
    source = printed(kernel, check_bounds=True)
    assert source.workspaces[-1].name == "ms_failed"
    (check,) = source.checks
    assert check.startswith("index 0 of 'a' is outside of 0 .. 3\n")
    assert printed(kernel).checks == ()
    emulation = Emulation(kernel, source)
    table = np.arange(4, dtype=np.float32)
    for index, code in (([0, 3, 1], 0), ([0, 4, 1], 1), ([-1, 0, 0], 1)):
        emulation.run([table, np.array(index, np.int32)])
        assert emulation.failed == code


def test_names_of_cuda_are_not_taken() -> None:
    kernel = parse_kernel(
        """
kernel k(threadIdx: float32[4], float: float32[4]) -> (half) {
  buffer half: float32[4]
  serial blockDim in 0 .. 4 { half[blockDim] = threadIdx[blockDim] + float[blockDim] }
}"""
    )
    run_everywhere(kernel, random_inputs(kernel))


def every_operation() -> Iterator[Kernel]:
    """Yields a kernel per dtype with every operation and function on it, and casts to all others.

    The operands are (x[i], y[i]).
    """
    for dtype in DTYPES:
        x, y = (Load(name, (Var("i"),), dtype) for name in "xy")
        values: list[Expr] = [
            Binary(op, x, y, result_dtype(op, dtype))
            for op, takes in _BINARY.items()
            if dtype in takes
        ]
        for name, takes in _FUNCTIONS.items():
            if dtype in takes:
                args = (x, y)[: FUNCTIONS[name].arity]
                values.append(
                    FunctionCall(name, args, "bool" if FUNCTIONS[name].to_bool else dtype)
                )
        values += [Cast(x, other) for other in DTYPES if other != dtype]
        outputs = [Buffer(f"o{i}", (64,), value.dtype) for i, value in enumerate(values)]
        stores = [
            Store(output.name, (Var("i"),), value)
            for output, value in zip(outputs, values, strict=True)
        ]
        yield Kernel(
            f"every_{dtype}",
            (Buffer("x", (64,), dtype), Buffer("y", (64,), dtype)),
            tuple(output.name for output in outputs),
            tuple(outputs),
            (For("i", Const(0, "int32"), Const(64, "int32"), tuple(stores), kind="parallel"),),
        )


EVERY_OPERATION = tuple(every_operation())


def extreme_inputs(dtype: str) -> list[np.ndarray]:
    """Returns all pairs of eight values of a dtype, extremes among them."""
    numpy_dtype = as_dtype(dtype).dtype
    if dtype == "bool":
        values = np.array([0, 1] * 4)
    elif dtype in INTEGERS:
        info = np.iinfo(numpy_dtype)
        values = np.array([info.min, info.max, 0, 1, 2, 3, 7, info.max - 1], object)
    else:
        values = np.array([-np.inf, np.inf, np.nan, 0.0, -0.0, 1.5, -2.25, 0.75])
    values = values.astype(numpy_dtype)
    return [np.repeat(values, 8), np.tile(values, 8)]


@pytest.mark.parametrize("kernel", one_in(4, EVERY_OPERATION), ids=lambda kernel: kernel.name)
def test_every_operation_means_what_it_does_in_the_interpreter(kernel: Kernel) -> None:
    inputs = extreme_inputs(kernel.parameters[0].dtype)
    with np.errstate(all="ignore"):
        expected = interpret(kernel, inputs)
    got = Emulation(kernel, cuda_source(mark_grids(kernel))).run(inputs)
    for store, want, have in zip(kernel.body[0].body, expected, got, strict=True):
        text = body_text((store,))
        if want.dtype.kind in "biu":
            np.testing.assert_array_equal(have, want, text)
            continue
        # The C library's functions are right to some units in the last place.
        eps = float(ml_dtypes.finfo(want.dtype).eps)
        wide = [array.astype(np.float64) for array in (have, want)]
        np.testing.assert_allclose(*wide, rtol=8 * eps, atol=8 * eps, err_msg=text)


UNSIGNED_GATHER = GATHER.replace("int32[3]", "uint64[3]")


@pytest.mark.parametrize("check_bounds", [False, True])
@pytest.mark.parametrize(
    "kernel",
    [*EVERY_OPERATION, parse_kernel(UNSIGNED_GATHER)],
    ids=lambda kernel: kernel.name,
)
def test_the_text_uses_no_macro_of_a_header(kernel: Kernel, check_bounds: bool) -> None:
    """NVRTC has none to include: what compiles with nvcc or gcc need not compile there."""
    text = printed(kernel, check_bounds).text
    defined = set(re.findall(r"#define (\w+)", text))
    assert set(re.findall(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b", text)) <= defined
    assert "#include" not in text


# NVRTC.


@needs_nvrtc
@pytest.mark.parametrize("kernel", EVERY_OPERATION, ids=lambda kernel: kernel.name)
def test_nvrtc_compiles_every_operation(kernel: Kernel) -> None:
    compiled(kernel)


@needs_nvrtc
@pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
def test_nvrtc_compiles_the_corpus(case: Case) -> None:
    compiled(specialised(case, case.inputs(np.random.default_rng(0), 36)))


@needs_nvrtc
def test_nvrtc_compiles_the_bounds_check() -> None:
    compiled(parse_kernel(GATHER), check_bounds=True)


def compiled(kernel: Kernel, check_bounds: bool = False) -> None:
    """Compiles a kernel; the functions it launches are in what comes out."""
    source = printed(kernel, check_bounds)
    compiler = find_compiler(ARCHITECTURE, "test")
    code = compiler.compile(source.text, kernel.name, ARCHITECTURE, "test")
    assert all(f".text.{launch.function}".encode() in code for launch in source.launches)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_nvcc_compiles_the_same_text(tmp_path: Path) -> None:
    for kernel in (EVERY_OPERATION[-4], parse_kernel(TOTAL)):
        path = tmp_path / f"{kernel.name}.cu"
        # nvcc includes headers that have these types.
        path.write_text("#include <cstdint>\n" + printed(kernel).text.removeprefix(PREAMBLE))
        command = ["nvcc", "-arch", ARCHITECTURE, "--cubin", path.name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


# Everything together.


# Each is a program to compile: at every run one of six. C and XLA's operations run all of them.
@pytest.mark.parametrize("case", one_in(12, CORPUS), ids=lambda case: case.name)
def test_the_corpus_agrees_with_numpy(case: Case) -> None:
    inputs = case.inputs(np.random.default_rng(0), 36)
    kernel = specialised(case, inputs)
    emulation = Emulation(kernel, printed(kernel))
    for order in ORDERS:
        case.check(inputs, emulation.run(inputs, order))


@settings(max_examples=examples(15), deadline=None)
@given(kernels(dtypes=WIDE_DTYPES))
def test_random_kernels_agree_with_the_interpreter(case) -> None:
    run_everywhere(case.kernel, case.inputs)


@settings(max_examples=examples(20), deadline=None)
@given(kernels(dtypes=WIDE_DTYPES))
def test_random_kernels_agree_with_arrays_in_device_memory(case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("msops._loops.to_cuda.source.THREAD_BYTES", 8)
        run_everywhere(case.kernel, case.inputs)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(kernels(dtypes=WIDE_DTYPES))
def test_many_random_kernels_agree(case) -> None:
    run_everywhere(case.kernel, case.inputs)


def test_the_loops_of_a_grid_are_those_of_a_nest_that_its_points_fill() -> None:
    kernel = parse_kernel(
        """
kernel k(a: float32[64, 64], n: int32[1]) -> (a) {
  parallel i in 0 .. 64 {
    parallel j in 0 .. (i + 1) {
      a[i, j] = 1.0:float32
    }
  }
  parallel p in 1 .. 64 {
    parallel q in p .. min(p + 2, 64) {
      a[p, q] = 2.0:float32
    }
  }
  parallel r in 0 .. n[0] {
    parallel s in 0 .. 64 {
      a[r, s] = 3.0:float32
    }
  }
}"""
    )
    lines = kernel_text(gridded(kernel)).splitlines()
    heads = [line.strip() for line in lines if "parallel" in line]
    assert heads == [
        "parallel i in 0 .. 64 @grid {",
        "parallel j in 0 .. (i + 1) @grid {",
        "parallel p in 1 .. 64 @grid {",
        # Most points of the square would be no iteration.
        "parallel q in p .. min(p + 2, 64) {",
        "parallel r in 0 .. n[0] {",
        "parallel s in 0 .. 64 {",
    ]
