"""Running kernels through the FFI handlers: arguments, results, failures, memory."""

from __future__ import annotations

import ctypes

import jax
import jax.numpy as jnp
import native_harness as harness
import numpy as np
import pytest
from conftest import KERNELS as KERNELS_FOLDER
from native_harness import PREAMBLE, Call, build, failure, run, same

# On MindSpore 2.7.2 such a kernel gives zeros.
READS_PAST = (KERNELS_FOLDER / "reads_past.cc").read_text()

DTYPES = ["bool", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
DTYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]

KERNELS = (
    PREAMBLE
    + """
KERNEL(Fail) { return 42; }
KERNEL(ThrowStandard) { throw std::out_of_range("index 7 of 3"); }
KERNEL(ThrowInt) { throw 7; }
struct Silent : std::exception {
  const char *what() const noexcept override { return nullptr; }
};
KERNEL(ThrowSilent) { throw Silent(); }
KERNEL(Unexplained) { return 3; }
extern "C" const char *UnexplainedMessage(int code) { throw code; }

// Writes the dtype's name.
KERNEL(DtypeName) {
  strcpy(static_cast<char *>(params[1]), dtypes[0]);
  return 0;
}

// Writes the rank of input 0, the product of its first 8 entries, and whether `stream` is null.
KERNEL(Describe) {
  auto *out = static_cast<int32_t *>(params[1]);
  int64_t product = 1;
  for (int i = 0; i < 8; ++i) product *= shapes[0][i];
  out[0] = ndims[0];
  out[1] = product;
  out[2] = stream == nullptr;
  return 0;
}

KERNEL(SumAll) {
  float sum = 0;
  for (int i = 0; i + 1 < nparam; ++i) {
    sum += *static_cast<float *>(params[i]);
    // Shapes are readable up to nparam entries, however many there are.
    for (int k = 0; k < nparam; ++k) if (shapes[i][k] != 1) return 1;
  }
  *static_cast<float *>(params[nparam - 1]) = sum;
  return 0;
}

KERNEL(CountNulls) {
  auto *out = static_cast<int32_t *>(params[nparam - 1]);
  *out = 0;
  for (int i = 0; i < nparam; ++i) *out += params[i] == nullptr;
  return 0;
}

static int bare_calls = 0;
KERNEL(Bare) {
  const bool bare = !nparam && !params && !ndims && !shapes && !dtypes && extra;
  bare_calls += bare;
  return bare ? 0 : 1;
}
extern "C" int BareCalls() { return bare_calls; }
"""
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("kernels"), KERNELS)


@pytest.fixture(scope="module")
def add(tmp_path_factory):
    return build(tmp_path_factory.mktemp("add"), READS_PAST, "add")


def test_a_kernel_that_reads_past_its_shape_is_right(add):
    x = np.array([[0.0, 0.0], [1.0, 1.0]], np.float32)
    y = np.array([[2.0, 2.0], [3.0, 3.0]], np.float32)
    (out,) = run(Call(add, "CustomAdd", same(x)), x, y)
    np.testing.assert_array_equal(out, [[2, 2], [4, 4]])


def test_jit_and_scan_run_the_kernel(add):
    x = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3)
    call = Call(add, "CustomAdd", same(x))
    total, _ = jax.jit(lambda x: jax.lax.scan(lambda c, _: (call(c, x)[0], None), x, None, 9))(x)
    np.testing.assert_allclose(total, 10 * x, rtol=1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_kernel_is_told_the_dtype(library, dtype):
    with jax.enable_x64(True):
        x = jnp.zeros(3, dtype)
        (out,) = run(Call(library, "DtypeName", (jax.ShapeDtypeStruct((16,), np.uint8),)), x)
    assert out.tobytes().split(b"\0")[0].decode() == dtype


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (1, 2, 1, 3, 1, 2, 1, 2)])
def test_kernel_is_told_rank_and_padded_shape(library, shape):
    call = Call(library, "Describe", (jax.ShapeDtypeStruct((3,), np.int32),))
    (out,) = run(call, np.zeros(shape, np.float32))
    assert out.tolist() == [len(shape), np.prod(shape, dtype=int), 1]


@pytest.mark.parametrize("count", [1, 9, 31, 32, 70])
def test_any_number_of_inputs(library, count):
    inputs = [np.float32(i + 1) for i in range(count)]
    call = Call(library, "SumAll", (jax.ShapeDtypeStruct((), np.float32),))
    (out,) = run(call, *inputs)
    assert out == count * (count + 1) / 2


