"""Lists of another length than those given: attributes that are one, and lists of arrays.

An op that takes a list takes more than one length, or has to refuse the others. What it takes has
to count, and its rule has to take it, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from msops.testing.other_inputs import is_real, rolled
from msops.testing.subject import Subject
from msops.testing.tolerances import disagreements, unequal
from msops.testing.trials import Arrays, Trial, TryOut, results_of, those_that_end

# How many arrays more: where two belong together, one more is none.
_MORE = (1, 2)


def with_longer_attributes(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """Yields the op with lists of numbers that are longer, and shorter, and that in words.

    Only if one number more has other results: some lists have a length that is fixed.
    """
    given = subject.call.given
    for index, (name, value) in enumerate(zip(subject.call.names, given, strict=False)):
        if not (isinstance(value, tuple) and value and all(isinstance(x, float) for x in value)):
            continue
        longer, shorter = (*value, 2 * value[-1] + 1), value[:-1]
        for other in (longer, shorter) if shorter else (longer,):
            changed = subject.on(subject.flat, (*given[:index], other, *given[index + 1 :]))
            if other is longer and not _has_other_results(subject, changed):
                break
            yield f"{name}={other!r}", changed


def _has_other_results(subject: Subject, other: Subject) -> bool:
    (own,), (results,) = (results_of(op, [op.flat], True) for op in (subject, other))
    if not own or not results or [r.shape for r in own] != [r.shape for r in results]:
        return False
    return bool(disagreements(own, results))


def with_other_lists(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """Yields the op on lists of arrays that are longer, or one shorter, and that in words."""
    for place, start, count in _lists_of(subject):
        arrays = list(subject.flat[start : start + count])
        more = list(arrays)
        while len(more) < count + max(_MORE):
            more.append(rolled(more[-1]) if len(more) % 2 else more[-1])
        for length in (*(count + n for n in _MORE), *([count - 1] if count > 1 else [])):
            layout = (*subject.call.layout[:place], length, *subject.call.layout[place + 1 :])
            flat = (*subject.flat[:start], *more[:length], *subject.flat[start + count :])
            yield f"a list of {length}", subject.with_layout(layout, flat)


def _lists_of(subject: Subject) -> Iterator[tuple[int, int, int]]:
    """Yields per list its place among arguments, its first array, and how many it has."""
    start = 0
    for place, slot in enumerate(subject.call.layout):
        count = 1 if slot is None else slot if isinstance(slot, int) else slot.num_leaves
        if isinstance(slot, int) and count and not subject.call.numbers:
            yield place, start, count
        start += count


def list_trials(subject: Subject, is_safe: bool) -> list[Trial]:
    """Tries the op on lists of other lengths."""
    cases = [TryOut(name, op, op.flat, may_raise=True) for name, op in with_other_lists(subject)]
    return those_that_end(cases, is_safe)


def unused_lines(subject: Subject, is_safe: bool) -> list[str]:
    """Reports lists of which the last array changes no result, if each one given does.

    Attributes may say how many count.
    """
    lists = list(_lists_of(subject))
    is_fixed = any(isinstance(value, (int, tuple)) for value in subject.call.given)
    if len(lists) != 1 or is_fixed or subject.options.stateful:
        return []
    _, start, count = lists[0]
    if not all(is_real(a) and a.size for a in subject.flat[start : start + count]):
        return []
    if not all(_counts(subject, start + i, is_safe) for i in range(count)):
        return []
    longer = [op for _, op in with_other_lists(subject) if len(op.flat) > len(subject.flat)]
    lasts = [start + count + n - 1 for n in _MORE]
    if any(_counts(op, last, is_safe) is not False for op, last in zip(longer, lasts, strict=True)):
        return []
    return [f"a list of {count + n}: its last array changes no result" for n in _MORE]


def _counts(subject: Subject, index: int, is_safe: bool) -> bool | None:
    """Returns whether other numbers in one array have other results; None if they are refused."""
    own = subject.flat[index]
    cases: list[Arrays] = [subject.flat]
    for other in _far_from(own):
        cases.append((*subject.flat[:index], other, *subject.flat[index + 1 :]))
    first, *others = results_of(subject, cases, is_safe)
    if first is None or any(other is None for other in others):
        return None
    return any(other is not None and unequal(first, other) for other in others)


def _far_from(array: np.ndarray) -> Sequence[np.ndarray]:
    """Returns larger numbers than those of an array, and smaller ones."""
    reach = 2 * float(np.max(np.abs(array), initial=0)) + 1
    return [(array + sign * reach).astype(array.dtype) for sign in (1, -1)]
