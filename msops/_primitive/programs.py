"""The compiled calls of ops, and which ops share them.

Ops of equal definition are one `Programs`, so re-creating an op in a loop or
re-running a notebook cell compiles nothing. JAX's caches hold what was traced, which holds the
`Operator`; so an Operator must not hold its programs, or none of them would ever be freed.

Rules of differentiation are imported by the functions that attach them, as `import msops` must be
quick.
"""

from __future__ import annotations

import collections
import functools
import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import jax
from jax.sharding import AxisType

from msops import _jax_seam as seam
from msops._base.kernel_errors import XLA_ERRORS, raise_own
from msops._op.backend import TrialNeeded
from msops._op.call import Call
from msops._op.definition import Definition
from msops._op.traced import Function
from msops._primitive.operator import Operator
from msops._primitive.own_calls import RunningCalls

Run = Callable[[Sequence[Any]], Any]
"""A compiled call: it gets a flat list of arrays."""

_kept = functools.lru_cache(maxsize=256)
# Looked up once: every eager call compares with it.
_ARRAY: Any = seam.ARRAY_TYPE


class Programs:
    """An operator's calls as functions: traced, compiled, and bound for the primitive's own use."""

    def __init__(self, operator: Operator):
        self.operator = operator
        operator.programs = weakref.ref(self)
        # One entry per structure and attribute values; bounded, as attributes may be many.
        self.function = _kept(functools.partial(_function, operator))
        self.bound = _kept(functools.partial(_compile_bound, operator))
        self.compiled = _kept(self._compiled)
        self.tangent = _kept(self._tangent)

    def lower(self, call: Call, inputs: Sequence[jax.ShapeDtypeStruct]) -> jax.stages.Lowered:
        """Returns the program of a call on such inputs, as it is compiled now."""
        return jax.jit(self.whole(call)).lower(*inputs)

    def _compiled(self, call: Call) -> Run:
        """Returns the call compiled; raises `TrialNeeded` where what it becomes is to be tried."""
        return _compile_here(self.operator, self.whole(call, self.operator.has_trials))

    def _tangent(self, call: Call, live: Sequence[int], linear: int) -> Callable[..., Any]:
        from msops._primitive.traced import compile_tangent

        return compile_tangent(self.operator, call, live, linear)

    def whole(self, call: Call, may_need_trial: bool = False) -> Callable[..., Any]:
        """Returns the call as a function of flat arrays, with the op's own result structure."""
        operator, function = self.operator, self.function(call)

        def whole(*flat: Any) -> Any:
            if not flat or not isinstance(flat[0], jax.core.Tracer):
                seam.refuse_special_values(operator.who)
            avals = [jax.typeof(value) for value in flat]
            trial = operator.trial(call, avals) if may_need_trial else None
            if trial is not None:
                raise TrialNeeded(trial)
            results = function(*flat)
            return operator.outputs(call, avals).pack(results)

        whole.__name__ = whole.__qualname__ = operator.definition.name
        return whole


def _function(operator: Operator, call: Call) -> Function:
    """Returns the call as a function of flat arrays on any mesh."""
    function = _differentiable(operator, call)

    def anywhere(*flat: Any) -> Sequence[Any]:
        meshes = [jax.typeof(value).sharding.mesh for value in flat]
        if not any(AxisType.Explicit in mesh.axis_types for mesh in meshes):
            return function(*flat)
        from msops._sharding.explicit_mesh import call_in_explicit_mesh

        return call_in_explicit_mesh(operator, call, function, flat)

    return anywhere


def _differentiable(operator: Operator, call: Call) -> Function:
    """Returns the call as a function of flat arrays, differentiable if the op has a rule."""

    kernels_call = call.without_values() if call.values else call

    def forward(*flat: Any) -> Sequence[Any]:
        return operator.bind(kernels_call, flat)

    forward.__name__ = forward.__qualname__ = operator.definition.name
    definition = operator.definition
    if definition.options.forward or definition.options.jvp is not None:
        from msops._primitive.forward_mode import attach_forward_mode

        return attach_forward_mode(forward, operator, call)
    bprop, vjp = definition.bprop, definition.vjp
    outputs = functools.partial(operator.outputs, call)
    if vjp is not None:
        from msops._primitive.reverse_mode import attach_vjp

        return attach_vjp(forward, vjp[0].function, vjp[1].function, call, outputs, operator.who)
    # Without results a rule would have nothing to differentiate.
    if bprop is None or not definition.inference.has_outputs:
        return forward
    from msops._primitive.reverse_mode import attach_bprop

    return attach_bprop(forward, bprop.function, call, outputs, operator.who)


