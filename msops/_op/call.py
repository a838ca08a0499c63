"""One call's structure: which arguments are tensors, which trees of tensors, which attributes."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import jax
import numpy as np
from jax.tree_util import PyTreeDef

from msops._base.dtypes import DType, as_dtype, is_known
from msops._jax_seam import x64_enabled
from msops._op_info import OpInfo, bind_attributes, call_attribute_names, call_attributes
from msops.errors import ArgumentTypeError, ArgumentValueError, explain

Slot: TypeAlias = int | PyTreeDef | None
"""An argument that has tensors: None for one tensor, the length of a list ("dynamic" input) or of a
tuple of numbers, or the structure of any other tree."""


def width(slot: Slot) -> int:
    """Returns how many tensors an argument has."""
    if slot is None:
        return 1
    return slot if isinstance(slot, int) else slot.num_leaves


@dataclasses.dataclass(frozen=True)
class Call:
    """The static part of a call of an op.

    Attributes:
      layout: what each tensor argument is.
      given: values of the attributes that a call may give, in the order of the op info. One that
        was not passed has its default; None without one, or if targets differ in it.
      tensors: whether the call came through MindSpore's face (Tensors in, Tensors out).
      batch: sizes of the leading axes that vmap added, for kernels that take whole batches; an
        input has them too, or 1 in their place.
      mapped: for axes that vmap added to a kernel that is called once per element, outermost first,
        the size, and which inputs have the axis in front.
      numbers: flat positions of inputs that were Python numbers beside Tensors.
      values: these numbers, for rules of differentiation. A kernel reads them from its inputs, so
        that another number is no other program.
      places: positions of `given` among all arguments; empty if they come last.
      names: the names of the attributes in `given`.
      static_text: `given` and `values` as text, which is compared: 0.0 == -0.0 in Python, not in a
        kernel.
    """

    layout: tuple[Slot, ...]
    given: tuple[Hashable, ...] = dataclasses.field(default=(), compare=False)
    tensors: bool = False
    batch: tuple[int, ...] = ()
    mapped: tuple[tuple[int, tuple[bool, ...]], ...] = ()
    numbers: tuple[int, ...] = ()
    values: tuple[Hashable, ...] = dataclasses.field(default=(), compare=False)
    places: tuple[int, ...] = ()
    names: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    static_text: str = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "static_text", repr((self.given, self.values)))

    def face(self) -> contextlib.AbstractContextManager[Any]:
        """Returns the context its code is traced in: 64-bit types on MindSpore's face."""
        return jax.enable_x64(True) if self.tensors else contextlib.nullcontext()

    def element(self, aval: Any) -> jax.ShapeDtypeStruct:
        """Returns shape and dtype of an input without the axes that vmap added."""
        return jax.ShapeDtypeStruct(aval.shape[len(self.batch) :], aval.dtype)

    def unmapped(self, avals: Sequence[Any]) -> tuple[Call, list[Any]]:
        """Returns the call of the kernel for one element of the mapped axes, and its inputs."""
        counts = [sum(flags) for flags in zip(*(has for _, has in self.mapped), strict=True)]
        elements = [
            jax.ShapeDtypeStruct(aval.shape[count:], aval.dtype)
            for aval, count in zip(avals, counts or [0] * len(avals), strict=True)
        ]
        return dataclasses.replace(self, mapped=()), elements

    def is_plain(self, arguments: int) -> bool:
        """Returns whether the arguments are all tensors, so that their number is the structure."""
        is_flat = all(slot is None for slot in self.layout)
        return is_flat and len(self.layout) == arguments and not self.numbers

    def without_values(self) -> Call:
        """Returns the call as its kernel sees it."""
        return dataclasses.replace(self, values=()) if self.values else self

    def group(self, flat: Iterable[Any]) -> list[Any]:
        """Returns one entry per tensor argument; trees of tensors are such again."""
        values = enumerate(flat)
        grouped: list[Any] = []
        for slot in self.layout:
            if slot is None:
                grouped.append(next(values)[1])
                continue
            entries = list(itertools.islice(values, width(slot)))
            if isinstance(slot, PyTreeDef):
                grouped.append(slot.unflatten(value for _, value in entries))
                continue
            is_tuple = bool(entries) and entries[0][0] in self.numbers
            grouped.append((tuple if is_tuple else list)(value for _, value in entries))
        return grouped

    def flat_index(self, argument: int) -> int | None:
        """Returns the flat number of a tensor argument; None for a tree, or if there is none."""
        if argument >= len(self.layout) or self.layout[argument] is not None:
            return None
        return sum(map(width, self.layout[:argument]))

    def arguments(self, flat: Iterable[Any]) -> list[Any]:
        """Returns one entry per call argument, attributes included."""
        return self.spread(self.group(flat), self.given)

    def spread(self, tensors: Sequence[Any], attributes: Sequence[Any]) -> list[Any]:
        """Returns one entry per call argument, of those of its tensors and of its attributes."""
        entries = [*tensors, *(() if self.places else attributes)]
        for place, value in zip(self.places, attributes, strict=False):
            entries.insert(place, value)
        return entries

    def of_tensors(self, entries: Sequence[Any]) -> list[Any]:
        """Returns the entries of tensor arguments among one per call argument."""
        if not self.places:
            return list(entries[: len(self.layout)])
        return [entry for place, entry in enumerate(entries) if place not in self.places]

    def arguments_of_rule(self, flat: Iterable[Any]) -> list[Any]:
        """Returns what a rule of differentiation gets: `arguments`, with numbers as they were."""
        return self.spread(self.inputs_of_rule(flat), self.given)

    def inputs_of_rule(self, flat: Iterable[Any]) -> list[Any]:
        """Returns what a rule of differentiation gets but for the attributes."""
        entries = list(flat)
        for position, value in zip(self.numbers, self.values, strict=False):
            entries[position] = value
        return self.group(entries)

    def __repr__(self) -> str:
        shown, count = [], 0
        for slot in self.layout:
            names = ["n" if i in self.numbers else "x" for i in range(count, count + width(slot))]
            count += len(names)
            if slot is None:
                shown += names
            elif isinstance(slot, PyTreeDef):
                shown.append(str(slot).removeprefix("PyTreeDef(").removesuffix(")"))
            elif "n" in names:
                shown.append(f"({', '.join(names)}{',' * (slot == 1)})")
            else:
                shown.append(f"[{slot}]")
        return f"({', '.join(self.spread(shown, [*map(repr, self.given)]))})"


