"""Loops that remember where the greatest, or smallest, element was.

    for j:                            for j: m = max(m, a[j])
      if a[j] > m:                    for j: at = min(at, j if a[j] == m and a[j] > before else END)
        m = a[j]            ->        if at != END:
        where = j                       where = at

`before` is m before the loop. With `>` the first element counts, with `>=` the last.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msops._loops.analysis.conditions import conjuncts
from msops._loops.ir.algebra import binary, both, element_of
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    BinaryOp,
    Buffer,
    Expr,
    For,
    If,
    Load,
    Local,
    Select,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import COMPARISONS
from msops._loops.ir.walk import (
    exchanged,
    read_by,
    statements,
    stored_in,
    substitute,
    variables,
    with_value,
)
from msops._loops.passes.extremes import Extreme, find_extreme, reads


@dataclass(frozen=True)
class Search:
    """A loop that remembers where an extreme element was.

    Attributes:
      extreme: when an element replaces the one that was found before.
      store: the store of the element.
      payload: what else is stored then.
      others: the rest of the loop's body, which may run before.
      kept: scalars for elements that the loop reads where it found them, and their first values.
    """

    extreme: Extreme
    store: Store
    payload: tuple[Store, ...]
    others: tuple[Stmt, ...]
    kept: tuple[tuple[Buffer, Store], ...] = ()

    def around(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Returns statements with the scalars declared around them."""
        for buffer, first in self.kept:
            body = (Local(buffer, (first, *body)),)
        return body


def find_search(loop: For, names: Names, fewest: int = 2) -> Search | None:
    """Returns the search that a loop is; None if it is none.

    Args:
      loop: the loop.
      names: the names of the kernel.
      fewest: the fewest stores that count; 1 is that of the element alone.
    """
    for position, stmt in enumerate(loop.body):
        others = loop.body[:position] + loop.body[position + 1 :]
        if isinstance(stmt, If) and not stmt.otherwise and len(stmt.then) == 1:
            through = with_best(loop, stmt, names)
            if through is not None:
                best, first, changed = through
                body = (*loop.body[:position], changed, *loop.body[position + 1 :])
                inside = find_search(dataclasses.replace(loop, body=body), names, fewest)
                kept = (*inside.kept, (best, first)) if inside else ()
                return dataclasses.replace(inside, kept=kept) if inside else None
        if isinstance(stmt, If) and not stmt.otherwise and _are_stores(stmt.then, fewest):
            found = _search(loop, stmt, others)
            if found is not None:
                return found
    return None


def split_search(loop: For, names: Names) -> tuple[Stmt, ...] | None:
    """Returns plain reductions that do what a loop does, if it is such a search."""
    search = find_search(loop, names)
    if search is None:
        return None
    rest = (dataclasses.replace(loop, body=search.others),) if search.others else ()
    return search.around((*rest, *_split(loop, search, names)))


def with_best(loop: For, stmt: If, names: Names) -> tuple[Buffer, Store, If] | None:
    """Turns `if a[j] > a[where]: where = j` into a search that keeps the element as well.

    Args:
      loop: the loop.
      stmt: the condition, with one store under it.
      names: the names of the kernel.

    Returns:
      A scalar for the element, its first value, and the condition with both stores under it.
    """
    (store,) = stmt.then
    if not isinstance(store, Store) or store.value != Var(loop.var):
        return None
    there: dict[str, Expr] = {loop.var: Load(store.buffer, store.indices, INDEX_DTYPE)}
    for part in conjuncts(stmt.condition):
        if not isinstance(part, Binary) or part.op not in COMPARISONS:
            continue
        for here, other in ((part.left, part.right), (part.right, part.left)):
            if loop.var in variables(here) and substitute(here, there) == other:
                best = Buffer(names.fresh(f"{store.buffer}_best"), (), here.dtype)
                kept = Load(best.name, (), here.dtype)
                stores = (Store(best.name, (), here), store)
                condition = exchanged(stmt.condition, other, kept)
                changed = dataclasses.replace(stmt, condition=condition, then=stores)
                return best, Store(best.name, (), other), changed
    return None


