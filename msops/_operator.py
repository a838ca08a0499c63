"""An op as JAX sees it: one primitive, its rules, and its compiled calls.

Operators are shared: ops of equal definition are one `Operator` (decision 3), so re-creating an op
in a loop or re-running a notebook cell compiles nothing.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp

from msops import _jax_seam as seam
from msops._autodiff import attach_bprop, refuse_differentiation
from msops._batching import batch
from msops._call import Call
from msops._dtypes import as_dtype
from msops._fingerprint import ByValue
from msops._inference import NO_OUTPUTS, Inference, Outputs, infer, refuse_64_bit
from msops._op_info import OpInfo, bind_attributes, match
from msops.errors import BackendError, explain

TARGETS = {"cpu": "CPU", "cuda": "GPU", "rocm": "GPU", "tpu": "TPU"}
"""MindSpore's target for each of JAX's platforms."""


class Backend(Protocol):
    """What a func_type answers, in this order, for its kernels."""

    func_type: str
    platforms: tuple[str, ...]
    may_have_no_outputs: bool
    runs_on_host: bool

    def read(self, func: Any, options: Options, who: str) -> Any:
        """Checks what `Custom` was given as kernel; returns it, source or library unread."""

    def resolve(self, source: Any, options: Options, who: str) -> Hashable:
        """Returns the kernel ready to run, equal for equal kernels; builds it where needed."""

    def infer(
        self, kernel: Any, half: str, request: Request, infos: Sequence[OpInfo], who: str
    ) -> Any:
        """Returns the kernel's own answer for "shape" or "dtype"."""

    def guard_target(self, platform: str) -> str:
        """Returns the target whose op info guards on `platform`."""

    def lower(self, kernel: Any, request: Request, ctx: Any, operands: Sequence[Any]) -> Any:
        """Lowers one call for one platform."""


@dataclasses.dataclass(frozen=True)
class Options:
    """Keyword options of `Custom`; see there."""

    stateful: bool = False
    reentrant: bool = True
    writable: bool = False
    host: bool = False
    cxx11_abi: bool | None = None
    vmap: str | ByValue = "sequential"


@dataclasses.dataclass(frozen=True)
class Definition:
    """Everything that makes an op what it is; equal definitions are the same operator.

    `infos` and `prim_attrs` are compared as text: 0.0 == -0.0 and 1 == True in Python, and a kernel
    tells them apart.
    """

    name: str
    backend: Backend
    kernel: Any
    inference: Inference
    bprop: ByValue | None
    options: Options
    infos: tuple[OpInfo, ...] = dataclasses.field(compare=False)
    prim_attrs: tuple[tuple[str, Any], ...] = dataclasses.field(compare=False)
    static_text: str = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "static_text", repr((self.infos, self.prim_attrs)))

    def is_current(self) -> bool:
        """Tells whether its functions still see what they saw when the op was first used."""
        bprop_is_current = self.bprop is None or self.bprop.is_current()
        return bprop_is_current and self.inference.is_current()


@dataclasses.dataclass(frozen=True)
class Request:
    """One call for one platform, as a backend sees it.

    Attributes:
      op: the op's name.
      platform: JAX's platform name; empty while shapes are inferred.
      guarded: whether the op has op info for that platform.
      call: the call's structure.
      attributes: the attributes op info names, defaults included.
      prim_attrs: those added by ``add_prim_attr``.
      inputs: shapes and dtypes of the flat inputs.
      outputs: what the op returns; `NO_OUTPUTS` while shapes are inferred.
      options: the op's options.
      bind: binds the same call again, on flat arrays, for a nested program.
      who: the op and where it runs, for messages.
    """

    op: str
    platform: str
    guarded: bool
    call: Call
    attributes: tuple[tuple[str, Any], ...]
    prim_attrs: tuple[tuple[str, Any], ...]
    inputs: tuple[jax.ShapeDtypeStruct, ...]
    outputs: Outputs
    options: Options
    bind: Callable[[Sequence[Any]], Sequence[Any]]
    who: str


