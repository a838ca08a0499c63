"""`_Function`: an autograd function in Python, on the machinery of C++'s ``Function<T>``.

What the class of a script computes becomes the `trace` of applied_functions.py: forward, if it gets
the arguments that are differentiated, backward, if it gets what forward saved and the gradients.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Sequence
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from msops._extension.applied_functions import AppliedFunction
from msops._extension.handles import Handle
from msops._face import context
from msops._face.tensor import Tensor, is_jax_face
from msops.errors import ArgumentTypeError, GradientRuntimeError, explain

_STATE = (
    "saved_tensors",
    "dirty_tensors",
    "non_differentiable",
    "materialize_grads",
    "needs_input_grad",
)

_TENSORS = (Tensor, jax.Array, np.ndarray)


class _Function:
    """A function with a backward of its own; `forward` and `backward` get the object as ``ctx``.

    Corresponds to ``mindspore.common._grad_function._Function``. Unlike there, `apply` works in
    compiled functions, too, if forward and backward compute with Tensors; and backward can be
    differentiated, if it computes from what forward got or returned.

    Attributes:
      saved_tensors: what `save_for_backward` got.
      needs_input_grad: for each argument whether it is differentiated.

    Example:
      >>> import msops as ms
      >>> from msops.common._grad_function import _Function
      >>> class Square(_Function):
      ...     @staticmethod
      ...     def forward(ctx, x):
      ...         ctx.save_for_backward(x)
      ...         return x * x
      ...     @staticmethod
      ...     def backward(ctx, dout):
      ...         (x,) = ctx.saved_tensors
      ...         return 2 * x * dout
      >>> print(ms.grad(Square.apply)(ms.Tensor([1.0, 4.0])))
      [2. 8.]

    Source: MindSpore 2.10.0, mindspore/common/_grad_function.py, _Function.
    """

    def __init__(self) -> None:
        self.saved_tensors: tuple[Any, ...] = ()
        self.dirty_tensors: tuple[Any, ...] = ()
        self.non_differentiable: tuple[Any, ...] = ()
        self.materialize_grads = True
        self.needs_input_grad: tuple[bool, ...] = ()

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the result from the arguments of `apply`; every subclass defines it.

        Args:
          ctx: the object; left out if the class has a `setup_context`.
        """
        raise _missing("forward")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Computes one gradient per argument of `apply`, None for none, from those of results."""
        raise _missing("backward")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Saves what backward needs, apart from forward; a subclass may define it."""
        raise _missing("setup_context")

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs forward, with backward as its gradient.

        Args:
          args: those of forward. The Tensors (or arrays of JAX) among them can be differentiated,
            those inside of lists cannot.
          kwargs: only of a class with a `setup_context`.

        Raises:
          GradientRuntimeError: (when differentiated) backward returned a wrong number of
            gradients, or one that is no Tensor or does not fit.
        """
        has_setup = cls.setup_context is not _Function.setup_context
        if has_setup:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if kwargs:
            raise ArgumentTypeError.explained(
                cls.__name__,
                f"apply takes no keyword arguments; got {', '.join(kwargs)}",
                "Pass them by position.",
            )
        call = _Call(cls, args, has_setup)
        if call.is_traced:
            return call.apply()
        ctx = cls()
        ctx.needs_input_grad = (False,) * len(args)
        with call.scope():
            return call.run(ctx, args)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps Tensors, or Nones, as `saved_tensors`."""
        self.saved_tensors = _checked(self, "save_for_backward", tensors, allows_none=True)

    def mark_dirty(self, *args: Any) -> None:
        """Says which arguments forward changes in place; it must return them."""
        self.dirty_tensors = _checked(self, "mark_dirty", args)

    def mark_non_differentiable(self, *args: Any) -> None:
        """Says which results have no gradient."""
        self.non_differentiable = _checked(self, "mark_non_differentiable", args)

    def set_materialize_grads(self, value: bool) -> None:
        """Says whether backward gets zeros for a result that has no gradient, or None."""
        if not isinstance(value, bool):
            raise GradientRuntimeError.explained(
                type(self).__name__,
                f"set_materialize_grads expected a bool; got {type(value).__name__}",
                "Pass True or False.",
            )
        self.materialize_grads = value


