"""Calls into shared libraries: of aot kernels and C of loops, and of AICPU kernels.

A call names its library by content hash, base name and symbol, never by path or pointer. So
equal programs are equal in every process, and the persistent compilation cache and `jax.export`
can keep them. The path is found in the process: what it built or loaded, then
``MSOPS_LIBRARY_PATH``, then the cache folder.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import jax
import numpy as np

from msops import _jax_seam as seam
from msops import _toolchain
from msops._base.dtypes import as_dtype
from msops._calls.handlers import native_module, open_library, remember_library, reported
from msops._op.process_call import Bound, ProcessCall
from msops.errors import ArgumentValueError, InferenceTypeError, KernelError


@dataclasses.dataclass(frozen=True)
class LibraryCall(ProcessCall):
    """One call into a library.

    Attributes:
      op: name of the op, for the messages of the handler.
      kernel_name: the function in the library, or the name that a kernel is registered under there.
      library: the library, by content.
      attributes: every attribute by name.
      reentrant: False serialises all calls into the library.
      aliases: pairs of an input and the output that takes over its buffer.
    """

    _KERNEL: ClassVar[str]
    """The attribute in which handlers find the kernel's name."""

    op: str
    kernel_name: str
    library: _toolchain.Library
    attributes: tuple[tuple[str, Any], ...] = ()
    reentrant: bool = True
    aliases: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        for name, value in self.attributes:
            for text in (name, *_texts(value)):
                _check_text(text, f"attribute {name!r}", f"Custom '{self.op}'")

    def bind(self, lowering: seam.Lowering, who: str) -> Bound:
        """Opens the library, so that errors come out now; programs name it by its content."""
        open_library(self.library, lowering.platform, who)
        return Bound(self.encode(), self.library.hash)

    def encode(self) -> dict[str, Any]:
        """Returns library, kernel and attributes."""
        return {
            "library": self.library.hash,
            # A program's text is UTF-8, and a file's name need not be.
            "library_name": self.library.name.encode("utf-8", "backslashreplace").decode(),
            self._KERNEL: self.kernel_name,
            "attributes": {name: ffi_value(value) for name, value in self.attributes},
            "reentrant": self.reentrant,
        }


@dataclasses.dataclass(frozen=True)
class AotCall(LibraryCall):
    """One call of a C function of MindSpore's ABI.

    Attributes:
      workspaces: sizes in bytes of memory that the function gets behind its outputs.
    """

    target = "msops_aot"
    _KERNEL = "symbol"

    workspaces: tuple[int, ...] = ()

    def encode(self) -> dict[str, Any]:
        """Returns library, function, attributes and workspaces."""
        return {**super().encode(), "workspaces": np.array(self.workspaces, np.int64)}


@dataclasses.dataclass(frozen=True)
class AicpuCall(LibraryCall):
    """One call of an AICPU kernel, which the CPU alone has.

    Attributes:
      dynamic_outputs: whether the last output takes the true shapes of the others.
      writable: whether the kernel may write to its inputs, which then are copies.
    """

    target = "msops_aicpu"
    _KERNEL = "type"

    dynamic_outputs: bool = False
    writable: bool = True

    def encode(self) -> dict[str, Any]:
        """Returns library, kernel, attributes, what the last output takes, and who may write."""
        return {
            **super().encode(),
            "dynamic_outputs": self.dynamic_outputs,
            "writable": self.writable,
        }


