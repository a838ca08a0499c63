"""Chooses the array operation for every nest of a distributed kernel."""

from __future__ import annotations

from collections.abc import Sequence

from msops._loops.intrinsics import is_float
from msops._loops.ir import (
    INDEX_DTYPE,
    Binary,
    Const,
    Expr,
    For,
    If,
    Kernel,
    Local,
    Stmt,
    Store,
    Var,
)
from msops._loops.raising.linear import variables
from msops._loops.raising.nests import Axis, Chain, Nest, chain, nest
from msops._loops.raising.products import factors
from msops._loops.raising.recurrences import find_recurrence
from msops._loops.raising.steps import (
    Branch,
    Clear,
    Contract,
    Convolve,
    Loop,
    Map,
    Pool,
    Reduce,
    Step,
)
from msops._loops.raising.views import find_view
from msops._loops.raising.windows import find_windows
from msops._loops.ranges import range_of
from msops._loops.updates import update_of
from msops._loops.walk import rewrite_all

UNROLLED_TRIPS = 4
"""Serial loops of at most so many iterations are written out: their indices become constants."""


def raise_kernel(kernel: Kernel) -> tuple[Step, ...]:
    """Returns the steps that compute a kernel.

    Every legal kernel has some: what is not distributed becomes loops over scalar steps.
    """
    shapes = {buffer.name: buffer.shape for buffer in (*kernel.parameters, *kernel.buffers)}
    return _Raising(shapes).body(kernel.body, (), ())


class _Raising:
    """Raises statements; knows the shapes of buffers."""

    def __init__(self, shapes: dict[str, tuple[int, ...]]):
        self._shapes = shapes

    def body(
        self, body: Sequence[Stmt], outer: tuple[Axis, ...], guards: tuple[Expr, ...]
    ) -> tuple[Step, ...]:
        """Returns the steps of statements.

        Args:
          body: the statements.
          outer: the serial loops around them.
          guards: conditions that every store in them is under.
        """
        return tuple(step for stmt in body for step in self._statement(stmt, outer, guards))

    def _statement(
        self, stmt: Stmt, outer: tuple[Axis, ...], guards: tuple[Expr, ...]
    ) -> tuple[Step, ...]:
        parts = chain(stmt)
        if parts is not None:
            steps = self._nest(parts, outer, guards)
            if steps is not None:
                return steps
        match stmt:
            case For():
                return self._loop(stmt, outer, guards)
            case If(condition=condition, then=then, otherwise=otherwise):
                first = self.body(then, outer, guards)
                second = self.body(otherwise, outer, guards)
                return (Branch(stmt, first, second),) if first or second else ()
            case Local(buffer=buffer, body=body):
                self._shapes[buffer.name] = buffer.shape
                return (Clear(buffer.name), *self.body(body, outer, guards))
            case Store():
                raise AssertionError("a store is a vector nest without loops")

    # Loops that stay.

    def _loop(
        self, loop: For, outer: tuple[Axis, ...], guards: tuple[Expr, ...]
    ) -> tuple[Step, ...]:
        ranges = {axis.var: axis.interval for axis in outer}
        low, high = range_of(loop.begin, ranges), range_of(loop.end, ranges)
        axis = Axis(loop.var, low[0], high[1])
        if high[1] <= low[0]:
            return ()
        fixed = isinstance(loop.begin, Const) and isinstance(loop.end, Const)
        if fixed and axis.extent <= UNROLLED_TRIPS:
            return tuple(
                step
                for value in range(axis.begin, axis.end)
                for step in self.body(_at(loop, value), outer, guards)
            )
        recurrence = fixed and find_recurrence(loop, axis, outer, guards)
        if recurrence:
            return (recurrence,)
        steps = self.body(loop.body, (*outer, axis), guards)
        if not steps:
            return ()
        known = axis.extent < 2**24
        reason = "its iterations run in order" if loop.kind == "serial" else "not distributed"
        return (Loop(loop, axis if known else None, steps, reason),)

    # Vector nests.

    def _nest(
        self, parts: Chain, outer: tuple[Axis, ...], guards: tuple[Expr, ...]
    ) -> tuple[Step, ...] | None:
        box = nest(parts, outer, guards)
        if box is None:
            return None
        if any(axis.extent == 0 for axis in box.axes):
            return ()
        if not box.reduced:
            return (Map(box),)
        return self._reduction(box)

    def _reduction(self, box: Nest) -> tuple[Step, ...] | None:
        update = update_of(box.store)
        if update is None:
            return None
        placed = {name for index in box.store.indices for name in variables(index)}
        over = tuple(axis.var for axis in box.axes if axis.var not in placed)
        if not self._places(box, placed) and not _can_scatter(update.op, box.store):
            return None
        value: Expr = update.term
        turned = update.is_negated
        if update.op == "add":
            product = _product(box, value, turned, over)
            if product is not None:
                return (product,)
        if turned:
            value = _negative(value)
        pool = _pool(box, update.op, value, over)
        return (pool or Reduce(box, update.op, value, over),)

    def _places(self, box: Nest, placed: set[str]) -> bool:
        """Tells whether the store is a view, so that every element is written once."""
        axes = box.axis_ranges()
        view = find_view(box.store.indices, self._shapes[box.store.buffer], axes)
        return view is not None and placed & set(axes) == set(view.axes)


