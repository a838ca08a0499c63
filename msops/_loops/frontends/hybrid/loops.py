"""Loops: every range becomes one that ascends by 1."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TypeAlias

from msops._loops.frontends import far_ranges
from msops._loops.frontends.far_ranges import as_bound
from msops._loops.frontends.hybrid.counting import WHILE
from msops._loops.frontends.hybrid.expressions import as_scalar, constant_int, scalar, value_of
from msops._loops.frontends.hybrid.language import LOOP_HINTS
from msops._loops.frontends.hybrid.translation import Translation
from msops._loops.frontends.hybrid.values import Value, describe, literal
from msops._loops.ir import scalars
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    BinaryOp,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Load,
    Local,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import INTEGERS
from msops._loops.ir.ranges import dtype_range, is_within, range_of, unwrapped_range
from msops._loops.ir.walk import loads

Body = Callable[[], tuple[Stmt, ...]]
"""Translates the body of the loop."""
_Span: TypeAlias = tuple[Expr, Expr, int]
"""Begin, end and step of a range."""
MOST_COPIES = 1 << 14
"""How often `const_range` may write out a body: the compiler reads every copy."""


def loop(t: Translation, node: ast.For, body: Body) -> None:
    """Translates a loop.

    Args:
      t: the translation.
      node: the loop.
      body: translates its body.
    """
    assert isinstance(node.iter, ast.Call)
    assert isinstance(node.iter.func, ast.Name)
    kind = node.iter.func.id
    if kind == "grid":
        _grid(t, node, node.iter.args[0], body)
    elif kind == "const_range":
        _unrolled(t, node, body)
    elif kind == "bind":
        if not isinstance(value_of(t, node.iter.args[0]), str):
            raise t.report.build_error(
                node.iter, "the first input of 'bind' names a thread axis", "Write a string."
            )
        _nest(t, node, [_range(t, node.iter.args[1:])], kind, body)
    elif kind == WHILE:
        _while(t, node, node.iter, body)
    else:
        _nest(t, node, [_range(t, node.iter.args)], kind, body)


def _grid(t: Translation, node: ast.For, argument: ast.expr, body: Body) -> None:
    extents = value_of(t, argument)
    if not isinstance(extents, tuple):
        raise t.report.build_error(
            argument,
            f"grid takes a tuple of extents; got {describe(extents)}",
            "Write grid(a.shape) or grid((n, m)).",
        )
    spans: list[_Span] = []
    for extent in extents:
        bound = t.typing.fitting(argument, as_scalar(t, argument, extent))
        if bound.dtype not in INTEGERS:
            raise t.report.build_error(
                argument,
                f"an extent of grid is an integer; got {describe(bound)}",
                "Write grid((n, m)) with integers.",
            )
        spans.append((literal(0), bound, 1))
    _nest(t, node, spans, "grid", body)


def _nest(t: Translation, node: ast.For, spans: list[_Span], kind: str, body: Body) -> None:
    """Emits loops over some spans, one in the other.

    Where bounds may be beyond those of loops, which data decide, there are two versions: in the
    second one such a loop counts in 64 bits, see `far_ranges`. The first one is enough where an
    iteration is in range of its arrays only if the value is an int32.
    """
    name, location = target_of(node).id, t.report.source.location(node)
    values: list[Expr] = []
    innermost: tuple[Stmt, ...] = ()

    def loops(is_near: bool) -> tuple[Stmt, ...]:
        """Returns the loops over those spans whose variables have no values yet."""
        nonlocal innermost
        number = len(values)
        if number == len(spans):
            _bind(t, node, tuple(values) if kind == "grid" else values[0])
            innermost = body()
            return innermost
        begin, end, step = spans[number]
        base = f"{name}_{number}" if kind == "grid" else name

        def inside(value: Expr) -> tuple[Stmt, ...]:
            bound = as_bound(value)
            if bound is not value:
                t.typing.exact[id(bound)] = (bound, value)
            values.append(bound)
            return loops(is_near)

        def part(value: Expr, var: str, end: Expr) -> tuple[Stmt, ...]:
            return _loop(t, node, var, literal(0), end, kind, lambda: inside(value))

        if is_near or _fits(t, spans[number]) == Const(True, "bool"):
            return _counted(t, node, base, (as_bound(begin), as_bound(end), step), kind, inside)
        return far_ranges.far_loop(spans[number], base, t.fresh, part, location)

    def version(is_near: bool) -> tuple[Stmt, ...]:
        values.clear()
        return loops(is_near)

    fits = _fits(t, *spans)
    found = version(is_near=fits != Const(False, "bool"))
    if found and not isinstance(fits, Const):
        far = [value for value, span in zip(values, spans, strict=True)
               if _fits(t, span) != Const(True, "bool")]  # fmt: skip
        if not all(far_ranges.has_element_at(innermost, value) for value in far):
            forget_names(t, node)
            found = (If(fits, found, version(is_near=False), location=location),)
    _emit(t, found)


def _while(t: Translation, node: ast.For, call: ast.Call, body: Body) -> None:
    def inside(value: Expr) -> tuple[Stmt, ...]:
        _bind(t, node, value)
        return body()

    _emit(t, _counted(t, node, target_of(node).id, _range_of_while(t, call), "range", inside))


def _fits(t: Translation, *spans: _Span) -> Expr:
    return far_ranges.fits(tuple(bound for span in spans for bound in span[:2]), t.ranges)


def _counted(
    t: Translation,
    node: ast.For,
    name: str,
    span: _Span,
    kind: str,
    inside: Callable[[Expr], tuple[Stmt, ...]],
) -> tuple[Stmt, ...]:
    """Returns a loop over a span; `inside` makes its body from the value of its variable."""
    begin, end, step = span
    var = t.fresh(name)
    if step == 1 and end.dtype == INDEX_DTYPE:
        return _loop(t, node, var, begin, end, kind, lambda: inside(Var(var)))
    # The count of iterations, and the value in each, in terms of the bounds at the start.
    held = Buffer(t.fresh(f"{var}_begin"), (), INDEX_DTYPE) if any(loads(begin)) else None
    start = Load(held.name, (), INDEX_DTYPE) if held else begin
    first, last = (start, end) if step > 0 else (end, start)
    # The size wraps as an index; so does its product with the iteration.
    size = scalars.cast("int64", INDEX_DTYPE)(abs(step))
    offset = _binary("mul", literal(size), Var(var))
    value = _binary("add" if step > 0 else "sub", start, offset)
    count = _count(t, first, last, abs(step))
    stepped = _loop(t, node, var, literal(0), count, kind, lambda: inside(value))
    if held is None or not stepped:
        return stepped
    body = (Store(held.name, (), begin), *stepped)
    return (Local(held, body, location=t.report.source.location(node)),)


def _count(t: Translation, first: Expr, last: Expr, size: int) -> Expr:
    """Returns how many steps of a size there are between two bounds: the quotient rounded up."""
    if first.dtype == last.dtype == INDEX_DTYPE:
        distance = _binary("sub", last, first)
        if isinstance(distance, Const):
            return as_bound(literal(-(-distance.value // size)))
        low, high = unwrapped_range(distance, t.ranges) or dtype_range(INDEX_DTYPE)
        if is_within((low, high + size - 1), dtype_range(INDEX_DTYPE)):
            return _binary("floordiv", _binary("add", distance, literal(size - 1)), literal(size))
    # Bounds that are data may be as far apart as no int32 is large.
    distance = Binary(
        "sub", far_ranges.wide(last, "int64"), far_ranges.wide(first, "int64"), "int64"
    )
    if size == 1:
        return as_bound(distance)
    rounded = Binary("add", distance, Const(size - 1, "int64"), "int64")
    return as_bound(Binary("floordiv", rounded, Const(size, "int64"), "int64"))


def _range(t: Translation, args: list[ast.expr]) -> _Span:
    """Returns begin, end and step of a range."""
    begin = _integer(t, args[0]) if len(args) > 1 else literal(0)
    end = _integer(t, args[min(1, len(args) - 1)])
    if len(args) < 3:
        return begin, end, 1
    step = constant_int(t, args[2], value_of(t, args[2]), "the step of a loop")
    if step == 0:
        raise t.report.build_error(args[2], "the step of a loop is 0", "Write a step other than 0.")
    return begin, end, step


def _range_of_while(t: Translation, node: ast.Call) -> _Span:
    """Returns begin, end and step of a range that `counting` made.

    The end is an int64 where the limit may be the last int32, and is included.
    """
    counter, start, limit, beyond, step = node.args
    first, last = _integer(t, start), _integer(t, limit)
    dtype = scalar(t, counter).dtype
    if dtype in INTEGERS and not is_within(dtype_range(dtype), dtype_range(INDEX_DTYPE)):
        for bound in (first, last):
            if not is_within(range_of(bound, t.ranges), dtype_range(INDEX_DTYPE)):
                raise t.report.build_error(
                    node,
                    "the number of iterations of this 'while' has no bound that can be read off "
                    f"it: '{ast.unparse(counter)}' is {dtype}, and loops count in {INDEX_DTYPE}",
                    f"Start the counter with {INDEX_DTYPE}(x), or give the loop a bound: "
                    "for _ in range(1000), with a break.",
                )
    begin, end = as_bound(first), as_bound(last)
    added, size = (ast.literal_eval(constant) for constant in (beyond, step))
    low, high = range_of(end, t.ranges)
    if is_within((low + added, high + added), dtype_range(INDEX_DTYPE)):
        return begin, _binary("add", end, literal(added)), size
    return begin, Binary("add", far_ranges.wide(end, "int64"), Const(added, "int64"), "int64"), size


def _integer(t: Translation, node: ast.expr) -> Expr:
    value = t.typing.fitting(node, scalar(t, node))
    if value.dtype not in INTEGERS:
        raise t.report.build_error(
            node,
            f"the bound of a loop is an integer; got '{ast.unparse(node)}', {describe(value)}",
            f"Write // for a whole quotient, or convert: int32({ast.unparse(node)}).",
        )
    return value


def _unrolled(t: Translation, node: ast.For, body: Body) -> None:
    """`const_range`: one copy of the body per value, the variable a constant in each."""
    assert isinstance(node.iter, ast.Call)
    args = node.iter.args
    begin, end, step = _range(t, args)
    bounds = [
        constant_int(t, arg, bound, "a bound of const_range")
        for arg, bound in zip((args[0], args[-1]), (begin, end), strict=True)
    ]
    values = range(bounds[0], bounds[1], step)
    if len(values) > MOST_COPIES:
        raise t.report.build_error(
            node.iter,
            f"const_range writes its body out {len(values)} times, more than {MOST_COPIES}",
            "Write range: it is a loop.",
        )
    for value in values:
        forget_names(t, node)
        _bind(t, node, literal(value))
        _emit(t, body())


def _loop(
    t: Translation, node: ast.For, var: str, begin: Expr, end: Expr, kind: str, body: Body
) -> tuple[Stmt, ...]:
    """Returns a loop of the kind that the author wrote, or nothing if its body is nothing."""
    t.ranges[var] = (range_of(begin, t.ranges)[0], range_of(end, t.ranges)[1] - 1)
    location = t.report.source.location(node)
    loop = For(var, begin, end, body(), hint=LOOP_HINTS[kind], location=location)
    return (loop,) if loop.body else ()


def _emit(t: Translation, statements: Iterable[Stmt]) -> None:
    for statement in statements:
        t.emit(statement)


def _bind(t: Translation, node: ast.For, value: Value) -> None:
    t.values[t.names.symbols[target_of(node)]] = value


def forget_names(t: Translation, node: ast.For) -> None:
    """Makes the names of a body unbound, for another translation of it."""
    path = t.names.blocks[id(node.body)]
    for symbol in [inner for inner in t.values if t.home(inner)[: len(path)] == path]:
        del t.values[symbol]


def target_of(node: ast.For) -> ast.Name:
    """Returns the name of the variable."""
    assert isinstance(node.target, ast.Name)
    return node.target


def _binary(op: BinaryOp, left: Expr, right: Expr) -> Expr:
    """Arithmetic on loop bounds, without the operations that change nothing."""
    if isinstance(left, Const) and isinstance(right, Const):
        return literal(scalars.EXACT[op](left.value, right.value))
    neutral = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1}[op]
    if right == literal(neutral):
        return left
    if left == literal(neutral) and op in ("add", "mul"):
        return right
    return Binary(op, left, right, INDEX_DTYPE)
