"""MindSpore's own times, measured in a child process of the Python MSOPS_BENCH_MINDSPORE names.

The variable may name several, separated as in PATH. MindSpore runs the same library, and the same
timing code, but not in turns with ours: it is another process.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kernels import FOLDER, build_aot_library
from report import show_us
from settings import Settings
from timing import Times

VARIABLE = "MSOPS_BENCH_MINDSPORE"


@dataclass(frozen=True)
class MindSpore:
    """One MindSpore and its times, by "kernel mode" and number of elements."""

    version: str
    times: dict[str, dict[int, Times]]

    @property
    def label(self) -> str:
        """The name of its columns."""
        return f"MindSpore {self.version}"


def columns(settings: Settings, name: str) -> dict[str, dict[int, str]]:
    """Returns by label the shown times of "kernel mode" `name`; empty without a MindSpore."""
    return {
        found.label: {count: show_us(times.microseconds) for count, times in measured.items()}
        for found in measure(settings)
        if (measured := found.times[name])
    }


@functools.cache
def measure(settings: Settings) -> tuple[MindSpore, ...]:
    """Returns the times of every MindSpore named; measures them once per program."""
    interpreters = filter(None, os.environ.get(VARIABLE, "").split(os.pathsep))
    return tuple(_measure(Path(python), settings) for python in interpreters)


def _measure(python: Path, settings: Settings) -> MindSpore:
    # MindSpore leaves folders behind, and looks for its tools on PATH.
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "times.json")
        command = [
            str(python.absolute()),
            str(FOLDER / "mindspore_calls.py"),
            str(build_aot_library()),
            str(settings.rounds),
            str(result),
            *map(str, settings.counts),
        ]
        path = os.pathsep.join([str(python.absolute().parent), os.environ.get("PATH", "")])
        env = {**os.environ, "PATH": path}
        try:
            subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True)
        except OSError as error:
            sys.exit(
                f"{VARIABLE}: cannot run {python}: {error.strerror}.\nName a Python, or unset it."
            )
        except subprocess.CalledProcessError as error:
            sys.exit(
                f"{VARIABLE}: {python} failed with status {error.returncode}:\n{error.stderr}"
                "Name a Python that has MindSpore 2.0 or newer, or unset the variable."
            )
        found = json.loads(result.read_text())
    times = {
        name: {int(count): Times(tuple(seconds)) for count, seconds in measured.items()}
        for name, measured in found["times"].items()
    }
    return MindSpore(found["version"], times)
