"""The rules of a legal kernel: a table with one rule a line, which verify.py applies.

A rule may rely on those above it for the same node, and on its operands' being legal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import numpy as np

from msops._base.dtypes import as_dtype
from msops._loops.ir.functions import FUNCTIONS
from msops._loops.ir.names import declared_names
from msops._loops.ir.nodes import (
    INDEX_DTYPE,
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
    LocalStorage,
    LoopHint,
    LoopKind,
    Select,
    Store,
    Unary,
    Var,
    VectorForm,
    Within,
)
from msops._loops.ir.operators import BINARY, BITS, DTYPES, FLOATS, INTEGERS, Domain, result_dtype
from msops._loops.ir.walk import Scope, is_innermost


class Rule(NamedTuple):
    """A property of every legal node of a type."""

    text: str
    holds: Callable[[Any, Scope], bool]


def _are_distinct(kernel: Kernel) -> bool:
    names = declared_names(kernel)
    return len(set(names)) == len(names)


def _is_name(name: str) -> bool:
    # The text form would read the two words as constants.
    return name.isidentifier() and name not in ("true", "false")


def _python_type(dtype: str) -> type:
    return bool if dtype == "bool" else float if dtype in FLOATS else int


def _in_range(value: bool | int | float, dtype: str) -> bool:
    if dtype not in INTEGERS:
        return True
    info = np.iinfo(as_dtype(dtype).dtype)
    return int(info.min) <= value <= int(info.max)


def _are_integers(indices: tuple[Expr, ...]) -> bool:
    return all(index.dtype in INTEGERS for index in indices)


_DOMAINS: dict[Domain, tuple[str, ...]] = {
    "number": (*INTEGERS, *FLOATS),
    "integer": INTEGERS,
    "float": FLOATS,
    "bool": ("bool",),
}
_UNARY = {
    "neg": _DOMAINS["number"],
    "not": _DOMAINS["bool"],
    "invert": _DOMAINS["integer"],
    "bits": (*BITS,),
}
_BINARY = {op: _DOMAINS[domain] for op, (_, domain) in BINARY.items()}
_BINARY |= {op: (*_BINARY[op], "bool") for op in ("eq", "ne", "and", "or", "xor")}
_FUNCTIONS = {name: {*_DOMAINS[function.domain]} for name, function in FUNCTIONS.items()}


def _rank(access: Load | Store, scope: Scope) -> int:
    return len(scope.buffers[access.buffer].shape)


def _dtype(access: Load | Store, scope: Scope) -> str:
    return scope.buffers[access.buffer].dtype


def _sign_dtype(sign: Unary) -> str:
    return BITS[sign.operand.dtype] if sign.op == "bits" else sign.operand.dtype


def _operation_dtype(operation: Binary) -> str:
    return result_dtype(operation.op, operation.left.dtype)


def _arity(call: FunctionCall) -> int:
    return FUNCTIONS[call.function].arity


def _arguments(call: FunctionCall) -> set[str]:
    return {arg.dtype for arg in call.args}


def _call_dtype(call: FunctionCall) -> str:
    return "bool" if FUNCTIONS[call.function].to_bool else call.args[0].dtype


def _may_be_a_vector(loop: For) -> bool:
    return not loop.vector or is_innermost(loop)


RULES: dict[type, tuple[Rule, ...]] = {
    Kernel: (
        Rule("a kernel's name is an identifier", lambda k, s: k.name.isidentifier()),
        Rule("buffers and variables have names of their own", lambda k, s: _are_distinct(k)),
        Rule("a kernel has a result", lambda k, s: len(k.results) > 0),
        Rule("results are buffers of the kernel", lambda k, s: set(k.results) <= set(s.buffers)),
    ),
    Buffer: (
        Rule("a buffer's name is an identifier", lambda b, s: _is_name(b.name)),
        Rule("a buffer's dtype is one of the IR", lambda b, s: b.dtype in DTYPES),
        Rule("sizes are whole numbers", lambda b, s: all(type(n) is int for n in b.shape)),
        Rule("sizes are not negative", lambda b, s: all(n >= 0 for n in b.shape)),
        Rule("every index of a buffer is an int32", lambda b, s: max(b.shape, default=0) < 2**31),
    ),
    Const: (
        Rule("a constant's dtype is one of the IR", lambda c, s: c.dtype in DTYPES),
        Rule("a constant's type fits", lambda c, s: type(c.value) is _python_type(c.dtype)),
        Rule("a constant is in its range", lambda c, s: _in_range(c.value, c.dtype)),
    ),
    Var: (Rule("a variable belongs to an enclosing loop", lambda v, s: v.name in s.ranges),),
    Load: (
        Rule("a load reads a buffer in scope", lambda e, s: e.buffer in s.buffers),
        Rule("a load has an index for each dimension", lambda e, s: len(e.indices) == _rank(e, s)),
        Rule("indices of a load are integers", lambda e, s: _are_integers(e.indices)),
        Rule("a load has its buffer's dtype", lambda e, s: e.dtype == _dtype(e, s)),
    ),
    Unary: (
        Rule("a sign is a known one", lambda e, s: e.op in _UNARY),
        Rule("a sign applies to its operand", lambda e, s: e.operand.dtype in _UNARY[e.op]),
        Rule("a sign has its result's dtype", lambda e, s: e.dtype == _sign_dtype(e)),
    ),
    Binary: (
        Rule("an operation is a known one", lambda e, s: e.op in BINARY),
        Rule("operands of an operation have one dtype", lambda e, s: e.left.dtype == e.right.dtype),
        Rule("an operation takes such operands", lambda e, s: e.left.dtype in _BINARY[e.op]),
        Rule("an operation has its result's dtype", lambda e, s: e.dtype == _operation_dtype(e)),
    ),
    FunctionCall: (
        Rule("a function is a known one", lambda e, s: e.function in FUNCTIONS),
        Rule("a function has its arguments", lambda e, s: len(e.args) == _arity(e)),
        Rule("arguments of a function have one dtype", lambda e, s: len(_arguments(e)) == 1),
        Rule("a function takes such ones", lambda e, s: _arguments(e) <= _FUNCTIONS[e.function]),
        Rule("a function has its result's dtype", lambda e, s: e.dtype == _call_dtype(e)),
    ),
    Cast: (Rule("a cast is to a dtype of the IR", lambda e, s: e.dtype in DTYPES),),
    Within: (
        Rule("what is within a range is an integer", lambda e, s: _are_integers((e.operand,))),
    ),
    Select: (
        Rule("the condition of a select is a bool", lambda e, s: e.condition.dtype == "bool"),
        Rule("branches have one dtype", lambda e, s: e.then.dtype == e.otherwise.dtype == e.dtype),
    ),
    Store: (
        Rule("a store writes a buffer in scope", lambda t, s: t.buffer in s.buffers),
        Rule("a store has an index for each dimension", lambda t, s: len(t.indices) == _rank(t, s)),
        Rule("indices of a store are integers", lambda t, s: _are_integers(t.indices)),
        Rule("a stored value has its buffer's dtype", lambda t, s: t.value.dtype == _dtype(t, s)),
    ),
    For: (
        Rule("a variable's name is an identifier", lambda t, s: _is_name(t.var)),
        Rule("bounds are int32", lambda t, s: t.begin.dtype == t.end.dtype == INDEX_DTYPE),
        Rule("a loop's kind is a known one", lambda t, s: t.kind in get_args(LoopKind)),
        Rule("a loop's hint is a known one", lambda t, s: t.hint in get_args(LoopHint)),
        Rule("a loop's vector is a known one", lambda t, s: t.vector in get_args(VectorForm)),
        Rule("a loop in vectors is an innermost one", lambda t, s: _may_be_a_vector(t)),
        Rule("a loop of a grid is parallel", lambda t, s: not t.in_grid or t.kind == "parallel"),
    ),
    If: (Rule("the condition of an if is a bool", lambda t, s: t.condition.dtype == "bool"),),
    Local: (
        Rule("a local's storage is a known one", lambda t, s: t.storage in get_args(LocalStorage)),
    ),
}  # fmt: skip
"""The rules of each type of node."""
