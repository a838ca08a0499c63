"""MindSpore's ``common.seed`` namespace."""

from __future__ import annotations

from typing import Any

import numpy as np

from msops._base.missing_names import missing_names
from msops.errors import ArgumentTypeError, ArgumentValueError, explain

__all__ = ["get_seed", "set_seed"]

_LARGEST = 2**32 - 1

_seed: int | None = None


def set_seed(seed: int) -> None:
    """Seeds numpy's global generator, and keeps the seed for `get_seed`.

    Corresponds to ``mindspore.set_seed``. Nothing else in msops draws random numbers; `jax.random`
    takes keys of its own.

    Args:
      seed: int from 0 to 2**32 - 1.

    Raises:
      ArgumentTypeError: `seed` is no int.
      ArgumentValueError: `seed` is out of range.

    Example:
      >>> import msops as ms
      >>> ms.common.set_seed(1234)
      >>> ms.common.get_seed()
      1234

    Source: MindSpore 2.7.2, mindspore/common/seed.py, set_seed.
    """
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise ArgumentTypeError(_refusal(seed))
    if not 0 <= seed <= _LARGEST:
        raise ArgumentValueError(_refusal(seed))
    np.random.seed(seed)
    global _seed
    _seed = seed


def get_seed() -> int | None:
    """Returns the seed of the last `set_seed`, or None.

    Corresponds to ``mindspore.get_seed``.

    Source: MindSpore 2.7.2, mindspore/common/seed.py, get_seed.
    """
    return _seed


def _refusal(seed: Any) -> str:
    return explain(
        "set_seed",
        f"expected seed int from 0 to {_LARGEST}; got {seed!r} ({type(seed).__name__})",
        "Pass 1234, say.",
    )


__getattr__ = missing_names(__name__)
