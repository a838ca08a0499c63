"""The support table of docs/guides/kinds.md: what each func_type can do, found out by doing it.

``python tests/support_table.py`` writes the table into the page; test_support_table.py compares
every cell with what happens now.
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

from msops import Custom, export_checks, ops
from msops.errors import BackendError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "guides" / "kinds.md"
START = "<!-- support table: written by tests/support_table.py -->\n"
END = "<!-- end of support table -->"

X = jnp.array([1.0, 2.0, 4.0, 8.0])
Y = X + 1

OPS: dict[str, Callable[..., Custom]] = {
    "aot": lambda **options: aot("Multiply", **options),
    "pyfunc": lambda **options: Custom(np.multiply, first, first, **options),
    "aicpu": lambda **options: aicpu("Mul", **options),
    # Loops and traced kernels are differentiated without a rule.
    "akg": lambda **_: loops(multiply),
    "hybrid": lambda **_: loops(ops.kernel(multiply)),
    "tbe": lambda **_: tbe(lambda te, x, y: te.vmul(x, y)),
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

REFUSALS = (BackendError, TypeError)


def works(func_type: str, feature: str) -> bool:
    """Returns whether a func_type can do something on the CPU."""
    try:
        return PROBES[feature](OPS[func_type])
    except REFUSALS:
        return False


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
    text = PAGE.read_text()
    rows = text[text.index(START) + len(START) : text.index(END)].strip().splitlines()
    split = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    header, _, *body = split
    return {
        (row[0], feature): cell == "yes"
        for row in body
        for feature, cell in zip(header[1:], row[1:], strict=True)
    }


def write() -> None:
    """Writes the table into the page."""
    text = PAGE.read_text()
    pattern = re.escape(START) + ".*?" + re.escape(END)
    PAGE.write_text(re.sub(pattern, lambda _: START + table() + END, text, flags=re.DOTALL))


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    write()
