"""The outputs that the caller of an operator has made.

An operator whose arguments determine the size of its result compares that with the output before it
computes anything: a size that nobody declared may be larger than any memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax

from msops._ascend.aclnn.refusal import Refused, WrongShape

Outputs = Sequence[jax.ShapeDtypeStruct | None] | None
"""Shape and dtype of each; None for one that is not wanted, and for all if none are declared yet:
the operator is asked for them."""


def declared(outputs: Outputs) -> jax.ShapeDtypeStruct:
    """Returns shape and dtype of the only output."""
    if outputs is None:
        raise Refused(
            "expected an output of a known shape and dtype; got none",
            "Pass out_shape and out_dtype: the inputs do not determine them.",
        )
    if not outputs or outputs[0] is None:
        raise Refused("expected an output tensor; got none", "Make one of the shape wanted.")
    return outputs[0]


def require_shape(shape: Sequence[int], outputs: Outputs) -> None:
    """Refuses a result whose shape is not that of the only output."""
    if outputs is not None and tuple(shape) != tuple(declared(outputs).shape):
        raise WrongShape(tuple(shape))
