"""Where memory or threads cannot be had, a call gives our own error or the right result."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from quick_cases import one_in

START = """
import os, resource, sys
import jax, jax.numpy as jnp, numpy as np
import msops
from msops.ops import CustomRegOp

def limit_memory(more_bytes):
    pages = int(open("/proc/self/statm").read().split()[0])
    size = pages * os.sysconf("SC_PAGE_SIZE") + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))

def lift_limit():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

def forbid_threads():
    if os.getuid() == 0:
        os.setuid(54321)  # root may have as many as it likes
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))

def print_error(call):
    try:
        jax.block_until_ready(call())
    except Exception as error:
        print(type(error).__name__, error)

first = lambda x: x
jnp.ones(3).block_until_ready()
"""


def run(script: str, folder: Path, **environment: str) -> str:
    """Returns what a process printed that has its own limits."""
    done = subprocess.run(
        [sys.executable, "-c", START + script],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    return done.stdout


WORKSPACE = """
#include "custom_aot_extra.h"
extern "C" int UsesInit(int *, int64_t **, const char **, AotExtra *extra) {
  extra->SetWorkSpace({size_t{4} << 30});
  return 0;
}
extern "C" int Uses(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  auto *scratch = static_cast<float *>(params[2]);
  scratch[0] = 2;
  for (int64_t i = 0; i < shapes[0][0]; ++i)
    static_cast<float *>(params[1])[i] = scratch[0] * static_cast<float *>(params[0])[i];
  return 0;
}
"""


def test_a_workspace_for_which_there_is_no_memory_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "uses.cc").write_text(WORKSPACE)
    printed = run(
        """
op = msops.Custom("uses.cc:Uses", first, first)
compiled = jax.jit(op).lower(jnp.arange(3.0)).compile()
limit_memory(1 << 30)
print_error(lambda: op(jnp.arange(3.0)))
lift_limit()
print(op(jnp.arange(3.0)))
""",
        tmp_path,
    )
    assert "KernelError" in printed
    assert "no memory for workspaces of 4294967296 bytes" in printed
    assert "Ask for less in Init" in printed
    assert printed.splitlines()[-1] == "[0. 2. 4.]"


AICPU = """
#include "inc/ms_cpu_kernel.h"
namespace { const char* kLast = "Last"; }
class Last : public aicpu::CpuKernel {
  uint32_t Compute(aicpu::CpuKernelContext &ctx) override {
    auto *x = static_cast<float *>(ctx.Input(0)->GetData());
    static_cast<float *>(ctx.Output(0)->GetData())[0] = x[ctx.Input(0)->NumElements() - 1];
    return 0;
  }
};
REGISTER_MS_CPU_KERNEL(kLast, Last);
"""


@pytest.mark.slow
def test_copies_of_inputs_for_which_there_is_no_memory_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "last.cc").write_text(AICPU)
    printed = run(
        """
info = CustomRegOp("Last").input(0, "x").output(0, "y").target("Ascend").get_op_info()
op = msops.Custom("last.cc", [1], np.float32, func_type="aicpu", reg_info=info)
x = jnp.ones(1 << 28, jnp.float32)
op(x[:4])
jax.jit(op).lower(x).compile()
limit_memory(1 << 29)
print_error(lambda: op(x))
lift_limit()
print(op(x))
""",
        tmp_path,
    )
    assert "KernelError" in printed
    assert "no memory for copies of its inputs" in printed
    assert printed.splitlines()[-1] == "[1.]"


def test_a_function_for_which_there_is_no_thread_is_an_error(tmp_path: Path) -> None:
    # XLA calls it on a thread of its own, as its input is still being computed: it needs one of
    # ours then, in which it may wait for JAX.
    printed = run(
        """
op = msops.Custom(np.square, first, first)
x = jnp.ones((400, 400))
square = jax.jit(op).lower(x).compile()
work = jax.jit(lambda x: jax.lax.fori_loop(0, 100, lambda i, m: jnp.tanh(m @ m), x))
work = work.lower(x).compile()
expected = np.square(np.asarray(work(x)))
forbid_threads()
for _ in range(5):
    pending = work(x)
    try:
        result = np.asarray(square(pending))
    except Exception as error:
        print(error)
    else:
        print("right" if np.array_equal(result, expected) else "wrong")
