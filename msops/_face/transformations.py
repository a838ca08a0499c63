"""MindSpore's transformations of functions: those of JAX, on Tensors or arrays.

JAX's forward mode asks every operator for a forward rule. Where one has none, reverse mode is
differentiated, as MindSpore does in any case. `recompute` traces its block, where MindSpore runs it
again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from msops._base.kernel_errors import call_compiled
from msops._face import context
from msops._face.cell import Cell
from msops._face.cell_containers import CellList
from msops._face.compiled import pack, unpack
from msops._face.differentiation import GradientRequest, gradient_function
from msops._face.gradients import arrange_weights, as_positions, as_weights, check_function
from msops._face.parameter import Frame, Parameter
from msops._face.tensor import Tensor, is_jax_face, unwrap, wrap
from msops.errors import (
    ArgumentRuntimeError,
    ArgumentTypeError,
    ArgumentValueError,
    GradientTypeError,
    GradientValueError,
)

Function = Callable[..., Any]


class _OnArrays:
    """A function of Tensors or arrays as one of arrays, which a transformation of JAX takes.

    Args:
      who: the transformation, for messages.
      fn: the function.
      args: the arguments of a call.
      has_aux: whether all results but the first are apart.
    """

    def __init__(self, who: str, fn: Function, args: Any, has_aux: bool = False):
        self._who, self._fn, self._has_aux = who, fn, has_aux
        self._tensors = not is_jax_face(args)
        self.has_failed = False

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the settings that the transformation runs under."""
        return context.scope() if self._tensors else contextlib.nullcontext()

    def run(self, *arrays: Any) -> Any:
        """Returns the results as arrays, with `has_aux` the first, and the rest."""
        try:
            with Frame({}) as frame:
                result = unwrap(self._fn(*(wrap(arrays) if self._tensors else arrays)))
        except Exception:
            self.has_failed = True
            raise
        if frame.written:
            raise ArgumentValueError.explained(
                self._who,
                "the function assigns to a Parameter",
                "Return the value, and assign it outside.",
            )
        if not self._has_aux:
            return result
        first, *rest = _with_aux(self._who, result)
        return first, rest[0] if len(rest) == 1 else tuple(rest)

    def back(self, result: Any) -> Any:
        """Returns arrays as the caller had them."""
        return wrap(result) if self._tensors else result


def _with_aux(who: str, result: Any) -> Sequence[Any]:
    if not isinstance(result, tuple) or len(result) < 2:
        raise GradientValueError.explained(
            who,
            "has_aux expected a function with two outputs or more; got one",
            "Return (value, aux, ...), or leave has_aux out.",
        )
    return result


def _check_has_aux(who: str, has_aux: Any) -> None:
    if not isinstance(has_aux, bool):
        raise ArgumentTypeError.explained(
            who, f"expected has_aux bool; got {type(has_aux).__name__}", "Pass True or False."
        )


def _as_inputs(who: str, inputs: Any) -> tuple[Any, ...]:
    entries = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    for entry in entries:
        if not isinstance(entry, (Tensor, jax.Array)):
            raise ArgumentTypeError.explained(
                who, f"expected Tensors; got {type(entry).__name__}", "Wrap it: Tensor(...)."
            )
    return entries