@dataclasses.dataclass(frozen=True)
class ForeignCall(LibraryCall):
    """One call of a handler of XLA's FFI.

    Attributes:
      dtypes: of attributes, by name; the others are int64 and float64.
    """

    target = "msops_ffi"
    _KERNEL = "symbol"

    dtypes: tuple[tuple[str, str], ...] = ()

    def encode(self) -> dict[str, Any]:
        """Returns library, handler and attributes, each of its dtype."""
        dtypes = dict(self.dtypes)
        attributes = {name: self._typed(name, value, dtypes) for name, value in self.attributes}
        return {**super().encode(), "attributes": attributes}

    def _typed(self, name: str, value: Any, dtypes: dict[str, str]) -> Any:
        if isinstance(value, str):
            return value
        kind = dtypes.get(name)
        try:
            with np.errstate(over="raise"):
                array = np.array(value, kind)
        except (FloatingPointError, OverflowError, TypeError, ValueError) as error:
            raise ArgumentValueError.explained(
                f"Custom '{self.op}'",
                f"expected for attribute {name!r} a value of dtype {kind or 'int64 or float64'}; "
                f"got {value!r}",
                "Its default in attrs says the dtype: np.int64(0) for whole numbers.",
            ) from error
        if not isinstance(value, tuple):
            return array[()]
        if array.dtype.kind not in "iuf":
            raise ArgumentValueError.explained(
                f"Custom '{self.op}'",
                f"expected for attribute {name!r} a list of numbers; got {value!r}",
                "XLA's FFI has no lists of text or bool: pass np.array([1, 0], np.int8), or a text "
                "that the handler splits.",
            )
        return array


def infer_shapes(
    call: AotCall, inputs: Sequence[jax.ShapeDtypeStruct], multiple: bool, who: str
) -> list[Any]:
    """Returns what ``<symbol>InferShape`` answers: a shape, or a list of them if `multiple`."""
    shapes = [list(array.shape) for array in inputs]
    dtypes = [as_dtype(array.dtype).name for array in inputs]
    remember_library(call.library, who)
    with reported(KernelError, who, f"{call.kernel_name}InferShape failed"):
        answer: list[Any] = native_module().infer_shape(
            call.library.hash, call.kernel_name, shapes, dtypes, dict(call.attributes), multiple
        )
    shape: list[Any] = answer if multiple else answer[0]
    return shape


def infer_type_ids(
    call: AotCall, inputs: Sequence[jax.ShapeDtypeStruct], multiple: bool, who: str
) -> list[int]:
    """Returns the TypeId numbers that ``<symbol>InferType`` answers, one per output."""
    type_ids = [as_dtype(array.dtype).type_id for array in inputs]
    if None in type_ids:
        index = type_ids.index(None)
        raise InferenceTypeError.explained(
            who,
            f"expected for input {index} a dtype with a TypeId, as {call.kernel_name}InferType "
            f"is asked; got {inputs[index].dtype}, which MindSpore does not have",
            "Pass out_dtype, or out.",
        )
    remember_library(call.library, who)
    with reported(KernelError, who, f"{call.kernel_name}InferType failed"):
        answer: list[int] = native_module().infer_type(
            call.library.hash, call.kernel_name, type_ids, dict(call.attributes), multiple
        )
    return answer


def _texts(value: Any) -> Iterator[str]:
    """Yields the texts in the value of an attribute."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item)


def _check_text(text: str, what: str, who: str) -> None:
    """Raises ArgumentValueError for a text that no program can have, as its text is UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ArgumentValueError.explained(
            who,
            f"expected text of whole characters for {what}; got {text!r}, with the surrogate "
            f"{text[error.start]!r} alone",
            "Decode bytes with the encoding that they have, or pass them as numbers.",
        ) from error


def ffi_value(value: Any) -> Any:
    """Returns an attribute as the FFI carries it; see ffi_attributes.cc for the other side."""
    if isinstance(value, float):
        return np.float64(value)
    if not isinstance(value, tuple):
        return value
    if all(isinstance(item, tuple) for item in value) and value:
        data = _number_array([item for row in value for item in row])
        if data is not None:
            return {"data": data, "splits": np.array([len(row) for row in value], np.int64)}
    array = _number_array(value)
    # Lists of text or bool have no getter in AotExtra; the kernel sees that they are there.
    return {str(i): ffi_value(item) for i, item in enumerate(value)} if array is None else array


def _number_array(values: Sequence[Any]) -> np.ndarray | None:
    kinds = {type(value) for value in values}
    if not kinds <= {int, float}:
        return None
    return np.array(values, np.float64 if float in kinds else np.int64)