def _missing(method: str) -> NotImplementedError:
    return NotImplementedError(
        explain("_Function", f"the class does not define {method}", f"Define {method}(ctx, ...).")
    )


def _checked(
    ctx: _Function, who: str, tensors: tuple[Any, ...], allows_none: bool = False
) -> tuple[Any, ...]:
    for tensor in tensors:
        if not (isinstance(tensor, _TENSORS) or (allows_none and tensor is None)):
            raise GradientRuntimeError.explained(
                type(ctx).__name__,
                f"{who} expected Tensors; got {type(tensor).__name__}",
                "Keep anything else as an attribute: ctx.factor = factor.",
            )
    return tensors


def _is_leaf(value: Any) -> bool:
    return value is None or isinstance(value, Tensor)


def _flatten(tree: Any) -> tuple[list[Any], Any]:
    return jax.tree.flatten(tree, is_leaf=_is_leaf)


@dataclasses.dataclass(frozen=True, eq=False)
class _Kept:
    """Something that is no Tensor, in the place of itself; it equals itself alone."""

    value: Any


@dataclasses.dataclass(frozen=True)
class _Output:
    """Stands in a result for the output of this number."""

    number: int


def _is_output(leaf: Any) -> bool:
    return isinstance(leaf, _Output)


def _entries(result: Any) -> Sequence[Any]:
    return result if isinstance(result, (tuple, list)) else (result,)


