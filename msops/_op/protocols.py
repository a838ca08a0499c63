"""Protocols of an op, for the rules of JAX's transformations and of devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import jax

from msops._jax_seam.division import Dimensions
from msops._op.call import Call
from msops._op.definition import Definition
from msops._op.outputs import Outputs
from msops._op.traced import Traced


class CompiledCalls(Protocol):
    """The compiled calls of an op, as `_primitive.programs.Programs` is one."""

    def bound(self, call: Call, /) -> Callable[[Sequence[Any]], Any]:
        """Returns the primitive's call of flat arrays."""

    def tangent(self, call: Call, live: Sequence[int], linear: int, /) -> Callable[..., Any]:
        """Returns the tangent's call."""


class BoundOp(Protocol):
    """An op with its primitive, as `_primitive.operator.Operator` is one.

    Attributes:
      definition: what makes the op what it is.
      who: the op, for messages.
      has_effect: whether one call must be one run.
      programs: returns the op's compiled calls, None once nobody holds them.
    """

    definition: Definition
    who: str
    has_effect: bool
    programs: Callable[[], CompiledCalls | None]

    @property
    def primitive_name(self) -> str:
        """The primitive's name, in jaxprs and profiles."""

    def bind(self, call: Call, flat: Sequence[Any]) -> Sequence[Any]:
        """Binds the primitive to flat arrays; returns flat results."""

    def outputs(self, call: Call, avals: Sequence[Any]) -> Outputs:
        """Returns what a call on inputs of these abstract values returns."""

    def dimensions(
        self,
        call: Call,
        inputs: Sequence[Any],
        outputs: Sequence[jax.ShapeDtypeStruct],
    ) -> Dimensions | None:
        """Returns what the op's sharding rule says of the arrays of a call; None without a rule."""

    def traced(self, call: Call, arrays: Sequence[Any]) -> Traced | None:
        """Returns a call on such arrays as JAX code, if its kernel can be written so."""
