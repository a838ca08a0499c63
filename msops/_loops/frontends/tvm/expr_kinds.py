"""Classes of expressions that kernels ask for by ``isinstance``, such as ``tvm.expr.Mul``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msops._loops.frontends.tvm.expr import ScalarExpr
from msops._loops.frontends.tvm.tracing import type_error
from msops._loops.ir.nodes import Binary, Cast, Expr


class _Kind(type):
    """A class whose instances are the expressions of which a test holds."""

    _holds: Callable[[Expr], bool]

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, ScalarExpr) and cls._holds(value.node)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        raise type_error(
            f"tvm.expr.{cls.__name__}",
            "it only says what an expression is",
            "Write the operation with Python's operators, or x.astype(dtype).",
        )


def _kind(name: str, holds: Callable[[Expr], bool]) -> type:
    return _Kind(name, (), {"_holds": staticmethod(holds)})


def _binary(name: str, *ops: str) -> type:
    return _kind(name, lambda node: isinstance(node, Binary) and node.op in ops)


KINDS: dict[str, type] = {
    "Cast": _kind("Cast", lambda node: isinstance(node, Cast)),
    "Div": _binary("Div", "div", "truncdiv"),
    **{
        name: _binary(name, op)
        for name, op in (
            *(("Add", "add"), ("Sub", "sub"), ("Mul", "mul"), ("Mod", "truncmod")),
            *(("FloorDiv", "floordiv"), ("FloorMod", "mod"), ("Max", "max"), ("Min", "min")),
            *(("EQ", "eq"), ("NE", "ne"), ("LT", "lt"), ("LE", "le"), ("GT", "gt"), ("GE", "ge")),
        )
    },
}
"""Classes by their names in `tvm.expr`."""
