"""Functions that a gradient passes through on its way back: `Tensor.register_hook`.

On a value that is being traced a hook is the identity, with a gradient of its own, from where it
was registered on. On a Tensor or Parameter that holds data it is kept, and applied
whenever the Tensor is what is differentiated.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from msops.errors import GradientTypeError, GradientValueError

Hook = Callable[[Any], Any]

_NUMBERS = itertools.count()


class HookHandle:
    """The handle that `register_hook` returns.

    Corresponds to the handle of ``mindspore.Tensor.register_hook``.

    Attributes:
      hook: the hook; None when it is removed.
    """

    def __init__(self, hook: Hook):
        self.hook: Hook | None = hook
        self._number = next(_NUMBERS)

    def remove(self) -> None:
        """Makes the hook do nothing from now on; what was compiled with it keeps it."""
        self.hook = None

    def apply(self, gradient: Any) -> Any:
        """Returns what the hook makes of a gradient; itself, if the hook is gone or returns None.

        Args:
          gradient: a Tensor.
        """
        answer = None if self.hook is None else self.hook(gradient)
        if not (answer is None or isinstance(answer, (type(gradient), jax.Array))):
            raise GradientTypeError.explained(
                "Tensor.register_hook",
                f"expected of the hook a Tensor or None; got {type(answer).__name__}",
                "Return the gradient that takes the place of the one it got.",
            )
        return gradient if answer is None else answer


def hooked(value: Any, handles: list[HookHandle], wrap: Hook, unwrap: Hook) -> Any:
    """Returns `value`, whose gradient passes through the hooks in their order.

    Args:
      value: an array or tracer of a float dtype.
      handles: the hooks; it may grow until the gradient is computed.
      wrap: makes a Tensor of an array.
      unwrap: makes an array of a Tensor.
    """

    def transform(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        tensor = wrap(gradients[0])
        for handle in handles:
            tensor = handle.apply(tensor)
        return (unwrap(tensor),)

    return hooked_together([value], transform)[0]


def hooked_together(
    values: Sequence[Any],
    transform: Callable[[tuple[Any, ...]], tuple[Any, ...]],
    note: Callable[[], None] | None = None,
) -> Sequence[Any]:
    """Returns `values`, whose gradients pass through `transform` all at once.

    Args:
      values: arrays or tracers of float dtypes.
      transform: gets and returns arrays.
      note: is called when one of them is differentiated.
    """

    @jax.custom_vjp
    def identity(*arrays: Any) -> Any:
        return arrays

    def forward(*arrays: Any) -> tuple[Any, None]:
        if note is not None:
            note()
        return arrays, None

    def backward(_: None, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        with jax.enable_x64(True):
            results = transform(gradients)
        return tuple(map(_fitted, results, gradients))

    identity.defvjp(forward, backward)
    found: Sequence[Any] = identity(*values)
    return found


def _fitted(result: Any, gradient: Any) -> Any:
    """Returns what took a gradient's place in its dtype; raises if it is of another shape."""
    if result.shape != gradient.shape:
        raise GradientValueError.explained(
            "a backward hook",
            f"expected a gradient of shape {gradient.shape}; got {result.shape}",
            "Return it in the shape of the gradient that the hook gets.",
        )
    return result.astype(gradient.dtype)
