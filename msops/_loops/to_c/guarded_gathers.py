"""Elements at positions that are data, read under conditions, are gathered in any case and chosen.

    parallel x in 0 .. 1280 {                   parallel x in 0 .. 1280 {
      ...                                         ...
      if ((sx[] >= 0) && (sx[] < 1280)) {         y[x] = (((sx[] >= 0) & (sx[] < 1280))
        y[x] = img[sx[]]                    ->             ? img[min(max(sx[], 0), 1279)] : y[x])
      }
    }                                           }

Warps and resamples of images read such elements. gcc 12 makes no vectors of a loop that gathers
under a mask. A gather of the nearest element needs no mask: what it reads past a border is not
chosen. Nearest neighbours by a rotation take 0.3 of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from msops._base import processor
from msops._loops.ir.building import binary, element_of, integer
from msops._loops.ir.elements import exists
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
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
    Unary,
    Within,
)
from msops._loops.ir.operators import COMPARISONS, QUOTIENTS
from msops._loops.ir.sizes import itemsize
from msops._loops.ir.walk import (
    Scope,
    buffers_of,
    expressions,
    loads,
    loads_in,
    map_operands,
    rewrite_loops,
    statements,
    stored_in,
    variables,
    with_parts,
)
from msops._loops.to_c.reordering import gcc_confuses_elements
from msops._loops.to_c.strides import is_of_its_own
from msops._loops.to_c.vectors import may_run_in_vectors
from msops._loops.to_c.work import work

_MOST_WORK = 64
"""Operations under conditions. More may take longer in vectors than a branch around them."""


class _NoVectors(Exception):
    """The loop would run in no vectors, or its conditions guard more than gathers."""


def gather_guarded_elements(kernel: Kernel) -> Kernel:
    """Returns the kernel with such conditions in its loops in vectors as choices."""
    indices = (index for load in loads_in(kernel.body) for index in load.indices)
    if not processor.has_gathers() or not any(map(loads, indices)):
        return kernel
    buffers = buffers_of(kernel)

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        if not may_run_in_vectors(loop):
            return None
        (inside,) = scope.inside(loop)
        gathers = _Gathers(loop, inside, buffers)
        try:
            body = gathers.body(loop.body, None, frozenset())
        except _NoVectors:
            return None
        if not gathers.found:
            return None
        # A loop that stores neighbours under conditions may have had no mark for vectors.
        new = with_parts(loop, body=body, vector=loop.vector or "ivdep")
        return None if gcc_confuses_elements(new, scope, buffers) else (new,)

    return rewrite_loops(kernel, change, "parallel")


class _Gathers:
    """Rewrites the body of a loop.

    Attributes:
      found: whether an element is gathered that conditions guard.
    """

    def __init__(self, loop: For, inside: Scope, buffers: Mapping[str, Buffer]) -> None:
        self._loop = loop
        self._inside = inside
        self._buffers = buffers
        self._varying = _varying(loop)
        # Iterations that an author promises to be apart may be apart by the conditions alone.
        self._is_promised = any(each.hint for each in (*inside.loops, loop))
        self.found = False

    def body(
        self, body: tuple[Stmt, ...], condition: Expr | None, own: Set[str]
    ) -> tuple[Stmt, ...]:
        """Returns statements without conditions.

        Args:
          body: the statements.
          condition: what holds where they run; None if they run in each iteration.
          own: the variables that nothing outside of the condition reads.
        """
        found: tuple[Stmt, ...] = ()
        for stmt in body:
            match stmt:
                case Store():
                    found += (self._store(stmt, condition, own),)
                case Local(buffer=buffer):
                    inner = self.body(stmt.body, condition, own | {buffer.name})
                    found += (with_parts(stmt, body=inner),)
                case If():
                    found += self._if(stmt, condition)
                case For():
                    raise _NoVectors
        return found

    def _if(self, stmt: If, around: Expr | None) -> tuple[Stmt, ...]:
        test = self._evaluated(stmt.condition)
        changed = stored_in((stmt,))
        if any(load.buffer in changed for load in loads(test)):
            raise _NoVectors
        if work(statements((stmt,))) > _MOST_WORK:
            raise _NoVectors
        found: tuple[Stmt, ...] = ()
        for branch, holds in ((stmt.then, test), (stmt.otherwise, Unary("not", test, "bool"))):
            both = holds if around is None else binary("and", around, holds)
            found += self.body(branch, both, frozenset())
        return found

    def _store(self, store: Store, condition: Expr | None, own: Set[str]) -> Store:
        if condition is None:
            return with_parts(store, value=self._chosen(store.value))
        value = self._in_any_case(store.value)
        if store.buffer in own and all(map(self._exists, loads(value))):
            return with_parts(store, value=value)
        is_own = is_of_its_own(store.buffer, self._loop) and not self._is_promised
        if store.indices and not (is_own and self._exists(store)):
            raise _NoVectors
        return with_parts(store, value=Select(condition, value, element_of(store), value.dtype))

    # Expressions.

    def _chosen(self, expr: Expr) -> Expr:
        """Returns a value of each iteration, with choices between what is gathered in any case."""
        match expr:
            case Select(condition=test, then=then, otherwise=other) if _is_marked(expr):
                arms = self._in_any_case(then), self._in_any_case(other)
                return Select(self._evaluated(test), *arms, expr.dtype)
        return map_operands(expr, self._chosen)

    def _evaluated(self, condition: Expr) -> Expr:
        """Returns a condition of which all is evaluated."""
        # A condition may be why an element of the next one exists.
        if _is_marked(condition) or not all(map(self._exists, loads(condition))):
            raise _NoVectors
        match condition:
            case Binary(op="land" | "lor" as op, left=left, right=right):
                both = self._evaluated(left), self._evaluated(right)
                return binary("and" if op == "land" else "or", *both)
            case Unary(op="not", operand=operand):
                return with_parts(condition, operand=self._evaluated(operand))
            case Binary(op=op) if op in COMPARISONS and loads(condition):
                return condition
        # A condition on loop variables alone may be what keeps iterations of loops around apart.
        raise _NoVectors

    def _in_any_case(self, expr: Expr) -> Expr:
        """Returns a value of which nothing depends on conditions."""
        match expr:
            case Load() if not self._exists(expr):
                return self._nearest(expr)
            case Within():
                return self._in_any_case(expr.operand)
            case Binary(op=op, right=right) if op in QUOTIENTS and not isinstance(right, Const):
                raise _NoVectors
        return map_operands(expr, self._in_any_case)

    def _nearest(self, load: Load) -> Load:
        """Returns the load of the nearest element that exists.

        Indices of which nothing is known stay: they are clamped when they are printed.
        """
        if not self._is_gather(load) or itemsize(load.dtype) < processor.LEAST_GATHERED_BYTES:
            raise _NoVectors
        self.found = True
        shape = self._buffers[load.buffer].shape
        indices = [self._in_any_case(index) for index in load.indices]
        nearest = (
            binary("min", binary("max", at, integer(0)), integer(size - 1))
            if _is_marked(index)
            else at
            for index, at, size in zip(load.indices, indices, shape, strict=True)
        )
        return with_parts(load, indices=tuple(nearest))

    def _exists(self, access: Load | Store) -> bool:
        """Returns whether an element exists in any case, whatever conditions say of it."""
        is_known = exists(access, self._inside.ranges, self._buffers)
        return is_known and not any(map(_is_marked, access.indices))

    def _is_gather(self, load: Load) -> bool:
        """Returns whether the position of an element is data that vary in the loop."""
        return any(
            x.buffer in self._varying or self._loop.var in variables(x)
            for index in load.indices
            for x in loads(index)
        )


def _varying(loop: For) -> set[str]:
    """Returns the buffers that hold something else in each iteration of a loop."""
    stores = [stmt for stmt in statements(loop.body) if isinstance(stmt, Store)]
    found: set[str] = set()
    while True:
        more = {
            store.buffer
            for store in stores
            if loop.var in variables(store.value)
            or any(load.buffer in found for load in loads(store.value))
        }
        if more <= found:
            return found
        found |= more


def _is_marked(expr: Expr) -> bool:
    """Returns whether a part of an expression is in its range under conditions alone."""
    return any(isinstance(part, Within) for part in expressions(expr))
