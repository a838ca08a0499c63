"""The folder that libraries and sources must lie in, if ``MS_CUSTOM_AOT_WHITE_LIST`` names one."""

from __future__ import annotations

import os
from pathlib import Path

from msops._base import config
from msops.errors import ArgumentTypeError


def check_allowed(path: str | os.PathLike[str], who: str) -> Path:
    """Returns the file to open for `path`; raises unless it lies in the allow-listed folder.

    With a list, that is the file behind all links: what a link means may change once it is checked.
    Without one it is `path` itself.

    Corresponds to the check in MindSpore's ``Custom._check_aot_func``, which tests for a substring;
    here symbolic links and ``..`` are resolved and whole path components are compared, so
    ``/allowed-evil`` does not pass for ``/allowed``.

    Args:
      path: a source or a library.
      who: the op the message names.

    Raises:
      ArgumentTypeError: it lies elsewhere (MindSpore raises TypeError here).
    """
    if not os.environ.get("MS_CUSTOM_AOT_WHITE_LIST"):
        return Path(path)
    folder = config.aot_white_list()
    if folder is None:
        return Path(path)
    try:
        real = Path(path).resolve()
    except (OSError, RuntimeError):
        # A loop of links leads nowhere, so not into the folder.
        real = Path(os.devnull)
    if real.is_relative_to(folder):
        return real
    link = "" if real == Path(path) else f", which is {real}"
    raise ArgumentTypeError.explained(
        who,
        f"expected a file in {folder}, the folder MS_CUSTOM_AOT_WHITE_LIST allows; "
        f"got {os.fspath(path)}{link}",
        "Move the file there, or change the variable.",
    )
