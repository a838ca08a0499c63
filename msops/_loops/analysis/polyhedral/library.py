"""islpy: imported at the first analysis, and kept within a number of operations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msops.errors import BackendError, explain

try:
    import islpy as isl
except ImportError as error:
    raise BackendError(
        explain(
            "Loop kernels",
            "the dependences of loops are computed with islpy, which is not installed",
            "Install it: pip install islpy.",
        )
    ) from error

OPERATION_LIMIT = 200_000
"""isl's count of its own steps in one analysis: about a second, and ten times what the kernels of
the test corpus take at most."""


class TooComplex(Exception):
    """isl did not finish within its limit: nothing is known of the kernel's dependences."""


def count(points: isl.Set) -> int:
    """Returns the number of points of a bounded set.

    Raises:
      TooComplex: the limit of the set's context was reached.
    """
    number = points.count_val().to_str()
    # Past its limit isl raises no error here, but has no number.
    if number is None:
        raise TooComplex
    return int(number)


@contextmanager
def limited(context: isl.Context, limit: int | None = None) -> Iterator[None]:
    """Counts isl's steps in a context from 0 and stops it past a limit.

    Args:
      context: the context.
      limit: the most steps; None for `OPERATION_LIMIT`.

    Raises:
      TooComplex: the limit was reached.
    """
    context.reset_operations()
    context.set_max_operations(OPERATION_LIMIT if limit is None else limit)
    try:
        yield
    except isl.Error as error:
        if "maximal number of operations" in str(error):
            raise TooComplex from error
        raise
    finally:
        context.set_max_operations(0)
        context.reset_operations()
