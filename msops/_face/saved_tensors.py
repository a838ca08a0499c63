"""saved_tensors_hooks: functions that change how a gradient keeps its values.

JAX keeps what the derivative of an operation needs. Inside the block each differentiated operation
is a `jax.custom_vjp`, whose residual is what `pack_hook` made of these arrays.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero

from msops import _jax_seam as seam
from msops._face.tensor import Tensor, unwrap, wrap
from msops.errors import (
    ArgumentTypeError,
    GradientRuntimeError,
    GradientTypeError,
    GradientValueError,
)

_WHO = "saved_tensors_hooks"


class _Thread(threading.local):
    hooks: saved_tensors_hooks | None = None


_thread = _Thread()


class saved_tensors_hooks:
    """Inside its block, the arrays that a gradient keeps pass through two functions.

    Corresponds to ``mindspore.saved_tensors_hooks``. What is kept is what JAX keeps of each
    operation, and what `save_for_backward` of a `_Function` got. Of nested blocks the inner one
    counts. Outside of gradients nothing is kept, and what references and `jax.shard_map` keep is
    left to JAX.

    Args:
      pack_hook: gets each Tensor when it is kept, and returns anything.
      unpack_hook: gets that when the gradient needs the Tensor, and returns it.

    Raises:
      ArgumentTypeError: (on entering) a hook cannot be called.
      GradientTypeError: (on entering) the block is inside of a function that is compiled.
      GradientRuntimeError, GradientValueError: (in the gradient) `unpack_hook` returned no Tensor,
        or one of another shape.

    Example:
      >>> import msops as ms
      >>> def exp(x):
      ...     with ms.saved_tensors_hooks(lambda t: t.asnumpy(), ms.Tensor):
      ...         return ms.ops.exp(x)
      >>> print(ms.grad(exp)(ms.Tensor([0.0])))
      [1.]

    Source: MindSpore 2.10.0, mindspore/graph/api.py, saved_tensors_hooks.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]):
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook
        self._blocks: list[contextlib.AbstractContextManager[None]] = []

    def __enter__(self) -> Self:
        for hook in (self.pack_hook, self.unpack_hook):
            if not callable(hook):
                raise ArgumentTypeError.explained(
                    _WHO, f"expected functions; got {type(hook).__name__}", "Pass two."
                )
        block = self._block()
        block.__enter__()
        self._blocks.append(block)
        return self

    def __exit__(self, *error: Any) -> None:
        self._blocks.pop().__exit__(*error)

    @contextlib.contextmanager
    def _block(self) -> Iterator[None]:
        with self._around_operations():
            outer, _thread.hooks = _thread.hooks, self
            try:
                yield
            finally:
                _thread.hooks = outer

    def _around_operations(self) -> contextlib.AbstractContextManager[None]:
        saves = seam.saves()
        if saves is None:
            raise GradientTypeError.explained(
                _WHO,
                "the block is inside of a function that is compiled, or that vmap maps inside of "
                "its gradient: hooks would see no values there",
                "Differentiate it eagerly, or use jax.checkpoint: its policy says what is kept, "
                "computed again, or offloaded to the host.",
            )
        return seam.intercepted(self.apply) if saves else contextlib.nullcontext()

    def keep(self, arrays: Sequence[Any]) -> Kept:
        """Returns what `pack_hook` makes of arrays."""
        return Kept(self, arrays)

    def apply(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        """Returns an operation of arrays, whose gradient keeps what the hooks make of it."""

        # The results that do not depend on what is differentiated, as that of stop_gradient.
        constant: list[bool] = []

        @jax.custom_vjp
        def function(*values: Any) -> Any:
            return operation(*values)

        def fwd(*primals: Any) -> Any:
            values = [primal.value for primal in primals]
            asked = [n for n, primal in enumerate(primals) if primal.perturbed]

            def of_asked(*given: Any) -> Any:
                filled = list(values)
                for n, value in zip(asked, given, strict=True):
                    filled[n] = value
                result = operation(*filled)
                constant[:] = [not seam.is_differentiated(leaf) for leaf in jax.tree.leaves(result)]
                return result

            result, pull_back = jax.vjp(of_asked, *(values[n] for n in asked))
            arrays, structure = jax.tree.flatten(pull_back)
            places = [asked.index(n) if n in asked else None for n in range(len(values))]
            return result, _Residual(self.keep(arrays), structure, places)

        def bwd(residual: _Residual, cotangents: Any) -> Any:
            pull_back = jax.tree.unflatten(residual.structure, residual.kept.arrays())
            found = pull_back(jax.tree.map(_instantiated, cotangents, is_leaf=_is_symbolic))
            return tuple(None if place is None else found[place] for place in residual.places)

        function.defvjp(fwd, bwd, symbolic_zeros=True)

        def call(*values: Any) -> Any:
            leaves, structure = jax.tree.flatten(function(*values))
            for n, is_constant in enumerate(constant):
                leaves[n] = jax.lax.stop_gradient(leaves[n]) if is_constant else leaves[n]
            return jax.tree.unflatten(structure, leaves)

        return call


def _is_symbolic(cotangent: Any) -> bool:
    return isinstance(cotangent, SymbolicZero)


def _instantiated(cotangent: Any) -> Any:
    if not _is_symbolic(cotangent):
        return cotangent
    make = np.zeros if cotangent.dtype == jax.dtypes.float0 else jnp.zeros
    return make(cotangent.shape, cotangent.dtype)


class Kept:
    """What the hooks made of arrays.

    Args:
      hooks: the hooks.
      arrays: the arrays.
    """

    def __init__(self, hooks: saved_tensors_hooks, arrays: Sequence[Any]):
        self._unpack = hooks.unpack_hook
        self._likes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
        # What is differentiated again keeps its derivative, whatever the hooks make of its value.
        self._sources = [array if isinstance(array, jax.core.Tracer) else None for array in arrays]
        with seam.intercepted(None):
            self._packed = [hooks.pack_hook(wrap(jnp.asarray(array))) for array in arrays]

    def arrays(self) -> list[Any]:
        """Returns the arrays that `unpack_hook` gives back."""
        return [
            self._read(*parts)
            for parts in zip(self._packed, self._likes, self._sources, strict=True)
        ]

    def _read(self, packed: Any, like: jax.ShapeDtypeStruct, source: Any) -> Any:
        array = unwrap(self._unpack(packed))
        if not isinstance(array, jax.Array):
            raise GradientRuntimeError.explained(
                _WHO,
                f"unpack_hook expected to return a Tensor; got {type(array).__name__}",
                "Return the Tensor that pack_hook got.",
            )
        if array.shape != like.shape:
            raise GradientValueError.explained(
                _WHO,
                f"unpack_hook expected to return shape {like.shape}; got {array.shape}",
                "Return the Tensor that pack_hook got.",
            )
        array = array.astype(like.dtype)
        if source is None or isinstance(array, jax.core.Tracer):
            return array
        return _with_derivative_of(source, array)


@jax.custom_jvp
def _with_derivative_of(source: jax.Array, value: jax.Array) -> jax.Array:
    """Returns a value whose derivative is that of the array it was made of."""
    del source
    return value


@_with_derivative_of.defjvp
def _derivative_of(primals: Any, tangents: Any) -> Any:
    return _with_derivative_of(*primals), tangents[0]


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True, eq=False)
class _Residual:
    """What a gradient keeps of an operation; hidden from JAX, as it may be anything."""

    kept: Kept
    structure: Any
    places: list[int | None]


def around_gradient() -> contextlib.AbstractContextManager[None]:
    """Puts the hooks of a block around a gradient into the function that is differentiated."""
    hooks = _thread.hooks
    return contextlib.nullcontext() if hooks is None else hooks._around_operations()


def current_hooks() -> saved_tensors_hooks | None:
    """Returns the hooks that what is kept here passes through, if it is kept eagerly."""
    return None if seam.interceptor() is None else _thread.hooks
