"""Hooks of a Cell: functions that run before and after its ``construct``, and on its gradients.

A backward hook needs the gradients of the results and of the inputs. They come one after the other
in the backward pass of one trace, so the first are kept until the second are there.
"""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from msops._face.tensor import Tensor, unwrap, wrap
from msops._face.tensor_hooks import hooked_together
from msops.errors import ArgumentRuntimeError, ArgumentTypeError, GradientTypeError

_NUMBERS = itertools.count()


@dataclasses.dataclass(frozen=True)
class _Hook:
    """A function and how it is called."""

    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False

    def __call__(self, cell: Any, args: Any, kwargs: Any, *output: Any) -> Any:
        named = (kwargs,) if self.with_kwargs else ()
        return self.function(cell, args, *named, *output)


Hooks = OrderedDict[int, _Hook]


class CellHookHandle:
    """The handle that the four methods of a Cell return.

    Corresponds to ``mindspore.common.hook_handle.HookHandle``.
    """

    def __init__(self, hooks: Hooks, number: int, forget: Callable[[], None]):
        self._hooks, self.handle_id, self._forget = hooks, number, forget

    def remove(self) -> None:
        """Removes the hook; again, it does nothing."""
        if self._hooks.pop(self.handle_id, None) is not None:
            self._forget()


