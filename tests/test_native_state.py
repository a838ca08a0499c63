"""What a call site keeps: Init, workspaces, kernel data, and calls that overlap."""

from __future__ import annotations

import ctypes
import gc
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import native_harness as harness
import numpy as np
import pytest
from native_harness import PREAMBLE, Call, build, failure, run, same

pytestmark = pytest.mark.usefixtures("quick_collections")

SOURCE = (
    PREAMBLE
    + """
#include <atomic>
#include <unistd.h>
#include "custom_aot_extra.h"
#define COMPANION(name) extern "C" int name(int *ndims, int64_t **shapes, const char **dtypes, \\
                                            AotExtra *extra)

// Counts how many calls are inside a kernel at once.
static std::atomic<int> running{0}, most_running{0};
struct Inside {
  Inside() {
    int now = ++running;
    for (int most = most_running; now > most && !most_running.compare_exchange_weak(most, now);) {}
  }
  ~Inside() { --running; }
};
extern "C" int TakeMostRunning() { return most_running.exchange(0); }

// Fills its workspaces with the input's value, waits, and finds them as they were.
COMPANION(ScratchInit) {
  extra->SetWorkSpace({1000 * sizeof(float), 0, 12});
  return 0;
}
KERNEL(Scratch) {
  Inside inside;
  if (nparam != 5) return 1;
  const float value = *static_cast<float *>(params[0]);
  auto *block = static_cast<float *>(params[2]);
  for (int i = 0; i < 1000; ++i) block[i] = value;
  auto *last = static_cast<char *>(params[4]);
  memset(last, int(value), 512);
  usleep(2000);
  for (int i = 0; i < 1000; ++i) if (block[i] != value) return 2;
  for (int i = 0; i < 512; ++i) if (last[i] != char(value)) return 3;
  for (int i = 2; i < 5; ++i) if (reinterpret_cast<uintptr_t>(params[i]) % 64) return 4;
  *static_cast<float *>(params[1]) = value;
  return 0;
}

// Reads shapes up to nparam, and dtypes, ndims and shapes of the workspaces.
COMPANION(ManyScratchInit) {
  extra->SetWorkSpace(std::vector<size_t>(12, 1));
  return 0;
}
KERNEL(ManyScratch) {
  if (nparam != 14) return 1;
  for (int i = 0; i < nparam; ++i) {
    if (strlen(dtypes[i]) > 16 || ndims[i] > 1) return 2;
    for (int k = ndims[i]; k < nparam; ++k) if (shapes[i][k] != 1) return 3;
  }
  for (int i = 2; i + 1 < nparam; ++i) {
    if (static_cast<char *>(params[i + 1]) - static_cast<char *>(params[i]) != 512) return 4;
  }
  return 0;
}

COMPANION(HugeScratchInit) {
  extra->SetWorkSpace({size_t(-5)});
  return 0;
}
KERNEL(HugeScratch) { return 0; }
COMPANION(LargeScratchInit) {
  extra->SetWorkSpace({size_t(1) << 50});
  return 0;
}
KERNEL(LargeScratch) { return 0; }

// Counts its own calls in data attached by Init.
static std::atomic<int> live_data{0}, inits{0};
struct Counter : AotKernelData {
  Counter() { ++live_data; }
  ~Counter() override { --live_data; }
  int calls = 0;
};
extern "C" int LiveData() { return live_data; }
extern "C" int Inits() { return inits; }
COMPANION(CountInit) {
  ++inits;
  extra->SetKernelData(new Counter);
  return 0;
}
KERNEL(Count) {
  Inside inside;
  auto *counter = static_cast<Counter *>(static_cast<AotExtra *>(extra)->KernelData());
  const int calls = ++counter->calls;
  usleep(1000);
  if (counter->calls != calls) return 1;
  *static_cast<float *>(params[1]) = calls;
  return 0;
}

KERNEL(Slow) {
  Inside inside;
  usleep(2000);
  return 0;
}
KERNEL(AlsoSlow) { return Slow(nparam, params, ndims, shapes, dtypes, stream, extra); }

COMPANION(BadInitInit) {
  extra->SetKernelData(new Counter);
  return ndims[0] + 10;
}
KERNEL(BadInit) { return 0; }
COMPANION(ThrowInitInit) { throw std::invalid_argument("no such mode"); }
KERNEL(ThrowInit) { return 0; }
"""
)

SCALAR = jax.ShapeDtypeStruct((), np.float32)


def tagged(tag):
    """The source with a tag in it: libraries of equal content are one library to the module."""
    return f'{SOURCE}\nextern "C" const char tag[] = "{tag}";\n'


