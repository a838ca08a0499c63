"""What the library says through Python's logging, each part under a logger below ``msops``.

BUILD_NOTES.md lists them. msops adds no handler and sets no level: that is the program's to do. Not
even a NullHandler, which would keep warnings from Python's handler of last resort, and so from the
stderr of a program that configures nothing.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import shlex
import time
from collections.abc import Iterator, Sequence

_toolchain = logging.getLogger("msops.toolchain")


@functools.lru_cache(maxsize=1024)
def warn_once(logger: logging.Logger, message: str) -> None:
    """Warns, unless the same was said before in this process."""
    logger.warning("%s", message, stacklevel=2)


def log_hit(who: str, name: str) -> None:
    """Says that nothing has to be built.

    Args:
      who: the op it is for.
      name: of what the cache has.
    """
    _toolchain.debug("%s: %s is in the build cache", who, name)


@contextlib.contextmanager
def log_build(who: str, name: str, command: Sequence[str]) -> Iterator[None]:
    """Says what the block builds, and when it has, how long that took.

    Args:
      who: the op it is for.
      name: of what is built.
      command: what builds it, in words.
    """
    _toolchain.debug("%s: building %s: %s", who, name, shlex.join(command))
    started_s = time.monotonic()
    yield
    _toolchain.info("%s: built %s in %.2f s", who, name, time.monotonic() - started_s)
