"""Statements: assignments, branches, declarations."""

from __future__ import annotations

import ast

import numpy as np

from msops._loops.frontends.hybrid import arithmetic, early
from msops._loops.frontends.hybrid.calls import is_declaration, row_of
from msops._loops.frontends.hybrid.expressions import (
    as_scalar,
    condition,
    constant_int,
    indices_of,
    value_of,
)
from msops._loops.frontends.hybrid.language import SCOPES
from msops._loops.frontends.hybrid.loops import loop
from msops._loops.frontends.hybrid.names import ScopedName
from msops._loops.frontends.hybrid.translation import Translation
from msops._loops.frontends.hybrid.typing import is_literal, promoted
from msops._loops.frontends.hybrid.values import EXPR, Value, WholeTensor, describe
from msops._loops.ir.nodes import (
    BinaryOp,
    Buffer,
    Const,
    Expr,
    FunctionCall,
    If,
    Load,
    Stmt,
    Store,
    Unary,
)
from msops._loops.ir.operators import DTYPES, SYNTAX, is_float
from msops._loops.ir.walk import expressions, loads

_OF_BITS = ("add", "sub", "mul", "and", "or", "xor")
"""Operations that give signed and unsigned integers the same bits."""


def run(t: Translation, statements: list[ast.stmt]) -> None:
    """Translates statements into the innermost block."""
    for statement in statements:
        early.attempt(t, statement, _statement, _block)


def _statement(t: Translation, node: ast.stmt) -> None:
    match node:
        case ast.Assign(targets=[ast.Name() as target], value=ast.Call() as call) if is_declaration(
            call
        ):
            _declare_tensor(t, target, call)
        case ast.Assign(targets=[ast.Tuple() as target], value=value):
            _assign_tuple(t, node, target, value)
        case ast.Assign(targets=[target], value=value):
            _assign(t, node, target, value_of(t, value), value)
        case ast.AugAssign():
            _update(t, node)
        case ast.For():
            loop(t, node, lambda: _block(t, node.body))
        case ast.If():
            _branch(t, node)
        case ast.With(body=body):
            run(t, body)
        case ast.Assert():
            _assert(t, node)


def _assign(
    t: Translation, node: ast.stmt, target: ast.expr, value: Value, source: ast.expr
) -> None:
    """Assigns what the expression `source` denotes."""
    if isinstance(target, ast.Name):
        _assign_name(t, node, target, value, source)
        return
    assert isinstance(target, ast.Subscript)
    tensor = _stored_tensor(t, target)
    indices = indices_of(t, target, tensor)
    stored = t.typing.stored(
        source,
        as_scalar(t, source, value),
        Load(tensor.buffer.name, indices, tensor.buffer.dtype),
        f"'{ast.unparse(target)}'",
    )
    _store(t, node, tensor.buffer, indices, stored)


def _store(
    t: Translation,
    node: ast.stmt,
    buffer: Buffer,
    indices: tuple[Expr, ...],
    value: Expr,
) -> None:
    t.emit(Store(buffer.name, indices, value, location=t.report.source.location(node)))


def _assign_name(
    t: Translation, node: ast.stmt, target: ast.Name, value: Value, source: ast.expr
) -> None:
    """Assigns a scalar: a name for a value if that is all it takes, else a buffer of shape ()."""
    symbol = t.symbol(target)
    bound = t.values.get(symbol)
    if bound is None:
        is_one = symbol.stores == 1 and symbol not in t.known.kept
        if is_one and t.is_unconditional(symbol) and _stays_equal(value):
            t.values[symbol] = value
            return
        if isinstance(value, (str, tuple)):
            raise t.report.build_error(
                node,
                f"'{target.id}' names {describe(value)}; such a name is assigned once, and not "
                "in a branch that data decide",
                "Use another name for another value.",
            )
        bound = _declare_scalar(t, symbol, as_scalar(t, source, value), node, source)
    assert isinstance(bound, WholeTensor)
    stored = t.typing.stored(
        source,
        as_scalar(t, source, value),
        Load(bound.buffer.name, (), bound.buffer.dtype),
        f"'{target.id}'",
    )
    _store(t, node, bound.buffer, (), stored)


