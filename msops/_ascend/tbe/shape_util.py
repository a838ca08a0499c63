"""`tbe.common.utils.shape_util` and `tbe.dsl.classify`, as kernels import them: shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msops._ascend.tbe import util


def broadcast_shapes(
    shape1: Any, shape2: Any, param_name_input1: str = "", param_name_input2: str = ""
) -> tuple[list[int], list[int], list[int]]:
    """Returns two shapes with ones in front up to one rank, and the shape they broadcast to.

    Args:
      shape1: a shape.
      shape2: another.
      param_name_input1: not used.
      param_name_input2: not used.
    """
    return util.produce_shapes(shape1, shape2)


def unify_broadcast_shapes(shapes: Sequence[Any]) -> list[list[int]]:
    """Returns shapes with ones in front up to one rank, and then what all broadcast to."""
    result: list[int] = [1]
    for shape in shapes:
        _, _, result = util.produce_shapes(result, shape)
    return [*(util.produce_shapes(shape, result)[0] for shape in shapes), result]


def variable_shape(inputs: Sequence[Mapping[str, Any]], op_mode: Any = None) -> list[list[int]]:
    """Returns the shapes of tensors, with ones in front up to one rank where they broadcast.

    Args:
      inputs: descriptions of tensors, as `classify` returns them.
      op_mode: not used.
    """
    shapes = [util.shape_to_list(one["shape"]) for one in inputs if isinstance(one, Mapping)]
    return shapes if len(shapes) < 2 else unify_broadcast_shapes(shapes)[:-1]


def classify(ins: Sequence[Any], mode: Any = None, extra_params: Any = None) -> list[Sequence[Any]]:
    """Returns the cases of a kernel for dynamic shapes: one, as the shapes of a call are known.

    Args:
      ins: descriptions of the inputs (and axes).
      mode: not used.
      extra_params: not used.
    """
    return [list(ins)]


def refine_shapes_for_broadcast(shape1: Any, shape2: Any) -> tuple[list[int], list[int]]:
    """Returns two shapes with neighbouring axes joined where both agree."""
    return util.shape_simplify_with_broadcast(shape1, shape2)


def refine_shape_axes(shape: Any, axes: Any) -> tuple[list[int], list[int]]:
    """Returns a shape with neighbouring axes joined that are reduced alike, and the axes in it.

    Axes of extent 1 are left out. A shape of one axis stays as it is.

    Args:
      shape: a shape.
      axes: those that are reduced, counted from the front or, negative, from the end.

    Example:
      >>> refine_shape_axes((2, 3, 4, 5, 6), (1, -3))
      ([2, 12, 30], [1])
    """
    extents = util.shape_to_list(shape)
    if len(extents) == 1:
        return extents, list(axes)
    reduced = wrap_axes_to_positive(axes, len(extents))
    joined: list[int] = []
    is_reduced: list[bool] = []
    for axis, extent in enumerate(extents):
        if extent == 1:
            continue
        if is_reduced and is_reduced[-1] == (axis in reduced):
            joined[-1] *= extent
        else:
            joined.append(extent)
            is_reduced.append(axis in reduced)
    if not joined:
        return [1], [0] if reduced else []
    return joined, [n for n, flag in enumerate(is_reduced) if flag]


def wrap_axes_to_positive(axes: Any, rank: int) -> list[int]:
    """Returns axes counted from the front, in the order given."""
    given = list(axes) if isinstance(axes, (list, tuple)) else [axes]
    return [util.axis_check(rank, axis) for axis in given]


def squeeze_shape(shape: Any) -> Any:
    """Returns a shape without its ones; ``(1,)`` if it has nothing else."""
    return util.shape_refine(shape)


NAMES: dict[str, Any] = {
    "axis_check": util.axis_check,
    "broadcast_shapes": broadcast_shapes,
    "compare_tensor_dict_key": util.compare_tensor_dict_key,
    "produce_shapes": util.produce_shapes,
    "refine_shape_axes": refine_shape_axes,
    "refine_shapes_for_broadcast": refine_shapes_for_broadcast,
    "scalar2tensor_one": util.scalar2tensor_one,
    "shape_refine": util.shape_refine,
    "shape_to_list": util.shape_to_list,
    "squeeze_shape": squeeze_shape,
    "unify_broadcast_shapes": unify_broadcast_shapes,
    "variable_shape": variable_shape,
    "wrap_axes_to_positive": wrap_axes_to_positive,
}
"""The names of the module."""
