"""Kernels from text, for tests that hold what a message says or what text becomes."""

from __future__ import annotations

import itertools
import linecache
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from loop_ir import Kernel, LoopProgram, Spec, interpret, kernel_text, read_kernel, verify

_count = itertools.count()


def define(text: str, **outside: Any) -> Callable[..., Any]:
    """Returns the function `k` that a text defines, with `outside` among its globals."""
    text = textwrap.dedent(text).lstrip("\n")
    name = f"<kernel {next(_count)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), outside)
    return outside["k"]


def read(func: Callable[..., Any], dialect: Any = "akg") -> LoopProgram:
    """Returns a kernel, read as an op named 'k' would."""
    return read_kernel(func, dialect, "Custom 'k'")


def specialise(
    func: Callable[..., Any], *specs: Spec, attributes: Mapping[str, Any] | None = None
) -> Kernel:
    """Returns a kernel's loop IR, which the verifier accepts."""
    kernel = read(func).specialise(specs, attributes or {}, "Custom 'k'")
    verify(kernel)
    return kernel


def body(func: Callable[..., Any], *specs: Spec, **attributes: Any) -> str:
    """Returns the text of a kernel's statements and its own buffers."""
    lines = kernel_text(specialise(func, *specs, attributes=attributes)).splitlines()
    return textwrap.dedent("\n".join(lines[1:-1]))


def run(func: Callable[..., Any], *inputs: Any, attributes: Mapping[str, Any] | None = None) -> Any:
    """Returns what the interpreter makes of a kernel: an array, or a list of several."""
    arrays: Sequence[np.ndarray] = [np.asarray(each) for each in inputs]
    specs = [Spec(array.shape, array.dtype.name) for array in arrays]
    outputs = interpret(specialise(func, *specs, attributes=attributes), arrays)
    return outputs[0] if len(outputs) == 1 else outputs


F32 = "float32"


def vector(size: int = 8, dtype: str = F32) -> Spec:
    """Returns the spec of a vector."""
    return Spec((size,), dtype)


def matrix(rows: int = 4, columns: int = 6, dtype: str = F32) -> Spec:
    """Returns the spec of a matrix."""
    return Spec((rows, columns), dtype)
