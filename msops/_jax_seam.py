"""The only module that touches `jax.ffi`, `jax.interpreters` and private JAX names.

Each function is a thin verb over one JAX mechanism, so that a JAX upgrade is one diff: that is why
it is long. Checked on JAX 0.10.2 and 0.12.
"""

from __future__ import annotations

import functools
import logging
import math
import pathlib
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.ffi
import numpy as np
from jax._src import core, dispatch, distributed, effects, sharding_impls, source_info_util
from jax._src import mesh as _mesh
from jax._src import xla_bridge as _xla_bridge
from jax._src.array import ArrayImpl
from jax._src.interpreters import ad as _ad
from jax._src.interpreters import mlir as _mlir
from jax._src.interpreters import pxla
from jax._src.interpreters.mlir import _uncacheable_primitives
from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import sdy
from jax._src.util import weakref_cache_key_types
from jax.interpreters import ad, batching, mlir
from jax.interpreters import partial_eval as pe
from jaxlib import xla_client as _xla_client

from msops._dtypes import as_dtype
from msops.errors import MsopsError

if TYPE_CHECKING:
    from msops._sharding_rule import Dimensions
    from msops._tiling import Part, Tiling

ARRAY_TYPE = ArrayImpl
"""The type of a concrete `jax.Array`; comparing with it is the cheapest test there is."""

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
"""JAX's names of the platforms an op has a lowering rule for."""

# What XLA calls a platform when a custom call target is registered.
_XLA_PLATFORM = {"cpu": "cpu", "cuda": "CUDA", "rocm": "ROCM"}


class RunsForEffect(effects.Effect):
    """Marks an op whose calls may be neither merged, dropped nor recomputed.

    JAX prints it when it refuses the op (inside `jax.checkpoint`, say), so its text is the advice.
    """

    def __init__(self, advice: str):
        self._advice = advice

    def __repr__(self) -> str:
        return self._advice

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunsForEffect) and self._advice == other._advice

    def __hash__(self) -> int:
        return hash(self._advice)


# Not remat_allowed_effects: a recomputed effect would happen twice.
for _allowed in (
    effects.lowerable_effects,
    effects.control_flow_allowed_effects,
    effects.custom_derivatives_allowed_effects,
):
    _allowed.add_type(RunsForEffect)