def sort_by_value(args: Sequence[Any], tensors: bool, who: str) -> tuple[Call, list[Any]]:
    """Sorts call arguments by what they are: arrays and lists of arrays are tensors.

    All else is an attribute, wherever it stands: a number, a dtype, None, a list of these.

    Args:
      args: what the op was called with, Tensors already unwrapped.
      tensors: whether the call came through MindSpore's face.
      who: the op, for messages.

    Returns:
      The call's structure and its flat list of arrays.

    Raises:
      ArgumentTypeError: an argument is neither an array nor a value.
    """
    layout: list[Slot] = []
    flat: list[Any] = []
    given: dict[int, Hashable] = {}
    for position, value in enumerate(args):
        if not _is_tensor_argument(value):
            given[position] = _as_value(value, f"argument {position}", who)
            continue
        is_list = isinstance(value, (list, tuple))
        layout.append(len(value) if is_list else None)
        items = value if is_list else [value]
        flat += [as_array(item, f"input {position}", who) for item in items]
    return Call(tuple(layout), tuple(given.values()), tensors, places=tuple(given)), flat


def _as_value(value: Any, what: str, who: str) -> Hashable:
    """Returns a number, text, dtype or None, or a list of these as a tuple."""
    if value is None or isinstance(value, DType):
        return value
    if isinstance(value, (np.dtype, type)):
        return as_dtype(value)
    if isinstance(value, (list, tuple)):
        return tuple(_as_value(item, what, who) for item in value)
    return freeze_attribute(value, what, who)