def vmap(fn: Function, in_axes: Any = 0, out_axes: Any = 0) -> Function:
    """Returns `fn` over a further axis of its arguments and results.

    Corresponds to ``mindspore.vmap``; it is `jax.vmap`.

    Args:
      fn: a function or Cell over Tensors (or arrays); no CellList.
      in_axes: the axis of each argument, an int for all or a tuple or list; None maps none.
      out_axes: the axis of each result, an int for all or a tuple or list.

    Raises:
      ArgumentRuntimeError: `fn` is no function, or (at the call) an axis does not fit.

    Example:
      >>> import msops as ms
      >>> total = ms.vmap(lambda x, y: (x * y).sum(), in_axes=(0, None))
      >>> print(total(ms.Tensor([[1.0, 2.0], [3.0, 4.0]]), ms.Tensor([1.0, 10.0])))
      [21. 43.]

    Source: MindSpore 2.10.0, mindspore/ops/function/vmap_func.py, vmap.
    """
    if not callable(fn) or isinstance(fn, CellList):
        raise ArgumentRuntimeError.explained(
            "vmap",
            f"expected a function or Cell; got {type(fn).__name__}",
            "Pass one. For an ensemble, jax.vmap a function of stacked weights.",
        )
    given, returned = (tuple(a) if isinstance(a, list) else a for a in (in_axes, out_axes))

    def mapped(*args: Any) -> Any:
        function = _OnArrays("vmap", fn, args)
        try:
            with function.scope():
                over = jax.vmap(function.run, given, returned)
                return function.back(call_compiled(lambda: over(*unwrap(args))))
        except (TypeError, ValueError) as error:
            if function.has_failed or isinstance(error, ArgumentValueError):
                raise
            # The checks are JAX's.
            raise ArgumentRuntimeError.explained(
                "vmap",
                f"in_axes {in_axes!r} or out_axes {out_axes!r} do not fit",
                "Give one axis per argument, of equal extents, and one per result.",
                [str(error)],
            ) from error

    return mapped


def jvp(fn: Function, inputs: Any, v: Any, has_aux: bool = False) -> Any:
    """Returns the results of `fn`, and their derivative along `v`.

    Corresponds to ``mindspore.jvp``; it is `jax.jvp`, or the derivative of `jax.vjp` if an operator
    has a bprop alone.

    Args:
      fn: a function or Cell over Tensors (or arrays).
      inputs: a Tensor, or a tuple or list of them.
      v: the directions, of the shapes and dtypes of `inputs`.
      has_aux: whether only the first result is differentiated, and the others are returned.

    Returns:
      (results, derivatives), with `has_aux` (result, derivative, aux).

    Raises:
      ArgumentTypeError, ArgumentValueError: an argument is of a wrong type, shape or number.
      GradientTypeError: an input has no derivative.
      GradientValueError: has_aux with one output.

    Source: MindSpore 2.10.0, mindspore/ops/function/grad/grad_func.py, jvp.
    """
    _check_has_aux("jvp", has_aux)
    check_function("jvp", fn)
    primals, tangents = _as_inputs("jvp", inputs), _as_inputs("jvp", v)
    if len(primals) != len(tangents):
        raise ArgumentValueError.explained(
            "jvp",
            f"expected {len(primals)} Tensor(s) in v, one per input; got {len(tangents)}",
            "Pass zeros where nothing changes.",
        )
    function = _OnArrays("jvp", fn, primals, has_aux)
    with function.scope():
        given = unwrap(primals), unwrap(tangents)
        _check_directions(*given)
        return function.back(call_compiled(lambda: _push_forward(function.run, *given, has_aux)))


def _check_directions(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> None:
    for position, (primal, tangent) in enumerate(zip(primals, tangents, strict=True)):
        _check_float("jvp", position, primal)
        if primal.shape != tangent.shape or primal.dtype != tangent.dtype:
            kind = ArgumentValueError if primal.shape != tangent.shape else ArgumentTypeError
            raise kind.explained(
                "jvp",
                f"expected for v {position} {primal.dtype}{list(primal.shape)}, as the input; got "
                f"{tangent.dtype}{list(tangent.shape)}",
                "Give each direction the shape and dtype of its input.",
            )


def _check_float(who: str, position: int, arrays: Any) -> None:
    """Raises GradientTypeError unless JAX differentiates by arrays, or by a number of Python."""
    for entry in jax.tree.leaves(arrays):
        if not jnp.issubdtype(dtype := jnp.result_type(entry), jnp.inexact):
            raise GradientTypeError.explained(
                who,
                f"argument {position} has no derivative: expected floats, got {dtype}",
                "Cast it to a float dtype, or do not differentiate by it.",
            )


def _lacks_forward_rule(error: TypeError) -> bool:
    # The latter is what JAX raises for a function with a backward alone, such as a hook's.
    return isinstance(error, GradientTypeError) or "to a custom_vjp function" in str(error)


def _push_forward(
    function: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...], has_aux: bool
) -> Any:
    try:
        return jax.jvp(function, primals, tangents, has_aux=has_aux)
    except TypeError as error:
        if not _lacks_forward_rule(error):
            raise
        # An operator without a forward rule. The pull-back is linear: its transpose pushes forward.
        differentiate: Any = jax.vjp
        result, pull_back, *aux = differentiate(function, *primals, has_aux=has_aux)
        zeros = jax.tree.map(jnp.zeros_like, result)
        return result, jax.vjp(pull_back, zeros)[1](tangents)[0], *aux