class _NotOurs(logging.Filter):
    """Keeps errors of ours out of JAX's callback log: they reach the caller as exceptions."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, MsopsError)


logging.getLogger("jax._src.callback").addFilter(_NotOurs())


# Profilers and XLA's own messages name the line that calls an op, not a line of ours.
source_info_util.register_exclusion(f"{pathlib.Path(__file__).parent}/")


def is_tracer(value: Any) -> bool:
    """Tells whether `value` is being traced by a JAX transformation."""
    return isinstance(value, core.Tracer)


def x64_enabled() -> bool:
    """Tells whether 64-bit types are enabled here (the flag, or a surrounding context)."""
    return jax.dtypes.canonicalize_dtype("int64") == "int64"


def shaped_array(struct: jax.ShapeDtypeStruct, inputs: Sequence[Any], who: str) -> Any:
    """Returns the abstract value of a result.

    Args:
      struct: its shape and dtype.
      inputs: abstract values of the operands; under `jax.shard_map` the result varies over the mesh
        axes that any of them varies over.
      who: the op, for messages of JAX.
    """
    return core.ShapedArray(
        struct.shape,
        struct.dtype,
        sharding=core.get_cur_mesh_sharding(),
        manual_axis_type=core.ManualAxisType(varying=core.standard_vma_rule(who, *inputs)),
    )


def vary_alike(arrays: Sequence[Any]) -> Sequence[Any]:
    """Returns operands that all vary over the same mesh axes, as `jax.shard_map` asks for."""
    return core.auto_insert_reshard(*arrays)


def new_primitive(
    name: str,
    *,
    abstract_eval: Callable[..., tuple[list[Any], set[effects.Effect]]],
    lower: Callable[..., Sequence[Any]],
    batch: Callable[..., tuple[Sequence[Any], Sequence[Any]]],
    jvp: Callable[..., tuple[Sequence[Any], Sequence[Any]]],
    impl: Callable[..., Sequence[Any]],
    runs_on_host: bool,
) -> core.Primitive:
    """Returns a new primitive with several results and the given rules.

    Args:
      name: what jaxprs show.
      abstract_eval: ``(*avals, **params) -> (avals, effects)``.
      lower: ``(ctx, *operands, platform, **params) -> results``.
      batch: ``(args, dims, **params) -> (results, dims)``.
      jvp: ``(primals, tangents, **params) -> (results, tangents)``.
      impl: ``(*arrays, **params) -> results``, for eager use.
      runs_on_host: whether it lowers to a host callback, which needs the devices and an own copy
        of its lowering at each use.
    """
    primitive = core.Primitive(name)
    primitive.multiple_results = True
    primitive.def_effectful_abstract_eval(abstract_eval)

    primitive.def_impl(impl)
    for platform in PLATFORMS:
        mlir.register_lowering(
            primitive,
            functools.partial(lower, platform=platform),
            platform=platform,
            **({"cacheable": False} if runs_on_host else {}),
        )
    if runs_on_host:
        dispatch.prim_requires_devices_during_lowering.add(primitive)
    batching.primitive_batchers[primitive] = batch
    ad.primitive_jvps[primitive] = jvp
    return primitive


def new_linear_primitive(
    name: str,
    function: Callable[..., Sequence[Any]],
    transpose: Callable[..., Sequence[Any]],
    batch: Callable[..., Any],
    infer: Callable[..., Sequence[Any]] | None = None,
) -> core.Primitive:
    """Makes a primitive that is linear in some of its arguments, with a transpose of its own.

    Args:
      name: what jaxprs show.
      function: ``(*args, linear, **params) -> results`` in JAX code; `linear` counts the trailing
        arguments in which it is linear.
      transpose: ``(args, cotangents, **params) -> cotangents of the linear arguments``, `args`
        without those.
      batch: ``(args, dims, linear, **params) -> (results, dims)``.
      infer: ``(*args, **params) -> results`` as `jax.ShapeDtypeStruct`s; by default `function` is
        traced for them.
    """
    primitive = core.Primitive(name)
    primitive.multiple_results = True

    def abstract_eval(*avals: Any, **params: Any) -> Any:
        args = map(_as_struct, avals)
        # `jax.eval_shape` takes keywords for arrays, too.
        structs = (
            infer(*args, **params)
            if infer
            else jax.eval_shape(functools.partial(function, **params), *args)
        )
        return [shaped_array(struct, avals, name) for struct in structs]

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return jax.jvp(
            lambda *args: function(*args, **params),
            tuple(primals),
            tuple(map(ad.instantiate_zeros, tangents)),
        )

    def transpose_rule(
        cotangents: Sequence[Any], *args: Any, linear: int, **params: Any
    ) -> Sequence[Any]:
        known = args[: len(args) - linear]
        whole = [ad.instantiate_zeros(cotangent) for cotangent in cotangents]
        return [None] * len(known) + list(transpose(known, whole, linear=linear, **params))

    @functools.lru_cache(maxsize=256)
    def compiled(params: tuple[tuple[str, Any], ...]) -> Callable[..., Sequence[Any]]:
        return jax.jit(functools.partial(function, **dict(params)))

    def impl(*args: Any, **params: Any) -> Sequence[Any]:
        return compiled(tuple(sorted(params.items())))(*args)

    primitive.def_abstract_eval(abstract_eval)
    primitive.def_impl(impl)
    mlir.register_lowering(primitive, mlir.lower_fun(function, multiple_results=True))
    batching.primitive_batchers[primitive] = batch
    ad.primitive_jvps[primitive] = jvp
    ad.primitive_transposes[primitive] = transpose_rule
    return primitive


_FORWARD_ERROR = "msops_forward_error"


def explain_forward_mode(bwd: Callable[..., Any], error: Callable[[], Exception]) -> None:
    """Gives the error for forward mode of the `jax.custom_vjp` whose backward rule is `bwd`."""
    setattr(bwd, _FORWARD_ERROR, error)


def _refuse_forward_mode(*args: Any, bwd: Any, **params: Any) -> Any:
    """Raises the error an op has for forward mode, or JAX's own.

    JAX linearizes a custom_vjp to this equation, which only transposition can evaluate; its own
    text names neither the op nor a remedy.
    """
    error = getattr(getattr(bwd, "f", None), _FORWARD_ERROR, None)
    raise _ad.raise_custom_vjp_error_on_jvp() if error is None else error()


_ad.custom_lin_p.def_impl(_refuse_forward_mode)
batching.primitive_batchers[_ad.custom_lin_p] = _refuse_forward_mode
mlir.register_lowering(_ad.custom_lin_p, _refuse_forward_mode)


def used_arguments(function: Callable[..., Any], *arguments: Any) -> list[bool]:
    """Tells for each argument, an array or a list of arrays, whether results depend on it."""
    closed = jax.make_jaxpr(function)(*arguments)
    used = iter(pe.dce_jaxpr(closed.jaxpr, [True] * len(closed.jaxpr.outvars))[1])
    flags = [[next(used) for _ in jax.tree.leaves(argument)] for argument in arguments]
    return [any(of_argument) for of_argument in flags]


def _as_struct(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def is_zero(tangent: Any) -> bool:
    """Tells whether a tangent is a symbolic zero."""
    return type(tangent) is ad.Zero


def hold_weakly(kind: type) -> None:
    """Makes JAX's caches not keep alive a parameter of primitives that is of type `kind`."""
    weakref_cache_key_types.add(kind)


