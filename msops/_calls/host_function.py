"""A Python function as programs call it: numpy arrays in, checked numpy arrays out.

One file, although it is long: every call goes through all of it, from the arguments over the
function to the checks of its results, and a first call should move between few files.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import logging
import os
import traceback
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from msops import _jax_seam as seam
from msops._base.dtypes import is_low_precision
from msops._base.kernel_errors import Failures, describe_exception
from msops._op.request import Request
from msops.errors import InferenceTypeError, InferenceValueError, KernelError, MsopsError

_log = logging.getLogger("msops.pyfunc")

# Failures that are kept until their errors come back; behind them the oldest is dropped, and its
# error has no cause.
_FAILURES = 64
_WIDE = (np.dtype(np.float64), np.dtype(np.complex128))

_INTERRUPT_ADVICE = (
    "The user, or a signal, interrupted it. Under jax.jit, with msops.kernel_errors(): raises a "
    "KeyboardInterrupt."
)
_READ_ONLY_ADVICE = (
    "Its inputs are read-only views: write to a copy, x.copy(), or make the op with writable=True."
)

# JAX cannot call a program that is being called; its own text lists all settings of the program.
_RECURSION_ADVICE = (
    "An op cannot be called inside its own call: if the function calls its op, have it call itself."
)

_OF_TRACERS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.UnexpectedTracerError,
)
_TRACER_ADVICE = (
    "An array of a function that JAX transforms has no value yet where another function reads it: "
    "make it an input, as w in msops.pyfunc(lambda x, w: x * w, out=...)(x, w)."
)


class HostFunction(seam.HeldFunction):
    """A function with all that its calls have in common; equal ones behave alike at every call.

    Args:
      function: the author's function.
      key: equal for functions that behave alike at every call.
      request: the call.
      ports: how many inputs op info lists, 0 without op info; None for those of the request.

    Attributes:
      dtypes: of the inputs, then of the outputs.
      inplace: pairs of an input and the output that holds it when the function is called, which is
        given that output instead.
      description: what else a call of it depends on, as text: the same in every process.

    Of a loaded program, `request` has the dtypes of the arrays, but the shape () for each: calls
    bring their own. Only `call`, `store`, `dtypes`, `inplace`, `function` and `ports` work then; do
    not call the object itself, which makes outputs of the request's shapes.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        key: Hashable,
        request: Request,
        ports: int | None = None,
    ):
        call = request.call
        # The MindSpore face promises private copies, the JAX face read-only views.
        self._copies = request.options.writable is True or call.tensors
        self._returns_tuple = request.outputs.is_tuple
        self._structs = request.outputs.structs
        self._who = request.who
        # Scripts of MindSpore were written for NumPy 1, where a float64 scalar did not widen.
        self._narrows = call.tensors and not any(array.dtype in _WIDE for array in request.inputs)
        # MindSpore copies the elements, whatever the shape.
        self._fits_axes_of_one = call.tensors
        # A kernel that is called for a whole batch gets an array of them.
        self._numbers = () if call.batch else call.numbers
        if ports is None:
            ports = len(request.infos[0].inputs) if request.infos else 0
        self._placed, self._named = _arrange(function, request.attributes, len(call.layout), ports)
        self._group = None if all(slot is None for slot in call.layout) else call.group
        self._pack, self._unpack = request.outputs.pack, request.outputs.unpack
        self._tree = request.outputs.tree
        self._words = request.outputs.words
        self._takes_out = bool(self._structs) and takes_out(
            function, len(call.layout) + len(self._placed)
        )
        self.function = function
        self.ports = ports
        self.dtypes = tuple(np.dtype(array.dtype) for array in (*request.inputs, *self._structs))
        names = ",".join(dtype.name for dtype in self.dtypes)
        self.description = (
            f"{self._who} {call} {names} {len(request.inputs)} {self._returns_tuple} "
            f"{self._copies} {request.options.inplace} {self._placed} {self._named} "
            f"{self._tree or ''} {self._narrows} {self._fits_axes_of_one} {self._numbers}"
        )
        self._key = (key, self.description, call.layout, self._tree)
        self._hash = hash(self.description)
        self.inplace = request.aliases()
        # Most functions get their inputs as they are, and are called often.
        self._is_plain = not (
            self._copies or self._numbers or self.inplace or self._group or self._placed
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostFunction) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def call(self, inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]) -> Any:
        """Calls the function and leaves its results in `outputs`.

        Returns:
          None, or what `store` has to put into the only output: who calls a function from C++ can
          do that faster.

        Raises:
          KernelError: the function raised.
          InferenceTypeError, InferenceValueError: its results are not what the op declares.
        """
        arguments = inputs if self._is_plain else self._arguments(inputs, outputs)
        try:
            if self._takes_out:
                result = self.function(*arguments, **self._named, out=self._pack(outputs))
            elif self._named:
                result = self.function(*arguments, **self._named)
            else:
                result = self.function(*arguments)
        except MsopsError as error:
            self._keep(str(error), error.__cause__)
            raise
        except BaseException as error:  # SystemExit too: XLA would report it without the op
            failure = self._failure(error, arguments)
            self._keep(str(failure), error)
            raise failure from None
        if not outputs or (self._takes_out and result is None):
            return None
        if self._returns_tuple:
            self._store_several(self._several(result, len(outputs)), outputs)
            return None
        if result is None:
            self.store(result, outputs[0])
        return result

    def _arguments(
        self, inputs: tuple[np.ndarray, ...], outputs: tuple[np.ndarray, ...]
    ) -> Sequence[Any]:
        """Returns what the function gets by position."""
        arguments: list[Any] = [array.copy() for array in inputs] if self._copies else [*inputs]
        for index in self._numbers:
            arguments[index] = inputs[index].item()
        for index, output in self.inplace:
            arguments[index] = outputs[output]
        if self._group is not None:
            arguments = self._group(arguments)
        for position, value in self._placed:
            arguments.insert(position, value)
        return arguments

    def store(self, value: Any, out: np.ndarray, index: int = 0) -> None:
        """Puts a result into an output, if it is what the op declares."""
        if value is not out:
            out[...] = self._checked(value, out, index)

    def _checked(self, value: Any, out: np.ndarray, index: int) -> np.ndarray:
        """Returns a result as an array that its output can take."""
        if self._narrows and isinstance(value, (np.ndarray, np.generic)):
            have, want = value.dtype, out.dtype
            if have in _WIDE and have != want and have.kind == want.kind:
                # NumPy 1 gave the arrays' dtype to a product with a float64 scalar.
                _log_once(
                    f"{self._who}: its function returned {have} for output {index}; cast to "
                    f"{want}, as NumPy 1 would have computed it"
                )
                with np.errstate(over="ignore"):
                    value = value.astype(want)
        array = _check_dtype(value, out, index, self._words, self._who)
        if self._fits_axes_of_one and _without_ones(array.shape) == _without_ones(out.shape):
            array = array.reshape(out.shape)
        if array.shape != out.shape:
            several = f", of a tuple of {len(value)}" if isinstance(value, tuple) else ""
            raise InferenceValueError.explained(
                self._who,
                f"expected shape {out.shape} for output {index}, as {self._words[0]} says; its "
                f"function returned {array.shape}{several}",
                f"Return an array of that shape, or fix {self._words[0]}.",
            )
        return array

    def _store_several(self, values: Sequence[Any], outputs: Sequence[np.ndarray]) -> None:
        """Stores each result in its output, as if all were stored at once."""
        results = []
        for index, (value, out) in enumerate(zip(values, outputs, strict=True)):
            result = out if value is out else self._checked(value, out, index)
            # Outputs are written in order: a result in the memory of an earlier one would change.
            if any(np.may_share_memory(result, earlier) for earlier in outputs[:index]):
                result = result.copy()
            results.append(result)
        for result, out in zip(results, outputs, strict=True):
            if result is not out:
                out[...] = result

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """Calls the function on the arrays of a host callback."""
        views = tuple(map(_read_only, inputs))
        outputs = tuple(np.empty(s.shape, s.dtype) for s in self._structs)
        for index, output in self.inplace:
            outputs[output][...] = inputs[index]
        result = self.call(views, outputs)
        if result is not None:
            self.store(result, outputs[0])
        return list(outputs)

    def _keep(self, text: str, cause: BaseException | None) -> None:
        """Keeps what the function raised; where it did so is in the text."""
        if cause is not None:
            # Equal ops share this object, so that several threads may fail in it at once.
            failures = self.__dict__.setdefault("_failures", Failures(_FAILURES))
            failures.add(text, _without_frames(cause))

    def _failure(self, error: BaseException, arguments: Sequence[Any]) -> KernelError:
        raised = describe_exception(error)
        called_with = ", ".join(map(_describe, arguments)) or "nothing"
        remedy = f"Fix the function; it was called with {called_with}."
        if isinstance(error, RecursionError):
            if "Recursively calling jit" in raised:  # followed by a list of JAX's settings
                raised = "RecursionError"
            remedy = f"{_RECURSION_ADVICE} {remedy}"
        elif isinstance(error, _OF_TRACERS):
            # Pages of text about JAX's own functions follow.
            raised, remedy = type(error).__name__, f"{_TRACER_ADVICE} {remedy}"
        elif isinstance(error, KeyboardInterrupt):
            remedy = _INTERRUPT_ADVICE
        elif "read-only" in raised or "readonly" in raised:
            remedy = _READ_ONLY_ADVICE
        return KernelError.explained(
            self._who, f"its function raised {raised}", remedy, [_traceback_text(error)]
        )

    def _several(self, result: Any, count: int) -> Sequence[Any]:
        if self._tree is not None:
            values = self._unpack(result)
            if values is not None:
                return values
            raise InferenceValueError.explained(
                self._who,
                f"expected a result in the structure of out, {self._tree}; its function "
                f"returned {_structure_of(result)}",
                "Return one array per output, in that structure.",
            )
        if isinstance(result, (tuple, list)):
            if len(result) == count:
                return result
            got = f"{len(result)} values"
        elif count == 1:  # as MindSpore takes a bare array for a tuple of one
            return (result,)
        else:
            got = _describe(result)
        raise InferenceValueError.explained(
            self._who,
            f"expected a tuple of {count} outputs, as {self._words[0]} says; its function "
            f"returned {got}",
            f"Return one array per output, or fix {' and '.join(dict.fromkeys(self._words))}.",
        )


