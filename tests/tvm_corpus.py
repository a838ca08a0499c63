"""The corpus of kernels in TVM compute, topi and the IR builder, for every executor.

As the corpus of the Hybrid DSL (loop_corpus.py):

    @pytest.mark.parametrize("case", TVM_CORPUS, ids=lambda case: case.name)
    def test_agrees_with_numpy(case):
        inputs = case.inputs(np.random.default_rng(0), 8)
        case.check(inputs, run(specialised_tvm(case, inputs), inputs))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from loop_ir import Kernel, Spec
from loop_ir import specialise_tvm as specialise
from loop_kernels.case import Case as Case
from tvm_kernels import built, computed

TVM_CORPUS: tuple[Case, ...] = (*computed.CASES, *built.CASES, built.LISTED)


def specialised_tvm(case: Case, inputs: Sequence[np.ndarray]) -> Kernel:
    """Returns the loop IR of a case for the shapes and dtypes of some inputs."""
    specs: list[Spec | tuple[Spec, ...]] = [Spec(x.shape, x.dtype.name) for x in inputs]
    if "list" in case.tags:
        specs[1:] = [tuple(spec for spec in specs[1:] if isinstance(spec, Spec))]
    return specialise(case.func, specs, case.attributes, f"Custom '{case.name}'")
