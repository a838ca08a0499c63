"""Elements that are read before they are written, and the iterations that read them.

What both branches of a condition write is written whatever the condition is:

    if (v[i] > 1) { s[i] = 1; v[i] = 0 } else { s[i] = 0 }    writes s[i]
"""

from __future__ import annotations

import itertools
import operator
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from msops._loops.analysis.findings import LoopFinding
from msops._loops.analysis.polyhedral.accesses import (
    Access,
    accesses_at,
    analysis,
    analysis_of,
    first_iteration,
)
from msops._loops.analysis.polyhedral.dependences import common_loops
from msops._loops.analysis.polyhedral.domain import box
from msops._loops.analysis.polyhedral.library import TooComplex, isl
from msops._loops.analysis.polyhedral.uniform import covers
from msops._loops.ir.nodes import Buffer, Expr, If, Kernel, Local, Stmt, Store
from msops._loops.ir.text import expr_text
from msops._loops.ir.walk import AccessSite, statements, visit, visit_accesses

IN, OUT = isl.dim_type.in_, isl.dim_type.out


@dataclass(frozen=True)
class Flow:
    """The accesses of one buffer that is zero at the start, or of a local.

    Attributes:
      reads: the loads, in the order of the text.
      writes: the stores, in the order of the text; then, for each condition both of whose branches
        store an element, that store where the condition is.
    """

    reads: tuple[Access, ...]
    writes: tuple[Access, ...]

    @property
    def declared(self) -> Buffer:
        """The buffer."""
        return (*self.reads, *self.writes)[0].declared

    def unwritten_reads(self) -> list[tuple[Access, dict[str, int]]]:
        """Returns the reads that certainly find an element unwritten, with an iteration of each."""
        return [
            (read, first_iteration(missing.domain(), read.loops)[1])
            for read in self.reads
            if read.is_exact and (missing := _unwritten(read, self.writes)) is not None
        ]

    def is_covered(self, together: int = 0) -> bool:
        """Returns whether each element read certainly has been written before.

        Args:
          together: the number of outer loops in whose same iteration the write must be.
        """
        certain = [write for write in self.writes if write.is_exact]
        return all(_unwritten(read, certain, together) is None for read in self.reads)

    def fills(self) -> bool:
        """Returns whether each element of a buffer of the kernel certainly is written."""
        writes = [write for write in self.writes if write.is_exact]
        if not writes:
            return False
        if any(map(_is_whole, writes)):
            return True
        certain = [write.relation.range() for write in writes]
        missing = box(certain[0].get_ctx(), [(0, size) for size in self.declared.shape])
        for filled in certain:
            missing = missing.subtract(filled)
        return bool(missing.is_empty())


def flows(kernel: Kernel, accesses: Sequence[Access]) -> Mapping[str, Flow]:
    """Returns the accesses by buffer, for the buffers of a kernel that are no parameters."""
    parameters = {buffer.name for buffer in kernel.parameters}
    by_buffer: dict[str, list[Access]] = defaultdict(list)
    for access in accesses:
        if access.buffer not in parameters:
            by_buffer[access.buffer].append(access)
    chosen = [site for site in _stores_of_conditions(kernel) if site.access.buffer in by_buffer]
    if chosen:
        for access in accesses_at(chosen, accesses[0].domain.context):
            by_buffer[access.buffer].append(access)
    return {
        name: Flow(
            tuple(access for access in group if not access.is_write),
            tuple(access for access in group if access.is_write),
        )
        for name, group in by_buffer.items()
    }


def _stores_of_conditions(kernel: Kernel) -> list[AccessSite]:
    """Returns a store of each element that both branches of a condition store.

    Its number is that of the last statement in the branches: what they read may come before it.
    """
    return [
        AccessSite(store, stmt, order + len(statements((stmt,))) - 1, scope, ())
        for order, (stmt, scope) in enumerate(visit(kernel))
        if isinstance(stmt, If)
        for store in _certain((stmt,)).values()
    ]


def _certain(body: Iterable[Stmt]) -> dict[tuple[str, tuple[Expr, ...]], Store]:
    """Returns the stores that some statements make in any case, by element; loops may make none."""
    found: dict[tuple[str, tuple[Expr, ...]], Store] = {}
    for stmt in body:
        match stmt:
            case Store(buffer=buffer, indices=indices):
                found[buffer, indices] = stmt
            case If(then=then, otherwise=otherwise):
                other = _certain(otherwise)
                found |= {key: store for key, store in _certain(then).items() if key in other}
            case Local(body=inside):
                found |= _certain(inside)
    return found


