"""Loop IR as CUDA C: a function for each launch, and the steps that run them.

A parallel nest is one launch: its loops are the grid, all else runs inside a thread. What is in no
parallel nest is a launch of one thread. `pipeline.PASSES_TO_CUDA` bring a kernel into the
form in which each statement of its body is one or the other, and mark the loops of the grids.

hoisting.py     locals, conditions and reductions around parallel loops
grid.py         parallel nests as points, one for each thread
dialect.py      where CUDA C differs from C
source.py       the whole text, and in it what one thread does
steps.py        the values returned: launches, and where buffers are
"""

from msops._loops.to_cuda.source import cuda_source
from msops._loops.to_cuda.steps import (
    ClearBuffer,
    CopyBuffer,
    CudaSource,
    DeviceStep,
    Launch,
    Workspace,
)

__all__ = [
    "ClearBuffer",
    "CopyBuffer",
    "CudaSource",
    "DeviceStep",
    "Launch",
    "Workspace",
    "cuda_source",
]