def _at(loop: For, value: int) -> tuple[Stmt, ...]:
    constant = Const(value, INDEX_DTYPE)
    return rewrite_all(loop.body, lambda part: constant if part == Var(loop.var) else part)


def _can_scatter(op: str, store: Store) -> bool:
    dtype = store.value.dtype
    if is_float(dtype):
        return op in ("add", "min", "max")
    return op in (("land", "lor") if dtype == "bool" else ("add", "mul", "min", "max"))


def _negative(value: Expr) -> Expr:
    if is_float(value.dtype):
        return Binary("mul", Const(-1.0, value.dtype), value, value.dtype)
    return Binary("sub", Const(0, value.dtype), value, value.dtype)


def _product(box: Nest, value: Expr, turned: bool, over: tuple[str, ...]) -> Step | None:
    """Returns the convolution or contraction that a sum is, if it is a sum of products."""
    parts, sign = factors(value)
    if len(parts) < 2 or not over or box.mask or value.dtype == "bool":
        return None
    turned = turned != sign
    kept = set(box.extents) - set(over)
    sliding = [part for part in parts if find_windows(part, kept, over)]
    if len(sliding) == 1:
        found = find_windows(sliding[0], kept, over)
        fixed = [part for part in parts if part is not sliding[0]]
        members = {axis for window in found[0] for axis in (window.output,)} if found else set()
        used = {name for part in fixed for name in variables(part)}
        if found and not members & used:
            return Convolve(box, found[1], _multiplied(fixed), turned, found[0], over)
    axes = [variables(part) & set(box.extents) for part in parts]
    if any((one - other and other - one) or _is_matrix_vector(one, other, over)
           for i, one in enumerate(axes) for other in axes[i + 1 :]
           if one & other & set(over)):  # fmt: skip
        return Contract(box, parts, turned, over)
    return None


def _is_matrix_vector(one: set[str], other: set[str], over: tuple[str, ...]) -> bool:
    return one != other and bool(one & other & set(over))


def _multiplied(parts: Sequence[Expr]) -> Expr:
    product = parts[0]
    for part in parts[1:]:
        product = Binary("mul", product, part, product.dtype)
    return product


def _pool(box: Nest, op: str, value: Expr, over: tuple[str, ...]) -> Pool | None:
    if box.mask or op not in ("add", "max", "min"):
        return None
    found = find_windows(value, set(box.extents) - set(over), over)
    if found is None:
        return None
    windows, rewritten = found
    if any(window.dilation < 0 for window in windows):
        return None
    return Pool(box, op, rewritten, windows, over)
