"""Calls that XLA divides over devices, asking back when it knows how.

Not imported with the package: `import msops` must be quick.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src import core
from jax._src import mesh as _mesh
from jax._src import xla_bridge as _xla_bridge
from jax._src.interpreters import mlir as _mlir
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import sdy
from jax.interpreters import mlir
from jaxlib import xla_client as _xla_client

from msops._jax_seam.division import Dimensions, DivisionPlan, Tiling, undivided
from msops._jax_seam.lowering import DEVICES, Lowering, OneDevice


@dataclasses.dataclass(frozen=True)
class Part:
    """The program that replaces a call which XLA divides over devices.

    Attributes:
      plan: how the arrays are divided, and results summed.
      function: arrays of a device to its results, in JAX.
      devices: those of the program, by `_jax_seam.devices_of`.
      platform: JAX's name of the devices' platform.
      wide: whether 64-bit types are enabled.
      hold: takes what must live as long as the program.
    """

    plan: DivisionPlan
    function: Callable[..., Sequence[Any]]
    devices: Any
    platform: str
    wide: bool
    hold: Callable[[Any], None]


def register_partitioner(target: str, divide: Callable[[str, Sequence[Tiling], int], Part]) -> None:
    """Has XLA ask what becomes of a call of `target` once it knows how arrays are divided.

    Args:
      target: for `divided_call`.
      divide: given the call's id, the tilings that XLA found for inputs and outputs, and how many
        of them are inputs, returns what replaces the call.
    """

    def plan(
        shapes: Sequence[Any], shardings: Sequence[Any], result: Any, sharding: Any, key: bytes
    ) -> tuple[Part, list[Any], Any]:
        is_tuple = result.is_tuple()
        results = result.tuple_shapes() if is_tuple else [result]
        found = [None] * len(results)
        if sharding is not None:
            found = sharding.tuple_elements() if is_tuple else [sharding]
        ranks = [len(shape.dimensions()) for shape in (*shapes, *results)]
        part = divide(key.decode(), _tilings([*shardings, *found], ranks), len(shapes))
        wanted = [_hlo_sharding(tiling) for tiling in part.plan.tilings]
        whole = wanted[len(shapes) :]
        packed = _xla_client.HloSharding.tuple_sharding(result, whole) if is_tuple else whole[0]
        return part, wanted[: len(shapes)], packed

    def partition(
        shapes: Sequence[Any], shardings: Sequence[Any], result: Any, sharding: Any, key: bytes
    ) -> tuple[bytes, list[Any], Any]:
        part, inputs, outputs = plan(shapes, shardings, result, sharding, key)
        avals = [
            core.ShapedArray(tiling.part(shape.dimensions()), shape.numpy_dtype())
            for tiling, shape in zip(part.plan.tilings, shapes, strict=False)
        ]
        return _lower_part(part, avals), inputs, outputs

    rules = {
        "name": target,
        "partition": partition,
        # These two are for GSPMD alone; Shardy has the rule that the call carries.
        "prop_user_sharding": lambda sharding, shape, key: sharding,
        "infer_sharding_from_operands": lambda shapes, shardings, result, key: plan(
            shapes, shardings, result, None, key
        )[2],
        "can_side_effecting_have_replicated_sharding": True,
    }
    _xla_client.register_custom_call_partitioner(**rules)
    _xla_bridge.register_plugin_callbacks(
        functools.partial(_xla_client.register_custom_call_partitioner, **rules)
    )


def _tilings(shardings: Sequence[Any], ranks: Sequence[int]) -> list[Tiling]:
    """Returns shardings of XLA, None for one not known yet, as numbers."""
    divided = [
        None if sharding is None else _xla_client.HloSharding.v3_to_v2_sharding(sharding)
        for sharding in shardings
    ]
    known = [
        _tiling(sharding, rank) if sharding is not None and sharding.is_tiled() else None
        for sharding, rank in zip(divided, ranks, strict=True)
    ]
    like = next((tiling.devices for tiling in known if tiling is not None), np.zeros((1, 1)))
    return [
        undivided(rank, like.reshape(-1, like.shape[-1])) if tiling is None else tiling
        for tiling, rank in zip(known, ranks, strict=True)
    ]


def _tiling(sharding: Any, rank: int) -> Tiling:
    counts = sharding.tile_assignment_dimensions()
    devices = np.array(sharding.tile_assignment_devices()).reshape(counts)
    kinds = sharding.subgroup_types() or [_REPLICATED] * (len(counts) - rank)
    copies = [rank + i for i, kind in enumerate(kinds) if kind == _REPLICATED]
    groups = [axis for axis in range(rank, len(counts)) if axis not in copies]
    tiles = tuple(counts[:rank])
    size = math.prod(counts[axis] for axis in groups)
    devices = devices.transpose(*range(rank), *copies, *groups)
    return Tiling(tiles, devices.reshape(*tiles, -1, size))


def _hlo_sharding(tiling: Tiling) -> Any:
    """Returns a tiling as a sharding of XLA."""
    if math.prod(tiling.tiles) == tiling.devices.shape[-1] == 1:
        return _xla_client.HloSharding.replicate()
    message = _xla_client.OpSharding()
    message.type = _xla_client.OpSharding.Type.OTHER
    message.tile_assignment_dimensions = list(tiling.devices.shape)
    message.tile_assignment_devices = tiling.devices.reshape(-1).tolist()
    message.last_tile_dims = [_REPLICATED, _xla_client.OpSharding.Type.MANUAL]
    return _xla_client.HloSharding.from_proto(message)


_REPLICATED = _xla_client.OpSharding.Type.REPLICATED


def _lower_part(part: Part, avals: Sequence[Any]) -> bytes:
    """Returns the program of a part, for one device."""
    axes = OneDevice(part.devices)

    def summed(*arrays: Any) -> list[Any]:
        return [
            result
            if groups is None
            else jax.lax.psum(result, DEVICES, axis_index_groups=groups.tolist())
            for result, groups in zip(part.function(*arrays), part.plan.sums, strict=True)
        ]

    # XLA may ask in any thread, with a mesh of its user's or without; a device knows of none.
    with jax.enable_x64(part.wide), _mesh.use_abstract_mesh(_mesh.empty_abstract_mesh):
        env = [(DEVICES, part.devices.size)]
        program = jax.make_jaxpr(summed, axis_env=env)(*avals)
        module = _mlir.build_mlir_module_helper(
            program, name="part", platforms=[part.platform], backend=None, axis_context=axes
        )
    for value in axes.held:
        part.hold(value)
    return _mlir.module_to_bytecode(module)


def divided_call(
    lowering: Lowering,
    operands: Sequence[Any],
    target: str,
    key: str,
    dimensions: Dimensions,
    results: Sequence[jax.ShapeDtypeStruct],
    has_side_effect: bool,
    keeps: Any,
) -> Sequence[Any]:
    """Lowers an equation to a call that XLA asks the partitioner of `target` about.

    Args:
      lowering: the equation.
      operands: the operands' values in the program.
      target: that was given to `register_partitioner`.
      key: what the partitioner knows the call by.
      dimensions: which dimensions are divided together.
      results: shapes and dtypes of the results.
      has_side_effect: whether XLA may neither merge nor drop the call.
      keeps: an object that lives as long as what is compiled.
    """
    lowering.context.module_context.add_keepalive(keeps)
    call = _mlir.custom_call(
        target,
        result_types=[
            ir.RankedTensorType.get(result.shape, mlir.dtype_to_ir_type(np.dtype(result.dtype)))
            for result in results
        ],
        operands=operands,
        backend_config=key,
        has_side_effect=has_side_effect,
    )
    call.attributes["sdy.sharding_rule"] = _shardy_rule(dimensions)
    return call.results


def _shardy_rule(dimensions: Dimensions) -> Any:
    names = [name for name, _ in dimensions.sizes]
    fixed = [i for i, name in enumerate(names) if name not in dimensions.independent]

    def mapping(array: Sequence[str]) -> Any:
        return sdy.TensorMappingAttr.get(
            dim_mappings=[sdy.DimMappingAttr.get([names.index(name)]) for name in array]
        )

    return sdy.OpShardingRuleAttr.get(
        factor_sizes=[size for _, size in dimensions.sizes],
        operand_mappings=list(map(mapping, dimensions.inputs)),
        result_mappings=list(map(mapping, dimensions.outputs)),
        need_replication_factors=fixed,
        blocked_propagation_factors=fixed,
        is_custom=True,
    )
