"""Points at which a gradient is compared, other than the one that opcheck was given.

A rule that its author tried on a few positive numbers may be wrong for negative or large ones, for
one element or for many, for another rank, or for another attribute.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from msops.testing.bad_inputs import no_longer_square, with_last_integer
from msops.testing.code_constants import words_of
from msops.testing.finite_differences import REAL, average_size
from msops.testing.lists import with_longer_attributes, with_other_lists
from msops.testing.other_inputs import grown, resized, stretched, with_many_rows, with_other_ranks
from msops.testing.subject import Subject, structs_of

# Elements of the largest array: a few more than the blocks have in which kernels work.
_MANY = 150
_TOO_MANY = 20_000
# Inputs of which each alone has one place for many.
_ALONE = 4
# Elements of the largest array where one axis is long, and the most of any array.
_LONG, _MOST = 8192, 40_000
# How far beyond the largest number that has a square.
_BEYOND = 4.0

Change: TypeAlias = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def other_points(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """Yields the op on inputs, or with attributes, that the author did not give, and a name.

    The op may not take them.
    """
    for name, change in _CHANGES.items():
        yield name, _redrawn(subject, subject.flat, change)
    given = subject.call.given
    numbers = [n for n in given if isinstance(n, int) and not isinstance(n, bool)]
    for name, flat in (
        *_other_sizes(subject.flat),
        *with_other_ranks(subject.flat),
        *no_longer_square(subject.flat),
        # One may stand for what is left out, or count from the end.
        *with_last_integer(subject.flat, (-1, *numbers)),
    ):
        yield name, _redrawn(subject, flat, _like)
    yield from subject.with_other_attributes()
    yield from _with_other_words(subject)
    yield from with_longer_attributes(subject)
    for name, other in with_other_lists(subject):
        yield name, _redrawn(other, other.flat, _like)


def points_of_one(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """Yields the op on inputs of which one has a single place where others have many, and a name.

    One number may be meant for all rows then; the op may not take that.
    """
    for index, array in enumerate(subject.flat[:_ALONE]):
        others = {
            n for other in (*subject.flat[:index], *subject.flat[index + 1 :]) for n in other.shape
        }
        for extent in sorted({n for n in array.shape if n > 1 and n in others}):
            flat = (*subject.flat[:index], resized(array, {extent: 1}), *subject.flat[index + 1 :])
            yield f"input {index} {list(flat[index].shape)}", _redrawn(subject, flat, _like)


def huge_point(subject: Subject) -> Subject:
    """Returns the op on numbers whose squares overflow; of what comes of them few slopes count."""
    return _redrawn(subject, subject.flat, _huge)


def _with_other_words(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """Yields the op with each text of its code for each attribute that is one."""
    given = subject.call.given
    for index, (name, value) in enumerate(zip(subject.call.names, given, strict=False)):
        for word in words_of(subject) if isinstance(value, str) else ():
            if word not in (value, name):
                changed = (*given[:index], word, *given[index + 1 :])
                yield f"{name}={word!r}", subject.on(subject.flat, changed)


def long_points(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """Yields the op on inputs of which one axis is long, or is added, and a name."""

    def fits(flat: tuple[np.ndarray, ...]) -> bool:
        shapes = [s.shape for s in (*structs_of(flat), *subject.outputs(flat).structs)]
        return all(math.prod(shape) <= _MOST for shape in shapes)

    with contextlib.suppress(Exception):  # it does not take them
        for name, flat in stretched(subject.flat, _LONG, fits):
            yield name, _redrawn(subject, flat, _like)
    for name, flat in with_many_rows(subject.flat):
        yield name, _redrawn(subject, flat, _like)


def _redrawn(subject: Subject, flat: tuple[np.ndarray, ...], change: Change) -> Subject:
    rng = np.random.default_rng(1)
    return subject.on(
        tuple(np.asarray(change(x, rng), x.dtype) if x.dtype in REAL else x for x in flat)
    )


def _like(array: np.ndarray, rng: np.random.Generator, factor: float = 1.0) -> np.ndarray:
    """Returns numbers of the same signs and about as large, of which no two are equal.

    None is so close to 0 that a difference reaches beyond: there many functions have a kink.
    """
    average = average_size(array) or 1
    sizes = np.maximum(np.where(np.isfinite(array), np.abs(array), 0), average / 2)
    return np.where(array < 0, -factor, factor) * sizes * rng.uniform(0.9, 1.1, array.shape)


def _huge(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    root = math.sqrt(np.finfo(array.dtype).max)
    return _like(array, rng, _BEYOND * root / (average_size(array) or 1))


def _negative(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return -np.abs(_like(array, rng))


def _both_signs(array: np.ndarray, rng: np.random.Generator, factor: float = 1.0) -> np.ndarray:
    return _like(array, rng, factor) * rng.choice([-1.0, 1.0], array.shape)


def _zero(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.zeros_like(array)


# Those of both signs leave the domain of some functions, and show nothing then.
_CHANGES: dict[str, Change] = {
    "negative": _negative,
    "both signs": _both_signs,
    "zero": _zero,
    "small": functools.partial(_like, factor=1.3e-3),
    "large": functools.partial(_like, factor=37.0),
    "large, both signs": functools.partial(_both_signs, factor=37.0),
    "very large": functools.partial(_like, factor=1.1e4),
    "very large, both signs": functools.partial(_both_signs, factor=1.1e4),
}


def _other_sizes(flat: tuple[np.ndarray, ...]) -> Iterator[tuple[str, tuple[np.ndarray, ...]]]:
    """Yields arrays of which all extents are 1, or one is, and such of many elements."""
    extents = {n for array in flat for n in array.shape if n > 1}
    if not extents:
        return
    yield "size 1", tuple(resized(array, dict.fromkeys(extents, 1)) for array in flat)
    for extent in sorted(extents) if len(extents) > 1 else ():
        yield f"{extent} -> 1", tuple(resized(array, {extent: 1}) for array in flat)
    larger = grown(flat, _MANY, _TOO_MANY)
    if larger is not None:
        yield f"{max(array.size for array in larger)} elements", larger
