"""What a Python function may change of its process, of Python and of JAX, and should leave."""

from __future__ import annotations

import builtins
import contextlib
import decimal
import gc
import logging
import math
import os
import pickle
import random
import socket
import sys
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from msops import _jax_seam as seam
from msops.testing.child.settings import ENVIRONMENT, changed_settings, process_settings

# What Python sets in `sys` by itself.
_OWN_OF_SYS = ("_", "last_", "modules", "path_importer_cache", "exc_")
# What names of JAX's settings begin with.
_OF_JAX = "JAX's "
# Modules whose functions others have replaced.
_MODULES = (builtins, math, np, os, random, time)
# How often, and how long in all, settings are looked at without a call.
_LOOKS, _WITHOUT_CALLS_S = 20, 1.0


class SettingsWatch:
    """Settings of the process that calls of a function change; other threads may, too."""

    def __init__(self) -> None:
        self._changes: dict[str, str] = {}
        self._told: set[str] = set()

    @contextlib.contextmanager
    def calls(self) -> Iterator[None]:
        """Notes what changes in a block, in which the function is called."""
        before, modules = _settings(), len(sys.modules)
        yield
        after = _settings()
        if len(sys.modules) != modules:
            # What a module sets that is imported is its own. But no program expects that of JAX's
            # settings, by which its next arrays are of other dtypes.
            kept = [name for name in _python_settings() if not name.startswith(_OF_JAX)]
            after |= {name: before[name] for name in kept if name in before}
        self._changes = changed_settings(before, after) | self._changes

    def lines(self) -> list[str]:
        """Reports what changed in the calls, once; but not what changes without a call, too."""
        changes = {name: line for name, line in self._changes.items() if name not in self._told}
        self._told.update(changes)
        moving: set[str] = set()
        for _ in range(_LOOKS if changes else 0):
            before = _settings()
            time.sleep(_WITHOUT_CALLS_S / _LOOKS)
            moving.update(map(_kind_of, changed_settings(before, _settings())))
        return [line for name, line in changes.items() if _kind_of(name) not in moving]


def _kind_of(name: str) -> str:
    """Returns one name for all variables of the environment: a thread may set ever new ones."""
    return ENVIRONMENT if name.startswith(ENVIRONMENT) else name


def _settings() -> dict[str, Any]:
    """Returns what a function may change of its process and of Python, and should leave."""
    return process_settings() | _python_settings()


def _python_settings() -> dict[str, Any]:
    context = decimal.getcontext()
    settings = {
        "NumPy's handling of errors": (np.geterr(), np.geterrcall()),
        "NumPy's options of printing": np.get_printoptions(),
        "Python's filters of warnings": [(f[0], str(f[2])) for f in warnings.filters],
        "Python's limit of recursion": sys.getrecursionlimit(),
        "Python's interval between threads": sys.getswitchinterval(),
        "Python's collection of garbage": (gc.isenabled(), gc.get_threshold(), gc.callbacks[:]),
        "Python's functions that trace": (sys.gettrace(), sys.getprofile()),
        "these functions of new threads": (threading.gettrace(), threading.getprofile()),
        "the root of logging": (
            logging.root.level,
            logging.root.disabled,
            logging.root.manager.disable,
        ),
        "the handlers of logging": logging.root.handlers[:],
        "the context of decimal": (context.prec, context.rounding),
        "the timeout of sockets": socket.getdefaulttimeout(),
        "the time zone": time.tzname,
    }
    settings |= {
        f"sys.{name}": value[:] if isinstance(value, list) else value
        for name, value in vars(sys).items()
        if not name.startswith(_OWN_OF_SYS)
    }
    settings |= {f"the names of {module.__name__}": _names_of(module) for module in _MODULES}
    return settings | {f"{_OF_JAX}{name}": value for name, value in seam.process_settings().items()}


def _names_of(module: ModuleType) -> str:
    """Returns which objects a module's names are, as a number."""
    objects = tuple(map(id, vars(module).values()))
    return f"{len(objects)}, with objects {hash(objects):x}"


def lines_of_generators(call: Callable[[], object]) -> list[str]:
    """Reports which generators of random numbers that all code shares a call draws from, or seeds.

    They are in a state that no function seeds meanwhile, and then as they were.
    """
    of_numpy, of_python = np.random.get_state(), random.getstate()
    try:
        np.random.seed(zlib.crc32(pickle.dumps(of_numpy)))
        random.seed(repr(of_python))
        before = pickle.dumps(np.random.get_state()), random.getstate()
        call()
        after = pickle.dumps(np.random.get_state()), random.getstate()
    finally:
        np.random.set_state(of_numpy)
        random.setstate(of_python)
    return [
        f"the state of {name}: a call changes it"
        for name, old, new in zip(("np.random", "random"), before, after, strict=True)
        if old != new
    ]
