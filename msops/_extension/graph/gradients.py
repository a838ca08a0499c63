"""Gradients of graph operators: what ``bprop_getters.register`` keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msops.errors import ArgumentTypeError, ArgumentValueError

Getter = Callable[[Any], Callable[..., Any]]


class BpropRegistry:
    """The functions that give operators their ``bprop``, by the name of the operator.

    Corresponds to ``mindspore.ops._grad_experimental.grad_base.bprop_getters``.

    Example:
      >>> from msops.ops._grad_experimental.grad_base import bprop_getters
      >>> @bprop_getters.register("Custom_square")
      ... def get_bprop(self):
      ...     def bprop(x, out, dout):
      ...         return (2 * x * dout,)
      ...     return bprop

    Source: MindSpore 2.10.0, mindspore/common/bprop.py and ops/_grad_experimental/grad_base.py.
    """

    def __init__(self) -> None:
        self._getters: dict[str, Getter] = {}

    def register(self, name: str) -> Callable[[Getter], Getter]:
        """Returns a decorator for the function that returns the ``bprop`` of a graph operator.

        Args:
          name: the operator's name in op_def with "Custom_" before it. The function gets the
            operator, and returns ``bprop(*arguments, out, dout)``, which returns a tuple of one
            gradient for each argument, None where there is none.

        Raises:
          ArgumentTypeError: `name` is no str, or what is decorated is no function.
          ArgumentValueError: `name` does not begin with "Custom_".
        """
        who = "bprop_getters.register"
        if not isinstance(name, str):
            raise ArgumentTypeError.explained(
                who,
                f"expected the name of a graph operator; got {name!r}",
                "Pass 'Custom_add', say; JAX knows the gradients of msops's own operators.",
            )
        if not name.startswith("Custom_"):
            raise ArgumentValueError.explained(
                who,
                f"expected 'Custom_' and the name of an operator of op_def; got {name!r}",
                "JAX knows the gradients of msops's own operators.",
            )

        def decorate(getter: Getter) -> Getter:
            if not callable(getter):
                raise ArgumentTypeError.explained(
                    who, f"expected a function; got {getter!r}", "Decorate a function of self."
                )
            self._getters[name] = getter
            return getter

        return decorate

    def get(self, name: str) -> Getter | None:
        """Returns the function registered for an operator, None if there is none."""
        return self._getters.get(name)


bprop_getters = BpropRegistry()
