"""Sums that are scaled whenever a running maximum grows become sums below the last maximum.

    serial j in 0 .. 64 {                                <the first iteration as it is>
      new = max(top, x[j])                               local first = top
      total = total * exp(top - new) + exp(x[j] - new)   serial j in 1 .. 64 {
      top = new                                     ->     top = max(top, x[j])
    }                                                    }
                                                         total = total * exp(first - top)
                                                         serial j_1 in 1 .. 64 {
                                                           total = total + exp(x[j_1] - top)
                                                         }

This is the online softmax, as flash attention has it. Each of its steps waits for the one before;
a maximum and a sum are reductions, with half as many exponentials. The results differ by roundings,
as exp(a - b) exp(b - c) is exp(a - c). The first iteration stays, so that infinities and NaN come
out as they did: a maximum that is not finite after it has made the sums NaN.

What must hold, where a weight is exp(value - new):

- A variable gets the maximum of itself and a value, which may be computed for all iterations first.
  The old and the new maximum are used in weights and in exp(old - new) only.
- Each array that outlives an iteration is a sum: it gets s exp(old - new) + t, the same elements
  each time, and nothing else uses it. Each term of t has one weight as a factor.
- The loop runs at least once, and its author does not ask for its order.

Source: M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", arXiv:1805.02867.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass

from msops._loops.ir.algebra import binary, element_of, integer
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import (
    Binary,
    Buffer,
    Expr,
    For,
    FunctionCall,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
)
from msops._loops.ir.operators import size_bytes
from msops._loops.ir.ranges import range_of
from msops._loops.ir.walk import (
    Scope,
    has_bounds_of_data,
    loads,
    loads_in,
    nested,
    own_expressions,
    replaced,
    rewrite,
    rewrite_loops,
    statements,
    stored_in,
    variables,
    with_parts,
    with_value,
)
from msops._loops.passes.simplify import simplify

_MOST_BYTES = 1 << 16
"""The largest size of the values that are kept for the second loop."""


def split_running_maxima(kernel: Kernel) -> Kernel:
    """Returns the kernel with sums below a running maximum as sums below the last one.

    Gradients are of the kernel as it was: that of a running maximum goes back step by step, which
    is one loop more than that of the sums.
    """
    stores = [stmt for stmt in statements(kernel.body) if isinstance(stmt, Store)]
    if not any(isinstance(s.value, Binary) and s.value.op == "max" for s in stores):
        return kernel

    def change(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
        step = None if loop.hint == "serial" else _step(loop)
        if step is None or has_bounds_of_data(loop):
            return None
        if range_of(binary("sub", loop.end, loop.begin), scope.ranges)[0] < 1:
            return None
        try:
            sums = _Sums(step, loop)
        except _OtherUseError:
            return None
        (inside,) = scope.inside(loop)
        low, high = inside.ranges[loop.var]
        return _split(loop, step, sums, Names(kernel), high - low + 1)

    changed = rewrite_loops(kernel, change, "serial")
    return kernel if changed is kernel else unique_names(simplify(changed))


@dataclass(frozen=True)
class _Step:
    """The parts of one iteration.

    Attributes:
      own: its variables and arrays.
      before: the statements that compute what goes into the maximum.
      value: that.
      top: the maximum that outlives the iteration.
      new: the variable that has the new maximum, which may be `top`.
      old: variables that keep the old one.
      after: the statements that use them.
    """

    own: Mapping[str, Buffer]
    before: tuple[Stmt, ...]
    value: Expr
    top: str
    new: str
    old: Set[str]
    after: tuple[Stmt, ...]

    def run(self, body: tuple[Stmt, ...], loop: For) -> For:
        """Returns a loop over all iterations but the first, which only add to what they update."""
        for name in sorted(stored_in(body) & self.own.keys()):
            body = (Local(self.own[name], body, location=loop.location),)
        begin = binary("add", loop.begin, integer(1))
        return with_parts(loop, begin=begin, body=body, kind="reduction")


def _split(loop: For, step: _Step, sums: _Sums, names: Names, most: int) -> tuple[Stmt, ...] | None:
    """Returns the first iteration, and the two loops for the others.

    Args:
      loop: the loop.
      step: one iteration of it.
      sums: what uses the maximum.
      names: gives names.
      most: the loop has no more iterations.
    """
    dtype = step.value.dtype
    top, first = Load(step.top, (), dtype), Load(names.fresh("first"), (), dtype)
    kept = Load(names.fresh("kept"), (binary("sub", Var(loop.var), loop.begin),), dtype)
    is_kept = any(isinstance(stmt, For) for stmt in statements(step.before))
    value, before, again = step.value, step.before, (*step.before, *sums.after)
    if is_kept:
        value = kept
        before = (*before, Store(kept.buffer, kept.indices, step.value, location=loop.location))
        again = replaced(sums.after, step.value, kept)
        if any(load.buffer in stored_in(step.before) for load in loads_in(again)):
            return None
    maximum = Store(step.top, (), binary("max", top, value), location=loop.location)
    factor = FunctionCall("exp", (binary("sub", first, top),), dtype)
    whole: tuple[Stmt, ...] = (
        Store(first.buffer, (), top, location=loop.location),
        step.run((*before, maximum), loop),
        *(each for store, path in sums.found for each in _scaled(store, path, factor)),
        step.run(again, loop),
    )
    kept_values = Buffer(kept.buffer, (most,), dtype)
    if is_kept and size_bytes(kept_values) > _MOST_BYTES:
        return None
    for buffer in [Buffer(first.buffer, (), dtype), *[kept_values] * is_kept]:
        whole = (Local(buffer, whole, location=loop.location),)
    return (*with_value(loop.body, loop.var, loop.begin), *whole)


def _scaled(store: Store, path: tuple[For, ...], factor: Expr) -> tuple[Stmt, ...]:
    """Returns the loops that multiply what a store updates by a factor."""
    scaled = binary("mul", element_of(store), factor)
    return nested((with_parts(store, value=scaled),), path)


def _step(loop: For) -> _Step | None:
    """Returns the parts of a loop that keeps a running maximum; None if it keeps none."""
    own: dict[str, Buffer] = {}
    body = loop.body
    while body and isinstance(body[-1], Local):
        own[body[-1].buffer.name] = body[-1].buffer
        body = (*body[:-1], *body[-1].body)
    for number, stmt in enumerate(body):
        match stmt:
            case Store(buffer=new, value=Binary(op="max", left=left, right=right)):
                load, value = (left, right) if _is_variable(left, own) else (right, left)
            case _:
                continue
        if not isinstance(load, Load) or not _is_variable(load, own):
            continue
        top = load.buffer
        if new != top and new not in own:
            continue
        keeping = [s for s in body[:number] if isinstance(s, Store) and s.value == load]
        old = {s.buffer for s in keeping} & own.keys()
        before = tuple(s for s in body[:number] if not (s in keeping and s.buffer in old))
        step = _Step(own, before, value, top, new, old, body[number + 1 :])
        return step if _is_in_order(step, loop) else None
    return None


def _is_variable(expr: Expr, own: Mapping[str, Buffer]) -> bool:
    """Returns whether an expression is a variable that outlives an iteration."""
    return isinstance(expr, Load) and not expr.indices and expr.buffer not in own


def _is_in_order(step: _Step, loop: For) -> bool:
    """Returns whether the values that go into the maximum may all be computed at first."""
    stores = Counter(stmt.buffer for stmt in statements(loop.body) if isinstance(stmt, Store))
    if any(stores[name] != 1 for name in {step.top, step.new} | step.old):
        return False
    written = {step.top, step.new, *step.old, *stored_in(step.after)}
    value = Store(step.new, (), step.value)
    read = {load.buffer for load in loads_in((*step.before, value))}
    return stored_in(step.before) <= step.own.keys() - written and not read & written


class _OtherUseError(Exception):
    """An iteration uses the maximum for something else than scaling sums."""


class _Sums:
    """The uses of the maximum in an iteration.

    Attributes:
      after: the same with the last maximum in place of the running one.
      found: the updates of sums, each with the loops around it.
    """

    def __init__(self, step: _Step, loop: For) -> None:
        self._step, self._loop = step, loop
        self._stores = Counter(s.buffer for s in statements(loop.body) if isinstance(s, Store))
        self._is_new = step.new == step.top
        self._factors: set[str] = set()
        self._weights: set[str] = set()
        self.found: list[tuple[Store, tuple[For, ...]]] = []
        self.after = self._body(step.after, ())
        if not self._is_new or not self.found:
            raise _OtherUseError

    def _body(self, body: tuple[Stmt, ...], path: tuple[For, ...]) -> tuple[Stmt, ...]:
        return tuple(new for stmt in body for new in self._statement(stmt, path))

    def _statement(self, stmt: Stmt, path: tuple[For, ...]) -> tuple[Stmt, ...]:
        step = self._step
        match stmt:
            case Store(buffer=buffer) if buffer == step.top:
                if path or not self._is(stmt.value, step.new):
                    raise _OtherUseError
                self._is_new = True
                return ()
            case Store(buffer=buffer) if buffer not in step.own:
                return (self._update(stmt, path),)
            case Store(buffer=buffer, value=value) if self._is_factor(value):
                self._keep(stmt, self._factors)
                return ()
            case Store(value=value) if not self._is_neutral(stmt):
                if self._degree(value) != 1:
                    raise _OtherUseError
                self._keep(stmt, self._weights)
                return (dataclasses.replace(stmt, value=self._with_last(value)),)
            case For() if not self._is_neutral(stmt):
                bounds = own_expressions(stmt)
                self._require(not any(map(loads, bounds)))
                self._require(self._loop.var not in set().union(*map(variables, bounds)))
                return (with_parts(stmt, body=self._body(stmt.body, (*path, stmt))),)
            case _:
                self._require(self._is_neutral(stmt))
                return (stmt,)

    def _keep(self, stmt: Store, names: set[str]) -> None:
        """Notes the variable of an iteration that a store gives its only value."""
        self._require(not stmt.indices and self._stores[stmt.buffer] == 1)
        names.add(stmt.buffer)

    def _update(self, stmt: Store, path: tuple[For, ...]) -> Store:
        """Returns the update of a sum below the last maximum."""
        old = element_of(stmt)
        match stmt.value:
            case Binary(op="add", left=Binary(op="mul") as scaled, right=added) if self._is_scaled(
                scaled, old
            ):
                pass
            case Binary(op="add", left=added, right=Binary(op="mul") as scaled) if self._is_scaled(
                scaled, old
            ):
                pass
            case _:
                raise _OtherUseError
        inside = {self._loop.var, *(part.var for part in path)}
        moving = [index for index in stmt.indices if loads(index) or variables(index) & inside]
        self._require(
            self._degree(added) == 1
            and self._stores[stmt.buffer] == 1
            # Each element once.
            and len(moving) == len(path)
            and {index.name for index in moving if isinstance(index, Var)}
            == {part.var for part in path}
        )
        self.found.append((stmt, path))
        return dataclasses.replace(stmt, value=binary("add", old, self._with_last(added)))

    def _is_scaled(self, product: Binary, old: Load) -> bool:
        left, right = product.left, product.right
        return (left == old and self._is_factor(right)) or (right == old and self._is_factor(left))

    def _is_factor(self, expr: Expr) -> bool:
        """Returns whether an expression is exp(old maximum - new maximum)."""
        match expr:
            case Load(buffer=buffer):
                return buffer in self._factors
            case FunctionCall(function="exp", args=(Binary(op="sub", left=old, right=new),)):
                is_old = self._is(old, *self._step.old, *[self._step.top] * (not self._is_new))
                return is_old and self._is_maximum(new)
        return False

    def _is_weight(self, expr: Expr) -> bool:
        """Returns whether an expression is exp(value - new maximum)."""
        match expr:
            case Load(buffer=buffer):
                return buffer in self._weights
            case FunctionCall(function="exp", args=(Binary(op="sub", left=value, right=new),)):
                return value == self._step.value and self._is_maximum(new)
        return False

    def _is_maximum(self, expr: Expr) -> bool:
        return self._is(expr, self._step.new, *[self._step.top] * self._is_new)

    def _is(self, expr: Expr, *names: str) -> bool:
        return isinstance(expr, Load) and expr.buffer in names

    def _degree(self, expr: Expr) -> int | None:
        """Returns how many weights are factors of each term; None if that is not so."""
        if self._is_weight(expr):
            return 1
        match expr:
            case Binary(op="mul", left=left, right=right):
                of_left, of_right = self._degree(left), self._degree(right)
                return None if of_left is None or of_right is None else of_left + of_right
            case Binary(op="div", left=left, right=right) if self._degree(right) == 0:
                return self._degree(left)
            case Binary(op="add" | "sub", left=left, right=right):
                degree = self._degree(left)
                return degree if degree == self._degree(right) else None
            case Unary(op="neg", operand=operand):
                return self._degree(operand)
            case Select(condition=condition, then=then, otherwise=otherwise):
                degree = self._degree(then)
                is_same = self._degree(condition) == 0 and degree == self._degree(otherwise)
                return degree if is_same else None
        return None if self._changes(expr) else 0

    def _changes(self, expr: Expr) -> bool:
        """Returns whether an expression depends on the maxima or the sums."""
        step = self._step
        own = {step.top, step.new} | step.old | self._factors | self._weights
        return any(
            load.buffer in own or (load.buffer in self._stores and load.buffer not in step.own)
            for load in loads(expr)
        )

    def _is_neutral(self, stmt: Stmt) -> bool:
        """Returns whether a statement neither depends on the maxima and sums nor changes any."""
        return stored_in((stmt,)) <= self._step.own.keys() and not any(
            self._changes(expr) for inner in statements((stmt,)) for expr in own_expressions(inner)
        )

    def _with_last(self, expr: Expr) -> Expr:
        """Returns an expression with the variable of the last maximum for that of the new one."""
        step = self._step

        def change(part: Expr) -> Expr:
            is_new = isinstance(part, Load) and part.buffer == step.new
            return Load(step.top, (), step.value.dtype) if is_new else part

        return rewrite(expr, change)

    def _require(self, holds: bool) -> None:
        if not holds:
            raise _OtherUseError
