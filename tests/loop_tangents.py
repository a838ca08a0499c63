"""Forward mode for kernels of the loop IR, by walking them with dual numbers.

The derivative of an elementary function is a complex step, ``imag(f(x + ih)) / h``: exact to
rounding, and from no table of derivatives. What this gives, a compiled adjoint must match without a
tolerance for finite steps: ``<u, J v> = <J^T u, v>``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from loop_ir import (
    Binary,
    Buffer,
    Cast,
    Const,
    Expr,
    For,
    FunctionCall,
    If,
    Kernel,
    Load,
    Local,
    Select,
    Stmt,
    Store,
    Unary,
    Var,
    is_float,
    scalars,
)

STEP = 1e-30


class Dual(NamedTuple):
    """A value and its derivative in the direction asked for."""

    value: Any
    tangent: float = 0.0


def tangents(
    kernel: Kernel, inputs: Sequence[np.ndarray], directions: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Returns the derivative of each result of a float64 kernel along directions of its inputs.

    Args:
      kernel: a kernel whose floats are float64.
      inputs: an array per parameter.
      directions: an array per parameter; those of integers are not looked at.
    """
    walker = _Walker(kernel)
    for buffer, array, direction in zip(kernel.parameters, inputs, directions, strict=True):
        slopes = direction if is_float(buffer.dtype) else np.zeros(buffer.shape)
        walker.memory[buffer.name] = {
            at: Dual(array[at].item(), float(slopes[at])) for at in np.ndindex(buffer.shape)
        }
    for buffer in kernel.buffers:
        walker.memory[buffer.name] = _zeros(buffer)
    with np.errstate(all="ignore"):
        walker.run(kernel.body)
    found = []
    for buffer in kernel.outputs:
        array = np.zeros(buffer.shape)
        for at, dual in walker.memory[buffer.name].items():
            array[at] = dual.tangent
        found.append(array)
    return found


def _zeros(buffer: Buffer) -> dict[tuple[int, ...], Dual]:
    return dict.fromkeys(np.ndindex(buffer.shape), Dual(scalars.zero(buffer.dtype)))


class _Walker:
    def __init__(self, kernel: Kernel):
        self.shapes = {b.name: b.shape for b in (*kernel.parameters, *kernel.buffers)}
        self.memory: dict[str, dict[tuple[int, ...], Dual]] = {}
        self.variables: dict[str, int] = {}

    def run(self, body: tuple[Stmt, ...]) -> None:
        for stmt in body:
            match stmt:
                case Store():
                    value, at = self.dual(stmt.value), self.indices(stmt)
                    if at in self.memory[stmt.buffer]:
                        self.memory[stmt.buffer][at] = value
                case For():
                    for value in range(self.dual(stmt.begin).value, self.dual(stmt.end).value):
                        self.variables[stmt.var] = value
                        self.run(stmt.body)
                case If():
                    self.run(stmt.then if self.dual(stmt.condition).value else stmt.otherwise)
                case Local():
                    self.shapes[stmt.buffer.name] = stmt.buffer.shape
                    self.memory[stmt.buffer.name] = _zeros(stmt.buffer)
                    self.run(stmt.body)

    def indices(self, access: Load | Store) -> tuple[int, ...]:
        return tuple(self.dual(index).value for index in access.indices)

    def dual(self, expr: Expr) -> Dual:
        match expr:
            case Const(value=value, dtype=dtype):
                return Dual(scalars.constant(value, dtype))
            case Var(name=name):
                return Dual(self.variables[name])
            case Load(buffer=name):
                sizes = self.shapes[name]
                clamped = (min(max(i, 0), n - 1)
                           for i, n in zip(self.indices(expr), sizes, strict=True))  # fmt: skip
                return self.memory[name][tuple(clamped)]
            case Select(condition=condition, then=then, otherwise=otherwise):
                return self.dual(then if self.dual(condition).value else otherwise)
            case Binary(op="land", left=left, right=right):
                return self.dual(right) if self.dual(left).value else Dual(False)
            case Binary(op="lor", left=left, right=right):
                return Dual(True) if self.dual(left).value else self.dual(right)
            case Cast(operand=operand, dtype=dtype):
                inner = self.dual(operand)
                value = scalars.cast(operand.dtype, dtype)(inner.value)
                return Dual(value, inner.tangent if is_float(dtype) else 0.0)
            case Unary(op=op, operand=operand):
                inner = self.dual(operand)
                return Dual(scalars.unary(op, operand.dtype)(inner.value), -inner.tangent)
            case Binary(op=op, left=left, right=right):
                return _applied(op, scalars.binary(op, left.dtype), self.dual(left),
                                self.dual(right), smooth=is_float(expr.dtype))  # fmt: skip
            case FunctionCall(function=function, args=args):
                return _applied(function, scalars.call(function, args[0].dtype),
                                *map(self.dual, args), smooth=is_float(expr.dtype))  # fmt: skip


def _applied(name: str, compute: Callable[..., Any], *args: Dual, smooth: bool) -> Dual:
    value = compute(*(arg.value for arg in args))
    if not smooth or all(arg.tangent == 0 for arg in args):
        return Dual(value)
    if name in ("min", "max"):
        chosen = [arg.tangent for arg in args if arg.value == value]
        return Dual(value, sum(chosen) / max(len(chosen), 1))
    slopes = [slope(name, [arg.value for arg in args], which) if arg.tangent else 0.0
              for which, arg in enumerate(args)]  # fmt: skip
    return Dual(value, float(sum(s * arg.tangent for s, arg in zip(slopes, args, strict=True))))


def slope(name: str, args: Sequence[float], which: int) -> float:
    """Returns the derivative of an operation or function by one of its arguments."""
    if name in _CONSTANT:
        return 0.0
    moved = [complex(arg) for arg in args]
    moved[which] += 1j * STEP
    return float((_COMPLEX[name](*moved)).imag / STEP)


_CONSTANT = ("floor", "ceil", "trunc", "nearbyint", "round", "sign", "floordiv")


def _real(function: Callable[..., float]) -> Callable[..., complex]:
    return lambda *args: complex(function(*(arg.real for arg in args)))


def _power(a: complex, b: complex) -> complex:
    if b == 0:
        return 1.0 + 0j
    if a == 0:
        # The derivative by the base, at 0.
        return a if b == 1 else 0j
    if b.imag == 0 and b.real.is_integer():
        return a ** int(b.real)
    return np.exp(b * np.log(a))


_COMPLEX: dict[str, Callable[..., complex]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "mod": lambda a, b: a - b * math.floor(a.real / b.real),
    "fmod": lambda a, b: a - b * math.trunc(a.real / b.real),
    "pow": _power,
    # In the right half-plane; a quarter turn of a constant angle does not move the derivative.
    "atan2": lambda a, b: np.arctan(a / b) if b.real else -np.arctan(b / a),
    "abs": lambda a: a if a.real >= 0 else -a,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "exp10": lambda a: np.exp(a * math.log(10)),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    # The first term of the series in the step is all of it.
    "erf": lambda a: complex(0, a.imag * 2 / math.sqrt(math.pi) * math.exp(-a.real * a.real)),
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    **{
        name: getattr(np, name)
        for name in (
            "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan",
            "sinh", "cosh", "tanh",
        )
    },
}  # fmt: skip
