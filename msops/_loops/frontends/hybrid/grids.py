"""Grids: several loops from 0, one in the other; an extent may be beyond int32."""

from __future__ import annotations

import ast

from msops._loops.frontends import far_ranges
from msops._loops.frontends.bounds import as_bound
from msops._loops.frontends.hybrid.expressions import as_scalar, value_of
from msops._loops.frontends.hybrid.loop_parts import (
    Body,
    for_loop,
    forget_names,
    nonempty,
    target_of,
)
from msops._loops.frontends.hybrid.translation import Translation
from msops._loops.frontends.hybrid.values import describe, literal
from msops._loops.ir.nodes import Buffer, Const, Expr, If, Load, Local, Stmt, Store, Var
from msops._loops.ir.operators import INTEGERS
from msops._loops.ir.ranges import range_of


def grid(t: Translation, node: ast.For, body: Body) -> None:
    """Translates a grid."""
    assert isinstance(node.iter, ast.Call)
    argument = node.iter.args[0]
    extents = value_of(t, argument)
    if not isinstance(extents, tuple):
        raise t.report.build_error(
            argument,
            f"grid takes a tuple of extents; got {describe(extents)}",
            "Write grid(a.shape) or grid((n, m)).",
        )
    bounds = []
    for extent in extents:
        bound = t.typing.fitting(argument, as_scalar(t, argument, extent))
        if bound.dtype not in INTEGERS:
            raise t.report.build_error(
                argument,
                f"an extent of grid is an integer; got {describe(bound)}",
                "Write grid((n, m)) with integers.",
            )
        bounds.append(bound)
    is_far = [not _always_fits(t, bound) for bound in bounds]
    if not any(is_far):
        _near_grid(t, node, bounds, body)
        return
    fits = far_ranges.fits(tuple(bounds), t.ranges)
    with t.block(()) as branch:
        inner, variables = _near_grid(t, node, bounds, body)
    then = branch.finish()
    far = [place for place, beyond in zip(variables, is_far, strict=True) if beyond]
    if all(far_ranges.has_element_at(inner, place) for place in far):
        for statement in then:
            t.emit(statement)
        return
    forget_names(t, node)
    with t.block(()) as branch:
        _far_grid(t, node, bounds, body)
    if then:
        t.emit(If(fits, then, branch.finish(), location=t.report.source.location(node)))


def _always_fits(t: Translation, bound: Expr) -> bool:
    fits = far_ranges.fits((bound,), t.ranges)
    return isinstance(fits, Const) and bool(fits.value)


def _near_grid(
    t: Translation, node: ast.For, extents: list[Expr], body: Body
) -> tuple[tuple[Stmt, ...], tuple[Var, ...]]:
    """Emits a grid whose extents are those of loops; returns its body and its variables."""
    bounds = [as_bound(extent) for extent in extents]
    names = [t.fresh(f"{target_of(node).id}_{index}") for index in range(len(bounds))]
    variables = tuple(Var(name) for name in names)
    t.values[t.names.symbols[target_of(node)]] = variables
    for name, bound in zip(names, bounds, strict=True):
        t.ranges[name] = (0, range_of(bound, t.ranges)[1] - 1)
    inner = loop = body()
    for name, bound in reversed(list(zip(names, bounds, strict=True))):
        loop = nonempty(for_loop(t, node, name, literal(0), bound, loop, "grid"))
    for statement in loop:
        t.emit(statement)
    return inner, variables


def _far_grid(t: Translation, node: ast.For, extents: list[Expr], body: Body) -> None:
    """A grid that counts in 64 bits where an extent may be beyond int32; see `far_ranges`."""
    name, location = target_of(node).id, t.report.source.location(node)
    spans: list[tuple[str, Expr]] = []  # variables and ends of loops, from the outside
    counts: list[tuple[Buffer, Expr]] = []
    values: list[Expr] = []
    for extent in extents:
        place = t.fresh(name)
        if _always_fits(t, extent):
            spans.append((place, as_bound(extent)))
            values.append(Var(place))
            continue
        part, held = Var(t.fresh(f"{name}_part")), t.fresh(f"{name}_count")
        iterations = Load(held, (), far_ranges.COUNT)
        counted = far_ranges.count(literal(0), extent, 1)
        counts.append((Buffer(held, (), far_ranges.COUNT), counted))
        spans.append((part.name, far_ranges.parts(iterations)))
        spans.append((place, far_ranges.left(iterations, part)))
        value = far_ranges.value(Const(0, "int64"), 1, part, Var(place))
        values.append(as_bound(value))
        t.typing.exact[id(values[-1])] = (values[-1], value)
    t.values[t.names.symbols[target_of(node)]] = tuple(values)
    for variable, end in spans:
        t.ranges[variable] = (0, range_of(end, t.ranges)[1] - 1)
    inner = body()
    for variable, end in reversed(spans):
        inner = nonempty(for_loop(t, node, variable, literal(0), end, inner, "grid"))
    for buffer, count in reversed(counts):
        stored = Store(buffer.name, (), count)
        inner = (Local(buffer, (stored, *inner), location=location),) if inner else ()
    for statement in inner:
        t.emit(statement)
