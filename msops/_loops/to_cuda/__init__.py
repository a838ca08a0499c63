"""Prints a kernel as CUDA C, with the launches that run it.

schedule.py        statements -> launches: what is a grid, a block, a loop on the host
axes.py            nests of loops as boxes of iterations
costs.py           how wide a nest is, which accesses are coalesced
splitting.py       a long sum as sums of many blocks
accumulations.py   sums that stay in a register
thread_code.py     what one thread does; where CUDA C differs from C
block_code.py      what the threads of a block do together
memory.py          where buffers lie, and what they hold at the start
source.py          the whole text
steps.py           the values returned

Modules: accumulations, axes, block_code, costs, fission, memory, preparation, schedule, source,
splitting, steps, thread_code.
"""

from msops._loops.to_cuda.source import cuda_source
from msops._loops.to_cuda.steps import (
    Clear,
    Copy,
    CudaSource,
    Launch,
    Repeat,
    Step,
    Workspace,
    flat_steps,
)

__all__ = [
    "Clear",
    "Copy",
    "CudaSource",
    "Launch",
    "Repeat",
    "Step",
    "Workspace",
    "cuda_source",
    "flat_steps",
]
