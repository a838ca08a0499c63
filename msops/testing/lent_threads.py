"""Loops of a kernel on the threads that XLA lends, against the same on one thread."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from msops.testing.guarded import show
from msops.testing.other_inputs import enlarged
from msops.testing.subject import Subject, structs_of
from msops.testing.tolerances import close
from msops.testing.trials import results_of

# What a library has whose loops run on threads that XLA lends.
_LENT = b"msops_parallel_for_slot"
# Calls until two threads meet, or as many as this time lets.
_CALLS, _CALLS_S = 100, 1.0
# Elements that loops over blocks divide among threads, and what is too many to look at.
_MANY, _MOST = 100_000, 1_000_000


def lines_on_lent_threads(subject: Subject) -> list[str]:
    """Reports results of many elements that differ where XLA lends its threads.

    A kernel's loops over blocks run on these here, and on one thread in a process of its own.
    """
    library = subject.library if subject.native() is not None else None
    if library is None or _LENT not in library.path.read_bytes():
        return []
    flat = enlarged(subject.flat, _MANY)
    if flat is None or not _are_few(subject, flat):
        return []
    (alone,) = results_of(subject, [flat], is_safe=True)
    arrays = [jnp.array(array) for array in flat]
    # In another order of blocks, a long sum is another one.
    terms = max(array.size for array in flat)
    end_s = time.monotonic() + _CALLS_S
    for _ in range(_CALLS if alone else 0):
        results = map(np.asarray, subject.apply(*arrays))
        for index, (own, got) in enumerate(zip(alone or (), results, strict=True)):
            count = np.count_nonzero(~close(own, got, terms=terms))
            if count:
                return [
                    f"on XLA's threads: output {index}, {show(own)}: {count} of {own.size} "
                    "elements are not those of one thread"
                ]
        if time.monotonic() > end_s:
            break
    return []


def _are_few(subject: Subject, flat: Sequence[np.ndarray]) -> bool:
    """Returns whether the op takes inputs, and no array of the call is too large to look at."""
    with contextlib.suppress(Exception):  # it does not take them
        shapes = [struct.shape for struct in (*structs_of(flat), *subject.outputs(flat).structs)]
        return all(math.prod(shape) <= _MOST for shape in shapes)
    return False
