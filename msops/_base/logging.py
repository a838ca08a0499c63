"""Logging: each part of msops writes to a logger of its own below ``msops``.

docs/guides/environment.md lists them. msops adds no handler and sets no level; that is up to the
program. It adds no NullHandler either: that would hide warnings from Python's handler of last
resort, and so from the stderr of a program that configures nothing.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import shlex
import sys
import threading
import time
from collections.abc import Iterator, Sequence

_toolchain = logging.getLogger("msops.toolchain")


ANNOUNCED_AFTER_S = 2.0
"""A person at a terminal begins to wonder."""


@contextlib.contextmanager
def announce_if_slow(text: str) -> Iterator[None]:
    """Writes a line to the terminal if the block takes long; where stderr is none, nothing."""
    terminal = sys.stderr
    if terminal is None or not terminal.isatty():
        yield
        return
    timer = threading.Timer(ANNOUNCED_AFTER_S, print, [f"{text} ..."], {"file": terminal})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@functools.lru_cache(maxsize=1024)
def warn_once(logger: logging.Logger, message: str) -> None:
    """Warns, unless this process has logged the same message before."""
    logger.warning("%s", message, stacklevel=2)


@functools.lru_cache(maxsize=1024)
def tell_once(logger: logging.Logger, message: str) -> None:
    """Logs at level INFO, unless this process has logged the same message before."""
    logger.info("%s", message, stacklevel=2)


def log_hit(who: str, name: str) -> None:
    """Logs that nothing has to be built.

    Args:
      who: the op that needs it.
      name: the file that the cache has.
    """
    _toolchain.debug("%s: %s is in the build cache", who, name)


@contextlib.contextmanager
def log_build(who: str, name: str, command: Sequence[str]) -> Iterator[None]:
    """Logs what the block builds, and afterwards how long that took.

    Args:
      who: the op that needs it.
      name: the file that is built.
      command: the words of the command that builds it.
    """
    _toolchain.debug("%s: building %s: %s", who, name, shlex.join(command))
    started_s = time.monotonic()
    with announce_if_slow(f"{who}: building {name}; the cache keeps it"):
        yield
    _toolchain.info("%s: built %s in %.2f s", who, name, time.monotonic() - started_s)
