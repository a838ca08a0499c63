"""Sliding windows: indices of the form stride * y + dilation * k + c, as an axis of their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from msops._loops.analysis.affine import Affine, affine
from msops._loops.ir.algebra import binary, integer
from msops._loops.ir.nodes import INDEX_DTYPE, Binary, Expr, Load, Var
from msops._loops.ir.ranges import Range
from msops._loops.ir.walk import expressions, map_operands, variables


@dataclass(frozen=True)
class Window:
    """A pair of axes that only appear together, as stride * output + dilation * tap.

    Attributes:
      output: the axis that is kept.
      tap: the axis that is reduced.
      stride: coefficient of `output`, at least 1.
      dilation: coefficient of `tap`, not 0.
      axis: the name of stride * output + dilation * tap as an axis of its own.
    """

    output: str
    tap: str
    stride: int
    dilation: int
    axis: str

    def interval(self, ranges: Mapping[str, Range]) -> Range:
        """Returns the least and the greatest value of the new axis."""
        (first, last), taps = ranges[self.output], ranges[self.tap]
        ends = [self.dilation * tap for tap in taps]
        return self.stride * first + min(ends), self.stride * last + max(ends)


def find_windows(
    expr: Expr, kept: Collection[str], reduced: Collection[str]
) -> tuple[tuple[Window, ...], Expr] | None:
    """Returns the windows in an expression, and the expression over the windows' own axes.

    None: there are none, or an axis of one appears in another way too.
    """
    windows: dict[tuple[str, str], Window] = {}
    for function in _index_functions(expr, {*kept, *reduced}):
        outputs = [term for term in function.along if term[0] in kept]
        taps = [term for term in function.along if term[0] in reduced]
        if len(outputs) == 1 and len(taps) == 1 and outputs[0][1] > 0:
            (output, stride), (tap, dilation) = outputs[0], taps[0]
            window = Window(output, tap, stride, dilation, f"{output}+{tap}")
            if windows.setdefault((output, tap), window) != window:
                return None
    found = tuple(windows.values())
    members = [axis for window in found for axis in (window.output, window.tap)]
    if not found or len(members) != len(set(members)):
        return None
    rewritten = _over_windows(expr, found, {*kept, *reduced})
    return None if variables(rewritten) & set(members) else (found, rewritten)


def _index_functions(expr: Expr, axes: set[str]) -> Iterator[Affine]:
    for part in expressions(expr):
        if isinstance(part, Load):
            for index in part.indices:
                function = affine(index, axes)
                if function is not None:
                    yield function


def _over_windows(expr: Expr, windows: tuple[Window, ...], axes: set[str]) -> Expr:
    """Returns the expression with every whole linear function of windows rewritten."""
    names = {axis for window in windows for axis in (window.output, window.tap)}
    if isinstance(expr, Binary) and expr.op in ("eq", "ne", "lt", "le", "gt", "ge"):
        moved = _one_sided(expr, windows, axes)
        if moved is not None:
            return moved
    if expr.dtype == INDEX_DTYPE and not isinstance(expr, Load):
        function = affine(expr, axes)
        if function is not None and not names.isdisjoint(axis for axis, _ in function.along):
            return _rewritten(function, windows) or expr
    return map_operands(expr, lambda part: _over_windows(part, windows, axes))


def _one_sided(expr: Binary, windows: tuple[Window, ...], axes: set[str]) -> Expr | None:
    """Returns a comparison such as y >= 1 - k as one of a function of windows with 0, or None."""
    if expr.left.dtype != INDEX_DTYPE:
        return None
    left, right = affine(expr.left, axes), affine(expr.right, axes)
    if left is None or right is None:
        return None
    difference = _rewritten(left - right, windows)
    return difference and dataclasses.replace(expr, left=difference, right=integer(0))


def _rewritten(function: Affine, windows: tuple[Window, ...]) -> Expr | None:
    """Returns the function in terms of the windows' axes; None if it is none of them."""
    terms = dict(function.along)
    parts: list[tuple[Expr, int]] = list(function.scalars)
    for window in windows:
        if window.output not in terms and window.tap not in terms:
            continue
        factor, left = divmod(terms.pop(window.output, 0), window.stride)
        if left or terms.pop(window.tap, 0) != factor * window.dilation:
            return None
        parts.append((Var(window.axis), factor))
    parts += [(Var(axis), coefficient) for axis, coefficient in terms.items()]
    total: Expr = integer(function.constant)
    for part, coefficient in parts:
        scaled: Expr = binary("mul", integer(coefficient), part)
        total = binary("add", total, scaled)
    return total