def _unwritten(read: Access, writes: Iterable[Access], together: int = 0) -> isl.Map | None:
    """Returns the map from iterations of a read to elements it may find unwritten, or None."""
    writes = list(writes)
    if any(
        _is_just_before(write, read, together) or _covers(write, read, together) for write in writes
    ):
        return None
    missing = read.relation
    # The writes that share most loops with the read are the likeliest to cover it, in the same
    # iteration of these: all of them, before any in an earlier iteration.
    writes.sort(key=lambda write: -len(common_loops(write, read)))
    for maps in itertools.zip_longest(*(_before(write, read, together) for write in writes)):
        for write, before in zip(writes, maps, strict=True):
            if before is not None:
                missing = missing.subtract(before.apply_range(write.relation))
        if missing.is_empty():
            return None
    return None if missing.is_empty() else missing


def _is_whole(write: Access) -> bool:
    """Returns whether a store in loops of fixed bounds fills a buffer."""
    return write.uniform is not None and write.uniform.fills(write.declared.shape)


def _covers(write: Access, read: Access, together: int) -> bool:
    """Returns whether a write sets all that is read, in the same iteration of common loops."""
    if write.uniform is None or read.uniform is None or write.order >= read.order:
        return False
    common = common_loops(write, read)
    return len(common) >= together and covers(write.uniform, read.uniform, common)


def _is_just_before(write: Access, read: Access, together: int) -> bool:
    """Returns whether a write surely sets what is read, in the same iteration of all its loops."""
    around = write.domain.scope.path
    return (
        write.is_exact
        and read.is_exact
        and write.order < read.order
        and write.node.indices == read.node.indices
        and len(write.loops) >= together
        and len(around) <= len(read.domain.scope.path)
        and all(map(operator.is_, around, read.domain.scope.path))
    )


def _before(write: Access, read: Access, together: int) -> Iterator[isl.Map]:
    """Yields the maps from iterations of the read to the iterations of the write before them.

    The first map is for equal variables of all common loops. Then each common loop, innermost
    first, has a map for the iterations in which it is the outermost loop whose variable differs.
    """
    same = [isl.Map.from_domain_and_range(read.domain.points, write.domain.points)]
    loops = range(len(common_loops(write, read)))
    for loop in loops:
        same.append(same[-1].equate(IN, loop, OUT, loop))
    if write.order < read.order:
        yield same[-1]
    for loop in reversed(loops[together:]):
        yield same[loop].order_gt(IN, loop, OUT, loop)


@dataclass(frozen=True)
class Written:
    """Facts about the values that reads find.

    Attributes:
      findings: of each array, the first read that finds an element unwritten for certain.
      overwritten: buffers and locals of which each element that is read, or returned, certainly has
        been written: they need not be zero at the start.
    """

    findings: tuple[LoopFinding, ...]
    overwritten: frozenset[str]


def find_unwritten(kernel: Kernel) -> Written:
    """Returns which reads of a kernel find what nothing has written.

        serial i in 0 .. 4 {
          y[i] = y[i] * y[i]     ->   y[i] is read at i = 0, and nothing has written it before

    They are 0 here, and whatever is in memory under AKG. What may have been written counts as
    written, so what is found is certain.
    """
    try:
        with analysis(kernel) as accesses:
            found = flows(kernel, accesses)
            overwritten = _overwritten(kernel, found)
            # The first read of an array shows what is missing.
            findings = tuple(
                _finding(*reads[0])
                for name, flow in found.items()
                if name not in overwritten and (reads := flow.unwritten_reads())
            )
    except TooComplex:
        return Written((), frozenset())
    return Written(findings, overwritten)


def find_overwritten(kernel: Kernel, among: Collection[str]) -> frozenset[str]:
    """Returns which of some buffers and locals need not be zero at the start; see `Written`."""
    sites = [site for site in visit_accesses(kernel) if site.access.buffer in among]
    if not sites:
        return frozenset()
    try:
        with analysis_of(sites) as accesses:
            return _overwritten(kernel, flows(kernel, accesses))
    except TooComplex:
        return frozenset()


def _overwritten(kernel: Kernel, found: Mapping[str, Flow]) -> frozenset[str]:
    return frozenset(
        name
        for name, flow in found.items()
        if (name not in kernel.results or flow.fills()) and flow.is_covered()
    )


def _finding(read: Access, iteration: dict[str, int]) -> LoopFinding:
    indices = ", ".join(expr_text(index, outermost=True) for index in read.node.indices)
    element = f"{read.buffer}[{indices}]" if indices else read.buffer
    where = ", ".join(f"{var} = {value}" for var, value in iteration.items())
    message = (
        f"{element} is read{' at ' if where else ''}{where}, and nothing has written it before"
    )
    return LoopFinding("unwritten", message, read.node.location or read.statement.location)
