"""Expressions: from the author's syntax to scalars of the IR."""

from __future__ import annotations

import ast
from typing import Any

from msops._loops.frontends.hybrid import arithmetic, early
from msops._loops.frontends.hybrid.indexing import element, part
from msops._loops.frontends.hybrid.language import CASTS, INTRINSICS
from msops._loops.frontends.hybrid.translation import Translation
from msops._loops.frontends.hybrid.values import EXPR, Value, WholeTensor, describe, literal
from msops._loops.ir.nodes import BinaryOp, Const, Expr, Load, Select
from msops._loops.ir.operators import SYNTAX, is_float

_CONSTANTS = "Constants are literals, shapes, attributes, captured numbers, and arithmetic on them."
_TABLE = f"{_CONSTANTS} To index by the variable of a loop, pass the values as an array."
_OPERATIONS: dict[str, BinaryOp] = {"power": "pow", "min": "min", "max": "max"}


def value_of(t: Translation, node: ast.expr) -> Value:
    """Returns what an expression denotes."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Constant(value=bool() | int() | float() as number):
            return literal(number)
        case ast.Name():
            return early.read(t, node)
        case ast.Tuple(elts=elements):
            return tuple(value_of(t, element) for element in elements)
        case ast.Attribute(value=owner, attr=attribute):
            return _attribute(t, node, value_of(t, owner), attribute)
        case ast.Subscript(value=owner, slice=index):
            return _subscript(t, node, value_of(t, owner), index)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sum(t, node, value_of(t, left), value_of(t, right))
        case ast.BinOp(left=left, op=operator, right=right):
            op = SYNTAX[type(operator)]
            return arithmetic.binary(t.typing, node, op, scalar(t, left), scalar(t, right))
        case ast.UnaryOp():
            return _unary(t, node)
        case ast.BoolOp(op=operator, values=values):
            parts = (condition(t, value) for value in values)
            return arithmetic.joined(parts, deciding=isinstance(operator, ast.Or))
        case ast.Compare(left=first, ops=ops, comparators=rest):
            return _comparison(t, node, [first, *rest], ops)
        case ast.IfExp():
            return _conditional(t, node)
        case ast.Call(func=ast.Name(id=name), args=args):
            return _call(t, node, name, args)
        case ast.Call(func=ast.Attribute(value=dtype), args=[arg]):
            return _converted(t, node, dtype, arg)
    raise AssertionError(f"check_grammar accepted {ast.dump(node)}")


def scalar(t: Translation, node: ast.expr) -> Expr:
    """Returns an expression's value, which must be a scalar."""
    return as_scalar(t, node, value_of(t, node))


def as_scalar(t: Translation, node: ast.AST, value: Value) -> Expr:
    """Returns a value that must be a scalar; a tensor of rank 0 is its one element."""
    if isinstance(value, EXPR):
        return value
    if isinstance(value, WholeTensor):
        buffer = value.buffer
        if not buffer.shape:
            return Load(buffer.name, (), buffer.dtype, location=t.report.source.location(node))
        indices = ", ".join("ijkl"[: len(buffer.shape)]) or "i"
        raise t.report.build_error(
            node,
            f"'{ast.unparse(node)}' is a whole tensor, of shape {buffer.shape}, where one number "
            "is needed",
            f"Give all indices: {ast.unparse(node)}[{indices}].",
        )
    if isinstance(value, str):
        problem = f"{value!r} is a string, where a number is needed"
        raise t.report.build_error(node, problem, "Strings name dtypes; compare them with ==.")
    raise t.report.build_error(
        node,
        f"'{ast.unparse(node)}' is {describe(value)}, where a number is needed",
        "Take an element of a tuple, such as a.shape[0].",
    )


def condition(t: Translation, node: ast.expr) -> Expr:
    """Returns a condition."""
    value = scalar(t, node)
    if value.dtype == "bool":
        return value
    if isinstance(value, Const):
        return Const(bool(value.value), "bool")
    raise t.report.build_error(
        node,
        f"a condition is a bool; '{ast.unparse(node)}' is {value.dtype}",
        f"Compare it: {ast.unparse(node)} != 0.",
    )


