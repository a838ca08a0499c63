"""set_context(host_memory_pool=): whether large results on the CPU are made of new pages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROOT

import msops
from msops import errors

# Pages that a call of an op with a result of 64 MiB has the kernel make, after a few such calls;
# whether malloc maps a block apart that is larger than all that is free, which calls do not show
# once the heap has free blocks; and the memory in MiB that the process holds before and after the
# setting goes back.
COUNT = """
import ctypes, gc, json, os, resource
import jax, jax.numpy as jnp
import msops

op = msops.Custom("benchmarks/add_aot.cc:Add", lambda x, y: x, lambda x, y: x)
x = jnp.ones(2**24, jnp.float32)

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def measure():
    # The first calls use up the blocks that are left of what was kept before.
    for _ in range(20):
        op(x, x).block_until_ready()
    before = faults()
    for _ in range(4):
        op(x, x).block_until_ready()
    return (faults() - before) / 4

def resident_mib():
    gc.collect()
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

class Mallinfo2(ctypes.Structure):  # from malloc.h
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd",
        "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
    )]

def is_mapped_apart():
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype, libc.malloc.restype = Mallinfo2, ctypes.c_void_p
    before = libc.mallinfo2().hblkhd
    block = libc.malloc(ctypes.c_size_t(2**31 - 2**24))
    after = libc.mallinfo2().hblkhd
    libc.free(ctypes.c_void_p(block))
    return after - before >= 2**30

default = msops.get_context("host_memory_pool"), measure(), is_mapped_apart()
msops.set_context(host_memory_pool=True)
on = msops.get_context("host_memory_pool"), measure(), is_mapped_apart()
high = resident_mib()
msops.set_context(host_memory_pool=False)
low = resident_mib()
off = msops.get_context("host_memory_pool"), is_mapped_apart()
print(json.dumps([default, on, off, high, low]))
"""

PAGES = 2**26 // os.sysconf("SC_PAGE_SIZE")


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**clean, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_kept_blocks_cost_no_new_pages() -> None:
    done = run(COUNT)
    assert done.returncode == 0, done.stderr
    default, on, off, high, low = json.loads(done.stdout)
    assert default == [False, pytest.approx(PAGES, rel=0.5), True]
    assert on == [True, pytest.approx(0, abs=PAGES / 100), False]
    assert off == [False, True]
    assert low < high - 32


def test_the_environment_sets_it_from_the_start() -> None:
    script = "import msops; print(msops.get_context('host_memory_pool'))"
    assert run(script, MSOPS_HOST_MEMORY_POOL="1").stdout == "True\n"
    assert run(script, MSOPS_HOST_MEMORY_POOL="0").stdout == "False\n"
    refused = run(script, MSOPS_HOST_MEMORY_POOL="yes")
    assert "MSOPS_HOST_MEMORY_POOL: expected 0 or 1; got 'yes'" in refused.stderr


def test_only_a_bool_is_taken_and_a_failed_call_changes_nothing() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="expected host_memory_pool bool; got 1"):
        msops.set_context(host_memory_pool=1, mode=msops.GRAPH_MODE)
    assert msops.get_context("mode") == msops.PYNATIVE_MODE
    assert msops.get_context("host_memory_pool") is False


HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")


def flags_at(address: int) -> list[str]:
    """Returns what the system knows of the mapping of this process at an address."""
    is_there = False
    for line in os.fsdecode(Path("/proc/self/smaps").read_bytes()).splitlines():
        first = line.split()[0]
        if "-" in first and not first.endswith(":"):
            begin, end = (int(part, 16) for part in first.split("-"))
            is_there = begin <= address < end
        elif is_there and first == "VmFlags:":
            return line.split()[1:]
    return []


@pytest.mark.skipif(not HUGE.exists(), reason="the system has no huge pages on request")
def test_a_loop_kernel_requests_huge_pages_for_a_large_result() -> None:
    def double(x):
        y = output_tensor(x.shape, x.dtype)  # noqa: F821
        for i in range(x.shape[0]):
            y[i] = 2.0 * x[i]
        return y

    op = msops.Custom(double, func_type="akg", compile_attrs={"lower": "native"})
    result = op(jnp.ones(3 * 2**20, jnp.float32))
    page = 2**21
    middle = -(-result.unsafe_buffer_pointer() // page) * page
    assert "hg" in flags_at(middle)
    np.testing.assert_array_equal(result, 2.0)
