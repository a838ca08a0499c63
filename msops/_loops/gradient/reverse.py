"""Reverses a kernel: makes the kernel that computes the gradients of its parameters.

For results y = K(x) and cotangents w of y it computes w^T dK/dx, by running K forwards as far as
its values are needed and then each assignment backwards: after ``v = f(u)``,

    du += dv * f'(u);  dv = 0        (with du = dv * f'(u) where u is v itself)

Source: Griewank and Walther, Evaluating Derivatives, 2nd ed. (SIAM 2008), chapters 3, 4 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msops._loops.gradient.boundary import make_boundary
from msops._loops.gradient.contributions import active_buffers, contributions, operation
from msops._loops.gradient.costs import taped_bytes
from msops._loops.gradient.decisions import Decisions, taped_extremes, with_decisions
from msops._loops.gradient.plan import make_plan
from msops._loops.gradient.relations import Derivative
from msops._loops.gradient.rules import BY_RESULT
from msops._loops.gradient.sweeps import Sweeps, make_tapes
from msops._loops.gradient.tree import Node, Tree, tree_of
from msops._loops.ir.names import Names, unique_names
from msops._loops.ir.nodes import Buffer, Kernel, Load
from msops._loops.ir.operators import is_float
from msops._loops.ir.walk import loads, read_by, touched_in
from msops.errors import ArgumentValueError

_RESULT = "<result>"


def reverse(kernel: Kernel, wanted: tuple[bool, ...] | None = None) -> Kernel:
    """Returns the kernel that computes the gradients of a kernel.

    Args:
      kernel: a kernel after explicit_indices.py and `keep_decisions`.
      wanted: for each parameter, whether its gradient is; None wants all. Parameters that are not
        floats have none.

    Returns:
      A kernel whose parameters are those of `kernel`, then a cotangent per float result, of the
      result's shape and dtype; its results are the gradients wanted, in the order of the
      parameters, each of its parameter's shape and dtype. A parameter that the kernel writes
      means its value before. Each loop that was reversed has its variable mirrored.

    Raises:
      ArgumentValueError: no gradient is wanted, or no result is a float.
    """
    chosen = wanted or (True,) * len(kernel.parameters)
    inputs = [buffer for buffer, is_wanted in zip(kernel.parameters, chosen, strict=True)
              if is_wanted and is_float(buffer.dtype)]  # fmt: skip
    if not inputs or not any(is_float(buffer.dtype) for buffer in kernel.outputs):
        raise ArgumentValueError.explained(
            f"the adjoint of kernel '{kernel.name}'",
            "expected a float result and a float parameter whose gradient is wanted; got "
            f"({_dtypes(inputs)}) -> ({_dtypes(kernel.outputs)})",
            "Ask for gradients of float parameters only.",
        )
    tree = tree_of(kernel)
    names = Names(kernel)
    active = active_buffers(kernel, {buffer.name for buffer in inputs})
    boundary = make_boundary(tree, inputs, active, names)
    derivatives = _derivatives(tree, boundary.adjoints, {})
    plan = make_plan(tree, derivatives)
    if extremes := taped_extremes(tree, plan):
        decided, decisions = with_decisions(kernel, extremes, names)
        other = tree_of(decided)
        others = _derivatives(other, boundary.adjoints, decisions)
        replanned = make_plan(other, others)
        if taped_bytes(other, replanned.recording) < taped_bytes(tree, plan.recording):
            tree, derivatives, plan = other, others, replanned
    derivatives = plan.chosen(derivatives)
    tapes = make_tapes(tree, plan, names.fresh)
    sweeps = Sweeps(tree, plan, derivatives, boundary.adjoints, tapes, names.fresh)
    body = (*sweeps.forward(), *boundary.before, *sweeps.backward(), *boundary.after)
    parameters = (*kernel.parameters, *boundary.cotangents)
    results = tuple(gradient.name for gradient in boundary.gradients)
    top = (
        *kernel.buffers,
        *sweeps.tapes_of(None),
        *boundary.top_adjoints(tree),
        *boundary.gradients,
    )
    used = touched_in(body) | set(results)
    buffers = {buffer.name: buffer for buffer in top if buffer.name in used}
    for parameter in parameters:
        buffers.pop(parameter.name, None)
    return unique_names(
        Kernel(
            f"{kernel.name}_adjoint",
            parameters,
            results,
            tuple(buffers.values()),
            body,
            location=kernel.location,
        ),
        names,
    )


def _dtypes(buffers: Sequence[Buffer]) -> str:
    return ", ".join(buffer.dtype for buffer in buffers)


def _derivatives(
    tree: Tree, adjoints: Mapping[str, Buffer], decisions: Decisions
) -> dict[Node, Derivative]:
    """Returns what the reversal of each active store computes."""
    read = set().union(*(read_by(node.stmt) for node in tree.nodes()))
    written = {node.store.buffer for node in tree.stores()}
    found: dict[Node, Derivative] = {}
    for node in tree.stores():
        store = node.store
        target = adjoints.get(store.buffer)
        if target is None:
            continue
        seed = Load(target.name, store.indices, target.dtype)
        costs_more = store.buffer in read or any(
            load.buffer in written for load in loads(store.value)
        )
        result = Load(_RESULT, (), target.dtype)
        decision = decisions.get(id(store))
        alone = tuple(contributions(store.value, seed, set(adjoints), None, decision))
        found[node] = Derivative(seed, alone, None, alone)
        if costs_more and operation(store.value) in BY_RESULT:
            parts = contributions(store.value, seed, set(adjoints), result)
            found[node] = Derivative(seed, tuple(parts), result, alone)
    return found