def _stays_equal(value: Value) -> bool:
    """Returns whether a value is the same wherever it is used, and costs nothing there.

    So are constants, and integers and conditions made of loop variables; indices stay affine.
    """
    if isinstance(value, WholeTensor):
        return False
    if not isinstance(value, EXPR) or isinstance(value, Const):
        return True
    return not any(
        isinstance(part, (Load, FunctionCall)) or is_float(part.dtype)
        for part in expressions(value)
    )


def _declare_scalar(
    t: Translation, symbol: ScopedName, value: Expr, node: ast.stmt, source: ast.expr
) -> WholeTensor:
    found = t.known.retyped.get(symbol)
    is_constant = is_literal(value) and not _is_conversion(source)
    is_untyped = is_constant or bool(t.typing.untyped_symbols(value))
    if found is None:
        return t.declare_scalar(symbol, value.dtype, is_untyped, node)
    return t.declare_scalar(symbol, found.dtype, is_untyped and not found.is_final, node)


def _is_conversion(node: ast.expr) -> bool:
    """Returns whether the author wrote the dtype of a value: ``float32(0)``."""
    row = row_of(node)
    return row is not None and row.role == "cast"


def _assign_tuple(t: Translation, statement: ast.stmt, target: ast.Tuple, node: ast.expr) -> None:
    """Assigns all values of the right side as they were before; ``x, y = y, x`` swaps."""
    values = value_of(t, node)
    if not isinstance(values, tuple) or len(values) != len(target.elts):
        raise t.report.build_error(
            node,
            f"a tuple of {len(target.elts)} values is needed; got "
            + (f"{len(values)} values" if isinstance(values, tuple) else describe(values)),
            "Write as many values as names.",
        )
    sources = node.elts if isinstance(node, ast.Tuple) else [node] * len(values)
    held = [_hold(t, source, value) for source, value in zip(sources, values, strict=True)]
    for element, value, source in zip(target.elts, held, sources, strict=True):
        if isinstance(element, ast.Tuple):
            raise t.report.build_error(
                element, "a tuple in a tuple cannot be assigned", "Write one flat tuple."
            )
        _assign(t, statement, element, value, source)


def _hold(t: Translation, node: ast.expr, value: Value) -> Value:
    """Returns a value that later stores do not change."""
    if isinstance(value, WholeTensor):
        value = as_scalar(t, node, value)
    if not isinstance(value, EXPR) or not any(loads(value)):
        return value
    buffer = Buffer(t.fresh("held"), (), value.dtype)
    untyped = t.typing.untyped_symbols(value)
    if untyped:
        t.typing.untyped[buffer.name] = untyped
    block = t.blocks[-1]
    block.locals.append((len(block.statements), buffer, t.report.source.location(node)))
    t.emit(Store(buffer.name, (), value, location=t.report.source.location(node)))
    return Load(buffer.name, (), value.dtype, location=t.report.source.location(node))


def _update(t: Translation, node: ast.AugAssign) -> None:
    if isinstance(node.target, ast.Subscript):
        tensor = _stored_tensor(t, node.target)
        indices = indices_of(t, node.target, tensor)
    else:
        bound = early.read(t, _name(node.target))
        assert isinstance(bound, WholeTensor)
        tensor, indices = bound, ()
    buffer = tensor.buffer
    current = Load(
        buffer.name, indices, buffer.dtype, location=t.report.source.location(node.target)
    )
    operand = as_scalar(t, node.value, value_of(t, node.value))
    op = SYNTAX[type(node.op)]
    if _converts(t, op, current, operand):
        operand = t.typing.convert(operand, buffer.dtype)
    value = arithmetic.binary(t.typing, node, op, current, operand)
    stored = t.typing.stored(node.value, value, current, f"'{ast.unparse(node.target)}'")
    _store(t, node, buffer, indices, stored)