class Operator:
    """A definition with its primitive."""

    def __init__(self, definition: Definition):
        self.definition = definition
        self.who = f"Custom '{definition.name}'"
        self.has_effect = definition.options.stateful or not definition.inference.has_outputs
        self.primitive = seam.new_primitive(
            f"custom_{definition.name}",
            abstract_eval=_abstract_eval,
            lower=_lower,
            batch=_batch,
            jvp=_jvp,
            static=("operator", "call"),
            runs_on_host=definition.backend.runs_on_host or definition.options.host,
        )
        weakref.finalize(self, seam.forget_primitive, self.primitive).atexit = False
        # One entry per structure and attribute values; bounded, as attributes may be many.
        self.function = functools.lru_cache(maxsize=256)(self._function)
        self.compiled = functools.lru_cache(maxsize=256)(self._compiled)

    def __repr__(self) -> str:
        return f"{self.definition.backend.func_type}:{self.definition.name}"

    def bind(self, call: Call, flat: Sequence[Any]) -> Sequence[Any]:
        """Binds the primitive."""
        return self.primitive.bind(*flat, operator=self, call=call)

    def outputs(self, call: Call, avals: Sequence[Any]) -> Outputs:
        """Infers what a call on inputs of these abstract values returns."""
        definition = self.definition

        def ask_kernel(half: str) -> Any:
            request = self.request(call, element, "", NO_OUTPUTS)
            return definition.backend.infer(
                definition.kernel, half, request, definition.infos, self.who
            )

        element = [call.element(aval) for aval in avals]
        outputs = infer(definition.inference, call, element, ask_kernel, self.who)
        return outputs.batched(call.batch)

    def _function(self, call: Call) -> Callable[..., Any]:
        """Returns the call as a function of flat arrays, differentiable if the op has a bprop."""

        def forward(*flat: Any) -> Sequence[Any]:
            return self.bind(call, flat)

        forward.__name__ = forward.__qualname__ = self.definition.name
        bprop = self.definition.bprop
        if bprop is None:
            return forward
        outputs = functools.partial(self.outputs, call)
        return attach_bprop(forward, bprop.function, call, outputs, self.who)

    def _compiled(self, call: Call) -> Callable[..., Any]:
        """Returns the call compiled, with the op's own result structure."""
        function = self.function(call)

        def whole(*flat: Any) -> Any:
            avals = [jax.typeof(value) for value in flat]
            return self.outputs(call, avals).pack(function(*flat))

        whole.__name__ = whole.__qualname__ = self.definition.name
        return jax.jit(whole)

    def request(self, call: Call, avals: Sequence[Any], platform: str, outputs: Outputs) -> Request:
        """Returns a call as the backend gets it."""
        definition = self.definition
        place = f" on {TARGETS[platform]}" if platform else ""
        return Request(
            op=definition.name,
            platform=platform,
            guarded=self.info(platform) is not None,
            call=call,
            attributes=self._attributes(call, platform),
            prim_attrs=definition.prim_attrs,
            inputs=tuple(jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals),
            outputs=outputs,
            options=definition.options,
            bind=functools.partial(self.bind, call),
            who=self.who + place,
        )

    def info(self, platform: str) -> OpInfo | None:
        """Returns the op info that guards on `platform`, if there is one."""
        definition = self.definition
        if not platform:
            return None
        target = definition.backend.guard_target(platform)
        return next((info for info in definition.infos if info.target == target), None)

    def _attributes(self, call: Call, platform: str) -> tuple[tuple[str, Any], ...]:
        # Targets agree on the names of attributes; the defaults are the target's own.
        info = self.info(platform) or next(iter(self.definition.infos), None)
        return () if info is None else bind_attributes(info, call.given, self.who)


def _abstract_eval(*avals: Any, operator: Operator, call: Call) -> Any:
    for index, aval in enumerate(avals):
        as_dtype(aval.dtype)
        if not call.tensors:
            refuse_64_bit(aval.dtype, f"input {index}", operator.who)
    outputs = operator.outputs(call, avals)
    return [seam.shaped_array(struct) for struct in outputs.structs], _effects(operator)


def _effects(operator: Operator) -> set[Any]:
    if not operator.has_effect:
        return set()
    reason = "is stateful" if operator.definition.options.stateful else "has no output"
    return {
        seam.RunsForEffect(
            f"{operator.who} {reason}: it runs once per call, so it cannot be recomputed. Move "
            "the call out of jax.checkpoint"
        )
    }


def _lower(
    ctx: Any, *operands: Any, platform: str, operator: Operator, call: Call
) -> Sequence[Any]:
    definition = operator.definition
    backend = definition.backend
    who = f"{operator.who} on {TARGETS[platform]}"
    if platform not in backend.platforms:
        raise BackendError(
            explain(
                who,
                f"func_type {backend.func_type!r} runs on {', '.join(backend.platforms)}; the "
                f"program is lowered for {platform}",
                "Place the arrays on a supported device, or use func_type='pyfunc'.",
            )
        )
    outputs = operator.outputs(call, ctx.avals_in)
    info = operator.info(platform)
    if info is not None:
        inputs = call.group(as_dtype(aval.dtype).name for aval in ctx.avals_in)
        match(
            info,
            [tuple(item) if isinstance(item, list) else item for item in inputs],
            [as_dtype(struct.dtype).name for struct in outputs.structs],
            operator.who,
        )
    request = operator.request(call, ctx.avals_in, platform, outputs)
    # Calls through MindSpore's face may be lowered after their x64 context has ended.
    with jax.enable_x64(True) if call.tensors else contextlib.nullcontext():
        return backend.lower(definition.kernel, request, ctx, operands)


def _batch(args: Sequence[Any], dims: Sequence[Any], *, operator: Operator, call: Call) -> Any:
    vmap = operator.definition.options.vmap
    return batch(vmap, operator.bind, operator.outputs, call, args, dims, operator.who)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, operator: Operator, call: Call) -> Any:
    """Differentiates an op without bprop: only where no derivative exists to begin with."""
    results = operator.bind(call, primals)
    if any(jnp.issubdtype(result.dtype, jnp.inexact) for result in results):
        raise refuse_differentiation(operator.who)
    return results, [seam.zero_tangent(jax.typeof(result)) for result in results]


_shared: weakref.WeakValueDictionary[Definition, Operator] = weakref.WeakValueDictionary()
# Keeps the latest operators alive while a notebook cell or a loop is between two of them.
_recent: collections.deque[Operator] = collections.deque(maxlen=64)
_sharing_lock = threading.Lock()


def share_operator(definition: Definition) -> Operator:
    """Returns the operator of an equal definition, or a new one."""
    with _sharing_lock:
        operator = _shared.get(definition)
        if operator is None or not operator.definition.is_current():
            operator = Operator(definition)
            _shared.pop(definition, None)
            _shared[definition] = operator
        if operator not in _recent:
            _recent.append(operator)
        return operator
