"""Indices and the ends of loops become what analyses understand: sums of loop variables.

The kernel is simplified. What locals hold is put where it is read (forward_locals.py), a loop over
the elements of several axes becomes nested loops (nest_flat_loops.py), and one whose strides are
powers or parts of its variable is written out:

    for s in 0 .. 10 {                      for q in 0 .. 1 {
      for q in 0 .. 1 << s {                  y[q] = x[q + 512]
        y[q] = x[q + (1024 >> s + 1)]  ->   }
      }                                     for q in 0 .. 2 {
    }                                         y[q] = x[q + 256]
                                            ...

Fourier transforms and prefix sums by doubling are such loops. As numbers the strides show that
indices are in range, and that loops are parallel. A loop of at most nine iterations is written out,
too, if its variable stands for a row and a column, as k does in `a[i + k // 2, j + k % 2]`. Of
stages in stages only the inner ones are written out.
"""

from __future__ import annotations

from msops._loops.analysis.costs import fixed_span
from msops._loops.ir.names import unique_names
from msops._loops.ir.nodes import Binary, Const, For, Kernel, Stmt
from msops._loops.ir.walk import (
    Scope,
    accesses_in,
    expressions,
    iterations,
    rewrite_loops,
    statements,
    variables,
)
from msops._loops.passes.forward_locals import forward_indices, forward_lengths
from msops._loops.passes.nest_flat_loops import nest_flat_loops
from msops._loops.passes.simplify import simplify


def make_indices_plain(kernel: Kernel, *, keeps_loops: bool = False) -> Kernel:
    """Returns the kernel simplified, with plain indices.

    Args:
      kernel: the kernel.
      keeps_loops: the loops stay those of the author, for messages.
    """
    kernel = simplify(kernel)
    changed = forward_lengths(forward_indices(kernel))
    if not keeps_loops:
        changed = write_out_stages(nest_flat_loops(changed))
    return kernel if changed is kernel else simplify(changed)


_MOST_STAGES = 24
"""Iterations of a loop over exponents: enough for arrays of 16 million elements."""
_MOST_PARTS = 9
"""Iterations of a loop over rows and columns: a window of 3 x 3."""
_MOST_STATEMENTS_OF_PARTS = 80
"""Statements that a loop over rows and columns becomes. Heads of attention are no windows."""
_MOST_STATEMENTS = 400
"""Statements that a loop becomes. The compiler takes 0.7 s for 390 of a Fourier transform."""


def write_out_stages(kernel: Kernel) -> Kernel:
    """Returns the kernel with loops over stages or parts written out, if they are short."""
    changed = rewrite_loops(kernel, _written_out)
    return kernel if changed is kernel else unique_names(changed)


def _written_out(loop: For, scope: Scope) -> tuple[Stmt, ...] | None:
    span = fixed_span(loop)
    if span is None or not 1 < span[1] - span[0] <= _MOST_STAGES:
        return None
    inner = statements(loop.body)
    trips = span[1] - span[0]
    are_parts = (
        trips <= _MOST_PARTS
        and len(inner) * trips <= _MOST_STATEMENTS_OF_PARTS
        and _has_parts(loop, inner)
    )
    if len(inner) * trips > _MOST_STATEMENTS or not (are_parts or _has_stages(loop, inner)):
        return None
    if any(isinstance(part, For) and _has_stages(part, statements(part.body)) for part in inner):
        # Stages of stages, as of a bitonic sort, would be hundreds.
        return None
    return iterations(loop, span)


def _has_stages(loop: For, inner: list[Stmt]) -> bool:
    """Returns whether the bounds of loops inside depend on a power by the loop's variable."""
    bounds = [bound for part in inner if isinstance(part, For) for bound in (part.begin, part.end)]
    return any(
        isinstance(part, Binary)
        and part.op in ("shl", "shr", "pow")
        and loop.var in variables(part.right)
        for bound in bounds
        for part in expressions(bound)
    )


def _has_parts(loop: For, inner: list[Stmt]) -> bool:
    """Returns whether elements inside depend on a quotient and a remainder of the variable."""
    if not any(isinstance(part, For) for part in inner):
        return False
    divisors: dict[str, set[Const]] = {"div": set(), "mod": set()}
    for index in (index for access in accesses_in(loop.body) for index in access.indices):
        for part in expressions(index):
            match part:
                case Binary(op="floordiv" | "truncdiv", right=Const() as divisor):
                    kind = "div"
                case Binary(op="mod" | "truncmod", right=Const() as divisor):
                    kind = "mod"
                case _:
                    continue
            if variables(part) == {loop.var}:
                divisors[kind].add(divisor)
    return not divisors["div"].isdisjoint(divisors["mod"])
