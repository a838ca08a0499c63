"""Names of AKG that say how a kernel is scheduled: they are accepted, and change nothing.

Corresponds to ``akg.utils.custom_tiling``, ``akg.utils.dynamic_shape`` and ``topi.util`` of AKG
r2.2. Here the compiler tiles by its own rules, and all shapes are known.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable
from typing import Any

from msops._loops.frontends.tvm.marks import as_plain_tuple, simplify

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