@pytest.fixture(scope="module", params=[False, True], ids=["new_string", "old_string"])
def library(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("state")
    return build(directory, tagged(request.param), "state", old_string_abi=request.param)


@pytest.fixture
def probe(library):
    probe = ctypes.CDLL(str(library.path))
    probe.TakeMostRunning()
    return probe


def overlapping(*functions, times=24):
    """Calls the functions in turn from four threads at once; returns the results in order."""
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(functions[i % len(functions)], i) for i in range(times)]
        return [call.result() for call in calls]


def test_overlapping_calls_do_not_share_workspaces(library, probe):
    call = jax.jit(Call(library, "Scratch", (SCALAR,)))
    results = overlapping(lambda i: float(call(jnp.float32(i))[0]))
    assert results == list(range(24))
    assert probe.TakeMostRunning() > 1


def test_workspaces_of_two_sites_in_one_program_are_apart(library):
    call = Call(library, "Scratch", (SCALAR,))
    out = jax.jit(lambda x: call(x)[0] + call(x + 1)[0])(jnp.float32(3))
    assert float(out) == 7


def test_arrays_are_readable_up_to_nparam_with_workspaces(library):
    x = np.zeros(3, np.float32)
    run(Call(library, "ManyScratch", same(x)), x)


def test_workspace_that_cannot_be_is_an_error(library):
    x = np.zeros(3, np.float32)
    text = failure(Call(library, "HugeScratch", same(x)), x)
    assert f"Init asked for a workspace of {2**64 - 5} bytes" in text
    assert "Pass sizes in bytes to SetWorkSpace" in text
    text = failure(Call(library, "LargeScratch", same(x)), x)
    assert f"no memory for workspaces of {2**50} bytes" in text
    assert "Ask for less in Init" in text


def test_workspace_calls_keep_memory_flat(library):
    call = jax.jit(Call(library, "ManyScratch", same(np.zeros(3, np.float32))))
    x = jnp.zeros(3, jnp.float32)
    for _ in range(2_000):
        call(x)
    before = harness.resident_bytes()
    for _ in range(100_000):
        (out,) = call(x)
    out.block_until_ready()
    assert harness.resident_bytes() - before < 4 << 20


def test_init_runs_once_per_site_and_calls_with_data_do_not_overlap(library, probe):
    before = probe.Inits()
    call = jax.jit(Call(library, "Count", (SCALAR,)))
    results = overlapping(lambda i: float(call(jnp.float32(i))[0]))
    assert sorted(results) == list(range(1, 25))
    assert probe.TakeMostRunning() == 1
    assert probe.Inits() - before == 1
    # Another call site has data of its own.
    assert float(jax.jit(Call(library, "Count", (SCALAR,)))(jnp.float32(0))[0]) == 1


def test_kernel_data_dies_with_the_program(library, probe):
    jax.clear_caches()
    gc.collect()
    before = probe.LiveData()
    call = jax.jit(Call(library, "Count", (SCALAR,)))
    call(jnp.float32(0))[0].block_until_ready()
    assert probe.LiveData() == before + 1
    del call
    jax.clear_caches()
    gc.collect()
    # A thread of JAX's may hold the program for a moment longer than its result is waited for.
    for _ in range(200):
        if probe.LiveData() == before:
            break
        time.sleep(0.01)
    assert probe.LiveData() == before


def test_calls_overlap_until_one_op_says_its_library_is_not_reentrant(tmp_path_factory):
    library = build(tmp_path_factory.mktemp("serial"), tagged("serial"), "serial")
    probe = ctypes.CDLL(str(library.path))
    slow = jax.jit(Call(library, "Slow", (SCALAR,)))
    overlapping(lambda i: float(slow(jnp.float32(i))[0]))
    assert probe.TakeMostRunning() > 1
    other = jax.jit(Call(library, "AlsoSlow", (SCALAR,), reentrant=False))
    float(other(jnp.float32(0))[0])
    probe.TakeMostRunning()
    overlapping(lambda i: float(slow(jnp.float32(i))[0]), lambda i: float(other(jnp.float32(i))[0]))
    assert probe.TakeMostRunning() == 1


def test_failed_init_is_an_error_and_leaves_nothing(library, probe):
    before = probe.LiveData()
    x = np.zeros((2, 2), np.float32)
    text = failure(Call(library, "BadInit", same(x)), x)
    assert "Custom 'badinit' on CPU: Init returned 12, expected 0" in text
    assert "symbol BadInitInit of library state.so" in text
    assert "\n  inputs: float32[2, 2]; outputs: float32[2, 2]\n" in text
    assert probe.LiveData() == before


def test_exception_of_init_is_an_error(library):
    x = np.zeros(2, np.float32)
    text = failure(Call(library, "ThrowInit", same(x)), x)
    assert "Init threw an exception" in text
    assert "std::invalid_argument: no such mode" in text
    assert "\n  inputs: float32[2]; outputs: float32[2]\n" in text
