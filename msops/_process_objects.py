"""Objects of this process that a program refers to: Python functions, and runners of C++.

A program has only an id of them, which is the same in every process that lowers the same calls in
the same order. So such a program is not exported, and where several processes run one program
together, each with its own objects, their ids have to be equal.
"""

from __future__ import annotations

import collections
import hashlib
import itertools
from typing import Any

from msops import _jax_seam as seam
from msops.errors import BackendError, explain

WAIT_S = 300.0
"""How long processes wait for one another; as long as `jax.distributed.initialize` does."""

_counts: dict[tuple[int, ...], itertools.count[int]] = collections.defaultdict(itertools.count)
_equal: set[tuple[tuple[int, ...], str]] = set()


def refuse_export(ctx: Any, what: str, who: str) -> None:
    """Raises if the program that calls an object of this process is being exported.

    Args:
      ctx: JAX's lowering context.
      what: the kind of object.
      who: the op and where it runs, for messages.

    Raises:
      BackendError: it is.
    """
    if seam.is_exported(ctx):
        raise BackendError(
            explain(
                who,
                f"a program that calls {what} is being exported, and that lives in this process "
                "alone",
                "Leave the call out of what jax.export gets, or write the kernel as func_type "
                "'aot', 'akg', 'hybrid', 'tbe' or 'aicpu'.",
            )
        )


def require_equal(ctx: Any, name: str, what: str, who: str) -> None:
    """Raises unless all processes that run a program together call objects of equal ids.

    Their n-th new id is compared, so they lower such programs in the same order, as they have to
    run them in the same order, too. Each waits for the others: a program that one process lowers
    and another does not would hang where they first exchange data.

    Args:
      ctx: JAX's lowering context.
      name: the id.
      what: the kind of object.
      who: the op and where it runs, for messages.

    Raises:
      BackendError: another process has another id, or did not come within `WAIT_S` seconds.
    """
    processes = seam.processes_of(ctx)
    if not processes or (processes, name) in _equal:
        return
    group = hashlib.sha256(repr(processes).encode()).hexdigest()[:16]
    key = f"msops/{group}/{next(_counts[processes])}"
    try:
        names = seam.exchange(key, name, processes, WAIT_S)
    except TimeoutError as error:
        raise BackendError(
            explain(
                who,
                f"its program runs in processes {', '.join(map(str, processes))} together, and "
                f"not all of them lowered it within {WAIT_S:g} s",
                "Call the same jitted functions in the same order in every process.",
                [str(error)],
            )
        ) from error
    if len(set(names)) > 1:
        raise BackendError(
            explain(
                who,
                f"its program runs in several processes together, which call different {what}:",
                "Define and call the same functions in the same order in every process.",
                [f"process {p}: {n}" for p, n in zip(processes, names, strict=True)],
            )
        )
    _equal.add((processes, name))
