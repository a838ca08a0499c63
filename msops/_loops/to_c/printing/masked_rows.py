"""Whether a kernel may load neighbours under conditions, which gcc 11 and 12 load wrongly.

A loop that reads several neighbours in each iteration, each under a condition, needs more than one
vector for them. gcc takes the mask of the first vector for all: elements are lost, and memory is
read that the program does not read. Compiled without vectors for conditions, all loads are right.

Loads of one buffer at the same distance from iteration to iteration count as neighbours, however
far apart they are, and whether or not they are proven to be in range. Only a loop that gcc may
take counts: of a nest it is the innermost one that it does not write out, and no iteration of it
needs what the one before computed, sums aside. What a statement loads anyway, as in
`x[i] == best ? x[i] : 0`, is one load for gcc, which no condition guards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set

from msops._loops.analysis.costs import fixed_trips
from msops._loops.analysis.updates import update_of
from msops._loops.ir.nodes import Binary, Const, For, If, Kernel, Load, Store, Var
from msops._loops.ir.walk import (
    AccessSite,
    Scope,
    accesses_of,
    declared_in,
    expressions,
    statements,
    visit,
    visit_accesses,
)
from msops._loops.passes.simplify_expressions import difference
from msops._loops.to_c.facts.strides import stride

_WRITTEN_OUT = 16
"""The most iterations of an inner loop that gcc writes out in the loop around it."""


def loads_masked_rows(kernel: Kernel) -> bool:
    """Returns whether an iteration of a loop loads several elements of a buffer conditionally."""
    found: Counter[tuple[str, str, int]] = Counter()
    sites = visit_accesses(kernel)
    certain = {(site.order, site.access) for site in sites if not site.conditions}
    for site in sites:
        if isinstance(site.access, Load):
            is_chosen = (site.order, site.access) not in certain
            found.update(_rows(site, site.access, is_chosen))
    several = {loop for (loop, _, _), count in found.items() if count > 1}
    if not several:
        return False
    loops = [(stmt, scope) for stmt, scope in visit(kernel) if isinstance(stmt, For)]
    stay = {loop.var for loop, scope in loops if _stays(loop, scope)}
    return any(loop.var in several and _may_be_in_vectors(loop, stay) for loop, _ in loops)


def _rows(site: AccessSite, load: Load, is_chosen: bool) -> Iterator[tuple[str, str, int]]:
    """Yields loop, buffer and distance for each element that an iteration loads conditionally.

    Args:
      site: where it is loaded.
      load: the load.
      is_chosen: whether a condition of its own statement decides about it.
    """
    *outer, inner = site.scope.loops or (None,)
    if inner is None:
        return
    candidates = [(inner, 1)]
    trips = fixed_trips(inner)
    # A loop that is marked by `omp simd` stays a loop.
    is_kept = inner.vector == "simd"
    if outer and not is_kept and trips is not None and 1 < trips <= _WRITTEN_OUT:
        # All iterations of the inner loop are part of one of the outer loop.
        elements = trips if stride(load, inner.var, site.scope.buffers) != 0 else 1
        candidates.append((outer[-1], elements))
    for loop, elements in candidates:
        distance = stride(load, loop.var, site.scope.buffers)
        if distance is not None and abs(distance) > 1 and (is_chosen or _is_in_branch(site, loop)):
            for _ in range(elements):
                yield loop.var, load.buffer, distance


def _is_in_branch(site: AccessSite, loop: For) -> bool:
    """Returns whether a branch inside of a loop holds a statement."""
    path = site.scope.path
    start = next(i for i, part in enumerate(path) if isinstance(part, For) and part.var == loop.var)
    return any(isinstance(part, If) for part in path[start:])


def _may_be_in_vectors(loop: For, stay: Set[str]) -> bool:
    """Returns whether gcc may make vectors with conditions of the iterations of a loop.

    Args:
      loop: the loop.
      stay: the variables of loops that are not written out.
    """
    inner = {stmt.var for stmt in statements(loop.body) if isinstance(stmt, For)}
    return inner.isdisjoint(stay) and not _has_recurrence(loop)


def _stays(loop: For, scope: Scope) -> bool:
    """Returns whether a loop certainly is not written out in the one around it."""
    parts = [part for bound in (loop.begin, loop.end) for part in expressions(bound)]
    # Of others gcc may know less than `difference`, or more.
    is_plain = all(
        isinstance(part, Var | Const) or (isinstance(part, Binary) and part.op in ("add", "sub"))
        for part in parts
    )
    # That it runs at all says nothing of its length.
    runs = Binary("lt", loop.begin, loop.end, "bool")
    is_plain &= all(part.condition == runs for part in scope.path if isinstance(part, If))
    _, most = (is_plain and difference(loop.end, loop.begin, scope.ranges)) or (0, 0)
    return loop.vector == "simd" or (most > _WRITTEN_OUT and loop.vector != "registers")


def _has_recurrence(loop: For) -> bool:
    """Returns whether an iteration needs a variable as the one before left it, sums aside."""
    own = declared_in(loop.body)
    first: dict[str, Load | Store] = {}
    used, set_anew = set[str](), set[str]()
    for stmt in statements(loop.body):
        update = update_of(stmt) if isinstance(stmt, Store) else None
        for access in accesses_of(stmt):
            name = access.buffer
            if access.indices or name in own:
                continue
            first.setdefault(name, access)
            is_update = update is not None and update.target.buffer == name
            if isinstance(access, Load) and not is_update:
                used.add(name)
            # gcc knows the values of a counter ahead.
            if isinstance(access, Store) and not (is_update and update and update.op == "add"):
                set_anew.add(name)
    return any(isinstance(first[name], Load) for name in used & set_anew)
