"""Builds kernels of the loop IR as C and calls them, without JAX: many in one translation unit."""

from __future__ import annotations

import ctypes
import math
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from loop_ir import (
    FLAGS,
    PASSES_COMMON,
    PASSES_TO_C,
    Buffer,
    CSource,
    Kernel,
    analyse,
    as_dtype,
    c_source,
    facts_of,
    find_unwritten,
    flags_of_gcc,
    mark_loops,
)
from loop_ir import check_bounds as find_doubtful
from loop_ir import run_passes as run

# Runs a parallel loop backwards in blocks as small as allowed: wrong if its iterations depend.
_BACKWARDS = """
static int run_backwards(int64_t begin, int64_t end, int64_t grain,
                         int (*task)(void*, int64_t, int64_t), void* argument) {
  while (end > begin) {
    const int64_t first = end - grain > begin ? end - grain : begin;
    const int code = task(argument, first, end);
    if (code != 0) return code;
    end = first;
  }
  return 0;
}
__attribute__((constructor)) static void fill_slot(void) {
  msops_parallel_for_slot = run_backwards;
}
"""


def prepared(kernel: Kernel) -> Kernel:
    """Returns the kernel as the C printer gets it."""
    return run(mark_loops(run(kernel, PASSES_COMMON)), PASSES_TO_C)


def printed(kernel: Kernel, number: int = 0, check_bounds: bool = False) -> CSource:
    """Returns the C of a prepared kernel, its function numbered."""
    return c_source(
        kernel,
        unproven=find_doubtful(kernel).unproven,
        overwritten=find_unwritten(kernel).overwritten,
        check_bounds=check_bounds,
        symbol=f"kernel_{number}",
    )


def shipped(kernel: Kernel, number: int) -> tuple[Kernel, CSource]:
    """Returns a kernel as the C printer gets it, and its C, as a call makes them."""
    known = analyse(kernel)
    arranged = run(known.kernel, PASSES_TO_C)
    facts = facts_of(arranged, known)
    return arranged, c_source(arranged, *facts, symbol=f"kernel_{number}")


def together(sources: Sequence[CSource]) -> list[str]:
    """Returns the texts of sources as parts of one: names of their own, and the slot once."""
    texts = []
    has_slot = False
    for number, source in enumerate(sources):
        text = re.sub(r"\bms_\w+", rf"\g<0>_of_{number}", source.text)
        slot = "\nint (*msops_parallel_for_slot)"
        if has_slot:
            text = text.replace(slot, f"\nextern{slot.replace(chr(10), ' ')}")
        has_slot = has_slot or slot in text
        texts.append(text)
    return texts


def build_together(
    folder: Path, sources: Sequence[CSource], flags: tuple[str, ...] = ()
) -> ctypes.CDLL:
    """Returns one library with the functions of all sources."""
    texts = together(sources)
    if any("msops_parallel_for_slot" in text for text in texts):
        texts.append(_BACKWARDS)
    # The dynamic linker would give back the first library of a name.
    name = f"kernels_{len(list(folder.iterdir()))}"
    (folder / f"{name}.cc").write_text("\n".join(texts))
    warnings = ("-Wall", "-Werror", "-Wno-tautological-compare", "-Wno-unused")
    # -Wall has it for C++ alone.
    warnings += ("-Wno-sign-compare",)
    # gcc looks at lanes that are off, too, whose elements an array need not have.
    warnings += ("-Wno-array-bounds",)
    # At -O2: hundreds of small kernels take seconds.
    command = [
        "g++",
        "-O2",
        "-shared",
        "-fPIC",
        *warnings,
        f"{name}.cc",
        "-o",
        f"{name}.so",
        *FLAGS,
        *flags_of_gcc("\n".join(texts)),
        *flags,
        # With its vectors, which no process has by itself.
        "-lm",
    ]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(folder / f"{name}.so"))


def call(
    library: ctypes.CDLL, kernel: Kernel, source: CSource, inputs: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Runs a kernel on memory that holds garbage where it has no inputs."""
    code, outputs = call_for_code(library, kernel, source, inputs)
    assert code == 0
    return outputs


def call_for_code(
    library: ctypes.CDLL, kernel: Kernel, source: CSource, inputs: Sequence[np.ndarray]
) -> tuple[int, list[np.ndarray]]:
    """Returns the function's answer beside the outputs."""
    given = [_filled(b, x) for b, x in zip(kernel.parameters, inputs, strict=True)]
    outputs = [_garbage(buffer) for buffer in kernel.outputs]
    workspaces = [_garbage(Buffer("w", (size,), "uint8")) for size in source.workspaces]
    arrays = [*given, *outputs, *workspaces]
    pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    code = library[source.symbol](len(arrays), pointers, None, None, None, None, None)
    for buffer, array, x in zip(kernel.parameters, given, inputs, strict=True):
        assert array.tobytes() == _filled(buffer, x).tobytes(), buffer.name
    return code, outputs


def _filled(buffer: Buffer, values: np.ndarray) -> np.ndarray:
    array = _garbage(buffer)
    array[...] = values
    return array


def _garbage(buffer: Buffer) -> np.ndarray:
    """Returns an array of 64-byte aligned memory that no kernel may take for zeros."""
    dtype = as_dtype(buffer.dtype).dtype
    size = math.prod(buffer.shape) * dtype.itemsize
    memory = np.full(size + 128, 0xA5, "uint8")
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(buffer.shape)
