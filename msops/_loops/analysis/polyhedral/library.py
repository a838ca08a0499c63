"""islpy, and the limit of its operations."""

from __future__ import annotations

from msops.errors import BackendError

try:
    import islpy as isl
except ImportError as error:
    raise BackendError.explained(
        "Loop kernels",
        "the dependences of loops are computed with islpy, which is not installed",
        "Install it: pip install islpy.",
    ) from error

OPERATION_LIMIT = 1_000_000
"""Steps of isl in one analysis, as it counts them: they take a third of a second. Gradients of
stencils and of split loops need a fraction of them."""


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