class _Call:
    """One call of `apply`."""

    def __init__(self, cls: type[_Function], args: tuple[Any, ...], has_setup: bool):
        self._cls = cls
        self._has_setup = has_setup
        self._tensors = not is_jax_face(args)
        leaves, self._structure = _flatten(args)
        self._is_tensor = tuple(map(self._is_array, args))
        handles: dict[int, Handle] = {}
        # Handles in the places of Tensors.
        self._leaves = [self._handle(leaf, handles) for leaf in leaves]
        self._args = jax.tree.unflatten(self._structure, self._leaves)
        # What forward returned, of _Output and _Kept.
        self._result: Any = None

    def _is_array(self, value: Any) -> bool:
        # Beside Tensors, an array of numpy is a value like any other.
        return isinstance(value, _TENSORS) and not (self._tensors and isinstance(value, np.ndarray))

    def _handle(self, leaf: Any, handles: dict[int, Handle]) -> Any:
        """Returns a leaf of the arguments; for a Tensor its handle, the same one each time."""
        if not self._is_array(leaf):
            return leaf
        owner = leaf if isinstance(leaf, Tensor) else None
        array = leaf.value if isinstance(leaf, Tensor) else jnp.asarray(leaf)
        return handles.setdefault(id(leaf), Handle(array.shape, array.dtype, array, owner))

    @property
    def is_traced(self) -> bool:
        """Whether the value of an argument is not known yet, or is being differentiated."""
        return any(isinstance(leaf, Handle) and leaf.is_traced for leaf in self._leaves)

    def run(self, ctx: _Function, args: Sequence[Any]) -> Any:
        """Returns what forward returns."""
        if not self._has_setup:
            return self._cls.forward(ctx, *args)
        output = self._cls.forward(*args)
        self._cls.setup_context(ctx, tuple(args), output)
        return output

    def apply(self) -> Any:
        """Runs it as a function with a gradient."""
        own = [arg for arg in self._args if isinstance(arg, Handle)]
        others = [leaf for leaf in self._leaves if isinstance(leaf, Handle) and leaf not in own]
        call = AppliedFunction(
            self._cls.__name__, tuple(own), tuple(others), self._is_tensor, self._trace, self.scope
        )
        outputs = call.apply()
        for handle in (*own, *others):
            if handle.owner is not None and handle.array is not handle.owner.value:
                handle.owner.value = handle.array
        return jax.tree.map(
            lambda leaf: self._own(outputs[leaf.number]) if _is_output(leaf) else leaf.value,
            self._result,
        )

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the settings that it runs under."""
        return context.scope() if self._tensors else contextlib.nullcontext()

    def _own(self, handle: Handle) -> Any:
        """Returns the caller's Tensor that a handle is of, or a new one."""
        return handle.owner if handle.owner is not None else self._tensor(handle)

    def _tensor(self, handle: Handle | None) -> Any:
        if handle is None or not self._tensors:
            return None if handle is None else handle.array
        tensor = object.__new__(Tensor)
        tensor.value = handle.array
        return tensor

    def _trace(self, needs: tuple[bool, ...], *backward: Any) -> Any:
        ctx = self._cls()
        given = iter(needs)
        ctx.needs_input_grad = tuple(is_tensor and next(given) for is_tensor in self._is_tensor)
        return self._run_backward(ctx, *backward) if backward else self._run_forward(ctx)

    def _run_forward(self, ctx: _Function) -> Any:
        """Runs forward; returns what `applied_functions.apply` says."""
        inputs = {h: self._tensor(h) for h in self._leaves if isinstance(h, Handle)}
        leaves = [inputs[leaf] if isinstance(leaf, Handle) else leaf for leaf in self._leaves]
        try:
            result = self.run(ctx, jax.tree.unflatten(self._structure, leaves))
        except jax.errors.UnexpectedTracerError as error:
            raise self._of_closure("forward") from error
        known = {id(tensor): handle for handle, tensor in inputs.items()}

        def handle_of(tensor: Any) -> Handle:
            return cast(Handle, self._handle(tensor, known))

        for handle, tensor in inputs.items():
            if self._tensors and tensor.value is not handle.array:
                handle.array = tensor.value
        outputs: list[Handle] = []

        def place(leaf: Any) -> _Output | _Kept:
            if not self._is_array(leaf):
                return _Kept(leaf)
            outputs.append(handle_of(leaf))
            return _Output(len(outputs) - 1)

        self._result = jax.tree.map(place, result, is_leaf=_is_leaf)
        # As in MindSpore, Tensors inside of lists have no gradient.
        own = {entry.number for entry in _entries(self._result) if _is_output(entry)}
        inner = tuple(handle for number, handle in enumerate(outputs) if number not in own)
        saved = tuple(None if t is None else handle_of(t) for t in ctx.saved_tensors)
        attributes = {name: value for name, value in vars(ctx).items() if name not in _STATE}
        values, tree = _flatten(attributes)
        data = {
            "leaves": tuple(handle_of(v) if self._is_array(v) else _Kept(v) for v in values),
            "tree": tree,
        }
        dirty, constant = (
            tuple(map(handle_of, tensors))
            for tensors in (ctx.dirty_tensors, ctx.non_differentiable)
        )
        if not set(dirty) <= set(outputs):
            raise GradientRuntimeError.explained(
                self._cls.__name__,
                "a Tensor given to mark_dirty is not a result of forward",
                "Return it: what was written to it reaches the caller as a result.",
            )
        return tuple(outputs), saved, dirty, constant + inner, ctx.materialize_grads, data

    def _of_closure(self, what: str) -> ArgumentTypeError:
        return ArgumentTypeError.explained(
            self._cls.__name__,
            f"{what} uses a Tensor from around it, whose gradient is being computed",
            "Pass it as an argument of apply, or ops.stop_gradient of it.",
        )

    def _run_backward(
        self,
        ctx: _Function,
        saved: tuple[Handle | None, ...],
        data: dict[str, Any],
        gradients: tuple[Handle | None, ...],
    ) -> tuple[Handle | None, ...]:
        """Runs backward on what forward saved; returns one gradient per argument."""
        values = [v.value if isinstance(v, _Kept) else self._tensor(v) for v in data["leaves"]]
        vars(ctx).update(jax.tree.unflatten(data["tree"], values))
        ctx.saved_tensors = tuple(map(self._tensor, saved))
        douts = [
            self._tensor(gradients[entry.number]) if _is_output(entry) else None
            for entry in _entries(self._result)
        ]
        try:
            answer = self._cls.backward(ctx, *douts)
        except jax.errors.UnexpectedTracerError as error:
            raise self._of_closure("backward") from error
        entries = list(answer) if isinstance(answer, tuple) else [answer]
        while len(entries) > len(self._is_tensor) and entries[-1] is None:
            entries.pop()
        for position, entry in enumerate(entries):
            if not (entry is None or self._is_array(entry)):
                raise GradientRuntimeError.explained(
                    self._cls.__name__,
                    f"expected gradients that are Tensors; got {type(entry).__name__} at position "
                    f"{position}",
                    "Return a Tensor or None per argument of forward, several in a tuple.",
                )
        return tuple(None if e is None else self._handle(e, {}) for e in entries)
