"""``msops cache ls|size|clear``: the folder of built libraries."""

from __future__ import annotations

import time
from collections.abc import Callable

from msops._base import config
from msops._toolchain import contents

_UNITS = ("KiB", "MiB", "GiB")


def list_libraries() -> str:
    """Returns a line per library: when it was built, size and path."""
    lines = [
        f"{time.strftime('%Y-%m-%d %H:%M', time.localtime(entry.built_s))}  "
        f"{show_size(entry.size_bytes):>10}  {entry.path}"
        for entry in contents.list_entries(config.cache_dir())
    ]
    return "\n".join(lines) or f"{config.cache_dir()} holds no library"


def report_size() -> str:
    """Returns how much the folder holds."""
    root = config.cache_dir()
    count = len(contents.list_entries(root))
    return f"{root}: {show_size(contents.measure(root))}, libraries: {count}"


def clear() -> str:
    """Empties the folder; returns how much that freed."""
    root = config.cache_dir()
    return f"{root}: freed {show_size(contents.clear(root))}"


COMMANDS: dict[str, tuple[str, Callable[[], str]]] = {
    "ls": ("list the libraries that were built, the latest first", list_libraries),
    "size": ("report how much the cache folder holds", report_size),
    "clear": ("delete every library that was built; they are built again when needed", clear),
}


def show_size(size_bytes: int) -> str:
    """Returns a size with its unit: "1.5 MiB"."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    power = min((size_bytes.bit_length() - 1) // 10, len(_UNITS))
    return f"{size_bytes / 1024**power:.1f} {_UNITS[power - 1]}"
