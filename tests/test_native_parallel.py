"""Loops that kernels split over XLA's threads, and what else generated C asks of the handler."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from loop_ir import PASSES_TO_C, build_generated, parse_kernel, run_passes
from loop_native import printed
from native_harness import PREAMBLE, Call, Library, build, failure, native, register, run, same

SOURCE = (
    PREAMBLE
    + """
#include <algorithm>
#include <atomic>
#include <pthread.h>
#include <unistd.h>
extern "C" int (*msops_parallel_for_slot)(int64_t begin, int64_t end, int64_t grain,
                                          int (*task)(void *, int64_t, int64_t), void *argument);
int (*msops_parallel_for_slot)(int64_t, int64_t, int64_t, int (*)(void *, int64_t, int64_t),
                               void *) = nullptr;

// Adds 1 to each of its elements; each block takes a while, so that all threads have a part.
struct Job {
  int32_t *counts;
  int32_t *threads;
  pthread_t caller;
  int wait_us;
};
static int Count(void *argument, int64_t begin, int64_t end) {
  auto *job = static_cast<Job *>(argument);
  for (int64_t i = begin; i < end; ++i) {
    __atomic_fetch_add(&job->counts[i], 1, __ATOMIC_RELAXED);
    job->threads[i] = !pthread_equal(pthread_self(), job->caller);
  }
  usleep(job->wait_us);
  return 0;
}
// Input: how long a block takes, in microseconds.
KERNEL(Counts) {
  const int wait_us = *static_cast<int32_t *>(params[0]);
  const int64_t size = shapes[1][0];
  memset(params[1], 0, size * sizeof(int32_t));
  Job job = {static_cast<int32_t *>(params[1]), static_cast<int32_t *>(params[2]), pthread_self(),
             wait_us};
  return msops_parallel_for_slot(0, size, 1, Count, &job);
}

// Input: the grain. Output: for each iteration the first one of its block.
static int Begin(void *argument, int64_t begin, int64_t end) {
  std::fill_n(static_cast<int32_t *>(argument) + begin, end - begin, int32_t(begin));
  return 0;
}
KERNEL(Begins) {
  const int grain = *static_cast<int32_t *>(params[0]);
  return msops_parallel_for_slot(0, shapes[1][0], grain, Begin, params[1]);
}

// A loop in each block of a loop; the inner one must run where the block does.
static int Outer(void *argument, int64_t begin, int64_t end) {
  auto *counts = static_cast<int32_t *>(argument);
  for (int64_t i = begin; i < end; ++i) {
    Job job = {counts + 8 * i, counts + 8 * i, pthread_self(), 100};
    if (int code = msops_parallel_for_slot(0, 8, 1, Count, &job)) return code;
  }
  return 0;
}
KERNEL(Nested) { return msops_parallel_for_slot(0, 8, 1, Outer, params[1]); }

// Input: the iteration that fails. Output: how many ran.
struct Failing {
  int32_t bad;
  std::atomic<int32_t> ran;
};
static int Fail(void *argument, int64_t begin, int64_t end) {
  auto *failing = static_cast<Failing *>(argument);
  for (int64_t i = begin; i < end; ++i) {
    ++failing->ran;
    if (i == failing->bad) return 40 + int(i % 10);
  }
  usleep(200);
  return 0;
}
KERNEL(Fails) {
  Failing failing = {*static_cast<int32_t *>(params[0]), {0}};
  const int code = msops_parallel_for_slot(0, 1000, 1, Fail, &failing);
  *static_cast<int32_t *>(params[1]) = failing.ran;
  return code;
}
extern "C" const char *FailsMessage(int code) { return code == 47 ? "seven it was" : nullptr; }

static int Throw(void *, int64_t begin, int64_t) {
  if (begin > 0) throw std::runtime_error("thrown in a block");
  usleep(1000);
  return 0;
}
KERNEL(Throws) { return msops_parallel_for_slot(0, 100, 1, Throw, nullptr); }

// Iterations that are none, and ranges that do not start at 0.
static int Add(void *argument, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    __atomic_fetch_add(static_cast<int32_t *>(argument), int32_t(i), __ATOMIC_RELAXED);
  }
  return 0;
}
KERNEL(Ranges) {
  auto *sums = static_cast<int32_t *>(params[1]);
  memset(sums, 0, 4 * sizeof(int32_t));
  msops_parallel_for_slot(5, 5, 1, Add, sums);
  msops_parallel_for_slot(5, -5, 1, Add, sums + 1);
  msops_parallel_for_slot(-10, 11, 3, Add, sums + 2);
  msops_parallel_for_slot(100, 200, 1000, Add, sums + 3);
  return 0;
}

