"""Output shapes and dtypes, from values or functions, checked before any kernel runs.

`Custom`'s `out_shape` and `out_dtype` correspond to MindSpore's (2.7.2, ``mindspore.ops.Custom``):
a value, or a function that gets one argument per call argument. None asks the kernel itself.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.export import is_symbolic_dim

from msops._base.dtypes import BY_NAME, DType, as_dtype, is_known
from msops._jax_seam import x64_enabled
from msops._op.call import Call
from msops._op.identity import ByValue
from msops.errors import (
    ArgumentTypeError,
    InferenceTypeError,
    InferenceValueError,
    explain,
)

Shape = tuple[Any, ...]

# The widest dtype has 16 bytes, and sizes in bytes are int64; numpy's arrays have 64 dimensions.
MOST_ENTRIES = 2**59 - 1
HIGHEST_RANK = 64

# The dtypes of 64 bits, and those that JAX narrows them to.
_WIDE = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


class ShapeList(list[Any]):
    """A shape as infer functions get it: MindSpore's list, that also adds and compares to tuples.

    Published scripts write both ``x + [1]`` and ``x == (2, 3)``.
    """

    def __add__(self, other: Any) -> ShapeList:
        return ShapeList([*self, *other])

    def __radd__(self, other: Any) -> ShapeList:
        return ShapeList([*other, *self])

    def __getitem__(self, index: Any) -> Any:
        item = super().__getitem__(index)
        return ShapeList(item) if isinstance(index, slice) else item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, tuple)) and list(self) == list(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None


@dataclasses.dataclass(frozen=True)
class Outputs:
    """What an op returns.

    Attributes:
      structs: its arrays.
      is_tuple: whether they come as a tuple.
      has_sizes: whether the last holds the true shapes of the others.
    """

    structs: tuple[jax.ShapeDtypeStruct, ...]
    is_tuple: bool
    has_sizes: bool = False

    @property
    def declared(self) -> tuple[jax.ShapeDtypeStruct, ...]:
        """The arrays that out_shape and out_dtype speak of."""
        return self.structs[:-1] if self.has_sizes else self.structs

    def with_sizes(self) -> Outputs:
        """Returns the same outputs and the int32 array of their true shapes, a row each."""
        highest_rank = max((len(struct.shape) for struct in self.structs), default=0)
        sizes = jax.ShapeDtypeStruct((len(self.structs), highest_rank), np.int32)
        return Outputs((*self.structs, sizes), True, has_sizes=True)

    def batched(self, batch: tuple[int, ...]) -> Outputs:
        """Returns the same outputs with leading axes of these sizes."""
        if not batch:
            return self
        structs = (jax.ShapeDtypeStruct((*batch, *s.shape), s.dtype) for s in self.structs)
        return Outputs(tuple(structs), self.is_tuple, self.has_sizes)

    def pack(self, flat: Sequence[Any]) -> Any:
        """Returns the op's result made of one value per output; None without outputs."""
        if self.is_tuple:
            return tuple(flat)
        return flat[0] if self.structs else None


NO_OUTPUTS = Outputs((), False)


@dataclasses.dataclass(frozen=True)
class _Answer:
    """One value per output, and whether they were given as a tuple."""

    values: tuple[Any, ...]
    is_tuple: bool

    def __str__(self) -> str:
        shown = [str(value) for value in self.values]
        if not self.is_tuple:
            return shown[0]
        return f"({shown[0]},)" if len(shown) == 1 else f"({', '.join(shown)})"


@dataclasses.dataclass(frozen=True)
class Inference:
    """The two halves of an op's inference.

    Attributes:
      out_shape: a shape, a tuple of shapes, a function of the inputs' shapes, or None.
      out_dtype: a dtype, a tuple of dtypes, a function of the inputs' dtypes, or None.
      has_outputs: False for a function that is only called for its effect.
    """

    out_shape: ByValue | _Answer | None
    out_dtype: ByValue | _Answer | None
    has_outputs: bool = True

    def is_current(self) -> bool:
        """Tells whether functions among the halves still see what they saw when read."""
        halves = (self.out_shape, self.out_dtype)
        return all(half.is_current() for half in halves if isinstance(half, ByValue))


