"""The only package that touches `jax.ffi`, `jax.interpreters` and private JAX names.

Each function wraps one mechanism of JAX, so a new JAX needs changes in this package only.
`partitioning` is not imported here, because only programs over several devices need it.

May import: no other room.
Modules: division, effects, ffi, linear, lowering, nesting, pacing, partitioning, primitives,
processes, saving, sub_byte, tracebacks, unknown, values.
"""

from msops._jax_seam.effects import KeepsOrder, RunsForEffect
from msops._jax_seam.ffi import (
    custom_call,
    ffi_headers,
    ffi_version,
    hold_host_function,
    register_custom_calls,
)
from msops._jax_seam.linear import new_linear_primitive
from msops._jax_seam.lowering import (
    Lowering,
    call_site,
    device_count,
    devices_of,
    lower_as,
    partition_count,
)
from msops._jax_seam.nesting import HeldFunction
from msops._jax_seam.pacing import leave_room
from msops._jax_seam.primitives import (
    PLATFORMS,
    explain_forward_mode,
    forget_primitive,
    hold_weakly,
    new_primitive,
    refuse_jet,
    vary_alike,
)
from msops._jax_seam.processes import ProcessStore
from msops._jax_seam.saving import intercepted, interceptor, is_differentiated, saves
from msops._jax_seam.sub_byte import byte_dtype
from msops._jax_seam.tracebacks import hide_frames, with_hidden_frames
from msops._jax_seam.unknown import unknown
from msops._jax_seam.values import (
    ARRAY_TYPE,
    array_of_memory,
    check_special_values,
    divide_alike,
    explain_escaped,
    is_zero,
    naming_special_values,
    process_settings,
    refuse_as_array,
    refuse_special_values,
    shaped_array,
    used_arguments,
    x64_enabled,
    zero_tangent,
)

__all__ = [
    "ARRAY_TYPE",
    "PLATFORMS",
    "HeldFunction",
    "KeepsOrder",
    "Lowering",
    "ProcessStore",
    "RunsForEffect",
    "array_of_memory",
    "byte_dtype",
    "call_site",
    "check_special_values",
    "custom_call",
    "device_count",
    "devices_of",
    "divide_alike",
    "explain_escaped",
    "explain_forward_mode",
    "ffi_headers",
    "ffi_version",
    "forget_primitive",
    "hide_frames",
    "hold_host_function",
    "hold_weakly",
    "intercepted",
    "interceptor",
    "is_differentiated",
    "is_zero",
    "leave_room",
    "lower_as",
    "naming_special_values",
    "new_linear_primitive",
    "new_primitive",
    "partition_count",
    "process_settings",
    "refuse_as_array",
    "refuse_jet",
    "refuse_special_values",
    "register_custom_calls",
    "saves",
    "shaped_array",
    "unknown",
    "used_arguments",
    "vary_alike",
    "with_hidden_frames",
    "x64_enabled",
    "zero_tangent",
]
