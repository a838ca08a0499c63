"""Generated CUDA code in programs, lowered for CUDA on a machine that may have no GPU."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import ROOT
from native_harness import native as native_module
from test_cuda_loops import needs_nvrtc
from test_gpu_lowering import custom_calls, lower_for_cuda

import msops
from msops import Custom
from msops.errors import ArgumentValueError

pytestmark = needs_nvrtc


@pytest.fixture(autouse=True)
def architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets CUDA code be compiled where no GPU is."""
    monkeypatch.setenv("MSOPS_CUDA_ARCH", "sm_90")


def scaled(a, b):
    c = output_tensor(a.shape, a.dtype)  # noqa: F821
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[i, j] = a[i, j] * b[j]
    return c


def lu(a):
    for k in range(a.shape[0]):
        for i in range(k + 1, a.shape[0]):
            a[i, k] = a[i, k] / a[k, k]
            for j in range(k + 1, a.shape[0]):
                a[i, j] = a[i, j] - a[i, k] * a[k, j]
    return a


def smoothed(a):
    t = allocate(a.shape, a.dtype)  # noqa: F821
    b = output_tensor(a.shape, a.dtype)  # noqa: F821
    for i in range(a.shape[0]):
        t[i] = a[i] * a[i]
    for i in range(a.shape[0]):
        b[i] = t[a.shape[0] - 1 - i]
    return b


def native(func: Any) -> Custom:
    return Custom(func, func_type="akg", compile_attrs={"lower": "native"})


def only_call(lowered: jax.stages.Lowered) -> dict[str, Any]:
    (call,) = custom_calls(lowered)
    return call


def test_a_program_holds_what_to_launch() -> None:
    call = only_call(lower_for_cuda(native(scaled), jnp.ones((300, 20)), jnp.ones(20)))
    assert call["target"] == "msops_loops_cuda"
    assert call["op"] == "scaled"
    assert call["functions"] == "scaled_0"
    # 24 blocks of 256 threads, on a, b and c.
    assert call["plan"] == [2, 0, 24, 256, 3, 0, 1, 2]
    assert (call["workspaces"], call["checks"]) == ([], "")
    assert (call["ranks"], call["dims"]) == ([2, 1, 2], [300, 20, 20, 300, 20])
    assert call["dtypes"] == "float32,float32,float32"


def test_a_program_names_its_code_by_content() -> None:
    lowered = lower_for_cuda(native(scaled), jnp.ones((300, 20)), jnp.ones(20))
    (hash_,) = only_call(lowered)["cubins"].split(",")
    assert hash_ in lowered.as_text()
    found = list(Path(os.environ["MSOPS_CACHE_DIR"]).glob(f"objects/*/{hash_}/*.cubin"))
    assert [path.name for path in found] == ["scaled.sm_90.cubin"]
    assert os.environ["MSOPS_CACHE_DIR"] not in lowered.as_text()


def test_inputs_that_are_written_are_copied_first() -> None:
    call = only_call(lower_for_cuda(native(lu), jnp.ones((40, 40))))
    assert call["plan"] == [1, 1, 0, 6400, 2, 0, 1, 1, 1, 1]


def test_temporaries_make_another_target() -> None:
    call = only_call(lower_for_cuda(native(smoothed), jnp.ones(100)))
    assert call["target"] == "msops_loops_cuda_scratch"
    assert call["workspaces"] == [400]


def test_bounds_are_checked_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def gathered(a, index):
        b = output_tensor(index.shape, a.dtype)  # noqa: F821
        for i in range(index.shape[0]):
            b[i] = a[index[i]]
        return b

    monkeypatch.setenv("MSOPS_DEBUG", "bounds")
    call = only_call(lower_for_cuda(native(gathered), jnp.ones(4), jnp.zeros(3, jnp.int32)))
    assert call["workspaces"] == [4]
    assert "b[i] = a[index[i]]" in call["checks"]


def test_a_result_may_take_the_buffer_of_its_parameter() -> None:
    op = Custom(lu, func_type="akg", inplace={0: 0}, compile_attrs={"lower": "native"})
    text = lower_for_cuda(op, jnp.ones((8, 8))).as_text()
    assert "output_operand_aliases = [#stablehlo.output_operand_alias<" in text


def test_vmap_is_in_the_loops() -> None:
    call = only_call(lower_for_cuda(jax.vmap(native(lu)), jnp.ones((3, 40, 40))))
    assert (call["ranks"], call["dims"]) == ([3, 3], [3, 40, 40] * 2)


def test_gradients_of_native_code_are_native_code() -> None:
    def loss(a: jax.Array) -> jax.Array:
        return native(lu)(a).sum()

    calls = list(custom_calls(lower_for_cuda(jax.grad(loss), jnp.eye(8) + 1)))
    assert "msops_loops" in calls[-1]["target"]


LIBCUDA = """
int cuInit(unsigned flags) { return flags != 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *count) { *count = COUNT; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = 100 + ordinal; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  if (device < 100 || device > 102) return 1;
  *value = attribute == 75 ? (device == 101 ? 8 : 9) : attribute == 76 ? 0 : -1;
  return 0;
}
"""
# NVRTC would look for the driver itself, on LD_LIBRARY_PATH, and asks it for more.
LOWER = """
import ctypes, sys
import jax.numpy as jnp
from msops.errors import BuildError
from test_cuda_call import lower_for_cuda, native, only_call, scaled
open_library = ctypes.CDLL
ctypes.CDLL = lambda name, *more: open_library(
    sys.argv[1] if name == "libcuda.so.1" else name, *more
)
try:
    call = only_call(lower_for_cuda(native(scaled), jnp.ones((2, 3)), jnp.ones(3)))
    print(len(set(call["cubins"].split(","))))
except BuildError as error:
    print(error)
"""


