"""Drives msops._native as the Python core does, from the outside: compile, register, lower."""

from __future__ import annotations

import hashlib
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.extend.core import Primitive
from jax.interpreters import mlir

from msops import _native as native

# What kernels of the tests begin with.
PREAMBLE = """
#include <cstdint>
#include <cstring>
#include <stdexcept>
#define KERNEL(name) extern "C" int name(int nparam, void **params, int *ndims, int64_t **shapes, \\
                                         const char **dtypes, void *stream, void *extra)
"""

INCLUDE_DIR = Path(__file__).parent.parent / "xla_kernels" / "include"


def register_targets(platform: str = "cpu") -> None:
    """Registers the handlers of one platform, once in a process."""
    if platform in _registered:
        return
    _registered.add(platform)
    for row in native.registrations():
        if row["platform"] != platform:
            continue
        register = (
            jax.ffi.register_ffi_type if row["kind"] == "type" else jax.ffi.register_ffi_target
        )
        register(row["name"], row["capsules"], platform=platform)


_registered: set[str] = set()


@dataclass(frozen=True)
class Library:
    """A built and registered library."""

    path: Path
    hash: str


def compile_library(
    directory: Path, source: str, name: str = "kernel", flags: tuple[str, ...] = ()
) -> Path:
    """Builds `source` into ``directory/name.so``."""
    (directory / f"{name}.cc").write_text(source)
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-I{INCLUDE_DIR}", *flags]
    command += [f"{name}.cc", "-o", f"{name}.so"]
    subprocess.run(command, cwd=directory, check=True)
    return directory / f"{name}.so"


def register(path: Path, *, old_string_abi: bool = False, origin: Path | None = None) -> Library:
    """Makes a library known to the module, as the toolchain does."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    native.register_library(digest, str(path), str(origin or path), old_string_abi)
    return Library(path, digest)


def build(
    directory: Path, source: str, name: str = "kernel", *, old_string_abi: bool = False
) -> Library:
    """Builds and registers `source`, with the std::string ABI asked for."""
    flag = f"-D_GLIBCXX_USE_CXX11_ABI={0 if old_string_abi else 1}"
    return register(
        compile_library(directory, source, name, (flag,)), old_string_abi=old_string_abi
    )


@dataclass(frozen=True, eq=False)
class Call:
    """One kernel with what a program says about it; call it on arrays, inside jit or not."""

    library: Library
    symbol: str
    outputs: tuple[jax.ShapeDtypeStruct, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    reentrant: bool = True
    workspaces: tuple[int, ...] = ()
    overrides: dict[str, Any] = field(default_factory=dict)

    def __call__(self, *inputs: Any) -> tuple[jax.Array, ...]:
        return tuple(_aot_p.bind(*inputs, call=self))

    def ffi_attributes(self, avals_in: Any, avals_out: Any) -> dict[str, Any]:
        arrays = [*avals_in, *avals_out]
        shapes = [aval.shape for aval in arrays]
        attributes = {
            "op": self.symbol.lower(),
            "library": self.library.hash,
            "library_name": self.library.path.name,
            "symbol": self.symbol,
            "operands": np.int64(len(avals_in)),
            "ranks": np.array([len(shape) for shape in shapes], np.int64),
            "dims": np.array([dim for shape in shapes for dim in shape], np.int64),
            "dtypes": ",".join(np.dtype(aval.dtype).name for aval in arrays),
            "attributes": self.attributes,
            "reentrant": self.reentrant,
            "workspaces": np.array(self.workspaces, np.int64),
        }
        return attributes | self.overrides


def run(call: Call, *inputs: Any) -> list[np.ndarray]:
    """Runs a call and waits for its results."""
    return [np.asarray(out) for out in call(*inputs)]


def failure(call: Call, *inputs: Any) -> str:
    """Runs a call that must fail, and returns the message."""
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        run(call, *inputs)
    return str(caught.value)


def same(array: Any, count: int = 1) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Outputs that look like `array`."""
    return (jax.ShapeDtypeStruct(array.shape, array.dtype),) * count


def rows(values: list[list[Any]], dtype: Any) -> dict[str, np.ndarray]:
    """A list of lists as the FFI attribute for one."""
    flat = [value for row in values for value in row]
    return {
        "data": np.array(flat, dtype),
        "splits": np.array([len(row) for row in values], np.int64),
    }


def resident_bytes() -> int:
    """Memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


_aot_p = Primitive("native_test_aot")
_aot_p.multiple_results = True
_aot_p.def_impl(lambda *inputs, call: jax.jit(lambda *xs: _aot_p.bind(*xs, call=call))(*inputs))
_aot_p.def_abstract_eval(
    lambda *inputs, call: [jax.core.ShapedArray(out.shape, out.dtype) for out in call.outputs]
)


def _aot_lowering(ctx: Any, *operands: Any, call: Call) -> Any:
    # Not before: registrations made while no backend runs are replayed in an order XLA refuses.
    register_targets()
    attributes = call.ffi_attributes(ctx.avals_in, ctx.avals_out)
    return jax.ffi.ffi_lowering("msops_aot")(ctx, *operands, **attributes)


mlir.register_lowering(_aot_p, _aot_lowering)
