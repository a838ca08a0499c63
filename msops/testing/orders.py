"""Results that follow the order of their inputs.

Where inputs in another order along an axis give results in that order, or the same ones, no place
along that axis is special: a function of each element or of each row, a sum, a product of matrices.
What holds at the size that an op was given and at others has to hold at all.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from msops.testing.other_inputs import is_real
from msops.testing.subject import Subject
from msops.testing.tolerances import close, largest
from msops.testing.trials import Arrays, Trial, results_of

Axes: TypeAlias = tuple[tuple[int, ...], ...]

# At how many sizes beside the given one results have to follow before that is taken for a rule.
_ALIKE = 2
# Further orders in which they have to follow: of few places one may be right by chance.
_SEEDS = (1, 2)
# Fewer places are too few to follow an order.
_LEAST = 2
# Elements of the largest arrays: of long sums the order counts.
_MOST = 20_000


@dataclasses.dataclass(frozen=True)
class Reordering:
    """What is put in another order: the axes of one extent, or all elements.

    Attributes:
      extent: that of the axes; 0 for all elements.
      axes, axes_of_results: which these are, of each input and of each result.
      seed: which order it is.
    """

    extent: int
    axes: Axes = ()
    axes_of_results: Axes = ()
    seed: int = 0

    def __str__(self) -> str:
        return f"the axis of {self.extent}" if self.extent else "all elements"

    @property
    def is_single(self) -> bool:
        """Whether each result has one axis of places, and no input has several."""
        return self.is_of_single_inputs and max(map(len, self.axes_of_results), default=1) <= 1

    @property
    def is_of_single_inputs(self) -> bool:
        """Whether each result has axes of places, and no input has several."""
        return not self.extent or (
            0 not in map(len, self.axes_of_results) and max(map(len, self.axes)) == 1
        )

    def inputs(self, flat: Arrays, more: Sequence[int] = (), kept: int | None = None) -> Arrays:
        """Returns inputs in another order, but for one place that keeps its own.

        Each has so many more axes ahead than the one given.
        """
        steps = more or (0,) * len(flat)
        axes = [tuple(axis + n for axis in own) for own, n in zip(self.axes, steps, strict=False)]
        return tuple(
            self._ordered(array, own, kept)
            for array, own in zip(flat, axes or [()] * len(flat), strict=True)
        )

    def results(self, results: Arrays) -> Arrays:
        """Returns results in the same order."""
        axes = self.axes_of_results or [()] * len(results)
        return tuple(map(self._ordered, results, axes))

    def moved_result(self, result: np.ndarray, index: int, kept: Sequence[int]) -> np.ndarray:
        """Returns a result in the same order, of which some axes are those of the one given."""
        own = self.axes_of_results[index] if self.extent else ()
        return self._ordered(result, tuple(kept[axis] for axis in own))

    def _ordered(
        self, array: np.ndarray, axes: Sequence[int], kept: int | None = None
    ) -> np.ndarray:
        if not self.extent:
            return array.reshape(-1)[_order(array.size, self.seed)].reshape(array.shape)
        for axis in axes:
            array = array.take(_order(array.shape[axis], self.seed, kept), axis)
        return array


def _order(count: int, seed: int, kept: int | None = None) -> np.ndarray:
    if kept is not None:
        rest = np.delete(np.arange(count), kept)
        return np.insert(rest[_order(count - 1, seed)], kept % count, kept % count)
    order = np.random.default_rng(seed).permutation(count)
    return np.roll(order, 1) if (order == np.arange(count)).all() else order


@dataclasses.dataclass(frozen=True)
class Case:
    """Inputs and their results; and the results of inputs in other orders.

    Attributes:
      name: of the inputs.
      more: how many axes each has more than the one given.
      ranks: how many axes the results of those given have.
    """

    name: str
    flat: Arrays
    results: Arrays
    more: tuple[int, ...]
    ranks: tuple[int, ...]
    ordered: dict[Reordering, Arrays]

    @property
    def size(self) -> int:
        """How many elements the largest input has."""
        return max(array.size for array in self.flat)

    def with_one(self, places: Reordering, results: Arrays) -> Case:
        """Returns it with the results of one other order alone."""
        return dataclasses.replace(self, ordered={places: results})

    def moves(self, places: Reordering, index: int, scale: float) -> bool:
        """Returns whether a result is in the order of its inputs.

        More axes may be ahead, as those of its inputs are, behind, where axes are reversed, or
        between those of two inputs.
        """
        own, result = self.ordered[places][index], self.results[index]
        rank = self.ranks[index] if places.extent else 0
        choices = itertools.combinations(range(result.ndim), rank)
        ways = (places.moved_result(result, index, kept) for kept in choices)
        return any(self._is_close(moved, own, scale) for moved in ways)

    def stays(self, places: Reordering, index: int, scale: float) -> bool:
        """Returns whether a result is the same in any order of its inputs."""
        return self._is_close(self.results[index], self.ordered[places][index], scale)

    def _is_close(self, left: np.ndarray, right: np.ndarray, scale: float) -> bool:
        return bool(close(left, right, scale, self.size).all())


def ordered_cases(subject: Subject, trials: Sequence[Trial], is_safe: bool) -> list[Case]:
    """Returns the inputs given, and those of trials that have results, with what comes of both.

    Raises:
      HangError: a call did not end in time.
    """
    all_places = list(_places_of(subject))
    if subject.options.stateful or not all_places:
        return []
    given = subject.flat
    taken = {"the size given": (given, (0,) * len(given))}
    for trial in trials:
        more = tuple(own.ndim - array.ndim for own, array in zip(trial.flat, given, strict=True))
        fit = _may_fit_as_given(given, more) and _keeps_unlike_integers(given, trial.flat)
        if trial.results and fit and max(a.size for a in trial.flat) <= _MOST:
            taken[trial.inputs] = trial.flat, more
    wanted: list[tuple[str, Reordering | None, Arrays]] = []
    for name, (flat, more) in taken.items():
        wanted.append((name, None, flat))
        # Where axes are no longer as long as others, other pairs of them may belong together.
        has_axes = min(more) >= 0 and _keeps_squares(given, flat)
        for places in all_places:
            if has_axes or not places.extent:
                ordered = places.inputs(flat, more=more)
                if any(map(_differ, flat, ordered)):
                    wanted.append((name, places, ordered))
    found = results_of(subject, [flat for *_, flat in wanted], is_safe)
    results = {(name, key): own for (name, key, _), own in zip(wanted, found, strict=True) if own}
    ranks = tuple(len(struct.shape) for struct in subject.outputs().structs)
    cases = []
    for name, (flat, more) in taken.items():
        unmoved = results.get((name, None))
        if unmoved and _have_as_many_more(unmoved, ranks, more):
            moved = {key: results[name, key] for key in all_places if (name, key) in results}
            cases.append(Case(name, flat, unmoved, more, ranks, moved))
    return cases if cases and cases[0].flat is given else []


def _may_fit_as_given(given: Arrays, more: Sequence[int]) -> bool:
    """Returns whether inputs of so many more axes may belong together as those given do.

    With an axis more in each, inputs of unlike ranks may fit together otherwise.
    """
    if len(set(more)) == 1:
        return not any(more) or len({array.ndim for array in given}) == 1
    return min(more) == 0


def _have_as_many_more(results: Arrays, ranks: Sequence[int], more: Sequence[int]) -> bool:
    """Returns whether each result has as many axes more as its inputs, some of which have none."""
    return all(result.ndim - rank in more for result, rank in zip(results, ranks, strict=True))


def _keeps_unlike_integers(given: Arrays, flat: Arrays) -> bool:
    """Returns whether integers that differ do so still, as far as there are as many places.

    Indices that had to be changed to fit may be those of one place, where order counts.
    """
    return all(
        len(np.unique(array)) >= min(array.size, len(np.unique(own)))
        for own, array in zip(given, flat, strict=True)
        if np.issubdtype(own.dtype, np.integer)
    )


def _keeps_squares(given: Arrays, flat: Arrays) -> bool:
    """Returns whether axes that are as long as others are so still; axes ahead may be new."""
    pairs = {
        (own, n)
        for left, right in zip(given, flat, strict=True)
        for own, n in zip(left.shape, right.shape[right.ndim - left.ndim :], strict=False)
    }
    return len(pairs) == len({own for own, _ in pairs})


def _places_of(subject: Subject) -> Iterator[Reordering]:
    shapes = [array.shape for array in subject.flat]
    of_results = [struct.shape for struct in subject.outputs().structs]
    for extent in sorted({n for shape in shapes for n in shape if n >= _LEAST}):
        yield Reordering(extent, _axes_of(shapes, extent), _axes_of(of_results, extent))
    if len({*shapes, *of_results}) == 1 and len(shapes[0]) > 1:
        yield Reordering(0)


def _axes_of(shapes: Sequence[tuple[int, ...]], extent: int) -> Axes:
    return tuple(tuple(axis for axis, n in enumerate(shape) if n == extent) for shape in shapes)


def _differ(left: np.ndarray, right: np.ndarray) -> bool:
    return left.tobytes() != right.tobytes()


def is_of_elements(cases: Sequence[Case]) -> bool:
    """Returns whether all results have the order of all elements, at the size given."""
    return bool(cases and cases[0].ordered) and all(
        cases[0].moves(places, index, 0.0)
        for places in cases[0].ordered
        for index in range(len(cases[0].results))
    )


def out_of_order(subject: Subject, cases: Sequence[Case], is_safe: bool) -> list[str]:
    """Reports where results do not follow the order of inputs as they do at other sizes.

    Raises:
      HangError: a call did not end in time.
    """
    return [
        line
        for places in (cases[0].ordered if cases else ())
        for line in _unlike(subject, places, cases, is_safe)
    ]


def _unlike(
    subject: Subject, places: Reordering, cases: Sequence[Case], is_safe: bool
) -> list[str]:
    """Reports which results follow at the size given and at others, but not at all."""
    given, *others = (case for case in cases if places in case.ordered)
    lines = []
    for index, result in enumerate(given.results):
        scale = largest(result)
        moves, stays = (holds(given, places, index, scale) for holds in (Case.moves, Case.stays))
        # A constant result follows no order and every order.
        has_places = not places.extent or places.axes_of_results[index]
        if not (moves or stays) or (
            has_places and not _differ(result, places.results(given.results)[index])
        ):
            continue
        holds = Case.moves if moves else Case.stays
        unlike = [case for case in others if not holds(case, places, index, scale)]
        if unlike and len(others) - len(unlike) >= _ALIKE:
            orders = [dataclasses.replace(places, seed=seed) for seed in _SEEDS]
            again = results_of(subject, [order.inputs(given.flat) for order in orders], is_safe)
            if all(
                results and holds(given.with_one(order, results), order, index, scale)
                for order, results in zip(orders, again, strict=True)
            ):
                unlike = [
                    case
                    for case in unlike
                    if not _follows_elsewhere(subject, case, places, is_safe, holds, index)
                ]
                lines += [
                    f"{case.name}: output {index} does not follow the order of {places}, as it "
                    "does at other sizes"
                    for case in unlike
                ]
    return lines


def _follows_elsewhere(
    subject: Subject,
    case: Case,
    places: Reordering,
    is_safe: bool,
    holds: Callable[[Case, Reordering, int, float], bool],
    index: int,
) -> bool:
    """Returns whether a result follows where no numbers are equal, or axes count from the first.

    Of equal numbers the first may count, and the first axis is another one with more ahead.
    """
    flat = tuple(map(_without_ties, case.flat))
    orders = [places.inputs(flat, more=more) for more in dict.fromkeys((case.more, ()))]
    results, *found = results_of(subject, [flat, *orders], is_safe)
    if not results:
        return False
    again = dataclasses.replace(case, flat=flat, results=results)
    scale = largest(results[index])
    return any(own and holds(again.with_one(places, own), places, index, scale) for own in found)


def _without_ties(array: np.ndarray) -> np.ndarray:
    """Returns numbers of which no two are equal, but for rounding; integers as they are."""
    if not is_real(array):
        return array
    ranks = np.random.default_rng(0).permutation(array.size).reshape(array.shape)
    return (array * (1 + ranks / (64 * array.size))).astype(array.dtype)