def forget_primitive(primitive: core.Primitive) -> None:
    """Drops `primitive` from JAX's rule tables, which would keep it and its rules forever."""
    tables: list[dict[core.Primitive, Any]] = [
        mlir._lowerings,
        *mlir._platform_specific_lowerings.values(),
        batching.fancy_primitive_batchers,
        ad.primitive_jvps,
    ]
    for table in tables:
        table.pop(primitive, None)
    dispatch.prim_requires_devices_during_lowering.discard(primitive)
    _uncacheable_primitives.discard(primitive)


def zero_tangent(aval: Any) -> Any:
    """Returns the symbolic zero tangent of a value with abstract value `aval`."""
    return ad.Zero(aval.to_tangent_aval())


def lower_as(
    ctx: Any, function: Callable[..., Sequence[Any]], operands: Sequence[Any]
) -> Sequence[Any]:
    """Lowers an equation as the JAX code of `function` on its operands.

    What XLA is told of each operation names the equation's primitive, as it does of a custom call.
    """
    scoped = jax.named_scope(ctx.primitive.name)(function)
    return mlir.lower_fun(scoped, multiple_results=True)(ctx, *operands)


def is_partitioned(ctx: Any) -> bool:
    """Tells whether XLA is to partition the program over several devices itself."""
    axes = ctx.module_context.axis_context
    if isinstance(axes, sharding_impls.SPMDAxisContext):
        is_local = axes.manual_axes == frozenset(axes.mesh.axis_names)
        return not is_local and axes.mesh.size > 1
    return getattr(axes, "num_devices", 1) > 1


def partition_count(ctx: Any) -> int:
    """Returns over how many devices XLA is to partition what is being lowered.

    Those of a program, unless `jax.shard_map` divides it over some axes of their mesh.
    """
    axes = ctx.module_context.axis_context
    if isinstance(axes, sharding_impls.SPMDAxisContext):
        sizes = axes.mesh.shape.items()
        return math.prod(size for name, size in sizes if name not in axes.manual_axes)
    return getattr(axes, "num_devices", 1)


def devices_of(ctx: Any) -> Any:
    """Returns the devices of a program that XLA partitions, as a mesh of one axis.

    It is an abstract one where JAX lowers without knowing them.
    """
    axes = ctx.module_context.axis_context
    if isinstance(axes, sharding_impls.SPMDAxisContext):
        is_abstract = isinstance(axes.mesh, jax.sharding.AbstractMesh)
        count, devices = axes.mesh.size, None if is_abstract else axes.mesh.devices.flat
    else:
        count, devices = axes.num_devices, axes.device_assignment
    if devices is None:
        return jax.sharding.AbstractMesh((count,), (_DEVICES,))
    return jax.sharding.Mesh(np.array(list(devices)), (_DEVICES,))


_DEVICES = "devices"