def vjp(fn: Function, *inputs: Any, weights: Any = None, has_aux: bool = False) -> Any:
    """Returns the results of `fn`, and the function from their cotangents to those of `inputs`.

    Corresponds to ``mindspore.vjp``. As there, the function computes `fn` again.

    Args:
      fn: a function or Cell over Tensors (or arrays).
      inputs: its arguments, Tensors.
      weights: Parameters that are differentiated, too: one, or a tuple or list.
      has_aux: whether only the first result is differentiated, and the others are returned.

    Returns:
      (results, function), with `has_aux` (result, function, aux). The function returns a tuple with
      a Tensor per input, with `weights` a pair of that and theirs.

    Raises:
      ArgumentTypeError: an argument is of a wrong type.
      ArgumentRuntimeError: (of the function) there is no cotangent.
      GradientValueError: has_aux with one output, or (of the function) a wrong shape.

    Source: MindSpore 2.10.0, mindspore/ops/function/grad/grad_func.py, vjp.
    """
    _check_has_aux("vjp", has_aux)
    check_function("vjp", fn)
    inputs = _as_inputs("vjp", inputs)
    parameters = () if weights is None else as_weights("vjp", weights)
    request = GradientRequest("vjp", None, parameters, has_aux, has_sens=True)

    def arrange(_: Any, by_position: tuple[Any, ...], by_weight: tuple[Any, ...]) -> Any:
        if weights is None:
            return by_position
        return by_position, arrange_weights(weights, by_weight)

    gradient = gradient_function(fn, request, arrange)

    def pull_back(*cotangents: Any) -> Any:
        if not cotangents:
            raise ArgumentRuntimeError.explained(
                "vjp", "expected the cotangent of each output; got none", "Pass them."
            )
        return gradient(*inputs, cotangents[0] if len(cotangents) == 1 else cotangents)

    result = fn(*inputs)
    if not has_aux:
        return result, pull_back
    first, *rest = _with_aux("vjp", result)
    return first, pull_back, rest[0] if len(rest) == 1 else tuple(rest)


def _jacobian(
    who: str, transformation: Function, fn: Function, grad_position: Any, has_aux: bool
) -> Function:
    _check_has_aux(who, has_aux)
    check_function(who, fn)

    def jacobian(*args: Any) -> Any:
        positions = as_positions(who, grad_position)
        if not 0 <= max(positions, default=-1) < len(args) or len(set(positions)) < len(positions):
            raise ArgumentValueError.explained(
                who,
                f"expected positions of {len(args)} arguments, each once; got {grad_position!r}",
                "Positions count from 0.",
            )
        function = _OnArrays(who, fn, args, has_aux)
        argnums = positions[0] if len(positions) == 1 else positions
        with function.scope():
            for position in positions:
                _check_float(who, position, unwrap(args[position]))
            whole = transformation(function.run, argnums, has_aux=has_aux)
            return function.back(call_compiled(lambda: whole(*unwrap(args))))

    return jacobian