def lowered_beside(folder: Path, gpus: int) -> str:
    """Lowers in a process whose CUDA driver, a stand-in, lists some GPUs of two kinds."""
    driver = folder / "libcuda.so.1"
    command = ["gcc", "-x", "c", "-", "-shared", "-fPIC", "-o", driver]
    subprocess.run(command, input=LIBCUDA.replace("COUNT", str(gpus)).encode(), check=True)
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "tests"),
        "JAX_PLATFORMS": "cpu",
    }
    del environment["MSOPS_CUDA_ARCH"]
    done = subprocess.run(
        [sys.executable, "-c", LOWER, driver],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.rstrip()


def test_without_an_architecture_the_variable_is_named(tmp_path: Path) -> None:
    assert lowered_beside(tmp_path, gpus=0) == (
        "Custom 'scaled' on GPU: compiling for CUDA needs a GPU's architecture, and this machine "
        "has no GPU.\nSet MSOPS_CUDA_ARCH to the architecture of the GPU that will run it, for "
        "example sm_90."
    )


def test_code_for_several_kinds_of_gpus_is_compiled_for_each(tmp_path: Path) -> None:
    assert lowered_beside(tmp_path, gpus=3) == "2"


def test_the_variable_must_name_a_real_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSOPS_CUDA_ARCH", "compute_90")
    with pytest.raises(ArgumentValueError, match="like sm_90; got 'compute_90'"):
        lower_for_cuda(native(scaled), jnp.ones((2, 3)), jnp.ones(3))


# The handlers are CUDA's, but what the first stage does, reading the program, needs no GPU: a
# process that registers them for the CPU can run that.
INSTANTIATE = """
import json, sys
import jax
import numpy as np
from native_harness import native as native_module
# Not before: registrations made while no backend runs are replayed in an order XLA refuses.
jax.devices()
for row in native_module.registrations():
    if row["platform"] == "CUDA" and "loops" in row["name"]:
        register = (
            jax.ffi.register_ffi_type if row["kind"] == "type" else jax.ffi.register_ffi_target
        )
        register(row["name"], row["capsules"], platform="cpu")
attributes = json.loads(sys.argv[1])
for name in ("plan", "workspaces", "ranks", "dims"):
    attributes[name] = np.array(attributes[name], np.int64)
if sys.argv[3]:
    native_module.register_cubin(attributes["cubins"], b"code")
call = jax.ffi.ffi_call(sys.argv[2], jax.ShapeDtypeStruct((300, 20), "float32"))
arrays = np.ones((300, 20), "float32"), np.ones(20, "float32")
try:
    jax.block_until_ready(jax.jit(lambda *xs: call(*xs, **attributes))(*arrays))
except jax.errors.JaxRuntimeError as error:
    print(error)
"""


@pytest.mark.parametrize("target", ["msops_loops_cuda", "msops_loops_cuda_scratch"])
@pytest.mark.parametrize(
    ("is_registered", "change", "message"),
    [
        (False, {}, "expected to find its CUDA code by hash"),
        (True, {"plan": [7]}, "word 0 of its launch plan begins no step"),
        (True, {"dtypes": "float32"}, "lists 3 shapes and 1 dtypes"),
        # With all right, what is missing on a CPU is the stream.
        (True, {}, "stream"),
    ],
)
def test_the_handlers_read_such_programs(
    target: str, is_registered: bool, change: dict[str, Any], message: str
) -> None:
    call = only_call(lower_for_cuda(native(scaled), jnp.ones((300, 20)), jnp.ones(20)))
    del call["target"]
    words = [json.dumps(call | change), target, "yes" if is_registered else ""]
    done = subprocess.run(
        [sys.executable, "-c", INSTANTIATE, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests"), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert message in done.stdout


def test_cubins_are_found_in_the_library_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, bytes] = {}
    (tmp_path / "a.cubin").write_bytes(b"code")
    (tmp_path / "b.txt").write_bytes(b"no code")
    monkeypatch.setenv("MSOPS_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setattr(native_module, "register_cubin", seen.__setitem__)
    msops.register_ffi_targets("cpu")
    assert seen == {hashlib.sha256(b"code").hexdigest(): b"code"}


def test_cubins_are_found_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, bytes] = {}
    finders: list[Callable[[str], list[str]]] = []
    digest = hashlib.sha256(b"code").hexdigest()
    folder = tmp_path / "objects" / digest[:2] / digest
    folder.mkdir(parents=True, mode=0o700)
    (folder / "lu.sm_90.cubin").write_bytes(b"code")
    monkeypatch.setenv("MSOPS_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(native_module, "register_cubin", seen.__setitem__)
    monkeypatch.setattr(native_module, "set_cache_finder", finders.append)
    msops.register_ffi_targets("cpu")
    assert finders[0](digest) == []
    assert seen == {digest: b"code"}
    assert finders[0]("ab" * 32) == [f"looked in the cache folder {tmp_path}"]


def test_ops_with_a_cpu_case_still_run_here() -> None:
    a, b = np.ones((3, 4), np.float32), np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(native(scaled)(a, b), a * b)
