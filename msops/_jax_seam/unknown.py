"""Arrays that XLA does not know.

XLA simplifies operations by what it knows of their operands, as if floats were real numbers: with
zeros for y it takes x for ``x + y``, also where x is -0. `unknown` keeps a constant of a program
from it, and changes nothing of an array that is computed from the program's inputs.
"""

from __future__ import annotations

from typing import Any

from jax._src import core
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import hlo
from jax.interpreters import ad, batching, mlir

_MOST_OPERATIONS = 100
"""An array of more operations than these is not followed to its constants."""


def unknown(array: Any) -> Any:
    """Returns an array, of which XLA knows nothing if it is a constant of the program.

    What a function of its own gets, or the body of a loop, may be one: that is unknown, too.
    """
    return _unknown.bind(array)


def unknown_operand(value: Any) -> Any:
    """Returns the same of an operand of a lowering rule."""
    return hlo.optimization_barrier([value]) if _may_be_constant(value) else value


def _may_be_constant(value: Any) -> bool:
    """Returns whether no operation that made a value can have read an input of the program."""
    waiting, seen = [value], set[Any]()
    while waiting and len(seen) < _MOST_OPERATIONS:
        owner = waiting.pop().owner
        if isinstance(owner, ir.Block):
            if _is_program(owner.owner.operation):
                return False
        elif owner not in seen:
            seen.add(owner)
            waiting += owner.operands
    return not waiting


def _is_program(operation: Any) -> bool:
    """Returns whether an operation is the function whose arguments are the inputs."""
    visibility = "sym_visibility"
    if operation.name != "func.func" or visibility not in operation.attributes:
        return False
    value: str = ir.StringAttr(operation.attributes[visibility]).value
    return value == "public"


_unknown = core.Primitive("unknown")
_unknown.def_impl(lambda array: array)
_unknown.def_abstract_eval(lambda aval: aval)
mlir.register_lowering(_unknown, lambda _, value: [unknown_operand(value)], cacheable=False)
batching.defvectorized(_unknown)
ad.deflinear2(_unknown, lambda cotangent, _: [cotangent])
