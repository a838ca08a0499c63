"""Networks of minima and maxima look for NaN where values leave them, and not at every step.

    low[] = min(w[], w_1[])             entry[] = w[]
    w_1[] = max(w[], w_1[])             entry_1[] = w_1[]
    w[] = low[]                         low[] = w[] < w_1[] ? w[] : w_1[]
    ...                         ->      w_1[] = w[] > w_1[] ? w[] : w_1[]
                                        w[] = low[]
                                        ...
    b[i] = w_2[]                        b[i] = entry[] != entry[] || ... ? nan : w_2[]

A value that leaves is NaN if one of the numbers that went in is. Otherwise no step sees a NaN, and
comparisons suffice. A network that sorts has many more steps than numbers, so this halves its time.
Compilers, too, take seconds less, for they try to simplify chains of choices between numbers and
NaN.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from msops._loops.ir.building import binary
from msops._loops.ir.names import Names
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Const,
    Expr,
    For,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
)
from msops._loops.ir.walk import (
    Scope,
    loads_in,
    map_bodies,
    map_expressions,
    rewrite,
    rewrite_loops,
    statements,
    with_parts,
)

_DTYPES = ("float32", "float64")
_STEPS_PER_TEST = 2
"""Steps for each number that goes in: a step saves one comparison, and a test takes one."""


def defer_nan_tests(kernel: Kernel) -> Kernel:
    """Returns the kernel with its networks rewritten; their bodies have no branches and loops."""
    names = Names(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        network = _network(loop.body)
        if network is None:
            return None
        return (with_parts(loop, body=_Deferring(network, names).whole(loop.body)),)

    return rewrite_loops(kernel, change)


@dataclass(frozen=True)
class _Network:
    """The steps of a body, in the order of its stores.

    Attributes:
      steps: positions of the stores of minima and maxima.
      last: those of them that store what leaves.
      entries: positions of the stores of numbers that go in, and the variable of each.
      leaving: positions of the other stores that read results of steps, with these.
    """

    steps: frozenset[int]
    last: frozenset[int]
    entries: dict[int, Buffer]
    leaving: dict[int, frozenset[str]]


def _network(body: tuple[Stmt, ...]) -> _Network | None:
    """Returns the network in a body; None if there is none that is worth rewriting."""
    inner = statements(body)
    variables = {
        stmt.buffer.name: stmt.buffer
        for stmt in inner
        if isinstance(stmt, Local) and not stmt.buffer.shape and stmt.buffer.dtype in _DTYPES
    }
    if not variables or not all(isinstance(stmt, Store | Local) for stmt in inner):
        return None
    steps: set[int] = set()
    last: set[int] = set()
    leaving: dict[int, frozenset[str]] = {}
    # For each variable, the stores of the numbers that its value comes from, by position. The
    # result of a step comes from several.
    entries_of: dict[str, frozenset[int]] = {}
    out_of_steps: set[str] = set()
    leaves: list[frozenset[int]] = []
    for position, store in enumerate(stmt for stmt in inner if isinstance(stmt, Store)):
        read = {load.buffer for load in loads_in((store,))} & variables.keys()
        # A variable that is read before it is written is 0; no network does that.
        if not read <= entries_of.keys():
            return None
        target = store.buffer
        if _is_step(store.value, variables):
            steps.add(position)
            origins = frozenset[int]().union(*map(entries_of.__getitem__, read))
            if target in variables:
                entries_of[target] = origins
                out_of_steps.add(target)
            else:
                last.add(position)
                leaves.append(origins)
            continue
        source = store.value.buffer if isinstance(store.value, Load) else ""
        if target in variables and source in variables:
            entries_of[target] = entries_of[source]
            (out_of_steps.add if source in out_of_steps else out_of_steps.discard)(target)
            continue
        if read & out_of_steps:
            leaving[position] = frozenset(read & out_of_steps)
            leaves += map(entries_of.__getitem__, read & out_of_steps)
        if target in variables:
            entries_of[target] = frozenset({position})
            out_of_steps.discard(target)
    if len(set(leaves)) != 1 or len(steps) < _STEPS_PER_TEST * len(leaves[0]) * len(leaves):
        return None
    stores = [stmt for stmt in inner if isinstance(stmt, Store)]
    entries = {position: variables[stores[position].buffer] for position in sorted(leaves[0])}
    return _Network(frozenset(steps), frozenset(last), entries, leaving)


def _is_step(value: Expr, variables: dict[str, Buffer]) -> bool:
    match value:
        case Binary(op="min" | "max", left=Load(buffer=left), right=Load(buffer=right)):
            return left in variables and right in variables
    return False


class _Deferring:
    """Rewrites the body of a network.

    Args:
      network: the network in it.
      names: the names of the kernel.
    """

    def __init__(self, network: _Network, names: Names):
        self._network = network
        self._copies = {
            position: Buffer(names.fresh("entry"), (), variable.dtype)
            for position, variable in network.entries.items()
        }

    def whole(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Returns the body, inside of variables that keep the numbers that go in."""
        changed = self._body(body, itertools.count())
        for copy in reversed(self._copies.values()):
            changed = (Local(copy, changed),)
        return changed

    def _body(self, body: tuple[Stmt, ...], positions: Iterator[int]) -> tuple[Stmt, ...]:
        found: list[Stmt] = []
        for stmt in body:
            if not isinstance(stmt, Store):
                found.append(map_bodies(stmt, lambda inner: self._body(inner, positions)))
                continue
            position = next(positions)
            found.append(self._store(stmt, position))
            copy = self._copies.get(position)
            if copy is not None:
                found.append(Store(copy.name, (), Load(stmt.buffer, (), copy.dtype)))
        return tuple(found)

    def _store(self, store: Store, position: int) -> Store:
        if position in self._network.steps:
            value = store.value
            assert isinstance(value, Binary)
            decides = binary("lt" if value.op == "min" else "gt", value.left, value.right)
            chosen = Select(decides, value.left, value.right, value.dtype)
            is_last = position in self._network.last
            return with_parts(store, value=self._tested(chosen) if is_last else chosen)
        leaving = self._network.leaving.get(position, frozenset())

        def tested(part: Expr) -> Expr:
            is_leaving = isinstance(part, Load) and part.buffer in leaving
            return self._tested(part) if is_leaving else part

        return map_expressions(store, lambda expr: rewrite(expr, tested)) if leaving else store

    def _tested(self, value: Expr) -> Expr:
        """Returns a value that leaves, or NaN if a number that went in is one."""
        return Select(self._finds_nan, Const(math.nan, value.dtype), value, value.dtype)

    @functools.cached_property
    def _finds_nan(self) -> Expr:
        """Returns whether a number that went in is NaN, as an expression."""
        kept = [Load(copy.name, (), copy.dtype) for copy in self._copies.values()]
        return functools.reduce(
            lambda some, test: binary("lor", some, test),
            [binary("ne", load, load) for load in kept],
        )