def is_exported(ctx: Any) -> bool:
    """Tells whether the program is lowered by `jax.export`, to run in other processes."""
    return ctx.module_context.lowering_parameters.for_export


def processes_of(ctx: Any) -> tuple[int, ...]:
    """Returns the processes that run the program together; none if it is for this one alone.

    Nor has a part any, which not every process need lower. Processes know of one another by
    `jax.distributed`.
    """
    if distributed.global_state.client is None:
        return ()
    context = ctx.module_context.axis_context
    if isinstance(context, _OnOneDevice):
        return ()
    place = getattr(context, "mesh", context)
    if isinstance(place, jax.sharding.AbstractMesh):
        return tuple(range(jax.process_count())) if place.size > jax.local_device_count() else ()
    devices = place.devices.flat if hasattr(place, "devices") else place.device_assignment or ()
    processes = sorted({device.process_index for device in devices})
    return tuple(processes) if len(processes) > 1 else ()


class ProcessStore:
    """Texts by keys that the processes of `jax.distributed` share; keys are paths in a folder."""

    def __init__(self, folder: str) -> None:
        self.process: int = distributed.global_state.process_id
        self._client: Any = distributed.global_state.client
        self._folder = folder

    def put(self, key: str, text: str) -> None:
        """Gives a key a text, whatever it had."""
        self._client.key_value_set(f"{self._folder}/{key}", text, allow_overwrite=True)

    def get_all(self, folder: str) -> dict[str, str]:
        """Returns the texts in a folder of this one, by the last parts of their keys."""
        entries = self._client.key_value_dir_get(f"{self._folder}/{folder}/")
        return {key.rpartition("/")[2]: text for key, text in entries}

    def delete(self, key: str) -> None:
        """Removes a key."""
        self._client.key_value_delete(f"{self._folder}/{key}")


def hold_host_function(ctx: Any, function: Any) -> None:
    """Has the program that is being lowered hold a Python function that it calls.

    Such programs run in the thread that calls them, as soon as their inputs are there, and do not
    take up a thread of XLA's: a function that itself calls JAX would wait for one. JAX before 0.12
    does not keep them on disk.
    """
    axes = ctx.module_context.axis_context
    if isinstance(axes, _OnOneDevice):
        axes.held.append(function)
    else:
        ctx.module_context.add_host_callback(function)


_OPEN = -1
"""FrameCheck::kOpen of frame_check.h."""


def frame_attributes(arrays: Iterable[Any]) -> dict[str, Any]:
    """Returns the attributes that tell a handler the shapes and dtypes of its operands and results.

    They are what the call was lowered for: the handler checks its frame against them. A size that
    is no number (a symbolic one of `jax.export`, say) is left open, for the first frame to tell:
    late_binding.h.
    """
    arrays = tuple(arrays)
    dims = [dim if isinstance(dim, int) else _OPEN for array in arrays for dim in array.shape]
    return {
        "ranks": np.array([len(array.shape) for array in arrays], np.int64),
        "dims": np.array(dims, np.int64),
        "dtypes": ",".join(as_dtype(array.dtype).name for array in arrays),
    }


def custom_call(
    ctx: Any,
    operands: Sequence[Any],
    target: str,
    attributes: Mapping[str, Any],
    has_side_effect: bool,
    aliases: Sequence[tuple[int, int]] = (),
    keeps: Any = None,
) -> Sequence[Any]:
    """Lowers an equation to one XLA custom call with typed attributes, row-major operands.

    `aliases` are pairs of an operand and the result that takes over its buffer; `keeps` is an
    object that lives as long as what is compiled.
    """
    if keeps is not None:
        ctx.module_context.add_keepalive(keeps)
    rule = jax.ffi.ffi_lowering(
        target, has_side_effect=has_side_effect, operand_output_aliases=dict(aliases)
    )
    return rule(ctx, *operands, **attributes)