def takes_out(function: Callable[..., Any], count: int) -> bool:
    """Returns whether `function` called with `count` arguments has a parameter `out` left to fill.

    It must be free, as a function may call an input of its own so (``def dx(x, out, dout)``), and
    have numpy's default, None, or none.
    """
    while isinstance(function, functools.partial):
        if "out" in function.keywords:
            return False
        count += len(function.args)
        function = function.func
    if isinstance(function, np.ufunc):
        return count == function.nin
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # built in, without a signature
        return False
    for index, parameter in enumerate(parameters):
        if parameter.name == "out" and parameter.default in (None, inspect.Parameter.empty):
            by_name = parameter.kind is parameter.KEYWORD_ONLY
            return by_name or (parameter.kind is parameter.POSITIONAL_OR_KEYWORD and index >= count)
    return False


def _arrange(
    function: Callable[..., Any],
    attributes: Sequence[tuple[str, Any]],
    inputs: int,
    ports: int,
) -> tuple[list[tuple[int, Any]], dict[str, Any]]:
    """Returns the attributes to insert among the inputs, by position, and those by name.

    An attribute belongs to the parameter of its name. One without such a parameter follows the
    inputs, as op info may call it otherwise than the function does.

    Args:
      function: the author's function.
      attributes: names and values.
      inputs: how many inputs the call has.
      ports: how many op info lists; those that a call leaves out have parameters, too.
    """
    try:
        parameters = inspect.signature(function).parameters if attributes else {}
    except (TypeError, ValueError):  # built in, without a signature
        parameters = {}
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional = [p.name for p in parameters.values() if p.kind in kinds]
    only = [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
    values = dict(attributes)
    named = {name: values[name] for name in only if name in values}
    others = [name for name in values if name not in positional and name not in only]
    if positional and inputs < ports:
        # By position it would fill an input that the call leaves out.
        free = [name for name in positional if name not in values][ports:]
        targets = itertools.zip_longest(others, free[: len(others)])
        named |= {target or name: values[name] for name, target in targets}
        others = []
    placed = [(inputs + index, values[name]) for index, name in enumerate(others)]
    for position, name in enumerate(positional):
        if name not in values:
            continue
        if position <= inputs + len(placed):
            placed.append((position, values[name]))
        else:  # behind an input that the call leaves out
            named[name] = values[name]
    return placed, named


def _structure_of(value: Any) -> str:
    if value is None:
        return "None (did it forget to return?)"
    return str(jax.tree.structure(value))


def _traceback_text(error: BaseException) -> str:
    """Returns the traceback from the author's function on; what the exception says is said."""
    own = error.__traceback__.tb_next if error.__traceback__ else None
    if not isinstance(error, _OF_TRACERS) and _has_more_than_text(error):
        return "".join(traceback.format_exception(type(error), error, own)).rstrip()
    of_jax = os.path.dirname(jax.__file__) if isinstance(error, _OF_TRACERS) else "\0"
    frames = [one for one in traceback.extract_tb(own) if not one.filename.startswith(of_jax)]
    return "".join(traceback.format_list(frames)).rstrip()


def _has_more_than_text(error: BaseException) -> bool:
    """Returns whether Python shows more of an exception than its frames and its text."""
    context = None if error.__suppress_context__ else error.__context__
    is_long = isinstance(error, (BaseExceptionGroup, SyntaxError))
    return is_long or bool(error.__cause__ or context or getattr(error, "__notes__", None))


def _without_frames(error: BaseException) -> BaseException:
    """Returns the exception without its tracebacks, whose frames hold the function's arrays."""
    found, pending = set(), [error]
    while pending:
        one = pending.pop()
        if id(one) not in found:
            found.add(id(one))
            one.__traceback__ = None
            group = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
            pending += [other for other in (one.__cause__, one.__context__, *group) if other]
    return error


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _check_dtype(
    value: Any, out: np.ndarray, index: int, words: tuple[str, str], who: str
) -> np.ndarray:
    """Returns a result as an array of the output's dtype, in a shape of its own."""
    if isinstance(value, np.ma.MaskedArray):
        raise InferenceTypeError.explained(
            who,
            f"expected an array for output {index}; its function returned a masked array, "
            "whose mask would be lost",
            "Return result.filled(value), or the mask as an output of its own.",
        )
    try:
        array = np.asarray(value)
    except Exception as error:  # a list of rows that differ in length, say
        raise InferenceTypeError.explained(
            who,
            f"expected an array for output {index}; its function returned a "
            f"{type(value).__name__}, of which numpy makes none: {str(error).rstrip('.')}",
            "Return one array; or, for several, pass a tuple of shapes as out_shape and "
            "one of dtypes as out_dtype, or a tuple as out.",
        ) from error
    # A Python number has no width of its own: it takes the declared one if that can hold it.
    weak = isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)
    is_number = array.ndim == 0 and array.dtype.kind in "biufc"
    if (weak and _holds(out.dtype, value)) or (is_number and _keeps(out.dtype, array)):
        array = array.astype(out.dtype)
    if array.dtype != out.dtype:
        forgotten = " (did it forget to return?)" if value is None else ""
        shown = "None" if value is None else f"{value!r}" if weak else f"{array.dtype}"
        if array.dtype == object and value is not None:
            shown = f"a {type(value).__name__}"
        result = "result.astype({})" if hasattr(value, "astype") else "np.asarray(result, {})"
        if value is None:
            result = "an array of {}"
        raise InferenceTypeError.explained(
            who,
            f"expected dtype {out.dtype} for output {index}, as {words[1]} says; its "
            f"function returned {shown}{forgotten}",
            f"Return {result.format(_name_in_code(out.dtype))}, or fix {words[1]}.",
        )
    return array


