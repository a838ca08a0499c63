"""Ops in a mesh with Explicit axes, where the types of arrays say how they are divided.

There an op is a region in which the axes are Auto: XLA divides it (partitioning.py), and the op's
rule gives the types of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

import msops._jax_seam as seam
from msops._jax_seam.division import Dimensions
from msops._op.call import Call
from msops._op.protocols import BoundOp
from msops._sharding.partitioning import Callee, announce
from msops._sharding.tiling import Gathered
from msops.errors import ArgumentValueError

Axes = tuple[str, ...]


def call_in_explicit_mesh(
    operator: BoundOp, call: Call, function: Callable[..., Sequence[Any]], flat: Sequence[Any]
) -> Sequence[Any]:
    """Calls an op on arrays of which some have Explicit axes in their types.

    Args:
      operator: the op.
      call: structure of the call.
      function: the call, flat arrays to a flat list of arrays.
      flat: the arrays.
    """
    avals = [jax.typeof(value) for value in flat]
    mesh = next(mesh for aval in avals if _explicit(mesh := aval.sharding.mesh))
    divisions = [_division(aval) for aval in avals]
    structs = operator.outputs(call, avals).structs
    dimensions = operator.dimensions(call, avals, structs)
    if dimensions is None:
        gathered = _all_divided(divisions)
        specs = [PartitionSpec()] * len(structs)
    else:
        outputs, gathered = _divide_outputs(dimensions, divisions, operator.who)
        specs = [PartitionSpec(*(axes or None for axes in entries)) for entries in outputs]
    announce(Callee.of(operator), gathered, seam.call_site())
    return _call_in_auto_mesh(mesh, function, specs, flat)


def call_with_whole_results(
    callee: Callee, function: Callable[..., Sequence[Any]], results: int, flat: Sequence[Any]
) -> Sequence[Any]:
    """Calls what has no rule; where arrays have Explicit axes, its results are on each device.

    Args:
      callee: what is called, for reports of what is gathered.
      function: the call, flat arrays to a flat list of arrays.
      results: their number.
      flat: the arrays.
    """
    avals = [jax.typeof(value) for value in flat]
    mesh = next((mesh for aval in avals if _explicit(mesh := aval.sharding.mesh)), None)
    if mesh is None:
        return function(*flat)
    announce(callee, _all_divided([_division(aval) for aval in avals]), seam.call_site())
    return _call_in_auto_mesh(mesh, function, [PartitionSpec()] * results, flat)


def _call_in_auto_mesh(
    mesh: AbstractMesh,
    function: Callable[..., Sequence[Any]],
    specs: Sequence[PartitionSpec],
    flat: Sequence[Any],
) -> Sequence[Any]:
    """Calls a function where the Explicit axes of a mesh are Auto; `specs` are of its results."""
    shardings = [NamedSharding(mesh, spec) for spec in specs]
    region = jax.sharding.auto_axes(
        lambda *arrays: list(function(*arrays)), axes=_explicit(mesh), out_sharding=shardings
    )
    results: list[Any] = region(*flat)
    return results


def _all_divided(divisions: Sequence[Sequence[Axes]]) -> list[Gathered]:
    """Returns every dimension that is divided, given the axes that divide each."""
    return [
        Gathered(index, axis, _listed(axes))
        for index, entries in enumerate(divisions)
        for axis, axes in enumerate(entries)
        if axes
    ]


def _explicit(mesh: AbstractMesh) -> Axes:
    pairs = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return tuple(name for name, kind in pairs if kind == AxisType.Explicit)


def _division(aval: Any) -> list[Axes]:
    """Returns per dimension the Explicit axes it is divided over."""
    own = _explicit(aval.sharding.mesh)
    entries = [*aval.sharding.spec, *[None] * (len(aval.shape) - len(aval.sharding.spec))]
    return [
        tuple(axis for axis in (entry if isinstance(entry, tuple) else (entry,)) if axis in own)
        for entry in entries
    ]


def _divide_outputs(
    dimensions: Dimensions, inputs: Sequence[Sequence[Axes]], who: str
) -> tuple[list[list[Axes]], list[Gathered]]:
    """Returns how outputs are divided, and what of the inputs is not left so.

    Args:
      dimensions: of the call's arrays.
      inputs: per input and dimension, the axes of the mesh that it is divided over.
      who: the op, for messages.

    Raises:
      ArgumentValueError: inputs disagree, or one axis would divide two dimensions of an output.
    """
    axes: dict[str, Axes] = {}
    gathered = []
    for index, (names, entries) in enumerate(zip(dimensions.inputs, inputs, strict=True)):
        for axis, (name, entry) in enumerate(zip(names, entries, strict=True)):
            if entry and name not in dimensions.independent:
                gathered.append(Gathered(index, axis, _listed(entry)))
            elif entry and axes.setdefault(name, entry) != entry:
                raise ArgumentValueError.explained(
                    who,
                    f"expected inputs that are divided alike along {name!r}; got one over "
                    f"{_listed(axes[name])} and input {index} over {_listed(entry)}",
                    "Bring one into the other's form by jax.sharding.reshard.",
                )
    outputs = [[axes.get(name, ()) for name in names] for names in dimensions.outputs]
    for index, entries in enumerate(outputs):
        flat = [axis for entry in entries for axis in entry]
        if len(set(flat)) < len(flat):
            raise ArgumentValueError.explained(
                who,
                f"expected an axis of the mesh for one dimension of output {index}; the inputs "
                f"divide it over {', '.join(map(_listed, filter(None, entries)))}",
                "Replicate one of the inputs by jax.sharding.reshard.",
            )
    return outputs, gathered


def _listed(axes: Axes) -> str:
    return " and ".join(map(repr, axes))
