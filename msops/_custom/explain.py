"""How an op's call is lowered: `Custom.explain`, `Custom.lower_text`, `Custom.cost_analysis`."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from msops._base.explanation import Explanation
from msops._op.call import Call
from msops._op.request import Request
from msops._op_info import OpInfo, format_rows
from msops._primitive.operator import Operator
from msops._primitive.programs import Programs
from msops.errors import ArgumentValueError


def explain_call(programs: Programs, found: tuple[Call, Sequence[Any]] | None) -> Explanation:
    """Explains what a call becomes: `found`, or the latest one."""
    operator = programs.operator
    call, inputs = _choose(operator, found, "explain")
    definition = operator.definition
    with call.face():
        text = definition.backend.explain(definition.kernel, _request(operator, call, inputs))
        return text if isinstance(text, Explanation) else Explanation(text)


def lowered_text(programs: Programs, found: tuple[Call, Sequence[Any]] | None, stage: str) -> str:
    """Returns the text a call has at a stage of its way to machine code."""
    operator = programs.operator
    call, inputs = _choose(operator, found, "lower_text")
    stages = _stages(programs, call, inputs)
    if stage not in stages:
        raise ArgumentValueError.explained(
            f"{operator.who}.lower_text",
            f"expected stage to be one of {', '.join(map(repr, stages))}; got {stage!r}",
            "Name one of them: they are in the order in which a call goes through them.",
        )
    with call.face():
        return stages[stage]()


def cost_of_call(programs: Programs, found: tuple[Call, Sequence[Any]] | None) -> dict[str, float]:
    """Returns what a call costs: the backend's own count, or XLA's."""
    operator = programs.operator
    call, inputs = _choose(operator, found, "cost_analysis")
    definition = operator.definition
    request = _request(operator, call, inputs)
    with call.face():
        own = definition.backend.cost(definition.kernel, request)
        counted = _counted_by_xla(programs, call, inputs) if own is None else own
    return {**request.memory_traffic(), **counted}


def _counted_by_xla(
    programs: Programs, call: Call, inputs: Sequence[jax.ShapeDtypeStruct]
) -> Mapping[str, float]:
    compiled = programs.lower(call, inputs).compile()
    if " while(" in (compiled.as_text() or ""):
        # It counts one iteration, of however many.
        return {}
    counted = compiled.cost_analysis() or {}
    # It leaves out what is 0; what it does not know is negative.
    costs = {kind: float(counted.get(kind, 0)) for kind in _COSTS}
    return {kind: cost for kind, cost in costs.items() if cost >= 0}


_COSTS = ("bytes accessed", "flops", "transcendentals")


def html_table(name: str, func_type: str, infos: Sequence[OpInfo]) -> str:
    """Returns an op as a small table for notebooks: per row of op info its target and dtypes."""
    rows: list[tuple[str, str]] = [
        (info.target, row) for info in infos for row in format_rows(info)
    ]
    head = f"<caption><code>{html.escape(name)}</code>, {func_type}</caption>"
    body = "".join(
        f"<tr><td>{html.escape(target)}</td><td><code>{html.escape(row)}</code></td></tr>"
        for target, row in rows or [("any", "any dtypes")]
    )
    return f"<table>{head}<tr><th>target</th><th>dtypes</th></tr>{body}</table>"


def _stages(
    programs: Programs, call: Call, inputs: Sequence[jax.ShapeDtypeStruct]
) -> Mapping[str, Callable[[], str]]:
    operator = programs.operator
    definition = operator.definition
    own = definition.backend.stages(definition.kernel, _request(operator, call, inputs))
    return {
        **own,
        "jaxpr": lambda: str(jax.make_jaxpr(programs.function(call))(*inputs)),
        "stablehlo": lambda: programs.lower(call, inputs).as_text(),
        "hlo": lambda: programs.lower(call, inputs).compile().as_text() or "",
    }


def _choose(
    operator: Operator, found: tuple[Call, Sequence[Any]] | None, method: str
) -> tuple[Call, Sequence[jax.ShapeDtypeStruct]]:
    if found is None:
        latest = operator.latest_call()
        if latest is None:
            raise ArgumentValueError.explained(
                f"{operator.who}.{method}",
                "expected inputs, as the op has not been called yet; got none",
                f"Pass what the op would be called with: op.{method}(x, y). Arrays or "
                "jax.ShapeDtypeStructs will do.",
            )
        return latest
    call, flat = found
    return call, [jax.ShapeDtypeStruct(jax.typeof(x).shape, jax.typeof(x).dtype) for x in flat]


def _request(operator: Operator, call: Call, inputs: Sequence[jax.ShapeDtypeStruct]) -> Request:
    platform = {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend())
    return operator.request(call, inputs, platform, operator.outputs(call, inputs))


def stand_in(value: Any, who: str) -> Any:
    """Returns an array in place of a `jax.ShapeDtypeStruct`; it takes no memory.

    Raises:
      ArgumentValueError: there is no array of its shape and dtype.
    """
    if not isinstance(value, jax.ShapeDtypeStruct):
        return value
    try:
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)
    except (TypeError, ValueError) as error:  # symbolic sizes, JAX's keys, more than 2**63 bytes
        raise ArgumentValueError.explained(
            who,
            f"expected a ShapeDtypeStruct of numbers and of sizes that an array can have; got "
            f"{value}",
            "Pass one with the sizes of a call.",
        ) from error