def jacrev(
    fn: Function, grad_position: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Function:
    """Returns the function that computes the Jacobian of `fn` by reverse mode.

    Corresponds to ``mindspore.jacrev``; it is `jax.jacrev`.

    Args:
      fn: a function or Cell over Tensors (or arrays).
      grad_position: positions to differentiate by.
      has_aux: whether only the first result is differentiated, and the others are returned.

    Returns:
      A function. For several outputs it returns a tuple, and in it one for several positions; with
      `has_aux` (Jacobian, aux).

    Raises:
      ArgumentTypeError, ArgumentValueError: an argument, or (at the call) a position is wrong.
      GradientTypeError: (at the call) an argument has no derivative.

    Source: MindSpore 2.10.0, mindspore/ops/function/grad/grad_func.py, jacrev.
    """
    return _jacobian("jacrev", jax.jacrev, fn, grad_position, has_aux)


def jacfwd(
    fn: Function, grad_position: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Function:
    """Returns the function that computes the Jacobian of `fn` by forward mode.

    Corresponds to ``mindspore.jacfwd``; it is `jax.jacfwd`, or `jax.jacrev` if an operator has a
    bprop alone. Arguments, results and errors are those of `jacrev`.

    Source: MindSpore 2.10.0, mindspore/ops/function/grad/grad_func.py, jacfwd.
    """

    def transformation(function: Function, *argnums: Any, **options: Any) -> Function:
        def whole(*arrays: Any) -> Any:
            try:
                return jax.jacfwd(function, *argnums, **options)(*arrays)
            except TypeError as error:
                if not _lacks_forward_rule(error):
                    raise
                return jax.jacrev(function, *argnums, **options)(*arrays)

        return whole

    return _jacobian("jacfwd", transformation, fn, grad_position, has_aux)


def recompute(
    block: Function,
    *args: Any,
    use_reentrant: bool = True,
    output_recompute: bool = False,
    early_stop: bool = True,
    context_fn: Any = None,
    **kwargs: Any,
) -> Any:
    """Calls `block`, whose intermediate results are computed again for its gradient.

    Corresponds to ``mindspore.recompute``; it is `jax.checkpoint`, which traces the block: Python
    in it runs once, and does not see values.

    Args:
      block: a Cell; a function, too, with ``use_reentrant=False``.
      args, kwargs: its arguments.
      use_reentrant, output_recompute, early_stop: how MindSpore does it; without effect.
      context_fn: only None.

    Raises:
      ArgumentTypeError: `block` is no Cell.
      ArgumentValueError: `context_fn` was given.

    Source: MindSpore 2.10.0, mindspore/common/recompute.py, recompute.
    """
    if not isinstance(block, Cell) and (use_reentrant or not callable(block)):
        raise ArgumentTypeError.explained(
            "recompute",
            f"expected a Cell; got {type(block).__name__}",
            "Pass one, or a function with use_reentrant=False.",
        )
    if context_fn is not None:
        raise ArgumentValueError.explained(
            "recompute",
            "expected no context_fn: the block is traced once, and JAX computes it again",
            "Use jax.checkpoint with a policy to choose what is kept.",
        )
    leaves, structure = jax.tree.flatten(
        (args, kwargs), is_leaf=lambda leaf: isinstance(leaf, (Tensor, Parameter))
    )
    places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, (Tensor, jax.Array))]
    assigned: list[Parameter] = []

    def run(entries: list[Any]) -> Any:
        filled = list(leaves)
        for n, entry in zip(places, entries, strict=True):
            filled[n] = wrap(entry) if isinstance(leaves[n], Tensor) else entry
        inner, named = jax.tree.unflatten(structure, filled)
        with Frame({}) as frame:
            result = pack(block(*inner, **named))
        assigned.extend(frame.written)
        return result, list(frame.written.values())

    with contextlib.nullcontext() if is_jax_face((args, kwargs)) else context.scope():
        result, values = jax.checkpoint(run)([unwrap(leaves[n]) for n in places])
    for parameter, value in zip(assigned, values, strict=False):
        parameter.value = value
    return unpack(result)
