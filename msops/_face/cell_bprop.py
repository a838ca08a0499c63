"""`bprop` of a Cell: the rule by which reverse mode differentiates its ``construct``.

JAX's rule (`jax.custom_vjp`) sees every traced value as an argument. So the arrays of the call and
the Parameters that have a traced value go in, and results and assigned Parameters come out. As in
MindSpore, only inputs of the Cell have gradients: those of Parameters read inside are zero.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from msops import _jax_seam as seam
from msops._face import context
from msops._face.compiled import pack, unpack
from msops._face.parameter import Frame, Parameter, traced_values
from msops._face.tensor import wrap
from msops.errors import GradientTypeError, GradientValueError


def with_bprop(
    construct: Callable[..., Any], bprop: Callable[..., Any], who: str
) -> Callable[..., Any]:
    """Returns `construct` with ``bprop(*inputs, out, dout)`` as its gradient.

    Args:
      construct: the Cell's computation on Tensors and any other values.
      bprop: gets what `construct` got, its result, and the gradient of the result. Returns a tuple
        with one gradient per input, of the input's shape; None for zero. What it returns for an
        input that is no float array is ignored.
      who: the Cell, for messages.

    Source: MindSpore 2.7.2, mindspore/nn/cell.py, Cell.bprop.
    """
    signature = inspect.signature(construct)

    @functools.wraps(construct)
    def differentiable(*args: Any, **kwargs: Any) -> Any:
        leaves = jax.tree.leaves((args, kwargs), is_leaf=_is_parameter)
        values = [leaf.value if _is_parameter(leaf) else leaf for leaf in leaves]
        if not (traced_values() or any(isinstance(value, jax.core.Tracer) for value in values)):
            return construct(*args, **kwargs)
        try:
            # bprop gets by position what construct got by name.
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return construct(*args, **kwargs)  # raises an error that names the function
        return _Differentiated(construct, bprop, bound, who).call()

    return differentiable


def _is_parameter(leaf: Any) -> bool:
    return isinstance(leaf, Parameter)


def _is_leaf(leaf: Any) -> bool:
    return leaf is None or _is_parameter(leaf)


class _Differentiated:
    """One call of a Cell that has a bprop."""

    def __init__(
        self,
        construct: Callable[..., Any],
        bprop: Callable[..., Any],
        bound: inspect.BoundArguments,
        who: str,
    ):
        self._construct, self._bprop, self._bound, self._who = construct, bprop, bound, who
        inputs = [*bound.args, *bound.kwargs.values()]
        self._leaves, self._structure = jax.tree.flatten(inputs, is_leaf=_is_leaf)
        # How many of the leaves each input has.
        self._counts = [len(jax.tree.leaves(value, is_leaf=_is_leaf)) for value in inputs]
        values = [leaf.value if _is_parameter(leaf) else leaf for leaf in self._leaves]
        # numpy arrays stay what they are: only what JAX traces can have a gradient.
        self._positions = [n for n, value in enumerate(values) if isinstance(value, jax.Array)]
        given = {leaf for leaf in self._leaves if _is_parameter(leaf)}
        traced = {p: value for p, value in traced_values().items() if p not in given}
        self._parameters = list(traced)
        self._flat = [*traced.values(), *(values[n] for n in self._positions)]
        # Known once construct has run: the structure of its result, and what it assigned to.
        self._result: Any = None
        self._assigned: list[Parameter] = []

    def call(self) -> Any:
        """Runs the Cell; assigns to Parameters what construct assigned to them."""
        rule = jax.custom_vjp(self._run)
        flat, self._flat = self._flat, []  # what JAX keeps of the call must hold no tracers
        for n in self._positions:
            if not _is_parameter(self._leaves[n]):
                self._leaves[n] = None

        def forward(*flat: Any) -> Any:
            # The differentiable function: its own gradient may be wanted again.
            outputs = rule(*flat)
            return outputs, (flat, outputs)

        def backward(saved: Any, cotangents: Any) -> tuple[Any, ...]:
            flat, outputs = saved
            return self._run_bprop(flat, outputs, cotangents[0])

        seam.explain_forward_mode(backward, self._refuse_forward_mode)
        rule.defvjp(forward, backward)
        results, written = rule(*flat)
        for parameter, value in zip(self._assigned, written, strict=True):
            parameter.value = value
        return self._pack_result(results)

    def _run(self, *flat: Any) -> tuple[list[Any], list[Any]]:
        """Returns the arrays of construct's result, and of the Parameters it assigned to."""
        arrays = flat[len(self._parameters) :]
        values = dict(zip(self._parameters, flat, strict=False))
        for n, array in zip(self._positions, arrays, strict=True):
            if _is_parameter(self._leaves[n]):
                values[self._leaves[n]] = array
        inputs = self._fill(arrays, keeps_parameters=True)
        args = inputs[: len(self._bound.args)]
        kwargs = dict(zip(self._bound.kwargs, inputs[len(args) :], strict=True))
        with context.scope(), Frame(values) as frame:
            results, self._result = jax.tree.flatten(pack(self._construct(*args, **kwargs)))
        self._assigned = list(frame.written)
        return results, list(frame.written.values())

    def _run_bprop(
        self, flat: Sequence[Any], outputs: tuple[list[Any], list[Any]], cotangents: Sequence[Any]
    ) -> tuple[Any, ...]:
        """Returns the gradients of the flat inputs, None where there is none."""
        results, written = outputs
        douts = [
            jnp.zeros(result.shape, result.dtype) if dout.dtype == jax.dtypes.float0 else dout
            for dout, result in zip(cotangents, results, strict=True)
        ]
        arrays = flat[len(self._parameters) :]
        # bprop sees Parameters as construct left them.
        values = dict(zip(self._parameters, flat, strict=False))
        values.update(zip(self._assigned, written, strict=True))
        with context.scope():
            with Frame(values) as frame:
                gradients = self._bprop(
                    *self._fill(arrays, keeps_parameters=False),
                    self._pack_result(results),
                    self._pack_result(douts),
                )
            for parameter, value in frame.written.items():
                parameter.value = value
            by_leaf = self._read_gradients(gradients)
            checked = [
                self._check(by_leaf[n], array)
                for n, array in zip(self._positions, arrays, strict=True)
            ]
        return (*[None] * len(self._parameters), *checked)

    def _fill(self, arrays: Sequence[Any], keeps_parameters: bool) -> list[Any]:
        """Returns the inputs with `arrays` in them, Parameters as such or as Tensors."""
        leaves = list(self._leaves)
        for n, array in zip(self._positions, arrays, strict=True):
            if not _is_parameter(leaves[n]):
                leaves[n] = array
            elif not keeps_parameters:
                leaves[n] = wrap(array)
        filled: list[Any] = jax.tree.unflatten(self._structure, leaves)
        return filled

    def _pack_result(self, arrays: Sequence[Any]) -> Any:
        return unpack(jax.tree.unflatten(self._result, arrays))

    def _read_gradients(self, gradients: Any) -> list[Any]:
        """Returns what bprop returned as one entry per leaf of the inputs."""
        expected = len(self._counts)
        if not isinstance(gradients, (tuple, list)):
            if expected != 1:
                raise GradientTypeError.explained(
                    f"bprop of {self._who}",
                    f"expected a tuple of {expected} gradients, one per input; "
                    f"got {type(gradients).__name__}",
                    "Return one gradient per input, None where there is none.",
                )
            gradients = (gradients,)
        # MindSpore ignores more.
        if len(gradients) < expected:
            raise GradientValueError.explained(
                f"bprop of {self._who}",
                f"expected {expected} gradient(s), one per input; got {len(gradients)}",
                "Inputs that are no Tensors count, too; return None where there is no gradient.",
            )
        by_leaf: list[Any] = []
        for position, count in enumerate(self._counts):
            own = range(len(by_leaf), len(by_leaf) + count)
            parts = jax.tree.leaves(gradients[position], is_leaf=_is_leaf)
            if gradients[position] is None or not any(n in self._positions for n in own):
                parts = [None] * count
            if len(parts) != count:
                raise GradientValueError.explained(
                    f"bprop of {self._who}",
                    f"expected {count} gradient(s) for input {position}, as many as it has "
                    f"entries; got {len(parts)}",
                    "Return them in the structure of the input, or None for all of them.",
                )
            by_leaf += [part.value if _is_parameter(part) else part for part in parts]
        return by_leaf

    def _check(self, gradient: Any, array: Any) -> Any:
        """Returns a gradient with the shape and dtype of the input it is for."""
        if gradient is None or not jnp.issubdtype(array.dtype, jnp.inexact):
            return None
        got = getattr(gradient, "shape", type(gradient).__name__)
        if got != array.shape:
            raise GradientValueError.explained(
                f"bprop of {self._who}",
                f"expected a gradient of shape {array.shape}, as the input has; got {got}",
                "Sum over broadcast axes, or return None where there is no gradient.",
            )
        # MindSpore casts, too.
        return jnp.asarray(gradient, array.dtype)

    def _refuse_forward_mode(self) -> GradientTypeError:
        return GradientTypeError.explained(
            self._who,
            "forward mode (jax.jvp, jax.jacfwd, jax.hessian) needs a forward rule; the Cell "
            "has a bprop, a rule for reverse mode",
            "Use reverse mode (ms.grad, jax.grad, jax.jacrev), or take bprop out of the Cell.",
        )
