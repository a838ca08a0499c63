"""What the gradient of a block keeps: each operation of JAX in it is called by a function of ours.

JAX traces what it differentiates by `LinearizeTrace`. Inside the block ours stands before it, and
hands it each operation as the function makes it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from jax._src import core
from jax._src.interpreters import ad, batching
from jax._src.state.types import AbstractRef

Operation = Callable[..., Any]


class _Interceptor(core.Trace):
    """Calls `apply` of each operation that is differentiated, while the trace behind runs."""

    __slots__ = ("apply", "parent_trace")

    def __init__(self, parent_trace: Any, apply: Callable[[Operation], Operation]):
        super().__init__()
        self.parent_trace = parent_trace
        self.apply = apply

    def stage_value(self, val: Any) -> Any:
        return self.parent_trace.stage_value(val)

    def process_primitive(self, primitive: Any, tracers: Any, params: Any, /) -> Any:
        def operation(*values: Any) -> Any:
            return primitive.bind(*values, **params)

        works_on_refs = getattr(primitive, "ref_primitive", False) or any(
            isinstance(core.typeof(value), AbstractRef) for value in tracers
        )
        with core.set_current_trace(self.parent_trace):
            if not works_on_refs and any(map(is_differentiated, tracers)):
                operation = self.apply(operation)
            return operation(*tracers)

    def process_call(self, primitive: Any, fun: Any, tracers: Any, params: Any, /) -> Any:
        """Leaves the operation to JAX, with what its gradient keeps."""
        with core.set_current_trace(self.parent_trace):
            return primitive.bind(*tracers, subfuns=(fun,), **params)

    def process_shard_map(self, primitive: Any, fun: Any, tracers: Any, /, **params: Any) -> Any:
        return self.process_call(primitive, fun, tracers, params)

    def process_custom_jvp_call(
        self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, **options: Any
    ) -> Any:
        return self.process_primitive(primitive, tracers, {"subfuns": (fun, jvp), **options})

    def process_custom_vjp_call(
        self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, /, **options: Any
    ) -> Any:
        return self.process_primitive(primitive, tracers, {"subfuns": (fun, fwd, bwd), **options})


def is_differentiated(value: Any) -> bool:
    """Returns whether a gradient is being computed by a value."""
    return isinstance(value, ad.LinearizeTracer)


def _behind(trace: Any) -> Any:
    return trace.parent_trace if isinstance(trace, _Interceptor) else trace


def saves() -> bool | None:
    """Returns whether a gradient keeps the values of operations here.

    None means that hooks cannot have them: the function is compiled, or an axis of it is mapped or
    a directional derivative taken inside of its gradient.
    """
    traces = [_behind(core.trace_ctx.trace)]
    while isinstance(traces[-1], (ad.LinearizeTrace, ad.JVPTrace, batching.BatchTrace)):
        traces.append(_behind(traces[-1].parent_trace))
    gradients = [isinstance(trace, ad.LinearizeTrace) for trace in traces]
    if not isinstance(traces[-1], core.EvalTrace) or (any(gradients) and not gradients[0]):
        return None
    return gradients[0]


@contextlib.contextmanager
def intercepted(apply: Callable[[Operation], Operation] | None) -> Iterator[None]:
    """Inside, the differentiated operations are `apply` of them, in place of those around.

    Args:
      apply: makes a function of an operation; None leaves operations as they are.
    """
    trace = _behind(core.trace_ctx.trace)
    with core.set_current_trace(trace if apply is None else _Interceptor(trace, apply)):
        yield


def interceptor() -> Callable[[Operation], Operation] | None:
    """Returns what `intercepted` got, if operations go through it here."""
    trace = core.trace_ctx.trace
    return trace.apply if isinstance(trace, _Interceptor) else None
