"""Runs the code of a document and compares what it prints with what the document says."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import linecache
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

# Not conftest's: a new environment runs this without pytest.
ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(
    r"^(?:<!-- (?P<note>[\w:, ]+) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_FILE_NAME = re.compile(r"(?://|#) (\S+\.(?:c|cc|cpp|cu|h|py|yaml))\b")
# Estimated seconds depend on the vectors of the processor.
_ESTIMATE = re.compile(r"(?<=an estimated )[\d.]+ \w+(?= as native code)")
_FILES = ("c", "cpp", "cuda", "yaml")


@dataclass(frozen=True)
class Block:
    """A code block of a document.

    Attributes:
      number: its place among the blocks of the document.
      language: what stands behind its fence.
      note: the comment on the line before it, see `run_document`; empty without one.
      code: its text.
    """

    number: int
    language: str
    note: str
    code: str

    @property
    def file(self) -> str:
        """The file that its first line names, or one made up."""
        name = _FILE_NAME.match(self.code)
        return name[1] if name else f"<block {self.number}>"

    @property
    def is_file(self) -> bool:
        """Whether it is there to be saved."""
        return self.note == "save" or (
            self.language in _FILES and _FILE_NAME.match(self.code) is not None
        )


class _Machine:
    """What blocks may need, by the words of their notes."""

    @cached_property
    def nvcc(self) -> bool:
        return shutil.which("nvcc") is not None

    @cached_property
    def gpu(self) -> bool:
        import jax

        return jax.default_backend() == "gpu"

    @cached_property
    def flax(self) -> bool:
        return importlib.util.find_spec("flax") is not None

    @cached_property
    def warp(self) -> bool:
        return importlib.util.find_spec("warp") is not None

    @cached_property
    def tvm_ffi(self) -> bool:
        return importlib.util.find_spec("tvm_ffi") is not None

    def has(self, note: str) -> bool:
        """Returns whether the machine has what a note like ``needs: nvcc, no gpu`` asks for."""
        wanted = note.removeprefix("needs: ").split(", ") if note.startswith("needs: ") else ()
        return all(
            not getattr(self, what.removeprefix("no "))
            if what.startswith("no ")
            else getattr(self, what)
            for what in wanted
        )


_machine = _Machine()


def blocks_of(text: str) -> Iterator[Block]:
    """Yields the code blocks of a document, in order."""
    for number, found in enumerate(_BLOCK.finditer(text)):
        yield Block(number, found["language"], found["note"] or "", found["code"])


def run_document(text: str, folder: Path) -> int:
    """Runs the blocks of a document in order; returns how many printed what they promised.

    A block in C, C++, CUDA or YAML whose first line names a file is that file. Python blocks share
    one namespace, and each is a file to Python, as a doctest is, of that name if its first line
    has one. A text block holds what the Python block before it prints. The lines of a console block
    that begin with ``$`` are commands, and the others are what they print.

    A comment on the line before a block says more of it: ``<!-- save -->`` of a Python block that
    it is a file, not run here; ``<!-- needs: nvcc -->``, of ``nvcc``, ``flax``, ``warp``,
    ``tvm_ffi``, ``gpu`` and ``no gpu``, that it is only compiled where the machine does not have
    that.
    """
    # Blocks import files that blocks before them are, as a script imports those beside it.
    sys.path.insert(0, os.fspath(folder))
    try:
        with np.printoptions():  # a document may set its own
            return _run_blocks(list(blocks_of(text)), folder)
    finally:
        sys.path.remove(os.fspath(folder))


def _run_blocks(blocks: list[Block], folder: Path) -> int:
    namespace: dict[str, object] = {}
    printed: str | None = None
    checked = 0
    for block in blocks:
        if block.is_file:
            (folder / block.file).write_text(block.code)
        elif block.language == "python":
            code = compile(block.code, block.file, "exec")
            printed = _run(code, block, namespace) if _machine.has(block.note) else None
        elif block.language == "console":
            _run_commands(block.code, folder)
            checked += 1
        elif block.language == "text" and printed is not None:
            assert without_times(printed) == without_times(block.code)
            printed = None
            checked += 1
    return checked


def without_times(text: str) -> str:
    """Returns a text without the estimated times of native code, which machines differ in."""
    return _ESTIMATE.sub("some time", text)


def _run(code: object, block: Block, namespace: dict[str, object]) -> str:
    # Loop kernels are read from their source, and errors show lines of it.
    lines = block.code.splitlines(keepends=True)
    linecache.cache[block.file] = (len(block.code), None, lines, block.file)
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        exec(code, namespace)
    return stream.getvalue()


def _run_commands(session: str, folder: Path) -> None:
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    for entry in re.split(r"^\$ ", session, flags=re.MULTILINE)[1:]:
        command, _, promised = entry.partition("\n")
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.stdout, done.returncode) == (promised, 0), done.stderr
