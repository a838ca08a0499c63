"""Parameter: a Tensor whose value changes, and the frames in which functions see it.

A compiled or differentiated function must see a Parameter's traced value where the program sees its
array, and must hand assigned values back instead of leaking tracers. So a Parameter reads and
writes its value through the innermost `Frame` of its thread, if there is one. The object itself is
never changed while a function is traced; other threads go on to see its array.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from msops._face.tensor import Tensor, wrap
from msops._face.tensor_data import as_array
from msops.errors import ArgumentTypeError, ArgumentValueError

_NUMBERS = itertools.count()


class _Thread(threading.local):
    frame: Frame | None = None


_thread = _Thread()


class RunsInOrder(BaseException):
    """A function that is traced cannot be one program: XLA would choose the order of its effects.

    No Exception, as the user's own functions that it passes must not handle it.
    """


class Frame:
    """Values that Parameters have inside a function, from ``with`` entry to exit.

    Args:
      values: what each Parameter reads as. One that is not listed reads as outside.
      compiles: whether the function is being compiled. Then a Parameter whose array would become a
        constant of the program is noted in `missed`, for the caller to list it and trace again.

    Attributes:
      written: Parameters that were assigned to, in order, with the values they have now.
      missed: see `compiles`.
    """

    def __init__(self, values: dict[Parameter, Any], *, compiles: bool = False):
        self._values = dict(values)
        self._compiles = compiles
        self._outer: Frame | None = None
        self._has_effect = False
        self.written: dict[Parameter, Any] = {}
        self.missed: list[Parameter] = []

    def __enter__(self) -> Frame:
        self._outer, _thread.frame = _thread.frame, self
        return self

    def __exit__(self, *error: object) -> None:
        _thread.frame = self._outer

    def read(self, parameter: Parameter) -> Any:
        """Returns the value of `parameter` in this frame."""
        if parameter in self._values:
            return self._values[parameter]
        value = parameter._array if self._outer is None else self._outer.read(parameter)
        if self._compiles and not isinstance(value, jax.core.Tracer):
            self.missed.append(parameter)
            self._values[parameter] = value
        return value

    def write(self, parameter: Parameter, value: Any) -> None:
        """Gives `parameter` a value in this frame."""
        if self._compiles and parameter not in self._values:
            self.read(parameter)
        self._values[parameter] = self.written[parameter] = value


def is_compiling() -> bool:
    """Returns whether this thread is tracing a function that will be compiled as a whole."""
    return _compiling_frame() is not None


def note_effect(is_traced: bool) -> None:
    """Notes that an op with an effect is about to be called.

    Args:
      is_traced: whether an input of it is known only when the program runs.

    Raises:
      RunsInOrder: the op is the second one in a function that is being compiled as a whole, or
        would run now and not when the program does.
    """
    frame = _compiling_frame()
    if frame is not None:
        if frame._has_effect or not is_traced:
            raise RunsInOrder
        frame._has_effect = True


def _compiling_frame() -> Frame | None:
    frame = _thread.frame
    while frame is not None and not frame._compiles:
        frame = frame._outer
    return frame


def traced_values() -> dict[Parameter, Any]:
    """Returns the values that Parameters have as arguments of what is being traced."""
    values: dict[Parameter, Any] = {}
    frame = _thread.frame
    while frame is not None:
        values = frame._values | values
        frame = frame._outer
    return {p: value for p, value in values.items() if isinstance(value, jax.core.Tracer)}


class Parameter(Tensor):
    """A named Tensor that a Cell trains; its value changes by assignment.

    Corresponds to ``mindspore.Parameter``.

    Args:
      default_input: Tensor, array, number or nested list: the first value.
      name: its name; None takes the name of the Cell's attribute it is assigned to.
      requires_grad: whether `Cell.trainable_params` lists it.
      layerwise_parallel: accepted for MindSpore, without effect.
      parallel_optimizer: accepted for MindSpore, without effect.

    Raises:
      ArgumentTypeError: `name` is no str, or `default_input` is no data (see `Tensor`).
      ArgumentValueError: made inside a compiled function, where it would be made at each tracing.

    Example:
      >>> import msops as ms
      >>> ms.Parameter(ms.Tensor([1.0, 2.0]), name="w")
      Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)

    Source: MindSpore 2.7.2, mindspore/common/parameter.py, Parameter.
    """

    # No __slots__: MindSpore scripts hang attributes of their own on Parameters.

    def __init__(
        self,
        default_input: Any,
        name: str | None = None,
        requires_grad: bool = True,
        layerwise_parallel: bool = False,
        parallel_optimizer: bool = True,
    ):
        if name is not None and not isinstance(name, str):
            raise ArgumentTypeError.explained(
                "Parameter", f"expected name str or None; got {name!r}", "Pass a str."
            )
        if is_compiling():
            raise ArgumentValueError.explained(
                "Parameter",
                "a Parameter cannot be made inside a compiled function",
                "Make it in the Cell's __init__.",
            )
        self._array = as_array(default_input, None)
        self.has_default_name = name is None
        self.name = f"Parameter#{next(_NUMBERS)}" if name is None else name
        self.requires_grad = requires_grad
        self.layerwise_parallel = layerwise_parallel
        self.parallel_optimizer = parallel_optimizer

    @property
    def value(self) -> Any:  # type: ignore[override]
        """The `jax.Array` it holds now."""
        frame = _thread.frame
        return self._array if frame is None else frame.read(self)

    @value.setter
    def value(self, array: Any) -> None:
        frame = _thread.frame
        if frame is None:
            self._array = array
        else:
            frame.write(self, array)

    @property
    def data(self) -> Parameter:
        """The Parameter itself."""
        return self

    def set_data(self, data: Any, slice_shape: bool = False) -> Parameter:
        """Gives the Parameter another value, converted to its dtype, and returns it.

        Args:
          data: Tensor, `jax.Array`, int or float, of any shape.
          slice_shape: accepted for MindSpore, without effect.

        Raises:
          ArgumentTypeError: `data` is none of these.

        Source: MindSpore 2.7.2, mindspore/common/parameter.py, Parameter.set_data.
        """
        if not isinstance(data, (Tensor, jax.Array, int, float)):
            raise ArgumentTypeError.explained(
                f"Parameter {self.name!r}",
                f"expected Tensor, jax.Array, int or float; got {type(data).__name__}",
                "Wrap the data in a Tensor.",
            )
        self.value = as_array(data, self.dtype)
        return self

    assign_value = set_data

    def clone(self, init: str = "same") -> Parameter:
        """Returns another Parameter of the same value, name and settings.

        Args:
          init: only "same".

        Raises:
          ArgumentValueError: `init` is another one.
        """
        if init != "same":
            raise ArgumentValueError.explained(
                "Parameter.clone", f"expected init 'same'; got {init!r}", "Pass 'same'."
            )
        return _restored(self.value, self._settings())

    def _settings(self) -> dict[str, Any]:
        return {name: entry for name, entry in vars(self).items() if name != "_array"}

    def __str__(self) -> str:
        return (
            f"Parameter (name={self.name}, shape={tuple(self.shape)}, dtype={self.dtype}, "
            f"requires_grad={self.requires_grad})"
        )

    __repr__ = __str__

    def __copy__(self) -> Parameter:
        return _restored(self.value, self._settings())

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        return _restored(self.value, self._settings())

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (np.asarray(self.value), self._settings())


class ParameterTuple(tuple):
    """A tuple of Parameters.

    Corresponds to ``mindspore.ParameterTuple``.

    Args:
      parameters: the Parameters, in order.

    Raises:
      ArgumentTypeError: an entry is no Parameter.

    Source: MindSpore 2.7.2, mindspore/common/parameter.py, ParameterTuple.
    """

    __slots__ = ()

    def __new__(cls, parameters: Iterable[Parameter] = ()) -> ParameterTuple:
        entries = tuple(parameters)
        for entry in entries:
            if not isinstance(entry, Parameter):
                raise ArgumentTypeError.explained(
                    "ParameterTuple",
                    f"expected Parameters; got {type(entry).__name__}",
                    "Pass Cell.trainable_params(), say.",
                )
        return super().__new__(cls, entries)


def assign(parameter: Parameter, value: Any) -> Tensor:
    """Gives `parameter` another value and returns it as a Tensor (``ops.assign``)."""
    if not isinstance(parameter, Parameter):
        raise ArgumentTypeError.explained(
            "assign",
            f"expected a Parameter; got {type(parameter).__name__}",
            "Only Parameters can be assigned to.",
        )
    return wrap(parameter.set_data(value).value)


def _restored(array: Any, settings: dict[str, Any]) -> Parameter:
    # Not by __init__: JAX rebuilds Parameters around leaves of its own, tracers among them.
    parameter = object.__new__(Parameter)
    vars(parameter).update(settings, _array=array)
    return parameter


def _unpickled(array: np.ndarray, settings: dict[str, Any]) -> Parameter:
    return _restored(as_array(array, None), settings)


jax.tree_util.register_pytree_node(
    Parameter,
    lambda parameter: (
        (parameter.value,),
        (parameter.name, parameter.requires_grad),
    ),
    lambda settings, leaves: _restored(
        leaves[0],
        {
            "name": settings[0],
            "requires_grad": settings[1],
            "has_default_name": False,
            "layerwise_parallel": False,
            "parallel_optimizer": True,
        },
    ),
)
