"""The corpus: Hybrid DSL kernels that every executor of loop kernels is tested and timed with.

Each `Case` has a kernel, a maker of inputs and a reference in numpy. A test runs all of them:

    @pytest.mark.parametrize("case", CORPUS, ids=lambda case: case.name)
    def test_agrees_with_numpy(case):
        inputs = case.inputs(np.random.default_rng(0), 8)
        case.check(inputs, run(specialised(case, inputs), inputs))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from loop_ir import Kernel, Spec, read_kernel
from loop_kernels import (
    contractions,
    dynamic_programming,
    elementwise,
    factorisations,
    indirect,
    reductions,
    scans,
    stencils,
)
from loop_kernels.case import Case as Case

CORPUS: tuple[Case, ...] = (
    *elementwise.CASES,
    *reductions.CASES,
    *stencils.CASES,
    *contractions.CASES,
    *indirect.CASES,
    *scans.CASES,
    *factorisations.CASES,
    *dynamic_programming.CASES,
)

BY_NAME = {case.name: case for case in CORPUS}


def specialised(case: Case, inputs: Sequence[np.ndarray]) -> Kernel:
    """Returns the loop IR of a case for the shapes and dtypes of some inputs."""
    who = f"Custom '{case.name}'"
    specs = [Spec(array.shape, array.dtype.name) for array in inputs]
    return read_kernel(case.func, "akg", who).specialise(specs, case.attributes, who)