// What the handler was told of workspaces: their pointers are aligned, and memory of one's own.
KERNEL(Workspaces) {
  if (nparam != 4) return 1;
  for (int i = 2; i < 4; ++i) {
    if (reinterpret_cast<uintptr_t>(params[i]) % 64) return 2;
    memset(params[i], i, i == 2 ? 100000 : 8);
  }
  *static_cast<int32_t *>(params[1]) = static_cast<char *>(params[2])[99999];
  return 0;
}
"""
)

INT = jax.ShapeDtypeStruct((), "int32")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("parallel"), SOURCE)


def ints(*shape):
    return jax.ShapeDtypeStruct(shape, "int32")


def test_every_iteration_runs_once_and_other_threads_help(library):
    counts, elsewhere = run(Call(library, "Counts", (ints(64), ints(64))), np.int32(1000))
    np.testing.assert_array_equal(counts, 1)
    assert (elsewhere == 0).any()
    assert len(os.sched_getaffinity(0)) == 1 or (elsewhere == 1).any()


def test_each_thread_begins_with_a_part_of_its_own(library):
    threads = len(os.sched_getaffinity(0))
    # Blocks of five, three or more in a part.
    parts = ints(16 * threads)
    _, elsewhere = run(Call(library, "Counts", (parts, parts)), np.int32(50000))
    np.testing.assert_array_equal(elsewhere[:10], 0, "the caller has the first part")


@pytest.mark.parametrize("grain", [1, 7, 130, 170, 240, 250, 300])
def test_threads_have_the_same_number_of_blocks(library, grain):
    threads = len(os.sched_getaffinity(0))
    size = 200 * threads
    (begins,) = run(Call(library, "Begins", (ints(size),)), np.int32(grain))
    sizes = np.unique(begins, return_counts=True)[1]
    assert sizes.sum() == size
    assert all(sizes[:-1] >= grain)
    assert len(sizes) % threads == 0 or len(sizes) < threads
    if grain < 200:
        assert max(sizes) - min(sizes) <= len(sizes)


def test_many_short_loops_neither_lose_nor_repeat_iterations(library):
    call = jax.jit(lambda x: Call(library, "Counts", (ints(500), ints(500)))(x)[0])
    for _ in range(300):
        np.testing.assert_array_equal(call(np.int32(0)), 1)


def test_a_loop_inside_a_block_runs_in_its_thread(library):
    (places,) = run(Call(library, "Nested", (ints(64),)), np.int32(0))
    # Count adds 1 and then stores whether another thread than the block's ran it.
    np.testing.assert_array_equal(places, 0)


def test_calls_from_many_threads_do_not_wait_for_each_other_for_ever(library):
    call = jax.jit(lambda x: Call(library, "Counts", (ints(32), ints(32)))(x)[0])
    call(np.int32(0))
    done = []

    def work() -> None:
        for _ in range(20):
            np.testing.assert_array_equal(call(np.int32(50)), 1)
        done.append(True)

    workers = [threading.Thread(target=work, daemon=True) for _ in range(8)]
    for worker in workers:
        worker.start()
    end = time.monotonic() + 60
    for worker in workers:
        worker.join(max(0.0, end - time.monotonic()))
    assert len(done) == 8


def test_independent_calls_of_one_program_share_the_pool(library):
    kernel = Call(library, "Counts", (ints(40), ints(40)))

    @jax.jit
    def program(x):
        return sum(kernel(x + i)[0] for i in range(12))

    np.testing.assert_array_equal(program(np.int32(20)), 12)


def test_the_code_of_a_block_is_the_kernels_and_ends_the_loop(library):
    call = Call(library, "Fails", (INT,))
    message = failure(call, np.int32(7))
    assert "kernel returned 47" in message
    assert "seven it was" in message
    assert "kernel returned 49" in failure(call, np.int32(999))
    assert run(call, np.int32(-1))[0] == 1000


def test_an_exception_of_a_block_reaches_the_caller(library):
    assert "thrown in a block" in failure(Call(library, "Throws", (INT,)), np.int32(0))


def test_ranges_that_are_empty_negative_or_less_than_a_block(library):
    (sums,) = run(Call(library, "Ranges", (ints(4),)), np.int32(0))
    np.testing.assert_array_equal(sums, [0, 0, 0, sum(range(100, 200))])


def test_workspaces_come_without_an_init(library):
    call = Call(library, "Workspaces", (INT,), workspaces=(100000, 8))
    assert run(call, np.int32(0))[0] == 2


# Generated C.

SUMS = """kernel sums(a: float32[2000, 1000]) -> (s) {
  buffer s: float32[2000]
  parallel i in 0 .. 2000 {
    local t: float32[1000] {
      parallel j in 0 .. 1000 { t[j] = tanh(a[i, j]) }
      reduction k in 0 .. 1000 { s[i] = s[i] + t[k] }
    }
  }
}"""


def generated(text: str, check_bounds: bool = False):
    """Returns a kernel's library, as the toolchain builds it, and its C."""
    kernel = parse_kernel(text)
    source = printed(run_passes(kernel, PASSES_TO_C), check_bounds=check_bounds)
    made = build_generated(source.text, kernel.name, "test", source.libraries)
    native.register_library(made.hash, str(made.path), "", False)
    return Library(made.path, made.hash), kernel, source