class _OnOneDevice(sharding_impls.SPMDAxisContext):
    """Where a part is lowered; its program is copied into another, which must hold what it uses."""

    held: list[Any]

    def __init__(self, devices: Any):
        super().__init__(devices, frozenset([_DEVICES]))
        object.__setattr__(self, "held", [])  # its base is frozen


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
    # Here, as `import msops` must be quick.
    from msops._tiling import undivided

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
    from msops._tiling import Tiling

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
    axes = _OnOneDevice(part.devices)

    def summed(*arrays: Any) -> list[Any]:
        return [
            result
            if groups is None
            else jax.lax.psum(result, _DEVICES, axis_index_groups=groups.tolist())
            for result, groups in zip(part.function(*arrays), part.plan.sums, strict=True)
        ]

    # XLA may ask in any thread, with a mesh of its user's or without; a device knows of none.
    with jax.enable_x64(part.wide), _mesh.use_abstract_mesh(_mesh.empty_abstract_mesh):
        env = [(_DEVICES, part.devices.size)]
        program = jax.make_jaxpr(summed, axis_env=env)(*avals)
        module = _mlir.build_mlir_module_helper(
            program, name="part", platforms=[part.platform], backend=None, axis_context=axes
        )
    for value in axes.held:
        part.hold(value)
    return _mlir.module_to_bytecode(module)


def divided_call(
    ctx: Any,
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
      ctx: JAX's lowering context.
      operands: the operands' values in the program.
      target: that was given to `register_partitioner`.
      key: what the partitioner knows the call by.
      dimensions: which dimensions are divided together.
      results: shapes and dtypes of the results.
      has_side_effect: whether XLA may neither merge nor drop the call.
      keeps: an object that lives as long as what is compiled.
    """
    ctx.module_context.add_keepalive(keeps)
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


def array_of_memory(memory: Any, like: jax.Array | None) -> jax.Array:
    """Returns an array of numpy memory that is aligned to 64 bytes and never written to again.

    It goes where the array `like` is; None means JAX's default device. (`jax.device_put` does the
    same in five times the time, half of an eager call of a small kernel.)
    """
    if like is None:
        return jax.device_put(memory)
    (device,) = like.devices()
    sharding = jax.sharding.SingleDeviceSharding(device)
    aval = core.ShapedArray(memory.shape, memory.dtype)
    return pxla.batched_device_put(aval, sharding, [memory], [device], like.committed)


_registered: set[tuple[str, str]] = set()
_registration_lock = threading.Lock()


def register_custom_calls(platform: str, rows: Iterable[Mapping[str, Any]]) -> bool:
    """Registers the custom call types and targets of `rows` with XLA, once per process.

    Args:
      platform: JAX's platform name.
      rows: dicts with ``kind`` ("type" or "target"), ``name``, ``platform`` (XLA's name) and
        ``capsules`` (stage or id to PyCapsule), types before the targets that use them.

    Returns:
      Whether XLA has them now. False when the platform's backend has not started: XLA would queue
      them and flush targets before types, and the backend's start would fail.
    """
    xla_platform = _XLA_PLATFORM[platform]
    with _registration_lock:
        if platform == "cpu":
            # The CPU client installs these two at its start and tolerates finding them. Doing it
            # here lets types and targets register at any time without starting a backend.
            _xla_client.register_custom_call_handler(
                "cpu", _xla_client._xla.register_custom_call_target
            )
            _xla_client.register_custom_type_handler("cpu", _xla_client._xla.register_custom_type)
        elif platform not in _started_platforms():
            return False
        for row in rows:
            key = (row["name"], row["platform"])
            if row["platform"] != xla_platform or key in _registered:
                continue
            if row["kind"] == "type":
                jax.ffi.register_ffi_type(row["name"], row["capsules"], platform=xla_platform)
            else:
                jax.ffi.register_ffi_target(row["name"], row["capsules"], platform=xla_platform)
            _registered.add(key)
        return True


def _started_platforms() -> set[str]:
    """Returns JAX's names of the platforms whose backend runs; starts none."""
    return set(_xla_bridge.backends()) if _xla_bridge.backends_are_initialized() else set()


def ffi_version() -> tuple[int, int]:
    """Returns the version of XLA's FFI that jaxlib has, as its header tells."""
    header = pathlib.Path(jax.ffi.include_dir(), "xla", "ffi", "api", "c_api.h").read_text()
    major, minor = (
        int(number) for number in re.findall(r"#define XLA_FFI_API_M(?:AJOR|INOR) (\d+)", header)
    )
    return major, minor
