"""Networks of minima and maxima sort integers, which are in the order of their numbers.

    x[] = a[i, 0]                       entry[] = a[i, 0]
                                        x[] = ordered(bits(entry[]))
    ...                                 ...
    low[] = min(x[], y[])       ->      low[] = min(x[], y[])
    y[] = max(x[], y[])                 y[] = max(x[], y[])
    x[] = low[]                         x[] = low[]
    ...                                 ...
    b[i] = y[]                          b[i] = entry[] != entry[] || ... ? nan : bits(ordered(y[]))

A value that leaves is NaN if one of the numbers that went in is. So a network looks for NaN where
values leave, and not at every step. The bits of a number, with those behind the sign inverted if
it is negative, are an integer: -0 is the one below 0. An extreme of integers is an instruction; one
of floats that finds NaN, and keeps both zeros apart, takes several. A network that sorts has many
more steps than numbers: medians of nine take a third of the time.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Container, Iterator
from dataclasses import dataclass

from msops._loops.ir.algebra import binary
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
    Unary,
)
from msops._loops.ir.operators import BITS
from msops._loops.ir.ranges import dtype_range
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
_STEPS_PER_NUMBER = 2
"""Fewest steps for each number that goes in: to make an integer of it takes longer than a step."""


def sort_integers(kernel: Kernel) -> Kernel:
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
    """The variables of a body's minima and maxima, and its stores by their positions.

    Attributes:
      variables: the names of the variables of the network.
      entries: positions of the stores of numbers into these, and the variable of each.
      leaves: those of them whose numbers what leaves is chosen from.
      leaving: positions of the other stores that read results of steps, with these.
    """

    variables: frozenset[str]
    entries: dict[int, Buffer]
    leaves: tuple[int, ...]
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
    stores = [stmt for stmt in inner if isinstance(stmt, Store)]
    network = _connected(stores, variables)
    steps = 0
    entries: dict[int, Buffer] = {}
    leaving: dict[int, frozenset[str]] = {}
    # For each variable, the stores of the numbers that its value comes from, by position. The
    # result of a step comes from several.
    entries_of: dict[str, frozenset[int]] = {}
    out_of_steps: set[str] = set()
    leaves: list[frozenset[int]] = []
    for position, store in enumerate(stores):
        read = {load.buffer for load in loads_in((store,))} & network
        # A variable that is read before it is written is 0; no network does that.
        if not read <= entries_of.keys():
            return None
        target, source = store.buffer, _copied(store.value)
        if _is_step(store.value, network):
            steps += 1
            origins = frozenset[int]().union(*map(entries_of.__getitem__, read))
            if target in network:
                entries_of[target] = origins
                out_of_steps.add(target)
            else:
                leaves.append(origins)
        elif target in network and source in network:
            entries_of[target] = entries_of[source]
            (out_of_steps.add if source in out_of_steps else out_of_steps.discard)(target)
        else:
            if read & out_of_steps:
                leaving[position] = frozenset(read & out_of_steps)
                leaves += map(entries_of.__getitem__, read & out_of_steps)
            if target in network:
                entries[position] = variables[target]
                entries_of[target] = frozenset({position})
                out_of_steps.discard(target)
    if len(set(leaves)) != 1 or steps < _STEPS_PER_NUMBER * len(leaves[0]) * len(leaves):
        return None
    return _Network(frozenset(network), entries, tuple(sorted(leaves[0])), leaving)


def _connected(stores: list[Store], variables: Container[str]) -> set[str]:
    """Returns the variables of steps, and those that are copied from or to these."""
    network: set[str] = set()
    pairs = []
    for store in stores:
        if _is_step(store.value, variables):
            network |= {load.buffer for load in loads_in((store,))}
            network |= {store.buffer} if store.buffer in variables else set()
        elif (source := _copied(store.value)) in variables and store.buffer in variables:
            pairs.append({source, store.buffer})
    while more := [pair for pair in pairs if pair & network and not pair <= network]:
        network = network.union(*more)
    return network


def _copied(value: Expr) -> str:
    """Returns the variable that a store copies; "" if it stores something else."""
    return value.buffer if isinstance(value, Load) and not value.indices else ""


def _is_step(value: Expr, variables: Container[str]) -> bool:
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
            if isinstance(stmt, Store):
                found += self._store(stmt, next(positions))
                continue
            inner = map_bodies(stmt, lambda inner: self._body(inner, positions))
            if isinstance(inner, Local) and inner.buffer.name in self._network.variables:
                buffer = inner.buffer
                inner = with_parts(inner, buffer=Buffer(buffer.name, (), BITS[buffer.dtype]))
            found.append(inner)
        return tuple(found)

    def _store(self, store: Store, position: int) -> list[Stmt]:
        value, variables = store.value, self._network.variables
        is_inside = store.buffer in variables
        if is_inside and isinstance(value, Load) and value.buffer in variables:
            return [with_parts(store, value=_as_integer(value))]
        if _is_step(value, variables):
            assert isinstance(value, Binary)
            extreme = binary(value.op, _as_integer(value.left), _as_integer(value.right))
            found = extreme if is_inside else self._tested(_number(extreme))
            return [with_parts(store, value=found)]
        leaving = self._network.leaving.get(position, frozenset())

        def outside(part: Expr) -> Expr:
            if not isinstance(part, Load) or part.buffer not in variables:
                return part
            number = _number(_as_integer(part))
            return self._tested(number) if part.buffer in leaving else number

        changed = map_expressions(store, lambda expr: rewrite(expr, outside))
        if not is_inside:
            return [changed]
        copy = self._copies[position]
        kept = Load(copy.name, (), copy.dtype)
        return [
            Store(copy.name, (), changed.value),
            with_parts(store, value=_ordered(Unary("bits", kept, BITS[copy.dtype]))),
        ]

    def _tested(self, value: Expr) -> Expr:
        """Returns a value that leaves, or NaN if a number that went in is one."""
        return Select(self._finds_nan, Const(math.nan, value.dtype), value, value.dtype)

    @functools.cached_property
    def _finds_nan(self) -> Expr:
        """Returns whether a number that went in is NaN, as an expression."""
        copies = [self._copies[position] for position in self._network.leaves]
        kept = [Load(copy.name, (), copy.dtype) for copy in copies]
        return functools.reduce(
            lambda some, test: binary("lor", some, test),
            [binary("ne", load, load) for load in kept],
        )


def _as_integer(load: Expr) -> Expr:
    """Returns a load of a variable that is an integer now."""
    return with_parts(load, dtype=BITS[load.dtype])


def _ordered(bits: Expr) -> Expr:
    """Returns the integer for the bits of a number, or the bits for that integer."""
    greatest = dtype_range(bits.dtype)[1]
    signs = binary("shr", bits, Const(greatest.bit_length(), bits.dtype))
    return binary("xor", bits, binary("and", signs, Const(greatest, bits.dtype)))


def _number(integer: Expr) -> Expr:
    return Unary("bits", _ordered(integer), BITS[integer.dtype])
