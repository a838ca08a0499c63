"""`while` loops whose number of iterations has a bound that can be read off them.

    while i < n and x[i] > 0.0:          for step in while(i, i, n, 0, 2):
        s += x[i]                  ->        if i < n and x[i] > 0.0:
        i += 2                                   s += x[i]
                                                 i += 2

The range says what counts, where it starts, the limit, what is added to the limit for the end
(1 or -1 where the limit is included, -1 for `i + 1 < n`) and the step. The author cannot write it:
`while` is no name.

The bound must hold whatever the data are: `i` changes only by one constant in each iteration, and
nothing in the body changes `n`. Once the condition is false nothing changes it again.

An index `i` in the body before the step is the loop's variable, so that accesses are affine in it
and the loop can be parallel if the condition is the bound alone.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from msops._loops.frontends.hybrid.syntax import copied, load, placed, read_names, stored_names

WHILE = "while"
"""The name of the range."""

_DIRECTIONS: dict[type[ast.cmpop], int] = {ast.Lt: 1, ast.LtE: 1, ast.Gt: -1, ast.GtE: -1}
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE,
}  # fmt: skip


def iterations(node: ast.While) -> ast.Call | None:
    """Returns a range with at least as many values as a loop has iterations; None without one."""
    return next((found for part in _conjuncts(node.test) if (found := _range(node, part))), None)


def as_for(node: ast.While, before: list[ast.stmt], fresh: Callable[[str], str]) -> ast.For:
    """Returns a loop over `iterations` that does the same, after some statements of its block."""
    span = iterations(node)
    assert span is not None
    counter, variable = ast.unparse(span.args[0]), fresh("step")
    span.args[1] = _start(counter, before) or span.args[1]
    end = next(at for at, part in enumerate(node.body) if counter in stored_names([part]))
    body = [_indexed_by(variable, part, counter) for part in node.body[:end]]
    body += node.body[end:]
    if len(_conjuncts(node.test)) > 1:
        # Iterations after the last one go on counting, while `i` stays.
        body = [placed(ast.If(node.test, body, []), node)]
    return placed(ast.For(ast.Name(variable, ast.Store()), span, body, []), node)


def _start(counter: str, before: list[ast.stmt]) -> ast.expr | None:
    """Returns what a counter is after some statements, by other names; None if that is unknown."""
    changed: set[str] = set()
    for statement in reversed(before):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == counter:
                is_known = _is_plain(value) and changed.isdisjoint(read_names(value))
                return copied(value) if is_known and counter not in read_names(value) else None
        changed |= stored_names([statement])
        if counter in changed:
            return None
    return None


def _is_plain(value: ast.expr) -> bool:
    """Returns whether a value is made of names and integers alone."""
    match value:
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            return _is_plain(left) and _is_plain(right)
        case ast.Constant(value=int()) | ast.Name():
            return True
    return False


def _indexed_by(variable: str, statement: ast.stmt, counter: str) -> ast.stmt:
    """Returns a statement whose indices have the loop's variable instead of the counter."""

    def renamed(name: ast.AST) -> ast.AST | None:
        assert isinstance(name, ast.Name)
        return placed(load(variable), name) if name.id == counter else None

    def replace(node: ast.AST) -> ast.AST:
        assert isinstance(node, ast.Subscript)
        index = copied(node.slice, renamed, (ast.Name,))
        return placed(ast.Subscript(copied(node.value), index, node.ctx), node)

    return copied(statement, replace, (ast.Subscript,))


def _conjuncts(test: ast.expr) -> list[ast.expr]:
    return test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]


def _range(node: ast.While, test: ast.expr) -> ast.Call | None:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    sign = type(test.ops[0])
    if sign not in _DIRECTIONS:
        return None
    return _counted(node, test.left, sign, test.comparators[0]) or _counted(
        node, test.comparators[0], _MIRRORED[sign], test.left
    )


def _counted(
    node: ast.While, counter: ast.expr, sign: type[ast.cmpop], limit: ast.expr
) -> ast.Call | None:
    """Returns the range if one side of the condition is a counter and the other one its limit."""
    ahead = 0
    match counter:
        case ast.BinOp(
            left=ast.Name() as name,
            op=ast.Add() | ast.Sub() as op,
            right=ast.Constant(value=int(constant)),
        ):
            # i + 1 < n is i < n - 1.
            counter, ahead = name, int(constant) if isinstance(op, ast.Add) else -int(constant)
    if not isinstance(counter, ast.Name):
        return None
    step = _step(node.body, counter.id)
    direction = _DIRECTIONS[sign]
    if step is None or step * direction <= 0 or _data_names(limit) & stored_names(node.body):
        return None
    beyond = (direction if sign in (ast.LtE, ast.GtE) else 0) - ahead
    start, end = load(counter.id), copied(limit)
    arguments = [load(counter.id), start, end, ast.Constant(beyond), ast.Constant(step)]
    return placed(ast.Call(load(WHILE), arguments, []), node.test)


def _data_names(limit: ast.expr) -> set[str]:
    """Returns the names whose values a limit reads; shapes do not change."""
    match limit:
        case ast.Attribute(attr="shape" | "dtype") | ast.Call(func=ast.Name(id="len")):
            return set()
        case ast.Name(id=name):
            return {name}
    parts = (part for part in ast.iter_child_nodes(limit) if isinstance(part, ast.expr))
    return set().union(*map(_data_names, parts))


def _step(body: list[ast.stmt], name: str) -> int | None:
    """Returns the constant that is added to a name once in each iteration that goes on."""
    stores = sum(
        isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store)
        for statement in body
        for part in ast.walk(statement)
    )
    for statement in body:
        match statement:
            case ast.AugAssign(
                target=ast.Name(id=target),
                op=ast.Add() | ast.Sub() as op,
                value=ast.Constant(value=int(step)),
            ) if target == name and stores == 1:
                return int(step) if isinstance(op, ast.Add) else -int(step)
            case ast.Assign(
                targets=[ast.Name(id=target)],
                value=ast.BinOp(
                    left=ast.Name(id=old),
                    op=ast.Add() | ast.Sub() as op,
                    right=ast.Constant(value=int(step)),
                ),
            ) if target == old == name and stores == 1:
                return int(step) if isinstance(op, ast.Add) else -int(step)
        if _continues([statement]):
            return None
    return None


def _continues(body: list[ast.stmt]) -> bool:
    """Returns whether a `continue` of this loop may skip what follows statements of its body."""
    for statement in body:
        if isinstance(statement, ast.Continue):
            return True
        if isinstance(statement, (ast.For, ast.While)):
            continue
        parts = [getattr(statement, "body", []), getattr(statement, "orelse", [])]
        if any(map(_continues, parts)):
            return True
    return False
