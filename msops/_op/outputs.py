"""Outputs of an op, read from the values or functions that its author gives."""

from __future__ import annotations

import collections
import dataclasses
import operator
import reprlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.export import is_symbolic_dim
from jax.tree_util import PyTreeDef

from msops._base.dtypes import DType, as_dtype
from msops._op.arrays import HIGHEST_RANK, MOST_ENTRIES, Shape
from msops.errors import ArgumentTypeError, InferenceTypeError, InferenceValueError


@dataclasses.dataclass(frozen=True)
class Outputs:
    """The outputs of an op.

    Attributes:
      structs: its arrays.
      is_tuple: whether they come as a tuple.
      has_sizes: whether the last holds the true shapes of the others.
      tree: the structure in which they come, if that is neither one array nor a flat tuple.
      words: the options of `Custom` that say their shapes and dtypes, for messages.
    """

    structs: tuple[jax.ShapeDtypeStruct, ...]
    is_tuple: bool
    has_sizes: bool = False
    tree: PyTreeDef | None = None
    words: tuple[str, str] = dataclasses.field(default=("out_shape", "out_dtype"), compare=False)

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
class Answer:
    """One value per output, and whether they were given as a tuple.

    Attributes:
      is_unit: whether it is the shape of one output, given as ``()`` and not as ``[]``.
    """

    values: tuple[Any, ...]
    is_tuple: bool
    is_unit: bool = False

    def __str__(self) -> str:
        shown = [str(value) for value in self.values]
        if not self.is_tuple:
            return shown[0]
        return f"({shown[0]},)" if len(shown) == 1 else f"({', '.join(shown)})"


class Asked(NamedTuple):
    """The answer of a function that was asked for shapes or dtypes, unchanged.

    Attributes:
      value: the answer.
      source: which function, for messages.
    """

    value: Any
    source: str


def join_halves(
    shapes: Answer | Asked, dtypes: Answer | Asked, may_be_unit: bool, who: str
) -> Outputs:
    """Returns the outputs of these shapes and dtypes.

    Args:
      shapes: of each output.
      dtypes: of each output.
      may_be_unit: whether the shape ``()`` of one output means one entry, ``(1,)``.
      who: the op, for messages.

    Raises:
      InferenceTypeError, InferenceValueError: one is no shape or dtype, or their numbers differ.
    """
    if isinstance(shapes, Asked):
        shapes = read_shapes(shapes.value, who, shapes.source)
    if isinstance(dtypes, Asked):
        dtypes = read_dtypes(dtypes.value, who, dtypes.source)
    if shapes.is_tuple != dtypes.is_tuple or len(shapes.values) != len(dtypes.values):
        raise InferenceValueError.explained(
            who,
            f"expected as many shapes as dtypes; got {shapes} from out_shape and {dtypes} "
            "from out_dtype",
            "Give both as one value for a single output, or both as tuples of equal length.",
        )
    values = ((1,),) if may_be_unit and shapes.is_unit else shapes.values
    pairs = zip(values, dtypes.values, strict=True)
    structs = tuple(jax.ShapeDtypeStruct(shape, dtype.dtype) for shape, dtype in pairs)
    return Outputs(structs, shapes.is_tuple)


def read_structs(tree: Any, in_order: bool, who: str, source: str) -> Outputs:
    """Returns what an op returns whose author described it by a tree."""
    leaves, structure = jax.tree.flatten(tree)
    structs = tuple(_read_struct(leaf, tree, who, source) for leaf in leaves)
    if in_order:
        for keys in _keys_of_dicts(tree):
            if keys != sorted(keys):
                raise InferenceValueError.explained(
                    who,
                    f"expected from {source} the keys of a dict in the order in which JAX "
                    f"flattens it, {sorted(keys)}; got {keys}",
                    "The kernel has its outputs in an order, not by names: write the keys "
                    "sorted, or use a named tuple.",
                )
    if jax.tree_util.all_leaves([tree]):
        return Outputs(structs, False, words=_OUT)
    if type(tree) is tuple and jax.tree_util.all_leaves(tree):
        return Outputs(structs, True, words=_OUT)
    return Outputs(structs, True, tree=structure, words=_OUT)


