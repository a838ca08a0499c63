"""Sorting the arguments of a call: into tensors, trees of them, numbers and attributes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from msops._base.dtypes import DType, as_dtype
from msops._op.arrays import as_array, refuse_wide
from msops._op.call import Call, Slot
from msops._op.definition import Definition
from msops._op_info import OpInfo, bind_attributes, call_attribute_names, call_attributes
from msops.errors import ArgumentTypeError, ArgumentValueError


def sort_arguments(
    definition: Definition,
    args: Sequence[Any],
    named: Mapping[str, Any],
    *,
    count: int | None,
    tensors: bool,
    positional: Sequence[str] | None,
    who: str,
) -> tuple[Call, list[Any]]:
    """Sorts call arguments into tensors and attributes.

    Args:
      definition: of the op.
      args: what the op was called with by position, Tensors already unwrapped.
      named: the attributes that were given by name.
      count: how many of `args` are inputs; None if their values decide.
      tensors: whether the call came through MindSpore's face.
      positional: the kernel's parameters that a call may give by position, where they are known
        and no others; None if not.
      who: the op, for messages.

    Returns:
      The call's structure and its flat list of arrays.

    Raises:
      ArgumentTypeError: an argument is neither an array nor a named attribute.
      ArgumentValueError: too few or too many arguments.
      InferenceTypeError: an array has 64-bit numbers, and these are off in JAX.
    """
    backend, infos = definition.backend, definition.infos
    if backend.takes_values:
        if named:
            raise ArgumentTypeError.explained(
                who,
                f"got {next(iter(named))!r} by name; an operator of Ascend takes its "
                "arguments by position",
                "Pass them in the operator's order.",
            )
        return _sort_by_value(args, tensors, who)
    if infos and infos[0].by_name:
        if positional is None:
            _refuse_numbers(args, infos[0], who)
        elif len(args) > len(positional):
            _refuse_positions(args, positional, infos[0], who)
    return _sort_by_op_info(
        args, named, infos, count=count, tensors=tensors, takes_trees=backend.takes_trees, who=who
    )


def _refuse_numbers(args: Sequence[Any], info: OpInfo, who: str) -> None:
    """Refuses a number by position where only the kernel's author knows what it is."""
    number = next(
        (v for v in args if _is_number(v, False) or _is_list_of_numbers(v, False)),
        None,
    )
    if number is not None:
        name = next(iter(call_attribute_names(info)), "alpha")
        raise ArgumentTypeError.explained(
            who,
            f"expected arrays by position, and attributes by name; got {number!r} by position",
            f"Pass an attribute as {name}={number!r}, a number that is an input as "
            f"jnp.float32({number!r}).",
        )


def _refuse_positions(
    args: Sequence[Any], positional: Sequence[str], info: OpInfo, who: str
) -> NoReturn:
    names = ", ".join(positional)
    example = ", ".join(f"{name}=..." for name in call_attribute_names(info))
    raise ArgumentTypeError.explained(
        who,
        f"expected at most {len(positional)} argument(s) by position ({names}); got {len(args)}",
        f"Pass attributes by name: {example}.",
    )


