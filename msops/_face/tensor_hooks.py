"""Functions that a gradient passes through on its way back: `Tensor.register_hook`.

On a value that is being traced a hook is the identity, with a gradient of its own, from where it
was registered on. On a Tensor or Parameter that holds data it is kept, and applied
whenever the Tensor is what is differentiated.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax

Hook = Callable[[Any], Any]

_NUMBERS = itertools.count()


class HookHandle:
    """The handle that `register_hook` returns.

    Corresponds to the handle of ``mindspore.Tensor.register_hook``.
    """

    def __init__(self, hook: Hook):
        self._hook: Hook | None = hook
        self._number = next(_NUMBERS)

    def remove(self) -> None:
        """Makes the hook do nothing from now on; what was compiled with it keeps it."""
        self._hook = None

    def apply(self, gradient: Any) -> Any:
        """Returns what the hook makes of a gradient; itself, if the hook is gone or returns None.

        Args:
          gradient: a Tensor.
        """
        answer = None if self._hook is None else self._hook(gradient)
        return gradient if answer is None else answer


def hooked(value: Any, handles: list[HookHandle], wrap: Hook, unwrap: Hook) -> Any:
    """Returns `value`, whose gradient passes through the hooks in their order.

    Args:
      value: an array or tracer of a float dtype.
      handles: the hooks; it may grow until the gradient is computed.
      wrap: makes a Tensor of an array.
      unwrap: makes an array of a Tensor.
    """

    @jax.custom_vjp
    def identity(array: Any) -> Any:
        return array

    def forward(array: Any) -> tuple[Any, None]:
        return array, None

    def backward(_: None, gradient: Any) -> tuple[Any]:
        tensor = wrap(gradient)
        with jax.enable_x64(True):
            for handle in handles:
                tensor = handle.apply(tensor)
            result = unwrap(tensor)
        return (jax.numpy.broadcast_to(result, gradient.shape).astype(gradient.dtype),)

    identity.defvjp(forward, backward)
    return identity(value)
