"""The error for a Tensor whose value belongs to a function that JAX traced, and that has ended."""

from __future__ import annotations

import functools
import gc
from typing import Any

import jax

from msops import _jax_seam as seam
from msops.errors import ArgumentTypeError


class EscapedTensorError(ArgumentTypeError, jax.errors.UnexpectedTracerError):
    """A Tensor is used whose value is known only in the function that computed it."""

    def __init__(self, message: str):
        Exception.__init__(self, message)  # JAX's would add its own advice


def explain_escapes(tensor_class: type[Any]) -> None:
    """Has JAX raise our error where the value that escaped is that of a Tensor."""
    seam.explain_escaped(functools.partial(_explain, tensor_class))


def _explain(tensor_class: type[Any], value: Any) -> Exception | None:
    # JAX knows the value alone; an error may take the time to look for who has it.
    if not any(isinstance(each, tensor_class) for each in gc.get_referrers(value)):
        return None
    return EscapedTensorError.explained(
        "Tensor",
        "it was changed or made in a function that is compiled or differentiated, and its value "
        "is known only there",
        "Return the value from that function, or assign it to a Parameter, which keeps it.",
    )
