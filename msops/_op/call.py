"""One call's structure: which arguments are tensors, which trees of tensors, which attributes."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import jax
from jax.tree_util import PyTreeDef

from msops.errors import ArgumentTypeError

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
        input has them too, or 1 instead.
      mapped: for axes that vmap added to a kernel that is called once per element, outermost first,
        the size, and which inputs have the axis in front.
      numbers: flat positions of inputs that were Python numbers beside Tensors.
      values: these numbers, for rules of differentiation. A kernel reads them from its inputs, so
        that another number is no other program.
      positions: positions of `given` among all arguments; empty if they come last.
      names: the names of the attributes in `given`.
      by_name: whether a call gives these attributes by their names only.
      is_plain: whether each input is one tensor, so that their number is the structure.
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
    positions: tuple[int, ...] = ()
    names: tuple[str, ...] = dataclasses.field(default=(), compare=False)
    by_name: bool = dataclasses.field(default=False, compare=False)
    is_plain: bool = dataclasses.field(init=False, compare=False)
    static_text: str = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        is_plain = all(slot is None for slot in self.layout) and not self.numbers
        object.__setattr__(self, "is_plain", is_plain)
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
        entries = [*tensors, *(() if self.positions else attributes)]
        for position, value in zip(self.positions, attributes, strict=False):
            entries.insert(position, value)
        return entries

    def of_tensors(self, entries: Sequence[Any]) -> list[Any]:
        """Returns the entries of tensor arguments among one per call argument."""
        if not self.positions:
            return list(entries[: len(self.layout)])
        return [entry for position, entry in enumerate(entries) if position not in self.positions]

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


def ask(function: Callable[..., Any], name: str, flat: Sequence[Any], call: Call, who: str) -> Any:
    """Returns what a function of the author's answers about a call.

    Args:
      function: gets one argument per call argument: inputs, and the attributes it takes.
      name: the parameter of `Custom` that it was given as, for messages.
      flat: what it gets for each array.
      call: the call.
      who: the op, for messages.

    Raises:
      ArgumentTypeError: it takes another number of arguments than the call has.
    """
    inputs = call.group(flat)
    # An attribute that is given by its name alone must not replace an input that was forgotten.
    fitting = fit_arguments(function, call, inputs, fills=not call.by_name)
    if fitting is None and not inputs and not call.given:
        raise ArgumentTypeError.explained(
            who,
            "it is called without arguments, and its "
            f"{name} function takes {inspect.signature(function)}",
            "Pass an array for each input of the kernel.",
        )
    if fitting is None:
        raise ArgumentTypeError.explained(
            who,
            f"{name} function {inspect.signature(function)} cannot take the call's "
            f"{len(inputs) + len(call.given)} argument(s)"
            + (f", {len(inputs)} input(s) and its attributes" if call.given else ""),
            f"Give {name} one parameter per call argument, inputs, then attributes, or fix the "
            "call.",
        )
    arguments, named = fitting
    try:
        return function(*arguments, **named)
    except Exception as error:
        if not arguments:
            raise ArgumentTypeError.explained(
                who,
                f"it is called without arguments, and then its {name} function raises "
                f"{type(error).__name__}: {error}",
                "Pass an array for each input of the kernel.",
            ) from error
        # Made here, not before every call: the text shows the arguments.
        error.add_note(f"{who}: raised by its {name} function, called with {arguments}")
        raise


@contextlib.contextmanager
def noting(note: str) -> Iterator[None]:
    """Runs code of the author's, whose exceptions get a note: they name no op."""
    try:
        yield
    except Exception as error:
        error.add_note(note)
        raise


def refusing_signature(rule: Callable[..., Any], count: int) -> inspect.Signature | None:
    """Returns the signature of a rule that cannot take so many arguments; None if it can."""
    try:
        signature = inspect.signature(rule)
    except (TypeError, ValueError):  # builtins without a signature
        return None
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return signature
    return None


def fit_arguments(
    function: Callable[..., Any],
    call: Call,
    inputs: Sequence[Any],
    before: int = 0,
    after: int = 0,
    fills: bool = True,
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
      fills: whether attributes go to parameters of other names, too.

    Returns:
      Arguments by position, and by name; None if the function cannot take them, or has an
      attribute's parameter among those of the inputs: gradients are in this order, too. With
      arguments after them, the first is `out`: None, too, if another parameter is at its position.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # builtins without a signature
        return call.spread(inputs, call.given), {}
    if call.names:
        fitting = _fit_names(signature, call, inputs, before, after, fills)
    else:  # attributes among the inputs cannot be left out
        fitting = call.spread(inputs, call.given), {}
    if fitting is not None and not (after and _is_shifted(signature, len(inputs), len(fitting[0]))):
        with contextlib.suppress(TypeError):
            signature.bind(*range(before + len(fitting[0]) + after), **fitting[1])
            return fitting
    return None


def _is_shifted(signature: inspect.Signature, inputs: int, position: int) -> bool:
    """Returns whether what comes at `position`, `out`, is not in the parameter of that name.

    An input may have that name, too: a gradient may be an op whose inputs are x, out and dout.
    """
    names = list(signature.parameters)
    return "out" in names[inputs:] and names.index("out", inputs) != position


def _fit_names(
    signature: inspect.Signature,
    call: Call,
    inputs: Sequence[Any],
    before: int,
    after: int,
    fills: bool,
) -> tuple[list[Any], dict[str, Any]] | None:
    """Returns what `fit_arguments` does, for a call whose attributes have names."""
    values = dict(zip(call.names, call.given, strict=True))
    parameters = signature.parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = {
        p.name: values[p.name] for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in values
    }
    own = {position: p.name for position, p in enumerate(positional[before:]) if p.name in values}
    if own and min(own) < len(inputs):
        return None
    others = [v for name, v in values.items() if name not in {*named, *own.values()}]
    if not fills:
        others = []
    elif not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        required = [p for p in positional if p.name not in values and p.default is p.empty]
        others = others[: max(len(required) - before - len(inputs) - after, 0)]
    arguments = [*inputs, *others]
    for position, name in own.items():
        if position <= len(arguments):
            arguments.insert(position, values[name])
        else:
            named[name] = values[name]
    return arguments, named