def constant_int(
    t: Translation, node: ast.expr, value: Value, what: str, remedy: str = _CONSTANTS
) -> int:
    """Returns a value that must be an integer known when the kernel is compiled."""
    if isinstance(value, Const) and isinstance(value.value, int):
        return int(value.value)
    raise t.report.build_error(
        node,
        f"{what} must be an integer constant; got '{ast.unparse(node)}', {describe(value)}",
        _by_name(t, value) or remedy,
    )


def _by_name(t: Translation, value: Value) -> str:
    """Returns what to do about a number that a call gives by position; nothing for other values."""
    parameters = {symbol.name for symbol in t.values if symbol.kind == "parameter"}
    name = value.buffer.name if isinstance(value, WholeTensor) and not value.buffer.shape else ""
    if name not in parameters:
        return ""
    return f"By position a number is an input, whose value is data: pass it by name, {name}=..."


def _attribute(t: Translation, node: ast.expr, owner: Value, attribute: str) -> Value:
    if isinstance(owner, EXPR) and attribute == "dtype":
        return owner.dtype
    if not isinstance(owner, WholeTensor):
        raise t.report.build_error(
            node,
            f"{describe(owner)} has no .{attribute}",
            "Tensors have .shape and .dtype; attributes of the op are plain values.",
        )
    if attribute == "dtype":
        return owner.buffer.dtype
    return tuple(map(literal, owner.buffer.shape))


def _subscript(t: Translation, node: ast.Subscript, owner: Value, index: ast.expr) -> Value:
    if isinstance(owner, tuple):
        bounds = [
            None
            if bound is None
            else constant_int(t, bound, value_of(t, bound), "an index of a tuple", _TABLE)
            for bound in _bounds(index)
        ]
        return part(t.report, node, owner, bounds, isinstance(index, ast.Slice))
    if isinstance(owner, WholeTensor):
        return load(t, node, owner)
    raise t.report.build_error(
        node,
        f"'{ast.unparse(node.value)}' is {describe(owner)} and has no elements",
        "Index tensors and tuples.",
    )


def _bounds(index: ast.expr) -> list[ast.expr | None]:
    return [index.lower, index.upper, index.step] if isinstance(index, ast.Slice) else [index]


def load(t: Translation, node: ast.Subscript, tensor: WholeTensor) -> Load:
    """Returns an element of a tensor."""
    indices = indices_of(t, node, tensor)
    buffer = tensor.buffer
    return Load(buffer.name, indices, buffer.dtype, location=t.report.source.location(node))


def indices_of(t: Translation, node: ast.Subscript, tensor: WholeTensor) -> tuple[Expr, ...]:
    """Returns the indices in a subscript of a tensor."""
    nodes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for index in nodes:
        if isinstance(index, ast.Slice):
            raise t.report.build_error(
                index,
                "a slice of a tensor is not in the loop language",
                "Write a loop over the elements, with one index per dimension.",
            )
    return element(t.report, node, tensor, [_index(t, index) for index in nodes])


def _index(t: Translation, node: ast.expr) -> Value:
    """Returns an index, or the tuple of them that a grid's variable is."""
    value = value_of(t, node)
    return value if isinstance(value, tuple) else as_scalar(t, node, value)


