"""How much of its time a call has used: that in which it computed, or waited for something.

Time in which it waited for a processor, as other programs used them all, is none of its own: on a
busy machine a kernel that is only slow would seem not to end.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

# Of what follows the name in a line of /proc: the state, and the ticks of a program and of Linux.
_STATE, _TICKS = 0, slice(11, 13)
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Stopwatch:
    """Counts the time of a process, or of one of its threads; read it every now and then.

    Args:
      process: its number.
      thread: the number of the thread; None for all of them.
    """

    def __init__(self, process: int, thread: int | None = None):
        self._folder = Path("/proc", str(process), *(("task", str(thread)) if thread else ()))
        self._own_s = 0.0
        self._seen_s, self._ran_s = time.monotonic(), self._computed_s()

    def restart(self) -> None:
        """Lets the time count from now on."""
        self.read_s()
        self._own_s = 0.0

    def read_s(self) -> float:
        """Returns how long it has computed or waited since the start; never more than has passed.

        What happened since the last reading is taken for waiting if no thread could run now.
        """
        now_s, ran_s = time.monotonic(), self._computed_s()
        passed_s = now_s - self._seen_s
        self._own_s += min(passed_s, ran_s - self._ran_s) if self._could_run() else passed_s
        self._seen_s, self._ran_s = now_s, ran_s
        return self._own_s

    def _computed_s(self) -> float:
        return sum(map(int, _fields(self._folder)[_TICKS])) * _TICK_S

    def _could_run(self) -> bool:
        folders = [self._folder]
        with contextlib.suppress(OSError):  # a thread has none, nor has what has ended
            folders = list((self._folder / "task").iterdir())
        return any(_fields(folder)[_STATE] == "R" for folder in folders)


def _fields(folder: Path) -> list[str]:
    """Returns what Linux says of a process or thread; of one that has ended, that it waits."""
    with contextlib.suppress(OSError):
        return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
    return ["S", *["0"] * 12]
