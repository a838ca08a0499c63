"""A call whose kernel can be written as JAX code."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

Function = Callable[..., Sequence[Any]]
Pullback = Callable[[Sequence[Any], Sequence[Any], Sequence[int]], Sequence[Any]]


@dataclasses.dataclass(frozen=True)
class Traced:
    """A call as JAX code.

    Attributes:
      function: flat arrays to flat results.
      pullback: ``(inputs, cotangents, wanted)``, with one cotangent per float result, to one
        gradient per position of `wanted`; None leaves it to JAX, which transposes `function`. A
        call that is traced again may have one at one time only: either serves.
    """

    function: Function
    pullback: Pullback | None = None
