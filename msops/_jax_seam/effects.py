"""Effects of ops: JAX neither loses nor doubles their calls, or the op is refused by its name.

JAX keeps a call whose result nobody uses if it has an effect. Three of its rules do not look at
effects that are not JAX's own; here they do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jax._src import dispatch, effects
from jax._src.callback import OrderedIOEffect, _OrderedIOEffect
from jax._src.custom_derivatives import custom_vjp_call_p
from jax._src.interpreters import batching, partial_eval
from jax._src.lax.control_flow import conditionals, loops

from msops.errors import BackendError


class RunsForEffect(effects.Effect):
    """Marks an op whose calls may be neither merged, dropped nor recomputed.

    JAX prints it when it refuses the op (inside `jax.checkpoint`, say), so its text is the advice.
    An exported program keeps the type alone: all of them are equal, and the arguments are optional.

    Args:
      who: the op, for messages.
      advice: what it is, and what to do.
    """

    def __init__(self, who: str = "A loaded program", advice: str = "has a stateful op"):
        self.who = who
        self._advice = advice

    def __repr__(self) -> str:
        return f"{self.who} {self._advice}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RunsForEffect)

    def __hash__(self) -> int:
        return hash(RunsForEffect)


class KeepsOrder(OrderedIOEffect):
    """Marks an op whose calls run in the order of the program.

    It is the effect of `jax.experimental.io_callback` with ``ordered=True``, so that both keep one
    order, but for its text.
    """

    def __init__(self, who: str):
        self._who = who

    def __repr__(self) -> str:
        return f"{self._who} runs in the order of the program"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrderedIOEffect)

    def __hash__(self) -> int:
        return hash(_OrderedIOEffect)


# Not remat_allowed_effects: a recomputed effect would happen twice.
for _allowed in (
    effects.lowerable_effects,
    effects.control_flow_allowed_effects,
    effects.custom_derivatives_allowed_effects,
    # Else a loop's calls whose results are unused are lost when the loop is differentiated.
    effects.partial_eval_kept_effects,
):
    _allowed.add_type(RunsForEffect)
effects.custom_derivatives_allowed_effects.add_type(OrderedIOEffect)


def _await_tokens(self: Any) -> None:
    """Waits for the programs with effects of this thread, and raises the first error of them once.

    JAX would keep what it raised: each `jax.effects_barrier` and the end of Python raise it again.
    """
    failed: Exception | None = None
    for token in (*self.current_tokens.values(), *self.output_runtime_tokens.values()):
        try:
            token.block_until_ready()
        except Exception as error:
            failed = failed or error
    self.clear()
    if failed is not None:
        raise failed


_Tokens: Any = dispatch.RuntimeTokenSet
_Tokens.block_until_ready = _await_tokens


def _refuse(found: Iterable[effects.Effect], problem: str, remedy: str) -> None:
    """Raises the error for the first op among effects.

    Raises:
      BackendError: there is one.
    """
    for effect in found:
        if isinstance(effect, RunsForEffect):
            raise BackendError.explained(effect.who, problem, remedy)


_batch_cond = batching.fancy_primitive_batchers[conditionals.cond_p]
_batch_while = batching.fancy_primitive_batchers[loops.while_p]
_evaluate_while = partial_eval.custom_partial_eval_rules[loops.while_p]
_drop_custom_vjp = partial_eval.dce_rules[custom_vjp_call_p]
_call_custom_vjp = partial_eval.JaxprTrace.process_custom_vjp_call


def _batch_cond_with_effects(
    axis_data: Any, args: Any, dims: Sequence[Any], *, branches: Any, **params: Any
) -> Any:
    if dims[0] is not None and "branches_platforms" not in params:
        _refuse(
            (effect for branch in branches for effect in branch.effects),
            "it is stateful, and jax.vmap runs both branches of a condition that differs between "
            "elements, for every element",
            "Use jax.lax.map instead of jax.vmap, or move the call out of jax.lax.cond.",
        )
    return _batch_cond(axis_data, args, dims, branches=branches, **params)


def _batch_while_with_effects(
    axis_data: Any,
    args: Any,
    dims: Sequence[Any],
    *,
    cond_nconsts: int,
    cond_jaxpr: Any,
    body_nconsts: int,
    body_jaxpr: Any,
) -> Any:
    found = {*cond_jaxpr.effects, *body_jaxpr.effects}
    counts = cond_nconsts, body_nconsts
    if found and _differs(axis_data, dims, counts, cond_jaxpr, body_jaxpr):
        _refuse(
            found,
            "it is stateful, and jax.vmap runs a while loop for every element until the last one "
            "is done",
            "Use jax.lax.map instead of jax.vmap, or loop as often for each element.",
        )
    return _batch_while(
        axis_data,
        args,
        dims,
        cond_nconsts=cond_nconsts,
        cond_jaxpr=cond_jaxpr,
        body_nconsts=body_nconsts,
        body_jaxpr=body_jaxpr,
    )


def _differs(
    axis_data: Any, dims: Sequence[Any], counts: tuple[int, int], cond: Any, body: Any
) -> bool:
    """Returns whether elements of a batch may leave a while loop at different times."""
    batched = [dim is not None for dim in dims]
    ahead, constants = batched[: counts[0]], batched[counts[0] : sum(counts)]
    carry = batched[sum(counts) :]
    # What an iteration makes different is different in the next one.
    for _ in carry:
        _, carry = batching.batch_jaxpr(body, axis_data, constants + carry, instantiate=carry)
    _, (differs,) = batching.batch_jaxpr(cond, axis_data, ahead + carry, instantiate=False)
    return bool(differs)


def _evaluate_while_with_effects(trace: Any, *tracers: Any, **params: Any) -> Any:
    _refuse(
        (*params["cond_jaxpr"].effects, *params["body_jaxpr"].effects),
        "it is stateful, and JAX runs a while loop again for its derivative",
        "Use jax.lax.scan, or jax.lax.fori_loop with bounds that are Python ints.",
    )
    return _evaluate_while(trace, *tracers, **params)


def _drop_custom_vjp_with_effects(used: list[bool], *given: Any) -> Any:
    # JAX 0.12 gives before the equation which inputs are live.
    equation = given[-1]
    if any(isinstance(effect, RunsForEffect) for effect in equation.effects):
        # Whole: without results, the function below would not find it.
        return [True] * len(equation.invars), equation
    return _drop_custom_vjp(used, *given)


def _call_custom_vjp_with_effects(trace: Any, primitive: Any, *args: Any, **params: Any) -> Any:
    results = _call_custom_vjp(trace, primitive, *args, **params)
    # JAX keeps primitives that have effects, and forgets functions with rules of their own.
    # What is known already has none.
    recipes: list[Any] = [getattr(result, "recipe", None) for result in results]
    for recipe in {id(recipe): recipe for recipe in recipes}.values():
        if effects.partial_eval_kept_effects.filter_in(getattr(recipe, "effects", ())):
            handle = partial_eval.EffectHandle(recipe.in_tracers, recipe)
            trace.effect_handles.append(handle)
    return results


batching.fancy_primitive_batchers[conditionals.cond_p] = _batch_cond_with_effects
batching.fancy_primitive_batchers[loops.while_p] = _batch_while_with_effects
partial_eval.custom_partial_eval_rules[loops.while_p] = _evaluate_while_with_effects
partial_eval.dce_rules[custom_vjp_call_p] = _drop_custom_vjp_with_effects
_Trace: Any = partial_eval.JaxprTrace
_Trace.process_custom_vjp_call = _call_custom_vjp_with_effects
