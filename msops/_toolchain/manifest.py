"""Records of the files that a build read: the next build checks them without compiling.

This is the direct mode of ccache: under a key of everything known before compiling (source, flags,
compiler, architecture) lie the results so far, each with the stamps of the files that compiler and
linker opened. A result holds while all of them hold the same content, and while no folder that is
searched for headers or libraries gained an entry that could now be found before one of them. Not
covered, as in ccache: a header that appears where ``__has_include`` found none.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from msops._base.logging import log_hit
from msops._toolchain.stamps import Stamp
from msops._toolchain.store import ObjectStore
from msops.errors import BuildError

# Raise it when the same key would name something built differently.
_KEY_FORMAT = 1
_RESULTS_KEPT = 16
Listing = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Result:
    """One outcome of a build.

    Attributes:
      library: content hash of the library it made.
      inputs: the files it read beside the source.
      listing: the folders searched for headers, each with the entries it had that share a name
        with a header that was read.
    """

    library: str
    inputs: tuple[Stamp, ...]
    listing: Listing

    def refreshed(self) -> Result | None:
        """Returns the result with stamps as of now (`self` if nothing moved), None if stale."""
        stamps = []
        for stamp in self.inputs:
            fresh = stamp.refreshed()
            if fresh is None:
                return None
            stamps.append(fresh)
        folders = tuple(folder for folder, _ in self.listing)
        if list_folders(folders, header_names(self.inputs)) != self.listing:
            return None
        if all(old is new for old, new in zip(self.inputs, stamps, strict=True)):
            return self
        return replace(self, inputs=tuple(stamps))


def header_names(inputs: tuple[Stamp, ...]) -> frozenset[str]:
    """Returns every part of every path: the name a header is included by starts with one.

    Also the name of a shared library for that of each archive: the linker prefers it.
    """
    names = {part for stamp in inputs for part in stamp.path.split("/")}
    return frozenset(names | {f"{name[:-2]}.so" for name in names if name.endswith(".a")})


def list_folders(folders: tuple[str, ...], names: frozenset[str]) -> Listing:
    """Returns each folder with those of `names`, sorted, that it has an entry for."""
    return tuple((folder, tuple(sorted(names & _entries(folder)))) for folder in folders)


def _entries(folder: str) -> frozenset[str]:
    """Returns the names in a folder; none if it cannot be read, as for a compiler."""
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return frozenset()


def find_result(store: ObjectStore, key: str) -> Result | None:
    """Returns the recorded result of the build `key` that still holds, if there is one."""
    for result in _read(store, key):
        fresh = result.refreshed()
        if fresh is result:
            return result
        if fresh is not None:
            # Fresh times save reading the files next time; a read-only cache is still a cache.
            with contextlib.suppress(BuildError):
                record_result(store, key, fresh)
            return fresh
    return None


def find_object(store: ObjectStore, key: str, name: str) -> tuple[Result, bytes] | None:
    """Returns the recorded result of the build `key` and what it made, if that is undamaged.

    Args:
      store: the cache folder.
      key: of the build.
      name: of what it makes.
    """
    result = find_result(store, key)
    data = None if result is None else store.load(result.library, name)
    if result is None or data is None:
        return None
    log_hit(store.who, name)
    return result, data


def found_or_made(
    store: ObjectStore, key: str, name: str, make: Callable[[], tuple[Result, bytes]]
) -> tuple[Result, bytes]:
    """Returns what `find_object` finds, else what `make` makes while others wait for it."""
    found = find_object(store, key, name)
    if found is None:
        with store.lock(key):
            found = find_object(store, key, name) or make()
    return found


def add_object(
    store: ObjectStore,
    key: str,
    name: str,
    data: bytes,
    inputs: tuple[Stamp, ...] = (),
    listing: Listing = (),
) -> tuple[Result, bytes]:
    """Puts what a build made into the cache, and records what it read; see `Result`."""
    store.add(data, name)
    result = Result(hashlib.sha256(data).hexdigest(), inputs, listing)
    record_result(store, key, result)
    return result, data


def key_of(identity: tuple[object, ...]) -> str:
    """Returns the key of a build from all that is known before it: what JSON can write."""
    return hashlib.sha256(json.dumps((_KEY_FORMAT, *identity)).encode()).hexdigest()


def record_result(store: ObjectStore, key: str, result: Result) -> None:
    """Records `result`, before the older ones of the same build."""
    others = [old for old in _read(store, key) if not _same(old, result)]
    rows = [_encode(row) for row in (result, *others)[:_RESULTS_KEPT]]
    store.write(_path(store, key), json.dumps(rows).encode())


def _path(store: ObjectStore, key: str) -> Path:
    return store.root / "manifests" / key[:2] / f"{key}.json"


def _same(one: Result, other: Result) -> bool:
    """Whether two results were made from the same contents, whatever their times."""
    return [(s.path, s.sha256) for s in one.inputs] == [(s.path, s.sha256) for s in other.inputs]


def _encode(result: Result) -> dict[str, Any]:
    return {
        "library": result.library,
        "inputs": [astuple(stamp) for stamp in result.inputs],
        "listing": result.listing,
    }


def _read(store: ObjectStore, key: str) -> list[Result]:
    """Returns the results recorded for a build; what cannot be read counts as never written."""
    data = store.read(_path(store, key))
    try:
        return [
            Result(
                library=_decode_hash(row["library"]),
                inputs=tuple(_decode_stamp(*fields) for fields in row["inputs"]),
                listing=tuple((_decode_path(path), tuple(names)) for path, names in row["listing"]),
            )
            for row in json.loads(data or b"[]")
        ]
    except (ValueError, TypeError, KeyError, RecursionError):
        return []


def _decode_hash(text: Any) -> str:
    """Returns the hash of a library; raises ValueError for what is none, such as a path."""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise ValueError("a library has a SHA-256")
    return str(text)


def _decode_path(text: Any) -> str:
    """Returns the path of a file; raises ValueError or TypeError for what no file can have."""
    if b"\0" in os.fsencode(text):
        raise ValueError("a path has no null character")
    return str(text)


def _decode_stamp(path: Any, *numbers_and_hash: Any) -> Stamp:
    """Returns a stamp; raises TypeError for what is none, such as a number for a path."""
    stamp = Stamp(_decode_path(path), *numbers_and_hash)
    *numbers, digest, settled = numbers_and_hash
    numbers_fit = all(type(number) is int for number in numbers)
    if not (isinstance(digest, str) and numbers_fit and type(settled) is bool):
        raise TypeError("a stamp has a path, numbers, a hash, and says whether it was at rest")
    return stamp


def parse_depfile(text: str) -> tuple[str, ...]:
    """Returns the prerequisites in the make rule that gcc, clang and nvcc write for ``-MD``.

    Args:
      text: one rule; in a path, a space or tab has a backslash before it, and twice the backslashes
        that it follows; ``#`` is written ``\\#`` and ``$`` as ``$$``.
    """
    _, _, body = text.replace("\\\n", " ").partition(":")
    paths = [""]
    for backslashes, character in re.findall(r"(\\*)(\$\$|[^\\])", f"{body}\n", re.DOTALL):
        if character in (" ", "\t") and len(backslashes) % 2:
            paths[-1] += backslashes[: len(backslashes) // 2] + character
        elif character in (" ", "\t", "\n"):
            paths[-1] += backslashes
            paths.append("")
        elif character == "#" and backslashes:
            paths[-1] += f"{backslashes[1:]}#"
        else:
            paths[-1] += f"{backslashes}{character[-1]}"
    return tuple(dict.fromkeys(path for path in paths if path))
