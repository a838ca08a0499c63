"""Output shapes and dtypes, from values or functions, checked before any kernel runs.

`Custom`'s `out_shape` and `out_dtype` correspond to MindSpore's (2.7.2, ``mindspore.ops.Custom``):
a value, or a function that gets one argument per call argument. None asks the kernel itself. `out`
is both in one, as `jax.pure_callback` takes it: a tree of `jax.ShapeDtypeStruct`.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import inspect
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.export import is_symbolic_dim
from jax.tree_util import PyTreeDef

from msops._base.dtypes import BY_NAME, DTYPES, DType, as_dtype, is_known, is_narrow
from msops._jax_seam import x64_enabled
from msops._op.call import Call
from msops._op.identity import ByValue
from msops.errors import (
    ArgumentTypeError,
    ArgumentValueError,
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

    Published scripts write both ``x + [1]`` and ``x == (2, 3)``. It is its own `shape`, as users of
    JAX write ``lambda x: x.shape``.
    """

    @property
    def shape(self) -> ShapeList:
        """The shape itself."""
        return self

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a function given as out_shape gets shapes, which have no {name!r}; pass "
            "out=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype) for one that gets both"
        )

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
      tree: the structure in which they come, if that is neither one array nor a flat tuple.
    """

    structs: tuple[jax.ShapeDtypeStruct, ...]
    is_tuple: bool
    has_sizes: bool = False
    tree: PyTreeDef | None = None

    @property
    def declared(self) -> tuple[jax.ShapeDtypeStruct, ...]:
        """The arrays that out_shape and out_dtype speak of."""
        return self.structs[:-1] if self.has_sizes else self.structs

    def with_sizes(self) -> Outputs:
        """Returns the same outputs and the int32 array of their true shapes, a row each."""
        highest_rank = max((len(struct.shape) for struct in self.structs), default=0)
        sizes = jax.ShapeDtypeStruct((len(self.structs), highest_rank), np.int32)
        return dataclasses.replace(
            self, structs=(*self.structs, sizes), is_tuple=True, has_sizes=True
        )

    def batched(self, batch: tuple[int, ...]) -> Outputs:
        """Returns the same outputs with leading axes of these sizes."""
        if not batch:
            return self
        structs = (jax.ShapeDtypeStruct((*batch, *s.shape), s.dtype) for s in self.structs)
        return dataclasses.replace(self, structs=tuple(structs))

    def pack(self, flat: Sequence[Any]) -> Any:
        """Returns the op's result made of one value per output; None without outputs."""
        if self.tree is not None:
            results = self.tree.unflatten(flat[: len(self.declared)])
            return (results, flat[-1]) if self.has_sizes else results
        if self.is_tuple:
            return tuple(flat)
        return flat[0] if self.structs else None

    def unpack(self, result: Any) -> Sequence[Any] | None:
        """Returns one value per output of what `pack` could have returned.

        A value may be a tree itself, or None. None is returned for another structure.
        """
        if self.tree is not None:
            parts = result if self.has_sizes else (result, None)
            try:
                flat = self.tree.flatten_up_to(parts[0])
                return [*flat, parts[1]] if self.has_sizes else flat
            except (IndexError, TypeError, ValueError):
                return None
        values = result if self.is_tuple else (result,)
        if not isinstance(values, (tuple, list)) or len(values) != len(self.structs):
            return None
        return values


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
    """The two halves of an op's inference, or both in one.

    Attributes:
      out_shape: a shape, a tuple of shapes, a function of the inputs' shapes, or None.
      out_dtype: a dtype, a tuple of dtypes, a function of the inputs' dtypes, or None.
      has_outputs: False for a function that is only called for its effect.
      out: the outputs, a function of the inputs that returns their tree, or None.
      in_order: the kernel knows its outputs by their order, so that a tree must keep it.
    """

    out_shape: ByValue | _Answer | None
    out_dtype: ByValue | _Answer | None
    has_outputs: bool = True
    out: ByValue | Outputs | None = None
    in_order: bool = True

    def is_current(self) -> bool:
        """Returns whether functions among the halves still see what they saw when read."""
        halves = (self.out_shape, self.out_dtype, self.out)
        return all(half.is_current() for half in halves if isinstance(half, ByValue))