def _are_stores(body: Sequence[Stmt], fewest: int) -> bool:
    return len(body) >= fewest and all(isinstance(stmt, Store) for stmt in body)


def _search(loop: For, stmt: If, others: tuple[Stmt, ...]) -> Search | None:
    stores = [inner for inner in stmt.then if isinstance(inner, Store)]
    written = {store.buffer for store in stores}
    if len(written) < len(stores) or not _is_independent(loop, stmt, written, others):
        return None
    for store in stores:
        extreme = find_extreme(stmt.condition, store)
        payload = tuple(other for other in stores if other is not store)
        if extreme is not None and _is_remembered(loop, extreme, store, payload, written):
            return Search(extreme, store, payload, others)
    return None


def _is_independent(loop: For, stmt: If, written: set[str], others: Sequence[Stmt]) -> bool:
    """Returns whether the rest of the loop and the condition leave each other's buffers alone."""
    inside = list(statements(tuple(others)))
    if any(isinstance(other, Local) for other in inside):
        return False
    touched = stored_in(tuple(others))
    read = set().union(*map(read_by, inside))
    own = set().union(*map(read_by, statements((stmt,))))
    bounds = read_by(loop)
    return not (written & (touched | read | bounds) or touched & (own | bounds))


def _is_remembered(
    loop: For, extreme: Extreme, store: Store, payload: Sequence[Store], written: set[str]
) -> bool:
    """Returns whether the elements are the same for all iterations, and what is kept is fresh."""
    indices = [index for each in (store, *payload) for index in each.indices]
    values = [store.value, *(each.value for each in payload), *indices]
    values += [extreme.guard] if extreme.guard else []
    return all(loop.var not in variables(index) for index in indices) and not any(
        reads(value, written) for value in values
    )


def _split(loop: For, search: Search, names: Names) -> tuple[Stmt, ...]:
    extreme, store, payload = search.extreme, search.store, search.payload
    dtype = store.value.dtype
    before = Buffer(names.fresh(f"{store.buffer}_before"), (), dtype)
    at = Buffer(names.fresh(f"{store.buffer}_at"), (), INDEX_DTYPE)
    nowhere = extreme.nowhere
    found = Load(at.name, (), INDEX_DTYPE)
    first = _guarded(extreme.guard, extreme.update(store))
    second = _guarded(extreme.guard, _index_update(loop, extreme, store, before, at, nowhere))
    kept = stored_at(payload, loop.var, found)
    return (
        Local(
            before,
            (
                Store(before.name, (), element_of(store)),
                dataclasses.replace(loop, body=(first,)),
                Local(
                    at,
                    (
                        Store(at.name, (), nowhere),
                        _renamed(loop, second, names),
                        If(binary("ne", found, nowhere), kept),
                    ),
                ),
            ),
        ),
    )


def _index_update(
    loop: For, extreme: Extreme, store: Store, before: Buffer, at: Buffer, nowhere: Expr
) -> Store:
    """Returns the reduction that finds where the first, or last, extreme element is."""
    value, dtype = store.value, store.value.dtype
    conditions = (
        binary("eq", value, element_of(store)),
        Binary(extreme.better, value, Load(before.name, (), dtype), "bool"),
    )
    is_it = both(conditions)
    here = Select(is_it, Var(loop.var), nowhere, INDEX_DTYPE)
    op: BinaryOp = "min" if extreme.is_strict else "max"
    old = Load(at.name, (), INDEX_DTYPE)
    return Store(at.name, (), Binary(op, old, here, INDEX_DTYPE), location=store.location)


def _guarded(guard: Expr | None, stmt: Stmt) -> Stmt:
    return If(guard, (stmt,)) if guard else stmt


def stored_at(stores: Iterable[Store], var: str, at: Expr) -> tuple[Store, ...]:
    """Returns stores to elements that do not move, for one value of a variable."""
    return tuple(
        dataclasses.replace(store, value=substitute(store.value, {var: at})) for store in stores
    )


def _renamed(loop: For, stmt: Stmt, names: Names) -> For:
    """Returns the loop with another variable, around one guarded store."""
    var = names.fresh(loop.var)
    return dataclasses.replace(loop, var=var, body=with_value((stmt,), loop.var, Var(var)))
