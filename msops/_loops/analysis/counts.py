"""How many operations a kernel does, by the kinds that XLA's cost analysis has.

Counted is arithmetic on elements of arrays and on what is computed from them: not that of indices
and bounds, and no comparison, choice or conversion. Counts are exact where bounds and conditions
are made of loop variables and change regularly with them. Then the count f(v) of an iteration is a
polynomial, by pieces, and its sum follows from as many values as its degree and one (Newton's
forward differences):

    f(b) + ... + f(b + n - 1)  =  sum over k of  binomial(n, k + 1) * (k-th difference of f at b)

A condition on data counts as its longer branch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias, TypeVar

from msops._loops.ir import scalars
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.intrinsics import COMPARISONS, LOGICAL, is_float
from msops._loops.ir.nodes import (
    Binary,
    Call,
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
    Unary,
    Var,
)
from msops._loops.ir.walk import bodies, expressions, operands, own_expressions, statements

Variables: TypeAlias = Mapping[str, int]
"""The value of each loop variable in scope."""

_Branch = TypeVar("_Branch")

_MOST_STATEMENTS = 20_000
"""How many statements are looked at, over all values of loop variables that are tried."""

_PERIODIC = frozenset(("mod", "truncmod", "and", "or", "xor"))
"""Operations that may make of a growing index one that comes back again and again."""


class _Unknown(Exception):
    """A count depends on data, or changes too irregularly."""


def count_operations(kernel: Kernel) -> dict[str, int]:
    """Returns the number of "flops" and of "transcendentals"; empty if they cannot be told."""
    try:
        return {kind: _Counter(is_of).count(kernel) for kind, is_of in _KINDS.items()}
    except _Unknown:
        return {}


def _is_flop(expr: Expr) -> bool:
    match expr:
        case Unary(op=op):
            return op != "not"
        case Binary(op=op):
            return op not in (*COMPARISONS, *LOGICAL, "pow")
        case Call(function=function):
            row = FUNCTIONS[function]
            return not (row.is_transcendental or row.to_bool)
    return False


def _is_transcendental(expr: Expr) -> bool:
    match expr:
        case Binary(op=op):
            return op == "pow"
        case Call(function=function):
            return FUNCTIONS[function].is_transcendental
    return False


_KINDS = {"flops": _is_flop, "transcendentals": _is_transcendental}


class _Counter:
    """Counts the operations of one kind.

    Args:
      is_of: tells whether a node is of the kind.
    """

    def __init__(self, is_of: Callable[[Expr], bool]):
        self._is_of = is_of
        self._left = _MOST_STATEMENTS
        self._steering: dict[int, list[Expr]] = {}

    def count(self, kernel: Kernel) -> int:
        """Returns the number in a whole kernel."""
        return self._body(kernel.body, {})

    def _body(self, body: tuple[Stmt, ...], variables: Variables) -> int:
        return sum(self._statement(stmt, variables) for stmt in body)

    def _statement(self, stmt: Stmt, variables: Variables) -> int:
        self._left -= 1
        if self._left < 0:
            raise _Unknown
        match stmt:
            case Store(value=value):
                return self._expression(value, variables)
            case For():
                return self._loop(stmt, variables)
            case Local(body=body):
                return self._body(body, variables)
            case If(condition=condition, then=then, otherwise=otherwise):
                chosen = _chosen(condition, (then, otherwise), variables)
                return self._expression(condition, variables) + max(
                    self._body(body, variables) for body in chosen
                )
        return 0

    def _expression(self, expr: Expr, variables: Variables) -> int:
        match expr:
            case Load():
                # Its indices are part of the address.
                return 0
            case Select(condition=condition, then=then, otherwise=otherwise):
                chosen = _chosen(condition, (then, otherwise), variables)
                return self._expression(condition, variables) + max(
                    self._expression(branch, variables) for branch in chosen
                )
        inner = sum(self._expression(operand, variables) for operand in operands(expr))
        return inner + (self._is_of(expr) and _is_on_data(expr))

    def _loop(self, loop: For, variables: Variables) -> int:
        begin, end = _value(loop.begin, variables), _value(loop.end, variables)
        if end <= begin:
            return 0
        if id(loop) not in self._steering:
            self._steering[id(loop)] = _steering(loop)
        steering = self._steering[id(loop)]

        def iteration(value: int) -> int:
            return self._body(loop.body, {**variables, loop.var: value})

        if not steering:
            return (end - begin) * iteration(begin)
        if any(map(_is_periodic, steering)):
            return sum(map(iteration, range(begin, end)))
        turns = _turns(steering, loop.var, begin, variables)
        cuts = sorted({begin, end, *(turn for turn in turns if begin < turn < end)})
        degree = _depth(loop.body)
        return sum(
            _sum(iteration, first, past - first, degree) for first, past in itertools.pairwise(cuts)
        )


def _sum(f: Callable[[int], int], begin: int, count: int, degree: int) -> int:
    """Returns f(begin) + f(begin + 1) + ...; f is a polynomial of at most a degree, by pieces."""
    if count <= degree + 3:
        return sum(f(begin + k) for k in range(count))
    row = [f(begin + k) for k in range(degree + 1)]
    differences = []
    while row:
        differences.append(row[0])
        row = [after - before for before, after in itertools.pairwise(row)]

    def is_as_told(k: int) -> bool:
        return f(begin + k) == sum(math.comb(k, i) * d for i, d in enumerate(differences))

    half = count // 2
    if is_as_told(half) and is_as_told(count - 1):
        return sum(math.comb(count, i + 1) * d for i, d in enumerate(differences))
    return _sum(f, begin, half, degree) + _sum(f, begin + half, count - half, degree)


def _chosen(
    condition: Expr, branches: tuple[_Branch, _Branch], variables: Variables
) -> tuple[_Branch, ...]:
    """Returns the branch that a condition takes; both if it depends on data."""
    try:
        return (branches[0] if _value(condition, variables) else branches[1],)
    except _Unknown:
        return branches


def _value(expr: Expr, variables: Variables) -> int:
    """Returns the value of an expression of loop variables."""
    match expr:
        case Const(value=value) if not is_float(expr.dtype):
            return int(value)
        case Var(name=name):
            if name in variables:
                return variables[name]
        case Unary(op=op, operand=operand):
            return int(scalars.unary(op, operand.dtype)(_value(operand, variables)))
        case Binary(op=op, left=left, right=right):
            apply = scalars.binary(op, left.dtype)
            return int(apply(_value(left, variables), _value(right, variables)))
        case Cast(operand=operand) if not is_float(operand.dtype) and not is_float(expr.dtype):
            return int(scalars.cast(operand.dtype, expr.dtype)(_value(operand, variables)))
        case Select(condition=condition, then=then, otherwise=otherwise):
            chosen = then if _value(condition, variables) else otherwise
            return _value(chosen, variables)
    raise _Unknown


def _is_on_data(expr: Expr) -> bool:
    return is_float(expr.dtype) or any(isinstance(part, Load) for part in expressions(expr))


def _steering(loop: For) -> list[Expr]:
    """Returns the bounds and conditions inside a loop that depend on its variable."""
    found: list[Expr] = []
    for stmt in statements(loop.body):
        own = own_expressions(stmt)
        found += [] if isinstance(stmt, Store) else own
        found += [p.condition for e in own for p in expressions(e) if isinstance(p, Select)]
    return [expr for expr in found if Var(loop.var) in expressions(expr)]


def _is_periodic(expr: Expr) -> bool:
    """Tells whether an expression may come and go in a rhythm that samples can fall in with."""
    return any(isinstance(part, Binary) and part.op in _PERIODIC for part in expressions(expr))


def _turns(steering: list[Expr], variable: str, begin: int, variables: Variables) -> Iterator[int]:
    """Yields values of a variable around which comparisons change, which no sampling may find."""
    for part in (part for expr in steering for part in expressions(expr)):
        if not isinstance(part, Binary) or part.op not in COMPARISONS:
            continue
        try:
            here, next_ = (
                _value(part.left, inside) - _value(part.right, inside)
                for inside in ({**variables, variable: begin + k} for k in (0, 1))
            )
        except _Unknown:
            continue
        if here != next_:
            zero = begin - here // (next_ - here)
            yield from range(zero - 1, zero + 3)


def _depth(body: tuple[Stmt, ...]) -> int:
    """Returns how many loops stand in one another."""
    return max(
        (max(map(_depth, bodies(stmt)), default=0) + isinstance(stmt, For) for stmt in body),
        default=0,
    )
