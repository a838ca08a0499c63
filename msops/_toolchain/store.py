"""The cache folder. Everything in it can be deleted at any time; nothing in it is changed in place.

    <MSOPS_CACHE_DIR, else ~/.cache/msops>/
      objects/ab/ab12.../add.so    a library, in a folder named by the SHA-256 of its content
      origins/cd/cd34.../home/...  a library that finds others through $ORIGIN (private_copy.py)
      manifests/ef/ef56....json    what builds of one source and command read and made (manifest.py)
      locks/ef56                   one of 65,536 files for flock; their existence means nothing
      generated/01/0123.../lu.cc   C++ that msops wrote (generated.py)
      measurements/23/2345...json  times of what msops may become (measurements.py)
      scratch/x1y2/                a build under way; its owner holds a flock on it
      scratch/x3y4                 a file that is being written

- A file or folder gets its name by an atomic rename of something complete.
- What is read is checked against the hash in its path, or is whole JSON, so a damaged entry is as
  good as absent, also one that a crash of the machine left. So nothing waits for the disk.
- A lock only saves doing the same work twice. The kernel releases it when its process ends, in
  whatever way, and correctness does not lean on it: without it two builds write the same names.
- What uses the folder while it is deleted raises VanishedError, and is done again.
- What processes that were killed left in scratch is swept by later builds.
- What others than its user may write is not used (permissions.py).
"""

from __future__ import annotations

import contextlib
import contextvars
import fcntl
import functools
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from msops._base import config
from msops._base.temporary import is_full
from msops._toolchain import permissions
from msops.errors import BuildError, explain

P = ParamSpec("P")
R = TypeVar("R")

STORE_VARIABLES = ("MSOPS_CACHE_DIR", "XDG_CACHE_HOME", "HOME")
"""The environment variables that decide where the cache folder is."""

# An orphaned compiler may still write after its Python process was killed; not for this long.
_ABANDONED_AFTER_S = 3600
_ATTEMPTS = 8
# The dynamic linker replaces $ORIGIN and the like in a path that it opens.
_PLAIN = re.compile(r"[$\x00-\x1f\x7f\ud800-\udfff]")
_retries: contextvars.ContextVar[bool] = contextvars.ContextVar("_retries", default=False)
_held: set[int] = set()
_swept: set[Path] = set()


class VanishedError(BuildError):
    """A part of the cache folder was deleted while it was used."""


def retried(function: Callable[P, R]) -> Callable[P, R]:
    """Does again what the deletion of the cache folder interrupts, a few times.

    What is called inside leaves that to the outermost such function, or each level would multiply
    the attempts.
    """

    @functools.wraps(function)
    def retrying(*args: P.args, **kwargs: P.kwargs) -> R:
        if _retries.get():
            return function(*args, **kwargs)
        token = _retries.set(True)
        try:
            for _ in range(_ATTEMPTS - 1):
                with contextlib.suppress(VanishedError):
                    return function(*args, **kwargs)
            return function(*args, **kwargs)
        finally:
            _retries.reset(token)

    return retrying


@dataclass(frozen=True)
class Built:
    """A library in the cache.

    Attributes:
      path: the file to open; what it holds never changes.
      hash: SHA-256 of its content, in hexadecimal.
      name: base name of the source or library it comes from.
    """

    path: Path
    hash: str
    name: str


