"""Runs generated CUDA C on the CPU: compiled as C++ with cuda_emulation.h and cuda_emulation.cc."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from loop_ir import (
    FROM_F16,
    PREAMBLE,
    TO_F16,
    ClearBuffer,
    CopyBuffer,
    CudaSource,
    Kernel,
    Launch,
    as_dtype,
)

FOLDER = Path(__file__).resolve().parent
CACHE = Path(os.environ["MSOPS_CACHE_DIR"]) / "cuda-emulation"
RUBBISH = 0xA5
# A kernel's name and parameters.
_FUNCTION = re.compile(r"^(\w+)\(([^\n]*)\) \{$", re.MULTILINE)


class Emulation:
    """A generated kernel, compiled for the CPU."""

    def __init__(self, kernel: Kernel, source: CudaSource) -> None:
        self.kernel = kernel
        self.source = source
        self.failed = 0
        """The code that the last run left in the workspace of the bounds check."""
        self._library = _compile(source)

    def run(self, inputs: Sequence[np.ndarray], order: int = 0) -> list[np.ndarray]:
        """Returns the results.

        Args:
          inputs: an array per parameter.
          order: in which threads and blocks get their turn: 0 ascending, 1 descending, else random.
        """
        memory: dict[str, np.ndarray] = {}
        for name, array in zip(self.source.inputs, inputs, strict=True):
            memory[name] = np.ascontiguousarray(array).copy()
        for name, buffer in zip(self.source.outputs, self.kernel.outputs, strict=True):
            memory[name] = np.empty(buffer.shape, as_dtype(buffer.dtype).dtype)
        for workspace in self.source.workspaces:
            memory[workspace.name] = np.empty(workspace.size_bytes, np.uint8)
        given = [array.copy() for array in map(memory.__getitem__, self.source.inputs)]
        for name in memory.keys() - set(self.source.inputs):
            memory[name].reshape(-1).view(np.uint8)[:] = RUBBISH
        for step in self.source.steps:
            match step:
                case ClearBuffer(buffer=buffer, size_bytes=size):
                    _bytes(memory[buffer])[:size] = 0
                case CopyBuffer(to=to, source=source, size_bytes=size):
                    _bytes(memory[to])[:size] = _bytes(memory[source])[:size]
                case Launch():
                    self._launch(step, memory, order)
        for name, before in zip(self.source.inputs, given, strict=True):
            assert memory[name].tobytes() == before.tobytes(), f"input {name} was written"
        if self.source.checks:
            (self.failed,) = memory[self.source.workspaces[-1].name].view(np.int32)
        return [memory[name] for name in self.source.outputs]

    def _launch(self, launch: Launch, memory: dict[str, np.ndarray], order: int) -> None:
        values = [ctypes.c_void_p(memory[name].ctypes.data) for name in launch.arguments]
        addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        run = getattr(self._library, f"launch_{launch.function}")
        run(launch.blocks, launch.threads, order, addresses)


def _bytes(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)


def _compile(source: CudaSource) -> ctypes.CDLL:
    text = source.text.removeprefix(PREAMBLE)
    for function in (FROM_F16, TO_F16):
        text = text.replace(function, "")
    assert "asm(" not in text
    launched = {launch.function for launch in source.launches}
    functions = [_launcher(match) for match in _FUNCTION.finditer(text) if match[1] in launched]
    assert len(functions) == len(launched)
    return ctypes.CDLL(_build("\n".join(('#include "cuda_emulation.h"', text, *functions))))


def _launcher(function: re.Match[str]) -> str:
    """Returns a C function that launches one of the text's, with arguments given by address."""
    name, parameters = function.groups()
    # A kernel without parameters writes what no input changes.
    named = parameters.split(", ") if parameters else []
    kinds = [parameter.rsplit(" ", 1)[0] for parameter in named]
    values = ", ".join(f"*({kind}*)arguments[{i}]" for i, kind in enumerate(kinds))
    return f"""
static void call_{name}(void** arguments) {{ {name}({values}); }}
extern "C" void launch_{name}(unsigned blocks, unsigned threads, unsigned seed, void** arguments) {{
  EmulateLaunch(call_{name}, arguments, blocks, threads, seed);
}}"""


def _build(text: str) -> str:
    """Returns the path of a library built from the text; a library is never built twice."""
    runtime = _built("runtime.o", (FOLDER / "cuda_emulation.cc").read_text(), "-O2", "-c")
    return str(_built("kernel.so", text, "-O1", "-ffp-contract=off", "-w", "-shared", str(runtime)))


def _built(name: str, text: str, *flags: str) -> Path:
    header = (FOLDER / "cuda_emulation.h").read_text()
    key = hashlib.sha256("\n".join((header, text, *flags)).encode()).hexdigest()
    path = CACHE / key / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            source = Path(scratch, "source.cc")
            source.write_text(text)
            command = ["g++", "-std=c++17", "-fPIC", f"-I{FOLDER}", str(source), *flags]
            done = subprocess.run(
                [*command, "-o", f"{scratch}/{name}"], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{done.stderr}\n{text}"
            Path(scratch, name).rename(path)
    return path