def sort_arguments(
    args: Sequence[Any],
    infos: Sequence[OpInfo],
    tensors: bool,
    takes_trees: bool,
    who: str,
    named: Mapping[str, Any] | None = None,
    count: int | None = None,
) -> tuple[Call, list[Any]]:
    """Sorts call arguments into tensors and attributes.

    Args:
      args: what the op was called with by position, Tensors already unwrapped.
      infos: op info of each target; the names of inputs and attributes are the same in each.
      tensors: whether the call came through MindSpore's face.
      takes_trees: whether the kernel takes trees of tensors, and beside Tensors tuples of numbers.
      who: the op, for messages.
      named: the attributes that were given by name.
      count: how many of `args` are inputs; None if their values decide.

    Returns:
      The call's structure and its flat list of arrays.

    Raises:
      ArgumentTypeError: an argument is neither an array nor a named attribute.
      ArgumentValueError: too few or too many arguments.
    """
    info = infos[0] if infos else None
    count = _count_tensors(args, info, who, count)
    layout: list[Slot] = []
    flat: list[Any] = []
    numbers: dict[int, Hashable] = {}
    for position, value in enumerate(args[:count]):
        # An empty tuple is an input of no arrays.
        plain = value if isinstance(value, tuple) and takes_trees else (value,)
        if tensors and plain and all(isinstance(item, _NUMBERS) for item in plain):
            layout.append(len(plain) if plain is value else None)
            for item in plain:
                numbers[len(flat)] = item
                flat.append(_as_mindspores_number(item, f"input {position}", who))
        elif takes_trees and _is_tree(value) and not _is_list_input(value, tensors):
            paths, tree = jax.tree_util.tree_flatten_with_path(value)
            layout.append(tree)
            flat += [_as_leaf(leaf, path, position, tensors, who) for path, leaf in paths]
        elif isinstance(value, (list, tuple)):
            layout.append(len(value))
            flat += [
                _as_element(item, f"element {index} of input {position}", who)
                for index, item in enumerate(value)
            ]
        else:
            layout.append(None)
            flat.append(as_array(value, f"input {position}", who))
    given: tuple[Hashable, ...] = ()
    if info is not None and (count < len(args) or info.attributes):
        given = _bind_given(infos, args[count:], named or {}, who)
    call = Call(
        tuple(layout),
        given,
        tensors,
        numbers=tuple(numbers),
        values=tuple(numbers.values()),
        names=() if info is None else call_attribute_names(info),
    )
    return call, flat


def _bind_given(
    infos: Sequence[OpInfo], values: Sequence[Any], named: Mapping[str, Any], who: str
) -> tuple[Hashable, ...]:
    """Returns the values of the attributes that a call may give, defaults included."""
    attributes = call_attributes(infos[0])
    passed = dict(zip([attribute.name for attribute in attributes], values, strict=False))
    if twice := sorted(passed.keys() & named.keys()):
        raise ArgumentTypeError(
            explain(
                who,
                f"got attribute {twice[0]!r} by position and by name",
                "Give it once.",
            )
        )
    passed |= named
    rest = [*values[len(attributes) :]]  # refused as too many
    bound: dict[str, Any] = dict(
        bind_attributes(infos[0], [*(passed.get(a.name) for a in attributes), *rest], who)
    )
    for attribute in attributes:
        if passed.get(attribute.name) is None and len(infos) > 1:
            defaults = {a.default for i in infos for a in i.attributes if a.name == attribute.name}
            if len(defaults) > 1:
                # Each target's own, which the kernel gets: here it is not known.
                del bound[attribute.name]
    return tuple(bound.get(attribute.name) for attribute in attributes)


def _is_tree(value: Any) -> bool:
    """Returns whether a value is a container that JAX knows: a dict, a dataclass, a tuple."""
    if value is None or isinstance(value, (bool, int, float, complex, str, np.generic)):
        return False
    if hasattr(value, "dtype") or hasattr(value, "__jax_array__"):
        return False
    return not jax.tree_util.all_leaves([value])


def _is_list_input(value: Any, tensors: bool) -> bool:
    """Returns whether a tree is a flat list, or on MindSpore's face also a flat tuple."""
    plain = (list, tuple) if tensors else (list,)
    return type(value) in plain and not any(map(_is_tree, value))


def _as_leaf(value: Any, path: Any, position: int, tensors: bool, who: str) -> Any:
    """Returns a leaf of a tree as something jit takes."""
    what = f"input {position}{jax.tree_util.keystr(path)}"
    if tensors and isinstance(value, _NUMBERS):
        return _as_mindspores_number(value, what, who)
    return as_array(value, what, who)


_NUMBERS = (bool, int, float, np.float32)
"""The types of numbers that MindSpore passes as its own; numpy's float64 is a float, too."""


