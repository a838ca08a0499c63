"""Kinds of arguments of graph operators: ``dtype: tuple[int]`` in a YAML file."""

from __future__ import annotations

import dataclasses

import numpy as np

from msops._extension.handles import is_array

SCALARS = ("int", "float", "bool", "number", "str")
_ELEMENTS = ("tensor", *SCALARS)
WORDS = (
    *_ELEMENTS,
    *(f"{sequence}[{element}]" for sequence in ("tuple", "list") for element in _ELEMENTS),
    "TypeId",
)
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "number": (int, float, bool),
    "str": (str,),
}


@dataclasses.dataclass(frozen=True)
class ArgumentKind:
    """What an argument may be.

    Attributes:
      element: "tensor", "int", "float", "bool", "number" or "str".
      sequence: "tuple", "list", or "" if it is one element.
    """

    element: str
    sequence: str = ""

    @property
    def word(self) -> str:
        """As it is written in a YAML file."""
        return f"{self.sequence}[{self.element}]" if self.sequence else self.element

    @property
    def is_tensor(self) -> bool:
        """Whether it is one tensor."""
        return self == ArgumentKind("tensor")

    def takes(self, value: object) -> bool:
        """Returns whether an argument is of this kind; an int is no float, and True no int."""
        if self.sequence:
            sequence = tuple if self.sequence == "tuple" else list
            element = ArgumentKind(self.element)
            return isinstance(value, sequence) and all(map(element.takes, value))
        if self.element == "tensor":
            # numpy's numbers are numbers.
            return is_array(value) and not isinstance(value, np.generic)
        return type(value) in _TYPES[self.element]


def kind_of(word: str) -> ArgumentKind:
    """Returns the kind that one of `WORDS` names."""
    if word == "TypeId":
        return ArgumentKind("int")
    sequence, bracket, element = word.partition("[")
    return ArgumentKind(element[:-1], sequence) if bracket else ArgumentKind(word)
