"""Other values of an op's attributes than those that it was called with."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from msops.testing.code_constants import whole_numbers_of, words_of
from msops.testing.subject import Subject

# Of an axis most values make no sense: a kernel in a library may then write nothing.
_NAMES_OF_AXES = ("axis", "axes", "dim", "perm")
# Whole numbers at which counts, steps and indices differ, and how many of the code are tried.
_SMALL, _OF_CODE, _LARGEST = (1, 2, 3, 4, 5), 4, 1000
# A text that no author thought of.
_UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True)
class Draw:
    """The op with another value of one attribute.

    Attributes:
      name: the attribute and the value, in words.
      value: the value.
      subject: the op.
      has_sense: whether any such value has a meaning, or the kernel has to refuse it.
      is_near: whether what the kernel takes has to be handled. Of whole numbers some are drawn only
        to see whether there is a gap between those that it takes.
    """

    name: str
    value: Any
    subject: Subject
    has_sense: bool
    is_near: bool

    @property
    def is_whole(self) -> bool:
        """Whether the value is a whole number."""
        return isinstance(self.value, int) and not isinstance(self.value, bool)


def draws_of(subject: Subject) -> Iterator[tuple[Any, list[Draw]]]:
    """Yields the value of each attribute, and the op with others."""
    given = subject.call.given
    in_library = subject.native() is not None
    for index, (name, value) in enumerate(zip(subject.call.names, given, strict=False)):
        if in_library and any(word in name.lower() for word in _NAMES_OF_AXES):
            continue
        near = _near(value)
        if isinstance(value, str):
            near = [word for word in (*words_of(subject), _UNKNOWN) if word not in (value, name)]
        draws = []
        for other in (*near, *_around(subject, value, near)):
            changed = (*given[:index], other, *given[index + 1 :])
            draws.append(
                Draw(
                    f"{name}={other!r}",
                    other,
                    subject.on(subject.flat, changed),
                    has_sense=isinstance(value, (bool, str)),
                    is_near=other in near,
                )
            )
        if draws:
            yield value, draws


def _near(value: Any) -> list[Any]:
    """Returns values of the same kind that an op may be expected to handle; none for text."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, 2 * value + 3]
    if isinstance(value, float):
        return [2 * value + 1, value / 2, -value - 1]
    if isinstance(value, tuple):
        return list(dict.fromkeys(_changed(value)))
    return []


def _changed(value: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yields lists of which one number is another, or of the other order."""
    if all(isinstance(item, (bool, int, float)) for item in value):
        for index, item in enumerate(value):
            other = not item if isinstance(item, bool) else item + 1
            yield (*value[:index], other, *value[index + 1 :])
        if value != value[::-1]:
            yield tuple(value[::-1])


def _around(subject: Subject, value: Any, near: Sequence[Any]) -> list[int]:
    """Returns more whole numbers, those that the code names among them."""
    if isinstance(value, bool) or not isinstance(value, int):
        return []
    known = {value, *near}
    of_code = [n for n in whole_numbers_of(subject) if n not in (*known, *_SMALL, 0)]
    around = [*_SMALL, *[n for n in of_code if abs(n) <= _LARGEST][:_OF_CODE], 0, -1]
    return [n for n in around if n not in known]