def _as_mindspores_number(value: Any, what: str, who: str) -> np.generic:
    """Returns a Python number as MindSpore passes it: Bool, Int64 or Float32."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, (float, np.float32)):
        with np.errstate(over="ignore"):
            return np.float32(value)
    _refuse_wide(value, 64, what, "An int beside Tensors is Int64; pass a float.", who)
    return np.int64(value)


def _refuse_wide(value: int, bits: int, what: str, remedy: str, who: str) -> None:
    """Raises for an int that a signed type of so many bits does not hold."""
    if value.bit_length() < bits or value == -(2 ** (bits - 1)):
        return
    shown = value if value.bit_length() < 200 else f"an int of {value.bit_length()} bits"
    raise ArgumentValueError(
        explain(who, f"expected {what} to fit {bits} bits; got {shown}", remedy)
    )


def _count_tensors(args: Sequence[Any], info: OpInfo | None, who: str, known: int | None) -> int:
    """Returns how many leading arguments are tensors, or lists of tensors."""
    if info is None or info.by_name or not call_attribute_names(info):
        most = len(info.inputs) if info is not None and info.inputs else len(args)
        if len(args) > most:
            _refuse_count(len(args), info, who)
        return len(args)
    most = len(info.inputs) or len(args)
    least = sum(port.kind != "optional" for port in info.inputs)
    leading = 0
    while leading < min(len(args), most) and _is_tensor_argument(args[leading]):
        leading += 1
    # A required input may be a plain number; an optional one may not, or `op(x, 0.5)` with an
    # optional input and an attribute would be ambiguous.
    count = max(leading, min(least, len(args))) if known is None else known
    if not least <= count <= most:
        _refuse_count(count, info, who)
    return count


def _refuse_count(count: int, info: OpInfo | None, who: str) -> NoReturn:
    ports = info.inputs if info is not None else ()
    names = ", ".join(port.name for port in ports)
    raise ArgumentValueError(
        explain(
            who,
            f"expected {len(ports)} input(s) ({names}) as its op info lists; got {count}",
            "Pass one argument per input, in that order; attributes follow the inputs.",
        )
    )


def _is_tensor_argument(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_tensor_argument, value))
    if _is_tree(value):
        return all(map(_is_tensor_argument, jax.tree.leaves(value)))
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic)


def _as_element(value: Any, what: str, who: str) -> Any:
    """Returns an element of a list input, which holds arrays: a list of numbers is an array."""
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        raise ArgumentTypeError(
            explain(
                who,
                f"expected an array for {what}; got the number {value!r}",
                "A list is an input of several arrays; make one array of numbers: "
                "jnp.array([1.0, 2.0]).",
            )
        )
    return as_array(value, what, who)


def as_array(value: Any, what: str, who: str) -> Any:
    """Returns `value` as something jit takes: native byte order, numeric.

    Raises:
      ArgumentTypeError: it is no such array; `what` and `who` are for the message.
      ArgumentValueError: it is an int that JAX's type of ints cannot hold.
    """
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(
            explain(
                who,
                f"expected an array for {what}; got a masked array, whose mask would be lost",
                "Pass x.filled(value), or the mask as an input of its own.",
            )
        )
    if isinstance(value, int):
        remedy = "Pass a float, or an array of a type that holds it."
        _refuse_wide(value, 64 if x64_enabled() else 32, what, remedy, who)
    if isinstance(value, (np.ndarray, np.generic)):
        if is_known(value.dtype):
            native = value.dtype.newbyteorder("=")
            return value if value.dtype == native else value.astype(native)
    elif isinstance(value, (bool, int, float, complex, jax.Array)):
        return value
    elif hasattr(value, "__jax_array__"):
        return value.__jax_array__()
    shown = repr(value)
    raise ArgumentTypeError(
        explain(
            who,
            f"expected an array for {what}; got {type(value).__name__} "
            f"{shown if len(shown) < 60 else shown[:57] + '...'}",
            "Pass a jax.Array, numpy array, msops.Tensor or number; attributes are named by op "
            "info (reg_info=CustomRegOp()...attr(...)), or by attrs=.",
        )
    )


def freeze_attribute(value: Any, name: str, who: str) -> Hashable:
    """Returns an attribute's value with lists as tuples.

    Raises:
      ArgumentTypeError: `value` is not bool, int, float, str, or a list of these.
      ArgumentValueError: an int does not fit 64 bits, or lists have no end of lists inside.
    """
    try:
        return _frozen(value, name, who)
    except RecursionError:
        raise ArgumentValueError(
            explain(
                who,
                f"expected attribute '{name}' to be a list that ends; got one that holds itself, "
                "or is nested too deep",
                "Pass a flat list, or a list of lists.",
            )
        ) from None


def _frozen(value: Any, name: str, who: str) -> Hashable:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int):
        _refuse_wide(value, 64, f"attribute '{name}'", "A kernel reads it as int64_t.", who)
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item, name, who) for item in value)
    raise ArgumentTypeError(
        explain(
            who,
            f"expected attribute '{name}' to be bool, int, float, str or a list of these; "
            f"got {type(value).__name__}",
            "Convert it, e.g. with .tolist().",
        )
    )
