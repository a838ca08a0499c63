"""Times that were measured on this machine, kept by what was measured.

    <cache folder>/measurements/ab/ab12....json    seconds by name

The key holds the model and the number of processors and the flags of generated code, beside what
the caller says was measured.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from msops._toolchain.compilers import processor_identity
from msops._toolchain.generated import FLAGS, GCC_FLAGS
from msops._toolchain.store import ObjectStore, open_store
from msops.errors import BuildError


def find_measurement(subject: str, who: str) -> Mapping[str, float] | None:
    """Returns seconds by name, as they were recorded for a subject on such a machine.

    Args:
      subject: all that the times depend on, beside the machine.
      who: the op that messages name.
    """
    store = open_store(who)
    data = store.read(_path(store, subject))
    try:
        found = json.loads(data or b"")
        measured = {str(name): float(seconds) for name, seconds in found.items()}
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        return None
    return measured if all(0 < seconds < math.inf for seconds in measured.values()) else None


def record_measurement(subject: str, seconds: Mapping[str, float], who: str) -> None:
    """Records seconds by name; they are measured again where the cache cannot be written."""
    store = open_store(who)
    with contextlib.suppress(BuildError):
        store.write(_path(store, subject), json.dumps(dict(seconds)).encode())


def _path(store: ObjectStore, subject: str) -> Path:
    machine = (processor_identity(FLAGS), str(os.cpu_count()))
    whole = "\0".join((*machine, *FLAGS, *GCC_FLAGS, subject))
    key = hashlib.sha256(whole.encode()).hexdigest()
    return store.root / "measurements" / key[:2] / f"{key}.json"
