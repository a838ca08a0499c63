"""Indices that parameters hold are checked once, ahead of the loops that store to them.

    reduction i in 0 .. 9000 {       local wrong: int32[] {
      h[at[i]] = h[at[i]] + 1          reduction e in 0 .. 9000 {
    }                          ->        wrong[] = wrong[] + (((at[e] < 0) || (at[e] > 31)) ? 1 : 0)
                                       }
                                       if (wrong[] == 0) {
                                         reduction i in 0 .. 9000 {
                                           h[within(at[i], 0, 31)] = ...
                                         }
                                       } else { ... } }

A store out of range is dropped, so it has a guard, which takes as long as the store. The check
runs in vectors. If it finds a number out of range, the loop keeps its guards, even if the loop
uses no such number as an index.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from msops._loops.analysis.costs import mean_trips
from msops._loops.ir.building import binary, integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
    Var,
    Within,
)
from msops._loops.ir.operators import INTEGERS
from msops._loops.ir.ranges import Range, dtype_range, is_within, range_of
from msops._loops.ir.sizes import size_bytes
from msops._loops.ir.walk import (
    A,
    Scope,
    bodies,
    declared_in,
    is_innermost,
    loads,
    map_accesses,
    own_expressions,
    rewrite_loops,
    rewrite_statements,
    statements,
    stored_in,
    variables,
    with_parts,
)

_MOST_BYTES = 1 << 22
"""Bytes of an array that stays in a cache between its check and its use."""
_CHECKED_IN_A_CYCLE = 8
"""Elements that are checked in one cycle."""
_STORES_OF_A_CYCLE = 2
"""Stores whose guards take one cycle."""


def check_indices_ahead(kernel: Kernel) -> Kernel:
    """Returns the kernel with versions of its nests in which indices of stores have no guards."""
    parameters = {buffer.name: buffer for buffer in kernel.parameters if buffer.dtype in INTEGERS}
    if not parameters:
        return kernel
    names = Names(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        if scope.loops:
            return None
        stored = stored_in((loop,))
        arrays = {name: b for name, b in parameters.items() if name not in stored}
        return _checked(loop, scope, arrays, names)

    changed = rewrite_loops(kernel, change)
    return kernel if changed is kernel else unique_names(changed)


@dataclass
class _Indices:
    """What the stores of a nest need of the arrays that hold their indices.

    Attributes:
      arrays: those that may hold indices, by name.
      held: the values of variables that are stored once.
      needed: the interval in which the elements of an array have to be.
      in_variables: the arrays whose elements are indices in variables, which are 0 at first.
      stores: how often guarded stores run.
    """

    arrays: Mapping[str, Buffer]
    held: Mapping[str, Expr]
    needed: dict[str, Range] = field(default_factory=dict)
    in_variables: set[str] = field(default_factory=set)
    stores: float = 0

    def look(self, body: Iterable[Stmt], scope: Scope, times: float) -> None:
        """Adds what the stores of a body need that runs some times."""
        for stmt in body:
            if isinstance(stmt, Store):
                self.stores += times * self._look_at(stmt, scope)
            for load in (x for expr in own_expressions(stmt) for x in loads(expr)):
                self._look_at(load, scope)
            often = times * mean_trips(stmt, scope.ranges) if isinstance(stmt, For) else times
            for inner, inside in zip(bodies(stmt), scope.inside(stmt), strict=True):
                self.look(inner, inside, often)

    def _look_at(self, access: Load | Store, scope: Scope) -> bool:
        """Adds what an access needs; returns whether that is anything."""
        is_guarded = False
        for index, size in zip(access.indices, scope.buffers[access.buffer].shape, strict=True):
            origin = self.origin(index)
            if origin is None or is_within(range_of(index, scope.ranges), (0, size - 1)):
                continue
            array, shift = origin
            low, high = self.needed.get(array, dtype_range(self.arrays[array].dtype))
            self.needed[array] = (max(low, -shift), min(high, size - 1 - shift))
            if any(load.buffer in self.held for load in loads(index)):
                self.in_variables.add(array)
            is_guarded = True
        return is_guarded

    def origin(self, index: Expr) -> tuple[str, int] | None:
        """Returns an array and a number: the index is an element plus it; None if it is not."""
        match index:
            case Load(buffer=name, indices=()) if name in self.held:
                # A counter holds a number that depends on itself.
                others = {other: self.held[other] for other in self.held if other != name}
                origin = _Indices(self.arrays, others).origin(self.held[name])
                return origin if origin and origin[1] == 0 else None
            case Load(buffer=name) if name in self.arrays:
                return name, 0
            case Cast(operand=operand) if _keeps(index):
                return self.origin(operand)
            case Binary(op="add" | "sub" as op, left=left, right=Const(value=number)):
                origin = self.origin(left)
                step = int(number) if op == "add" else -int(number)
                return (origin[0], origin[1] + step) if origin else None
        return None


def _keeps(cast: Cast) -> bool:
    """Returns whether a cast between integers changes no number."""
    dtypes = (cast.operand.dtype, cast.dtype)
    return all(dtype in INTEGERS for dtype in dtypes) and is_within(*map(dtype_range, dtypes))


def _checked(
    loop: For, scope: Scope, arrays: Mapping[str, Buffer], names: Names
) -> tuple[Stmt, ...] | None:
    inside = statements(loop.body)
    variables = {
        stmt.buffer.name
        for stmt in inside
        if isinstance(stmt, Local) and not stmt.buffer.shape and stmt.buffer.dtype in INTEGERS
    }
    stores = [stmt for stmt in inside if isinstance(stmt, Store) and stmt.buffer in variables]
    times = Counter(store.buffer for store in stores)
    held = {store.buffer: store.value for store in stores if times[store.buffer] == 1}
    found = _Indices(arrays, held)
    found.look((loop,), scope, 1)
    needed = {arrays[name]: interval for name, interval in found.needed.items()}
    if (
        not found.stores
        or found.stores < _STORES_OF_A_CYCLE * sum(map(_cycles, needed))
        or any(size_bytes(array) > _MOST_BYTES for array in needed)
        or any(low > high for low, high in needed.values())
        or not all(is_within((0, 0), found.needed[name]) for name in found.in_variables)
    ):
        return None

    def within(access: A) -> A:
        indices = tuple(map(known, access.indices, shapes[access.buffer]))
        return dataclasses.replace(access, indices=indices)

    def known(index: Expr, size: int) -> Expr:
        return index if found.origin(index) is None else Within(index, 0, size - 1)

    shapes = {name: buffer.shape for name, buffer in scope.buffers.items()}
    shapes |= {stmt.buffer.name: stmt.buffer.shape for stmt in inside if isinstance(stmt, Local)}

    def known_in_variable(store: Store) -> tuple[Stmt, ...]:
        origin = found.origin(store.value) if store.buffer in held else None
        if origin is None or origin[0] not in found.needed:
            return (store,)
        low, high = (bound + origin[1] for bound in found.needed[origin[0]])
        return (dataclasses.replace(store, value=Within(store.value, low, high)),)

    # The outermost loop stays as it is, for threads.
    body = rewrite_statements(map_accesses(loop.body, within), known_in_variable, Store)
    inner = rewrite_statements(body, _in_order, For)
    version = with_parts(loop, body=inner)
    wrong = names.fresh("wrong")
    number = Load(wrong, (), INDEX_DTYPE)
    checks = tuple(_check(array, needed[array], wrong, names) for array in needed)
    is_right = binary("eq", number, integer(0))
    choice = If(is_right, (version,), (loop,), location=loop.location, is_usual=True)
    return (Local(Buffer(wrong, (), INDEX_DTYPE), (*checks, choice), location=loop.location),)


def _in_order(loop: For) -> tuple[Stmt, ...]:
    """Returns an innermost loop in order if its iterations store to elements apart.

    Vectors of such stores take longer than the stores one by one, and without guards compilers
    would make them.
    """
    own = declared_in(loop.body)

    def moves(index: Expr) -> bool:
        of_iteration = loop.var in variables(index) or any(x.buffer in own for x in loads(index))
        return isinstance(index, Within) and of_iteration

    stores = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store)]
    are_apart = any(moves(index) for store in stores for index in store.indices)
    return (with_parts(loop, kind="serial") if is_innermost(loop) and are_apart else loop,)


def _cycles(array: Buffer) -> float:
    """Returns the cycles that the check of an array takes."""
    return math.prod(array.shape) / _CHECKED_IN_A_CYCLE


def _check(array: Buffer, needed: Range, wrong: str, names: Names) -> Stmt:
    """Returns the loop that counts the elements of an array out of an interval.

    It is one loop over all elements, as rows may be short.
    """
    var = names.fresh("e")
    at: list[Expr] = []
    for axis, size in enumerate(array.shape):
        inner = math.prod(array.shape[axis + 1 :])
        row = binary("floordiv", Var(var), integer(inner)) if inner > 1 else Var(var)
        at.append(binary("mod", row, integer(size)) if axis > 0 else row)
    element = Load(array.name, tuple(at), array.dtype)
    low, _ = dtype_range(array.dtype)
    is_less = binary("lt", element, Const(needed[0], array.dtype))
    is_more = binary("gt", element, Const(needed[1], array.dtype))
    is_out = is_more if needed[0] == low else binary("lor", is_less, is_more)
    number = Load(wrong, (), INDEX_DTYPE)
    more = Select(is_out, integer(1), integer(0), INDEX_DTYPE)
    count = Store(wrong, (), binary("add", number, more))
    return For(var, integer(0), integer(math.prod(array.shape)), (count,), "reduction")