def read_inference(
    out_shape: Any,
    out_dtype: Any,
    may_have_none: bool,
    who: str,
    out: Any = None,
    in_order: bool = True,
) -> Inference:
    """Returns the op's inference; values are checked at once, functions when they are called.

    Args:
      out_shape: as `Custom` takes it.
      out_dtype: as `Custom` takes it.
      may_have_none: whether ``()`` for both means an op without outputs; so does ``out=()``.
      who: the op, for messages.
      out: as `Custom` takes it.
      in_order: whether the kernel knows its outputs by their order.
    """
    if out is not None:
        if out_shape is not None or out_dtype is not None:
            raise ArgumentValueError(
                explain(
                    who,
                    "out is given together with out_shape or out_dtype",
                    "out has both shapes and dtypes: leave the others out.",
                )
            )
        return _read_out(out, may_have_none, in_order, who)
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
    if inference.out is not None:
        outputs = _infer_out(inference, inference.out, call, avals, who)
        if not call.tensors:
            for index, struct in enumerate(outputs.structs):
                refuse_64_bit(struct.dtype, f"output {index}", who, "Pass {} in out")
        return outputs
    if not inference.has_outputs:
        return NO_OUTPUTS
    given_dtypes = [as_dtype(aval.dtype) for aval in avals]
    of_shapes = call.group([ShapeList(aval.shape) for aval in avals])
    of_dtypes = call.group(given_dtypes)
    shapes = _answer(
        inference.out_shape,
        "out_shape",
        of_shapes,
        call,
        lambda: ask_kernel("shape"),
        _read_shapes,
        who,
    )
    dtypes = _answer(
        inference.out_dtype,
        "out_dtype",
        of_dtypes,
        call,
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

    `narrowing` says how to have the narrow dtype, which replaces the braces.
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
    """Raises when `dtype` is one that kernels are not given, such as that of random keys."""
    if not is_known(dtype):
        raise ArgumentTypeError(
            explain(
                who,
                f"expected for {what} one of {', '.join(BY_NAME)}; got {dtype}",
                "Cast it to one of these: integers by x.astype(jnp.int8), floats by "
                "x.astype(jnp.bfloat16), random keys by jax.random.key_data(x).",
            )
        )


def refuse_narrow_dtype(dtype: Any, what: str, who: str, taker: str) -> None:
    """Raises when `dtype` is float8, or narrower than a byte, which `taker` does not take."""
    if is_narrow(dtype):
        cast = "jnp.int8" if "int" in dtype.name else "jnp.bfloat16"
        raise ArgumentTypeError(
            explain(
                who,
                f"expected for {what} a dtype that {taker} takes, one of "
                f"{', '.join(row.name for row in DTYPES)}; got {dtype}",
                f"Cast by x.astype({cast}), or write the kernel in C++ (func_type 'aot') or as a "
                f"Python function (func_type 'pyfunc'), which take {dtype}.",
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
    inputs: list[Any],
    call: Call,
    ask_kernel: Callable[[], Any],
    read: Callable[[Any, str, str], _Answer],
    who: str,
) -> _Answer:
    if half is None:
        return read(ask_kernel(), who, f"the kernel's own {name[4:]} inference")
    if not isinstance(half, ByValue):
        return half
    return read(_ask(half.function, name, inputs, call, who), who, f"its {name} function")


def _ask(function: Callable[..., Any], name: str, inputs: list[Any], call: Call, who: str) -> Any:
    """Returns what a function of the author makes of the inputs, and of attributes it takes."""
    fitting = fit_arguments(function, call, inputs)
    if fitting is None:
        raise ArgumentTypeError(
            explain(
                who,
                f"{name} function {inspect.signature(function)} cannot take the call's "
                f"{len(inputs) + len(call.given)} argument(s)",
                f"Give {name} one parameter per call argument, inputs, then attributes, or fix the "
                "call.",
            )
        )
    arguments, named = fitting
    try:
        return function(*arguments, **named)
    except Exception as error:
        error.add_note(f"{who}: raised by its {name} function, called with {arguments}")
        raise


def fit_arguments(
    function: Callable[..., Any],
    call: Call,
    inputs: Sequence[Any],
    before: int = 0,
    after: int = 0,
) -> tuple[list[Any], dict[str, Any]] | None:
    """Returns what a function of the author's is called with: inputs, and attributes it takes.

    A parameter gets the attribute of its name. Of the others, which op info may call otherwise than
    the function does, the first follow the inputs, as many as the function has parameters without a
    default for; all, if it takes any number. So it is called alike whether an attribute was passed
    or has its default.

    Args:
      function: `out_shape`, `bprop` and the like.
      call: the call.
      inputs: one entry per tensor argument.
      before: number of further positional arguments before these.
      after: number of further positional arguments after them.

    Returns:
      Arguments by position, and by name; None if the function cannot take them, or has an
      attribute's parameter among those of the inputs: gradients are in this order, too.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # builtins without a signature
        return call.spread(inputs, call.given), {}
    if call.names:
        fitting = _fit_names(signature, call, inputs, before, after)
    else:  # attributes among the inputs cannot be left out
        fitting = call.spread(inputs, call.given), {}
    if fitting is not None:
        with contextlib.suppress(TypeError):
            signature.bind(*range(before + len(fitting[0]) + after), **fitting[1])
            return fitting
    return None


def _fit_names(
    signature: inspect.Signature, call: Call, inputs: Sequence[Any], before: int, after: int
) -> tuple[list[Any], dict[str, Any]] | None:
    """Returns what `fit_arguments` does, for a call whose attributes have names."""
    values = dict(zip(call.names, call.given, strict=True))
    parameters = signature.parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = {
        p.name: values[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in values
    }
    own = {place: p.name for place, p in enumerate(positional[before:]) if p.name in values}
    if own and min(own) < len(inputs):
        return None
    others = [v for name, v in values.items() if name not in {*named, *own.values()}]
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        required = [p for p in positional if p.name not in values and p.default is p.empty]
        others = others[: max(len(required) - before - len(inputs) - after, 0)]
    arguments = [*inputs, *others]
    for place, name in own.items():
        if place <= len(arguments):
            arguments.insert(place, values[name])
        else:
            named[name] = values[name]
    return arguments, named


def _read_out(out: Any, may_have_none: bool, in_order: bool, who: str) -> Inference:
    is_value = all(map(_has_shape, leaves := jax.tree.leaves(out)))
    if callable(out) and not (is_value and leaves):
        return Inference(None, None, out=ByValue(out), in_order=in_order)
    outputs = _read_structs(out, in_order, who, "out")
    if not outputs.structs and not may_have_none:
        raise _no_outputs(who, "out")
    return Inference(None, None, bool(outputs.structs), outputs, in_order)


def _infer_out(
    inference: Inference, out: ByValue | Outputs, call: Call, avals: Sequence[Any], who: str
) -> Outputs:
    if isinstance(out, Outputs):
        return out
    inputs = call.group([jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals])
    result = _ask(out.function, "out", inputs, call, who)
    outputs = _read_structs(result, inference.in_order, who, "its out function")
    if not outputs.structs:
        raise _no_outputs(who, "its out function")
    return outputs


def _read_structs(tree: Any, in_order: bool, who: str, source: str) -> Outputs:
    """Returns what an op returns whose author described it by a tree."""
    leaves, structure = jax.tree.flatten(tree)
    structs = tuple(_read_struct(leaf, who, source) for leaf in leaves)
    if in_order:
        for keys in _keys_of_dicts(tree):
            if keys != sorted(keys):
                raise InferenceValueError(
                    explain(
                        who,
                        f"expected from {source} the keys of a dict in the order in which JAX "
                        f"flattens it, {sorted(keys)}; got {keys}",
                        "The kernel has its outputs in an order, not by names: write the keys "
                        "sorted, or use a named tuple.",
                    )
                )
    if jax.tree_util.all_leaves([tree]):
        return Outputs(structs, False)
    if type(tree) is tuple and jax.tree_util.all_leaves(tree):
        return Outputs(structs, True)
    return Outputs(structs, True, tree=structure)


def _read_struct(leaf: Any, who: str, source: str) -> jax.ShapeDtypeStruct:
    if not _has_shape(leaf):
        raise InferenceTypeError(
            explain(
                who,
                f"expected from {source} a jax.ShapeDtypeStruct, or a tree of them; got {leaf!r}",
                "Write out=jax.ShapeDtypeStruct((3,), jnp.float32), or "
                "out=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype).",
            )
        )
    (dtype,) = _read_dtypes(leaf.dtype, who, source).values
    return jax.ShapeDtypeStruct(_read_shape(leaf.shape, who, source), dtype.dtype)


def _has_shape(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _no_outputs(who: str, source: str) -> InferenceValueError:
    return InferenceValueError(
        explain(
            who,
            f"expected from {source} at least one output; got none",
            "Only a pyfunc can be called for its effect alone, by out=().",
        )
    )


def _keys_of_dicts(tree: Any) -> Iterator[list[Any]]:
    """Yields the keys of each dict in a tree that JAX sorts."""
    kinds = (dict, collections.defaultdict)
    for node in jax.tree.leaves(tree, is_leaf=lambda node: type(node) in kinds):
        if type(node) in kinds:
            yield list(node)
            for value in node.values():
                yield from _keys_of_dicts(value)


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
                    "Fix the shape; a kernel with several outputs infers them only if op info "
                    "lists them.",
                )
            )
    return tuple(dims)


def _not_a_shape(value: Any, who: str, source: str) -> Exception:
    if any(map(_has_shape, jax.tree.leaves(value))):
        return InferenceValueError(
            explain(
                who,
                f"expected a shape from {source}; got {value!r}",
                "Pass a jax.ShapeDtypeStruct, or a function that returns one, as out=.",
            )
        )
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
