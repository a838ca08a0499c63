"""AKG's own times, measured in child processes of the Python MSOPS_BENCH_MINDSPORE names.

One process a kernel: after a kernel that AKG refuses, it compiles nothing more in that process.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from loop_cases import CASES
from mindspore_column import VARIABLE
from report import show_us
from settings import Settings
from timing import Times

_TIMEOUT_S = 120


@dataclass(frozen=True)
class Column:
    """One MindSpore's times by kernel and size; those that it cannot run are missing."""

    times: dict[tuple[str, int], Times]
    first_ms: dict[tuple[str, int], float]

    def steady(self, name: str, size: int) -> str:
        """Returns the cell for steady calls."""
        found = self.times.get((name, size))
        return "-" if found is None else show_us(found.microseconds)

    def first(self, name: str, size: int) -> str:
        """Returns the cell for the first call."""
        found = self.first_ms.get((name, size))
        return "-" if found is None else f"{found:.0f}"


def columns(settings: Settings) -> dict[str, Column]:
    """Returns by label the times of every MindSpore named that has AKG."""
    found = {}
    for python in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        version, column = _measure(Path(python).absolute(), settings)
        if column.times:
            found[f"AKG of MindSpore {version}"] = column
    return found


def _measure(python: Path, settings: Settings) -> tuple[str, Column]:
    version, times, first_ms = "", {}, {}
    for case in CASES:
        for size in (0, 1):
            answer = _run(python, case.name, case.inputs(size), settings.rounds)
            if answer is not None:
                version = answer["version"]
                times[case.name, size] = Times(tuple(answer["seconds"]))
                first_ms[case.name, size] = 1e3 * answer["first_s"]
    return version, Column(times, first_ms)


def _run(python: Path, name: str, inputs: list[np.ndarray], rounds: int) -> dict | None:
    # MindSpore leaves folders behind, and looks for its tools on PATH.
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder, "inputs.npz"), *inputs)
        script = Path(__file__).with_name("mindspore_loops.py")
        path = os.pathsep.join([str(python.parent), os.environ.get("PATH", "")])
        try:
            subprocess.run(
                [str(python), str(script), name, str(rounds)],
                cwd=folder,
                env={**os.environ, "PATH": path},
                check=True,
                capture_output=True,
                timeout=_TIMEOUT_S,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return None
        return json.loads(Path(folder, "result.json").read_text())
