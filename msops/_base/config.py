"""Environment variables, each read where it is used and through this module alone."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from msops.errors import ArgumentValueError

DEBUG_WORDS = {
    "ir": "prints every stage of a loop kernel to stderr",
    "bounds": "checks indices of loop kernels that could not be proven to be in range",
}
"""The words that ``MSOPS_DEBUG`` may hold, and the effect of each."""


def cache_dir() -> Path:
    """Returns the folder of built libraries: ``MSOPS_CACHE_DIR``, else the XDG cache folder."""
    explicit = os.environ.get("MSOPS_CACHE_DIR")
    if explicit:
        return _folder("MSOPS_CACHE_DIR", explicit)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return _folder("XDG_CACHE_HOME", base) / "msops"


def trusts_cache() -> bool:
    """Returns whether a cache folder that others may write is used (``MSOPS_CACHE_TRUST``)."""
    return _switch("MSOPS_CACHE_TRUST", default=False)


def library_path() -> list[Path]:
    """Returns the folders of ``MSOPS_LIBRARY_PATH`` that hold libraries for loaded programs."""
    return _folders("MSOPS_LIBRARY_PATH")


def aicpu_path() -> list[Path]:
    """Returns the folders that ``cust_aicpu`` names libraries in (``MSOPS_AICPU_PATH``)."""
    return _folders("MSOPS_AICPU_PATH")


def eigen() -> Path | None:
    """Returns the folder of Eigen's headers if ``MSOPS_EIGEN`` names one."""
    text = os.environ.get("MSOPS_EIGEN")
    return _folder("MSOPS_EIGEN", text) if text else None


def aot_white_list() -> Path | None:
    """Returns the folder aot libraries and sources must lie in (``MS_CUSTOM_AOT_WHITE_LIST``)."""
    text = os.environ.get("MS_CUSTOM_AOT_WHITE_LIST")
    return _folder("MS_CUSTOM_AOT_WHITE_LIST", text) if text else None


def cuda_arch() -> str | None:
    """Returns the architecture to build ``.cu`` files for (``MSOPS_CUDA_ARCH``, ``sm_90``)."""
    return os.environ.get("MSOPS_CUDA_ARCH") or None


def debug() -> frozenset[str]:
    """Returns the words of ``MSOPS_DEBUG``, see `DEBUG_WORDS`.

    Raises:
      ArgumentValueError: one is none of these.
    """
    words = frozenset(os.environ.get("MSOPS_DEBUG", "").replace(",", " ").split())
    unknown = ", ".join(sorted(words.difference(DEBUG_WORDS)))
    if unknown:
        raise ArgumentValueError.explained(
            "MSOPS_DEBUG",
            f"expected words among {', '.join(DEBUG_WORDS)}; got {unknown}",
            "Separate them by commas or spaces.",
        )
    return words


def host_memory_pool() -> bool:
    """Returns whether memory of large results is kept (``MSOPS_HOST_MEMORY_POOL``)."""
    return _switch("MSOPS_HOST_MEMORY_POOL", default=False)


def loops_timing() -> bool:
    """Returns whether loop kernels may be timed to choose their form (``MSOPS_LOOPS_TIMING``)."""
    return _switch("MSOPS_LOOPS_TIMING", default=True)


def _switch(variable: str, default: bool) -> bool:
    text = os.environ.get(variable, "")
    if text not in ("", "0", "1"):
        remedy = f"Set it to {int(not default)}, or leave it out."
        raise ArgumentValueError.explained(variable, f"expected 0 or 1; got {text!r}", remedy)
    return text == "1" if text else default


def _folders(variable: str) -> list[Path]:
    text = os.environ.get(variable, "")
    return [_folder(variable, part) for part in text.split(os.pathsep) if part]


def _folder(variable: str, text: str) -> Path:
    try:
        path = Path(text).expanduser()
        try:
            return path.resolve(strict=True)
        except FileNotFoundError:  # it is made when it is needed
            return path.resolve()
    except (RuntimeError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.ELOOP:
            return path.resolve()
        raise ArgumentValueError.explained(
            variable,
            f"expected a folder; got {text!r}, whose home folder is not known, or a loop of links",
            "Set it to a path from / on.",
        ) from error
