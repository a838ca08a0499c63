"""Names of TVM that only mark or convert: nothing here changes what is computed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from msops._loops.frontends.tvm.expr import IterVar, ScalarExpr, as_expr
from msops._loops.frontends.tvm.tensor import Tensor, as_shape

TAGS = {
    "BROADCAST": "broadcast",
    "COMM_REDUCE": "comm_reduce",
    "ELEMWISE": "elemwise",
    "INJECTIVE": "injective",
}
"""Values for `compute(..., tag=...)`."""


class Array:
    """TVM's own list, for `isinstance`; no list is one here, as all are Python's."""


def simplify(expr: Any) -> Any:
    """Returns an expression as it is: passes on the loop IR simplify it later."""
    return expr


@contextlib.contextmanager
def tag_scope(tag: str) -> Iterator[None]:
    """Opens a block whose stages carry a tag for schedules, which there are none of here."""
    yield


def thread_axis(dom: Any = None, tag: str = "", name: str = "") -> IterVar:
    """Returns the variable of a thread; ``ib.scope_attr(axis, "thread_extent", n)`` runs it.

    Args:
      dom: its range, or the tag if nothing else is given.
      tag: which thread, such as ``"threadIdx.x"``.
      name: its name in the loop IR.
    """
    if isinstance(dom, str):
        dom, tag = None, dom
    return IterVar(name or tag or "thread", tag=tag)


def convert(value: Any) -> Any:
    """Returns numbers as expressions, also inside lists and dicts; all else as it is."""
    if isinstance(value, (list, tuple)):
        return [convert(part) for part in value]
    if isinstance(value, dict):
        return {key: convert(part) for key, part in value.items()}
    if value is None or callable(value) or isinstance(value, (str, ScalarExpr, Tensor)):
        return value
    return as_expr(value)


def as_plain_tuple(in_tuple: Any) -> tuple[int, ...]:
    """Returns a shape as plain ints."""
    return tuple(map(int, as_shape("topi.get_const_tuple", in_tuple)))