def _name_in_code(dtype: np.dtype) -> str:
    """Returns what a program calls a dtype: numpy does not have all of JAX's."""
    module = "np" if hasattr(np, dtype.name) else "jnp"
    return f"{module}.{dtype.name}"


def _holds(dtype: np.dtype, value: complex) -> bool:
    """Returns whether a Python number can be an entry of `dtype`; a float may be rounded."""
    if jnp.issubdtype(dtype, jnp.integer):  # numpy takes a float for an int4
        bounds = ml_dtypes.iinfo(dtype) if is_low_precision(dtype) else np.iinfo(dtype)
        return isinstance(value, int) and bool(bounds.min <= value <= bounds.max)
    if not np.can_cast(np.asarray(value).dtype, dtype, "same_kind"):
        return False
    with np.errstate(over="ignore"):
        rounded = np.asarray(value).astype(dtype)
    return bool(np.isfinite(rounded) == np.isfinite(value))


def _keeps(dtype: np.dtype, number: np.ndarray) -> bool:
    """Returns whether a numpy number has the same value in another dtype of its kind or above."""
    if not np.can_cast(number.dtype, dtype, "same_kind"):
        return False
    with np.errstate(over="ignore"):
        return bool(
            np.array_equal(number.astype(dtype).astype(number.dtype), number, equal_nan=True)
        )


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent != 1)


@functools.lru_cache(maxsize=1024)
def _log_once(message: str) -> None:
    _log.debug("%s", message)


def _describe(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_describe, value))}]"
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return repr(value)
