"""Puts the rows of the method tables on the Tensor class."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, NoReturn

import jax
import numpy as np

from msops._base.dtypes import DType
from msops._face.array_arithmetic import kind_of
from msops._face.array_math import equal, not_equal
from msops._face.tensor_data import NUMBERS, as_array
from msops._face.tensor_methods import (
    ARITHMETIC_OPERATORS,
    COMPARISONS,
    IN_PLACE,
    METHODS,
    OF_LISTS,
    UNARY_OPERATORS,
)
from msops.errors import ArgumentTypeError, ArgumentValueError, MsopsError

# JAX's TypeErrors about shapes, where MindSpore has a ValueError.
_OF_SHAPES = re.compile(
    r"cannot reshape|incompatible shapes|contracting dimensions|concatenate|transpose permutation"
)


_OF_DATA = re.compile(r"^'(\w+)' object has no attribute '(?:dtype|shape|ndim|astype)'")


def raise_of_arguments(error: TypeError | AttributeError) -> NoReturn:
    """Raises a TypeError of JAX's as a ValueError, if it is about shapes.

    What an argument lacks to be an array is a TypeError, too.
    """
    lacking = _OF_DATA.search(str(error)) if isinstance(error, AttributeError) else None
    if lacking:
        raise ArgumentTypeError.explained(
            "Tensor", f"expected Tensors or numbers; got a {lacking[1]}", "Make a Tensor of it."
        ) from error
    if isinstance(error, MsopsError) or not _OF_SHAPES.search(str(error)):
        raise error
    raise ArgumentValueError.explained(
        "Tensor", "shapes do not fit", "Compare them, or reshape one.", [str(error)]
    ) from error


def attach_operators(
    tensor_class: type[Any], wrap: Callable[[Any], Any], unwrap: Callable[[Any], Any]
) -> None:
    """Gives `tensor_class` its methods and operators.

    Args:
      tensor_class: the class; its instances hold their array in ``value``.
      wrap: makes Tensors of a tree of arrays.
      unwrap: makes arrays of a tree of Tensors.
    """

    def operand(other: Any, dtype: DType | None) -> Any:
        """The other side of an operator, as an array or number, or NotImplemented."""
        if isinstance(other, tensor_class):
            return other.value
        if isinstance(other, (*NUMBERS, jax.Array, np.ndarray, np.generic)):
            return other
        if isinstance(other, (list, tuple)):
            return as_array(other, dtype)
        return NotImplemented

    def binary(
        function: Callable[[Any, Any], Any], takes_lists: bool = False
    ) -> Callable[[Any, Any], Any]:
        def operator(self: Any, other: Any) -> Any:
            right = operand(other, self.dtype if takes_lists else None)
            if right is NotImplemented:
                return right
            with jax.enable_x64(True):
                try:
                    return wrap(function(self.value, right))
                except (TypeError, AttributeError) as error:
                    raise_of_arguments(error)

        return operator

    def reflected(
        function: Callable[[Any, Any], Any], takes_lists: bool
    ) -> Callable[[Any, Any], Any]:
        return binary(lambda own, other: function(other, own), takes_lists)

    def unary(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def operator(self: Any) -> Any:
            with jax.enable_x64(True):
                return wrap(function(self.value))

        return operator

    def method(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            with jax.enable_x64(True):
                if not args and not kwargs:
                    return wrap(function(self.value))
                try:
                    return wrap(function(self.value, *unwrap(args), **unwrap(kwargs)))
                except (TypeError, AttributeError) as error:
                    raise_of_arguments(error)

        return call

    def in_place(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        compute = method(function)

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                value = compute(self, *args, **kwargs).value
            except MsopsError:
                raise
            except (TypeError, AttributeError) as error:
                given = ", ".join(type(value).__name__ for value in (*args, *kwargs.values()))
                raise ArgumentTypeError.explained(
                    f"Tensor.{name}",
                    f"expected Tensors or numbers that fit it; got ({given})",
                    "Make Tensors of what it should compute with.",
                    [str(error).splitlines()[0]],
                ) from error
            if value.shape != self.shape:
                raise ArgumentValueError.explained(
                    "Tensor",
                    f"expected a result of shape {self.shape} in place; got {value.shape}",
                    "Assign the result of the method without an underscore.",
                )
            if kind_of(value.dtype) > kind_of(self.value.dtype):
                raise ArgumentTypeError.explained(
                    "Tensor",
                    f"expected a result that {self.dtype} holds in place; got {value.dtype}",
                    "Cast the Tensor first.",
                )
            with jax.enable_x64(True):
                self.value = value.astype(self.value.dtype)
            return self

        return call

    def equality(function: Callable[[Any, Any], Any], beside_others: bool) -> Callable[..., Any]:
        compare = binary(function)
        comparable = (tensor_class, jax.Array, bool, int, float)

        # Beside anything else a Tensor is unequal, so that `tensor in [None, "x"]` works.
        def operator(self: Any, other: Any) -> Any:
            return compare(self, other) if isinstance(other, comparable) else beside_others

        return operator

    rows = {
        **{name: method(function) for name, function in METHODS.items()},
        **{f"{name}_": in_place(f"{name}_", f) for name, f in IN_PLACE.items()},
        **{name: unary(function) for name, function in UNARY_OPERATORS.items()},
        **{name: binary(function) for name, function in COMPARISONS.items()},
        **{f"__{name}__": binary(f, name in OF_LISTS) for name, f in ARITHMETIC_OPERATORS.items()},
        **{
            f"__r{name}__": reflected(f, name in OF_LISTS)
            for name, f in ARITHMETIC_OPERATORS.items()
        },
        "__eq__": equality(equal, False),
        "__ne__": equality(not_equal, True),
    }
    for name, function in rows.items():
        setattr(tensor_class, name, function)