def _sum(t: Translation, node: ast.BinOp, left: Value, right: Value) -> Value:
    """`+` of two scalars, or of two tuples of indices or extents."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return left + right
    one, other = as_scalar(t, node.left, left), as_scalar(t, node.right, right)
    return arithmetic.binary(t.typing, node, "add", one, other)


def _unary(t: Translation, node: ast.UnaryOp) -> Expr:
    match node.op:
        case ast.Not():
            return arithmetic.unary(t.typing, node, "not", condition(t, node.operand))
        case ast.USub():
            return arithmetic.unary(t.typing, node, "neg", scalar(t, node.operand))
        case ast.Invert():
            return arithmetic.unary(t.typing, node, "invert", scalar(t, node.operand))
    return scalar(t, node.operand)


def _comparison(
    t: Translation, node: ast.Compare, nodes: list[ast.expr], ops: list[ast.cmpop]
) -> Expr:
    values = [value_of(t, operand) for operand in nodes]
    parts: list[Expr] = []
    for index, kind in enumerate(ops):
        left, right = values[index], values[index + 1]
        op = SYNTAX[type(kind)]
        if isinstance(left, str) and isinstance(right, str) and op in ("eq", "ne"):
            parts.append(Const((left == right) is (op == "eq"), "bool"))
            continue
        if isinstance(left, tuple) and isinstance(right, tuple) and op in ("eq", "ne"):
            parts.append(_equality(t, node, op, left, right))
            continue
        one, other = as_scalar(t, nodes[index], left), as_scalar(t, nodes[index + 1], right)
        parts.append(arithmetic.binary(t.typing, node, op, one, other))
    return arithmetic.joined(parts, deciding=False)


def _equality(
    t: Translation,
    node: ast.Compare,
    op: BinaryOp,
    left: tuple[Value, ...],
    right: tuple[Value, ...],
) -> Expr:
    """Returns whether two tuples, such as shapes, have equal elements, or have not."""
    if len(left) != len(right):
        return Const(op == "ne", "bool")
    pairs = [[as_scalar(t, node, each) for each in pair] for pair in zip(left, right, strict=True)]
    parts = (arithmetic.binary(t.typing, node, op, one, other) for one, other in pairs)
    return arithmetic.joined(parts, deciding=op == "ne")


def _conditional(t: Translation, node: ast.IfExp) -> Value:
    test = condition(t, node.test)
    if isinstance(test, Const):
        return value_of(t, node.body if test.value else node.orelse)
    arms = early.typed(t, [node.body, node.orelse], scalar)
    if len(arms) < 2:
        return arms[0]
    then, otherwise = t.typing.agree(node, arms[0], arms[1], "a conditional expression")
    return Select(test, then, otherwise, then.dtype)


def _converted(t: Translation, node: ast.expr, dtype: ast.expr, arg: ast.expr) -> Expr:
    """Returns the value of ``x.dtype.type(value)``."""
    wanted = value_of(t, dtype)
    if isinstance(wanted, str) and wanted in CASTS:
        return arithmetic.cast(t.typing, node, scalar(t, arg), wanted)
    raise t.report.build_error(
        node,
        f"'{ast.unparse(node)}' converts to {wanted}, which is no dtype of numbers",
        f"For a condition, compare: {ast.unparse(arg)} != 0.",
    )


def _call(t: Translation, node: ast.Call, name: str, args: list[ast.expr]) -> Expr:
    if name == "len":
        return _length(t, args[0])
    scalars = tuple(scalar(t, arg) for arg in args)
    if INTRINSICS[name].role == "cast":
        return arithmetic.cast(t.typing, node, scalars[0], name)
    if INTRINSICS[name].role == "math":
        return arithmetic.function(t.typing, node, name, scalars)
    if name == "likely":
        return scalars[0]
    left, right = scalars
    if name == "ceil_div":
        for part, arg in zip(scalars, args, strict=True):
            if is_float(part.dtype):
                raise t.report.build_error(
                    node,
                    f"'ceil_div' takes integers; got {part.dtype}",
                    f"Convert its input: int32({ast.unparse(arg)}).",
                )
        return _rounded_up(t, node, left, right)
    return arithmetic.binary(t.typing, node, _OPERATIONS[name], left, right)


def _rounded_up(t: Translation, node: ast.Call, left: Expr, right: Expr) -> Expr:
    """Returns a quotient rounded up; the sum in ``(a + b - 1) // b`` could wrap."""
    below = arithmetic.binary(t.typing, node, "floordiv", left, right)
    rest = arithmetic.binary(t.typing, node, "mod", left, right)
    is_uneven = arithmetic.binary(t.typing, node, "ne", rest, literal(0))
    if isinstance(is_uneven, Const):
        step: Expr = literal(int(is_uneven.value))
    else:
        step = Select(is_uneven, literal(1), literal(0), "int32")
    return arithmetic.binary(t.typing, node, "add", below, step)


def _length(t: Translation, node: ast.expr) -> Expr:
    value = value_of(t, node)
    if isinstance(value, WholeTensor) and value.buffer.shape:
        return literal(value.buffer.shape[0])
    if isinstance(value, tuple):
        return literal(len(value))
    raise t.report.build_error(
        node, f"'{ast.unparse(node)}' has no length", "Take len() of a tensor or of its shape."
    )


def constant_value(constant: Any) -> Value:
    """Returns a number, string or tuple from outside the kernel, `as_constant`, as a value."""
    if isinstance(constant, tuple):
        return tuple(map(constant_value, constant))
    return constant if isinstance(constant, str) else literal(constant)