print("alive", np.array_equal(square(work(x).block_until_ready()), expected))
""",
        tmp_path,
    )
    assert (
        "Custom 'square' on CPU: its function needs a thread; got Resource temporarily" in printed
    )
    assert "wrong" not in printed
    assert printed.splitlines()[-1] == "alive True"


# Comes before operator new of the C++ library, and fails below a size that a kernel sets.
FAILING_NEW = """
#include <cstdlib>
#include <new>
extern "C" { thread_local std::size_t fail_below = 0; thread_local int failed_new = 0; }
void *operator new(std::size_t size) {
  if (size < fail_below) { ++failed_new; throw std::bad_alloc(); }
  if (void *memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
"""
SHORT_LOOP = """
#include "msops_parallel_for.h"
extern "C" { extern thread_local size_t fail_below; extern thread_local int failed_new; }
extern "C" int Twice(int, void **params, int *, int64_t **shapes, const char **, void *,
                     void *extra) {
  auto *x = static_cast<const float *>(params[0]);
  auto *y = static_cast<float *>(params[1]);
  failed_new = 0;
  fail_below = FAIL_BELOW;
  msops::ParallelFor(extra, shapes[0][0], 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = 2 * x[i];
  });
  fail_below = 0;
  y[0] = static_cast<float>(failed_new);
  return 0;
}
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one thread needs no helper")
@pytest.mark.parametrize("fail_below", [64, 1 << 20], ids=["helpers", "loop"])
def test_a_loop_without_memory_runs_on_its_own_thread(tmp_path: Path, fail_below: int) -> None:
    (tmp_path / "new.cc").write_text(FAILING_NEW)
    (tmp_path / "twice.cc").write_text(SHORT_LOOP.replace("FAIL_BELOW", str(fail_below)))
    library = tmp_path / "libnew.so"
    subprocess.run(["g++", "-shared", "-fPIC", tmp_path / "new.cc", "-o", library], check=True)
    printed = run(
        """
op = msops.Custom("twice.cc:Twice", first, first)
result = np.asarray(op(jnp.arange(100_000.0)))
print(result[0] > 0, np.array_equal(result[1:], 2 * np.arange(1.0, 100_000)))
""",
        tmp_path,
        LD_PRELOAD=str(library),
    )
    assert printed == "True True\n"


# Lets one allocation of msops's own library fail, on whichever thread: the one after `pass_news`
# others.
FAILING_ONCE = """
#include <dlfcn.h>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
extern "C" { std::atomic<long> pass_news{-1}, failed_news{0}; }
static bool is_ours(const void *caller) {
  Dl_info from;
  return dladdr(caller, &from) && std::strstr(from.dli_fname, "/_native");
}
void *operator new(std::size_t size) {
  if (pass_news >= 0 && is_ours(__builtin_return_address(0)) && pass_news-- == 0) {
    ++failed_news;
    throw std::bad_alloc();
  }
  if (void *memory = std::malloc(size ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, std::size_t) noexcept { std::free(memory); }
"""
FAIL_EACH = """
import ctypes
news = ctypes.CDLL(os.environ["LD_PRELOAD"])
pass_news, failed_news = (ctypes.c_long.in_dll(news, name) for name in ("pass_news", "failed_news"))

def fail_each(name, call, expected):
    # The first allocation fails, then the second, until a call makes none that could.
    for count in range(300):
        before = failed_news.value
        pass_news.value = count
        said = "right"
        try:
            result = np.asarray(call())
        except Exception as error:
            said = f"{type(error).__name__}: {error}".splitlines()[0]
        else:
            if not np.array_equal(result, expected):
                said = f"wrong {result}"
        pass_news.value = -1
        if failed_news.value == before:
            return
        print(name, said)
    raise AssertionError("a call allocates without end")

x = jnp.arange(4.0)
big = jnp.ones((400, 400))
take_time = lambda m: jax.lax.fori_loop(0, 100, lambda i, m: jnp.tanh(m @ m), m)[0, 0]
work = jax.jit(lambda big, x: take_time(big) * 0 + x).lower(big, x).compile()

def check(op):
    compiled = jax.jit(op).lower(x).compile()
    expected = 2 * np.arange(4.0)
    fail_each("run", lambda: compiled(x), expected)
    fail_each("pending", lambda: compiled(work(big, x)), expected)
    fail_each("first", lambda: jax.jit(lambda x: op(x)).lower(x).compile()(x), expected)
    print(compiled(x))
"""
DOUBLE = """
#include <cstdint>
extern "C" int Double(int, void **params, int *, int64_t **shapes, const char **, void *, void *) {
  for (int64_t i = 0; i < shapes[0][0]; ++i)
    static_cast<float *>(params[1])[i] = 2 * static_cast<float *>(params[0])[i];
  return 0;
}
"""
# What Python itself calls on the first call, to open a library say, raises its own MemoryError.
OURS = re.compile(
    r"(?:run|pending|first) (?:right|JaxRuntimeError: \w+: Custom '[^']+' on CPU: "
    r"(?:no memory for its call|its function needs a thread.*; got std::bad_alloc)\.)"
    r"|first MemoryError: std::bad_alloc"
)
OPS_THAT_DOUBLE = {
    "C++": "op = msops.Custom('double.cc:Double', first, first)",
    "Python": "op = msops.Custom(lambda x: 2 * x, first, first)",
}


@pytest.mark.slow
@pytest.mark.parametrize("make", one_in(2, OPS_THAT_DOUBLE.values()), ids=OPS_THAT_DOUBLE)
def test_a_small_allocation_that_fails_is_an_error_of_the_op(tmp_path: Path, make: str) -> None:
    (tmp_path / "new.cc").write_text(FAILING_ONCE)
    (tmp_path / "double.cc").write_text(DOUBLE)
    library = tmp_path / "libnew.so"
    subprocess.run(["g++", "-shared", "-fPIC", tmp_path / "new.cc", "-o", library], check=True)
    printed = run(FAIL_EACH + make + "\ncheck(op)\n", tmp_path, LD_PRELOAD=str(library))
    *lines, last = printed.splitlines()
    assert last == "[0. 2. 4. 6.]"
    assert len(lines) > 20
    assert [line for line in lines if not OURS.fullmatch(line)] == []
