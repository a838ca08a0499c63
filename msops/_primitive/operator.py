"""An op as JAX sees it: one primitive and its rules.

A rule imports what it alone needs, as `import msops` must be quick.
"""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from msops import _jax_seam as seam
from msops._base.dtypes import as_dtype
from msops._op.arrays import refuse_64_bit, refuse_low_precision
from msops._op.backend import Trial
from msops._op.call import Call
from msops._op.definition import TARGETS, Definition
from msops._op.inference import infer
from msops._op.outputs import NO_OUTPUTS, Outputs
from msops._op.protocols import CompiledCalls
from msops._op.request import Request
from msops._op.traced import Traced
from msops._op_info import OpInfo, bind_attributes
from msops.errors import BackendError

if TYPE_CHECKING:
    from msops._jax_seam.division import Dimensions

_MOST_ANSWERS = 256


class Operator:
    """A definition with its primitive.

    Args:
      definition: what makes the op what it is.
      impl: ``(*arrays, operator, call)``, which runs one call by itself.
    """

    def __init__(self, definition: Definition, impl: Callable[..., Sequence[Any]]):
        self.definition = definition
        self.who = f"Custom '{definition.name}'"
        stateful = definition.options.stateful
        self.has_effect = bool(stateful) or not definition.inference.has_outputs
        self.is_ordered = stateful == "ordered"
        self.effects: set[Any] = {_effect_of(self)} if self.has_effect else set()
        if self.is_ordered:
            self.effects.add(seam.KeepsOrder(self.who))
        self.runs_on_host = definition.backend.runs_on_host or definition.options.host
        self.has_trials = definition.backend.has_trials and not self.has_effect
        self.primitive = seam.new_primitive(
            self.primitive_name,
            abstract_eval=_abstract_eval,
            lower=_lower,
            batch=_batch,
            jvp=_jvp,
            transpose=_transpose,
            impl=impl,
            runs_on_host=self.runs_on_host,
            has_effect=self.has_effect,
            hides_inputs=definition.backend.hides_inputs,
        )
        weakref.finalize(self, seam.forget_primitive, self.primitive).atexit = False
        self.programs: Callable[[], CompiledCalls | None] = lambda: None
        self._answers: dict[tuple[Call, tuple[jax.ShapeDtypeStruct, ...], bool], Outputs] = {}

    def __repr__(self) -> str:
        return f"{self.definition.backend.func_type}:{self.definition.name}"

    @property
    def primitive_name(self) -> str:
        """The primitive's name, in jaxprs and profiles."""
        return f"custom_{self.definition.name}"

    def bind(self, call: Call, flat: Sequence[Any]) -> Sequence[Any]:
        """Binds the primitive."""
        results: Sequence[Any] = self.primitive.bind(*flat, operator=self, call=call)
        return results

    def outputs(self, call: Call, avals: Sequence[Any]) -> Outputs:
        """Infers what a call on inputs of these abstract values returns, once per such call."""
        if call.values:
            call = call.without_values()
        inputs = tuple(jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals)
        key = (call, inputs, seam.x64_enabled())
        answer = self._answers.get(key)
        if answer is None:
            answer = self._answers[key] = self._infer(call, inputs)
            if len(self._answers) > _MOST_ANSWERS:
                # Without running code of Python's: other threads add answers, too.
                with contextlib.suppress(RuntimeError):
                    self._answers.pop(next(iter(self._answers)), None)
        return answer

    def latest_call(self) -> tuple[Call, tuple[jax.ShapeDtypeStruct, ...]] | None:
        """Returns the call whose results were inferred last, if there was one."""
        for call, inputs, _ in reversed(list(self._answers)):
            return call, inputs
        return None

    def is_current(self) -> bool:
        """Returns whether its functions see what they saw, and infer functions answer alike."""
        if not self.definition.is_current():
            return False
        for (call, inputs, wide), answer in tuple(self._answers.items()):
            try:
                with jax.enable_x64(wide):
                    if self._infer(call, inputs) != answer:
                        return False
            except Exception:  # what an infer function raises now, it raises for the new op too
                return False
        return True

    def _infer(self, call: Call, avals: Sequence[jax.ShapeDtypeStruct]) -> Outputs:
        definition = self.definition

        def ask_kernel(half: str) -> Any:
            # The kernel is asked about one element of a batch.
            request = self.request(one, element, "", NO_OUTPUTS)
            return definition.backend.infer(
                definition.kernel, half, request, definition.infos, self.who
            )

        one, element = call, avals
        if call.mapped or call.batch:
            inner, elements = call.unmapped(avals)
            one = dataclasses.replace(inner, batch=())
            element = [inner.element(aval) for aval in elements]
        takes_all = definition.backend.takes_low_precision
        if not takes_all:
            self._refuse_low_precision(avals, "input")
        outputs = infer(definition.inference, call, element, ask_kernel, self.who)
        if not takes_all:
            self._refuse_low_precision(outputs.structs, "output")
        if definition.options.sharding is not None:
            self.dimensions(one, element, outputs.structs)
        if definition.options.dynamic_outputs:
            outputs = outputs.with_sizes()
        axes = (*(size for size, _ in call.mapped), *call.batch)
        return outputs.batched(axes) if axes else outputs

    def _refuse_low_precision(self, arrays: Sequence[Any], what: str) -> None:
        taker = f"func_type {self.definition.backend.func_type!r}"
        for index, array in enumerate(arrays):
            refuse_low_precision(array.dtype, f"{what} {index}", self.who, taker)

    def request(self, call: Call, avals: Sequence[Any], platform: str, outputs: Outputs) -> Request:
        """Returns a call as the backend gets it."""
        definition = self.definition
        target = f" on {TARGETS[platform]}" if platform else ""
        return Request(
            op=definition.name,
            op_type=next((info.op_name for info in definition.infos), ""),
            platform=platform,
            guarded=self.info(platform) is not None,
            infos=definition.infos,
            call=call,
            attributes=self._attributes(call, platform),
            prim_attrs=definition.prim_attrs,
            inputs=tuple(jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals),
            outputs=outputs,
            options=definition.options,
            bind=self.bind,
            who=self.who + target,
        )

    def dimensions(
        self, call: Call, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Dimensions | None:
        """Returns what the op's rule says of the arrays of a call; None without a rule."""
        rule = self.definition.options.sharding
        if rule is None:
            return None
        batch = len(call.batch)
        one, elements = call.unmapped(inputs)
        shapes = [one.element(element).shape for element in elements]
        results = [struct.shape[len(call.mapped) + batch :] for struct in outputs]
        dimensions = rule.name_dimensions(shapes, results, self.who)
        for level, size in reversed(list(enumerate(call.batch))):
            dimensions = dimensions.with_axis(size, [e.shape[level] for e in elements])
        for size, has in reversed(call.mapped):
            dimensions = dimensions.with_axis(size, [size if flag else None for flag in has])
        return dimensions

    def traced(self, call: Call, arrays: Sequence[Any]) -> Traced | None:
        """Returns a call on such arrays as JAX code, if its kernel can be written so."""
        avals = [jax.typeof(array) for array in arrays]
        request = self.request(call, avals, "", self.outputs(call, avals))
        return self.definition.backend.trace(self.definition.kernel, request)

    def trial(self, call: Call, avals: Sequence[Any]) -> Trial | None:
        """Returns what to run before a call by itself is compiled; mostly nothing."""
        definition = self.definition
        backend = definition.backend
        if not backend.has_trials:
            return None
        platform, outputs = jax.default_backend(), self.outputs(call, avals)
        # A kernel is compiled for a trial, which op info may not allow for these dtypes.
        self.guard(call, avals, outputs, platform)
        return backend.trial(definition.kernel, self.request(call, avals, platform, outputs))

    def guard(self, call: Call, avals: Sequence[Any], outputs: Outputs, platform: str) -> None:
        """Compares dtypes with the rows of the op info that guards on `platform`.

        Raises:
          OpInfoTypeError: no row has them.
        """
        info = self.info(platform)
        if info is not None:
            from msops._op_info import match

            inputs = call.group(as_dtype(aval.dtype).name for aval in avals)
            match(
                info,
                [i if isinstance(i, str) else tuple(jax.tree.leaves(i)) for i in inputs],
                [as_dtype(struct.dtype).name for struct in outputs.declared],
                self.who,
            )

    def info(self, platform: str) -> OpInfo | None:
        """Returns the op info that guards on `platform`, if there is one."""
        definition = self.definition
        if not platform:
            return None
        target = definition.backend.guard or ("CPU" if platform == "cpu" else "GPU")
        return next((info for info in definition.infos if info.target == target), None)

    def _attributes(self, call: Call, platform: str) -> tuple[tuple[str, Any], ...]:
        # Targets agree on the names of attributes; the defaults are the target's own.
        info = self.info(platform) or next(iter(self.definition.infos), None)
        return () if info is None else bind_attributes(info, call.given, self.who)


seam.hold_weakly(Operator)


def _abstract_eval(*avals: Any, operator: Operator, call: Call) -> Any:
    outputs = operator.outputs(call, avals)
    for index, aval in enumerate(avals):
        if not call.tensors:
            refuse_64_bit(aval.dtype, f"input {index}", operator.who)
    results = [seam.shaped_array(struct, avals, operator.who) for struct in outputs.structs]
    return results, operator.effects


def _effect_of(operator: Operator) -> seam.RunsForEffect:
    reason = "is stateful" if operator.definition.options.stateful else "has no output"
    return seam.RunsForEffect(
        operator.who,
        f"{reason}: it runs once per call, so it cannot be recomputed. Move the call out of "
        "jax.checkpoint",
    )


def _lower(lowering: seam.Lowering, *values: Any, operator: Operator, call: Call) -> Sequence[Any]:
    operands: Sequence[Any] = values
    platform = lowering.platform
    definition = operator.definition
    backend = definition.backend
    who = f"{operator.who} on {TARGETS[platform]}"
    if platform not in backend.platforms:
        raise BackendError.explained(
            who,
            f"func_type {backend.func_type!r} runs on {', '.join(backend.platforms)}; the "
            f"program is lowered for {platform}",
            "Place the arrays on a supported device, or use func_type='pyfunc'.",
        )
    if operator.is_ordered and lowering.is_exported:
        raise BackendError.explained(
            who,
            'it is stateful="ordered", and an exported program does not keep the order',
            "Export the program without the call.",
        )
    if operator.is_ordered and seam.device_count(lowering) > 1:
        raise BackendError.explained(
            who,
            'it is stateful="ordered", and devices that run a program together have no order',
            "Move its inputs to one device with jax.device_put, and call it outside of the program "
            "for several devices.",
        )
    one, avals = call.unmapped(lowering.inputs) if call.mapped else (call, lowering.inputs)
    outputs = operator.outputs(one, avals)
    operator.guard(one, avals, outputs, platform)
    request = operator.request(one, avals, platform, outputs)
    # Calls through MindSpore's face may be lowered after their x64 context has ended.
    with call.face():
        if lowering.is_partitioned:
            from msops._sharding import partitioning

            if partitioning.is_divisible(operator, request, lowering):
                return partitioning.lower_in_parts(operator, call, request, lowering, operands)
            if not call.mapped and partitioning.gets_whole_arrays(operator, request):
                callee = partitioning.Callee.of(operator)
                operands = partitioning.look_at_inputs(callee, repr(operator), lowering, operands)
        if call.mapped:
            from msops._primitive.batching import map_elements

            def program(*flat: Any) -> Sequence[Any]:
                return map_elements(operator.bind, call, flat)

            return seam.lower_as(lowering, program, operands)
        return backend.lower(definition.kernel, request, lowering, operands)


def _batch(args: Sequence[Any], dims: Sequence[Any], *, operator: Operator, call: Call) -> Any:
    from msops._primitive.batching import batch

    options, backend = operator.definition.options, operator.definition.backend
    if operator.is_ordered:
        raise BackendError.explained(
            operator.who,
            'it is stateful="ordered", and the elements of jax.vmap have no order',
            "Use jax.lax.map, which calls it for one element after the other.",
        )
    return batch(
        options.vmap,
        operator.bind,
        operator.outputs,
        call,
        args,
        dims,
        options.inplace,
        # A kernel that is traced is differentiated for one element.
        is_divisible=options.sharding is not None and backend.vmap == "sequential",
        is_rewritten=backend.vmap == "expand_dims",
        who=operator.who,
    )


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, operator: Operator, call: Call) -> Any:
    """Differentiates an op without bprop: as JAX code, or where no derivative exists anyway."""
    results = operator.bind(call, primals)
    traced = operator.traced(call, primals)
    if traced is not None:
        from msops._primitive.traced import differentiate

        return results, differentiate(traced, operator, call, primals, tangents, results)
    if any(jnp.issubdtype(result.dtype, jnp.inexact) for result in results):
        from msops._primitive.reverse_mode import refuse_differentiation

        raise refuse_differentiation(operator.who)
    return results, [seam.zero_tangent(jax.typeof(result)) for result in results]


def _transpose(
    args: Sequence[Any],
    linear: Sequence[int],
    cotangents: Sequence[Any],
    *,
    operator: Operator,
    call: Call,
) -> Sequence[Any]:
    from msops._primitive.transposition import transpose

    return transpose(operator, call, args, linear, cotangents)
