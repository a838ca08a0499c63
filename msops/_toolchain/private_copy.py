"""A user's library under a name that cannot change, where ``$ORIGIN`` keeps its meaning.

The dynamic linker knows a library by its path and inode: open a path again after the file was
rebuilt and the old code answers. So what is opened is a copy, named by its content.

A library may look for others beside itself, through ``$ORIGIN`` in its RUNPATH. Its copy then lies
at the end of the original's whole path, below a folder of its own, with links to just those
libraries, and to those they look for in the same way. However many ``..`` follow ``$ORIGIN``, the
search stays below that folder:

    origins/cd/cd34.../home/u/lib/libop.so        the copy of /home/u/lib/libop.so
    origins/cd/cd34.../home/u/deps/libdep.so      a link, found by RUNPATH=$ORIGIN/../deps
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from msops._toolchain.dependencies import find_dependencies
from msops._toolchain.elf import ElfInfo, parse_elf
from msops._toolchain.inputs import read_input
from msops._toolchain.stamps import Stamp
from msops._toolchain.store import Built, ObjectStore, open_store, retried


def open_copy(path: Path, who: str) -> Built:
    """Returns a private copy of a shared library, made unless the cache has it.

    Raises:
      BuildError: `path` is no shared library for this machine, or the cache cannot be written.
    """
    return copy_library(path, who)[0]


@retried
def copy_library(path: Path, who: str) -> tuple[Built, ElfInfo, Stamp]:
    """Does what `open_copy` does; returns also what the library says of itself, and its stamp."""
    path = path.absolute()
    # One read: what is hashed, checked and copied is the same even while a linker writes the file.
    data, stamp = read_input(path, who)
    info = parse_elf(data, path, who)
    store = open_store(who)
    links = _links_for(path, info)
    copy = _add_with_links(store, path, data, links) if links else store.add(data, path.name)
    return Built(copy, stamp.sha256, path.name), info, stamp


def _add_with_links(store: ObjectStore, path: Path, data: bytes, links: dict[str, str]) -> Path:
    """Returns the copy of a library inside its own folder, with `links` beside it."""
    digest = hashlib.sha256(data).hexdigest()
    relative = _below_root(os.path.join(os.path.realpath(path.parent), path.name))
    key = hashlib.sha256(json.dumps([digest, relative, links], sort_keys=True).encode()).hexdigest()
    final = store.root / "origins" / key[:2] / key
    with store.writing(), store.scratch() as scratch, store.lock(key):
        if not _is_whole(store, final, relative, digest, links):
            tree = scratch / "tree"
            (tree / relative).parent.mkdir(parents=True)
            (tree / relative).write_bytes(data)
            for link, target in links.items():
                (tree / link).parent.mkdir(parents=True, exist_ok=True)
                os.symlink(target, tree / link)
            if final.exists():
                os.rename(final, scratch / "damaged")
            store.put(tree, final)
    return final / relative


def _is_whole(
    store: ObjectStore, final: Path, relative: str, digest: str, links: dict[str, str]
) -> bool:
    """Returns whether a copy with links is there and undamaged."""
    return store.read_verified(final / relative, digest) is not None and all(
        os.path.islink(final / link) and os.readlink(final / link) == target
        for link, target in links.items()
    )


def _links_for(path: Path, info: ElfInfo) -> dict[str, str]:
    """Returns the links a copy of the library needs: path below the folder -> real file."""
    return {
        _below_root(needed.path): os.path.realpath(needed.path)
        for needed in find_dependencies(path, info)
        if needed.through_origin
    }


def _below_root(path: str) -> str:
    """Returns an absolute path relative to the root of the file system, without ``..``."""
    return os.path.normpath(path).lstrip("/")
