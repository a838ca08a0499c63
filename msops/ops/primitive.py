"""MindSpore's ``ops.primitive`` namespace: classes for operators that a script defines."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from msops._base.missing_names import missing_names
from msops._custom.custom import Custom
from msops._face.cell_hooks import checked_gradients, hook_gradients
from msops._face.tensor import Tensor
from msops.errors import ArgumentTypeError
from msops.ops._table import Primitive


@Primitive.register
class PrimitiveWithInfer:
    """The base of an operator that a script defines around a `Custom`.

    A subclass defines ``__call__``; its ``infer_shape`` and ``infer_dtype`` are kept for the script
    and not called: `Custom` infers from ``out_shape`` and ``out_dtype``.

    Args:
      name: name of the operator.

    Source: MindSpore 2.7.2, mindspore/ops/primitive.py, PrimitiveWithInfer.
    """

    def __init__(self, name: str):
        self.name = name
        self.attrs: dict[str, Any] = {}
        self.init_attrs: dict[str, Any] = {}

    def add_prim_attr(self, name: str, value: Any) -> PrimitiveWithInfer:
        """Notes an attribute in ``attrs``, and as an attribute of the object; returns itself."""
        self.attrs[name] = value
        setattr(self, name, value)
        return self

    def init_prim_io_names(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        """Notes the names of inputs and outputs in ``attrs``."""
        self.attrs |= {"input_names": list(inputs), "output_names": list(outputs)}

    def __call__(self, *inputs: Any) -> Any:
        """Refuses: only a kernel could compute it, and the subclass names none.

        Raises:
          ArgumentTypeError: the subclass does not define ``__call__``.
        """
        raise ArgumentTypeError.explained(
            f"{type(self).__name__}('{self.name}')",
            "expected a method __call__ that computes it; MindSpore has a kernel of that name, "
            "and msops has none",
            "Make an ops.Custom in __init__, and call it in __call__.",
        )

    def __repr__(self) -> str:
        return f"Prim[{self.name}]"


PrimitiveWithCheck = PrimitiveWithInfer


def prim_attr_register(function: Callable[..., None]) -> Callable[..., None]:
    """Returns an ``__init__`` that first names the operator and notes its own arguments.

    Source: MindSpore 2.7.2, mindspore/ops/primitive.py, prim_attr_register.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def init(self: PrimitiveWithInfer, *args: Any, **kwargs: Any) -> None:
        PrimitiveWithInfer.__init__(self, type(self).__name__)
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        for name, value in list(bound.arguments.items())[1:]:
            self.add_prim_attr(name, value)
            self.init_attrs[name] = value
        function(self, *args, **kwargs)

    return init


@Primitive.register
class HookBackward:
    """Lets the gradient of its input pass through a function; its result is the input.

    Corresponds to ``mindspore.ops.HookBackward``.

    Args:
      hook_fn: gets the gradients of the inputs in a tuple, and returns None, a tuple, or one.
      cell_id: accepted for MindSpore, without effect.

    Raises:
      ArgumentTypeError: `hook_fn` is not callable, or (at the call) an input is no Tensor.

    Source: MindSpore 2.10.0, mindspore/ops/operations/debug_ops.py, HookBackward.
    """

    name = "HookBackward"

    def __init__(self, hook_fn: Callable[..., Any], cell_id: str = ""):
        if not callable(hook_fn):
            raise ArgumentTypeError.explained(
                "ops.HookBackward",
                f"expected a callable hook; got {type(hook_fn).__name__}",
                "Pass a function of the gradients.",
            )
        self._hook = hook_fn
        self.attrs: dict[str, Any] = {"cell_id": cell_id}

    def __call__(self, *inputs: Any) -> Any:
        """Returns the input, several as a tuple."""
        for entry in inputs:
            if not isinstance(entry, (Tensor, jax.Array)):
                raise ArgumentTypeError.explained(
                    "ops.HookBackward", f"expected Tensors; got {type(entry).__name__}", "Wrap it."
                )
        results = hook_gradients(inputs, self._transform)
        return results[0] if len(results) == 1 else tuple(results)

    def _transform(self, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        answer = self._hook(gradients)
        if answer is None:
            return gradients
        entries = answer if isinstance(answer, tuple) else (answer,)
        return checked_gradients("ops.HookBackward", entries, gradients)


class PyFunc:
    """A Python function on numpy arrays as an operator, with its types and shapes given.

    Args:
      fn: the function; numpy arrays in, a numpy array or a tuple of them out.
      in_types: dtypes of the inputs.
      in_shapes: shapes of the inputs.
      out_types: dtypes of the outputs.
      out_shapes: shapes of the outputs.
      stateful: whether equal calls may give other results.

    Source: MindSpore 2.7.2, mindspore/ops/operations/other_ops.py, PyFunc.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        in_types: Sequence[Any],
        in_shapes: Sequence[Any],
        out_types: Sequence[Any],
        out_shapes: Sequence[Any],
        stateful: bool = True,
    ):
        for what, types, shapes in (
            ("in", in_types, in_shapes),
            ("out", out_types, out_shapes),
        ):
            if len(types) != len(shapes):
                raise ArgumentTypeError.explained(
                    "ops.PyFunc",
                    f"expected as many {what}_types as {what}_shapes; got {len(types)} and "
                    f"{len(shapes)}",
                    "Give one dtype and one shape for each array.",
                )
        shapes = tuple(tuple(shape) for shape in out_shapes)
        self._op = Custom(fn, shapes, tuple(out_types), "pyfunc", stateful=stateful)

    def __call__(self, *inputs: Any) -> Any:
        """Returns a tuple with the outputs; the inputs may be one tuple or list of tensors."""
        if len(inputs) == 1 and isinstance(inputs[0], tuple | list):
            inputs = tuple(inputs[0])
        return self._op(*inputs)


def _ms_pyfunc(infer_func: Callable[..., Any]) -> Callable[[Callable[..., Any]], Custom]:
    """Returns a decorator that makes an operator of a function of Tensors, run on the host.

    Args:
      infer_func: from the shapes of the inputs to those of the outputs, and as well for dtypes.

    Source: MindSpore 2.10.0, mindspore/ops/operations/custom_ops.py, _ms_pyfunc.
    """

    def decorate(function: Callable[..., Any]) -> Custom:
        @functools.wraps(function)
        def on_arrays(*inputs: Any) -> Any:
            tensors = jax.tree.map(lambda x: Tensor(x) if isinstance(x, np.ndarray) else x, inputs)
            result = function(*tensors)
            return jax.tree.map(np.asarray, result, is_leaf=lambda leaf: isinstance(leaf, Tensor))

        return Custom(on_arrays, infer_func, infer_func, "pyfunc")

    return decorate


__all__ = [
    "HookBackward",
    "Primitive",
    "PrimitiveWithCheck",
    "PrimitiveWithInfer",
    "PyFunc",
    "_ms_pyfunc",
    "prim_attr_register",
]

__getattr__ = missing_names(__name__)
