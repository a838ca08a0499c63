"""Indices and the ends of loops become what analyses understand: sums of loop variables.

The kernel is simplified. What locals hold is put where it is read (forward_locals.py), a loop over
the elements of several axes becomes nested loops (nest_flat_loops.py), and one whose strides are
powers or parts of its variable is written out (write_out_stages.py).
"""

from __future__ import annotations

from msops._loops.ir.nodes import Kernel
from msops._loops.passes.forward_locals import forward_indices, forward_lengths
from msops._loops.passes.nest_flat_loops import nest_flat_loops
from msops._loops.passes.simplify import simplify
from msops._loops.passes.write_out_stages import write_out_stages


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
