"""Objects of this process that a program refers to: Python functions, and runners of C++.

A program holds only an id of each: a digest of what can be written of the object as text, and a
number, because objects of equal text may still differ. The id is the same in every process that
lowers the same calls in the same order. An exported program has none: it names a Python function by
its module. If several processes run one program together, each with its own objects, the ids of
these objects have to be equal.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msops import _jax_seam as seam
from msops.errors import BackendError

WAIT_S = 300.0
"""How long processes wait for one another; as long as `jax.distributed.initialize` does."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.01, 1.0

T = TypeVar("T")


class Ids(Generic[T]):
    """Objects by id; equal ones have one. It keeps none alive: programs do."""

    def __init__(self) -> None:
        self._objects: weakref.WeakValueDictionary[str, T] = weakref.WeakValueDictionary()
        self._spent: set[str] = set()
        self._lock = threading.Lock()

    def identify(self, name: str, text: str, value: T, once: bool = False) -> tuple[str, T]:
        """Returns an id, and the object that has it: `value`, or an equal one.

        Args:
          name: what the id begins with.
          text: what the object is, which objects that are not equal may share.
          value: the object.
          once: whether no other object is ever to have the id, when this one is gone.
        """
        with self._lock:
            for number in itertools.count():
                key = f"{name}-{_digest(text)}-{number}"
                known = self._objects.get(key)
                if known is None and key not in self._spent:
                    known = self._objects[key] = value
                    if once:
                        self._spent.add(key)
                if known is value or (known is not None and known == value):
                    return key, known
        raise AssertionError

    def get(self, key: str) -> T | None:
        """Returns the object of an id; None if it is gone, or another process's."""
        return self._objects.get(key)


def describe_function(function: Callable[..., Any]) -> Iterator[str]:
    """Yields what a function is, as far as that is the same in every process."""
    if isinstance(function, functools.partial):
        yield from describe_function(function.func)
    elif isinstance(function, types.MethodType):
        yield from describe_function(function.__func__)
    elif isinstance(function, types.FunctionType):
        yield function.__module__ or ""
        yield from describe_code(function.__code__)
    else:
        named = function if hasattr(function, "__name__") else type(function)
        yield f"{getattr(named, '__module__', '')} {named.__name__}"


def describe_code(code: types.CodeType) -> Iterator[str]:
    """Yields what code does, without where its lines are."""
    yield (
        f"{code.co_name} {code.co_code.hex()} {code.co_exceptiontable.hex()} {code.co_flags} "
        f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount} "
        f"{code.co_names} {code.co_varnames} {code.co_cellvars} {code.co_freevars}"
    )
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from describe_code(value)
        elif isinstance(value, frozenset):
            yield str(sorted(map(repr, value)))
        else:
            yield repr(value)


_equal: set[tuple[tuple[int, ...], str]] = set()
_attempts = itertools.count()


def refuse_export(lowering: seam.Lowering, what: str, who: str) -> None:
    """Raises if the program that calls an object of this process is being exported.

    Args:
      lowering: the equation that refers to it.
      what: the kind of object.
      who: the op and where it runs, for messages.

    Raises:
      BackendError: it is.
    """
    if lowering.is_exported:
        raise BackendError.explained(
            who,
            f"a program that calls {what} is being exported, and that lives in this process alone",
            "Leave the call out of what jax.export gets, or write the kernel as func_type "
            "'aot', 'akg', 'hybrid' or 'tbe'.",
        )


def require_everywhere(lowering: seam.Lowering, name: str, what: str, who: str) -> None:
    """Raises unless each process that runs the program, too, has an object of an equal id.

    Asked once per id, when a program with it is lowered, which all of the processes do. A process
    waits for the others to come as far: one that went on alone would hang where they first exchange
    data.

    Args:
      lowering: the equation that refers to it.
      name: the id.
      what: the kind of object.
      who: the op and where it runs, for messages.

    Raises:
      BackendError: another process waits for another id, or `WAIT_S` seconds have passed.
    """
    processes = lowering.processes
    if not processes or (processes, name) in _equal:
        return
    meeting = _Meeting(processes, name)
    deadline, pause = time.monotonic() + WAIT_S, _FIRST_PAUSE_S
    try:
        while missing := meeting.missing():
            differing = meeting.differing(missing)
            if differing or time.monotonic() > deadline:
                late = dict.fromkeys(missing, f"did not come within {WAIT_S:g} s")
                raise _not_everywhere(differing or late, meeting.own, name, what, who)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
    finally:
        meeting.leave()
    _equal.add((processes, name))


class _Meeting:
    """One process's wait for the others to have an id.

    The processes share these texts: ``have/<id>/<process>`` stays for ever, ``waiting/<process>``
    says for what a process waits as long as it does, and ``refused/<attempt>/<process>`` says to
    one that waits that another has, and waits for, something else.
    """

    def __init__(self, processes: tuple[int, ...], name: str):
        self._store = seam.ProcessStore(f"msops/{_digest(repr(processes))}")
        self._processes = processes
        self._name = name
        self.own = self._store.process
        self._attempt = f"{self.own}-{next(_attempts)}"
        self._refused: set[str] = set()
        self._store.put(f"have/{_digest(name)}/{self.own}", "")
        self._store.put(f"waiting/{self.own}", f"{self._attempt} {name}")

    def missing(self) -> list[int]:
        """Returns the processes that do not have the id."""
        come = self._store.get_all(f"have/{_digest(self._name)}")
        return [process for process in self._processes if str(process) not in come]

    def differing(self, missing: Sequence[int]) -> dict[int, str]:
        """Returns other ids that some of these processes wait for, in vain as this one does."""
        refusals = self._store.get_all(f"refused/{self._attempt}")
        found = {int(process): name for process, name in refusals.items()}
        waiting = self._store.get_all("waiting")
        for process in missing:
            attempt, _, name = waiting.get(str(process), "").partition(" ")
            if name and str(self.own) not in self._store.get_all(f"have/{_digest(name)}"):
                self._store.put(f"refused/{attempt}/{self.own}", self._name)
                self._refused.add(attempt)
                found[process] = name
        return found

    def leave(self) -> None:
        """Leaves the meeting after the refused processes have seen the refusal."""
        self._store.delete(f"waiting/{self.own}")
        deadline = time.monotonic() + 2 * _LONGEST_PAUSE_S
        while self._refused and time.monotonic() < deadline:
            waiting = self._store.get_all("waiting").values()
            self._refused &= {text.partition(" ")[0] for text in waiting}
            time.sleep(_FIRST_PAUSE_S)


def _digest(text: str) -> str:
    """Returns a text that may be part of a key."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _not_everywhere(
    others: Mapping[int, str], own: int, name: str, what: str, who: str
) -> BackendError:
    named = {own: name, **others}
    return BackendError.explained(
        who,
        f"expected all processes that run its program together to call the same {what}; got",
        "Define and call the same functions in the same order in every process.",
        [f"process {process}: {named[process]}" for process in sorted(named)],
    )
