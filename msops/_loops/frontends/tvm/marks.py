"""Names that only mark, convert, register, or say what something is: they compute nothing.

Corresponds to names of TVM, and to ``akg.utils.custom_tiling``, ``akg.utils.dynamic_shape`` and
``topi.util`` of AKG r2.2, which say how a kernel is scheduled. Here the compiler tiles by its own
rules, and all shapes are known.
"""

from __future__ import annotations

import contextlib
import enum
import logging
from collections.abc import Callable, Iterator
from typing import Any

from msops._loops.frontends.tvm.expr import IterVar, ScalarExpr, as_expr
from msops._loops.frontends.tvm.tensor import Tensor, as_shape
from msops._loops.frontends.tvm.tracing import type_error, wrong_value
from msops._loops.ir.nodes import Binary, Cast, Expr

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


_log = logging.getLogger("msops.loops")


TileTemplate = enum.Enum(
    "TileTemplate", {"NC1HWC0": "NC1HWC0", "NCHW": "NCHW", "DEFAULT_FORMAT": "NCHW", "NHWC": "NHWC"}
)
TileLevel, TileMode, TileConstraint = (
    enum.Enum(name, {member: member for member in members.split()})
    for name, members in (
        ("TileLevel", "C1 C0"),
        ("TileMode", "AXIS TENSOR COMMON"),
        (
            "TileConstraint",
            "MIN MOD MAX FACTOR CANDIDATE FORBID_ISOLATE SET_PRIORITY SET_EXPANSION SET_MEM_RATIO "
            "SET_AXIS_INFO THREAD_MIN THREAD_MAX THREAD_MOD BLOCK_MIN BLOCK_MAX BLOCK_MOD",
        ),
    )
)
"""Formats, buffers and kinds of tiles, and of constraints on their sizes."""


def _hint(name: str, result: Callable[[], Any]) -> Callable[..., Any]:
    """Returns a function that takes any arguments and says at level DEBUG that it does nothing."""

    def accepted(*args: Any, **options: Any) -> Any:
        _log.debug("%s does nothing here: msops tiles by its own rules", name)
        return result()

    accepted.__name__ = accepted.__qualname__ = name.rpartition(".")[2]
    accepted.__doc__ = "Accepts a hint for AKG's scheduler, without effect."
    return accepted


def _unchanged() -> Callable[[Any], Any]:
    return lambda function: function


def shape_is_dynamic(data: Any) -> bool:
    """Returns whether a shape has sizes that are not known; all are."""
    return False


CUSTOM_TILING: dict[str, Any] = {
    # In bytes; kernels pad to it.
    "BLOCK_SIZE": 32,
    "TileConstraint": TileConstraint,
    "TileLevel": TileLevel,
    "TileMode": TileMode,
    "TileTemplate": TileTemplate,
    **{
        # Kernels take the first of the constraints.
        name: _hint(f"akg.utils.custom_tiling.{name}", lambda: [None])
        for name in (
            "create_constraint_on_axis",
            "create_constraint_on_tensor",
            "create_template",
            "modify_common_constraints",
            "reg_set_dim_func_by_func",
        )
    },
    **{
        name: _hint(f"akg.utils.custom_tiling.{name}", str)
        for name in ("set_dims", "set_dims_by_key")
    },
    **{
        name: _hint(f"akg.utils.custom_tiling.{name}", _unchanged)
        for name in ("reg_gen_key_func", "reg_set_dim_func")
    },
}
"""The contents of `akg.utils.custom_tiling`."""

DYNAMIC_SHAPE: dict[str, Any] = {
    "shape_is_dynamic": shape_is_dynamic,
    **{
        name: _hint(f"akg.utils.dynamic_shape.{name}", list)
        for name in ("set_dynamic_shape_limit_for_tensor", "set_poly_upper_bound_for_tensor")
    },
}
"""The contents of `akg.utils.dynamic_shape`."""

TOPI_UTIL: dict[str, Any] = {
    "get_const_int": int,
    "get_const_tuple": as_plain_tuple,
    "simplify": simplify,
    "traverse_inline": _hint("topi.util.traverse_inline", lambda: None),
}
"""The contents of `topi.util`."""


_functions: dict[str, Callable[..., Any]] = {}


def register_func(
    func_name: Any, f: Callable[..., Any] | None = None, override: bool = False
) -> Any:
    """Registers a function under a name; a decorator if only the name, or nothing, is given.

    Args:
      func_name: the name; or the function, which is then registered under its own.
      f: the function.
      override: whether it may replace another one of that name.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)
    if f is None:
        return lambda function: register_func(func_name, function, override)
    known = _functions.get(func_name)
    # A kernel is read for each shape it is called with, so it registers its function again.
    if known is not None and not override and known.__code__ is not f.__code__:
        raise wrong_value(
            f"there is a function {func_name!r} already",
            "Choose another name, or pass override=True.",
        )
    _functions[func_name] = f
    return f


def get_global_func(name: str, allow_missing: bool = False) -> Callable[..., Any] | None:
    """Returns the function that is registered under a name.

    Args:
      name: the name.
      allow_missing: whether None is returned if there is none.
    """
    if name not in _functions and not allow_missing:
        raise wrong_value(
            f"there is no function {name!r}; msops has none of TVM's own",
            "Register it with tvm.register_func, or call Python.",
        )
    return _functions.get(name)


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