@dataclass(frozen=True)
class ObjectStore:
    """The cache folder, and the op on whose behalf it is used."""

    root: Path
    who: str

    def object_path(self, digest: str, name: str) -> Path:
        """Returns where the library with content hash `digest` lies under the name `name`."""
        return self.root / "objects" / digest[:2] / digest / _PLAIN.sub("_", name)

    def load(self, digest: str, name: str) -> bytes | None:
        """Returns the content of an object, or None if it is absent or damaged."""
        return self.read_verified(self.object_path(digest, name), digest)

    def read_verified(self, path: Path, digest: str) -> bytes | None:
        """Returns a file's content if its SHA-256 is `digest`, else None."""
        data = self.read(path)
        return data if data is not None and hashlib.sha256(data).hexdigest() == digest else None

    def read(self, path: Path) -> bytes | None:
        """Returns the content of a file of the cache, or None if it cannot be read.

        Raises:
          BuildError: others may write it.
        """
        self.check(path)
        try:
            return path.read_bytes()
        except OSError:
            return None

    def check(self, path: Path) -> None:
        """Raises BuildError if others may write a part of the cache, or a folder on its way."""
        permissions.check_part(self.root, path, self.who)

    def add(self, data: bytes, name: str) -> Path:
        """Returns the path of an object with content `data`, written unless it is there."""
        digest = hashlib.sha256(data).hexdigest()
        path = self.object_path(digest, name)
        if self.read_verified(path, digest) is None:
            self.write(path, data)
        return path

    @retried
    def write(self, path: Path, data: bytes) -> None:
        """Writes a file so that a reader sees all of it or none of it."""
        with self.writing():
            # No folder: Linux takes some milliseconds to delete one.
            handle, name = tempfile.mkstemp(dir=self._scratch_folder())
            try:
                os.close(handle)
                Path(name).write_bytes(data)
                self.put(Path(name), path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(name)
                raise

    def put(self, made: Path, path: Path) -> None:
        """Renames what lies in a scratch folder to its place in the cache."""
        permissions.give_modes(self.root, made)
        self.make_folder(path.parent)
        os.rename(made, path)

    def make_folder(self, folder: Path) -> None:
        """Makes a folder of the cache, unless it is there; raises if others may write it."""
        permissions.make_folders(self.root, folder)
        self.check(folder)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Makes the folder; turns an operating system's refusal inside the block into an error."""
        try:
            permissions.make_cache_folder(self.root)
            yield
        except FileNotFoundError as error:
            raise self.vanished() from error
        except OSError as error:
            raise self.unwritable(error.strerror or str(error)) from error

    def vanished(self) -> VanishedError:
        """Returns the error for a cache folder of which a part was deleted."""
        return VanishedError(self._unwritable("parts of it are deleted at the same time"))

    def unwritable(self, reason: str) -> BuildError:
        """Returns the error for a cache folder that cannot be written."""
        return BuildError(self._unwritable(reason))

    def _unwritable(self, reason: str) -> str:
        return explain(
            self.who,
            f"the cache folder {self.root} cannot be written ({reason})",
            "Set MSOPS_CACHE_DIR to a folder that can be written and has space.",
        )

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        """Yields a new empty folder on the cache's file system, deleted at the end.

        Raises:
          VanishedError: instead of an error inside the block, if the folder is gone.
          BuildError: the disk is full.
        """
        with self.writing():
            folder = Path(tempfile.mkdtemp(dir=self._scratch_folder()))
            handle = os.open(folder, os.O_RDONLY)
        try:
            with _flocked(handle):
                yield folder
        except (OSError, BuildError) as error:
            if not folder.exists():
                raise self.vanished() from error
            if isinstance(error, OSError) and is_full(error):
                raise self.unwritable(error.strerror or str(error)) from error
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _scratch_folder(self) -> Path:
        """Returns the folder of what is under way, made unless it is there."""
        folder = self.root / "scratch"
        self.make_folder(folder)
        if folder not in _swept:
            _swept.add(folder)
            _sweep(folder)
        return folder

    @contextlib.contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Holds the lock of the build `key`, waiting while another thread or process does."""
        with self.writing():
            # Builds whose keys begin alike wait for each other: with two digits, one pair in 256.
            path = self.root / "locks" / key[:4]
            self.make_folder(path.parent)
            handle = permissions.open_file(self.root, path)
        with _flocked(handle):
            yield


def open_store(who: str) -> ObjectStore:
    """Returns the cache folder that the environment names now.

    Raises:
      BuildError: others could put libraries into it.
    """
    store = ObjectStore(config.cache_dir(), who)
    permissions.check_cache_folder(store.root, who)
    return store


def _sweep(folder: Path) -> None:
    """Deletes from a scratch folder what processes that are gone have left there."""
    for left in folder.iterdir():
        # Another process may sweep, or end, at the same time: whatever vanishes is done.
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime < _ABANDONED_AFTER_S:
                continue
            handle = os.open(left, os.O_RDONLY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if left.is_dir():
                    shutil.rmtree(left, ignore_errors=True)
                else:
                    left.unlink()
            finally:
                os.close(handle)


@contextlib.contextmanager
def _flocked(handle: int) -> Iterator[None]:
    """Holds an exclusive flock on an open file and closes it at the end."""
    _held.add(handle)
    try:
        # Some network file systems have no locks; the store is correct without.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        # Closing is not enough: a process forked meanwhile shares the lock until this releases it.
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
        _held.discard(handle)
        os.close(handle)


def _drop_inherited_locks() -> None:
    """Closes in a forked child what would keep the locks held after its parent was killed."""
    for handle in _held:
        os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_drop_inherited_locks)