def _compile_bound(operator: Operator, call: Call) -> Run:
    """Returns the bare primitive's call, compiled."""

    def bound(*flat: Any) -> Sequence[Any]:
        seam.refuse_special_values(operator.who)
        return operator.bind(call, flat)

    bound.__name__ = bound.__qualname__ = operator.primitive_name
    return _compile_here(operator, bound)


def _compile_here(operator: Operator, function: Callable[..., Any]) -> Run:
    """Returns a function of arrays compiled, so that Python functions run in the calling thread.

    JAX runs a program with a Python function in the calling thread if its inputs are there, and on
    a thread of XLA's if they are still being computed. XLA has as many threads as there are cores:
    once each of them runs a function that itself waits for JAX, nothing is left to compute what
    they wait for. So the caller waits for the inputs.

    `run` is one function, as an eager call must cost what a jnp call costs.
    """
    compiled: Any = jax.jit(function)
    waits = operator.runs_on_host
    running = RunningCalls(operator.who)

    def run_on_host(flat: Sequence[Any]) -> Any:
        if running.by_thread:
            running.await_first(flat)
        thread, own = threading.get_ident(), SimpleNamespace(arrays=flat, calls_itself=False)
        running.by_thread[thread] = own
        try:
            results = compiled(*flat)
            if len(running.known) != compiled._cache_size() and not own.calls_itself:
                running.known.add(tuple(map(jax.typeof, flat)))
            return results
        finally:
            running.by_thread.pop(thread, None)
            if own.calls_itself:
                raise running.error()

    def run(flat: Sequence[Any]) -> Any:
        try:
            if waits:
                for value in flat:
                    if type(value) is _ARRAY and not value.is_ready():
                        value.block_until_ready()
                return run_on_host(flat)
            return compiled(*flat)
        except XLA_ERRORS as error:
            raise_own(error)
        except TrialNeeded as needed:
            trial = needed.trial
        trial(flat)
        return run(flat)

    return run


def _impl(*arrays: Any, operator: Operator, call: Call) -> Sequence[Any]:
    """Runs one call compiled: that is what makes eager use fast."""
    programs = operator.programs()
    bound = _compile_bound(operator, call) if programs is None else programs.bound(call)
    # Under jax.disable_jit the call would run as Python and bind the primitive again.
    with jax.disable_jit(False):
        results: Sequence[Any] = bound(arrays)
        return results


_shared: weakref.WeakValueDictionary[Definition, Programs] = weakref.WeakValueDictionary()
# Keep the latest alive while a notebook cell or a loop is between two of them: until the second
# full garbage collection after the last use, so that what nobody holds is freed.
_recent: collections.deque[Programs] = collections.deque(maxlen=64)
_less_recent = _recent


def _age(phase: str, info: dict[str, int]) -> None:
    global _recent, _less_recent
    if phase == "start" and info["generation"] == 2:
        _less_recent, _recent = _recent, collections.deque(maxlen=64)


gc.callbacks.append(_age)
_sharing_lock = threading.RLock()


def share_programs(definition: Definition) -> Programs:
    """Returns the programs of an equal definition, or new ones."""
    with _sharing_lock:
        known = _shared.get(definition)
    # Without the lock, as infer functions run, which may wait for other threads.
    if known is None or not known.operator.is_current():
        new = Programs(Operator(definition, _impl))
        with _sharing_lock:
            found = _shared.get(definition)
            if found is None or found is known:
                _shared.pop(definition, None)
                _shared[definition] = found = new
        known = found
    with _sharing_lock:
        recent = _recent
        if known not in recent:
            recent.append(known)
    return known
