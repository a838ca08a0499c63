"""Temporary folders, and what is said where there is no place for one."""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from msops.errors import BuildError

_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextlib.contextmanager
def temporary_folder(who: str) -> Iterator[Path]:
    """Yields a new empty folder, deleted at the end.

    Args:
      who: what messages name.

    Raises:
      BuildError: none can be made, or its disk is full before the block ends.
    """
    try:
        folder = tempfile.mkdtemp(prefix="msops-")
    except OSError as error:
        raise _unusable(who, "no temporary folder can be made", error) from error
    try:
        yield Path(folder)
    except OSError as error:
        if not is_full(error):
            raise
        raise _unusable(who, f"the temporary folder {folder} is full", error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def is_full(error: OSError) -> bool:
    """Returns whether a disk has no space, or no place for another file."""
    return error.errno in _FULL


def _unusable(who: str, problem: str, error: OSError) -> BuildError:
    return BuildError.explained(
        who,
        f"{problem} ({error.strerror or error})",
        "Set TMPDIR to a folder that can be written and has space.",
    )
