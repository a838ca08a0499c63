"""Files that calls leave, or write to."""

from __future__ import annotations

import contextlib
import os
import time

TYPE_CHECKING = False  # as type checkers know it, without the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# Rounds in which files are looked at before and after a call, and the least time between two of
# them, in which other processes write theirs. File systems tell times apart that are some ms apart.
_LOOKS_AT_FILES, _BETWEEN_LOOKS_S = 6, 0.01
# Letters that begin the names of files of one kind.
_BEGINNING = 3
# Files of a folder of which each is asked when it changed.
_FULL = 1000


def times_of_folders() -> list[int]:
    """Returns when something was last made or removed in each folder where such files lie."""
    times = []
    for folder in _folders():
        with contextlib.suppress(OSError):
            times.append(os.stat(folder).st_mtime_ns)
    return times


def files_of_calls(call: Callable[[], object]) -> list[str]:
    """Reports files that each call makes or writes to, in the folders where such files lie.

    Other processes use these folders, too. What they do, they do between calls as well: a time
    without a call is as long as the call before it. Files of a kind that come at such a time, as
    their names begin and end, do not count.
    """
    in_calls, between = [], []
    time.sleep(_BETWEEN_LOOKS_S)  # a call before may have written, at the same time for the system
    seen = _files()
    for _ in range(_LOOKS_AT_FILES):
        start_s = time.perf_counter()
        call()
        after = _files()
        in_calls.append(_newer(seen, after))
        if not in_calls[-1]:  # not each call does
            return []
        time.sleep(max(_BETWEEN_LOOKS_S, time.perf_counter() - start_s))
        seen = _files()
        between.append(_newer(after, seen))
    if same := set.intersection(*in_calls).difference(*between):
        return [f"files: each call writes to {name}" for name in sorted(same)]
    kinds = set.intersection(*(set(map(_kind_of, names)) for names in in_calls))
    kinds.difference_update(*(map(_kind_of, names) for names in between))
    named = sorted(name for name in in_calls[-1] if _kind_of(name) in kinds)
    return [f"files: each call leaves one, as {name}" for name in named[:1]]


def _kind_of(name: str) -> tuple[str, str, int, str]:
    """Returns what names of one kind have in common: what is unlike in them is in their middle."""
    folder, base = os.path.split(name)
    return folder, base[:_BEGINNING], len(base), os.path.splitext(base)[1]


def _folders() -> list[str]:
    """Returns the folders for temporary files, and the working one."""
    wanted = (os.environ.get("TMPDIR", "/tmp"), "/tmp", "/var/tmp", "/dev/shm", os.getcwd())
    return list(dict.fromkeys(wanted))


def _files() -> dict[str, int]:
    """Returns when each file in the folders for temporary ones, and in the working one, changed.

    Of the files of a full folder it is only known that they are there: to ask each takes long.
    """
    found = {}
    for folder in _folders():
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            listed = list(entries)
            for entry in listed:
                with contextlib.suppress(OSError):
                    # A folder changes with what is made and removed in it.
                    is_asked = len(listed) <= _FULL and not entry.is_dir(follow_symlinks=False)
                    found[entry.path] = (
                        entry.stat(follow_symlinks=False).st_mtime_ns if is_asked else 0
                    )
    return found


def _newer(before: Mapping[str, int], after: Mapping[str, int]) -> set[str]:
    return {name for name, time_ns in after.items() if before.get(name) != time_ns}
