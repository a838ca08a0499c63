"""Who may write the cache folder: its user, root, and the group that it is shared with.

What lies in the folder runs in this process. So all that msops makes in it has the mode of the
folder itself, whatever the umask, and a part is used only if nobody else may change it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from pathlib import Path

from msops._base import config
from msops.errors import BuildError

_PRIVATE = 0o700


def make_cache_folder(root: Path) -> None:
    """Makes the cache folder, and those above it that are missing, for this user alone."""
    if not root.parent.exists():
        make_cache_folder(root.parent)
    _make(root, _PRIVATE)


def make_folders(root: Path, folder: Path) -> None:
    """Makes a folder below the cache folder, and those between."""
    for part in reversed([each for each in (folder, *folder.parents) if root in each.parents]):
        _make(part, _folder_mode(root))


def give_modes(root: Path, made: Path) -> None:
    """Gives a file, or all files and folders of a tree, their modes in the cache."""
    for folder, _, names in os.walk(made):
        _set_mode(folder, _folder_mode(root))
        for name in names:
            if not os.path.islink(path := os.path.join(folder, name)):
                _set_mode(path, _file_mode(root))
    if made.is_file():
        _set_mode(made, _file_mode(root))


def open_file(root: Path, path: Path) -> int:
    """Returns a descriptor of a file of the cache to read and write it, made if need be."""
    with contextlib.suppress(FileExistsError):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        _set_mode(handle, _file_mode(root))
        return handle
    return os.open(path, os.O_RDWR)


def check_cache_folder(root: Path, who: str) -> None:
    """Raises if somebody else may write the cache folder, or put another in its place.

    Raises:
      BuildError: so it is, and ``MSOPS_CACHE_TRUST`` does not say that it may be.
    """
    check_part(root, root, who)
    for folder in root.parents:
        with contextlib.suppress(OSError):
            mode = folder.stat().st_mode
            # In a folder with the sticky bit, as /tmp, only its owner may rename what is there.
            if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
                _refuse(
                    who,
                    f"the folder {folder} can be written by every user, who could put another "
                    f"folder in the place of the cache folder {root}, with libraries that then run "
                    "in this process",
                )


def check_part(root: Path, path: Path, who: str) -> None:
    """Raises if somebody else may write a file of the cache, or a folder on the way to it.

    Args:
      root: the cache folder.
      path: itself, or what lies in it; what is not there yet is not looked at.
      who: the op that messages name.

    Raises:
      BuildError: so it is, and ``MSOPS_CACHE_TRUST`` does not say that it may be.
    """
    for part in (path, *path.parents):
        problem = _problem(part)
        if problem is not None:
            place = "" if part == root else f"{part.relative_to(root)} in "
            _refuse(
                who,
                f"{place}the cache folder {root} {problem}, who could put libraries into it that "
                "then run in this process",
            )
        if part == root:
            return


def _make(folder: Path, mode: int) -> None:
    """Makes a folder unless it is there; nobody else may write it meanwhile."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=_PRIVATE)
        _set_mode(folder, mode)


def _folder_mode(root: Path) -> int:
    """Returns the mode of folders in a cache folder: its own; a group's bit is inherited."""
    return stat.S_IMODE(root.stat().st_mode) & (stat.S_ISGID | 0o777)


def _file_mode(root: Path) -> int:
    """Returns the mode of files in a cache folder: its own, without the right to run them."""
    return stat.S_IMODE(root.stat().st_mode) & 0o666


def _set_mode(file: int | str | Path, mode: int) -> None:
    # Some file systems have no modes; what they let others do is looked at before it is used.
    with contextlib.suppress(PermissionError):
        os.chmod(file, mode)


def _problem(path: Path) -> str | None:
    """Returns what lets somebody else write a file or folder; None if nothing does."""
    try:
        status = path.stat()
    except OSError:  # not there, and made with our own rights
        return None
    # Root may do all things anyway; a group may share a folder.
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to user {_user_name(status.st_uid)}"
    return "can be written by every user" if status.st_mode & stat.S_IWOTH else None


def _refuse(who: str, problem: str) -> None:
    if not config.trusts_cache():
        raise BuildError.explained(
            who,
            problem,
            "Set MSOPS_CACHE_DIR to a folder of your own (chmod -R o-w), or MSOPS_CACHE_TRUST=1 "
            "if you trust those users.",
        )


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