def read_inference(out_shape: Any, out_dtype: Any, may_have_none: bool, who: str) -> Inference:
    """Returns the op's inference; values are checked at once, functions when they are called.

    Args:
      out_shape: as `Custom` takes it.
      out_dtype: as `Custom` takes it.
      may_have_none: whether ``()`` for both means an op without outputs.
      who: the op, for messages.
    """
    if may_have_none and _is_empty(out_shape) and _is_empty(out_dtype):
        return Inference(None, None, has_outputs=False)
    if callable(out_shape) and not isinstance(out_shape, type):
        out_shape = ByValue(out_shape)
    elif out_shape is not None:
        out_shape = _read_shapes(out_shape, who, "out_shape")
    # A dtype class such as np.float32 is callable and yet a value.
    if callable(out_dtype) and not isinstance(out_dtype, type):
        out_dtype = ByValue(out_dtype)
    elif out_dtype is not None:
        out_dtype = _read_dtypes(out_dtype, who, "out_dtype")
    return Inference(out_shape, out_dtype)


def infer(
    inference: Inference,
    call: Call,
    avals: Sequence[Any],
    ask_kernel: Callable[[str], Any],
    who: str,
) -> Outputs:
    """Infers what a call returns.

    Args:
      inference: the op's two halves.
      call: the call's structure.
      avals: abstract values of the flat inputs.
      ask_kernel: given "shape" or "dtype", what the kernel itself answers; used for a None half.
      who: the op, for messages.

    Raises:
      InferenceTypeError, InferenceValueError: a half answered something that is no shape or dtype,
        or the halves disagree on the number of outputs.
      ArgumentTypeError: an infer function takes another number of arguments than the call has.
    """
    for index, aval in enumerate(avals):
        refuse_unknown_dtype(aval.dtype, f"input {index}", who)
    if not inference.has_outputs:
        return NO_OUTPUTS
    given_dtypes = [as_dtype(aval.dtype) for aval in avals]
    of_shapes = call.arguments([ShapeList(aval.shape) for aval in avals])
    of_dtypes = call.arguments(given_dtypes)
    shapes = _answer(
        inference.out_shape,
        "out_shape",
        of_shapes,
        lambda: ask_kernel("shape"),
        _read_shapes,
        who,
    )
    dtypes = _answer(
        inference.out_dtype,
        "out_dtype",
        of_dtypes,
        lambda: ask_kernel("dtype"),
        _read_dtypes,
        who,
    )
    if shapes.is_tuple != dtypes.is_tuple or len(shapes.values) != len(dtypes.values):
        raise InferenceValueError(
            explain(
                who,
                f"expected as many shapes as dtypes; got {shapes} from out_shape and {dtypes} "
                "from out_dtype",
                "Give both as one value for a single output, or both as tuples of equal length.",
            )
        )
    structs = tuple(
        jax.ShapeDtypeStruct(shape, dtype.dtype)
        for shape, dtype in zip(shapes.values, dtypes.values, strict=True)
    )
    if not call.tensors:
        for index, struct in enumerate(structs):
            refuse_64_bit(struct.dtype, f"output {index}", who, "Declare {} by out_dtype")
    return Outputs(structs, shapes.is_tuple)


def refuse_64_bit(
    dtype: Any, what: str, who: str, narrowing: str = "Cast to 32 bits (x.astype({}))"
) -> None:
    """Raises when `dtype` is 64 bits wide and JAX would silently narrow it.

    `narrowing` says how to have the narrow dtype, which stands for the braces.
    """
    narrow = _WIDE.get(getattr(dtype, "name", ""))
    if narrow and not x64_enabled():
        raise InferenceTypeError(
            explain(
                who,
                f"{what} is {dtype.name}, and 64-bit types are off in JAX",
                f"{narrowing.format(f'np.{narrow}')}, set "
                "jax.config.update('jax_enable_x64', True), call inside jax.enable_x64(True), or "
                "pass msops.Tensors, which keep their width.",
            )
        )


def refuse_unknown_dtype(dtype: Any, what: str, who: str) -> None:
    """Raises when `dtype` is one of JAX that MindSpore does not have, such as int4."""
    if not is_known(dtype):
        raise ArgumentTypeError(
            explain(
                who,
                f"expected for {what} one of {', '.join(BY_NAME)}; got {dtype}",
                "Cast it to one of these: integers by x.astype(jnp.int8), floats by "
                "x.astype(jnp.bfloat16), random keys by jax.random.key_data(x).",
            )
        )


