"""The add kernels under test: as an aot op, and as the hand-written handler it is compared with."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp

import msops
from msops import _toolchain

FOLDER = Path(__file__).parent
AOT_SOURCE = FOLDER / "add_aot.cc"


def make_aot_op() -> msops.Custom:
    """Returns the aot op; each call makes a new one of equal definition."""
    return msops.Custom(
        f"{AOT_SOURCE}:Add",
        out_shape=lambda x, y: x,
        out_dtype=lambda x, y: x,
        bprop=lambda x, y, out, dout: (dout, dout),
    )


def build_aot_library() -> Path:
    """Returns the library that the aot op runs, for MindSpore to run it, too."""
    return _toolchain.build(AOT_SOURCE, who="benchmarks").path


@functools.cache
def register_handwritten() -> str:
    """Builds the hand-written handler, with the flags of aot sources; returns its target's name."""
    built = _toolchain.build(
        FOLDER / "add_handwritten.cc",
        # As a folder of the system: JAX's header lacks a return.
        options=msops.Build(flags=["-isystem", jax.ffi.include_dir()]),
        who="benchmarks",
    )
    handler = ctypes.CDLL(str(built.path)).AddHandler
    jax.ffi.register_ffi_target("bench_add", jax.ffi.pycapsule(handler), platform="cpu")
    return "bench_add"


def handwritten_add(x: jax.Array, y: jax.Array) -> jax.Array:
    """Adds by the hand-written handler, as `jax.ffi` documents its use."""
    result = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.ffi.ffi_call(register_handwritten(), result)(x, y)


def make_inputs(count: int) -> tuple[jax.Array, jax.Array]:
    """Returns two float32 arrays of `count` elements."""
    x, y = jax.random.normal(jax.random.key(0), (2, count), jnp.float32)
    return jax.block_until_ready((x, y))


def waiting(function: Callable[..., jax.Array], *args: object) -> Callable[[], object]:
    """Returns one call of `function` that waits for the result, as a function without arguments."""

    def call() -> None:
        function(*args).block_until_ready()

    return call
