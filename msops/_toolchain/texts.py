"""Sources that are not files of a user's: text of a program's, and C that msops itself wrote.

    <cache folder>/generated/ab/ab12.../add.cc   a source, in a folder named by its SHA-256

From there it is built as a user's source is. Such a library has no origin: nobody named a file, so
no allow-list concerns it.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

from msops._toolchain.store import open_store
from msops.errors import ArgumentValueError, BuildError


def store_source(text: str, name: str, who: str) -> Path:
    """Returns a file of the cache that holds a source, under its name and its content's hash.

    Raises:
      ArgumentValueError: the text has a character that UTF-8 cannot write.
      BuildError: the cache cannot be written.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentValueError.explained(
            who,
            f"expected the text of a source; got {error.object[error.start]!r} in it",
            "Take it out: UTF-8 cannot write it.",
        ) from error
    digest = hashlib.sha256(data).hexdigest()
    store = open_store(who)
    path = store.root / "generated" / digest[:2] / digest / name
    if store.read_verified(path, digest) is None:
        store.write(path, data)
    return path


@contextlib.contextmanager
def kept(source: Path, who: str) -> Iterator[None]:
    """Turns an error inside the block into VanishedError if the stored source is gone."""
    try:
        yield
    except (BuildError, OSError):
        if not source.exists():
            raise open_store(who).vanished() from None
        raise
