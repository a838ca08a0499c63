"""Stores that both branches of a condition make become one store of a chosen value.

    if (c) { d[i] = x } else { d[i] = y }   ->   d[i] = (c ? x : y)

A compiler then knows that the element is written, and can keep it in a register.
"""

from __future__ import annotations

import dataclasses

from msops._loops.ir.nodes import If, Kernel, Select, Stmt, Store
from msops._loops.ir.walk import rewrite_statements, with_body


def merge_branches(kernel: Kernel) -> Kernel:
    """Returns the kernel with such conditions turned into expressions."""
    return with_body(kernel, rewrite_statements(kernel.body, lambda stmt: (_merged(stmt),), If))


def _merged(stmt: If) -> Stmt:
    match stmt:
        case If(condition=condition, then=(Store() as then,), otherwise=(Store() as other,)) if (
            then.buffer,
            then.indices,
        ) == (other.buffer, other.indices):
            value = Select(condition, then.value, other.value, then.value.dtype)
            return dataclasses.replace(then, value=value)
    return stmt
