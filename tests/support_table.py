"""The tables of docs/guides/kinds.md: what each func_type can do and which dtypes it takes.

``python tests/support_table.py`` finds out by doing it and writes the tables into the page;
test_support_table.py compares every cell with what happens now.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from custom_ops import aicpu, aot, first, loops, multiply, multiply_bprop, tbe
from jax.sharding import AxisType, PartitionSpec

from msops import Custom, export_checks, ops, source
from msops.errors import BackendError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "kinds.md"
START = "<!-- support table: written by tests/support_table.py -->\n"
END = "<!-- end of support table -->"
DTYPE_START = "<!-- dtype table: written by tests/support_table.py -->\n"
DTYPE_END = "<!-- end of dtype table -->"

X = jnp.array([1.0, 2.0, 4.0, 8.0])
Y = X + 1

HANDLER = source(
    r"""
#include "xla/ffi/api/ffi.h"
namespace ffi = xla::ffi;
using Array = ffi::Buffer<ffi::F32>;
static ffi::Error Multiply(Array x, Array y, ffi::ResultBuffer<ffi::F32> z) {
  for (size_t i = 0; i < x.element_count(); ++i)
    z->typed_data()[i] = x.typed_data()[i] * y.typed_data()[i];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(MultiplyHandler, Multiply,
                              ffi::Ffi::Bind().Arg<Array>().Arg<Array>().Ret<Array>());
""",
    "MultiplyHandler",
)

OPS: dict[str, Callable[..., Custom]] = {
    "aot": lambda **options: aot("Multiply", **options),
    "ffi": lambda **options: Custom(HANDLER, first, first, "ffi", **options),
    "pyfunc": lambda **options: Custom(np.multiply, first, first, **options),
    "aicpu": lambda **options: aicpu("Mul", **options),
    # Loops and traced kernels are differentiated without a rule.
    "akg": lambda **_: loops(multiply),
    "hybrid": lambda **_: loops(ops.kernel(multiply)),
    "tbe": lambda **_: tbe(lambda te, x, y: te.vmul(x, y)),
}


def copied(x):
    y = output_tensor(x.shape, x.dtype)  # noqa: F821
    for i in range(x.shape[0]):
        y[i] = x[i]
    return y


# Kernels of one input, whose dtype the output has. Only the dtypes of a call are looked at.
TAKERS: dict[str, Callable[[], Callable[[Any], Any]]] = {
    "aot": lambda: aot("Copy"),
    "pyfunc": lambda: Custom(np.negative, first, first),
    "aicpu": lambda: lambda x: aicpu("Mul")(x, x),
    "akg": lambda: loops(copied),
    "hybrid": lambda: loops(ops.kernel(copied)),
}


def _agrees(got: Any, expected: Any) -> bool:
    return bool(np.allclose(got, expected))


def _grad(make: Callable[..., Custom]) -> bool:
    op = make(bprop=multiply_bprop)
    return _agrees(jax.jit(jax.grad(lambda x: op(x, Y).sum()))(X), Y)


def _jvp(make: Callable[..., Custom]) -> bool:
    op = make(bprop=multiply_bprop, forward=True)
    return _agrees(jax.jvp(op, (X, Y), (X, Y))[1], 2 * X * Y)


def _shard_map(make: Callable[..., Custom]) -> bool:
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Auto,))
    spec = PartitionSpec("i")
    mapped = jax.shard_map(make(), mesh=mesh, in_specs=spec, out_specs=spec)
    return _agrees(jax.jit(mapped)(X, Y), X * Y)


def _export(make: Callable[..., Custom]) -> bool:
    program = jax.export.export(jax.jit(make()), disabled_checks=export_checks())(X, Y)
    return _agrees(jax.export.deserialize(program.serialize()).call(X, Y), X * Y)


PROBES: dict[str, Callable[[Callable[..., Custom]], bool]] = {
    "eager": lambda make: _agrees(make()(X, Y), X * Y),
    "jit": lambda make: _agrees(jax.jit(make())(X, Y), X * Y),
    "grad": _grad,
    "jvp": _jvp,
    "vmap": lambda make: _agrees(jax.vmap(make())(X[:, None], Y[:, None]), (X * Y)[:, None]),
    "shard_map": _shard_map,
    "export": _export,
}

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "float16 bfloat16 float32 float64",
    "complex64 complex128",
    "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
    "float8_e5m2fnuz float8_e8m0fnu",
    "int4 uint4 int2 uint2 float4_e2m1fn",
    "int1 uint1 float6_e2m3fn float6_e3m2fn",
)
"""Rows of the table of dtypes."""

REFUSALS = (BackendError, TypeError)


def works(func_type: str, feature: str) -> bool:
    """Returns whether a func_type can do something on the CPU."""
    try:
        return PROBES[feature](OPS[func_type])
    except REFUSALS:
        return False


def takes(func_type: str, dtype: str) -> bool:
    """Returns whether a func_type takes arrays of a dtype, and returns them."""
    struct = jax.ShapeDtypeStruct((4,), getattr(jnp, dtype if dtype != "bool" else "bool_"))
    with jax.enable_x64(True):
        try:
            return jax.eval_shape(TAKERS[func_type](), struct).dtype == struct.dtype
        except REFUSALS:
            return False


def dtype_table() -> str:
    """Returns the table of dtypes in Markdown."""
    lines = ["| dtypes | " + " | ".join(TAKERS) + " |", "|---" * (len(TAKERS) + 1) + "|"]
    for row in DTYPES:
        names = row.split()
        cells = []
        for func_type in TAKERS:
            (taken,) = {takes(func_type, name) for name in names}
            cells.append("yes" if taken else "no")
        lines.append(f"| {', '.join(f'`{n}`' for n in names)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def stated_dtypes() -> dict[tuple[str, str], bool]:
    """Returns the page's table of dtypes: by func_type and dtype, whether it says yes."""
    return {
        (func_type, name.strip("`")): says_yes
        for (names, func_type), says_yes in _read_table(DTYPE_START, DTYPE_END).items()
        for name in names.split(", ")
    }


def table() -> str:
    """Returns the table in Markdown."""
    lines = [
        "| func_type | " + " | ".join(PROBES) + " |",
        "|---" * (len(PROBES) + 1) + "|",
    ]
    for func_type in OPS:
        cells = ["yes" if works(func_type, feature) else "no" for feature in PROBES]
        lines.append(f"| {func_type} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def stated() -> dict[tuple[str, str], bool]:
    """Returns the page's table: by func_type and feature, whether it says yes."""
    return _read_table(START, END)


def _read_table(start: str, end: str) -> dict[tuple[str, str], bool]:
    text = PAGE.read_text()
    rows = text[text.index(start) + len(start) : text.index(end)].strip().splitlines()
    split = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    header, _, *body = split
    return {
        (row[0], feature): cell == "yes"
        for row in body
        for feature, cell in zip(header[1:], row[1:], strict=True)
    }


def write() -> None:
    """Writes the tables into the page."""
    text = PAGE.read_text()
    for start, end, rows in ((START, END, table()), (DTYPE_START, DTYPE_END, dtype_table())):
        pattern = re.escape(start) + ".*?" + re.escape(end)
        replacement = start + rows + end
        text = re.sub(pattern, lambda _, new=replacement: new, text, flags=re.DOTALL)
    PAGE.write_text(text)


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    write()
