"""Which loops may run in any order, and why the others may not.

    serial i in 0 .. 4 {                    parallel i in 0 .. 4 {
      serial j in 0 .. 8 {          ->        reduction j in 0 .. 8 {
        s[i] = s[i] + a[i, j]                   s[i] = s[i] + a[i, j]

A loop that carries no dependence is parallel; one that carries dependences between updates of one
kind alone is a reduction. So is a loop over one update whose terms read its own array elsewhere,
``b[i, j] = b[i, j] - b[i, k] * b[j, k]``, if it writes none of what they read. The author's
``parallel`` and ``vectorize`` are honoured over dependences that may not exist, and refused over
those that do.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msops._loops.analysis.findings import LoopFinding
from msops._loops.analysis.polyhedral.accesses import Access
from msops._loops.analysis.polyhedral.dependences import Dependence, dependences
from msops._loops.analysis.polyhedral.library import TooComplex
from msops._loops.analysis.polyhedral.promises import certain_dependences
from msops._loops.analysis.updates import sum_of
from msops._loops.ir.nodes import For, Kernel, Location, LoopKind, Store
from msops._loops.ir.text import expr_text
from msops._loops.ir.walk import statements, visit

_PROMISES = ("parallel", "vectorize")


@dataclass(frozen=True)
class Kinds:
    """The kinds of the loops of a kernel.

    Attributes:
      by_variable: the kind of each loop.
      explanation: a line per loop, in the order of the text.
      findings: keywords of the author that were refused.
    """

    by_variable: Mapping[str, LoopKind]
    explanation: tuple[str, ...]
    findings: tuple[LoopFinding, ...]


def find_kinds(kernel: Kernel) -> Kinds:
    """Returns the kind of each loop of a kernel, and why."""
    loops = [stmt for stmt in statements(kernel.body) if isinstance(stmt, For)]
    try:
        found = dependences(kernel)
    except TooComplex:
        unknown = "serial, because its dependences are too complex to analyse"
        lines = tuple(f"{_title(loop)}: {unknown}" for loop in loops)
        return Kinds({loop.var: "serial" for loop in loops}, lines, ())
    carried: dict[str | None, list[Dependence]] = defaultdict(list)
    for dependence in found:
        carried[dependence.carrier].append(dependence)
    verdicts = [_verdict(kernel, loop, carried[loop.var]) for loop in loops]
    return Kinds(
        {loop.var: verdict.kind for loop, verdict in zip(loops, verdicts, strict=True)},
        tuple(f"{_title(loop)}: {v.reason}" for loop, v in zip(loops, verdicts, strict=True)),
        tuple(v.finding for v in verdicts if v.finding),
    )


@dataclass(frozen=True)
class _Verdict:
    kind: LoopKind
    reason: str
    finding: LoopFinding | None = None


def _verdict(kernel: Kernel, loop: For, carried: Sequence[Dependence]) -> _Verdict:
    blocking = [d for d in carried if _is_blocking(d, loop)]
    free: LoopKind = "reduction" if len(blocking) < len(carried) else "parallel"
    if not blocking:
        if loop.hint == "serial":
            return _Verdict("serial", f"serial, as asked; it could be {free}")
        return _Verdict(free, free)
    certain = [each for each in blocking if each.is_exact or _is_kept(each)]
    if loop.hint in _PROMISES and not certain:
        certain = _certain_inside(kernel, loop, blocking)
        if not certain:
            return _Verdict(free, f"{free}, as its author promises by '{loop.hint}'")
    # A value that is passed on says more than memory that is used again.
    why = _reason(min(certain or blocking, key=lambda d: d.kind != "flow"))
    finding = None
    if loop.hint in _PROMISES:
        message = f"loop {loop.var} cannot be '{loop.hint}': {why}"
        finding = LoopFinding("hint", message, loop.location)
    return _Verdict("serial", f"serial, because {why}", finding)


def _is_blocking(dependence: Dependence, loop: For) -> bool:
    return not (dependence.is_reduction or _is_of_sum(dependence, loop))


def _is_kept(dependence: Dependence) -> bool:
    """Returns whether iterations may keep a scalar for later ones, as `break` and its flag do.

    No data make that right: either no iteration stores to it, or the order matters.
    """
    return dependence.kind == "flow" and not dependence.source.node.indices


def _certain_inside(kernel: Kernel, loop: For, blocking: Sequence[Dependence]) -> list[Dependence]:
    """Returns those dependences that are certain once the loop runs; see `promises`."""
    scope = next(scope for stmt, scope in visit(kernel) if stmt is loop)
    found = certain_dependences(kernel, loop, scope, lambda each: _is_blocking(each, loop))
    places = {(_location(each.source), _location(each.target)) for each in found}
    return [
        dataclasses.replace(each, is_exact=True)
        for each in blocking
        if (_location(each.source), _location(each.target)) in places
    ]


def _is_of_sum(dependence: Dependence, loop: For) -> bool:
    """Returns whether a dependence is that of a sum on itself, if the loop is one sum."""
    match loop.body:
        case (Store() as store,) if sum_of(store) is not None:
            accesses = (dependence.source, dependence.target)
            return all(access.node.indices == store.indices for access in accesses)
    return False


def _reason(dependence: Dependence) -> str:
    source, target = dependence.source, dependence.target
    first, second = _act(source), _act(target)
    text = f"{_element(source)}{_line(source)} is {first}"
    may = "is" if dependence.is_exact else "may be"
    if _element(source) == _element(target):
        again = "again " if first == second else ""
        return f"{text} and {may} {second} {again}{_at(target)}in a later iteration"
    return f"{text} and {may} {second} as {_element(target)}{_line(target)} in a later iteration"


def _act(access: Access) -> str:
    return "written" if access.is_write else "read"


def _element(access: Access) -> str:
    indices = ", ".join(expr_text(index, outermost=True) for index in access.node.indices)
    return f"{access.buffer}[{indices}]" if indices else access.buffer


def _location(access: Access) -> Location | None:
    return access.node.location or access.statement.location


def _line(access: Access) -> str:
    location = _location(access)
    return f" at line {location.line}" if location else ""


def _at(access: Access) -> str:
    return f"{_line(access)[1:]} ".lstrip()


def _title(loop: For) -> str:
    location = loop.location
    return f"loop {loop.var} ({location.file}:{location.line})" if location else f"loop {loop.var}"
