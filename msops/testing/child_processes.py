"""Processes that run kernels: forks of one that has imported `msops.testing.child`.

Python takes some 50 ms to start and to import that; a fork of it takes 5. `opcheck` runs a
kernel in some twenty processes, and in one more after each crash.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msops.testing.spent_time import Stopwatch

_FOLDERS = (Path(__file__).parent.parent, Path(__file__).parent)
# Without what `import msops` imports: of the two packages above, it has the folders alone.
START = """
import sys
from types import ModuleType
for name, folder in zip(("msops", "msops.testing"), sys.argv[1:]):
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__path__ = [folder]
from msops.testing.child.main import main
main()
"""
# How often a running fork is looked at.
_POLL_MS = 100


class ForkServer:
    """A process that forks for each folder of jobs.

    In all of its forks, libc, the heap and the stack lie at the same addresses. They lie elsewhere
    in those of another server.

    Args:
      environment: variables added to its environment, and so to that of its forks.
    """

    def __init__(self, environment: Mapping[str, str]):
        self._environment = environment

    @functools.cached_property
    def _process(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", START, *map(os.fspath, _FOLDERS)],
            env={**os.environ, **self._environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            bufsize=0,  # a line that a buffer holds already is none that `poll` sees
        )

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        if "_process" in vars(self):
            self._process.communicate()

    def run(self, folder: Path, check: Callable[[Stopwatch], None]) -> int:
        """Runs the jobs of a folder in a fork, to its end.

        Args:
          folder: has the file ``jobs``; see `msops.testing.child.main`.
          check: is called every so often meanwhile, with the time of the fork; what it raises ends
            the fork.

        Returns:
          The exit status of the fork; if a signal ended it, that signal's number, negated.

        Raises:
          RuntimeError: the server itself has ended.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        answer = select.poll()
        answer.register(stdout)
        try:
            with contextlib.suppress(BrokenPipeError):
                stdin.write(os.fsencode(folder).hex().encode() + b"\n")
                stdin.flush()
            if line := stdout.readline():  # b"+", and the number of the fork
                stopwatch = Stopwatch(int(line))
                while not answer.poll(_POLL_MS):
                    check(stopwatch)
        except BaseException:
            self._process.terminate()
            while stdout.readline().startswith(b"+"):
                pass
            raise
        if line := stdout.readline():
            return int(line)
        _, errors = self._process.communicate()
        del self._process
        text = errors.decode(errors="replace")
        raise RuntimeError(f"opcheck: the process that starts those of kernels ended:\n{text}")


_shared: contextvars.ContextVar[ForkServer | None] = contextvars.ContextVar("_shared", default=None)


@contextlib.contextmanager
def shared_server() -> Iterator[None]:
    """Lets what runs inside share one server, where it needs no environment of its own."""
    with ForkServer({}) as server:
        token = _shared.set(server)
        try:
            yield
        finally:
            _shared.reset(token)


@contextlib.contextmanager
def server_for(environment: Mapping[str, str], is_new: bool) -> Iterator[ForkServer]:
    """Gives the shared server, or another if the environment differs or a new one is wanted."""
    shared = _shared.get()
    if shared is not None and not environment and not is_new:
        yield shared
    else:
        with ForkServer(environment) as server:
            yield server
