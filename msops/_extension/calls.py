"""One call of a function of an extension module: its face, its tensors, what it changed in place.

A function of C++ gets Tensors or arrays and returns the like of what it got. While it runs, its
thread has a `CallFrame`, in which one Tensor is one handle however often it is passed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from msops import _jax_seam as seam
from msops._base.dtypes import known_dtype
from msops._extension.handles import Handle, is_array
from msops._face import context
from msops._face.changed_tensors import note_changed
from msops._face.tensor import Tensor, is_jax_face, strided_memory, wrap
from msops._op.arrays import (
    HIGHEST_RANK,
    MOST_ENTRIES,
    as_array,
    refuse_64_bit,
    refuse_low_precision,
    require_numbers,
)
from msops.errors import ArgumentValueError, BackendError, KernelError

_WHO = "extension function"


@dataclasses.dataclass(frozen=True)
class Module:
    """A loaded extension module.

    Attributes:
      name: its name.
      hash: SHA-256 of its library, in hexadecimal.
      backend: "CPU", "GPU" or "Ascend".
    """

    name: str
    hash: str
    backend: str


class _Thread(threading.local):
    frame: CallFrame | None = None


_thread = _Thread()


class CallFrame:
    """The call that this thread is in, from ``with`` entry to exit.

    Attributes:
      module: whose function is called.
      tensors: whether it came through MindSpore's face (Tensors in, Tensors out).
    """

    def __init__(self, module: Module, tensors: bool):
        self.module = module
        self.tensors = tensors
        self._handles: dict[int, Handle] = {}
        self._outer: CallFrame | None = None
        self._face: contextlib.AbstractContextManager[Any] = (
            context.scope() if tensors else contextlib.nullcontext()
        )

    def __enter__(self) -> CallFrame:
        self._face.__enter__()
        self._outer, _thread.frame = _thread.frame, self
        return self

    def __exit__(self, kind: Any, *error: Any) -> None:
        _thread.frame = self._outer
        try:
            if kind is None:
                self._hand_back()
        finally:
            self._face.__exit__(kind, *error)

    def again(self) -> CallFrame:
        """Returns a frame for code of the same call that JAX runs later."""
        return CallFrame(self.module, self.tensors)

    def handle(self, tensor: Tensor) -> Handle:
        """Returns the handle of a Tensor."""
        known = self._handles.get(id(tensor))
        if known is None:
            value = tensor.value
            _check_argument(value)
            known = Handle(value.shape, np.dtype(value.dtype), value, tensor)
            known.strided = strided_memory(tensor)
            self._handles[id(tensor)] = known
        return known

    def _hand_back(self) -> None:
        """Gives Tensors that C++ changed in place their new arrays."""
        for handle in self._handles.values():
            owner = handle.owner
            if owner is not None and handle.array is not owner.value:
                owner.value = handle.array
                note_changed(owner)


def current_frame() -> CallFrame:
    """Returns the call that this thread is in.

    Raises:
      BackendError: it is in none, because C++ kept a function and called it by itself.
    """
    if _thread.frame is None:
        raise BackendError.explained(
            "extension module",
            "it works on tensors outside a call of one of its functions",
            "Load the module with CustomOpBuilder(...).load(), and call its functions; in "
            "LaunchKernel, which programs run by itself, work on memory.",
        )
    return _thread.frame


def as_function(module: Module, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of C++ as one of Tensors, or of arrays if it is given only those."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with CallFrame(module, tensors=not is_jax_face((args, kwargs))):
            try:
                return function(*args, **kwargs)
            except UnicodeDecodeError as error:
                # From pybind11, of which the text of a C++ exception, or a result, is UTF-8.
                text = error.object.decode("utf-8", "replace")
                raise _not_utf8(function, text.splitlines()) from None
            except RuntimeError as error:
                # Python 3.11.2 loses such a text of an exception.
                if error.args:
                    raise
                raise _not_utf8(function, ()) from None

    # JAX and inspect.signature follow it, and pybind11's functions have no signature.
    del call.__wrapped__  # type: ignore[attr-defined]
    return call


def _not_utf8(function: Callable[..., Any], lines: Sequence[str]) -> KernelError:
    return KernelError.explained(
        f"{_WHO} '{getattr(function, '__name__', 'of C++')}'",
        "threw an exception, or returned a string, whose text is not UTF-8",
        "Use UTF-8 in texts, and return other bytes as py::bytes.",
        lines,
    )


def from_python(value: Any) -> Handle | None:
    """Returns the handle of an argument, None if it is no array.

    Raises:
      ArgumentTypeError: MindSpore has no such dtype.
      InferenceTypeError: the dtype is 64 bits wide, and such types are off in JAX.
      InferenceValueError: a size is symbolic.
    """
    if isinstance(value, Tensor):
        return current_frame().handle(value)
    if not is_array(value):
        return None
    _check_argument(value)
    if isinstance(value, (np.ndarray, np.generic)):
        value = jax.device_put(np.asarray(as_array(value, "an argument", _WHO)))
    return Handle(value.shape, np.dtype(value.dtype), value)


def _check_argument(array: Any) -> None:
    known_dtype(array.dtype, "an argument", _WHO)
    refuse_low_precision(array.dtype, "an argument", _WHO, "an extension")
    if isinstance(array, jax.core.Tracer):
        seam.refuse_jet([array], _WHO)
        require_numbers(array.shape, "an argument", _WHO, "C++ reads shapes: call it on known ones")


def to_python(handle: Handle) -> Any:
    """Returns what the caller gets for a tensor that a function returned."""
    if handle.owner is not None:
        return handle.owner
    return wrap(handle.array) if current_frame().tensors else handle.array


def check_shape(shape: Sequence[int], who: str) -> None:
    """Refuses a shape that no tensor can have; XLA would terminate the process."""
    # Zero-size arrays included.
    entries = math.prod(max(extent, 1) for extent in shape)
    if min(shape, default=0) < 0 or len(shape) > HIGHEST_RANK or entries > MOST_ENTRIES:
        raise ArgumentValueError.explained(
            who,
            f"expected at most {HIGHEST_RANK} extents of 0 or more, with less than 2**59 "
            f"entries in all, for the shape of a tensor; got {tuple(shape)}",
            "Make the tensor with the shape of its data; -1 is not allowed.",
        )


def new_handle(shape: tuple[int, ...], dtype: np.dtype) -> Handle:
    """Returns the handle of a tensor that C++ makes, without data yet.

    Raises:
      ArgumentValueError: an extent is negative, or XLA cannot count the entries.
      BackendError: a program runs a kernel that makes it.
      InferenceTypeError: the dtype is 64 bits wide, and such types are off in JAX.
    """
    current_frame()
    check_shape(shape, _WHO)
    refuse_64_bit(dtype, f"a tensor of shape {tuple(shape)}", _WHO)
    return Handle(shape, dtype)