def require_numbers(shape: Shape, what: str, who: str, remedy: str) -> None:
    """Raises when `shape` has a symbolic size (`jax.export`), where only numbers will do.

    Args:
      shape: the shape.
      what: whose it is, for messages.
      who: the op, for messages.
      remedy: what to do, besides exporting a program per shape.
    """
    if not all(isinstance(size, int) for size in shape):
        raise InferenceValueError(
            explain(
                who,
                f"expected numbers for the shape of {what}; got ({', '.join(map(str, shape))})",
                f"{remedy}, or export one program per shape.",
            )
        )


def _answer(
    half: ByValue | _Answer | None,
    name: str,
    arguments: list[Any],
    ask_kernel: Callable[[], Any],
    read: Callable[[Any, str, str], _Answer],
    who: str,
) -> _Answer:
    if half is None:
        return read(ask_kernel(), who, f"the kernel's own {name[4:]} inference")
    if not isinstance(half, ByValue):
        return half
    _check_arity(half.function, name, arguments, who)
    try:
        result = half.function(*arguments)
    except Exception as error:
        error.add_note(f"{who}: raised by its {name} function, called with {arguments}")
        raise
    return read(result, who, f"its {name} function")


def _check_arity(function: Callable[..., Any], name: str, arguments: list[Any], who: str) -> None:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # builtins without a signature
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise ArgumentTypeError(
            explain(
                who,
                f"{name} function {signature} cannot take the call's {len(arguments)} argument(s)",
                f"Give {name} one parameter per call argument, attributes included, or mend the "
                "call.",
            )
        ) from None


def _read_shapes(value: Any, who: str, source: str) -> _Answer:
    if not isinstance(value, (list, tuple)):
        raise _not_a_shape(value, who, source)
    if not any(isinstance(item, (list, tuple)) for item in value):
        return _Answer((_read_shape(value, who, source),), False)
    if not all(isinstance(item, (list, tuple)) for item in value):
        raise _not_a_shape(value, who, source)
    return _Answer(tuple(_read_shape(item, who, source) for item in value), True)


def _read_shape(value: Sequence[Any], who: str, source: str) -> Shape:
    dims: list[Any] = []
    entries = 1
    for dim in value:
        if is_symbolic_dim(dim):
            dims.append(dim)
            continue
        try:
            size = operator.index(dim)
        except TypeError:
            raise _not_a_shape(value, who, source) from None
        if isinstance(dim, bool) or size < 0:
            raise _not_a_shape(value, who, source)
        dims.append(size)
        # XLA ends the process on sizes it cannot count, zero-size arrays included.
        entries *= max(size, 1)
        if entries > MOST_ENTRIES or len(dims) > HIGHEST_RANK:
            raise InferenceValueError(
                explain(
                    who,
                    f"expected from {source} at most {HIGHEST_RANK} dimensions with less than "
                    f"2**59 entries in all; got {dims}",
                    "Mend the shape; a kernel with several outputs infers them only if op info "
                    "lists them.",
                )
            )
    return tuple(dims)


def _not_a_shape(value: Any, who: str, source: str) -> Exception:
    return InferenceValueError(
        explain(
            who,
            f"expected a shape from {source}, a list or tuple of non-negative int, or a tuple of "
            f"shapes for several outputs; got {value!r}",
            "Return for example [2, 3], or ([2, 3], [2]) for two outputs; shapes are static here, "
            "so -1 and None are not sizes.",
        )
    )


def _read_dtypes(value: Any, who: str, source: str) -> _Answer:
    several = isinstance(value, (list, tuple))
    try:
        items = value if several else (value,)
        # What a function gets are of the table already, and mostly what it returns.
        dtypes = tuple(item if isinstance(item, DType) else as_dtype(item) for item in items)
    except ArgumentTypeError:
        dtypes = ()
    if not dtypes:
        raise InferenceTypeError(
            explain(
                who,
                f"expected a dtype from {source}, or a tuple of dtypes for several outputs; "
                f"got {value!r}",
                "Return for example msops.float32, or (msops.float32, msops.bool_) for two "
                "outputs.",
            )
        )
    return _Answer(dtypes, several)


def _is_empty(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not value