def _converts(t: Translation, op: BinaryOp, current: Expr, operand: Expr) -> bool:
    """Returns whether an update converts its operand to the type of what it changes."""
    if is_literal(operand) or promoted(current.dtype, operand.dtype) != current.dtype:
        return False
    if is_float(current.dtype):
        return True
    # A scalar that started as an integer without a type gets that of the integers it meets.
    if t.typing.untyped_symbols(current):
        return False
    # An uint8 of 250 and an int8 of -6 are the same to a sum, and not to a quotient.
    is_exact = np.result_type(current.dtype, operand.dtype).name == current.dtype
    return is_exact or op in _OF_BITS


def _name(node: ast.expr) -> ast.Name:
    assert isinstance(node, ast.Name)
    return node


def _stored_tensor(t: Translation, target: ast.Subscript) -> WholeTensor:
    owner = value_of(t, target.value)
    if not isinstance(owner, WholeTensor):
        raise t.report.build_error(
            target,
            f"'{ast.unparse(target.value)}' is {describe(owner)}; its elements cannot be assigned",
            "Assign to elements of an output_tensor, an allocate()d tensor or an input.",
        )
    return owner


def _branch(t: Translation, node: ast.If) -> None:
    test = condition(t, node.test)
    if isinstance(test, Const):
        chosen = node.body if test.value else node.orelse
        for statement in _block(t, chosen, is_inlined=True):
            t.emit(statement)
        return
    then, otherwise = _block(t, node.body), _block(t, node.orelse)
    location = t.report.source.location(node)
    if then:
        t.emit(If(test, then, otherwise, location=location))
    elif otherwise:
        t.emit(If(Unary("not", test, "bool"), otherwise, location=location))


def _block(t: Translation, body: list[ast.stmt], is_inlined: bool = False) -> tuple[Stmt, ...]:
    with t.block(t.names.blocks[id(body)], is_inlined) as block:
        run(t, body)
    return block.finish()


def _assert(t: Translation, node: ast.Assert) -> None:
    test = condition(t, node.test)
    if not isinstance(test, Const):
        raise t.report.build_error(
            node,
            "an assert is about constants: shapes, dtypes and attributes",
            "Leave it out, or store a flag in an output.",
        )
    if not test.value:
        message = f": {node.msg.value!s}" if isinstance(node.msg, ast.Constant) else ""
        raise t.report.build_error(
            node,
            f"assertion failed{message}",
            "Call the op with arguments that the kernel takes.",
        )


def _declare_tensor(t: Translation, target: ast.Name, call: ast.Call) -> None:
    symbol = t.symbol(target)
    shape = _shape(t, call.args[0])
    dtype = _dtype(t, call.args[1]) if len(call.args) > 1 else "float32"
    if len(call.args) > 2 and value_of(t, call.args[2]) not in SCOPES:
        raise t.report.build_error(
            call.args[2],
            f"{ast.unparse(call.args[2])} is no scope of allocate",
            f"There are {', '.join(SCOPES)}; any does, the compiler decides where temporaries are.",
        )
    buffer = Buffer(t.fresh(target.id), shape, dtype)
    t.values[symbol] = WholeTensor(buffer)
    is_whole = symbol.kind == "output" or symbol.home == t.blocks[0].path
    if is_whole:
        t.buffers.append(buffer)
    else:
        t.declare(symbol, buffer, call)


def _shape(t: Translation, node: ast.expr) -> tuple[int, ...]:
    value = value_of(t, node)
    if not isinstance(value, tuple):
        raise t.report.build_error(
            node,
            f"a shape is a tuple; got '{ast.unparse(node)}', {describe(value)}",
            "Write (n, m), or (n,) for one dimension.",
        )
    shape = tuple(constant_int(t, node, extent, "an extent of a shape") for extent in value)
    if any(extent < 0 for extent in shape):
        raise t.report.build_error(
            node, f"the shape {shape} has a negative extent", "Check the shapes of the inputs."
        )
    return shape


def _dtype(t: Translation, node: ast.expr) -> str:
    value = value_of(t, node)
    if isinstance(value, str) and value in DTYPES:
        return value
    raise t.report.build_error(
        node,
        f"{ast.unparse(node)} is no dtype",
        f"Write a.dtype or a string, one of {', '.join(DTYPES)}.",
    )