@dataclasses.dataclass
class CellHooks:
    """The hooks of one Cell, each kind in the order in which they run."""

    forward_pre: Hooks = dataclasses.field(default_factory=OrderedDict)
    forward: Hooks = dataclasses.field(default_factory=OrderedDict)
    backward_pre: Hooks = dataclasses.field(default_factory=OrderedDict)
    backward: Hooks = dataclasses.field(default_factory=OrderedDict)

    def add(
        self,
        kind: str,
        function: Any,
        forget: Callable[[], None],
        prepend: bool = False,
        **options: bool,
    ) -> CellHookHandle:
        """Adds a hook.

        Args:
          kind: the name of one of the attributes.
          function: the hook.
          forget: is called when the hooks have changed.
          prepend: whether it runs first.
          options: see `_Hook`.
        """
        if not callable(function):
            raise ArgumentTypeError.explained(
                f"Cell.register_{kind}_hook",
                f"expected a callable hook; got {type(function).__name__}",
                "Pass a function.",
            )
        hooks: Hooks = getattr(self, kind)
        number = next(_NUMBERS)
        hooks[number] = _Hook(function, **options)
        if prepend:
            hooks.move_to_end(number, last=False)
        forget()
        return CellHookHandle(hooks, number, forget)

    def run(
        self, cell: Any, compute: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Returns ``compute(*args, **kwargs)`` with the hooks around it."""
        call = _Call(self, cell)
        try:
            return call.run(compute, args, kwargs)
        except Exception:
            call.run_after_failure()
            raise


class _Call:
    """One call of a Cell with hooks."""

    def __init__(self, hooks: CellHooks, cell: Any):
        self._hooks, self._cell = hooks, cell
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._output: Any = None
        self._called: set[int] = set()
        # In the backward pass: the gradients of the results, and whether inputs have gradients.
        self._grad_output: tuple[Any, ...] = ()
        self._is_differentiated = False

    def run(
        self, compute: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self._args, self._kwargs = args, kwargs
        for hook in list(self._hooks.forward_pre.values()):
            self._replace_inputs(hook, hook(self._cell, self._args, self._kwargs))
        inner = self._args
        if self._hooks.backward:
            inner = _hooked(inner, self._run_backward, self._note)
        self._output = compute(*inner, **self._kwargs)
        for number, hook in list(self._hooks.forward.items()):
            self._called.add(number)
            answer = hook(self._cell, self._args, self._kwargs, self._output)
            self._output = self._output if answer is None else answer
        if self._hooks.backward:
            self._output = _hooked(self._output, self._keep)
        if self._hooks.backward_pre:
            self._output = _hooked(self._output, self._run_backward_pre)
        return self._output

    def run_after_failure(self) -> None:
        """Calls those hooks that are always called, and were not yet."""
        for number, hook in list(self._hooks.forward.items()):
            if not hook.always_call or number in self._called:
                continue
            try:
                answer = hook(self._cell, self._args, self._kwargs, self._output)
                self._output = self._output if answer is None else answer
            except Exception as error:
                warnings.warn(
                    f"Cell {self._cell.cls_name!r}: construct failed, and so did a forward hook "
                    f"with always_call: {error}",
                    stacklevel=2,
                )

    def _replace_inputs(self, hook: _Hook, answer: Any) -> None:
        if answer is None:
            return
        if not hook.with_kwargs:
            self._args = answer if isinstance(answer, tuple) else (answer,)
        elif isinstance(answer, tuple) and len(answer) == 2:
            self._args, self._kwargs = answer
        else:
            raise ArgumentRuntimeError.explained(
                f"Cell {self._cell.cls_name!r}",
                "expected of a forward pre-hook with_kwargs None or (args, kwargs); got "
                f"{type(answer).__name__}",
                "Return both, the arguments as a tuple.",
            )

    def _note(self) -> None:
        self._is_differentiated = True

    def _keep(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        self._grad_output = gradients
        if not self._is_differentiated:
            # By weights alone: as in MindSpore the hooks run, and see no gradients of inputs.
            leaves, _ = _flatten(self._args)
            for hook in list(self._hooks.backward.values()):
                hook.function(self._cell, (None,) * len(_places(leaves)), gradients)
        return gradients

    def _run_backward_pre(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self._hooks.backward_pre.values()):
            gradients = self._checked(hook.function(self._cell, gradients), gradients)
        return gradients

    def _run_backward(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in list(self._hooks.backward.values()):
            answer = hook.function(self._cell, gradients, self._grad_output)
            gradients = self._checked(answer, gradients)
        return gradients

    def _checked(self, answer: Any, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns the gradients that a hook returned, None for the same."""
        if answer is None:
            return gradients
        entries = answer if isinstance(answer, tuple) else (answer,)
        return checked_gradients(f"Cell {self._cell.cls_name!r}", entries, gradients)


def checked_gradients(
    who: str, entries: tuple[Any, ...], gradients: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Returns what a backward hook returned instead of `gradients`, if it is of their kind."""
    if len(entries) != len(gradients) or not all(
        isinstance(entry, (Tensor, jax.Array)) for entry in entries
    ):
        got = ", ".join(type(entry).__name__ for entry in entries)
        raise GradientTypeError.explained(
            who,
            f"expected of a backward hook None or {len(gradients)} gradient(s); got ({got})",
            "Return a Tensor for each gradient that it is given.",
        )
    return entries


Transform = Callable[[tuple[Any, ...]], tuple[Any, ...]]


def _flatten(tree: Any) -> tuple[list[Any], Any]:
    return jax.tree.flatten(tree, is_leaf=lambda leaf: leaf is None or isinstance(leaf, Tensor))


def _places(leaves: Sequence[Any]) -> list[int]:
    """Returns where Tensors or arrays of floats are, which can have gradients."""
    return [
        n
        for n, leaf in enumerate(leaves)
        if isinstance(leaf, (Tensor, jax.Array)) and jnp.issubdtype(unwrap(leaf).dtype, jnp.inexact)
    ]


def _hooked(tree: Any, transform: Transform, note: Callable[[], None] | None = None) -> Any:
    """Returns Tensors whose gradients pass through `transform`, all at once."""
    leaves, structure = _flatten(tree)
    return jax.tree.unflatten(structure, hook_gradients(leaves, transform, note))


def hook_gradients(
    leaves: Sequence[Any], transform: Transform, note: Callable[[], None] | None = None
) -> list[Any]:
    """Returns values; the gradients of the float Tensors among them pass through `transform`.

    Args:
      leaves: Tensors, arrays, and anything else.
      transform: gets and returns their gradients, of their kind.
      note: is called when one of them is differentiated.
    """
    places = _places(leaves)
    arrays = [unwrap(leaves[n]) for n in places]
    if not any(isinstance(array, jax.core.Tracer) for array in arrays):
        return list(leaves)
    tensors = any(isinstance(leaves[n], Tensor) for n in places)
    results = hooked_together(
        arrays, lambda grads: unwrap(transform(wrap(grads) if tensors else grads)), note
    )
    filled = list(leaves)
    for n, result in zip(places, results, strict=True):
        filled[n] = wrap(result) if isinstance(leaves[n], Tensor) else result
    return filled