def test_zero_size_inputs_have_pointers(library):
    call = Call(library, "CountNulls", (jax.ShapeDtypeStruct((), np.int32),))
    (out,) = run(call, np.zeros((0, 3), np.float32), np.zeros(0, np.int8), np.ones(2, np.float32))
    assert out == 0


def test_zero_size_result(add):
    x = np.zeros((0, 4), np.float32)
    (out,) = run(Call(add, "CustomAdd", same(x)), x, x)
    assert out.shape == (0, 4)


def test_call_without_arrays_passes_null_pointers(library):
    attributes = Call(library, "Bare", ()).ffi_attributes((), ())
    harness.register_targets()
    # Of the calls without result, JAX keeps only those that are said to have an effect.
    call = jax.ffi.ffi_call("msops_aot", (), has_side_effect=True)
    jax.jit(lambda: call(**attributes))()
    jax.effects_barrier()
    assert ctypes.CDLL(str(library.path)).BareCalls() == 1


def test_nonzero_return_is_an_error_with_code_symbol_and_library(library):
    x = np.zeros(2, np.float32)
    text = failure(Call(library, "Fail", same(x)), x)
    assert (
        "Custom 'fail' on CPU: kernel returned 42, expected 0:\n"
        f"  symbol Fail of library kernel.so ({library.hash[:12]})\n"
        "  inputs: float32[2]; outputs: float32[2]\n"
        "The value is the kernel's own error code; see its source."
    ) in text


@pytest.mark.parametrize(
    ("symbol", "description"),
    [
        ("ThrowStandard", "std::out_of_range: index 7 of 3"),
        ("ThrowInt", "int"),
        ("ThrowSilent", "Silent: "),
    ],
)
def test_exception_of_a_kernel_is_an_error(library, symbol, description):
    x = np.zeros(2, np.float32)
    text = failure(Call(library, symbol, same(x)), x)
    assert f"kernel threw an exception, expected it to return 0:\n  {description}\n" in text
    assert f"symbol {symbol} of library kernel.so" in text


def test_a_code_whose_explanation_throws_is_an_error(library):
    x = np.zeros(2, np.float32)
    text = failure(Call(library, "Unexplained", same(x)), x)
    assert "kernel returned 3, expected 0:\n  symbol Unexplained of library" in text


def test_missing_symbol_is_an_error_when_the_program_is_compiled(library):
    x = np.zeros(2, np.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match="symbol Absent of library kernel"):
        jax.jit(Call(library, "Absent", same(x))).lower(x).compile()


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({"dims": np.array([4, 4], np.int64)}, r"array 0 is F32\(2\), expected F32\(4\)"),
        ({"dtypes": "int32,float32"}, r"array 0 is F32\(2\), expected S32\(2\)"),
        ({"dtypes": "float32"}, "2 shapes and 1 dtypes, expected equal counts"),
        ({"dtypes": "float32,float31"}, "'float31' is no dtype"),
        ({"dims": np.array([2], np.int64)}, "row lengths"),
        ({"ranks": np.array([3, -1], np.int64)}, "row lengths"),
        (
            {
                "ranks": np.ones(3, np.int64),
                "dims": np.full(3, 2),
                "dtypes": "float32" + ",float32" * 2,
            },
            "got 2 inputs and outputs, expected 3",
        ),
    ],
)
def test_program_that_disagrees_with_its_buffers_does_not_reach_the_kernel(
    library, overrides, problem
):
    x = np.zeros(2, np.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match=problem):
        run(Call(library, "Fail", same(x), overrides=overrides), x)


def test_many_calls_keep_memory_flat(add):
    x = jnp.zeros(20, jnp.float32)
    call = jax.jit(Call(add, "CustomAdd", same(x)))
    for _ in range(5_000):
        call(x, x)
    before = harness.resident_bytes()
    for _ in range(100_000):
        (out,) = call(x, x)
    out.block_until_ready()
    assert harness.resident_bytes() - before < 4 << 20


@pytest.mark.parametrize("times", [700, pytest.param(3_000, marks=pytest.mark.slow)])
def test_many_failing_calls_keep_memory_flat(library, times):
    x = jnp.zeros(2, jnp.float32)
    call = jax.jit(Call(library, "ThrowStandard", same(x)))

    def fail(times):
        for _ in range(times):
            with pytest.raises(jax.errors.JaxRuntimeError):
                jax.block_until_ready(call(x))

    fail(200)
    before = harness.resident_bytes()
    fail(times)
    assert harness.resident_bytes() - before < 2_800 * times
