"""The libraries that a library is linked with, as far as it says itself where they lie.

The dynamic linker knows a library by its name: of two libraries called libdep.so a process gets the
first, whichever folder the second is searched in, and a rebuilt one not at all. Both would compute
with code that nobody meant, so both are errors here.
"""

from __future__ import annotations

import contextlib
import ctypes
import filecmp
import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msops._toolchain.elf import ElfInfo, read_elf
from msops._toolchain.stamps import Stamp, take_stamp
from msops.errors import BuildError

_GET_LINK_MAP = 2  # RTLD_DI_LINKMAP of <dlfcn.h>
_NO_LOAD = os.RTLD_LAZY | os.RTLD_NOLOAD


@dataclass(frozen=True)
class Dependency:
    """A library that another one needs.

    Attributes:
      name: what it is needed as.
      path: where the dynamic linker would find it.
      through_origin: it is searched relative to ``$ORIGIN`` of the needing library, or of one that
        was itself found so.
    """

    name: str
    path: str
    through_origin: bool


class _LinkMap(ctypes.Structure):
    """The start of ``struct link_map`` in <link.h>."""

    _fields_ = (("address", ctypes.c_void_p), ("path", ctypes.c_char_p))


# A folder to search, and whether it is one relative to $ORIGIN.
_Searched = tuple[tuple[str, bool], ...]
# What the names in `Dependency.name` stood for when this process loaded them.
_loaded: dict[str, Stamp] = {}


def find_dependencies(path: Path, info: ElfInfo) -> tuple[Dependency, ...]:
    """Returns what a library needs, and what that needs in turn.

    Left out is what the system's configuration finds and no library names a folder for.

    Args:
      path: where the library lies.
      info: what it says of itself.
    """
    found: dict[str, Dependency] = {}
    _collect(os.path.realpath(path.parent), True, info, (), found)
    found.pop(path.name, None)
    return tuple(found.values())


def check_dependencies(dependencies: Sequence[Dependency], library: str, who: str) -> None:
    """Raises if the dynamic linker would take other libraries for those of `dependencies`.

    Args:
      dependencies: of a library that is about to be opened.
      library: its name.
      who: the op that messages name.

    Raises:
      BuildError: this process has loaded another library of a dependency's name, or an older build.
    """
    for needed in dependencies:
        # What is gone, or cannot be read, is the dynamic linker's to refuse.
        with contextlib.suppress(OSError):
            loaded = _path_of_loaded(needed.name)
            if loaded is None:
                _loaded[needed.name] = take_stamp(needed.path)
                continue
            if needed.name not in _loaded:
                _loaded[needed.name] = take_stamp(loaded)
            known = _loaded[needed.name]
            was_rebuilt = known.refreshed() is None
            is_other = known.path != needed.path and not _are_equal(known.path, needed.path)
            if was_rebuilt or is_other:
                raise BuildError.explained(
                    who,
                    f"{library} needs {needed.name}, and this process has loaded another "
                    "library of that name",
                    "Start Python again to use a rebuilt one. For two at once, give them "
                    "different names (-Wl,-soname) or link them statically.",
                    [
                        f"needed: {needed.path}",
                        f"loaded: {known.path}" + ", as it was before" * was_rebuilt,
                    ],
                )


def _are_equal(one: str, other: str) -> bool:
    return filecmp.cmp(one, other, shallow=False)


def _path_of_loaded(name: str) -> str | None:
    """Returns the file that the dynamic linker has loaded as `name`; None if there is none."""
    program = ctypes.CDLL(None)
    program.dlopen.restype = ctypes.c_void_p
    handle = ctypes.c_void_p(program.dlopen(os.fsencode(name), _NO_LOAD))
    if not handle:
        return None
    try:
        found = ctypes.POINTER(_LinkMap)()
        if program.dlinfo(handle, _GET_LINK_MAP, ctypes.byref(found)) != 0:
            return None
        return os.path.realpath(os.fsdecode(found.contents.path))
    finally:
        program.dlclose(handle)


@functools.cache
def _library_path() -> tuple[str, ...]:
    """Returns the folders of LD_LIBRARY_PATH, which the dynamic linker read when Python started."""
    with open("/proc/self/environ", "rb") as file:
        variables = dict(entry.partition(b"=")[::2] for entry in file.read().split(b"\0"))
    return tuple(filter(None, os.fsdecode(variables.get(b"LD_LIBRARY_PATH", b"")).split(":")))


def _collect(
    origin: str, in_tree: bool, info: ElfInfo, inherited: _Searched, found: dict[str, Dependency]
) -> None:
    """Adds the libraries that one in the folder `origin` finds, and then theirs."""
    # As ld.so(8): RUNPATH serves the library alone and hides RPATH, which serves its needs too.
    rpath = inherited if info.runpath else (*_expand(info.rpath, origin, in_tree), *inherited)
    searched = (
        *(() if info.runpath else rpath),
        *((folder, False) for folder in _library_path()),
        *_expand(info.runpath, origin, in_tree),
    )
    for needed in info.needed:
        if "/" in needed:
            candidates = _expand((needed,), origin, in_tree)
        else:
            candidates = tuple((f"{folder}/{needed}", relative) for folder, relative in searched)
        file = next((each for each in candidates if os.path.isfile(each[0])), None)
        if file is None or needed in found:
            continue
        found[needed] = Dependency(needed, *file)
        # A need that is no library is not ours to judge: opening says what is wrong with it.
        with contextlib.suppress(BuildError):
            # A link of ours beside a copy is opened where it lies, another file where it is.
            folder = os.path.dirname(file[0])
            _collect(folder, file[1], read_elf(file[0]), rpath, found)


def _expand(entries: tuple[str, ...], origin: str, in_tree: bool) -> _Searched:
    """Returns `entries` with $ORIGIN replaced by its value."""
    expanded = (e.replace("${ORIGIN}", origin).replace("$ORIGIN", origin) for e in entries)
    return tuple(
        (folder, in_tree and folder != entry)
        for entry, folder in zip(entries, expanded, strict=True)
        if folder
    )