def call_of(text: str, check_bounds: bool = False) -> Call:
    made, kernel, source = generated(text, check_bounds)
    outputs = tuple(jax.ShapeDtypeStruct(b.shape, b.dtype) for b in kernel.outputs)
    return Call(made, source.symbol, outputs, workspaces=source.workspaces)


def test_generated_kernels_run_on_several_threads():
    call = call_of(SUMS)
    x = np.random.default_rng(0).standard_normal((2000, 1000)).astype("float32")
    expected = np.tanh(x.astype("float64")).sum(1)
    with ThreadPoolExecutor(4) as pool:
        for (s,) in pool.map(lambda _: run(call, x), range(8)):
            np.testing.assert_allclose(s, expected, rtol=1e-4, atol=1e-3)


def test_generated_kernels_get_their_workspace():
    call = call_of(
        """kernel back(a: float32[50000]) -> (b) {
          buffer b: float32[50000]
          buffer t: float32[50000]
          parallel i in 0 .. 50000 { t[49999 - i] = a[i] }
          parallel j in 0 .. 50000 { b[j] = t[j] + 1.0:float32 }
        }"""
    )
    assert call.workspaces == (200000,)
    x = np.arange(50000, dtype="float32")
    np.testing.assert_array_equal(run(call, x)[0], x[::-1] + 1)


def test_an_index_out_of_range_is_named_in_the_error():
    call = call_of(
        """kernel pick(a: float32[4], k: int32[3]) -> (b) {
          buffer b: float32[3]
          serial i in 0 .. 3 { b[i] = a[k[i]] }
        }""",
        check_bounds=True,
    )
    a = np.arange(4, dtype="float32")
    np.testing.assert_array_equal(run(call, a, np.array([3, 0, 1], "int32"))[0], [3, 0, 1])
    message = failure(call, a, np.array([3, 4, 1], "int32"))
    assert "index 0 of 'a' is outside of 0 .. 3" in message
    assert "Correct what it names; an if can guard an access that is out of range." in message
    assert "b[i] = a[k[i]]" in message


def test_generated_libraries_are_allowed_whatever_the_allow_list_says(tmp_path, monkeypatch):
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(tmp_path))
    made, _, source = generated(
        """kernel one(a: float32[3]) -> (b) {
          buffer b: float32[3]
          parallel i in 0 .. 3 { b[i] = a[i] + 1.0:float32 }
        }"""
    )
    x = np.zeros(3, "float32")
    np.testing.assert_array_equal(run(Call(made, source.symbol, same(x)), x)[0], 1)


def test_a_library_of_a_user_stays_subject_to_the_allow_list(tmp_path, monkeypatch, library):
    monkeypatch.setenv("MS_CUSTOM_AOT_WHITE_LIST", str(tmp_path / "elsewhere"))
    register(library.path)
    with pytest.raises(RuntimeError, match="allowed folder"):
        native.open_library(library.hash)


def test_without_a_slot_filled_the_loop_runs_in_the_caller(library):
    made, _, source = generated(SUMS)
    alone = ctypes.CDLL(str(made.path))
    slot = ctypes.c_void_p.in_dll(alone, "msops_parallel_for_slot")
    held, slot.value = slot.value, None
    try:
        x = np.ones((2000, 1000), "float32")
        s = np.empty(2000, "float32")
        pointers = (ctypes.c_void_p * 2)(x.ctypes.data, s.ctypes.data)
        assert alone[source.symbol](2, pointers, None, None, None, None, None) == 0
    finally:
        slot.value = held
    np.testing.assert_allclose(s, 1000 * np.tanh(1), rtol=1e-4)


@pytest.mark.parametrize(
    ("value", "libraries"),
    [
        ("abs(x[i]) + 1.0:float64", []),
        ("expm1(x[i])", ["libm"]),
        ("x[i] % 3.0:float64", ["libm"]),
        ("log(x[i])", ["libm"]),
    ],
)
def test_generated_c_is_linked_with_what_it_calls(value, libraries):
    made, _, _ = generated(f"""kernel linked(x: float64[9]) -> (y) {{
  buffer y: float64[9]
  parallel i in 0 .. 9 {{ y[i] = {value} }}
}}""")
    listed = subprocess.run(
        ["readelf", "--dynamic", made.path], check=True, capture_output=True, text=True
    ).stdout
    # Without it a process still finds a function, of the oldest version that there is.
    needed = re.findall(r"NEEDED.*\[(\w+)\.", listed)
    assert [name for name in needed if name != "libmvec"] == libraries
