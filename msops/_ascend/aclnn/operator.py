"""An aclnn operator ready to be called: its arguments are read, its results are what was declared.

aclnn writes results into tensors that its caller has made. Here an operator is a function of its
inputs; the caller's tensors are declared shapes and dtypes, which the results must have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from msops._ascend.aclnn.dtypes import can_cast
from msops._ascend.aclnn.kinds import AclnnSignature
from msops._ascend.aclnn.refusal import Refused, WrongShape
from msops.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BackendError,
    InferenceTypeError,
    InferenceValueError,
    MsopsError,
)


@dataclasses.dataclass(frozen=True)
class AclnnOp:
    """An aclnn operator, for one caller.

    Attributes:
      name: its name, with the prefix.
      function: JAX code from inputs to one result or several.
      signature: how it is called.
      who: the caller, for messages.
    """

    name: str
    function: Callable[..., Any]
    signature: AclnnSignature
    who: str

    @property
    def updated(self) -> tuple[int, ...]:
        """Positions of the inputs the operator writes to, as ``aclnnInplaceAdd`` does to its first.

        A call returns their new values after its outputs.
        """
        return self.signature.updated

    @property
    def updated_names(self) -> tuple[str, ...]:
        """The names of the inputs at `updated`."""
        parameters = self.signature.parameters or ()
        return tuple(parameters[position].name for position in self.updated)

    def split(self, arguments: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Splits the arguments of the C function into inputs and outputs.

        Args:
          arguments: all of them, in aclnn's order, as ``LAUNCH_ACLNN`` has them.

        Returns:
          The inputs as a call takes them, and the outputs; a list of outputs is spliced in.
        """
        arguments = list(arguments)
        parameters = self.signature.parameters
        if parameters is None:
            count = len(self.signature.results or (False,))
            first, last = len(arguments) - count, len(arguments)
        else:
            trailing = sum(parameter.kind.follows_outputs for parameter in parameters)
            first, last = len(parameters) - trailing, len(arguments) - trailing
        outputs: list[Any] = []
        for output in arguments[first:last]:
            outputs += output if isinstance(output, (list, tuple)) else [output]
        return arguments[:first] + arguments[last:], outputs

    def __call__(
        self,
        inputs: Sequence[object],
        outputs: Sequence[jax.ShapeDtypeStruct | None] | None,
    ) -> tuple[jax.Array | None, ...]:
        """Computes the outputs.

        Args:
          inputs: arrays, numbers, bools, lists of these, and None, in aclnn's order.
          outputs: shape and dtype of each output; None for one that is not wanted. None instead of
            them takes all outputs as they are.

        Returns:
          One array per declared output (an unwanted one too), then the new value of each input that
          the operator writes to; None for such an input that is absent.

        Raises:
          ArgumentTypeError: an input is of a wrong kind, or their number is wrong.
          ArgumentValueError: the operator cannot serve such inputs.
          BackendError: there is no memory for the results.
          InferenceTypeError: an output's declared dtype cannot hold the results.
          InferenceValueError: an output's declared shape, or the number of outputs, is wrong.
        """
        values = self._read(inputs)
        extra: dict[str, Any] = {}
        if outputs is not None:
            self._check_count(outputs)
        if self.signature.takes_outputs:
            extra["outputs"] = None if outputs is None else tuple(outputs)
        try:
            answer = self.function(*values, **extra)
        except Exception as error:
            self._raise_explained(error, values, outputs or ())
        results = list(answer) if isinstance(answer, (tuple, list)) else [answer]
        if outputs is None:
            return tuple(None if one is None else jnp.asarray(one) for one in results)
        updated = [values[position] for position in self.updated]
        count = len(results) - len(updated)
        if len(outputs) > count or (self.signature.results is None and len(outputs) < count):
            self.refuse_count(count, len(outputs))
        declared = [*outputs, *(x if x is None else _struct_of(x) for x in updated)]
        kept = [*results[: len(outputs)], *results[count:]]
        return tuple(
            None if result is None else self.fit(jnp.asarray(result), struct, index)
            for index, (result, struct) in enumerate(zip(kept, declared, strict=True))
        )

    def _raise_explained(
        self, error: Exception, values: Sequence[Any], outputs: Sequence[Any]
    ) -> NoReturn:
        """Raises what the function raised, with who asked and what for."""
        match error:
            case Refused():
                raise ArgumentValueError.explained(
                    self._place, error.problem, error.remedy
                ) from error
            case WrongShape():
                self._refuse_shape(error.shape, outputs[0].shape, 0)
            case MemoryError() | jax.errors.JaxRuntimeError():
                raise BackendError.explained(
                    self._place,
                    f"it failed for the inputs {_describe_all(values)}",
                    "Make smaller tensors, if it is memory that was lacking.",
                    [_first_line(error)],
                ) from error
            case ArithmeticError() | LookupError() | TypeError() | ValueError() if not isinstance(
                error, MsopsError
            ):
                raise ArgumentValueError.explained(
                    self._place,
                    f"it cannot serve the inputs {_describe_all(values)}",
                    "Pass what the operator takes, in aclnn's order.",
                    [_first_line(error)],
                ) from error
        raise error

    @property
    def _place(self) -> str:
        return f"{self.who}, {self.name}"

    def _read(self, inputs: Sequence[object]) -> list[Any]:
        parameters = self.signature.parameters
        if parameters is None:
            return list(inputs)
        least = sum(not parameter.has_default for parameter in parameters)
        if not least <= len(inputs) <= len(parameters):
            names = ", ".join(parameter.name for parameter in parameters)
            raise ArgumentTypeError.explained(
                self._place,
                f"expected {len(parameters)} input(s) ({names}); got {len(inputs)}",
                "Pass all inputs in that order, None for an optional tensor that is absent.",
            )
        values = []
        for value, parameter in zip(inputs, parameters, strict=False):
            try:
                absent = value is None and parameter.is_optional
                values.append(None if absent else parameter.kind.read(value))
            except TypeError:
                raise ArgumentTypeError.explained(
                    self._place,
                    f"expected {parameter.kind.name} for {parameter.name}; got {_describe(value)}",
                    "Pass the inputs in aclnn's order, without the outputs.",
                ) from None
        return values

    def _check_count(self, outputs: Sequence[Any]) -> None:
        results = self.signature.results
        if results is None:
            return
        least = sum(not is_optional for is_optional in results)
        if not least <= len(outputs) <= len(results):
            self.refuse_count(len(results), len(outputs))

    def refuse_count(self, expected: int, got: int) -> NoReturn:
        """Raises because a caller declared another number of outputs."""
        raise InferenceValueError.explained(
            self._place,
            f"expected {expected} output tensor(s); got {got}",
            "Make one tensor per output, in aclnn's order.",
        )

    def _refuse_shape(self, expected: Sequence[int], got: Sequence[int], index: int) -> NoReturn:
        raise InferenceValueError.explained(
            self._place,
            f"expected an output {index} of shape {tuple(expected)}; "
            f"got a tensor of shape {tuple(got)}",
            "Make the output tensor with the shape of the result.",
        )

    def fit(self, result: jax.Array, struct: jax.ShapeDtypeStruct | None, index: int) -> jax.Array:
        """Returns a result in the dtype declared for output `index`.

        Raises:
          InferenceTypeError, InferenceValueError: the declared dtype or shape cannot hold it.
        """
        if struct is None:
            return result
        # A 0-dimensional result fills an output of one entry, as CANN checks it.
        if result.shape == () and tuple(struct.shape) == (1,):
            result = result.reshape(1)
        if result.shape != tuple(struct.shape):
            self._refuse_shape(result.shape, struct.shape, index)
        dtype = np.dtype(struct.dtype)
        if not can_cast(result.dtype, dtype):
            raise InferenceTypeError.explained(
                self._place,
                f"expected an output {index} that holds {result.dtype}; got {dtype}",
                "Make the output tensor with such a dtype, or cast with aclnnCast.",
            )
        if jax.dtypes.canonicalize_dtype(dtype) != dtype:
            raise InferenceTypeError.explained(
                self._place,
                f"output {index} has dtype {dtype}, and 64-bit types are off in JAX",
                "Call it with msops.Tensors, or set jax.config.update('jax_enable_x64', True).",
            )
        return result.astype(dtype)


def _struct_of(array: jax.Array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _describe_all(values: Sequence[Any]) -> str:
    return ", ".join(map(_describe, values)) or "given"


def _describe(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_describe, value))}]"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    return repr(value)
