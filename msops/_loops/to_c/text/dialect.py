"""Differences between C and CUDA C in names and expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from msops._loops.ir.functions import Function


@dataclass(frozen=True)
class Declaration:
    """A type or a function that generated code uses.

    Attributes:
      name: its name in the code.
      definitions: the definitions before its use, by name and in this order; empty if the compiler
        has it.
    """

    name: str
    definitions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Dialect:
    """C or CUDA C.

    Attributes:
      inline: the words before a helper function.
      reserved: words that are taken, beside those of C and C++.
      float16: the type of a float16 in an array.
      from_float16: converts one to float.
      to_float16: converts a float to one.
      float_form: returns the form on floats of a row of the table of functions.
      integer_form: returns that on integers.
      not_finite: returns a NaN or an infinity of a dtype.
      rare: the form of a condition that hardly ever holds; `{}` stands for the condition.
      function: returns code of our own for a function and a dtype, beside vectors or not; None if
        the form in the table does.
    """

    inline: str
    reserved: frozenset[str]
    float16: Declaration
    from_float16: Declaration
    to_float16: Declaration
    float_form: Callable[[Function], str]
    integer_form: Callable[[Function], str]
    not_finite: Callable[[float, str], str]
    rare: str
    function: Callable[[str, str, bool], Declaration | None]