_OUT = ("out", "out")


def _read_struct(leaf: Any, tree: Any, who: str, source: str) -> jax.ShapeDtypeStruct:
    if not has_shape(leaf):
        # A shape beside a dtype is a tree of numbers, too: its first would explain nothing.
        raise InferenceTypeError.explained(
            who,
            f"expected from {source} a jax.ShapeDtypeStruct, or a tree of them; got "
            f"{reprlib.repr(tree)}",
            "Write out=jax.ShapeDtypeStruct((3,), jnp.float32), or "
            "out=lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype).",
        )
    (dtype,) = read_dtypes(leaf.dtype, who, source).values
    return jax.ShapeDtypeStruct(_read_shape(leaf.shape, who, source), dtype.dtype)


def has_shape(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def no_outputs(who: str, source: str) -> InferenceValueError:
    return InferenceValueError.explained(
        who,
        f"expected from {source} at least one output; got none",
        "Only a pyfunc can be called for its effect alone, by out=().",
    )


def _keys_of_dicts(tree: Any) -> Iterator[list[Any]]:
    """Yields the keys of each dict in a tree that JAX sorts."""
    kinds = (dict, collections.defaultdict)
    for node in jax.tree.leaves(tree, is_leaf=lambda node: type(node) in kinds):
        if type(node) in kinds:
            yield list(node)
            for value in node.values():
                yield from _keys_of_dicts(value)


def read_shapes(value: Any, who: str, source: str) -> Answer:
    if not isinstance(value, (list, tuple)):
        raise _not_a_shape(value, who, source)
    if not any(isinstance(item, (list, tuple)) for item in value):
        return Answer(
            (_read_shape(value, who, source),), False, isinstance(value, tuple) and not value
        )
    if not all(isinstance(item, (list, tuple)) for item in value):
        raise _not_a_shape(value, who, source)
    return Answer(tuple(_read_shape(item, who, source) for item in value), True)


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
        # XLA terminates the process on sizes it cannot count, zero-size arrays included.
        entries *= max(size, 1)
        if entries > MOST_ENTRIES or len(dims) > HIGHEST_RANK:
            raise InferenceValueError.explained(
                who,
                f"expected from {source} at most {HIGHEST_RANK} dimensions with less than "
                f"2**59 entries in all; got {dims}",
                "Fix the shape; a kernel with several outputs infers them only if op info "
                "lists them.",
            )
    return tuple(dims)


def _not_a_shape(value: Any, who: str, source: str) -> Exception:
    if any(map(has_shape, jax.tree.leaves(value))):
        return InferenceValueError.explained(
            who,
            f"expected a shape from {source}; got {value!r}",
            "Pass a jax.ShapeDtypeStruct, or a function that returns one, as out=.",
        )
    return InferenceValueError.explained(
        who,
        f"expected a shape from {source}, a list or tuple of non-negative int, or a tuple of "
        f"shapes for several outputs; got {value!r}",
        "Return for example [2, 3], or ([2, 3], [2]) for two outputs; shapes are static here, "
        "so -1 and None are not sizes.",
    )


def read_dtypes(value: Any, who: str, source: str) -> Answer:
    several = isinstance(value, (list, tuple))
    try:
        items = value if several else (value,)
        # What a function gets are of the table already, and mostly what it returns.
        dtypes = tuple(item if isinstance(item, DType) else as_dtype(item) for item in items)
    except ArgumentTypeError:
        dtypes = ()
    if not dtypes:
        raise InferenceTypeError.explained(
            who,
            f"expected a dtype from {source}, or a tuple of dtypes for several outputs; "
            f"got {value!r}",
            "Return for example msops.float32, or (msops.float32, msops.bool_) for two outputs.",
        )
    return Answer(dtypes, several)
