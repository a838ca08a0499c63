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
# Files of a folder of which each is asked when it changed.
_FULL = 1000


def files_of_calls(call: Callable[[], object]) -> list[str]:
    """Reports files that each call makes or writes to, in the folders where such files lie.

    Other processes use these folders, too. What they do, they do between calls as well: a time
    without a call is as long as the call before it. In a folder where files come at such a time,
    only those count that each call writes to.
    """
    in_calls, between = [], []
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
    others = set(map(os.path.dirname, set().union(*between)))
    for folder in sorted(set(map(os.path.dirname, in_calls[-1])) - others):
        each = [[name for name in names if os.path.dirname(name) == folder] for names in in_calls]
        if all(each):
            return [f"files: each call leaves one, as {min(each[-1])}"]
    return []


def _files() -> dict[str, int]:
    """Returns when each file in the folders for temporary ones, and in the working one, changed.

    Of the files of a full folder it is only known that they are there: to ask each takes long.
    """
    found = {}
    for folder in {os.environ.get("TMPDIR", "/tmp"), "/tmp", "/var/tmp", "/dev/shm", os.getcwd()}:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            listed = list(entries)
            for entry in listed:
                with contextlib.suppress(OSError):
                    is_asked = len(listed) <= _FULL
                    found[entry.path] = (
                        entry.stat(follow_symlinks=False).st_mtime_ns if is_asked else 0
                    )
    return found


def _newer(before: Mapping[str, int], after: Mapping[str, int]) -> set[str]:
    return {name for name, time_ns in after.items() if before.get(name) != time_ns}
