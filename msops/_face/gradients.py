"""Gradients of MindSpore's face: grad, value_and_grad and GradOperation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msops._face.cell import Cell
from msops._face.differentiation import GradientRequest, gradient_function
from msops._face.parameter import Parameter
from msops.errors import ArgumentRuntimeError, ArgumentTypeError, ArgumentValueError


def check_function(who: str, fn: Any) -> None:
    """Refuses what cannot be called."""
    if not callable(fn):
        raise ArgumentTypeError.explained(
            who, f"expected a function or Cell; got {type(fn).__name__}", "Pass one."
        )


def as_positions(who: str, grad_position: Any) -> tuple[int, ...]:
    """Returns ``grad_position`` as a tuple of numbers from 0."""
    entries = grad_position if isinstance(grad_position, tuple) else (grad_position,)
    for entry in entries:
        if isinstance(entry, bool) or not isinstance(entry, int):
            raise ArgumentTypeError.explained(
                who,
                f"expected grad_position int, tuple of int or None; got {grad_position!r}",
                "Positions count from 0.",
            )
        if entry < 0:
            raise ArgumentValueError.explained(
                who, f"expected grad_position at least 0; got {entry}", "Count from 0."
            )
    if len(set(entries)) < len(entries):
        # JAX would give one of the two all of the gradient, and the other 0.
        raise ArgumentValueError.explained(
            who, f"expected each position once; got {grad_position}", "Name every position once."
        )
    return entries


def as_weights(who: str, weights: Any) -> tuple[Parameter, ...]:
    """Returns ``weights`` as a tuple of Parameters."""
    entries = (weights,) if isinstance(weights, Parameter) else weights
    if not isinstance(entries, Sequence) or not all(isinstance(w, Parameter) for w in entries):
        raise ArgumentTypeError.explained(
            who,
            f"expected weights Parameter, or a tuple or list of them; got {weights!r}",
            "Pass net.trainable_params(), say.",
        )
    return tuple(entries)


def arrange_weights(weights: Any, entries: tuple[Any, ...]) -> Any:
    """Returns one entry per weight as MindSpore does: bare for a Parameter."""
    return entries[0] if isinstance(weights, Parameter) else entries


def _check_flags(who: str, **flags: Any) -> None:
    for name, value in flags.items():
        if not isinstance(value, bool):
            raise ArgumentTypeError.explained(
                who, f"expected {name} bool; got {type(value).__name__}", "Pass True or False."
            )


def _request(
    who: str,
    fn: Any,
    grad_position: Any,
    weights: Any,
    has_aux: bool,
    return_ids: bool,
    sens_param: bool,
) -> tuple[GradientRequest, Callable[[tuple[Any, ...], tuple[Any, ...]], Any]]:
    """Returns what to differentiate, and what arranges the gradients as MindSpore returns them."""
    check_function(who, fn)
    _check_flags(who, has_aux=has_aux, return_ids=return_ids, sens_param=sens_param)
    if grad_position is None and weights is None:
        raise ArgumentValueError.explained(
            who, "grad_position and weights are both None", "Give what to differentiate by."
        )
    positions = () if grad_position is None else as_positions(who, grad_position)
    parameters = () if weights is None else as_weights(who, weights)

    def arrange(by_position: tuple[Any, ...], by_weight: tuple[Any, ...]) -> Any:
        if return_ids:
            by_position = tuple(zip(positions, by_position, strict=True))
            names = (parameter.name for parameter in parameters)
            by_weight = tuple(zip(names, by_weight, strict=True))
        # One position gives a bare gradient, also when it was given as (0,).
        inputs = by_position[0] if len(by_position) == 1 else by_position
        if weights is None:
            return inputs
        listed = arrange_weights(weights, by_weight)
        return listed if grad_position is None else (inputs, listed)

    return GradientRequest(who, positions, parameters, has_aux, sens_param), arrange


def grad(
    fn: Callable[..., Any],
    grad_position: int | tuple[int, ...] | None = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """Returns the function that computes the gradient of `fn`.

    Corresponds to ``mindspore.grad``. A non-scalar output is differentiated with ones as its
    cotangent. Gradients of arguments come as one Tensor for one position and as a tuple for
    several; those of `weights` as one Tensor for a Parameter and as a tuple for a tuple or list;
    with both, as a pair. With `has_aux`, the result is (gradients, (aux, ...)).

    Args:
      fn: a Cell or function over Tensors (or arrays).
      grad_position: positions to differentiate by; None means by `weights` alone.
      weights: a Parameter, or a tuple or list of Parameters.
      has_aux: whether only the first output is differentiated and the others are returned.
      return_ids: whether each gradient comes as a pair with its position, or its Parameter's name.
      sens_param: whether the call has the cotangent of the output, as its last argument or as
        ``sens``.

    Raises:
      ArgumentTypeError, ArgumentValueError: an argument is of a wrong type or value.
      ArgumentRuntimeError: (at the call) there is no argument at a position.
      GradientTypeError: (at the call) an argument to differentiate by is no float.
      GradientValueError: (at the call) has_aux with one output.

    Example:
      >>> import msops as ms
      >>> ms.grad(lambda x: x * x)(ms.Tensor([1.0, 4.0]))
      Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  8.00000000e+00])

    Source: MindSpore 2.7.2, mindspore/ops/function/grad/grad_func.py, grad.
    """
    request, arrange = _request("grad", fn, grad_position, weights, has_aux, return_ids, sens_param)

    def gradients(value: Any, by_position: tuple[Any, ...], by_weight: tuple[Any, ...]) -> Any:
        arranged = arrange(by_position, by_weight)
        return (arranged, tuple(value[1:])) if has_aux else arranged

    return gradient_function(fn, request, gradients)


def value_and_grad(
    fn: Callable[..., Any],
    grad_position: int | tuple[int, ...] | None = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """Returns the function that computes (value, gradients) of `fn`.

    Corresponds to ``mindspore.value_and_grad``.

    Args:
      fn, grad_position, weights, has_aux, return_ids, sens_param: see `grad`; with `has_aux` the
        value holds the aux.

    Raises:
      As `grad`.

    Source: MindSpore 2.7.2, mindspore/ops/function/grad/grad_func.py, value_and_grad.
    """
    request, arrange = _request(
        "value_and_grad", fn, grad_position, weights, has_aux, return_ids, sens_param
    )
    return gradient_function(fn, request, lambda value, *gradients: (value, arrange(*gradients)))


def get_grad(gradients: Any, identifier: int | Parameter) -> Any:
    """Returns one of the gradients that `grad` returned with ``return_ids=True``.

    Corresponds to ``mindspore.get_grad``.

    Args:
      gradients: what `grad` returned, or the second that `value_and_grad` returned.
      identifier: a position, or a Parameter.

    Raises:
      ArgumentTypeError: `identifier` is neither.
      ArgumentRuntimeError: its gradient is not there.

    Source: MindSpore 2.10.0, mindspore/ops/function/grad/grad_func.py, get_grad.
    """
    if isinstance(identifier, bool) or not isinstance(identifier, (int, Parameter)):
        raise ArgumentTypeError.explained(
            "get_grad",
            f"expected identifier int or Parameter; got {type(identifier).__name__}",
            "Pass the position, or the Parameter itself.",
        )
    name = identifier.name if isinstance(identifier, Parameter) else identifier
    found = [value for key, value in _pairs(gradients) if type(key) is type(name) and key == name]
    if not found:
        raise ArgumentRuntimeError.explained(
            "get_grad", f"there is no gradient of {name!r}", "Ask grad for it, by return_ids=True."
        )
    return found[0]


def _pairs(gradients: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(gradients, tuple):
        if len(gradients) == 2 and isinstance(gradients[0], (int, str)):
            yield gradients[0], gradients[1]
        else:
            for entry in gradients:
                yield from _pairs(entry)


class GradOperation:
    """Makes gradient functions; MindSpore's older interface.

    Corresponds to ``mindspore.ops.GradOperation``.

    Args:
      get_all: whether the gradients of all array arguments are returned, in a tuple, rather than
        the first one's.
      get_by_list: whether the gradients of Parameters are returned.
      sens_param: whether the call's last argument is the cotangent of the output: a Tensor of its
        shape, a number, or a tuple of them for several outputs.

    Example:
      >>> import msops as ms
      >>> op = ms.ops.GradOperation(sens_param=True)
      >>> print(op(lambda x: x * x)(ms.Tensor([1.0, 4.0]), ms.Tensor([1.0, 10.0])))
      [ 2. 80.]

    Source: MindSpore 2.7.2, mindspore/ops/composite/base.py, GradOperation.
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False):
        self.get_all = get_all
        self.get_by_list = get_by_list
        self.sens_param = sens_param

    def __call__(self, fn: Callable[..., Any], weights: Any = None) -> Callable[..., Any]:
        """Returns the gradient function of `fn`.

        Args:
          fn: a Cell or function.
          weights: with ``get_by_list``, a Parameter or a tuple or list of them; None means a
            Cell's trainable Parameters.

        Raises:
          ArgumentTypeError: `fn` is not callable, or ``get_by_list`` lacks its Parameters.
        """
        who = "GradOperation"
        check_function(who, fn)
        if self.get_by_list and weights is None:
            weights = tuple(fn.trainable_params()) if isinstance(fn, Cell) else None
        parameters = as_weights(who, weights) if self.get_by_list else ()
        positions = None if self.get_all else () if self.get_by_list else (0,)
        request = GradientRequest(who, positions, parameters, has_sens=self.sens_param)

        def arrange(_: Any, by_position: tuple[Any, ...], by_weight: tuple[Any, ...]) -> Any:
            listed = arrange_weights(weights, by_weight)
            if not self.get_by_list:
                return by_position if self.get_all else by_position[0]
            return (by_position, listed) if self.get_all else listed

        return gradient_function(fn, request, arrange)
