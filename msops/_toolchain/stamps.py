"""Stamps of files that were read, to know without reading them again that they have not changed.

A stamp trusts size, times and inode only if the file was at rest when it was taken: a file written
twice within one tick of the file system's clock has the same times both times. A stamp taken
earlier than that compares contents, at the price of one read.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from dataclasses import dataclass, field

# The coarsest clock of a file system in use (FAT, and ext3 or NFS exports of it, tick in seconds).
SETTLING_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Stamp:
    """A file's content hash with the stat fields under which it was read.

    Attributes:
      path: as the file was opened.
      sha256: of the content, in hexadecimal.
      settled: the file was at rest when it was read, so equal stat fields mean equal content.
    """

    path: str
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    sha256: str
    settled: bool = field(compare=False)

    def refreshed(self) -> Stamp | None:
        """Returns a stamp of the file as of now (`self` if nothing moved), None if it differs."""
        try:
            if self.settled:
                now = os.stat(self.path)
                if (now.st_size, now.st_mtime_ns, now.st_ctime_ns, now.st_ino) == (
                    self.size_bytes,
                    self.mtime_ns,
                    self.ctime_ns,
                    self.inode,
                ):
                    return self
            fresh = take_stamp(self.path)
        except OSError:
            return None
        return fresh if fresh.sha256 == self.sha256 else None


def read_stamped(path: str | os.PathLike[str]) -> tuple[bytes, Stamp]:
    """Returns a file's content and the stamp of exactly that content.

    Raises:
      OSError: it cannot be read.
    """
    with open(path, "rb") as file:
        before = os.fstat(file.fileno())
        data = file.read()
        after = os.fstat(file.fileno())
    return data, _stamp(path, before, after, hashlib.sha256(data).hexdigest())


def _stamp(
    path: str | os.PathLike[str], before: os.stat_result, after: os.stat_result, sha256: str
) -> Stamp:
    """Returns the stamp of content read between two looks at its file."""
    at_rest = time.time_ns() - max(after.st_mtime_ns, after.st_ctime_ns) > SETTLING_NS
    return Stamp(
        path=os.fspath(path),
        size_bytes=after.st_size,
        mtime_ns=after.st_mtime_ns,
        ctime_ns=after.st_ctime_ns,
        inode=after.st_ino,
        sha256=sha256,
        settled=at_rest and before.st_ctime_ns == after.st_ctime_ns,
    )


def take_stamp(path: str | os.PathLike[str]) -> Stamp:
    """Returns the stamp of a file as it is now; raises OSError if it cannot be read.

    So it does for pipes and devices, which may never end.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "No regular file", os.fspath(path))
    with open(path, "rb") as file:
        before = os.fstat(file.fileno())
        digest = hashlib.file_digest(file, "sha256")
        return _stamp(path, before, os.fstat(file.fileno()), digest.hexdigest())
