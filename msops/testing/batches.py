"""`jax.vmap` of the op against loops: of one axis and of two, of all inputs and of some."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from msops._op.identity import ByValue
from msops.testing.other_inputs import other_elements, with_other_ranks
from msops.testing.report import Finding, failed, passed, skipped
from msops.testing.subject import Subject
from msops.testing.tolerances import disagreements

Mapped: TypeAlias = tuple[int, ...]
"""The inputs that are mapped, by their positions."""

_MAPPED = 3
# Elements along each axis, where there are two.
_MAPPED_TWICE = 2


def check_vmap(subject: Subject) -> Finding:
    """Checks `jax.vmap` against a loop, with every input mapped and with one at a time; nested."""
    check = "vmap"
    if subject.options.stateful:
        return skipped(check, "the op is stateful")
    if not subject.outputs().structs:
        return skipped(check, "the op has no output")
    every = tuple(range(len(subject.flat)))
    choices = list(dict.fromkeys([every, *((index,) for index in every)]))
    lines = [line for mapped in choices for line in batch_lines(subject, mapped, every)]
    has_rule = isinstance(subject.options.vmap, ByValue)
    if has_rule and not lines:
        lines = [f"a batch of 1: {line}" for line in batch_lines(subject, every, every, 1)]
    # A loop in a loop is msops's own, and takes long to compile.
    is_looped = subject.options.vmap == "sequential" and subject.options.sharding is None
    levels = [] if lines or is_looped else list(_levels(every))
    for inner, outer in levels:
        lines += _of_two(subject, inner, outer)
    # A loop is right at any rank, and so are programs of XLA but for a rule of the author's.
    vmap = subject.options.vmap
    if not lines and (has_rule or not (vmap == "sequential" or subject.is_of_xla)):
        lines = _of_other_ranks(subject, every)
    if lines:
        return failed(
            check,
            "vmap differs from a loop over its elements",
            lines,
            "Correct its vmap=: 'expand_dims' and 'broadcast_all' promise that the kernel takes "
            "leading axes; 'sequential' always works.",
        )
    nested = "; vmap of vmap as two" if levels else ""
    return passed(
        check, f"as a loop over {_MAPPED} elements, {len(choices)} choices of inputs{nested}"
    )


def batch_lines(subject: Subject, mapped: Mapped, every: Mapped, count: int = _MAPPED) -> list[str]:
    """Reports where one axis, of some inputs, has other results than a loop."""
    slices = [_elements(array, i in mapped, count) for i, array in enumerate(subject.flat)]
    if not subject.stands(list(zip(*slices, strict=True))):
        slices = [[array] * count for array in subject.flat]
    looped = [subject.run(flat) for flat in zip(*slices, strict=True)]
    expected = [np.stack(results) for results in zip(*looped, strict=True)]
    flat = [
        jnp.array(np.stack(elements) if i in mapped else elements[0])
        for i, elements in enumerate(slices)
    ]
    got = jax.vmap(subject.apply, _axes(every, mapped, 0))(*flat)
    what = "all inputs mapped" if mapped == every else f"input {mapped[0]} mapped"
    return [f"{what}: {line}" for line in disagreements(expected, [*map(np.asarray, got)])]


def _of_other_ranks(subject: Subject, every: Mapped) -> list[str]:
    """Reports where a batch of inputs of another rank, which the op takes, has other results."""
    lines = []
    for name, flat in with_other_ranks(subject.flat):
        with contextlib.suppress(Exception):  # the op does not take them, or its rule says so
            other = subject.on(flat)
            other.check_taken(flat)
            if other.stands([flat]):
                lines += [f"{name}: {line}" for line in batch_lines(other, every, every)]
    return lines


def _levels(every: Mapped) -> Iterator[tuple[Mapped, Mapped]]:
    """Yields the inputs that the inner and the outer of two axes belong to."""
    yield every, every
    if len(every) > 1:
        first, rest = every[:1], every[1:]
        yield from ((rest, first), (first, rest), (first, first))


def _of_two(subject: Subject, inner: Mapped, outer: Mapped) -> list[str]:
    """Reports where two axes have other results than two loops."""
    every = range(len(subject.flat))
    count = _MAPPED_TWICE
    grid = list(itertools.product(range(count), repeat=2))

    def element(i: int, first: int, second: int) -> np.ndarray:
        number = count * first * (i in inner) + second * (i in outer)
        return _elements(subject.flat[i], True, count * count)[number]

    cases = [tuple(element(i, *place) for i in every) for place in grid]
    if not subject.stands(cases):
        cases = [subject.flat] * len(grid)
    looped = [subject.run(flat) for flat in cases]
    expected = [
        np.stack(results).reshape(count, count, *results[0].shape)
        for results in zip(*looped, strict=True)
    ]
    flat = []
    for i in every:
        stacked = np.stack([case[i] for case in cases])
        stacked = stacked.reshape(count, count, *stacked.shape[1:])
        # An input without one of the axes is the same along it.
        stacked = stacked if i in outer else stacked[:, 0]
        flat.append(jnp.array(stacked if i in inner else stacked[0]))
    # The outer axis is the second, where an input has both.
    axes = [(1 if i in inner else 0) if i in outer else None for i in every]
    nested = jax.vmap(jax.vmap(subject.apply, _axes(every, inner, 0)), axes, out_axes=1)
    got = [*map(np.asarray, nested(*flat))]
    return [f"vmap of vmap: {line}" for line in disagreements(expected, got)]


def _axes(every: Sequence[int], mapped: Mapped, axis: int) -> list[int | None]:
    return [axis if i in mapped else None for i in every]


def _elements(array: np.ndarray, is_mapped: bool, count: int) -> list[np.ndarray]:
    """Returns what a loop gets of an input: other elements if it is mapped."""
    return other_elements(array, count) if is_mapped else [array] * count