def _sort_by_value(args: Sequence[Any], tensors: bool, who: str) -> tuple[Call, list[Any]]:
    """Sorts call arguments by what they are: arrays and lists of arrays are tensors.

    All else is an attribute, wherever it stands: a number, a dtype, None, a list of these.
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
    return Call(tuple(layout), tuple(given.values()), tensors, positions=tuple(given)), flat


def _as_value(value: Any, what: str, who: str) -> Hashable:
    """Returns a number, text, dtype or None, or a list of these as a tuple."""
    if value is None or isinstance(value, DType):
        return value
    if isinstance(value, (np.dtype, type)):
        return as_dtype(value)
    if isinstance(value, (list, tuple)):
        return tuple(_as_value(item, what, who) for item in value)
    return freeze_attribute(value, what, who)


def _sort_by_op_info(
    args: Sequence[Any],
    named: Mapping[str, Any],
    infos: Sequence[OpInfo],
    *,
    count: int | None,
    tensors: bool,
    takes_trees: bool,
    who: str,
) -> tuple[Call, list[Any]]:
    """Sorts call arguments into inputs, which come first, and the attributes that op info lists."""
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
        elif _is_list_of_numbers(value, tensors):
            layout.append(None)
            if tensors and not takes_trees:
                numbers[len(flat)] = tuple(value)
            flat.append(_as_one_array(value, f"input {position}", tensors, who))
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
        given = _bind_given(infos, args[count:], named, who)
    call = Call(
        tuple(layout),
        given,
        tensors,
        numbers=tuple(numbers),
        values=tuple(numbers.values()),
        names=() if info is None else call_attribute_names(info),
        by_name=info is not None and info.by_name,
    )
    return call, flat


def _bind_given(
    infos: Sequence[OpInfo], values: Sequence[Any], named: Mapping[str, Any], who: str
) -> tuple[Hashable, ...]:
    """Returns the values of the attributes that a call may give, defaults included."""
    attributes = call_attributes(infos[0])
    passed = dict(zip([attribute.name for attribute in attributes], values, strict=False))
    if twice := sorted(passed.keys() & named.keys()):
        raise ArgumentTypeError.explained(
            who, f"got attribute {twice[0]!r} by position and by name", "Give it once."
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
    refuse_wide(value, 64, what, "An int beside Tensors is Int64; pass a float.", who)
    return np.int64(value)


def _is_number(value: Any, tensors: bool) -> bool:
    """Returns whether a value is a number of Python; on MindSpore's face also one of numpy."""
    return isinstance(value, _NUMBERS) if tensors else type(value) in (bool, int, float, complex)


def _is_list_of_numbers(value: Any, tensors: bool) -> bool:
    """Returns whether a value is a list or a tuple of numbers, which is one array."""
    is_list = isinstance(value, (list, tuple)) and bool(value)
    return is_list and all(_is_number(item, tensors) for item in value)


def _as_one_array(value: Sequence[Any], what: str, tensors: bool, who: str) -> Any:
    """Returns a list of numbers as the array that MindSpore, or JAX, makes of it."""
    if not tensors:
        return jnp.asarray([as_array(item, what, who) for item in value])
    items = [_as_mindspores_number(item, what, who) for item in value]
    if len({item.dtype for item in items}) > 1:
        raise ArgumentTypeError.explained(
            who,
            f"expected for {what} numbers of one type, as MindSpore does; got {value!r}",
            "Write all of them as floats, or all as ints.",
        )
    return np.array(items)


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
    raise ArgumentValueError.explained(
        who,
        f"expected {len(ports)} input(s) ({names})"
        f"{' as its op info lists' if info is not None and info.target else ''}; got {count}",
        "Pass one argument per input, in that order; attributes follow the inputs.",
    )


def _is_tensor_argument(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_tensor_argument, value))
    if _is_tree(value):
        return all(map(_is_tensor_argument, jax.tree.leaves(value)))
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic)


def _as_element(value: Any, what: str, who: str) -> Any:
    """Returns an element of a list input that holds arrays."""
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        raise ArgumentTypeError.explained(
            who,
            f"expected an array for {what}; got the number {value!r}",
            "A list is an input of several arrays, or one array of numbers: make an array of each "
            "number, or of all.",
        )
    return as_array(value, what, who)


def freeze_attribute(value: Any, name: str, who: str) -> Hashable:
    """Returns an attribute's value with lists as tuples.

    Raises:
      ArgumentTypeError: `value` is not bool, int, float, str, or a list of these.
      ArgumentValueError: an int does not fit 64 bits, or lists have no end of lists inside.
    """
    try:
        return _frozen(value, name, who)
    except RecursionError:
        raise ArgumentValueError.explained(
            who,
            f"expected attribute '{name}' to be a finite list; got one that holds itself, "
            "or is nested too deep",
            "Pass a flat list, or a list of lists.",
        ) from None


def _frozen(value: Any, name: str, who: str) -> Hashable:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int):
        refuse_wide(value, 64, f"attribute '{name}'", "A kernel reads it as int64_t.", who)
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(item, name, who) for item in value)
    raise ArgumentTypeError.explained(
        who,
        f"expected attribute '{name}' to be bool, int, float, str or a list of these; "
        f"got {type(value).__name__}",
        "Convert it, e.g. with .tolist().",
    )
