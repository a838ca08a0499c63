"""Describes for the author of a kernel what its loops became."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msops._loops.ir.nodes import Location
from msops._loops.ir.walk import loads
from msops._loops.to_jax.raising.nests import Nest
from msops._loops.to_jax.raising.steps import (
    Accumulate,
    Branch,
    Clear,
    Contract,
    Convolve,
    Loop,
    Map,
    Pool,
    Recur,
    Reduce,
    Step,
    VectorStep,
)

_OPERATIONS = {
    "add": "sum", "mul": "product", "min": "minimum", "max": "maximum", "land": "all",
    "lor": "any", "and": "bitwise and", "or": "bitwise or", "xor": "bitwise xor",
}  # fmt: skip


def describe(steps: Sequence[Step]) -> tuple[str, ...]:
    """Returns a line per step; those of a loop that stays follow it, indented."""
    return tuple(_lines(steps, 0))


def steps_text(steps: Sequence[Step]) -> str:
    """Returns a line for each array operation, with the axes of its arrays in their order."""
    return "\n".join(_lines(steps, 0, _axes))


def _axes(step: VectorStep) -> str:
    return f" @axes({', '.join(axis.var for axis in step.nest.ordered_axes)})"


def _lines(
    steps: Sequence[Step], depth: int, mark: Callable[[VectorStep], str] = lambda step: ""
) -> Iterable[str]:
    indent = "  " * depth
    for step in steps:
        match step:
            case Loop(loop=loop, axis=axis, body=body):
                trips = "a number of" if axis is None else str(axis.extent)
                where = _with_line(f"loop {loop.var}", loop.location)
                yield f"{indent}not raised well: {where} is order-bound, {trips} steps one by one"
                yield from _lines(body, depth + 1, mark)
            case Branch(branch=branch, then=then, otherwise=otherwise):
                yield f"{indent}{_with_line('condition', branch.location)}: one branch is run"
                yield from _lines((*then, *otherwise), depth + 1, mark)
            case Clear(buffer=buffer):
                yield f"{indent}buffer {buffer}: set to 0"
            case _:
                what = f"{_operation(step)}{_masked(step.nest)}{mark(step)}"
                yield f"{indent}{_heading(step.nest)}: {what}"


def _with_line(what: str, location: Location | None) -> str:
    return f"{what} (line {location.line})" if location else what


def _heading(nest: Nest) -> str:
    names = ", ".join(axis.var for axis in nest.axes)
    loops = (
        f"loop{'s' * (len(nest.axes) > 1)} {names}" if names else f"store to {nest.store.buffer}"
    )
    return _with_line(loops, nest.store.location)


def _operation(step: VectorStep) -> str:
    match step:
        case Map(nest=nest):
            return " and ".join(_accesses(nest)) or "elementwise"
        case Reduce(nest=nest, op=op, over=over):
            scattered = ["scatter"] if nest.is_indirect(nest.store) else []
            reduced = [f"reduction over {', '.join(over)}"] if over else []
            return f"{_OPERATIONS[op]}, {' and '.join(reduced + scattered) or 'scatter'}"
        case Contract():
            return "contraction, dot_general"
        case Convolve(windows=windows):
            return f"convolution of {len(windows)} dimension{'s' * (len(windows) > 1)}"
        case Pool(op=op):
            return f"{_OPERATIONS[op]} over windows, reduce_window"
        case Accumulate(op=op, axis=axis):
            return f"cumulative {_OPERATIONS[op]} along {axis}"
        case Recur(axis=axis):
            return f"linear recurrence along {axis}, associative_scan"


def _accesses(nest: Nest) -> Iterable[str]:
    if any(map(nest.is_indirect, loads(nest.store.value))):
        yield "gather"
    if nest.is_indirect(nest.store):
        yield "scatter"


def _masked(nest: Nest) -> str:
    return ", masked" if nest.mask else ""
