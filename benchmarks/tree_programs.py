"""Compiles all kernels by the msops of one tree, in a process of its own.

    python benchmarks/tree_programs.py OUTPUT [LABEL ...]

Writes a line of JSON for each kernel to the file OUTPUT, as `Program` has it; of LABELs alone, if
there are any. The Python that runs it decides which msops that is.
"""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_WHO = "comparison of trees"
_MARK = "/* For benchmarks/against.py, so that its build is not one that an op has asked for. */\n"


@dataclass(frozen=True)
class Program:
    """A kernel as one tree compiles it.

    Attributes:
      label: the kernel's source and name.
      path: its library.
      code: a digest of its instructions and constants.
      symbol: the function in it.
      workspaces: sizes of the memory it wants, in bytes.
      parameters, outputs: shapes and dtypes.
      pass_seconds: processor time from the kernel to its C.
      compiler_seconds: processor time of the C compiler.
      length: of the C, in characters.
      peak_mib: memory of the process, so far.
    """

    label: str
    path: str
    code: str
    symbol: str
    workspaces: Sequence[int]
    parameters: Sequence[tuple[Sequence[int], str]]
    outputs: Sequence[tuple[Sequence[int], str]]
    pass_seconds: float
    compiler_seconds: float
    length: int
    peak_mib: float


def python_of(tree: Path) -> str:
    """Returns the Python that has a tree's msops: that of its .venv, if it has one."""
    own = tree / ".venv" / "bin" / "python"
    return str(own) if own.exists() else sys.executable


def programs_of(
    pythons: Mapping[str, str], labels: Sequence[str] = ()
) -> dict[str, dict[str, Program]]:
    """Returns by tree and label what each tree makes of the kernels; all trees work at once.

    Args:
      pythons: by the name of a tree, the Python that has its msops.
      labels: of the kernels; all if there are none.
    """
    with tempfile.TemporaryDirectory() as folder:
        files = {tree: Path(folder) / f"{number}.jsonl" for number, tree in enumerate(pythons)}
        running = [
            subprocess.Popen([python, "-W", "ignore", __file__, str(files[tree]), *labels])
            for tree, python in pythons.items()
        ]
        for process in running:
            if process.wait():
                raise RuntimeError(f"{process.args} failed with status {process.returncode}")
        return {tree: _read(file) for tree, file in files.items()}


def _read(file: Path) -> dict[str, Program]:
    found = (Program(**json.loads(line)) for line in file.read_text().splitlines())
    return {program.label: program for program in found}


def _main() -> None:
    # These import msops, which the parent may not mean.
    import jax
    from pass_kernels import cases, kernel_of

    jax.config.update("jax_enable_x64", True)
    output, *labels = sys.argv[1:]
    with Path(output).open("w") as file:
        for case in cases():
            if not labels or case.label in labels:
                kernel = kernel_of(case)
                for program in [] if kernel is None else _compiled(case.label, kernel):
                    print(json.dumps(asdict(program)), file=file, flush=True)


def _compiled(label: str, kernel: Any) -> Iterator[Program]:
    """Yields the program of a kernel, if it has one."""
    from msops._loops.specialisation import Stages

    start = time.process_time()
    try:
        source = Stages(kernel, _WHO).c
    except Exception as error:  # A tree that lacks a kernel is left out of its comparison.
        print(f"{label}: {type(error).__name__}: {error}", file=sys.stderr)
        return
    pass_seconds = time.process_time() - start
    path, compiler_seconds = _built(source)
    yield Program(
        label,
        path,
        _digest(path),
        source.symbol,
        source.workspaces,
        *([(each.shape, each.dtype) for each in of] for of in (kernel.parameters, kernel.outputs)),
        pass_seconds,
        compiler_seconds,
        len(source.text),
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def _built(source: Any) -> tuple[str, float]:
    """Returns the library of some C, and what the compiler took when it was first built."""
    from msops._toolchain import find_measurement, record_measurement
    from msops._toolchain.generated import build_generated

    marked = _MARK + source.text
    # Earlier trees link every program with all libraries.
    libraries = {name: getattr(source, name) for name in ("libraries",) if hasattr(source, name)}
    known = find_measurement(marked, _WHO)
    before = _seconds_of_children()
    library = build_generated(marked, "against", _WHO, **libraries)
    if known is None:
        known = {"compiler": max(_seconds_of_children() - before, 1e-6)}
        record_measurement(marked, known, _WHO)
    return str(library.path), known["compiler"]


def _digest(path: str) -> str:
    """Returns a digest of a library without what it is linked with."""
    sections = [f"--only-section={name}" for name in (".text", ".rodata*")]
    with tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "code"
        subprocess.run(["objcopy", "-O", "binary", *sections, path, str(code)], check=True)
        return hashlib.sha256(code.read_bytes()).hexdigest()


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    _main()
