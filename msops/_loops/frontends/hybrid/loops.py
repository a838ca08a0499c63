"""Loops: every range becomes one that ascends by 1."""

from __future__ import annotations

import ast

from msops._loops.frontends import far_ranges
from msops._loops.frontends.bounds import as_bound
from msops._loops.frontends.hybrid.counting import WHILE
from msops._loops.frontends.hybrid.expressions import constant_int, scalar, value_of
from msops._loops.frontends.hybrid.grids import grid
from msops._loops.frontends.hybrid.loop_parts import (
    Body,
    for_loop,
    forget_names,
    nonempty,
    target_of,
)
from msops._loops.frontends.hybrid.translation import Translation
from msops._loops.frontends.hybrid.values import EXPR, describe, literal
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
    Binary,
    BinaryOp,
    Buffer,
    Const,
    Expr,
    If,
    Load,
    Local,
    Stmt,
    Store,
    Var,
)
from msops._loops.ir.operators import INTEGERS
from msops._loops.ir.ranges import dtype_range, is_within, range_of, unwrapped_range
from msops._loops.ir.scalars import EXACT
from msops._loops.ir.walk import loads

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
        grid(t, node, body)
    elif kind == "const_range":
        _unrolled(t, node, body)
    elif kind == "bind":
        if not isinstance(value_of(t, node.iter.args[0]), str):
            raise t.report.build_error(
                node.iter, "the first input of 'bind' names a thread axis", "Write a string."
            )
        _ranged(t, node, _range(t, node.iter.args[1:]), kind, body)
    elif kind == WHILE:
        _counted(t, node, _range_of_while(t, node.iter), "range", body)
    else:
        _ranged(t, node, _range(t, node.iter.args), kind, body)


def _ranged(
    t: Translation, node: ast.For, span: tuple[Expr, Expr, int], kind: str, body: Body
) -> None:
    """A range whose bounds may be beyond those of loops: then another loop counts in 64 bits."""
    begin, end, step = span
    fits = far_ranges.fits((begin, end), t.ranges)

    def near() -> bool:
        """Returns whether an iteration is in range of its arrays only if its value is an int32."""
        inner: tuple[Stmt, ...] = ()

        def kept() -> tuple[Stmt, ...]:
            nonlocal inner
            inner = body()
            return inner

        _counted(t, node, (as_bound(begin), as_bound(end), step), kind, kept)
        value = t.values[t.names.symbols[target_of(node)]]
        return isinstance(value, EXPR) and far_ranges.has_element_at(inner, value)

    if isinstance(fits, Const):
        if fits.value:
            near()
        else:
            _far(t, node, span, kind, body)
        return
    with t.block(()) as branch:
        is_all = near()
    then = branch.finish()
    if is_all:
        for statement in then:
            t.emit(statement)
        return
    forget_names(t, node)
    with t.block(()) as branch:
        _far(t, node, span, kind, body)
    if then:
        t.emit(If(fits, then, branch.finish(), location=t.report.source.location(node)))


def _far(
    t: Translation, node: ast.For, span: tuple[Expr, Expr, int], kind: str, body: Body
) -> None:
    """A range that counts in 64 bits; see `far_ranges`."""
    begin, end, step = span
    name = target_of(node).id
    location = t.report.source.location(node)
    start = Buffer(t.fresh(f"{name}_begin"), (), far_ranges.counter_dtype(begin))
    count = Buffer(t.fresh(f"{name}_count"), (), far_ranges.COUNT)
    first, iterations = (Load(buffer.name, (), buffer.dtype) for buffer in (start, count))
    part, place = Var(t.fresh(f"{name}_part")), Var(t.fresh(name))
    with t.block(()) as inner:
        value = far_ranges.value(first, step, part, place)
        bound = as_bound(value)
        t.typing.exact[id(bound)] = (bound, value)
        _bind(t, node, bound)
        _emit_loop(t, node, place.name, literal(0), far_ranges.left(iterations, part), kind, body)
    outer = for_loop(
        t, node, part.name, literal(0), far_ranges.parts(iterations), inner.finish(), "range"
    )
    if outer.body:
        stored = Store(start.name, (), far_ranges.wide(begin, start.dtype))
        counted = Store(count.name, (), far_ranges.count(begin, end, step))
        held = Local(count, (stored, counted, outer), location=location)
        t.emit(Local(start, (held,), location=location))


def _counted(
    t: Translation, node: ast.For, span: tuple[Expr, Expr, int], kind: str, body: Body
) -> None:
    begin, end, step = span
    var = t.fresh(target_of(node).id)
    if step == 1 and end.dtype == INDEX_DTYPE:
        _bind(t, node, Var(var))
        _emit_loop(t, node, var, begin, end, kind, body)
        return
    # The count of iterations, and the value in each, in terms of the bounds at the start.
    if any(loads(begin)):
        held = Buffer(t.fresh(f"{var}_begin"), (), INDEX_DTYPE)
        with t.block(()) as around:
            t.emit(Store(held.name, (), begin))
            _stepped(t, node, var, Load(held.name, (), INDEX_DTYPE), end, step, kind, body)
        t.emit(Local(held, around.finish(), location=t.report.source.location(node)))
    else:
        _stepped(t, node, var, begin, end, step, kind, body)


def _stepped(
    t: Translation,
    node: ast.For,
    var: str,
    begin: Expr,
    end: Expr,
    step: int,
    kind: str,
    body: Body,
) -> None:
    size = abs(step)
    first, last = (begin, end) if step > 0 else (end, begin)
    offset = _binary("mul", literal(_wrapped(size)), Var(var))
    _bind(t, node, _binary("add" if step > 0 else "sub", begin, offset))
    _emit_loop(t, node, var, literal(0), _count(t, first, last, size), kind, body)


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


def _wrapped(size: int) -> int:
    """Returns a number modulo 2**32, as an index; so is its product with the iteration."""
    least, greatest = dtype_range(INDEX_DTYPE)
    return (size - least) % (greatest - least + 1) + least


def _range(t: Translation, args: list[ast.expr]) -> tuple[Expr, Expr, int]:
    """Returns begin, end and step of a range."""
    begin = _integer(t, args[0]) if len(args) > 1 else literal(0)
    end = _integer(t, args[min(1, len(args) - 1)])
    if len(args) < 3:
        return begin, end, 1
    step = constant_int(t, args[2], value_of(t, args[2]), "the step of a loop")
    if step == 0:
        raise t.report.build_error(args[2], "the step of a loop is 0", "Write a step other than 0.")
    return begin, end, step


def _range_of_while(t: Translation, node: ast.Call) -> tuple[Expr, Expr, int]:
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
        for statement in body():
            t.emit(statement)


def _emit_loop(
    t: Translation, node: ast.For, var: str, begin: Expr, end: Expr, kind: str, body: Body
) -> None:
    t.ranges[var] = (range_of(begin, t.ranges)[0], range_of(end, t.ranges)[1] - 1)
    for statement in nonempty(for_loop(t, node, var, begin, end, body(), kind)):
        t.emit(statement)


def _bind(t: Translation, node: ast.For, value: Expr) -> None:
    t.values[t.names.symbols[target_of(node)]] = value


def _binary(op: BinaryOp, left: Expr, right: Expr) -> Expr:
    """Arithmetic on loop bounds, without the operations that change nothing."""
    if isinstance(left, Const) and isinstance(right, Const):
        return literal(EXACT[op](left.value, right.value))
    neutral = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1}[op]
    if right == literal(neutral):
        return left
    if left == literal(neutral) and op in ("add", "mul"):
        return right
    return Binary(op, left, right, INDEX_DTYPE)
