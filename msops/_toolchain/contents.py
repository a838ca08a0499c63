"""The contents of the cache folder: its libraries, its size, and how to empty it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Folders of store.py; a scratch folder may be in use, and is swept by later builds.
_FOLDERS = ("objects", "origins", "manifests", "generated", "measurements")


@dataclass(frozen=True)
class Entry:
    """A library in the cache.

    Attributes:
      path: of its file, `objects/<2 digits>/<SHA-256>/<source>.so`, or `.cubin`.
      size_bytes: its size.
      built_s: when it was written, in seconds since 1970.
    """

    path: Path
    size_bytes: int
    built_s: float


def list_entries(root: Path) -> list[Entry]:
    """Returns the libraries in a cache folder, the latest first."""
    found = []
    for path, status in _files(root / "objects"):
        found.append(Entry(path, status.st_size, status.st_mtime))
    return sorted(found, key=lambda entry: (-entry.built_s, entry.path.name, entry.path))


def measure(root: Path) -> int:
    """Returns the bytes in all files of a cache folder."""
    return sum(status.st_size for folder in _FOLDERS for _, status in _files(root / folder))


def clear(root: Path) -> int:
    """Empties a cache folder; returns how many bytes that freed.

    Only what msops writes is deleted, should the folder hold more. Programs that have opened a
    library keep it; builds that are under way write theirs.
    """
    size_bytes = measure(root)
    for folder in _FOLDERS:
        shutil.rmtree(root / folder, ignore_errors=True)
    return size_bytes - measure(root)


def _files(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yields the files below a folder; one that goes away meanwhile is not there."""
    for base, _, names in os.walk(folder):
        for name in names:
            path = Path(base, name)
            try:
                status = path.lstat()
            except OSError:
                continue
            yield path, status
