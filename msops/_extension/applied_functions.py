"""An autograd function on traced tensors: its Forward and Backward as a `jax.custom_vjp`.

It is ``Function<T>`` of C++ or `_Function` of Python. JAX calls the parts when it needs them, maybe
several times and after Apply has returned, so the arguments of the call are kept. Before Forward
runs, the handles of its tensors get the arrays that JAX is tracing with, and after it their own
again.

Harder than it looks is the gradient of a gradient. A forward rule that runs Forward would be
differentiated through what Forward launches, which for a kernel is impossible. So the rule calls a
function that is again a custom_vjp, and that returns beside the outputs what Forward saved. What it
saved of its inputs and outputs is taken from the rule's own, and so is differentiated as they are.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NoReturn

import jax
import jax.numpy as jnp

from msops import _jax_seam as seam
from msops._extension.calls import current_frame
from msops._extension.handles import Handle
from msops._face.leaves import is_leaf
from msops._face.saved_tensors import Kept, current_hooks
from msops.errors import ArgumentTypeError, GradientRuntimeError, GradientTypeError

Needs = tuple[bool, ...]


@dataclasses.dataclass(frozen=True)
class SavedTensor:
    """Where a saved tensor is found when Backward runs.

    Attributes:
      kind: "input", "output", "value" (made inside Forward) or "null".
      index: which one.
    """

    kind: str
    index: int = 0


@dataclasses.dataclass(frozen=True)
class ForwardRecord:
    """The data that Forward left in its context, without arrays; hashable, as JAX requires.

    Attributes:
      needs: which tensor arguments are differentiated.
      saved: the saved tensors.
      data: saved_data; a tensor in it is a `SavedTensor`.
      materialize: whether Backward gets zeros for outputs without gradient.
    """

    needs: Needs
    saved: tuple[SavedTensor, ...]
    data: tuple[tuple[str, Hashable], ...]
    materialize: bool


@dataclasses.dataclass(frozen=True)
class ForwardStructure:
    """The results of Forward that are the same whenever it runs with the same needs.

    Attributes:
      returned: for each output the input that it is, or None.
      dirty: for each output whether it is an input that was changed in place.
      constant: for each output whether it has no gradient.
      record: what Backward gets to know.
    """

    returned: tuple[int | None, ...]
    dirty: tuple[bool, ...]
    constant: tuple[bool, ...]
    record: ForwardRecord

    @property
    def output_count(self) -> int:
        """How many outputs there are."""
        return len(self.returned)


def apply(
    name: str,
    tensors: tuple[Handle, ...],
    others: tuple[Handle, ...],
    is_tensor: tuple[bool, ...],
    trace: Callable[..., Any],
) -> tuple[Handle, ...]:
    """Serves ``Function<T>::Apply`` when an argument is being traced.

    Args:
      name: ``Function[T]``.
      tensors: the arguments of type TensorPtr.
      others: tensors in other arguments, which have no gradient.
      is_tensor: for each argument whether it is of type TensorPtr.
      trace: Forward if it gets ``(needs)``; it returns ``(outputs, saved, dirty, constant,
        materialize, data)``, handles in it. Backward if it gets ``(needs, saved, data,
        gradients)``; it returns gradients.

    Returns:
      The outputs. An input that was changed in place has its own handle.
    """
    call = AppliedFunction(name, tensors, others, is_tensor, trace, current_frame().again)
    return call.apply()


class AppliedFunction:
    """One call of Apply; JAX's traces of it hold it.

    Args:
      name, tensors, others, is_tensor, trace: see `apply`.
      scope: gives the settings that Forward and Backward run under.
    """

    def __init__(
        self,
        name: str,
        tensors: tuple[Handle, ...],
        others: tuple[Handle, ...],
        is_tensor: tuple[bool, ...],
        trace: Callable[..., Any],
        scope: Callable[[], contextlib.AbstractContextManager[Any]],
    ):
        self.name = name
        self.is_tensor = is_tensor
        self.inputs = (*tensors, *others)
        self.tensor_count = len(tensors)
        self._trace = trace
        self._scope = scope
        # Two threads may trace what was compiled of one call; its handles serve one at a time.
        self._lock = threading.RLock()
        self._structures: dict[Needs, ForwardStructure] = {}
        self.differentiable = functools.cache(self._differentiable)

    def apply(self) -> tuple[Handle, ...]:
        """Binds the call; see the function `apply`."""
        arrays = [handle.array for handle in self.inputs]
        are_leaves = [is_leaf(array) for array in arrays]
        self._hooks = current_hooks()
        with seam.intercepted(None):
            results = self.differentiable(self._no_needs)(*seam.vary_alike(arrays))
        structure = self._structures[self._no_needs]
        handles = []
        for array, returned, dirty, constant in zip(
            results, structure.returned, structure.dirty, structure.constant, strict=True
        ):
            result = jax.lax.stop_gradient(array) if constant else array
            if dirty and returned is not None:
                if are_leaves[returned]:
                    self._refuse_leaf(returned)
                self.inputs[returned].array = result
                handles.append(self.inputs[returned])
            else:
                handles.append(Handle(result.shape, result.dtype, result))
        return tuple(handles)

    def _refuse_leaf(self, position: int) -> NoReturn:
        raise GradientRuntimeError.explained(
            self.name,
            f"a leaf tensor that needs a gradient, tensor argument {position}, is changed in place",
            "Change a tensor computed from it (x + 0), or do not differentiate by it.",
        )

    @property
    def _no_needs(self) -> Needs:
        return (False,) * self.tensor_count

    def _differentiable(self, needs: Needs) -> Callable[..., Sequence[Any]]:
        """Returns Forward as a function of arrays with Backward as its gradient.

        It returns the outputs, and unless `needs` are all False what Forward saved for them.
        """

        @jax.custom_vjp
        def function(*arrays: Any) -> Sequence[Any]:
            outputs, values = self._run(arrays, needs)
            return outputs + (values if any(needs) else ())

        def fwd(*primals: Any) -> Any:
            arrays = tuple(primal.value for primal in primals)
            asked = tuple(primal.perturbed for primal in primals[: self.tensor_count])
            inner = self.differentiable(asked)(*arrays)
            # Differentiated eagerly, JAX runs this rule alone.
            structure = self._structures[asked]
            self._structures.setdefault(needs, structure)
            count = structure.output_count
            outputs, values = tuple(inner[:count]), tuple(inner[count:])
            extra: tuple[Any, ...] = ()
            if any(needs):
                whole = inner if asked == needs else self.differentiable(needs)(*arrays)
                extra = tuple(whole[count:])
            residual = _Residual(structure.record, (arrays, outputs, values))
            return outputs + extra, self._with_hooks(residual)

        def bwd(residual: _Residual, cotangents: Sequence[Any]) -> tuple[Any, ...]:
            return self._pull_back(residual, cotangents)

        function.defvjp(fwd, bwd, symbolic_zeros=True)
        # Run eagerly, jax.shard_map takes no custom_vjp that asks which inputs are differentiated.
        return jax.jit(function) if jax.sharding.get_abstract_mesh().manual_axes else function

    def _run(self, arrays: Sequence[Any], needs: Needs) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Runs Forward on arrays; returns its outputs, and arrays that it made and saved."""
        with self._lock, self._scope():
            own = [handle.content for handle in self.inputs]
            for handle, array in zip(self.inputs, arrays, strict=True):
                handle.content = array
            try:
                return self._read(self._trace(needs), arrays, needs)
            finally:
                for handle, content in zip(self.inputs, own, strict=True):
                    handle.content = content

    def _read(
        self, answer: Any, arrays: Sequence[Any], needs: Needs
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Notes the structure of what Forward answered, and returns its arrays."""
        outputs, saved, dirty, constant, materialize, data = answer
        # One tensor may be several arguments; it then has the array of the last of them.
        given = dict(zip(self.inputs, arrays, strict=True))
        for index, handle in enumerate(self.inputs):
            if handle.content is not given[handle] and handle not in dirty:
                raise ArgumentTypeError.explained(
                    self.name,
                    f"Forward changed tensor argument {index} in place",
                    "Mark it as dirty and return it, or work on a new tensor.",
                )
        values: list[Handle] = []

        def locate(handle: Handle | None) -> SavedTensor:
            if handle is None:
                return SavedTensor("null")
            if handle in outputs:
                return SavedTensor("output", outputs.index(handle))
            if handle in self.inputs:
                return SavedTensor("input", self.inputs.index(handle))
            if handle not in values:
                values.append(handle)
            return SavedTensor("value", values.index(handle))

        located = tuple(map(locate, saved))
        frozen = tuple((key, _freeze(entry, locate)) for key, entry in sorted(data.items()))
        self._structures[needs] = ForwardStructure(
            tuple(self.inputs.index(h) if h in self.inputs else None for h in outputs),
            tuple(handle in dirty for handle in outputs),
            tuple(handle in constant for handle in outputs),
            ForwardRecord(needs, located, frozen, materialize),
        )
        return tuple(h.array for h in outputs), tuple(h.array for h in values)

    def _with_hooks(self, residual: _Residual) -> _Residual:
        if self._hooks is None:
            return residual
        return dataclasses.replace(residual, kept=self._hooks.keep(residual.saved_arrays()))

    def _pull_back(self, residual: _Residual, cotangents: Sequence[Any]) -> tuple[Any, ...]:
        """Returns the cotangent of each input from those of the outputs."""
        inputs, outputs, _ = residual.arrays
        record = residual.record
        if not any(record.needs):
            return (None,) * len(inputs)
        self._refuse_saved_cotangents(cotangents[len(outputs) :])

        def handle_of(saved: SavedTensor) -> Handle | None:
            return None if saved.kind == "null" else handle(residual.array(saved))

        def handle(array: Any) -> Handle:
            return Handle(array.shape, array.dtype, array)

        with self._scope():
            kept = residual.kept
            saved = map(handle, residual.saved_arrays() if kept is None else kept.arrays())
            gradients = [
                self._materialise(cotangent, output, record.materialize)
                for cotangent, output in zip(cotangents, outputs, strict=False)
            ]
            answer = self._trace(
                record.needs,
                tuple(None if entry.kind == "null" else next(saved) for entry in record.saved),
                {key: _thaw(entry, handle_of) for key, entry in record.data},
                tuple(gradients),
            )
            return self._check(answer, inputs, record.needs)

    def _refuse_saved_cotangents(self, cotangents: Sequence[Any]) -> None:
        if any(not _is_zero(cotangent) for cotangent in cotangents):
            raise GradientTypeError.explained(
                self.name,
                "its gradient is being differentiated, and depends on a tensor that Forward "
                "made and saved",
                "Save inputs and outputs only, and compute the rest again in Backward.",
            )

    def _materialise(self, cotangent: Any, output: Any, materialize: bool) -> Handle | None:
        if _is_zero(cotangent):
            return Handle(output.shape, output.dtype) if materialize else None
        return Handle(output.shape, output.dtype, cotangent)

    def _check(
        self, gradients: tuple[Handle | None, ...], inputs: Sequence[Any], needs: Needs
    ) -> tuple[Any, ...]:
        """Returns one cotangent per input of what Backward returned, one per argument."""
        if len(gradients) != len(self.is_tensor):
            raise GradientRuntimeError.explained(
                self.name,
                "returned an incorrect number of gradients (expected "
                f"{len(self.is_tensor)}, got {len(gradients)})",
                "Return one entry per argument of Forward; nullptr or None where there is no "
                "gradient.",
            )
        cotangents: list[Any] = []
        for position, (gradient, is_tensor) in enumerate(
            zip(gradients, self.is_tensor, strict=True)
        ):
            if not is_tensor and gradient is not None:
                raise GradientRuntimeError.explained(
                    self.name,
                    f"returned a gradient at position {position}, where the argument of "
                    "Forward is no Tensor",
                    "Return nullptr or None there.",
                )
            if is_tensor:
                index = len(cotangents)
                needed = needs[index] and gradient is not None
                cotangents.append(
                    self._fit(gradient, inputs[index], position)
                    if needed and gradient is not None
                    else None
                )
        return (*cotangents, *(None for _ in inputs[self.tensor_count :]))

    def _fit(self, gradient: Handle, value: Any, position: int) -> Any:
        """Returns a gradient in the input's dtype, summed over axes the input lacks."""
        shape = gradient.shape
        try:
            fits = jnp.broadcast_shapes(shape, value.shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise GradientRuntimeError.explained(
                self.name,
                f"expected for argument {position} a gradient of shape {value.shape}; got shape "
                f"{shape}",
                "Return it in the shape of the argument.",
            )
        array = gradient.array.astype(value.dtype)
        if shape != value.shape:
            array = jax.vjp(lambda v: jnp.broadcast_to(v, shape), value)[1](array)[0]
        return seam.divide_alike(array, value)


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True)
class _Residual:
    """An AutogradContext between Forward and Backward: arrays as leaves, the rest beside them."""

    record: ForwardRecord
    arrays: tuple[Any, Any, Any]
    # The saved tensors, if saved_tensors_hooks has them.
    kept: Kept | None = None

    def array(self, saved: SavedTensor) -> Any:
        """Returns the array of a saved tensor."""
        return self.arrays[("input", "output", "value").index(saved.kind)][saved.index]

    def saved_arrays(self) -> list[Any]:
        """Returns the arrays of the saved tensors that are there."""
        return [self.array(saved) for saved in self.record.saved if saved.kind != "null"]

    def tree_flatten(self) -> tuple[tuple[Any], tuple[ForwardRecord, Kept | None]]:
        return (self.arrays,), (self.record, self.kept)

    @classmethod
    def tree_unflatten(
        cls, data: tuple[ForwardRecord, Kept | None], arrays: tuple[Any]
    ) -> _Residual:
        return cls(data[0], arrays[0], data[1])


def _is_zero(cotangent: Any) -> bool:
    return isinstance(cotangent, jax.custom_derivatives.SymbolicZero) or (
        cotangent.dtype == jax.dtypes.float0
    )


def _freeze(entry: Any, locate: Callable[[Handle], SavedTensor]) -> Hashable:
    """Returns an entry of saved_data as hashable data."""
    if isinstance(entry, Handle):
        return locate(entry)
    if isinstance(entry, (list, tuple)):
        return tuple(_freeze(item, locate) for item in entry)
    return entry


def _thaw(entry: Any, handle_of: Callable[[SavedTensor], Handle | None]) -> Any:
    if isinstance(entry, SavedTensor):
        return handle_of(entry)
    return tuple(_thaw(item, handle_of) for item in entry) if isinstance(entry, tuple) else entry
